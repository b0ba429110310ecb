"""Risk control: a knob that moves until any bounded error of yours averages to its target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradeq.engine.desk import Desk
from gradeq.engine.margin import Margin, account
from gradeq.engine.scored import Risky
from gradeq.errors import BadInput
from gradeq.kernels.loops import GRADIENT, MOVED, ROWS, WEIGHT
from gradeq.layers import door
from gradeq.layers.layer import Layer, late_limit
from gradeq.layers.roster import SCALAR, Roster
from gradeq.layers.tracker import CAP
from gradeq.links import Identity
from gradeq.schedules import Constant

if TYPE_CHECKING:
    from gradeq.engine.batch import Floats
    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.run import Run
    from gradeq.theory import Bound


@dataclass(frozen=True)
class Shortfall:
    """Slope target - error: in equilibrium the errors average to the target. The value reported is the error."""

    target: float

    def value(self, u: float, y: float) -> float:
        """The error itself."""
        return y

    def slope(self, u: float, y: float) -> float:
        """target - error."""
        return self.target - y


class RiskControl(Layer):
    """Serves a knob theta such that error(theta, y) averages to ``target``, whatever comes.

    >>> missed = RiskControl(lambda theta, y: y > theta, target=0.25, eta=0.5)
    >>> for y in [1.0, 2.0, 1.5, 3.0] * 50:
    ...     theta = missed.predict()
    ...     outcome = missed.update(y)
    >>> round(missed.risk, 3), round(missed.predict(), 3)
    (0.275, 2.5)

    ``error(theta, y)`` lies in [0, ``most``] and falls (not necessarily strictly) as theta grows: a larger knob is
    the safer one. y is whatever ``update`` is given. theta starts at ``start``.

    Guaranteed if ``span`` = (low, high) is given and true, that is error >= target below low and <= target above
    high for every y: |average error - target| = |theta_1 - theta| / (eta T), at most
    (high - low + eta most) / (eta T) (result G1). Without it the average is still read off the state exactly, but
    nothing is proven beforehand. Vacuous for short runs. The error is a function, so ``to_json`` saves everything
    else: ``RiskControl.from_json(text, error)``. Paper: prop:gd_simple.
    """

    kind = "risk"
    shadow = False

    def __init__(
        self,
        error: Callable[[float, Any], float],
        target: float,
        eta: float,
        *,
        start: float = 0.0,
        span: tuple[float, float] | None = None,
        most: float = 1.0,
        late_cap: str | float | None = "auto",
        in_flight: int = 1,
        ttl: float | None = None,
    ) -> None:
        if not callable(error):
            raise BadInput(f"error={error!r}: give a function error(theta, y)")
        self.error, self.start = error, door.number(start, "start")
        self.target, self.most = door.number(target, "target"), door.number(most, "most")
        if not 0.0 < self.target < self.most:
            raise BadInput(
                f"target {self.target:g} must lie strictly between 0 and most {self.most:g}"
            )
        self.span = (
            None if span is None else (door.number(span[0], "span"), door.number(span[1], "span"))
        )
        self.eta, self.late_cap = door.number(eta, "eta"), late_cap
        self.roster = Roster((), ())
        limit = late_limit(late_cap, CAP)
        inner = Margin(Identity(), Shortfall(self.target), Constant(self.eta), limit or 0.0)
        self.desk = Desk(
            Risky(inner, error), capped=limit is not None, in_flight=in_flight, ttl=ttl
        )
        self.grow()

    @classmethod
    def from_json(cls, text: str | bytes, error: Callable[[float, Any], float]) -> RiskControl:
        """A saved layer, with the error that it was made with."""
        from gradeq import codec
        from gradeq.layers.layer import revive

        kind, settings, state = codec.load(text)
        if kind != cls.kind:
            raise BadInput(f"the state is of a {kind} layer, not risk; use gradeq.from_json")
        layer = revive(lambda: cls(error, **settings), state)
        assert isinstance(layer, RiskControl)
        return layer

    def predict(
        self, weight: float = 1.0, id: str | int | None = None, time: float | None = None
    ) -> float:
        """The knob to use now; a ticket stays open until the label comes."""
        w = 1.0 if weight == 1.0 else door.weight(weight)
        served: float = self.desk.open(SCALAR, self.start, w, id, time)
        return served

    def run(
        self, labels: Any, times: Any = None, label_times: Any = None, weights: Any = None
    ) -> Run:
        """Serve and learn from a column of numbers as labels; ``run.served`` has the knob of each row."""
        from gradeq.layers.run import run_layer

        start = np_full(len(labels), self.start)
        return run_layer(self, start, labels, None, None, times, label_times, weights)

    @property
    def risk(self) -> float:
        """The average error so far, exactly; nan before there is any."""
        own = account(self._inner.sums, 0)
        return self.target - own[GRADIENT] / own[WEIGHT] if own[WEIGHT] else float("nan")

    @property
    def theta(self) -> dict[str, float]:
        """The knob."""
        return {"(all)": self.start + self._inner.u[0]}

    def equilibrium(self) -> Equilibrium:
        """The average of target - error, the same from the state, and the bound where ``span`` is known."""
        from gradeq.equilibrium import Coordinate, Equilibrium, over

        inner, own = self._inner, account(self._inner.sums, 0)
        average, rows = over(own[GRADIENT], own[WEIGHT]), int(own[ROWS])
        constant = inner.pace.constant
        if constant:
            from_state = over(0.0 - inner.u[0], inner.pace.high * own[WEIGHT])
            gap = abs(average - from_state)
        else:
            from_state, gap = average, abs(own[MOVED] + inner.u[0])
        bound = self._bound()
        value = None if bound is None or bound.value is None else bound.value * self.most
        vacuous = bound is None or bound.vacuous
        coordinate = Coordinate(
            "(all)", rows, average, from_state=from_state, bound=value, vacuous=vacuous
        )
        return Equilibrium(
            rows, (coordinate,), loss_name="error", loss_after=self.risk if rows else None, gap=gap,
            bound=value, bound_from="" if bound is None else bound.result, vacuous=vacuous,
            exact=constant,
        )  # fmt: skip

    def _bound(self) -> Bound | None:
        """An error in [0, most] is a quantile's miss in units of most: 1 - target / most is its level."""
        from gradeq.layers.certify import steps_of
        from gradeq.theory import Setting, best_bound

        if self.span is None:
            return None
        inner, own, desk = self._inner, account(self._inner.sums, 0), self.desk
        steps = {name: step * self.most for name, step in steps_of(inner, max(desk.clocks)).items()}
        peak = max(desk.peaks)
        setting = Setting(
            task="quantile", level=1.0 - self.target / self.most, n=own[ROWS],
            weight_sum=own[WEIGHT], weight_max=desk.heaviest, late=peak > 1, most_open=peak,
            cap=inner.limit * self.most if desk.capped else None,
            low=self.span[0] - self.start, high=self.span[1] - self.start, **steps,
        )  # fmt: skip
        return best_bound(setting)

    def label(self, y: Any) -> Any:
        """Whatever the error takes."""
        return y

    def base_column(self, predictions: Any) -> Floats:
        """The starting knob of each row."""
        from gradeq.layers import columns

        return columns.numbers(predictions, "start")

    def label_column(self, labels: Any, n: int) -> Floats:
        """A column of labels; nan where there is none."""
        from gradeq.layers import columns

        return columns.labels(labels, n)

    def check_rows(self, size: float, weight: float) -> None:
        """Any weight fits: errors are bounded, so no step diverges."""

    def shown(self, f: Any, served: Any) -> Any:
        """The knob."""
        return served

    def grow(self) -> None:
        """Room for the one parameter."""
        self.desk.head.grow(1)
        self.desk.grow(1, 1)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew; the error is not among them."""
        return {
            "target": self.target,
            "eta": self.eta,
            "start": self.start,
            "span": self.span,
            "most": self.most,
            "late_cap": self.late_cap,
            "in_flight": self.desk.in_flight,
            "ttl": self.desk.ttl,
        }

    @property
    def _inner(self) -> Margin:
        inner = self.desk.head.inner  # type: ignore[attr-defined]
        assert isinstance(inner, Margin)
        return inner


def np_full(n: int, value: float) -> Any:
    """A column of one value."""
    import numpy as np

    return np.full(n, value)
