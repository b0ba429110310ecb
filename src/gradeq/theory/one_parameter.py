"""Which results apply to a layer with one parameter (or several levels of one quantile)."""

from __future__ import annotations

from gradeq.theory.candidate import (
    Candidate,
    open_mass,
    stale_mass,
    total_from,
    total_grown,
    total_squared,
)
from gradeq.theory.extensions import isotonic_ranges
from gradeq.theory.late import (
    late_logistic_virtual_radius,
    late_quantile_range,
    late_radius_1d,
    late_squared_range,
)
from gradeq.theory.links import (
    clip_bound,
    logit_radius_from_clip,
    logit_radius_from_odds,
    logit_soft_radius,
)
from gradeq.theory.many_parameters import bounded_candidate, late_squared_candidate
from gradeq.theory.penalised_layers import penalised_candidates
from gradeq.theory.scalar import (
    Range,
    exponential_range,
    logistic_hard_radius,
    logistic_horizon,
    logistic_soft_radius,
    quantile_range,
    squared_range,
)
from gradeq.theory.setting import Setting
from gradeq.theory.stable import exp_or_infinity


def scalar_candidates(setting: Setting) -> list[Candidate]:
    """Every proven bound for a layer with one parameter; empty where there is none."""
    if setting.penalty is not None:
        return penalised_candidates(setting)
    if setting.structure == "isotonic":
        return _isotonic(setting)
    if setting.task == "mean":
        return _mean_late(setting) if setting.has_late_labels else _mean(setting)
    if setting.task == "quantile":
        return _quantile(setting)
    if setting.task == "probability_logit":
        return _logit(setting)
    if setting.task in ("probability_shift", "glm"):
        return _logistic(setting)
    return _exponential(setting)


def _mean(setting: Setting) -> list[Candidate]:
    step = setting.largest_step
    if step >= 2.0:
        return []
    where = squared_range(0.0, setting.low, setting.high, step)
    range_known = f"|y - f| <= {setting.b:g}"
    found = [
        Candidate(
            total_from(setting, where.radius(), where.length), "3.2", (range_known, "eta < 2")
        )
    ]
    if setting.square_sum is not None:
        assumptions = ("the observed sum of squared residuals", "eta < 2")
        found.append(Candidate(total_squared(setting), "5.2", assumptions))
    return found


def _mean_late(setting: Setting) -> list[Candidate]:
    """A1: the range of theta while the stale mass is below 1, or the growth of its square (bounded lateness)."""
    where = late_squared_range(
        0.0, setting.low, setting.high, open_mass(setting), stale_mass(setting)
    )
    known = (f"|y - f| <= {setting.b:g}", _lateness(setting), "open step mass < 1")
    found = [Candidate(total_from(setting, where.radius(), where.length), "A1", known)]
    return [*found, *late_squared_candidate(setting)]


def _lateness(setting: Setting) -> str:
    return f"lateness of at most {setting.latest} rows"


def _quantile(setting: Setting) -> list[Candidate]:
    low, high, level = setting.low, setting.high, setting.level
    free = setting.zero_scale_rounds * setting.largest_step
    known: tuple[str, ...] = (f"tracked residuals in [{low:g}, {high:g}]",)
    if free:
        known = (*known, f"{setting.zero_scale_rounds:g} rounds before there was a scale")
    if setting.has_late_labels:
        where = late_quantile_range(0.0, low, high, level, open_mass(setting))
        result, known = "A1", (*known, _lateness(setting))
    else:
        where = quantile_range(0.0, low, high, level, setting.largest_step)
        result = "3.1"
    where = Range(where.low - free * (1.0 - level), where.high + free * level)
    return [Candidate(total_from(setting, where.radius(), where.length), result, known)]


def _isotonic(setting: Setting) -> list[Candidate]:
    """8.6, a range for each level; with late labels only the growth of the norm is proven (A1 with 8.7)."""
    if not setting.levels:
        return []
    k = len(setting.levels)
    if setting.has_late_labels:
        found = bounded_candidate(setting)
        return [] if found is None else [found._replace(totals=(found.total,) * k)]
    ranges = isotonic_ranges(
        setting.levels,
        setting.lows or (setting.low,) * k,
        setting.highs or (setting.high,) * k,
        setting.gaps or (0.0,) * (k - 1),
        setting.largest_step,
        setting.zero_scale_rounds,
    )
    totals = tuple(total_from(setting, where.radius(), where.length) for where in ranges)
    known = ("tracked residuals in their observed range", "equal-weights isotonic projection")
    return [Candidate(max(totals), "8.6", known, totals)]


