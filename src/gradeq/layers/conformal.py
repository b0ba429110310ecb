"""Online conformal prediction: sets {y : s(x, y) <= threshold} with the desired coverage, for any score s(x, y)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gradeq.certificates.certificate import Coverage, coverages
from gradeq.engine import scalars
from gradeq.engine.names import Roster
from gradeq.errors import BadInput
from gradeq.inputs.arguments import as_shown
from gradeq.inputs.column_types import ColumnLike, FloatArray
from gradeq.layers import columns
from gradeq.layers.columns import Moment, split
from gradeq.layers.layer import Id
from gradeq.layers.locking import locked
from gradeq.layers.options import LateCap
from gradeq.layers.predicting import SingleParameterLayer
from gradeq.layers.quantile import Step, Tracker
from gradeq.layers.serialization import Saved
from gradeq.rules.levels import Levels
from gradeq.rules.mixed_levels import MixedLevels
from gradeq.rules.wrapped import Scored

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


def cqr(x: tuple[float, float], y: float) -> float:
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
    """The labels whose score is at most the threshold; check one with ``y in prediction_set``."""

    x: Any
    threshold: float
    score: Score

    def __contains__(self, y: object) -> bool:
        return bool(self.score(self.x, y) <= self.threshold)

    @property
    def interval(self) -> tuple[float, float]:
        """The set as (lower, upper), for the built-in scores; lower > upper when it is empty."""
        if self.score is absolute_residual:
            return self.x - self.threshold, self.x + self.threshold
        if self.score is cqr:
            return self.x[0] - self.threshold, self.x[1] + self.threshold
        raise BadInput("the set of a custom score has no interval; use `y in prediction_set`")


class Conformal(SingleParameterLayer[PredictionSet, FloatArray], Tracker[PredictionSet]):
    """Sets {y : s(x, y) <= threshold} that contain the label with frequency ``coverage``, whatever the data.

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
    intervals for the built-in scores, thresholds for custom ones (``run.values`` has the thresholds).

    Guaranteed for any sequence: |coverage - target| = |u_1 - u| / (eta T), bounded as for ``QuantileTracker``
    with scores for residuals (result 3.1); vacuous for short runs. A custom score is not saved with the layer:
    ``Conformal.from_json(text, score)``. Paper: cor:quantile_loss_zero_curv.
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
            raise BadInput("this layer has a custom score: use Conformal.from_json(text, score)")
        if not callable(score) and not (isinstance(score, str) and score in SCORES):
            raise BadInput(f"score={as_shown(score)}: give 'absolute', 'cqr', or a function s(x, y)")
        self.score_name = score if isinstance(score, str) else None
        self.score: Score = SCORES[score] if isinstance(score, str) else score
        self.warm = score == "absolute" if warm is None else scalars.flag(warm, "warm")
        coverage = scalars.as_number(coverage, "coverage")
        if not 0.0 < coverage < 1.0:
            raise BadInput(f"coverage {coverage:g} must lie strictly between 0 and 1")
        step: Step = "plain" if eta is None else eta
        super().__init__([coverage], step, late_cap=late_cap, in_flight=in_flight, ttl=ttl, queue=queue)

    def _choose_rule(self, names: Roster) -> Scored:
        tracker = super()._choose_rule(names)
        assert isinstance(tracker, Levels | MixedLevels)
        return Scored(tracker, self.score)

    @classmethod
    def from_json(cls, text: str | bytes, score: ScoreName | Score) -> Conformal:
        """Load a saved layer; ``score``: the score of that layer."""
        return cls._from_json(text, score=score)

    @locked
    def predict(
        self, x: object, weight: float = 1.0, id: Id | None = None, time: Moment | None = None
    ) -> PredictionSet:
        """The set of labels to expect; a ticket stays open until the label comes."""
        return super().predict(x, weight, id, time)

    @property
    @locked
    def coverage(self) -> Coverage:
        """How often the set contained the label (``before``: with threshold 0), with the target and the bound."""
        return coverages(self)[0]

    def validate_prediction(self, x: object) -> Any:
        """x, checked for the built-in scores and passed unchanged to a custom one."""
        if self.score_name is None:
            return x
        if WIDTHS[self.score_name] == 1:
            return scalars.as_number(x, "prediction")
        if not isinstance(x, Sized) or not isinstance(x, Iterable) or len(x) != 2:
            raise BadInput(f"prediction {as_shown(x)}: score 'cqr' needs (lower, upper)")
        return tuple(scalars.as_number(end, "prediction") for end in x)

    def validate_label(self, y: object) -> Any:
        return y if self.score_name is None else scalars.as_number(y, "label")

    def prediction_column(self, predictions: ColumnLike) -> Floats:
        parts = split(predictions) or [predictions]
        if self.score_name is not None and len(parts) != WIDTHS[self.score_name]:
            width = WIDTHS[self.score_name]
            raise BadInput(f"{len(parts)} columns for score {self.score_name!r}; give {width}")
        checked = [columns.floats(column, "prediction") for column in parts]
        return checked[0] if len(checked) == 1 else np.stack(checked, axis=1)

    def displayed(self, f: Any, served: Any) -> Any:
        """One event: a set. Columns: intervals for the built-in scores, thresholds for custom ones."""
        if isinstance(served, float):
            return PredictionSet(f, served, self.score)
        if self.score_name == "absolute":
            return np.stack([f - served, f + served], axis=1)
        if self.score_name == "cqr":
            return np.stack([f[:, 0] - served, f[:, 1] + served], axis=1)
        return served

    @property
    def _other_settings(self) -> Saved:
        return super()._other_settings | {"score": self.score_name or "", "coverage": self.levels[0]}
