"""Which results apply to a layer with features, overlapping groups, players, or a penalty."""

from __future__ import annotations

import math
from typing import NamedTuple

from gradeq.numerics import LAMBERT_W
from gradeq.theory.candidate import Candidate, flight, root_squares, total_from
from gradeq.theory.elo import elo_sup_radius
from gradeq.theory.features import pull_growth, quantile_pull, squared_growth
from gradeq.theory.late import (
    age_mass,
    crossing_mass,
    late_pull_growth,
    late_squared_growth,
    late_squared_wander,
)
from gradeq.theory.links import clip_bound, logit_pull
from gradeq.theory.penalised import (
    bounded_ridge_radius,
    lasso_radius,
    ridge_radius,
    scalar_ridge_radius,
)
from gradeq.theory.scalar import logistic_hard_radius
from gradeq.theory.setting import HOME_SHARE, Setting


class Pull(NamedTuple):
    """What an error of bounded size does to theta: g'theta >= -kappa and |e| <= error."""

    kappa: float
    error: float
    offset: float
    span: float
    result: str
    assumption: str


def feature_candidates(setting: Setting) -> list[Candidate]:
    """Every proven bound for a layer with several parameters; empty where there is none.

    With late labels a home advantage has none: it is shared by all games, which the lateness of a player does
    not count.
    """
    if setting.penalty is not None:
        return penalised_candidates(setting)
    if setting.has_late_labels and setting.home:
        return []
    if setting.task == "mean":
        return _squared(setting)
    found = bounded_candidate(setting)
    if found is None:
        return []
    if setting.task != "elo" or setting.home or setting.has_late_labels:
        return [found]
    radius = elo_sup_radius(setting.dimension, setting.largest_step, setting.step_sum)
    total = total_from(setting, radius, 2.0 * radius)
    return [found, Candidate(total, "8.5", found.assumptions[:1])]


def bounded_candidate(setting: Setting) -> Candidate | None:
    """Errors of bounded size, from the growth of a squared norm (G2'); late labels add what is open (A1).

    Late: the norm is that of v, which adds the steps in order of service; v ends at the present state, and on the
    way a coordinate of theta is within |e| x (open mass in it) of v. A home advantage is a coordinate z = 1/sqrt(10)
    for the players' step, so its own average is at most sqrt(10) times that of any coordinate.
    """
    pull = _pull(setting)
    if pull is None:
        return None
    step, size = setting.largest_step, setting.row_size
    error_squared = pull.error * pull.error
    growth = pull_growth(pull.kappa, size * error_squared, step, setting.step_sum)
    result, wander = pull.result, 0.0
    known: tuple[str, ...] = (pull.assumption, f"squared norm of features <= {size:g}")
    if setting.has_late_labels:
        in_flight = flight(setting)
        growth = late_pull_growth(
            pull.kappa,
            size * error_squared,
            step,
            setting.step_sum,
            in_flight.overlap * error_squared,
        )
        result, wander = "A1", in_flight.coordinate * pull.error
        known = (*known, f"lateness of at most {setting.latest} rows")
    radius = math.sqrt(growth) + _disturbance(setting, pull.error)
    if setting.task == "elo" and setting.home:
        radius /= math.sqrt(HOME_SHARE)
    elif setting.task == "elo":
        radius *= math.sqrt((setting.dimension - 1) / setting.dimension)
    return Candidate(total_from(setting, radius, 2.0 * radius + wander), result, known)


def penalised_candidates(setting: Setting) -> list[Candidate]:
    """Bounds with a penalty: labels at once, no weights, one step for all coordinates (results 6.1 to 6.3)."""
    weighted = setting.weight_max != 1.0 or setting.weights != setting.n
    one = setting.structure == "scalar"
    if setting.has_late_labels or weighted or setting.home or setting.structure == "isotonic":
        return []
    if not setting.strength > 0.0:
        return []
    if setting.task == "mean":
        return _squared_ridge(setting, one) if setting.penalty == "ridge" else []
    pull = _pull(setting)
    if pull is None:
        return []
    step, strength = setting.largest_step, setting.strength
    if setting.penalty == "ridge" and step * strength > 1.0:
        return []
    lipschitz = math.sqrt(setting.row_size) * pull.error
    slack = _disturbance(setting, pull.error + strength)
    if setting.penalty == "lasso":
        whole = lipschitz + strength * math.sqrt(setting.dimension)
        radius = lasso_radius(0.0, pull.kappa, whole, strength, step)
        found = [(radius + _disturbance(setting, whole), "6.1", pull.assumption)]
    else:
        radius = bounded_ridge_radius(0.0, pull.kappa, lipschitz, strength, step)
        found = [(radius + slack, "6.3", pull.assumption)]
    overshoot = step * strength if setting.penalty == "lasso" else 0.0
    if (one or setting.structure == "disjoint") and setting.task == "quantile":
        radius = setting.b + step * pull.error + overshoot + slack
        found.append((radius, "3.1 with 6.3", pull.assumption))
    elif (one or setting.structure == "disjoint") and pull.span > 0.0:
        start = pull.offset + step * pull.span + overshoot
        radius = logistic_hard_radius(start, pull.span, step, setting.step_sum, pull.offset)
        found.append((radius, "3.4 with 6.3", pull.assumption))
    lasso = setting.penalty == "lasso"
    return [
        Candidate(
            total_from(setting, radius, 2.0 * radius)
            + setting.n * strength * (1.0 if lasso else radius),
            result,
            (assumption, f"{setting.penalty} of strength {strength:g}"),
        )
        for radius, result, assumption in found
    ]


