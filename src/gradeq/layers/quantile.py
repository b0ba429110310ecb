"""Quantile tracking: one level, several that never cross, or an interval, each covered as often as it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradeq.errors import BadInput
from gradeq.kernels.lane import MOST
from gradeq.layers import door
from gradeq.layers.tracker import Tracker
from gradeq.penalties import Penalty
from gradeq.schedules import Schedule

if TYPE_CHECKING:
    from gradeq.layers.coverage import Coverage


class QuantileTracker(Tracker):
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
    predict(0.0), and u starts as if scores were exponential. ``eta="auto"`` mixes four rates and the raw forecast by
    their pinball loss, then one step of 0.03 carries the certificate (result B5); it needs about 500 labels to pay.

    Guaranteed for any sequence: |coverage - level| = |u_1 - u| / (eta T) exactly, and at most
    (b + eta max(tau, 1 - tau)) / (eta T), b the largest |asinh((y - f) / s)| (linear: |y - f|); O(1 / sqrt T) with
    overlapping groups or features. Equality y = served counts as covered. The bound is vacuous for short runs; the
    sinh link has no cap on what it can cost in loss. Paper: cor:quantile_loss_zero_curv with the tie corrected.
    """

    kind = "quantile"

    def __init__(
        self,
        level: float,
        eta: float | str | None = None,
        *,
        link: str = "sinh",
        groups: Sequence[str] = (),
        features: Sequence[str] = (),
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: str | float | None = "auto",
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

    def predict(
        self,
        f: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
        weight: float = 1.0,
        id: str | int | None = None,
        time: float | None = None,
    ) -> float:
        """The adjusted quantile; a ticket stays open until its label comes."""
        plain = (
            groups is None and features is None and weight == 1.0 and id is None and time is None
        )
        if plain and self.link_name == "linear" and self.roster.scalar and not self.shadow:
            ends = (-MOST, MOST)
            again = QuantileTracker.predict.__get__(self)
            lane = self._lane or self.enter_lane(ends, ends, self.prediction, again, self._predict)
            if lane is not None:
                return lane.predict(f)  # type: ignore[no-any-return]
        return self._predict(f, groups, features, weight, id, time)

    def _predict(
        self,
        f: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
        weight: float = 1.0,
        id: str | int | None = None,
        time: float | None = None,
    ) -> float:
        served: float = self._served(f, groups, features, weight, id, time)
        return served

    @property
    def level(self) -> float:
        """The level that is tracked."""
        return self.levels[0]

    @property
    def coverage(self) -> Coverage:
        """How often y <= served, before and after, beside the level and the bound."""
        return self._coverages()[0]

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew."""
        return {"level": self.level, "warm": self.warm, **self.common_settings}


class MultiQuantileTracker(Tracker):
    """Serves one quantile for each level, never crossing, each covered with its own frequency.

    >>> tracker = MultiQuantileTracker([0.1, 0.5, 0.9], eta=0.5)
    >>> for y in [1.0, 2.0, 1.5, 3.0]:
    ...     quantiles = tracker.predict(1.0)
    ...     outcome = tracker.update(y)
    >>> [round(q, 3) for q in tracker.predict([0.5, 1.0, 1.5])]
    [0.169, 1.458, 3.704]

    ``predict`` takes one forecast for all levels or one for each, and returns a tuple. The levels are tracked
    together: forecasts plus u, projected onto increasing sequences (pooling neighbours in the wrong order); u itself
    is never projected, so every level keeps its exact certificate. Arguments as for ``QuantileTracker``; crossing
    forecasts are sorted first.

    Guaranteed for any sequence, labels at once: |coverage_k - tau_k| = |u_k| / (eta T) at every level, at most
    (b + eta + sum of (G_j + eta)) / (eta T), G_j the widest distance of neighbouring forecasts in the tracked unit
    (result 8.6). With late labels, overlapping groups or features: O(1 / sqrt T). Vacuous for short runs. Paper:
    Section 5.4 tracks one level; several are result 8.6.
    """

    kind = "quantiles"

    def __init__(
        self,
        levels: Sequence[float],
        eta: float | str | None = None,
        *,
        link: str = "sinh",
        groups: Sequence[str] = (),
        features: Sequence[str] = (),
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: str | float | None = "auto",
        in_flight: int = 1,
        ttl: float | None = None,
        shadow: bool = False,
    ) -> None:
        super().__init__(
            levels, eta, link=link, groups=groups, features=features, schedule=schedule,
            penalty=penalty, late_cap=late_cap, in_flight=in_flight, ttl=ttl, warm=False,
            shadow=shadow,
        )  # fmt: skip

    def predict(
        self,
        f: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
        weight: float = 1.0,
        id: str | int | None = None,
        time: float | None = None,
    ) -> tuple[float, ...]:
        """The adjusted quantiles in increasing order; a ticket stays open until its label comes."""
        served = self._served(f, groups, features, weight, id, time)
        return served if isinstance(served, tuple) else (served,)

    @property
    def coverage(self) -> list[Coverage]:
        """How often y <= served at each level, before and after, beside the level and the bound."""
        return self._coverages()

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew."""
        return {"levels": self.levels, **self.common_settings}


class IntervalTracker(Tracker):
    """Serves an interval that holds the label with frequency ``coverage``; covered means lower < y <= upper.

    >>> tracker = IntervalTracker(0.8, eta=0.5)
    >>> for y in [1.0, 2.0, 1.5, 3.0]:
    ...     lower, upper = tracker.predict(1.0)
    ...     outcome = tracker.update(y)
    >>> [round(end, 3) for end in tracker.predict((0.5, 1.5))]
    [0.049, 2.994]

    Two levels, (1 - C) / 2 and (1 + C) / 2, tracked as by ``MultiQuantileTracker``: the ends never cross, so that the
    coverage of the interval is exactly the difference of the two. ``predict`` takes one forecast, or a lower and an
    upper one. Arguments as for ``QuantileTracker``.

    Guaranteed for any sequence, labels at once: |coverage - C| is at most the sum of both ends' bounds
    (results 8.4, 8.6), in every group of disjoint ``groups``. Vacuous for short runs.
    """

    kind = "interval"

    def __init__(
        self,
        coverage: float,
        eta: float | str | None = None,
        *,
        link: str = "sinh",
        groups: Sequence[str] = (),
        features: Sequence[str] = (),
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: str | float | None = "auto",
        in_flight: int = 1,
        ttl: float | None = None,
        shadow: bool = False,
    ) -> None:
        self.target = door.number(coverage, "coverage")
        if not 0.0 < self.target < 1.0:
            raise BadInput(f"coverage {self.target:g} must lie strictly between 0 and 1")
        super().__init__(
            [(1.0 - self.target) / 2.0, (1.0 + self.target) / 2.0], eta, link=link, groups=groups,
            features=features, schedule=schedule, penalty=penalty, late_cap=late_cap,
            in_flight=in_flight, ttl=ttl, warm=False, shadow=shadow,
        )  # fmt: skip

    def predict(
        self,
        f: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
        weight: float = 1.0,
        id: str | int | None = None,
        time: float | None = None,
    ) -> tuple[float, float]:
        """The adjusted interval (lower, upper); a ticket stays open until its label comes."""
        lower, upper = self._served(f, groups, features, weight, id, time)
        return lower, upper

    @property
    def coverage(self) -> Coverage:
        """How often lower < y <= upper, before and after, beside the target and the bound."""
        from gradeq.layers.coverage import between

        lower, upper = self._coverages()
        return between(lower, upper, self.target)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew."""
        return {"coverage": self.target, **self.common_settings}
