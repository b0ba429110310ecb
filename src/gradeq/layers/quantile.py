"""Quantile tracking: one level, several that never cross, or an interval, each covered as often as it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradeq.coverage import Coverage, between, coverages
from gradeq.engine import checks
from gradeq.errors import BadInput
from gradeq.layers.grouped import Grouped, Served
from gradeq.layers.several import forecasts
from gradeq.layers.support import Support
from gradeq.layers.tracker import LateCap, LinkName, Step, Tracker
from gradeq.penalties import Penalty
from gradeq.schedules import Schedule

if TYPE_CHECKING:
    from gradeq.layers.sweep import Frontier
    from gradeq.ledger.batch import Floats


class ForecastTracker(Grouped[Served], Tracker):
    """A tracker of labels around their forecasts; the classes that users make say what is served."""

    def sweep(
        self,
        etas: Sequence[float],
        predictions: Any,
        labels: Any,
        groups: Any = None,
        features: Any = None,
        times: Any = None,
        label_times: Any = None,
        weights: Any = None,
    ) -> Frontier:
        """Coverage error and loss of many steps on the same rows, each from a fresh start (in hindsight)."""
        from gradeq.layers.sweep import sweep_runs

        return sweep_runs(
            self, etas, predictions, labels, groups, features, times, label_times, weights
        )

    def _prediction(self, f: Any) -> Any:
        """The base forecast, checked: one number for one level, else one for each level, sorted."""
        count = len(self.levels)
        if count == 1:
            return checks.number(f, "prediction")
        if (
            type(f) is float
            or not hasattr(f, "__len__")
            or isinstance(f, (str, bytes))
            or getattr(f, "ndim", 1) == 0
        ):
            return (checks.number(f, "prediction"),) * count
        if len(f) not in (1, count):
            raise BadInput(
                f"{len(f)} forecasts for {count} levels; give one, or one for each level"
            )
        listed = tuple(sorted(checks.number(x, "prediction") for x in f))
        return listed * count if len(listed) == 1 else listed

    def _base_column(self, predictions: Any) -> Floats:
        return forecasts(predictions, len(self.levels))


class QuantileTracker(ForecastTracker[float]):
    """Serves a quantile forecast that labels stay at or below with frequency ``level``, whatever the data.

    >>> tracker = QuantileTracker(0.9, eta=0.5)
    >>> for y in [1.0, 2.0, 1.5, 3.0]:
    ...     quantile = tracker.predict(1.0)
    ...     outcome = tracker.update(y)
    >>> round(tracker.predict(1.0), 3)
    2.494

    ``link="sinh"`` (default) serves f + s sinh(u), s the running mean of |y - f| (half-life 100 labels): the step has
    no unit, and a jump by any factor is caught up with in logarithmic time (result B3). ``link="linear"`` is the
    paper's f + u, its step in the unit of the labels. ``groups`` and ``features`` give every group its coverage and
    make misses uncorrelated with every feature. ``warm=True`` is for nonnegative scores without a base forecast:
    predict(0.0), and u starts as if scores were exponential. ``eta`` left out: ``"auto"``, which mixes trackers of
    several rates and the raw forecast by their pinball loss, then one step of 0.03 carries the certificate (result
    B5); it needs about 500 labels to pay off. ``eta="plain"``: one tracker with a step of 0.1 (also what a step left
    out is with a penalty). With features or link linear the step is required. ``support=(lo, hi)``: the limits of the
    labels (None: no limit on that side). What is served stays inside; whether it covers is judged by the value
    before, as labels that tie at a limit would drive the state away, and ``coverage.clipped`` is that of what was
    shown.

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
        self.warm = checks.flag(warm, "warm")
        super().__init__(
            [level], eta, link=link, groups=groups, features=features, schedule=schedule,
            penalty=penalty, late_cap=late_cap, in_flight=in_flight, ttl=ttl, maturity=maturity,
            missing_is=missing_is, queue=queue, support=support, shadow=shadow,
        )  # fmt: skip

    @property
    def level(self) -> float:
        """The level that is tracked."""
        return self.levels[0]

    @property
    def coverage(self) -> Coverage:
        """How often y <= served, before and after, beside the level and the bound."""
        return coverages(self)[0]


class MultiQuantileTracker(ForecastTracker[tuple[float, ...]]):
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

    def _shown(self, f: Any, served: Any) -> Any:
        shown = super()._shown(f, served)
        return (shown,) if isinstance(shown, float) else shown

    @property
    def coverage(self) -> list[Coverage]:
        """How often y <= served at each level, before and after, beside the level and the bound."""
        return coverages(self)


class IntervalTracker(ForecastTracker[tuple[float, float]]):
    """Serves an interval that holds the label with frequency ``coverage``; covered means lower < y <= upper.

    >>> tracker = IntervalTracker(0.8, eta=0.5)
    >>> for y in [1.0, 2.0, 1.5, 3.0]:
    ...     lower, upper = tracker.predict(1.0)
    ...     outcome = tracker.update(y)
    >>> [round(end, 3) for end in tracker.predict((0.5, 1.5))]
    [0.049, 2.994]

    Two levels, (1 - C) / 2 and (1 + C) / 2, tracked as by ``MultiQuantileTracker``: the ends never cross, so that the
    coverage of the interval is exactly the difference of the two. ``predict`` takes one forecast, or a lower and an
    upper one. Arguments as for ``QuantileTracker`` (no penalty); where the lower end is held at a limit of the
    ``support``, a label there is inside.

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
        self.target = checks.number(coverage, "coverage")
        if not 0.0 < self.target < 1.0:
            raise BadInput(f"coverage {self.target:g} must lie strictly between 0 and 1")
        super().__init__(
            [(1.0 - self.target) / 2.0, (1.0 + self.target) / 2.0], eta, link=link, groups=groups,
            features=features, schedule=schedule, penalty=penalty, late_cap=late_cap,
            in_flight=in_flight, ttl=ttl, maturity=maturity, missing_is=missing_is, queue=queue,
            support=support, shadow=shadow,
        )  # fmt: skip

    @property
    def coverage(self) -> Coverage:
        """How often lower < y <= upper, before and after, beside the target and the bound."""
        lower, upper = coverages(self)
        return between(lower, upper, self.target)

    @property
    def _held(self) -> dict[str, Any]:
        return super()._held | {"coverage": self.target}