def late_squared_candidate(setting: Setting) -> list[Candidate]:
    """The squared error with late labels from the growth of ||v||^2, one parameter or many (result A1).

    Where :func:`~gradeq.theory.crossing_mass` is below 2. Features scale every mass by the squared norm; groups
    do so in the crossings only, since one coordinate meets the rows of its own group.
    """
    step, latest = setting.largest_step, setting.latest
    many = setting.structure in ("features", "overlapping")
    size = setting.size if many else 1.0
    crossing = crossing_mass(step * size, setting.cap, latest)
    radius = root_squares(setting) * math.sqrt(late_squared_growth(1.0, 1.0, crossing))
    if not math.isfinite(radius):
        return []
    mass = step * size if setting.structure == "features" else step
    mass += age_mass(mass, setting.cap, latest)
    wander = late_squared_wander(radius, mass, 2.0 - crossing)
    known: tuple[str, ...] = (f"|y - f| <= {setting.b:g}", f"lateness of at most {latest} rows")
    if many:
        known = (*known, f"squared norm of features <= {size:g}")
    return [Candidate(total_from(setting, radius, 2.0 * radius + wander), "A1", known)]


def _squared(setting: Setting) -> list[Candidate]:
    if setting.has_late_labels:
        return late_squared_candidate(setting)
    radius = root_squares(setting) * math.sqrt(
        squared_growth(1.0, setting.size, setting.largest_step)
    )
    known = (f"|y - f| <= {setting.b:g}", f"squared norm of features <= {setting.size:g}")
    return [Candidate(total_from(setting, radius, 2.0 * radius), "5.2", known)]


def _squared_ridge(setting: Setting, one: bool) -> list[Candidate]:
    step, strength = setting.largest_step, setting.strength
    smallest = setting.smallest_step
    found = [ridge_radius(0.0, setting.b, setting.size, strength, step, smallest)]
    if one or (setting.structure == "disjoint" and step * strength <= 1.0):
        found.append(scalar_ridge_radius(0.0, setting.b, strength, step))
    known = (f"|y - f| <= {setting.b:g}", f"ridge of strength {strength:g}")
    return [
        Candidate(
            total_from(setting, radius, 2.0 * radius) + setting.n * strength * radius, "6.2", known
        )
        for radius in found
        if math.isfinite(radius)
    ]


def _pull(setting: Setting) -> Pull | None:
    """kappa and the size of the error, for the tasks whose error is bounded."""
    if setting.task == "elo":
        return Pull(LAMBERT_W, 1.0, 0.0, 0.0, "8.5", "results in [0, 1]")
    if setting.task == "probability_logit":
        if setting.clip is None:
            return None
        offset = clip_bound(setting.clip)
        known = f"labels in [0, 1], forecasts clipped at {setting.clip:g}"
        return Pull(logit_pull(offset), 1.0, offset, 1.0, "C3", known)
    if setting.task in ("probability_shift", "glm"):
        shift = setting.task == "probability_shift"
        a, b = (-1.0, 1.0) if shift else (setting.span_low, setting.span_high)
        if setting.low < a or setting.high > b:
            return None
        return Pull(LAMBERT_W * (b - a), b - a, 0.0, b - a, "5.1", f"labels in [{a:g}, {b:g}]")
    if setting.task == "quantile":
        if len(setting.levels) > 1:
            return _levels_pull(setting)
        kappa = quantile_pull(setting.low, setting.high, setting.level)
        known = f"tracked residuals in [{setting.low:g}, {setting.high:g}]"
        return Pull(kappa, max(setting.level, 1.0 - setting.level), 0.0, 0.0, "5.3", known)
    return None


def _levels_pull(setting: Setting) -> Pull:
    """Several levels by lazy isotonic projection: kappa and the squared errors add up over the levels.

    At tied levels the errors fall with the level, so the negative gradient points into the cone and
    g'(u - theta) >= 0 (result 8.7); what is left is the pinball loss of the base forecasts, level by level (5.3).
    """
    k = len(setting.levels)
    lows, highs = setting.lows or (setting.low,) * k, setting.highs or (setting.high,) * k
    ranges = zip(lows, highs, setting.levels, strict=True)
    kappa = sum(quantile_pull(low, high, level) for low, high, level in ranges)
    error = math.hypot(*(max(level, 1.0 - level) for level in setting.levels))
    known = f"tracked residuals in [{min(lows):g}, {max(highs):g}]"
    return Pull(kappa, error, 0.0, 0.0, "5.3 with 8.7", known)


def _disturbance(setting: Setting, lipschitz: float) -> float:
    """How far rows that ignored theta, before the sinh link had a scale, can have moved it."""
    size = math.sqrt(setting.row_size)
    return setting.zero_scale_rounds * setting.largest_step * lipschitz * size
