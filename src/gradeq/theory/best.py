"""The smallest bound that is proven for a layer, and what it means for more labels."""

from __future__ import annotations

import math
from dataclasses import replace

from gradeq.theory.many_parameters import feature_candidates
from gradeq.theory.one_parameter import scalar_candidates
from gradeq.theory.setting import Bound, Setting

_LATE = "labels may come late and in any order"


def best_bound(setting: Setting) -> Bound:
    """The smallest valid a-priori bound on the largest coordinate of the average gradient.

    The average is over all labelled rows (or ``divisor``), from theta_1 = 0, and the bound holds for EVERY
    sequence with the observed ranges. ``value`` is None where no theorem fits.

    >>> best_bound(Setting(task="mean", n=1000, low=-2.0, high=1.0, eta=0.1)).value
    0.02
    """
    unit = trivial_error(setting) * setting.largest
    trivial = unit * setting.weights / setting.average_over if setting.average_over else unit
    total, result, assumptions = _largest_total(setting)
    if total is None or not setting.average_over:
        return Bound(None, result, assumptions, trivial, True)
    value = total / setting.average_over
    return Bound(value, result, assumptions, trivial, not value < trivial)


def group_bounds(setting: Setting) -> tuple[Bound, ...]:
    """The same for each coordinate over its own rows: groups, players, levels.

    For disjoint groups from ``groups`` (or ``counts``, with ranges shared); for features and Elo from ``counts``.

    >>> groups = Setting(
    ...     task="mean", structure="disjoint", n=30, counts=(10, 20), low=-1, high=1, eta=0.5
    ... )
    >>> [bound.value for bound in group_bounds(groups)]
    [0.2, 0.1]
    """
    if setting.structure == "disjoint" and setting.penalty is None:
        return tuple(best_bound(group) for group in _as_groups(setting))
    if setting.structure == "isotonic":
        return tuple(_level_bound(setting, k) for k in range(len(setting.levels)))
    counts = setting.counts or tuple(group.n for group in setting.groups)
    whole = best_bound(setting)
    unit = trivial_error(setting) * setting.largest
    bounds = []
    for count in counts:
        value = None
        if whole.value is not None and count > 0:
            value = whole.value * setting.average_over / count
        vacuous = value is None or not value < unit
        bounds.append(Bound(value, whole.result, whole.assumptions, unit, vacuous))
    return tuple(bounds)


def labels_until(setting: Setting, target: float) -> int | None:
    """How many labels until :func:`best_bound` is below ``target``, if things go on as they were.

    Sums and counts are scaled with n, ranges and open tickets stay. None if no bound is proven or it never
    gets there.

    >>> labels_until(Setting(task="mean", n=10, low=-1.0, high=1.0, eta=0.1), 0.01)
    1001
    """
    if not target > 0.0:
        return None

    def reached(n: int) -> bool:
        value = best_bound(_after(setting, n)).value
        return value is not None and value < target

    high = 1
    while not reached(high):
        high *= 2
        if high > 10**15:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def trivial_error(setting: Setting) -> float:
    """What bounds |error| without any theorem: 1 for the logit link, 2 for the shift, max|y - f| for a mean."""
    if setting.task in ("probability_logit", "elo"):
        return 1.0
    if setting.task == "probability_shift":
        return 2.0
    if setting.task == "glm":
        return setting.span_high - setting.span_low
    if setting.task == "quantile":
        return max(max(tau, 1.0 - tau) for tau in setting.levels or (setting.level,))
    if setting.task == "poisson":
        return max(abs(1.0 - setting.low), abs(1.0 - setting.high))
    return max([setting.b, *(trivial_error(group) for group in setting.groups)])


def _largest_total(setting: Setting) -> tuple[float | None, str, tuple[str, ...]]:
    """The largest |sum of gradients| over coordinates, its result, its assumptions."""
    if not setting.n or not setting.weights:
        return 0.0, "no labels", ()
    if setting.structure == "disjoint" and setting.penalty is None:
        worst: tuple[float | None, str, tuple[str, ...]] = (0.0, "no labels", ())
        for group in _as_groups(setting):
            found = _largest_total(group)
            if found[0] is None:
                return found
            if worst[0] is None or found[0] >= worst[0]:
                worst = found
        return worst
    if setting.structure in ("features", "disjoint") or setting.task == "elo":
        candidates = feature_candidates(setting)
    else:
        candidates = scalar_candidates(setting)
    late = (_LATE,) if setting.has_late_labels else ("each label comes before the next prediction",)
    candidates = [c for c in candidates if math.isfinite(c.total)]
    if not candidates:
        return None, "no theorem fits", ()
    best = min(candidates, key=lambda c: c.total)
    return best.total, best.result, (*best.assumptions, *late)


def _level_bound(setting: Setting, k: int) -> Bound:
    """The bound of one level of an isotonic layer."""
    totals = [c.totals[k] for c in scalar_candidates(setting) if c.totals]
    unit = max(setting.levels[k], 1.0 - setting.levels[k])
    whole = best_bound(setting)
    if not totals or whole.value is None:
        return Bound(None, whole.result, whole.assumptions, unit, True)
    value = min(totals) / setting.average_over
    return Bound(value, whole.result, whole.assumptions, unit, not value < unit)


def _as_groups(setting: Setting) -> tuple[Setting, ...]:
    """One scalar setting per disjoint group."""
    if setting.groups:
        return setting.groups
    one = replace(setting, structure="scalar", counts=())
    return tuple(replace(one, n=count, divisor=count) for count in setting.counts or (setting.n,))


def _after(setting: Setting, n: float) -> Setting:
    """The same layer after n labels, everything that adds up scaled with n."""
    if not setting.n:
        return replace(setting, n=n)
    by = n / setting.n

    def scaled(total: float | None) -> float | None:
        return None if total is None else total * by

    last = setting.eta_last
    if setting.decay > 0.0:
        last = setting.eta * max(n, 1.0) ** -setting.decay
    return replace(
        setting,
        n=n,
        counts=tuple(count * by for count in setting.counts),
        groups=tuple(_after(group, group.n * by) for group in setting.groups),
        weight_sum=scaled(setting.weight_sum),
        odds_sum=scaled(setting.odds_sum),
        square_sum=scaled(setting.square_sum),
        divisor=scaled(setting.divisor),
        eta_last=last,
        inverse_variation=None if setting.decay > 0.0 else setting.inverse_variation,
    )
