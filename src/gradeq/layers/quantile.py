"""Quantile tracking: one level, several that never cross, or an interval, each covered as often as it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gradeq.coverage import Coverage, between, coverages
from gradeq.engine import checks
from gradeq.errors import BadInput
from gradeq.layers.layer import Id
from gradeq.layers.tracker import LateCap, LinkName, Step, Tracker
from gradeq.ledger.values import Ticket
from gradeq.penalties import Penalty
from gradeq.schedules import Constant, Schedule

if TYPE_CHECKING:
    from gradeq.layers.run import Run
    from gradeq.layers.sweep import Frontier
    from gradeq.ledger.batch import Floats

Served = TypeVar("Served")


class ForecastTracker(Tracker, Generic[Served]):
    """A tracker of labels around their forecasts; the classes that users make say what is served."""

    def open(
        self,
        f: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
        weight: float = 1.0,
    ) -> Ticket:
        """Serve a forecast and leave its ticket with the caller; ``ticket.served`` is a number, or one a level."""
        f = self._prediction(f)
        w = 1.0 if weight == 1.0 else checks.weight(weight)
        return self._open(self._names.row(groups, features), f, w)

    def predict(
        self,
        f: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
        weight: float = 1.0,
        id: Id | None = None,
        time: float | None = None,
    ) -> Served:
        """The adjusted quantile, or all of them in increasing order; a ticket stays open until its label comes."""
        self._book.check_new(id)
        when = None if time is None else checks.number(time, "time")
        served: Served = self._kept(self.open(f, groups, features, weight), id, when)
        return served

    def run(
        self,
        predictions: Any,
        labels: Any = None,
        groups: Any = None,
        features: Any = None,
        times: Any = None,
        label_times: Any = None,
        weights: Any = None,
    ) -> Run:
        """Serve and learn from whole columns, with the same bits as one event at a time.

        ``predictions``: one column for all levels, or one for each (a list of columns, an (n, K) array, a
        dataframe). Labels at once unless ``label_times`` says when each came (then ``times`` is needed as well); a
        missing label is served but not learned from. Nothing has changed if this raises.
        """
        from gradeq.layers.run import run_layer

        return run_layer(self, predictions, labels, groups, features, times, label_times, weights)

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

    def set_step(self, eta: float) -> None:
        """Use another constant step from now on; the certificate goes on with the exact sums."""
        if self.eta == "auto":
            raise BadInput("eta='auto' chooses its own steps; make a new layer with a fixed eta")
        step = Constant(checks.number(eta, "eta"))
        self.eta, self.schedule = step.eta, step
        self._take_step(step)

    def _prediction(self, f: Any) -> Any:
        """The base forecast, checked: one number for one level, else one for each level, sorted."""
        count = len(self.levels)
        if count == 1:
            return checks.number(f, "prediction")
        if not hasattr(f, "__len__") or isinstance(f, (str, bytes)) or getattr(f, "ndim", 1) == 0:
            return (checks.number(f, "prediction"),) * count
        if len(f) not in (1, count):
            raise BadInput(
                f"{len(f)} forecasts for {count} levels; give one, or one for each level"
            )
        listed = tuple(sorted(checks.number(x, "prediction") for x in f))
        return listed * count if len(listed) == 1 else listed

    def _base_column(self, predictions: Any) -> Floats:
        from gradeq.layers.several import forecasts

        return forecasts(predictions, len(self.levels))

    @property
    def _common(self) -> dict[str, Any]:
        """The settings that all these have."""
        names = self._names
        return {
            "eta": self.eta,
            "link": self.link_name,
            "groups": list(names.groups),
            "features": list(names.features),
            "schedule": None if self.eta is not None else self.schedule,
            "penalty": self.penalty,
            "late_cap": self.late_cap,
            "in_flight": self._in_flight,
            "ttl": self._ttl,
            "shadow": self.shadow,
        }


class QuantileTracker(ForecastTracker[float]):
    """Serves a quantile forecast that labels stay at or below with frequency ``level``, whatever comes.

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
    predict(0.0), and u starts as if scores were exponential. ``eta="auto"`` mixes trackers of several rates and the
    raw forecast by their pinball loss, then one step of 0.03 carries the certificate (result B5); it needs about 500
    labels to pay.

    Guaranteed for any sequence: |coverage - level| = |u_1 - u| / (eta T) exactly, and at most
    (b + eta max(tau, 1 - tau)) / (eta T), b the largest |asinh((y - f) / s)| (linear: |y - f|); O(1 / sqrt T) with
    overlapping groups or features. Equality y = served counts as covered. The bound is vacuous for short runs; the
    sinh link has no cap on what it can cost in loss. Paper: cor:quantile_loss_zero_curv with the tie corrected.
    """

    kind = "quantile"

    def __init__(
        self,
        level: float,
        eta: Step = None,
        *,
        link: LinkName = "sinh",
        groups: Sequence[str] = (),
        features: Sequence[str] = (),
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: LateCap = "auto",
        in_flight: int = 1,
        ttl: float | None = None,
        warm: bool = False,
        shadow: bool = False,
    ) -> None:
        super().__init__(
            [level], eta, link=link, groups=groups, features=features, schedule=schedule,
            penalty=penalty, late_cap=late_cap, in_flight=in_flight, ttl=ttl, warm=warm,
            shadow=shadow,
        )  # fmt: skip

    @property
    def level(self) -> float:
        """The level that is tracked."""
        return self.levels[0]

    @property
    def coverage(self) -> Coverage:
        """How often y <= served, before and after, beside the level and the bound."""
        return coverages(self)[0]

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew."""
        return {"level": self.level, "warm": self.warm, **self._common}


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

    Guaranteed for any sequence, labels at once: |coverage_k - tau_k| = |u_k| / (eta T) at every level, at most
    (b + eta + sum of (G_j + eta)) / (eta T), G_j the widest distance of neighbouring forecasts in the tracked unit
    (result 8.6). With late labels, overlapping groups or features: O(1 / sqrt T). Vacuous for short runs. Paper:
    Section 5.4 tracks one level; several are result 8.6.
    """

    kind = "quantiles"

    def __init__(
        self,
        levels: Sequence[float],
        eta: Step = None,
        *,
        link: LinkName = "sinh",
        groups: Sequence[str] = (),
        features: Sequence[str] = (),
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: LateCap = "auto",
        in_flight: int = 1,
        ttl: float | None = None,
        shadow: bool = False,
    ) -> None:
        super().__init__(
            levels, eta, link=link, groups=groups, features=features, schedule=schedule,
            penalty=penalty, late_cap=late_cap, in_flight=in_flight, ttl=ttl, shadow=shadow,
        )  # fmt: skip

    def _shown(self, f: Any, served: Any) -> Any:
        shown = super()._shown(f, served)
        return (shown,) if isinstance(shown, float) else shown

    @property
    def coverage(self) -> list[Coverage]:
        """How often y <= served at each level, before and after, beside the level and the bound."""
        return coverages(self)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew."""
        return {"levels": self.levels, **self._common}


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
    upper one. Arguments as for ``QuantileTracker`` (no penalty).

    Guaranteed for any sequence, labels at once: |coverage - C| is at most the sum of both ends' bounds
    (results 8.4, 8.6), in every group of disjoint ``groups``. Vacuous for short runs.
    """

    kind = "interval"

    def __init__(
        self,
        coverage: float,
        eta: Step = None,
        *,
        link: LinkName = "sinh",
        groups: Sequence[str] = (),
        features: Sequence[str] = (),
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: LateCap = "auto",
        in_flight: int = 1,
        ttl: float | None = None,
        shadow: bool = False,
    ) -> None:
        self.target = checks.number(coverage, "coverage")
        if not 0.0 < self.target < 1.0:
            raise BadInput(f"coverage {self.target:g} must lie strictly between 0 and 1")
        super().__init__(
            [(1.0 - self.target) / 2.0, (1.0 + self.target) / 2.0], eta, link=link, groups=groups,
            features=features, schedule=schedule, penalty=penalty, late_cap=late_cap,
            in_flight=in_flight, ttl=ttl, shadow=shadow,
        )  # fmt: skip

    @property
    def coverage(self) -> Coverage:
        """How often lower < y <= upper, before and after, beside the target and the bound."""
        lower, upper = coverages(self)
        return between(lower, upper, self.target)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew."""
        return {"coverage": self.target, **self._common}
