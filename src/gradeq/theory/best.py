"""The smallest bound that is proven for a layer, and what it means for more labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gradeq.theory.layers import feature_candidates, scalar_candidates
from gradeq.theory.setting import HOME_SHARE, Bound, Groups, Setting, Total

__all__ = ["best_bound", "group_bounds", "labels_until", "trivial_error", "why_none"]

_LATE = "labels may come late and in any order"


SQUARED_AWAY = 1e-150  # a radius is the root of a sum of squares: of smaller numbers these underflow


def best_bound(setting: Setting) -> Bound:
    """The smallest valid a-priori bound on the largest coordinate of the average gradient.

    The average is over all labelled rows (or ``divisor``), from theta_1 = 0, and the bound holds for EVERY
    sequence with the observed ranges. ``value`` is None where no theorem fits, and ``reason`` says why.

    >>> best_bound(Setting(task="mean", n=1000, low=-2.0, high=1.0, eta=0.1)).value
    0.02
    """
    unit = trivial_error(setting) * setting.largest
    trivial = unit * setting.weights / setting.average_over if setting.average_over else unit
    total, result, assumptions = _largest_total(setting)
    if total is None or not setting.average_over:
        return Bound(None, result, assumptions, trivial, True, why_none(setting))
    if setting.structure in ("overlapping", "features") or setting.penalty is not None:
        total = max(total, SQUARED_AWAY)
    value = total / setting.average_over
    return Bound(value, result, assumptions, trivial, not value < trivial)


def group_bounds(setting: Setting) -> tuple[Bound, ...]:
    """The same for each coordinate over its own rows: groups, players, levels.

    For disjoint groups from ``groups`` (or ``counts``, with ranges shared); for other groups, features and Elo
    from ``counts``, by the bound on any coordinate. That of an Elo layer with a home advantage is for the latter;
    the players' is sqrt(10) times smaller.

    >>> groups = Setting(task="mean", structure="disjoint", n=30, counts=(10, 20), low=-1, high=1, eta=0.5)
    >>> [bound.value for bound in group_bounds(groups)]
    [0.2, 0.1]
    """
    if setting.structure == "disjoint" and setting.penalty is None:
        return tuple(best_bound(group) for group in setting.groups or _groups_of_counts(setting))
    whole = best_bound(setting)
    share, totals = 1.0, []  # bounds on the sum of each coordinate; empty where one number bounds them all
    if setting.structure == "isotonic":
        units = [max(level, 1.0 - level) for level in setting.levels]
        candidates = [c.totals for c in scalar_candidates(without_unit(setting)) if c.totals]
        totals = [min(levels) for levels in zip(*candidates, strict=True)]
        counts: Sequence[float] = (setting.average_over if candidates else 0.0,) * len(units)
    else:
        counts = setting.counts or tuple(group.average_over for group in setting.groups)
        units = [trivial_error(setting) * setting.largest] * len(counts)
        if setting.own_steps is not None and setting.penalty is None:
            candidates = [c.totals for c in feature_candidates(without_unit(setting)) if len(c.totals) == len(counts)]
            totals = [max(min(coordinates), SQUARED_AWAY) for coordinates in zip(*candidates, strict=True)]
        if setting.task == "elo" and setting.home:
            share = math.sqrt(HOME_SHARE)
    bounds = []
    for j, (count, unit) in enumerate(zip(counts, units, strict=True)):
        value = None
        if whole.value is not None and count > 0:
            value = share * (totals[j] if totals else whole.value * setting.average_over) / count
        bounds.append(replace(whole, value=value, trivial=unit, vacuous=value is None or not value < unit))
    return tuple(bounds)


def labels_until(setting: Setting, target: float) -> int | None:
    """How many labels until :func:`best_bound` is below ``target``, if things go on as they were.

    Sums and counts are scaled with n, ranges and lateness stay. Where the lateness rule changes the steps, so
    does their variation: with the square root of n, as its epochs grow, or with n where the step depends on the
    row (weights, overlapping groups, players). None if no bound is proven or it never gets there.

    >>> labels_until(Setting(task="mean", n=10, low=-1.0, high=1.0, eta=0.1), 0.01)
    1001
    """
    if not target > 0.0:
        return None

    def reached(n: int) -> bool:
        value = best_bound(_after(setting, n)).value
        return value is not None and value < target

    now = max(1, math.ceil(setting.n))
    low, high = (0, now) if reached(now) else (now, 2 * now)
    while low and not reached(high):
        low, high = high, 2 * high
        if high > 10**15:
            return None
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
    return max([setting.b, *(trivial_error(group) for group in setting.widest_groups)])


def why_none(setting: Setting) -> str:
    """Why no theorem fits, in words fit to print."""
    late = setting.has_late_labels
    if not setting.n or not setting.average_over:
        return "no labels yet"
    if setting.penalty is not None:
        return "no bound is proven for this penalty" + (" with late labels" if late else "")
    if late and setting.home:
        return "no bound is proven for late scores with a home advantage"
    if late and setting.task in ("poisson", "multiplicative"):
        return "no bound is proven for this link with late labels"
    if not all(math.isfinite(group.variation) for group in (setting, *setting.widest_groups)):
        return "the steps changed and their variation is not known"
    if setting.task == "mean":
        if late:
            return "labels come too late for this step: the open steps add up to too much"
        return "this step is too large for the squared error"
    return "the observed ranges fit no result"


def _largest_total(setting: Setting) -> Total:
    """The largest |sum of gradients| over coordinates, its result, its assumptions; worked out once for a setting."""
    found: Total | None = vars(setting).get("_total")
    if found is None:
        found = vars(setting)["_total"] = _found_total(setting)
    return found


def _found_total(setting: Setting) -> Total:
    if not setting.n or not setting.weights:
        return 0.0, "no labels", ()
    setting = without_unit(setting)
    if setting.structure == "disjoint" and setting.penalty is None:
        if isinstance(setting.groups, Groups):
            return setting.groups.worst(_largest_total)
        worst: Total = (0.0, "no labels", ())
        for group in setting.groups or _groups_of_counts(setting):
            found = _largest_total(group)
            if found[0] is None:
                return found
            if worst[0] is None or found[0] >= worst[0]:
                worst = found
        return worst
    if setting.structure in ("overlapping", "features", "disjoint") or setting.task == "elo":
        candidates = feature_candidates(setting)
    else:
        candidates = scalar_candidates(setting)
    late = (_LATE,) if setting.has_late_labels else ("each label comes before the next prediction",)
    candidates = [c for c in candidates if math.isfinite(c.total)]
    if not candidates:
        return None, "no theorem fits", ()
    best = min(candidates, key=lambda c: c.total)
    return best.total, best.result, (*best.assumptions, *late)


def without_unit(setting: Setting) -> Setting:
    """Quantile tracking with tiny or huge steps in units of the largest: the sum of misses has none, all else fits.

    u' = u / eta moves by 1 a miss, so ranges, gaps and the cap are divided by eta and a ridge is multiplied by it.
    """
    unit = setting.top_eta
    if setting.task != "quantile" or setting.structure == "disjoint" or 1e-100 < unit < 1e100:
        return setting

    in_unit: dict[str, Any] = {}
    for name in ("eta", "eta_last", "eta_max", "eta_min", "heaviest_step", "step_mass", "square_changes", "cap"):
        step = getattr(setting, name)
        in_unit[name] = None if step is None else step / unit
    for name in ("lows", "highs", "gaps"):
        in_unit[name] = tuple(value / unit for value in getattr(setting, name))
    squares, variation, own = setting.step_squares, setting.inverse_variation, setting.own_steps
    return replace(
        setting,
        step_squares=None if squares is None else squares / unit / unit,
        inverse_variation=None if variation is None else variation * unit,
        own_steps=None if own is None else own.in_unit(unit),
        low=setting.low / unit,
        high=setting.high / unit,
        strength=setting.strength * (unit if "ridge" in (setting.penalty or "") else 1.0),
        **in_unit,
    )


def _groups_of_counts(setting: Setting) -> Sequence[Setting]:
    """One scalar setting per disjoint group, where only their counts are known."""
    structure = "isotonic" if len(setting.levels) > 1 else "scalar"
    one = replace(setting, structure=structure, counts=())
    return tuple(replace(one, n=count, divisor=count) for count in setting.counts or (setting.n,))


def _after(setting: Setting, n: float) -> Setting:
    """The same layer after n labels, everything that adds up scaled with n."""
    if not setting.n:
        return replace(setting, n=n)
    if n == setting.n:
        return setting
    by = n / setting.n

    def scaled(total: float | None) -> float | None:
        return None if total is None else n * (total / setting.n)  # n labels of weight 1 weigh n

    last = setting.eta_last
    if setting.decay > 0.0:  # a clock counts rows without a label too: as many for each label as before
        last = setting.eta * max(n, 1.0) ** -setting.decay if last is None else last * by**-setting.decay
    variation = setting.inverse_variation
    if variation is None or not setting.has_late_labels:
        variation = None if setting.decay > 0.0 else variation
    else:
        variation *= _variation_growth(setting, by)
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
        inverse_variation=variation,
        **_steps_after(setting, n),
    )


def _steps_after(setting: Setting, n: float) -> dict[str, Any]:
    """The sums of steps after n labels: by their schedule, or as the labels where steps only vary."""
    by, decay, own = n / setting.n, setting.decay, setting.own_steps
    varied = 1.0 if setting.inverse_variation is None else _variation_growth(setting, by)
    first, second, moved = by, by, by * varied
    if decay > 0.0:
        first, second = (_powers(n, p) / _powers(setting.n, p) for p in (decay, 2.0 * decay))
        moved = max(by, varied)
    after: dict[str, Any] = {"own_steps": own and own.after(by, first, second, varied, by**decay)}
    growths = {"step_mass": first, "step_squares": second, "mass_changes": moved, "square_changes": moved}
    for name, growth in growths.items():
        total = getattr(setting, name)
        after[name] = None if total is None else total * growth
    return after


def _powers(n: float, p: float) -> float:
    """About 1 + 2^-p + ... + n^-p; a part of the first where n is below 1."""
    if n < 1.0:
        return n
    whole: float = math.log(n) if p == 1.0 else (n ** (1.0 - p) - 1.0) / (1.0 - p)
    ends: float = (1.0 + n**-p) / 2.0 + p * (1.0 - n ** (-p - 1.0)) / 12.0
    return whole + ends  # Euler and Maclaurin


def _variation_growth(setting: Setting, by: float) -> float:
    power = setting.decay
    if setting.cap is not None and setting.has_late_labels:
        one_step = setting.structure in ("scalar", "disjoint", "isotonic", "features")
        power = max(power, 0.5 if one_step and setting.unweighted and setting.task != "elo" else 1.0)
    return float(by**power)
