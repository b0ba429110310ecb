"""Which results apply to a layer: one parameter, several levels, features, groups, players, penalties."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from gradeq.theory import constrained, features, late, scalar
from gradeq.theory.candidate import (
    Candidate,
    Pull,
    Radius,
    coordinate_totals,
    disturbance,
    flight,
    open_mass,
    pull_of,
    pulled_radius,
    reach_of_squares,
    residual_radius,
    root_squares,
    stale_mass,
    total_from,
    total_grown,
    total_squared,
)
from gradeq.theory.scalar import Range
from gradeq.theory.setting import Setting


def scalar_candidates(setting: Setting) -> list[Candidate]:
    """Every proven bound for a layer with one parameter; empty where there is none."""
    if setting.penalty is not None:
        return penalised_candidates(setting)
    if setting.structure == "isotonic":
        return _isotonic(setting)
    if setting.task == "mean":
        return _mean(setting)
    if setting.task == "quantile":
        return _quantile(setting)
    if setting.task == "probability_logit":
        return _logit(setting)
    if setting.task in ("probability_shift", "glm"):
        return _logistic(setting)
    return _exponential(setting) if setting.task in ("poisson", "multiplicative") else []


def _mean(setting: Setting) -> list[Candidate]:
    """3.2 and 5.2; late labels: A1, the range of theta while the stale mass is below 1, or its squared growth."""
    low, high, step, within = setting.low, setting.high, setting.largest_step, f"|y - f| <= {setting.b:g}"
    if setting.has_late_labels:
        where = late.late_squared_range(0.0, low, high, open_mass(setting), stale_mass(setting))
        known = (within, _lateness(setting), "open step mass < 1")
        total = total_from(setting, where.radius(), where.length)
        return [Candidate(total, "A1", known), *_late_squared(setting)]
    if step >= 2.0:
        return []
    where = scalar.squared_range(0.0, low, high, step)
    candidates = [Candidate(total_from(setting, where.radius(), where.length), "3.2", (within, "eta < 2"))]
    if setting.square_sum is not None:
        assumptions = ("the observed sum of squared residuals", "eta < 2")
        candidates.append(Candidate(total_squared(setting, setting.size), "5.2", assumptions))
    return candidates


def _lateness(setting: Setting) -> str:
    return f"lateness of at most {setting.latest} rows"


def _quantile(setting: Setting) -> list[Candidate]:
    low, high, level = setting.low, setting.high, setting.level
    free = setting.zero_scale_rounds * setting.largest_step
    known: tuple[str, ...] = (f"tracked residuals in [{low:g}, {high:g}]",)
    if free:
        known = (*known, f"{setting.zero_scale_rounds:g} rounds before there was a scale")
    if setting.has_late_labels:
        where = late.late_quantile_range(0.0, low, high, level, open_mass(setting))
        result, known = "A1", (*known, _lateness(setting))
    else:
        where = scalar.quantile_range(0.0, low, high, level, setting.largest_step)
        result = "3.1"
    where = Range(where.low - free * (1.0 - level), where.high + free * level)
    return [Candidate(total_from(setting, where.radius(), where.length), result, known)]


def _isotonic(setting: Setting) -> list[Candidate]:
    """8.6, a range for each level; with late labels only the growth of the norm is proven (A1 with 8.7)."""
    if not setting.levels:
        return []
    k = len(setting.levels)
    if setting.has_late_labels:
        return [replace(found, totals=(found.total,) * k) for found in _bounded(setting)]
    ranges = constrained.isotonic_ranges(
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
    offset = None if setting.clip is None else features.clip_bound(setting.clip)
    odds = setting.odds_sum
    if odds is None:
        if offset is None:
            return []
        odds = setting.weights * scalar.exp_or_infinity(offset)
    known = ("labels in [0, 1]", "the observed odds of the forecasts")
    clipped = ("labels in [0, 1]", f"forecasts clipped at {setting.clip}")
    soft = (f"labels at least {gap:g} inside [0, 1]", f"forecasts clipped at {setting.clip}")
    if setting.has_late_labels:
        mass = open_mass(setting)
        virtual = late.late_logistic_virtual_radius(0.0, 1.0, mass, eta * odds)
        found = [_virtual(setting, virtual, mass, "C5", (*known, _lateness(setting)))]
        if offset is not None and gap > 0.0:
            horizon = offset + scalar.logistic_horizon(1.0, gap)
            radius = late.late_radius_1d(0.0, horizon, 1.0, mass)
            total = total_from(setting, radius, 2.0 * radius)
            found.append(Candidate(total, "A1", (*soft, _lateness(setting))))
        return found
    radius = features.logit_radius_from_odds(0.0, step, eta * odds)
    found = [Candidate(total_from(setting, radius, 2.0 * radius), "C1", known)]
    if offset is not None:

        def clipped_at(steps: float, squares: float, offset: float = offset) -> float:
            return features.logit_radius_from_clip(0.0, offset, step, steps)

        found.append(Candidate(total_grown(setting, clipped_at), "C1", clipped))
        radius = features.logit_soft_radius(0.0, offset, gap, step)
        found.append(Candidate(total_from(setting, radius, 2.0 * radius), "C2", soft))
    return found


def _virtual(setting: Setting, virtual: float, reach: float, result: str, known: tuple[str, ...]) -> Candidate:
    """From |v| in order of service: theta ends at v, and is within ``reach`` of it on the way."""
    total = total_from(setting, virtual, 2.0 * virtual + reach, virtual + reach)
    return Candidate(total, result, known)


def _logistic(setting: Setting) -> list[Candidate]:
    a, b = setting.span
    span, step = b - a, setting.largest_step
    gap = min(setting.low - a, b - setting.high)
    if gap < 0.0:
        return []
    known, soft = (f"labels in [{a:g}, {b:g}]",), (f"labels {gap:g} inside [{a:g}, {b:g}]",)
    if setting.has_late_labels:
        mass, delayed = open_mass(setting), _lateness(setting)
        virtual = late.late_logistic_virtual_radius(0.0, span, mass, setting.step_sum)
        inside = late.late_radius_1d(0.0, scalar.logistic_horizon(span, gap), span, mass)
        return [
            _virtual(setting, virtual, span * mass, "A1", (*known, delayed)),
            Candidate(total_from(setting, inside, 2.0 * inside), "A1", (*soft, delayed)),
        ]

    def hard(steps: float, squares: float) -> float:
        return scalar.logistic_hard_radius(0.0, span, step, steps)

    inside = scalar.logistic_soft_radius(0.0, span, gap, step)
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
    where = scalar.exponential_range(
        0.0, low, high, setting.forecast_max, top, setting.largest_step, setting.step_sum
    )
    known = (f"y/f in [{low:g}, {high:g}]", f"f <= {setting.forecast_max:g}")
    return [Candidate(total_from(setting, where.radius(), where.length), "3.5", known)]


def feature_candidates(setting: Setting) -> list[Candidate]:
    """Every proven bound for a layer with several parameters; empty where there is none.

    With late labels a home advantage has none: it is shared by all games, which the lateness of a player does
    not count.
    """
    if setting.penalty is not None:
        return penalised_candidates(setting)
    if setting.has_late_labels and setting.home:
        return []
    if setting.task != "mean":
        candidates = _bounded(setting)
        if candidates and setting.task == "elo" and not (setting.home or setting.has_late_labels):
            total = total_grown(setting, _ladder(setting))
            candidates.append(Candidate(total, "8.5", candidates[0].assumptions[:1]))
        return candidates
    if setting.has_late_labels:
        return _late_squared(setting)
    known = (f"|y - f| <= {setting.b:g}", f"squared norm of features <= {setting.size:g}")
    candidate = Candidate(total_squared(setting, setting.size), "5.2", known)
    radius = reach_of_squares(setting, setting.size)
    return [candidate.by_coordinate(coordinate_totals(setting, radius))]


def _ladder(setting: Setting) -> Radius:
    """The largest rating as games go on (8.5)."""
    return lambda steps, squares: features.elo_sup_radius(setting.dimension, setting.largest_step, steps)


def _bounded(setting: Setting) -> list[Candidate]:
    """Errors of bounded size, from the growth of a squared norm (G2'); late labels add what is open (A1).

    Late: the norm is that of v, which adds the steps in order of service; v ends at the present state, and on the
    way a coordinate of theta is within |e| x (open mass in it) of v. A home advantage is a coordinate z = 1/sqrt(10)
    for the players' step, so its own average is at most sqrt(10) times that of any coordinate.
    """
    pull = pull_of(setting)
    if pull is None:
        return []
    known: tuple[str, ...] = (pull.assumption, f"squared norm of features <= {setting.row_size:g}")
    result, overlap, wander = pull.result, 0.0, 0.0
    if setting.has_late_labels:
        result, known = "A1", (*known, _lateness(setting))
        overlap, mass = flight(setting)
        wander = mass * pull.error
    radius_of = pulled_radius(setting, pull, overlap)
    candidate = Candidate(total_grown(setting, radius_of, wander), result, known)
    radius = radius_of(setting.step_sum, setting.square_steps)
    return [candidate.by_coordinate(coordinate_totals(setting, radius, wander, pull.error))]


def _late_squared(setting: Setting) -> list[Candidate]:
    """The squared error with late labels from the growth of ||v||^2, one parameter or many (result A1).

    Where :func:`~gradeq.theory.crossing_mass` is below 2. Features scale every mass by the squared norm; groups
    do so in the crossings only, since one coordinate meets the rows of its own group.
    """
    step, latest = setting.largest_step, setting.latest
    many = setting.structure in ("features", "overlapping")
    size = setting.size if many else 1.0
    crossing = late.crossing_mass(step * size, setting.cap, latest)
    radius = root_squares(setting) * math.sqrt(late.late_squared_growth(1.0, 1.0, crossing))
    if not math.isfinite(radius):
        return []
    mass = step * size if setting.structure == "features" else step
    mass += late.age_mass(mass, setting.cap, latest)
    wander = late.late_squared_wander(radius, mass, 2.0 - crossing)
    known: tuple[str, ...] = (f"|y - f| <= {setting.b:g}", _lateness(setting))
    if many:
        known = (*known, f"squared norm of features <= {size:g}")
    total = total_from(setting, radius, 2.0 * radius + wander, radius + wander)
    return [Candidate(total, "A1", known).by_coordinate(coordinate_totals(setting, radius, wander))]


class _Way(NamedTuple):
    """A bound on the parameter on average, and on the sum of gradients and slopes of the penalty."""

    mean: float
    total: float
    result: str


def penalised_candidates(setting: Setting) -> list[Candidate]:
    """Every proven bound with a penalty (6.1 to 6.9): labels at once, one step for all coordinates.

    Every radius is the smaller of what the penalty allows in the long run and of what the errors alone can have added
    so far, so a bound falls back to that without a penalty as the strength goes to 0.
    """
    if setting.has_late_labels or setting.home or setting.structure == "isotonic":
        return []
    strength, shrink = setting.strength, setting.top_eta * setting.strength
    if not strength > 0.0 or (setting.penalty == "ridge" and not shrink < 1.0):
        return []
    pull = None if setting.task == "mean" else pull_of(setting)
    if setting.task != "mean" and pull is None:
        return []
    ways = _penalised_bounded(setting, pull) if pull is not None else _penalised_squared(setting)
    lasso = setting.penalty in ("lasso", "proximal lasso")
    known = f"|y - f| <= {setting.b:g}" if pull is None else pull.assumption
    assumptions = (known, f"{setting.penalty} of strength {strength:g}")
    return [
        Candidate(way.total + setting.n * strength * (1.0 if lasso else way.mean), way.result, assumptions)
        for way in ways
        if math.isfinite(way.total)
    ]


def _throughout(setting: Setting, radius: float, result: str) -> _Way:
    """A radius that holds throughout."""
    return _Way(radius, total_from(setting, radius, 2.0 * radius), result)


def _growing(setting: Setting, radius_of: Radius, result: str) -> _Way:
    """A radius that grows with the sums of steps."""
    radius = radius_of(setting.step_sum, setting.square_steps)
    return _Way(radius, total_grown(setting, radius_of), result)


def _closed(setting: Setting, growth: float) -> list[_Way]:
    """The ridge's recursion R^2 <- rho^2 R^2 + growth solved, for one step and no weights (result 6.7)."""
    if not (setting.constant and setting.unweighted and math.isfinite(growth)):
        return []
    rho = 1.0 - setting.eta * setting.strength
    radius = constrained.ridge_closed_radius(growth, rho, setting.n)
    mean = constrained.ridge_closed_mean(growth, rho, setting.n)
    return [_Way(mean, total_from(setting, radius, 2.0 * radius), "6.7")]


def _slopes(setting: Setting) -> float:
    """sqrt(d sum of s^2): how far the slopes of a lasso alone can go, over its strength."""
    if setting.unweighted:
        return math.sqrt(setting.dimension * setting.square_steps)
    return math.sqrt(setting.dimension * setting.n) * setting.top_eta


def _penalised_bounded(setting: Setting, pull: Pull) -> list[_Way]:
    """Errors of bounded size."""
    eta, step, weight, strength = setting.top_eta, setting.largest_step, setting.weight_max, setting.strength
    lipschitz, kappa = math.sqrt(setting.row_size) * pull.error, pull.kappa
    free = disturbance(setting, pull.error)
    plain = pulled_radius(setting, pull)
    if setting.penalty == "ridge":
        share = 1.0
        if setting.task == "elo":  # the sum of ratings stays 0
            share = math.sqrt((setting.dimension - 1) / setting.dimension)
        radius = constrained.bounded_ridge_radius(0.0, kappa * weight, lipschitz * weight, strength, eta)
        ways = [_throughout(setting, share * radius + free, "6.3"), _growing(setting, plain, "6.7")]
        if not free:
            rho = 1.0 - eta * strength
            growth = share * share * (2.0 * step * rho * kappa + step * lipschitz * step * lipschitz)
            ways += _closed(setting, growth)
        if setting.task == "elo":
            ways.append(_growing(setting, _ladder(setting), "8.5 with 6.3"))
    elif setting.penalty == "lasso":
        slope = strength * math.sqrt(setting.dimension)
        slack = disturbance(setting, pull.error + slope)
        radius = constrained.lasso_radius(0.0, kappa * weight, weight * lipschitz + slope, strength, eta)
        root = lipschitz * math.sqrt(setting.square_steps) + strength * _slopes(setting)
        so_far = math.hypot(math.sqrt(2.0 * kappa * setting.step_sum), root)
        ways = [_throughout(setting, radius + slack, "6.1"), _throughout(setting, so_far + slack, "6.6")]
        if setting.unweighted:
            pushed = lipschitz + slope

            def lassoed(steps: float, squares: float) -> float:
                return math.sqrt(2.0 * kappa * steps + pushed * pushed * squares) + slack

            ways.append(_growing(setting, lassoed, "6.6"))
    else:
        growth = features.pull_growth(kappa * weight, weight * lipschitz * weight * lipschitz, eta, eta)
        result = "6.4" if setting.penalty == "proximal ridge" else "6.5"
        return [_growing(setting, plain, result), *_proximal(setting, growth)]
    return [*ways, *_one_parameter(setting, pull)] if setting.structure in ("scalar", "disjoint") else ways


def _proximal(setting: Setting, growth: float) -> list[_Way]:
    """Where a penalty in proximal form keeps the parameter; ``growth``: the most that a step adds."""
    eta, strength = setting.top_eta, setting.strength
    if setting.penalty == "proximal lasso":
        cut = growth / (eta * strength) / 2.0
        radius = constrained.proximal_lasso_radius(0.0, growth, strength, eta) if setting.constant else cut
        return [_throughout(setting, radius, "6.5")]
    ways = [_throughout(setting, constrained.proximal_ridge_radius(0.0, growth, strength, eta), "6.4")]
    if setting.constant and setting.unweighted:
        radius = constrained.proximal_ridge_closed_radius(growth, strength, eta, setting.n)
        ways.append(_throughout(setting, radius, "6.4"))
    return ways


def _one_parameter(setting: Setting, pull: Pull) -> list[_Way]:
    """Results 3.1, 3.3, 3.4 and C1 with a penalty: it pulls to 0, and a lasso past it by one step at most."""
    step = setting.largest_step
    past = setting.top_eta * setting.strength if setting.penalty == "lasso" else 0.0
    if setting.task == "quantile":
        radius = setting.b + step * pull.error + past + disturbance(setting, pull.error + past)
        return [_throughout(setting, radius, "3.1 with 6.3")]
    if not pull.span > 0.0:
        return []
    start = pull.offset + step * pull.span + past

    def hard(steps: float, squares: float) -> float:
        return scalar.logistic_hard_radius(start, pull.span, step, steps, pull.offset)

    ways = [_growing(setting, hard, "3.4 with 6.3")]
    if setting.task == "probability_logit" and setting.odds_sum is not None:
        odds = features.logit_radius_from_odds(0.0, step + past, setting.top_eta * setting.odds_sum)
        ways.append(_throughout(setting, scalar.logaddexp(past, odds), "C1 with 6.3"))
    if setting.task in ("probability_shift", "glm"):
        a, b = setting.span
        gap = min(setting.low - a, b - setting.high)
        if gap > 0.0:
            radius = scalar.logistic_horizon(pull.span, gap) + step * pull.span + past
            ways.append(_throughout(setting, radius, "3.3 with 6.3"))
    return ways


def _penalised_squared(setting: Setting) -> list[_Way]:
    """The squared error."""
    eta, step, weight, strength = setting.top_eta, setting.largest_step, setting.weight_max, setting.strength
    b, size, one = setting.b, setting.size, setting.structure in ("scalar", "disjoint")
    if setting.penalty == "ridge":
        rho = 1.0 - eta * strength
        ways = _squared_so_far(setting, size / rho, "6.7")
        radius = constrained.ridge_radius(
            0.0, b * math.sqrt(weight), size * weight, strength, eta, setting.smallest_step
        )
        ways.append(_throughout(setting, radius, "6.2"))
        room = 2.0 * rho - step * size
        if room > 0.0:
            ways += _closed(setting, step * rho * rho * b * b / room)
        if one and setting.unweighted:
            ways.append(_throughout(setting, constrained.scalar_ridge_radius(0.0, b, strength, eta), "6.2"))
        elif one and step + eta * strength <= 1.0:
            ways.append(_throughout(setting, b, "6.2"))
        return ways
    room = 2.0 - step * size
    if room <= 0.0:
        return []
    if setting.penalty == "lasso":
        width = strength * math.sqrt(setting.dimension)
        extra = eta * width * math.sqrt(size)
        observed = (root_squares(setting) + extra * math.sqrt(setting.step_sum)) / math.sqrt(room)
        so_far = math.hypot(observed, strength * _slopes(setting))
        radius = constrained.squared_lasso_radius(b, size, setting.dimension, strength, eta, weight)
        ways = [_throughout(setting, so_far, "6.6"), _throughout(setting, radius, "6.6")]
        if one:
            ways.append(_throughout(setting, constrained.scalar_lasso_radius(b, strength, step, eta), "3.2 with 6.6"))
        if setting.unweighted:
            most = b + extra

            def lassoed(steps: float, squares: float) -> float:
                added = most * most * (0.5 * steps + 0.5 * size * squares / room)
                return math.sqrt(added + width * width * squares)

            ways.append(_growing(setting, lassoed, "6.6"))
        return ways
    result = "6.4" if setting.penalty == "proximal ridge" else "6.5"
    growth = features.squared_growth(eta * weight * b * b, size, step)
    return [*_squared_so_far(setting, size, result), *_proximal(setting, growth)]


def _squared_so_far(setting: Setting, size: float, result: str) -> list[_Way]:
    """What the errors alone can have added, as without a penalty (result 5.2) with rows of this size."""
    if setting.largest_step * size >= 2.0:
        return []
    grown = _growing(setting, residual_radius(setting, size), result)
    observed = _throughout(setting, reach_of_squares(setting, size), result)
    return [min(grown, observed, key=lambda way: way.total)]
