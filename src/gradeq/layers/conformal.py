"""Online conformal prediction: any score s(x, y), and sets {y : s(x, y) <= threshold} that cover as asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.engine.desk import Desk
from gradeq.engine.mix import Mix
from gradeq.engine.scored import Scored
from gradeq.errors import BadInput
from gradeq.layers import door
from gradeq.layers.layer import Layer
from gradeq.layers.quantile import QuantileTracker
from gradeq.layers.roster import SCALAR, Roster
from gradeq.penalties import Penalty

if TYPE_CHECKING:
    from gradeq.engine.batch import Floats
    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.coverage import Coverage
    from gradeq.layers.run import Run

Score = Callable[[Any, Any], float]


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


class Conformal(Layer):
    """Sets {y : s(x, y) <= threshold} that hold the label with frequency ``coverage``, whatever comes.

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
    shadow = False

    def __init__(
        self,
        score: str | Score,
        coverage: float,
        eta: float | str | None = None,
        *,
        warm: bool | None = None,
        late_cap: str | float | None = "auto",
        in_flight: int = 1,
        ttl: float | None = None,
    ) -> None:
        if score == "":
            raise BadInput(
                "this layer has a score of its own: use Conformal.from_json(text, score)"
            )
        if not callable(score) and score not in SCORES:
            raise BadInput(f"score={score!r}: give 'absolute', 'cqr', or a function s(x, y)")
        self.score_name = score if isinstance(score, str) else None
        self.score: Score = SCORES[score] if isinstance(score, str) else score
        self.warm = score == "absolute" if warm is None else warm
        inner = QuantileTracker(
            coverage, eta, warm=self.warm, late_cap=late_cap, in_flight=in_flight, ttl=ttl
        )
        self.levels, self.eta, self.late_cap = inner.levels, inner.eta, late_cap
        self.roster, self.penalty = Roster((), ()), None
        own = inner.desk
        self.desk = Desk(
            Scored(own.head, self.score), capped=own.capped, in_flight=own.in_flight, ttl=own.ttl
        )
        self.grow()

    penalty: Penalty | None

    @classmethod
    def from_json(cls, text: str | bytes, score: str | Score) -> Conformal:
        """A saved layer, with the score that it was made with."""
        from gradeq import codec
        from gradeq.layers.layer import revive

        kind, settings, state = codec.load(text)
        if kind != cls.kind:
            raise BadInput(f"the state is of a {kind} layer, not conformal; use gradeq.from_json")
        layer = revive(lambda: cls(**{**settings, "score": score}), state)
        assert isinstance(layer, Conformal)
        return layer

    def predict(
        self, x: Any, weight: float = 1.0, id: str | int | None = None, time: float | None = None
    ) -> PredictionSet:
        """The set of labels to expect; a ticket stays open until the label comes."""
        x = self.prediction(x)
        w = 1.0 if weight == 1.0 else door.weight(weight)
        return PredictionSet(x, self.desk.open(SCALAR, x, w, id, time), self.score)

    def run(
        self,
        predictions: Any,
        labels: Any = None,
        times: Any = None,
        label_times: Any = None,
        weights: Any = None,
    ) -> Run:
        """Serve and learn from whole columns, with the same bits as one event at a time."""
        from gradeq.layers.run import run_layer

        return run_layer(self, predictions, labels, None, None, times, label_times, weights)

    def equilibrium(self) -> Equilibrium:
        """Exact average miss, the certificate from the state, the proven bound."""
        from gradeq.layers.coverage import certify_levels

        return certify_levels(self)

    @property
    def coverage(self) -> Coverage:
        """How often the set held the label (``before``: with threshold 0), beside the target and the bound."""
        from gradeq.layers.coverage import coverages

        return coverages(self)[0]

    def labels_until(self, bound: float) -> int | None:
        """How many more labels until the proven bound falls below this, if things go on as they were."""
        from gradeq.layers.coverage import setting_of
        from gradeq.layers.promises import more_labels

        return more_labels(setting_of(self), bound)

    def prediction(self, x: Any) -> Any:
        """x, checked for the built-in scores; your own takes what you give it."""
        if self.score_name is None:
            return x
        if WIDTHS[self.score_name] == 1:
            return door.number(x, "prediction")
        if not hasattr(x, "__len__") or len(x) != 2:
            raise BadInput(f"prediction {x!r}: score 'cqr' needs (lower, upper)")
        return [door.number(end, "prediction") for end in x]

    def label(self, y: Any) -> Any:
        """The label, a number for the built-in scores."""
        return y if self.score_name is None else door.number(y, "label")

    def base_column(self, predictions: Any) -> Floats:
        """x as columns of numbers."""
        from gradeq.layers import columns
        from gradeq.layers.several import split

        found = split(predictions)
        if found is None:
            found = [predictions]
        if self.score_name is not None and len(found) != WIDTHS[self.score_name]:
            wanted = WIDTHS[self.score_name]
            raise BadInput(f"{len(found)} columns for score {self.score_name!r}; give {wanted}")
        checked = [columns.numbers(column, "prediction") for column in found]
        return checked[0] if len(checked) == 1 else np.stack(checked, axis=1)

    def label_column(self, labels: Any, n: int) -> Floats:
        """A column of labels, checked; nan where there is none."""
        from gradeq.layers import columns

        return columns.labels(labels, n)

    def check_rows(self, size: float, weight: float) -> None:
        """Any weight fits: errors are bounded, so no step diverges."""

    def shown(self, f: Any, served: Any) -> Any:
        """Intervals for the built-in scores, thresholds for your own."""
        if self.score_name == "absolute":
            return np.stack([f - served, f + served], axis=1)
        if self.score_name == "cqr":
            return np.stack([f[:, 0] - served, f[:, 1] + served], axis=1)
        return served

    def grow(self) -> None:
        """Room for the one parameter."""
        self.desk.head.grow(1)
        self.desk.grow(1, 1)

    @property
    def certified(self) -> Any:
        """The head that carries the certificate."""
        inner = self.desk.head.inner  # type: ignore[attr-defined]
        return inner.final if isinstance(inner, Mix) else inner

    @property
    def names(self) -> list[str]:
        """The name of the one coordinate."""
        return ["(all)"]

    @property
    def theta(self) -> dict[str, float]:
        """The parameter; with ``auto`` that of the final layer."""
        return {"(all)": self.certified.u[0]}

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew; a score of your own is not among them."""
        return {
            "score": self.score_name or "",
            "coverage": self.levels[0],
            "eta": self.eta,
            "warm": self.warm,
            "late_cap": self.late_cap,
            "in_flight": self.desk.in_flight,
            "ttl": self.desk.ttl,
        }
