"""Risk control: a threshold that moves until a bounded error averages to its target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.certificates.certificate import certify, labels_needed, proven_bound
from gradeq.certificates.figures import LEAST_RATE, is_vacuous
from gradeq.certificates.reading import Terms, reading_of, setting_of
from gradeq.engine import scalars
from gradeq.engine.lateness import LABELS
from gradeq.engine.names import ALONE, Roster
from gradeq.equilibrium import figure
from gradeq.errors import BadInput
from gradeq.inputs.arguments import as_shown
from gradeq.inputs.column_types import ColumnLike, FloatArray
from gradeq.kernels.account import GRADIENT, ROWS, WEIGHT
from gradeq.layers.columns import Moment
from gradeq.layers.layer import Id
from gradeq.layers.locking import locked
from gradeq.layers.options import LateCap, LateLabels
from gradeq.layers.predicting import Predicting
from gradeq.layers.quantile import CAP
from gradeq.layers.run import InputColumns, Run, run_layer, serve_many
from gradeq.layers.serialization import Saved
from gradeq.ledger.values import Ticket
from gradeq.numerics import within
from gradeq.rules.wrapped import Risk
from gradeq.schedules import Constant
from gradeq.theory import Setting, labels_until

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium


MANY = 1e9  # rows in one call
EPS = 2.0**-52


class RiskControl(Predicting[float]):
    """Serves a threshold theta such that error(theta, y) averages to ``target``, whatever the data.

    >>> missed = RiskControl(lambda theta, y: y > theta, target=0.25, eta=0.5)
    >>> for y in [1.0, 2.0, 1.5, 3.0] * 50:
    ...     theta = missed.predict()
    ...     outcome = missed.update(y)
    >>> round(missed.risk, 3), round(missed.predict(), 3)
    (0.275, 2.5)

    ``error(theta, y)`` lies in [0, ``most``] and never rises as theta grows: a larger theta is safer. y is the label
    passed to ``update``. theta starts at ``start``. Now and then the error is also evaluated at two other thetas:
    if it rises instead, theta runs away, and a warning says so. The average is over ALL labelled rows; among the rows
    that a threshold accepts, a larger share may be wrong. It ends near the target, on either side of it.

    Guaranteed with a correct ``span`` = (low, high), that is error >= target below low and <= target above high for
    every y: |average error - target| = |theta_1 - theta| / (eta T), at most (high - low + eta most) / (eta T)
    (result G1). Without a span the average is still exact, but there is no bound in advance. Vacuous for short runs.
    The error is a function, so it is not saved: ``RiskControl.from_json(text, error)``. Paper: prop:gd_simple.
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
            raise BadInput(f"error={as_shown(error)}: give a function error(theta, y)")
        self.error, self.start = error, scalars.option(start, "start")
        self.target, self.most = scalars.option(target, "target"), scalars.option(most, "most")
        if not 0.0 < self.target < self.most:
            raise BadInput(f"target {self.target:g} must lie strictly between 0 and most {self.most:g}")
        self.span: tuple[float, float] | None = None
        if span is not None:
            ends = [scalars.as_number(end, "span") for end in scalars.several(span, "span", "two numbers")]
            if len(ends) != 2:
                raise BadInput(f"span={as_shown(span)}: give two numbers")
            self.span = (ends[0], ends[1])
        self.eta = scalars.step(eta)
        reach = 10.0 * self.eta * self.most
        if self.span is not None:
            reach = max(reach, abs(self.span[1] - self.span[0]))
        self._direction = Direction(error, self.target, reach, self.start, self.span, self.most)
        rule = Risk(self._direction, self.target, self.most, Constant(self.eta))
        late = LateLabels(late_cap, in_flight, ttl, maturity, missing_is, queue)
        self._build(rule, Roster(), late, CAP)

    @classmethod
    def from_json(cls, text: str | bytes, error: Callable[[float, Any], float]) -> RiskControl:
        """Load a saved layer; ``error``: the function that is not saved."""
        return cls._from_json(text, error=error)

    @locked
    def open(self, weight: float = 1.0) -> Ticket:
        """Serve theta and return its ticket to the caller; ``ticket.served`` is the theta to use now."""
        return self._ticket(*ALONE, self.start, scalars.weight(weight))

    @locked
    def peek(self, time: Moment | None = None) -> float:
        """The theta that ``predict`` would serve now, or at a ``time`` with ``maturity``; nothing changes."""
        served: float = self._peek(*ALONE, self.start, time)
        return served

    @locked
    def predict(self, weight: float = 1.0, id: Id | None = None, time: Moment | None = None) -> float:
        """The theta to use now; a ticket stays open until the label comes."""
        self._warn_reversed()
        served: float = self._open(*ALONE, self.start, scalars.weight(weight), id, time)
        return served

    @locked
    def predict_many(
        self,
        count: int,
        weights: ColumnLike | None = None,
        ids: ColumnLike | None = None,
        times: ColumnLike | None = None,
    ) -> FloatArray:
        """The theta for this many rows, as from ``predict``; every ticket stays open."""
        whole = scalars.as_number(count, "count")
        if int(whole) != whole or not 0.0 <= whole <= MANY:
            raise BadInput(f"count={as_shown(count)}: give a number of rows, 0 or more")
        start = np.full(int(whole), self.start)
        return serve_many(self, InputColumns(start, times=times, weights=weights, ids=ids))

    @locked
    def run(
        self,
        labels: ColumnLike,
        times: ColumnLike | None = None,
        label_times: ColumnLike | None = None,
        weights: ColumnLike | None = None,
        ids: ColumnLike | None = None,
    ) -> Run[FloatArray]:
        """Serve and learn from a column of numbers as labels; ``run.served`` has the theta of each row."""
        start = np.full(len(scalars.floats(labels, "label", missing=True)), self.start)
        inputs = InputColumns(start, labels, times=times, label_times=label_times, weights=weights, ids=ids)
        run = run_layer(self, inputs)
        self._warn_reversed()
        return run

    def _warn_reversed(self) -> None:
        if self._direction.reversed:
            self.internals.warnings.say(f"RiskControl: {RISING}; {REMEDY}")
        elif self._direction.outside is not None:
            self.internals.warnings.say(f"RiskControl: {self._direction.outside}; {WIDER}")
        elif self._direction.stalled is not None:
            self.internals.warnings.say(f"RiskControl: {STALLED}")

    @property
    @locked
    def risk(self) -> float:
        """The exact average error so far; nan without labels."""
        sums = self.internals.state.sums
        if not sums[WEIGHT]:
            return math.nan
        error = self.target - sums[GRADIENT] / sums[WEIGHT]
        return within(error, 0.0, self.most) if error > EPS * sums[ROWS] * self.target else 0.0  # else rounding

    @property
    @locked
    def theta(self) -> dict[str, float]:
        """The current theta."""
        return {"(all)": self.start + self.internals.state.u[0]}

    @locked
    def equilibrium(self) -> Equilibrium:
        """The average of target - error, its certificate, and the bound if ``span`` is known."""
        result, setting = certify(self), self._setting()
        value, source, needed = None, "", None
        raw = max(abs(result.coordinates[0].bias_before or 0.0), LEAST_RATE * self.most)
        if setting is not None:
            bound = proven_bound(reading_of(self), setting)
            source = bound.result
            value = None if bound.value is None else bound.value * self.most
            if value is not None and is_vacuous(value, raw):
                needed = labels_needed(setting, value / self.most, raw / self.most)
        vacuous = is_vacuous(value, raw)
        one = replace(result.coordinates[0], bias_before=None, loss_before=None, bound=value, vacuous=vacuous)
        error = f"error {figure(self.risk)} against a target of {self.target:g}"
        direction, reason = self._direction, ""
        doubt = direction.stalled or ""
        if direction.reversed:
            doubt, reason = f"{RISING}: {REMEDY}", "a bound needs an error that falls as theta rises"
        elif direction.outside is not None:
            doubt, reason = f"{direction.outside}: {WIDER}", "a bound needs a true span"
        elif value is not None and abs(result.largest) > value * (1.0 + ROUNDING):
            doubt = f"theta left the range that span={self.span} allows: {WIDER}"
            reason = "a bound needs a true span"
        if reason and setting is not None:
            value, source, vacuous, needed = None, reason, None, None
            one = replace(one, bound=None, vacuous=None)
        return replace(
            result, coordinates=(one,), loss_before=None, bound=value, bound_from=source, vacuous=vacuous,
            needed=needed, measured=error, doubt=doubt,
        )  # fmt: skip

    @locked
    def labels_until(self, bound: float) -> int | None:
        """How many more labels until the proven bound falls below this; None without a true ``span``."""
        setting, aim = self._setting(), scalars.bound(bound)
        if setting is None or self.equilibrium().bound is None:
            return None
        needed = labels_until(setting, aim / self.most)
        return None if needed is None else max(0, needed - int(setting.n))

    def _setting(self) -> Setting | None:
        """The setting of a quantile tracker: its miss is error / most, and its step ``most`` times larger."""
        if self.span is None:
            return None
        setting, most = setting_of(reading_of(self)), self.most
        steps = ("eta", "eta_last", "eta_min", "eta_max", "heaviest_step", "step_mass", "square_changes", "cap")
        factors = dict.fromkeys(steps, most) | {"inverse_variation": 1.0 / most, "step_squares": most * most}
        scaled: dict[str, Any] = {
            name: getattr(setting, name) * factor
            for name, factor in factors.items()
            if getattr(setting, name) is not None
        }
        return replace(setting, low=self.span[0] - self.start, high=self.span[1] - self.start, **scaled)

    @property
    def terms(self) -> Terms:
        return Terms("quantile", "scalar", "error", (1.0 - self.target / self.most,))

    def validate_label(self, y: object) -> object:
        return y

    @property
    def _other_settings(self) -> Saved:
        return super()._other_settings | {"error": None}


