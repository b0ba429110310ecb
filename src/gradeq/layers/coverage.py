"""The certificate of quantile trackers: how often each level was covered, exactly, from the state, and proven."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gradeq.engine.levels import Levels
from gradeq.engine.margin import account
from gradeq.engine.mix import Mix
from gradeq.engine.scored import Scored
from gradeq.equilibrium import Coordinate, Equilibrium
from gradeq.kernels.loops import (
    BEFORE,
    GRADIENT,
    HIGH,
    LOSS_AFTER,
    LOSS_BEFORE,
    LOW,
    MOVED,
    REACH,
    ROWS,
    WEIGHT,
)
from gradeq.layers.certify import over, steps_of
from gradeq.penalties import Lasso, Ridge
from gradeq.schedules import Constant
from gradeq.theory import Bound, Setting, best_bound, group_bounds

if TYPE_CHECKING:
    from gradeq.engine.desk import Desk
    from gradeq.layers.roster import Roster
    from gradeq.penalties import Penalty


class Tracking(Protocol):
    """What a certificate asks of a layer that tracks quantiles."""

    levels: list[float]
    roster: Roster
    penalty: Penalty | None

    @property
    def desk(self) -> Desk:
        """Tickets and state."""
        ...

    @property
    def certified(self) -> Any:
        """The head that carries the certificate."""
        ...

    @property
    def names(self) -> list[str]:
        """The name of each coordinate."""
        ...


class Coverage(NamedTuple):
    """How often labels were covered: by the base forecast, by what was served, and how far off that can be."""

    target: float
    before: float
    after: float
    bound: float | None
    vacuous: bool


def certify_levels(layer: Tracking) -> Equilibrium:
    """Everything that can be said about what was served so far; a bias is coverage less level."""
    final = layer.certified
    count = len(layer.levels)
    totals = [whole(final, k) for k in range(count)]
    raw = [whole(first(layer.desk.head), k) for k in range(count)]
    divisor = totals[0][WEIGHT]
    setting = setting_of(layer)
    bound = best_bound(setting)
    bounds = coordinate_bounds(layer, setting)
    constant = isinstance(final.schedule, Constant) and final.pace.constant
    start = start_of(layer)
    coordinates, gap = [], 0.0
    for c, name in enumerate(layer.names):
        own, before = account(final.sums, c), account(first(layer.desk.head).sums, c)
        pull = final.pulls[c] if final.penalty is not None else 0.0
        drag = final.drags[c] if final.penalty is not None else 0.0
        moved = start[c % count] - final.u[c]
        average, pulled = over(own[GRADIENT], divisor), over(pull, divisor)
        if constant:
            from_state = over(moved, final.pace.high * divisor)
            gap = max(gap, abs(average + pulled - from_state))
        else:
            from_state = average + pulled
            gap = max(gap, abs(own[MOVED] + drag - moved))
        coordinates.append(
            Coordinate(
                name=name,
                rows=int(own[ROWS]),
                average_gradient=average,
                average_penalty=pulled,
                from_state=from_state,
                bias_before=over(before[BEFORE], own[WEIGHT]),
                bias_after=over(own[GRADIENT], own[WEIGHT]),
                loss_before=over(before[LOSS_BEFORE], own[WEIGHT]),
                loss_after=over(own[LOSS_AFTER], own[WEIGHT]),
                bound=bounds[c].value,
                vacuous=bounds[c].vacuous,
            )
        )
    return Equilibrium(
        rows=int(totals[0][ROWS]),
        coordinates=tuple(coordinates),
        loss_name="pinball loss",
        loss_before=over(math.fsum(own[LOSS_BEFORE] for own in raw), count * divisor),
        loss_after=over(math.fsum(own[LOSS_AFTER] for own in totals), count * divisor),
        gap=gap,
        bound=bound.value,
        bound_from=bound.result,
        vacuous=bound.vacuous,
        exact=constant,
    )


def coverages(layer: Tracking) -> list[Coverage]:
    """The coverage of each level over all labelled rows; nan before there are any."""
    final = layer.certified
    setting = setting_of(layer)
    wholes = level_bounds(setting, len(layer.levels))
    result = []
    for k, tau in enumerate(layer.levels):
        own, raw = whole(final, k), whole(first(layer.desk.head), k)
        weight = own[WEIGHT] if own[WEIGHT] > 0.0 else math.nan
        before, after = share(tau, raw[BEFORE] / weight), share(tau, own[GRADIENT] / weight)
        result.append(Coverage(tau, before, after, wholes[k].value, wholes[k].vacuous))
    return result


def between(lower: Coverage, upper: Coverage, target: float) -> Coverage:
    """Of the interval between two levels that never cross: the difference, the two bounds added (result 8.4)."""
    bound = None
    if lower.bound is not None and upper.bound is not None:
        bound = lower.bound + upper.bound
    vacuous = bound is None or not bound < max(target, 1.0 - target)
    before, after = (
        share(upper.before, -lower.before),
        share(upper.after, -lower.after),
    )
    return Coverage(target, before, after, bound, vacuous)


def share(a: float, b: float) -> float:
    """a + b, a share of rows; what long sums lost in the last digits is rounded away."""
    return round(a + b, 10) + 0.0


def level_bounds(setting: Setting, count: int) -> list[Bound]:
    """A bound for each level over all labelled rows; disjoint groups add up."""
    if setting.structure == "isotonic":
        return list(group_bounds(setting))
    if setting.structure != "disjoint" or not setting.groups:
        return [best_bound(setting)] * count
    trivial = best_bound(setting)
    bounds = []
    for own in zip(*(level_bounds(group, count) for group in setting.groups), strict=True):
        values = [
            None if bound.value is None else bound.value * group.average_over
            for bound, group in zip(own, setting.groups, strict=True)
            if group.n
        ]
        total = None if None in values else math.fsum(v for v in values if v is not None)
        value = None if total is None else over(total, setting.average_over)
        vacuous = value is None or not value < trivial.trivial
        bounds.append(trivial._replace(value=value, vacuous=vacuous))
    return bounds


def coordinate_bounds(layer: Tracking, setting: Setting) -> list[Bound]:
    """A bound for each parameter and level over its own rows."""
    count = len(layer.levels)
    if layer.roster.scalar:
        return level_bounds(setting, count)
    if setting.structure == "disjoint" and setting.penalty is None:
        return [bound for group in setting.groups for bound in level_bounds(group, count)]
    return [bound for bound in group_bounds(setting) for _ in range(count)]


def setting_of(layer: Tracking) -> Setting:
    """What the theory needs to know: configuration, observed ranges, steps, lateness."""
    final, desk, roster = layer.certified, layer.desk, layer.roster
    count = len(layer.levels)
    most = max(desk.peaks, default=1)
    common: dict[str, Any] = {
        "task": "quantile",
        "level": layer.levels[0],
        "levels": tuple(layer.levels) if count > 1 else (),
        "weight_max": desk.heaviest,
        "late": most > 1,
        "most_open": most,
        "delay": desk.delay_most if most > 1 else None,
        "cap": final.limit if desk.capped else None,
        **steps_of(final, max(desk.clocks, default=0)),
    }
    if not roster.scalar and not roster.disjoint and final.pace.variation:
        common["inverse_variation"] = (
            final.pace.variation
        )  # a row's cap depends on its groups: steps may rise
    if isinstance(layer.penalty, (Lasso, Ridge)):
        common["penalty"] = "lasso" if isinstance(layer.penalty, Lasso) else "ridge"
        common["strength"] = layer.penalty.strength
    # Late labels at several levels are proven by the growth of ||u|| alone (results 8.7, A1).
    alone = "scalar" if count == 1 else "features" if most > 1 else "isotonic"
    offset = sum(start_of(layer)) * max(1, len(roster.groups))
    if roster.scalar:
        return Setting(structure=alone, **common, **seen(final, None, count, offset))
    params = roster.names.values()
    if roster.disjoint:
        groups = tuple(
            Setting(structure=alone, **common, **seen(final, j, count, offset)) for j in params
        )
        seen_all = seen(final, None, count, offset)
        return Setting(
            structure="disjoint", groups=groups, dimension=len(params) * count, **common, **seen_all
        )
    return Setting(
        structure="features",
        counts=tuple(account(final.sums, j * count)[WEIGHT] for j in params),
        size=max(desk.norm, roster.size) if roster.features else roster.size,
        largest=desk.largest if roster.features else 1.0,
        dimension=len(params) * count,
        **common,
        **seen(final, None, count, offset),
    )


def seen(final: Any, j: int | None, count: int, offset: float) -> dict[str, Any]:
    """Counts and ranges of one parameter, or of the whole layer; ranges are measured from u_1."""
    owns = [
        whole(final, k) if j is None else account(final.sums, j * count + k) for k in range(count)
    ]
    ranged = [own[LOW] <= own[HIGH] for own in owns]
    lows = tuple(own[LOW] - offset if r else 0.0 for own, r in zip(owns, ranged, strict=True))
    highs = tuple(own[HIGH] - offset if r else 0.0 for own, r in zip(owns, ranged, strict=True))
    facts: dict[str, Any] = {
        "n": owns[0][ROWS],
        "weight_sum": owns[0][WEIGHT],
        "low": min(lows),
        "high": max(highs),
    }
    if isinstance(final, Levels):
        facts["zero_scale_rounds"] = owns[0][REACH]
        if count > 1:
            at = 0 if j is None and final.total else (j or 0) * count
            gaps = final.widest if j is None and final.total else final.gaps
            facts |= {"lows": lows, "highs": highs, "gaps": tuple(gaps[at : at + count - 1])}
    return facts


def whole(head: Any, k: int) -> list[float]:
    """The account of level k over all rows."""
    return account(head.total or head.sums, k)


def first(head: Any) -> Any:
    """The head whose "before" is the raw forecast: with ``auto`` the first expert."""
    inner = head.inner if isinstance(head, Scored) else head
    return inner.experts[0] if isinstance(inner, Mix) else inner


def start_of(layer: Tracking) -> list[float]:
    """u_1 of the head that carries the certificate."""
    final = layer.certified
    return final.start if isinstance(final, Levels) else [0.0] * len(layer.levels)
