"""Quantile tracking: one level, several that never cross, or an interval, each with its nominal coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Never

from gradeq.certificates.certificate import Coverage, coverages, interval_coverage
from gradeq.certificates.reading import Terms
from gradeq.engine import scalars
from gradeq.engine.lateness import BOUNDED, LABELS
from gradeq.engine.names import Roster
from gradeq.errors import BadInput
from gradeq.inputs.column_types import ColumnLike, ColumnsByName, FloatArray, OrArray
from gradeq.kernels.account import ShownLimits
from gradeq.layers import columns
from gradeq.layers.layer import NONE
from gradeq.layers.locking import locked
from gradeq.layers.options import LateCap, LateLabels, Support, limits_of
from gradeq.layers.predicting import Grouped, Served, Stepped
from gradeq.layers.run import InputColumns
from gradeq.layers.serialization import Saved
from gradeq.links import Identity
from gradeq.losses import Quantile
from gradeq.penalties import Penalty
from gradeq.rules.descent import Descent
from gradeq.rules.levels import Levels
from gradeq.rules.rule import Rule
from gradeq.rules.wrapped import Clipped
from gradeq.schedules import Constant, Schedule
from gradeq.theory import warm_start

if TYPE_CHECKING:
    from gradeq.layers.sweep import Frontier
    from gradeq.ledger.batch import Floats


LinkName = Literal["sinh", "linear"]
Step = float | Literal["auto", "plain"] | None

DEFAULT_ETA = 0.1  # with the sinh link, also with groups (result B6)
AUTO_FINAL = 0.03  # the step that carries the certificate of ``auto``
CAP = 0.3  # c of the late-label cap


class Tracker(Stepped[Served]):
    """The base of layers that track quantiles, of labels or of scores.

    ``_forecast``: whether the prediction is a forecast of the quantile, which ``auto`` mixes in; for scores it is 0.
    ``warm``: start as if scores were exponential. ``_interval``: whether two levels are the ends of an interval.
    """

    warm = False
    _forecast = True
    _interval = False
    _auto_harm = "auto follows the best of its steps by their pinball loss"

    def __init__(
        self,
        levels: Sequence[float],
        eta: Step = None,
        *,
        link: LinkName = "sinh",
        groups: Sequence[str] | str = (),
        features: Sequence[str] | str = (),
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: LateCap = "auto",
        in_flight: int = 1,
        ttl: float | str | None = None,
        maturity: float | str | None = None,
        missing_is: float | None = None,
        queue: bool = False,
        support: Support | None = None,
        shadow: bool = False,
    ) -> None:
        scalars.word(link, "link", ("sinh", "linear"), "sinh (steps without a unit) or linear")
        self.levels = checked_levels(levels)
        if len(self.levels) > 1:
            self._bases = NONE
        self.link_name, self.penalty = link, penalty
        self.shadow = scalars.flag(shadow, "shadow")
        self._sizing = LABELS if link == "linear" else BOUNDED
        if support is not None:
            self._limit_labels(support)
        names = Roster(groups, features, together=penalty is not None)
        self.eta, self.schedule = self._chosen_step(eta, schedule, names, DEFAULT_ETA)
        rule = self._choose_rule(names)
        if self.support is not None:  # coverage is judged before clipping
            limits = ShownLimits(tuple(self.levels), *limits_of(self.support), self._interval)
            rule = Clipped(rule, limits, not names.scalar)
        late = LateLabels(late_cap, in_flight, ttl, maturity, missing_is, queue)
        self._build(rule, names, late, CAP)

    def _choose_rule(self, names: Roster) -> Rule:
        if self.schedule is not None:
            return self._tracking(self.schedule, names, self._warm_start(names))
        from gradeq.rules.mixed_levels import MixedLevels

        final = self._tracking(Constant(AUTO_FINAL), names, (0.0,) * len(self.levels))
        assert isinstance(final, Levels)
        start = tuple(warm_start(tau) for tau in self.levels) if self.warm else ()
        return MixedLevels(final, float(len(names.groups)), self._forecast and not self.warm, start)

    def _tracking(self, schedule: Schedule, names: Roster, start: tuple[float, ...]) -> Descent | Levels:
        totals = not names.scalar
        if self.link_name == "linear" and len(self.levels) == 1:
            return Descent(Identity(), Quantile(self.levels[0]), schedule, self.penalty, totals)
        return Levels(tuple(self.levels), schedule, self.link_name == "sinh", start, self.penalty, totals)

    def _warm_start(self, names: Roster) -> tuple[float, ...]:
        """u_1 of each level: 0, or with ``warm`` as if scores were exponential (result B3)."""
        return tuple(warm_start(tau) / names.size if self.warm else 0.0 for tau in self.levels)

    @property
    def terms(self) -> Terms:
        names, auto = self.internals.names, self.schedule is None
        start = (0.0,) * len(self.levels) if auto else self._warm_start(names)
        return Terms(
            "quantile", self._structure, "pinball loss", tuple(self.levels), start, size=names.size,
            sinh=self.link_name == "sinh",
        )  # fmt: skip


def checked_levels(levels: Sequence[float]) -> list[float]:
    taus = [scalars.as_number(tau, "level") for tau in scalars.several(levels, "levels", "levels such as 0.1, 0.9")]
    if not taus:
        raise BadInput("levels is empty; give at least one level between 0 and 1")
    for tau in taus:
        if not 0.0 < tau < 1.0:
            raise BadInput(f"level {tau:g} must lie strictly between 0 and 1")
    if any(b <= a for a, b in pairwise(taus)):
        raise BadInput(f"levels {taus} must increase; sort them and their forecasts, no level twice")
    return taus


class ForecastTracker(Grouped[Served, OrArray], Tracker[Served]):
    """The base of layers that track labels around forecasts."""

    @locked
    def sweep(
        self,
        etas: Sequence[float],
        predictions: ColumnLike,
        labels: ColumnLike,
        groups: ColumnsByName | None = None,
        features: ColumnsByName | None = None,
        times: ColumnLike | None = None,
        label_times: ColumnLike | None = None,
        weights: ColumnLike | None = None,
    ) -> Frontier:
        """Coverage error and loss of many steps on the same rows, each from a fresh start (in hindsight)."""
        from gradeq.layers.sweep import sweep_runs

        inputs = InputColumns(predictions, labels, groups, features, times, label_times, weights)
        return sweep_runs(self, etas, inputs)

    def validate_prediction(self, f: object) -> Any:
        """The forecast, checked: one number for one level, else one for each level, sorted."""
        count = len(self.levels)
        if count == 1:
            return scalars.as_number(f, "prediction")
        one = type(f) is float or isinstance(f, (str, bytes)) or getattr(f, "ndim", 1) == 0
        if one or not isinstance(f, Sized) or not isinstance(f, Iterable):
            return (scalars.as_number(f, "prediction"),) * count
        if len(f) not in (1, count):
            raise BadInput(f"{len(f)} forecasts for {count} levels; give one, or one for each level")
        forecasts = tuple(sorted(scalars.as_number(x, "prediction") for x in f))
        return forecasts * count if len(forecasts) == 1 else forecasts

    def prediction_column(self, predictions: ColumnLike) -> Floats:
        return columns.forecasts(predictions, len(self.levels))


class QuantileTracker(ForecastTracker[float, Never]):
    """Serves a quantile: labels are at or below it with frequency ``level``, whatever the data.

    >>> tracker = QuantileTracker(0.9, eta=0.5)
    >>> for y in [1.0, 2.0, 1.5, 3.0]:
    ...     quantile = tracker.predict(1.0)
    ...     outcome = tracker.update(y)
    >>> round(tracker.predict(1.0), 3)
    2.494

    ``link="sinh"`` (default) serves f + s sinh(u), s the running mean of |y - f| (half-life 100 labels): the step has
    no unit, and the tracker adapts to a jump by any factor in logarithmic time (result B3). ``link="linear"`` is the
    paper's f + u, its step in the unit of the labels. ``groups`` and ``features`` give every group its coverage and
    make misses uncorrelated with every feature. ``warm=True`` is for nonnegative scores without a forecast: call
    predict(0.0), and u starts as if scores were exponential. ``eta`` defaults to ``"auto"``: it mixes trackers of
    several rates and the raw forecast by their pinball loss, then one step of 0.03 carries the certificate (result
    B5); it needs about 500 labels to pay off. ``eta="plain"``: one tracker with a step of 0.1 (the default with a
    penalty). With features or link linear the step is required. ``support=(lo, hi)``: the limits of the labels (None:
    no limit on that side). Served values stay inside. Coverage is judged before clipping, as labels that tie at a
    limit would make the state drift; ``coverage.clipped`` is that of the clipped values.

    Late labels (``late_cap`` to ``queue``): see ``gradeq.layers.options.LateLabels``.

    Guaranteed for any sequence: |coverage - level| = |u_1 - u| / (eta T) exactly, and at most
    (b + eta max(tau, 1 - tau)) / (eta T), b the largest |asinh((y - f) / s)| (linear: |y - f|); O(1 / sqrt T) with
    overlapping groups or features. Equality y = served counts as covered. The bound is vacuous for short runs; the
    sinh link has no cap on what it can cost in loss. Paper: cor:quantile_loss_zero_curv with the tie corrected.
    """

    kind = "quantile"
    _as_served = True

    def __init__(
        self,
        level: float,
        eta: Step = None,
        *,
        link: LinkName = "sinh",
        groups: Sequence[str] | str = (),
        features: Sequence[str] | str = (),
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: LateCap = "auto",
        in_flight: int = 1,
        ttl: float | str | None = None,
        maturity: float | str | None = None,
        missing_is: float | None = None,
        queue: bool = False,
        warm: bool = False,
        support: Support | None = None,
        shadow: bool = False,
    ) -> None:
        self.warm = scalars.flag(warm, "warm")
        super().__init__(
            [level], eta, link=link, groups=groups, features=features, schedule=schedule,
            penalty=penalty, late_cap=late_cap, in_flight=in_flight, ttl=ttl, maturity=maturity,
            missing_is=missing_is, queue=queue, support=support, shadow=shadow,
        )  # fmt: skip

    @property
    @locked
    def level(self) -> float:
        """The tracked level."""
        return self.levels[0]

    @property
    @locked
    def coverage(self) -> Coverage:
        """How often y <= served, before and after, with the level and the bound."""
        return coverages(self)[0]


class MultiQuantileTracker(ForecastTracker[tuple[float, ...], FloatArray]):
    """Serves one quantile for each level, never crossing, each covered with its own frequency.

    >>> tracker = MultiQuantileTracker([0.1, 0.5, 0.9], eta=0.5)
    >>> for y in [1.0, 2.0, 1.5, 3.0]:
    ...     quantiles = tracker.predict(1.0)
    ...     outcome = tracker.update(y)
    >>> [round(q, 3) for q in tracker.predict([0.5, 1.0, 1.5])]
    [0.169, 1.458, 3.704]

    ``predict`` takes one forecast for all levels or one for each, and returns a tuple. The levels are tracked
    together: forecasts plus u, projected onto increasing sequences (pooling neighbours in the wrong order); u itself
    is never projected, so every level keeps its exact certificate. Arguments as for ``QuantileTracker`` (a penalty
    goes with one level only); crossing forecasts are sorted first.

    Guaranteed for any sequence without label delay: |coverage_k - tau_k| = |u_k| / (eta T) at every level, at most
    (b + eta + sum of (G_j + eta)) / (eta T), G_j the widest distance of neighbouring forecasts in the tracked unit
    (result 8.6). With late labels, overlapping groups or features: O(1 / sqrt T). Vacuous for short runs. Paper:
    Section 5.4 tracks one level; several are result 8.6.
    """

    kind = "quantiles"

    def displayed(self, f: Any, served: Any) -> Any:
        values = super().displayed(f, served)
        return (values,) if isinstance(values, float) else values

    @property
    @locked
    def coverage(self) -> list[Coverage]:
        """How often y <= served at each level, before and after, with the level and the bound."""
        return coverages(self)


class IntervalTracker(ForecastTracker[tuple[float, float], FloatArray]):
    """Serves an interval that contains the label with frequency ``coverage``; covered means lower < y <= upper.

    >>> tracker = IntervalTracker(0.8, eta=0.5)
    >>> for y in [1.0, 2.0, 1.5, 3.0]:
    ...     lower, upper = tracker.predict(1.0)
    ...     outcome = tracker.update(y)
    >>> [round(end, 3) for end in tracker.predict((0.5, 1.5))]
    [0.049, 2.994]

    It tracks two levels, (1 - C) / 2 and (1 + C) / 2, like ``MultiQuantileTracker``: the ends never cross, so the
    coverage of the interval is exactly the difference of the two. ``predict`` takes one forecast, or a lower and an
    upper one. Arguments as for ``QuantileTracker`` (no penalty); if the lower end is clipped to a limit of the
    ``support``, a label at that limit is inside.

    Guaranteed for any sequence without label delay: |coverage - C| is at most the sum of both ends' bounds
    (results 8.4, 8.6), in every group of disjoint ``groups``. Vacuous for short runs.
    """

    kind = "interval"
    _as_served = True
    _interval = True

    def __init__(
        self,
        coverage: float,
        eta: Step = None,
        *,
        link: LinkName = "sinh",
        groups: Sequence[str] | str = (),
        features: Sequence[str] | str = (),
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: LateCap = "auto",
        in_flight: int = 1,
        ttl: float | str | None = None,
        maturity: float | str | None = None,
        missing_is: float | None = None,
        queue: bool = False,
        support: Support | None = None,
        shadow: bool = False,
    ) -> None:
        self.target = scalars.as_number(coverage, "coverage")
        if not 0.0 < self.target < 1.0 or 1.0 - self.target == 1.0:
            raise BadInput(f"coverage {self.target:g} must lie strictly between 0 and 1")
        super().__init__(
            [(1.0 - self.target) / 2.0, (1.0 + self.target) / 2.0], eta, link=link, groups=groups,
            features=features, schedule=schedule, penalty=penalty, late_cap=late_cap,
            in_flight=in_flight, ttl=ttl, maturity=maturity, missing_is=missing_is, queue=queue,
            support=support, shadow=shadow,
        )  # fmt: skip

    @property
    @locked
    def coverage(self) -> Coverage:
        """How often lower < y <= upper, before and after, with the target and the bound."""
        lower, upper = coverages(self)
        return interval_coverage(lower, upper, self.target)

    @property
    def _other_settings(self) -> Saved:
        return super()._other_settings | {"coverage": self.target}