def _logit(setting: Setting) -> list[Candidate]:
    step, eta = setting.largest_step, setting.top_eta
    gap = min(setting.label_low, 1.0 - setting.label_high)
    offset = None if setting.clip is None else clip_bound(setting.clip)
    odds = setting.odds_sum
    if odds is None:
        if offset is None:
            return []
        odds = setting.weights * exp_or_infinity(offset)
    known = ("labels in [0, 1]", "the observed odds of the forecasts")
    clipped = ("labels in [0, 1]", f"forecasts clipped at {setting.clip}")
    soft = (f"labels at least {gap:g} inside [0, 1]", f"forecasts clipped at {setting.clip}")
    if setting.has_late_labels:
        mass = open_mass(setting)
        virtual = late_logistic_virtual_radius(0.0, 1.0, mass, eta * odds)
        found = [_virtual(setting, virtual, mass, "C5", (*known, _lateness(setting)))]
        if offset is not None and gap > 0.0:
            horizon = offset + logistic_horizon(1.0, gap)
            radius = late_radius_1d(0.0, horizon, 1.0, mass)
            total = total_from(setting, radius, 2.0 * radius)
            found.append(Candidate(total, "A1", (*soft, _lateness(setting))))
        return found
    radius = logit_radius_from_odds(0.0, step, eta * odds)
    found = [Candidate(total_from(setting, radius, 2.0 * radius), "C1", known)]
    if offset is not None:
        far = offset

        def clipped_at(steps: float, squares: float) -> float:
            return logit_radius_from_clip(0.0, far, step, steps)

        found.append(Candidate(total_grown(setting, clipped_at), "C1", clipped))
        radius = logit_soft_radius(0.0, offset, gap, step)
        found.append(Candidate(total_from(setting, radius, 2.0 * radius), "C2", soft))
    return found


def _virtual(
    setting: Setting, virtual: float, reach: float, result: str, known: tuple[str, ...]
) -> Candidate:
    """From |v| in order of service: theta ends at v, and is within ``reach`` of it on the way."""
    total = total_from(setting, virtual, 2.0 * virtual + reach, virtual + reach)
    return Candidate(total, result, known)


def span_of(setting: Setting) -> tuple[float, float]:
    """a and b of the logistic mean that a task serves: the shift link is [-1, 1]."""
    if setting.task == "probability_shift":
        return -1.0, 1.0
    return setting.span_low, setting.span_high


def _logistic(setting: Setting) -> list[Candidate]:
    a, b = span_of(setting)
    span, step = b - a, setting.largest_step
    gap = min(setting.low - a, b - setting.high)
    if gap < 0.0:
        return []
    known, soft = (f"labels in [{a:g}, {b:g}]",), (f"labels {gap:g} inside [{a:g}, {b:g}]",)
    if setting.has_late_labels:
        mass, late = open_mass(setting), _lateness(setting)
        virtual = late_logistic_virtual_radius(0.0, span, mass, setting.step_sum)
        inside = late_radius_1d(0.0, logistic_horizon(span, gap), span, mass)
        return [
            _virtual(setting, virtual, span * mass, "A1", (*known, late)),
            Candidate(total_from(setting, inside, 2.0 * inside), "A1", (*soft, late)),
        ]

    def hard(steps: float, squares: float) -> float:
        return logistic_hard_radius(0.0, span, step, steps)

    inside = logistic_soft_radius(0.0, span, gap, step)
    return [
        Candidate(total_grown(setting, hard), "3.4", known),
        Candidate(total_from(setting, inside, 2.0 * inside), "3.3", soft),
    ]


def _exponential(setting: Setting) -> list[Candidate]:
    if setting.has_late_labels:
        return []
    if setting.task == "poisson":
        low, high, top = setting.low, setting.high, setting.high
    elif setting.ratio_low is None or setting.ratio_high is None or setting.label_max is None:
        return []
    else:
        low, high, top = setting.ratio_low, setting.ratio_high, setting.label_max
    if low < 0.0 or setting.forecast_max <= 0.0:
        return []
    where = exponential_range(
        0.0, low, high, setting.forecast_max, top, setting.largest_step, setting.step_sum
    )
    known = (f"y/f in [{low:g}, {high:g}]", f"f <= {setting.forecast_max:g}")
    return [Candidate(total_from(setting, where.radius(), where.length), "3.5", known)]
