"""Risk control: a knob that moves until any bounded error of yours averages to its target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.certificate import certify, labels_needed, proven
from gradeq.certificate_reading import Terms, reading_of, setting_of
from gradeq.engine import checks
from gradeq.engine.flight import LABELS
from gradeq.engine.names import ALONE, Roster
from gradeq.equilibrium import figure
from gradeq.errors import BadInput
from gradeq.informative import LEAST_RATE, is_vacuous
from gradeq.kernels.account import GRADIENT, WEIGHT
from gradeq.layers.columns import Moment, moment
from gradeq.layers.direction import NAMED, REMEDY, Direction
from gradeq.layers.layer import Id
from gradeq.layers.making import late_limit
from gradeq.layers.predicting import Predicting
from gradeq.layers.run import Run, run_layer
from gradeq.layers.tracker import CAP, LateCap
from gradeq.ledger.values import Ticket
from gradeq.rules.risk import Risk
from gradeq.schedules import Constant
from gradeq.theory import Setting, labels_until

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium


MANY = 1e9  # rows at once


class RiskControl(Predicting):
    """Serves a knob theta such that error(theta, y) averages to ``target``, whatever the data.

    >>> missed = RiskControl(lambda theta, y: y > theta, target=0.25, eta=0.5)
    >>> for y in [1.0, 2.0, 1.5, 3.0] * 50:
    ...     theta = missed.predict()
    ...     outcome = missed.update(y)
    >>> round(missed.risk, 3), round(missed.predict(), 3)
    (0.275, 2.5)

    ``error(theta, y)`` lies in [0, ``most``] and falls (not necessarily strictly) as theta grows: a larger knob is
    the safer one. y is whatever ``update`` is given. theta starts at ``start``. Now and then the error is also asked
    at two other knobs, to see that it falls: one that rises instead makes theta run away, and a warning says so.
    The average is over ALL labelled rows, whatever was decided about them: of the rows that a threshold accepts a
    larger share may be wrong. It ends near the target, on either side of it.

    Guaranteed if ``span`` = (low, high) is given and true, that is error >= target below low and <= target above
    high for every y: |average error - target| = |theta_1 - theta| / (eta T), at most
    (high - low + eta most) / (eta T) (result G1). Without it the average is still read off the state exactly, but
    nothing is proven beforehand. Vacuous for short runs. The error is a function, so ``to_json`` saves everything
    else: ``RiskControl.from_json(text, error)``. Paper: prop:gd_simple.
    """

    kind = "risk"
    _sizing = LABELS

    def __init__(
        self,
        error: Callable[[float, Any], float],
        target: float,
        eta: float,
        *,
        start: float = 0.0,
        span: tuple[float, float] | None = None,
        most: float = 1.0,
        late_cap: LateCap = "auto",
        in_flight: int = 1,
        ttl: float | str | None = None,
        maturity: float | str | None = None,
        missing_is: float | None = None,
        queue: bool = False,
    ) -> None:
        if not callable(error):
            raise BadInput(f"error={error!r}: give a function error(theta, y)")
        self.error, self.start = error, checks.number(start, "start")
        self.target, self.most = checks.number(target, "target"), checks.number(most, "most")
        if not 0.0 < self.target < self.most:
            raise BadInput(
                f"target {self.target:g} must lie strictly between 0 and most {self.most:g}"
            )
        self.span: tuple[float, float] | None = None
        if span is not None:
            ends = [
                checks.number(end, "span") for end in checks.several(span, "span", "two numbers")
            ]
            if len(ends) != 2:
                raise BadInput(f"span={span!r}: give two numbers")
            self.span = (ends[0], ends[1])
        self.eta, self.late_cap = checks.step(eta), late_cap
        reach = 10.0 * self.eta * self.most
        if self.span is not None:
            reach = max(reach, abs(self.span[1] - self.span[0]))
        self._direction = Direction(error, self.target, reach, self.start)
        rule = Risk(self._direction, self.target, self.most, Constant(self.eta))
        self._build(rule, Roster(), late_limit(late_cap, CAP), in_flight, ttl, queue)
        self._mature_after(maturity, missing_is)

    @classmethod
    def from_json(cls, text: str | bytes, error: Callable[[float, Any], float]) -> RiskControl:
        """A saved layer, with the error that it was made with."""
        return cls._revived(text, error=error)

    def open(self, weight: float = 1.0) -> Ticket:
        """Serve the knob and leave its ticket with the caller; ``ticket.served`` is the knob to use now."""
        return self._ticket(*ALONE, self.start, checks.weight(weight))

    def peek(self) -> float:
        """The knob that ``predict`` would serve now; nothing is counted or kept."""
        served: float = self._peek(*ALONE, self.start)
        return served

    def predict(
        self, weight: float = 1.0, id: Id | None = None, time: Moment | None = None
    ) -> float:
        """The knob to use now; a ticket stays open until the label comes."""
        self._warn_reversed()
        if id is not None:
            id = self._book.check_new(id)
        if time is not None:
            time = moment(time, self._book)
        served: float = self._open(*ALONE, self.start, checks.weight(weight), id, time)
        return served

    def predict_many(
        self, count: int, weights: Any = None, ids: Any = None, times: Any = None
    ) -> Any:
        """The knob for so many rows, as ``predict`` gives it one by one; every ticket stays open."""
        from gradeq.layers.many import serve_many

        whole = checks.number(count, "count")
        if int(whole) != whole or not 0.0 <= whole <= MANY:
            raise BadInput(f"count={count!r}: give a number of rows, 0 or more")
        start = np.full(int(whole), self.start)
        own = {"weights": weights, "ids": ids, "times": times}
        return serve_many(self, start, groups=None, features=None, **own)

    def run(
        self,
        labels: Any,
        times: Any = None,
        label_times: Any = None,
        weights: Any = None,
        ids: Any = None,
    ) -> Run:
        """Serve and learn from a column of numbers as labels; ``run.served`` has the knob of each row."""
        start = np.full(len(checks.floats(labels, "label", missing=True)), self.start)
        done = run_layer(self, start, labels, None, None, times, label_times, weights, ids=ids)
        self._warn_reversed()
        return done

    def _warn_reversed(self) -> None:
        if self._direction.reversed:
            self._doubts.say(f"RiskControl: {NAMED}; {REMEDY}")

    @property
    def risk(self) -> float:
        """The average error so far, exactly; nan before there is any."""
        own = self._state.sums
        return self.target - own[GRADIENT] / own[WEIGHT] if own[WEIGHT] else math.nan

    @property
    def theta(self) -> dict[str, float]:
        """The knob."""
        return {"(all)": self.start + self._state.u[0]}

    def equilibrium(self) -> Equilibrium:
        """The average of target - error, the same from the state, and the bound where ``span`` is known."""
        found, setting = certify(self), self._setting()
        value, result, needed = None, "", None
        off = found.coordinates[0].bias_before or 0.0
        raw = max(abs(off), LEAST_RATE * self.most)
        if setting is not None:
            bound = proven(reading_of(self), setting)
            result = bound.result
            value = None if bound.value is None else bound.value * self.most
        vacuous = is_vacuous(value, raw)
        if setting is not None and value is not None and vacuous:
            needed = labels_needed(setting, value / self.most, raw / self.most)
        own = replace(found.coordinates[0], bias_before=None, loss_before=None)
        own = replace(own, bound=value, vacuous=vacuous)
        found = replace(found, coordinates=(own,), loss_before=None)
        own_error = f"error {figure(self.risk)} against a target of {self.target:g}"
        doubt = f"{NAMED}: {REMEDY}" if self._direction.reversed else ""
        return replace(
            found, bound=value, bound_from=result, vacuous=vacuous, needed=needed,
            measured=own_error, doubt=doubt,
        )  # fmt: skip

    def labels_until(self, bound: float) -> int | None:
        """How many more labels until the proven bound falls below this; None without a ``span``."""
        setting, aim = self._setting(), checks.bound(bound)
        if setting is None or reading_of(self).refusal is not None:
            return None
        needed = labels_until(setting, aim / self.most)
        return None if needed is None else max(0, needed - int(setting.n))

    def _setting(self) -> Setting | None:
        """An error in [0, most] is a quantile's miss in units of most, its step then as many times larger."""
        if self.span is None:
            return None
        setting, most = setting_of(reading_of(self)), self.most

        def times(number: float | None, factor: float) -> float | None:
            return None if number is None else number * factor

        return replace(
            setting,
            low=self.span[0] - self.start,
            high=self.span[1] - self.start,
            eta=setting.eta * most,
            eta_last=times(setting.eta_last, most),
            eta_min=times(setting.eta_min, most),
            eta_max=times(setting.eta_max, most),
            inverse_variation=times(setting.inverse_variation, 1.0 / most),
            heaviest_step=times(setting.heaviest_step, most),
            step_mass=times(setting.step_mass, most),
            step_squares=times(setting.step_squares, most * most),
            square_changes=times(setting.square_changes, most),
            cap=times(setting.cap, most),
        )

    @property
    def _terms(self) -> Terms:
        return Terms("quantile", "scalar", "error", (1.0 - self.target / self.most,))

    def _label(self, y: Any) -> Any:
        return y

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew; the error is not among them."""
        return {name: value for name, value in super().settings.items() if name != "error"}