FIRST, EVERY = 24, 32  # the first labels are all checked, then one in 32
SURE = 5  # labels with a rising error before the warning
FEW = 2  # an error may rise at some labels if it falls at more than twice as many
BLOCK = 100  # labels of a block, for errors that do not depend on theta themselves
RECENT, LONG = 4, 20  # blocks
ROUNDING = 1e-9
RISING = "the error does not fall as theta rises, so theta runs away from its target"
REMEDY = "define the error so that a larger theta is safer, or pass -theta to it"
DEPENDS = "does the error depend on theta? If it does, a larger eta gets there sooner"
STALLED = f"theta goes far in one direction while the error stays where it was; {DEPENDS}"
WIDER = "pass a span that holds for every label, or none"


@dataclass
class Direction:
    """The user's error function, and what was seen of it.

    ``fell``, ``rose``: labels whose error is smaller, or larger, with a much larger theta. Both are 0 if the function
    ignores theta, because only the world knows how the outcome depends on it. ``outside``: how a label contradicts
    ``span``. ``stalled``: where theta went without changing the error, as of the last block of labels.
    """

    error: Callable[[float, Any], float]
    target: float
    reach: float  # the smallest distance of the thetas to compare
    start: float
    span: tuple[float, float] | None = None
    most: float = 1.0
    labels: int = 0
    fell: int = 0
    rose: int = 0
    outside: str | None = None
    stalled: str | None = None
    blocks: list[tuple[float, float]] = field(default_factory=list)  # mean theta, mean error
    _theta: float = 0.0
    _errors: float = 0.0

    def __call__(self, theta: float, y: object) -> float:
        error = float(self.error(theta, y))
        if not 0.0 <= error <= self.most:  # the label is refused
            return error
        self.labels += 1
        if self.labels <= FIRST or self.labels % EVERY == 0:
            self._compare(theta, y)
        if self.span is not None and self.outside is None:
            self._check_span(theta, error)
        self._theta, self._errors = self._theta + theta, self._errors + error
        if self.labels % BLOCK == 0:
            self.blocks = [*self.blocks, (self._theta / BLOCK, self._errors / BLOCK)][-LONG:]
            self._theta = self._errors = 0.0
            self.stalled = self._stall()
        return error

    def _compare(self, theta: float, y: object) -> None:
        near = self.reach + abs(theta - self.start)
        try:
            with np.errstate(all="ignore"):
                for far in (near, 1e3 * near, 1e6 * near, 1e9 * near):
                    low, high = (float(self.error(theta + by, y)) for by in (-far, far))
                    if low != high:
                        break
        except Exception:  # the user's function may not be defined there
            return
        self.fell += high < low
        self.rose += high > low

    def _check_span(self, theta: float, error: float) -> None:
        low, high = self.span or (-math.inf, math.inf)
        if theta > high and error > self.target:
            self.outside = f"span ends at {high:g}, but at theta {theta:g} the error of a label was {error:g}"
        elif theta < low and error < self.target:
            self.outside = f"span begins at {low:g}, but at theta {theta:g} the error of a label was {error:g}"

    @property
    def reversed(self) -> bool:
        """Whether the error rises, or does not depend on theta and stays near its largest value while theta rises."""
        if self.rose:
            return self.rose >= SURE and FEW * self.rose > self.fell
        if self.fell or len(self.blocks) < RECENT:
            return False
        thetas, errors = zip(*self.blocks[-RECENT:], strict=True)
        above = min(errors) > self.target and errors[-1] >= errors[0]
        return _monotone(thetas) > 0 and above and errors[-1] > (1.0 + self.target) / 2.0

    def _stall(self) -> str | None:
        """Says where theta went, if it went far in one direction and the error stayed where it was."""
        if self.fell or self.rose or len(self.blocks) < LONG:
            return None
        thetas, errors = (np.array(each) for each in zip(*self.blocks, strict=True))
        early, late, way = errors[: LONG // 4].mean(), errors[-LONG // 4 :].mean(), _monotone(thetas.tolist())
        chance = 2.0 * math.sqrt(2.0 * early * abs(1.0 - early) / (BLOCK * LONG / 4))
        nearer = way * (early - late) > chance
        if not way or nearer or way * (late - self.target) <= chance:
            return None
        return f"theta went from {thetas[0]:.4g} to {thetas[-1]:.4g} while the error stayed at {late:.3g}; {DEPENDS}"


def _monotone(values: Sequence[float]) -> int:
    """1 for values that rise, -1 for values that fall, else 0."""
    steps = [b - a for a, b in pairwise(values)]
    return int(min(steps) > 0.0) - int(max(steps) < 0.0)
