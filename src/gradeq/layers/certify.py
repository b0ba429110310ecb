"""The certificate of a layer with one margin: exact averages, the same from the state, and the proven bound.

Averages are over all labelled rows (weighted by their weights); the bias and loss of a group are over its own rows.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gradeq.engine.margin import Margin, account
from gradeq.engine.mix import Mix
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
from gradeq.penalties import Lasso, Ridge
from gradeq.schedules import Constant, Power, Schedule
from gradeq.theory import Setting, best_bound, group_bounds

if TYPE_CHECKING:
    from gradeq.layers.debiaser import Debiaser

TASKS = {
    "identity": "mean",
    "logit": "probability_logit",
    "shift": "probability_shift",
    "exp": "multiplicative",
}


def certify(layer: Debiaser) -> Equilibrium:
    """Everything that can be said about what was served so far."""
    head = layer.desk.head
    final = layer.certified
    names = layer.roster.names
    total = account(final.total or final.sums, 0)
    divisor = total[WEIGHT]
    setting = setting_of(layer)
    bound = best_bound(setting)
    bounds = group_bounds(setting) if len(names) > 1 else (bound,) * len(names)
    constant = isinstance(final.schedule, Constant) and final.pace.constant
    coordinates = []
    gap = 0.0
    for (name, j), own_bound in zip(names.items(), bounds, strict=True):
        own = account(final.sums, j)
        pull = final.pulls[j] if final.penalty is not None else 0.0
        drag = final.drags[j] if final.penalty is not None else 0.0
        average, pulled = over(own[GRADIENT], divisor), over(pull, divisor)
        if constant:
            from_state = over(0.0 - final.u[j], final.pace.high * divisor) if divisor else 0.0
            gap = max(gap, abs(average + pulled - from_state))
        else:
            from_state = average + pulled
            gap = max(gap, abs(own[MOVED] + drag - (0.0 - final.u[j])))
        before = raw_account(head, j)
        coordinates.append(
            Coordinate(
                name=name,
                rows=int(own[ROWS]),
                average_gradient=average,
                average_penalty=pulled,
                from_state=from_state,
                bias_before=over(before[BEFORE], own[WEIGHT]),
                bias_after=over(own[GRADIENT], own[WEIGHT]),
                loss_before=2.0 * over(before[LOSS_BEFORE], own[WEIGHT]),
                loss_after=2.0 * over(own[LOSS_AFTER], own[WEIGHT]),
                bound=own_bound.value,
                vacuous=own_bound.vacuous,
            )
        )
    before = raw_account(head, 0, total=True)
    return Equilibrium(
        rows=int(total[ROWS]),
        coordinates=tuple(coordinates),
        bias_before=over(before[BEFORE], divisor),
        bias_after=over(total[GRADIENT], divisor),
        loss_name="squared error",
        loss_before=2.0 * over(before[LOSS_BEFORE], divisor),
        loss_after=2.0 * over(total[LOSS_AFTER], divisor),
        gap=gap,
        bound=bound.value,
        bound_from=bound.result,
        vacuous=bound.vacuous,
        exact=constant,
    )


def raw_account(head: Any, j: int, total: bool = False) -> list[float]:
    """The account whose "before" is the raw prediction: with ``auto`` that of the first expert."""
    source = head.experts[0] if isinstance(head, Mix) else head
    return account(source.total or source.sums, 0) if total else account(source.sums, j)


def setting_of(layer: Debiaser) -> Setting:
    """What the theory needs to know: configuration, observed ranges, steps, lateness."""
    final, desk, roster = layer.certified, layer.desk, layer.roster
    total = account(final.total or final.sums, 0)
    accounts = {name: account(final.sums, j) for name, j in roster.names.items()}
    most = max(desk.peaks, default=1)
    common: dict[str, Any] = {
        "task": TASKS[layer.link_name],
        "clip": layer.clip if layer.link_name == "logit" else None,
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
    if roster.scalar:
        return Setting(structure="scalar", **common, **seen(total))
    if roster.disjoint:
        groups = tuple(
            Setting(structure="scalar", **common, **seen(own)) for own in accounts.values()
        )
        return Setting(
            structure="disjoint", groups=groups, dimension=len(accounts), **common, **seen(total)
        )
    return Setting(
        structure="features",
        counts=tuple(own[WEIGHT] for own in accounts.values()),
        size=max(desk.norm, roster.size) if roster.features else roster.size,
        largest=desk.largest if roster.features else 1.0,
        dimension=len(accounts),
        **common,
        **seen(total),
    )


def steps_of(head: Margin, served: int) -> dict[str, Any]:
    """The steps taken: first, smallest, largest."""
    pace = head.pace
    first = head.schedule.step(1)
    low = pace.low if math.isfinite(pace.low) else first
    high = max(first, pace.high)
    facts = {"eta": high, "eta_min": low, "eta_last": low, "eta_max": high}
    if isinstance(head.schedule, Power):
        facts["decay"] = head.schedule.alpha
    if not isinstance(head.schedule, (Constant, Power)):
        facts["inverse_variation"] = schedule_variation(head.schedule, served) + 1.0 / low
    elif pace.jumps:
        facts["inverse_variation"] = pace.jumps + 1.0 / low - 1.0 / high
    return facts


def schedule_variation(schedule: Schedule, served: int) -> float:
    """The sum of |1 / eta_t - 1 / eta_{t-1}| of a schedule that need not fall, up to the present time."""
    inverse = [1.0 / schedule.step(t) for t in range(1, max(2, served + 1))]
    return sum(abs(b - a) for a, b in pairwise(inverse))


def seen(own: list[float]) -> dict[str, Any]:
    """Counts and ranges of an account."""
    empty = own[ROWS] == 0.0
    return {
        "n": own[ROWS],
        "weight_sum": own[WEIGHT],
        "low": 0.0 if empty else own[LOW],
        "high": 0.0 if empty else own[HIGH],
        "square_sum": 2.0 * own[LOSS_BEFORE],
        "odds_sum": own[REACH],
    }


def over(total: float, divisor: float) -> float:
    """total / divisor, 0 for nothing."""
    return total / divisor if divisor > 0.0 else 0.0
