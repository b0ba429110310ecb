"""Online conformal prediction: any score s(x, y), and sets {y : s(x, y) <= threshold} that cover as asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gradeq.coverage import Coverage, coverages
from gradeq.engine import checks
from gradeq.engine.names import ALONE, Roster
from gradeq.errors import BadInput
from gradeq.layers import columns
from gradeq.layers.columns import Moment, moment
from gradeq.layers.layer import Id
from gradeq.layers.predicting import Single
from gradeq.layers.several import split
from gradeq.layers.tracker import LateCap, Step, Tracker
from gradeq.rules.scored import Scored

if TYPE_CHECKING:
    from gradeq.ledger.batch import Floats

Score = Callable[[Any, Any], float]
ScoreName = Literal["absolute", "cqr"]


def absolute_residual(x: float, y: float) -> float:
    """|y - x|, x a point forecast: sets are intervals around it.

    >>> absolute_residual(3.0, 1.0)
    2.0
    """
    return abs(y - x)


def cqr(x: Any, y: float) -> float:
    """max(lower - y, y - upper), x = (lower, upper): conformalised quantile regression; negative inside.

    >>> cqr((0.0, 2.0), 3.0), cqr((0.0, 2.0), 1.0)
    (1.0, -1.0)
    """
    lower, upper = x
    return float(max(lower - y, y - upper))


SCORES: dict[str, Score] = {"absolute": absolute_residual, "cqr": cqr}
WIDTHS = {"absolute": 1, "cqr": 2}


@dataclass(frozen=True)
class PredictionSet:
    """The labels whose score is at most the threshold; ``y in prediction_set`` asks about one of them."""

    x: Any
    threshold: float
    score: Score

    def __contains__(self, y: Any) -> bool:
        return bool(self.score(self.x, y) <= self.threshold)

    @property
    def interval(self) -> tuple[float, float]:
        """The set as (lower, upper), for the built-in scores; lower > upper when it is empty."""
        if self.score is absolute_residual:
            return self.x - self.threshold, self.x + self.threshold
        if self.score is cqr:
            return self.x[0] - self.threshold, self.x[1] + self.threshold
        raise BadInput("a set of your own score has no interval; ask `y in prediction_set`")


class Conformal(Single, Tracker):
    """Sets {y : s(x, y) <= threshold} that hold the label with frequency ``coverage``, whatever the data.

    >>> layer = Conformal("absolute", coverage=0.8, eta=0.5)
    >>> for y in [1.0, 2.0, 1.5, 3.0]:
    ...     inside = y in layer.predict(1.0)
    ...     outcome = layer.update(y)
    >>> [round(end, 3) for end in layer.predict(1.0).interval]
    [-1.74, 3.74]

    ``score``: "absolute" (x a forecast; |y - x|), "cqr" (x = (lower, upper); max(lower - y, y - upper)), or any
    function s(x, y). The threshold is a quantile tracker on the scores (link sinh, so eta has no unit);
    ``warm`` starts it as if scores were exponential, which suits nonnegative ones (default for "absolute").
    ``predict`` returns a set, with ``.interval`` for the built-in scores; ``run`` takes x as columns and serves
    intervals for those, thresholds for your own (``run.values`` has the thresholds).

    Guaranteed for any sequence: |coverage - target| = |u_1 - u| / (eta T), bounded as for ``QuantileTracker``
    with scores for residuals (result 3.1); vacuous for short runs. A layer with a score of your own is saved
    without it: ``Conformal.from_json(text, score)``. Paper: cor:quantile_loss_zero_curv.
    """

    kind = "conformal"
    _forecast = False

    def __init__(
        self,
        score: ScoreName | Score,
        coverage: float,
        eta: Step = None,
        *,
        warm: bool | None = None,
        late_cap: LateCap = "auto",
        in_flight: int = 1,
        ttl: float | str | None = None,
        queue: bool = False,
    ) -> None:
        if isinstance(score, str) and not score:
            raise BadInput(
                "this layer has a score of its own: use Conformal.from_json(text, score)"
            )
        if not callable(score) and not (isinstance(score, str) and score in SCORES):
            raise BadInput(f"score={score!r}: give 'absolute', 'cqr', or a function s(x, y)")
        self.score_name = score if isinstance(score, str) else None
        self.score: Score = SCORES[score] if isinstance(score, str) else score
        self.warm = score == "absolute" if warm is None else checks.flag(warm, "warm")
        step: Step = "plain" if eta is None else eta
        super().__init__(
            [coverage], step, late_cap=late_cap, in_flight=in_flight, ttl=ttl, queue=queue
        )

    def _made_rule(self, names: Roster) -> Scored:
        return Scored(super()._made_rule(names), self.score)

    @classmethod
    def from_json(cls, text: str | bytes, score: ScoreName | Score) -> Conformal:
        """A saved layer, with the score that it was made with."""
        return cls._revived(text, score=score)

    def predict(
        self, x: Any, weight: float = 1.0, id: Id | None = None, time: Moment | None = None
    ) -> PredictionSet:
        """The set of labels to expect; a ticket stays open until the label comes."""
        if id is not None:
            id = self._book.check_new(id)
        if time is not None:
            time = moment(time, self._book)
        x, w = self._prediction(x), checks.weight(weight)
        served: PredictionSet = self._open(*ALONE, x, w, id, time)
        return served

    @property
    def coverage(self) -> Coverage:
        """How often the set held the label (``before``: with threshold 0), beside the target and the bound."""
        return coverages(self)[0]

    def _prediction(self, x: Any) -> Any:
        """x, checked for the built-in scores; your own takes what you give it."""
        if self.score_name is None:
            return x
        if WIDTHS[self.score_name] == 1:
            return checks.number(x, "prediction")
        if not hasattr(x, "__len__") or len(x) != 2:
            raise BadInput(f"prediction {x!r}: score 'cqr' needs (lower, upper)")
        return tuple(checks.number(end, "prediction") for end in x)

    def _label(self, y: Any) -> Any:
        return y if self.score_name is None else checks.number(y, "label")

    def _base_column(self, predictions: Any) -> Floats:
        found = split(predictions)
        if found is None:
            found = [predictions]
        if self.score_name is not None and len(found) != WIDTHS[self.score_name]:
            wanted = WIDTHS[self.score_name]
            raise BadInput(f"{len(found)} columns for score {self.score_name!r}; give {wanted}")
        checked = [columns.numbers(column, "prediction") for column in found]
        return checked[0] if len(checked) == 1 else np.stack(checked, axis=1)

    def _shown(self, f: Any, served: Any) -> Any:
        """One event: a set. Columns: intervals for the built-in scores, thresholds for your own."""
        if isinstance(served, float):
            return PredictionSet(f, served, self.score)
        if self.score_name == "absolute":
            return np.stack([f - served, f + served], axis=1)
        if self.score_name == "cqr":
            return np.stack([f[:, 0] - served, f[:, 1] + served], axis=1)
        return served

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew; a score of your own is not among them."""
        return super().settings

    @property
    def _held(self) -> dict[str, Any]:
        return super()._held | {"score": self.score_name or "", "coverage": self.levels[0]}
