"""Which results apply to a layer with a penalty: results 6.1 to 6.9, labels at once.

Every radius is the smaller of what the penalty allows in the long run and of what the errors alone can have added so
far, so a bound falls back to that without a penalty as the strength goes to 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gradeq.theory.candidate import Candidate, Radius, root_squares, total_from, total_grown
from gradeq.theory.elo import elo_sup_radius
from gradeq.theory.features import pull_growth, squared_growth
from gradeq.theory.links import logit_radius_from_odds
from gradeq.theory.penalised import (
    bounded_ridge_radius,
    lasso_radius,
    ridge_closed_mean,
    ridge_closed_radius,
    ridge_radius,
    scalar_lasso_radius,
    scalar_ridge_radius,
    squared_lasso_radius,
)
from gradeq.theory.proximal import (
    proximal_lasso_radius,
    proximal_ridge_closed_radius,
    proximal_ridge_radius,
)
from gradeq.theory.pulls import Pull, disturbance, grown, pull_of
from gradeq.theory.scalar import logistic_hard_radius, logistic_horizon
from gradeq.theory.setting import Setting
from gradeq.theory.stable import logaddexp


class _Way(NamedTuple):
    """A bound on the parameter at the end and on average, and on the sum of gradients and slopes of the penalty."""

    radius: float
    mean: float
    total: float
    result: str


def penalised_candidates(setting: Setting) -> list[Candidate]:
    """Every proven bound with a penalty: labels at once, one step for all coordinates."""
    if setting.has_late_labels or setting.home or setting.structure == "isotonic":
        return []
    strength, shrink = setting.strength, setting.top_eta * setting.strength
    if not strength > 0.0 or (setting.penalty == "ridge" and not shrink < 1.0):
        return []
    pull = None if setting.task == "mean" else pull_of(setting)
    if setting.task != "mean" and pull is None:
        return []
    ways = _bounded(setting, pull) if pull is not None else _squared(setting)
    lasso = setting.penalty in ("lasso", "proximal lasso")
    known = f"|y - f| <= {setting.b:g}" if pull is None else pull.assumption
    assumptions = (known, f"{setting.penalty} of strength {strength:g}")
    return [
        Candidate(
            way.total + setting.n * strength * (1.0 if lasso else way.mean), way.result, assumptions
        )
        for way in ways
        if math.isfinite(way.total)
    ]


def _held(setting: Setting, radius: float, result: str) -> _Way:
    """A radius that holds throughout."""
    return _Way(radius, radius, total_from(setting, radius, 2.0 * radius), result)


def _grown(setting: Setting, radius_of: Radius, result: str) -> _Way:
    """A radius that grows with the sums of steps."""
    radius = radius_of(setting.step_sum, setting.square_steps)
    return _Way(radius, radius, total_grown(setting, radius_of), result)


def _plain(setting: Setting) -> bool:
    """One step and no weights: then a recursion has a closed form."""
    return setting.constant and setting.weight_max == 1.0 and setting.weights == setting.n


def _closed(setting: Setting, growth: float, result: str) -> list[_Way]:
    """The ridge's recursion R^2 <- rho^2 R^2 + growth solved (result 6.7)."""
    if not _plain(setting) or not math.isfinite(growth):
        return []
    rho = 1.0 - setting.eta * setting.strength
    radius = ridge_closed_radius(growth, rho, setting.n)
    mean = ridge_closed_mean(growth, rho, setting.n)
    return [_Way(radius, mean, total_from(setting, radius, 2.0 * radius), result)]


def _slopes(setting: Setting) -> float:
    """sqrt(d sum of s^2): how far the slopes of a lasso alone can go, over its strength."""
    if setting.weight_max == 1.0 and setting.weights == setting.n:
        return math.sqrt(setting.dimension * setting.square_steps)
    return math.sqrt(setting.dimension * setting.n) * setting.top_eta


def _bounded(setting: Setting, pull: Pull) -> list[_Way]:
    """Errors of bounded size."""
    eta, step, weight, strength = (
        setting.top_eta, setting.largest_step, setting.weight_max, setting.strength,
    )  # fmt: skip
    lipschitz, kappa = math.sqrt(setting.row_size) * pull.error, pull.kappa
    free = disturbance(setting, pull.error)
    share = 1.0
    if setting.task == "elo" and setting.penalty == "ridge":  # the sum of ratings stays 0
        share = math.sqrt((setting.dimension - 1) / setting.dimension)
    plain = grown(setting, pull)
    if setting.penalty == "ridge":
        held = bounded_ridge_radius(0.0, kappa * weight, lipschitz * weight, strength, eta)
        ways = [_held(setting, share * held + free, "6.3"), _grown(setting, plain, "6.7")]
        if not free:
            rho = 1.0 - eta * strength
            growth = (
                share * share * (2.0 * step * rho * kappa + step * lipschitz * step * lipschitz)
            )
            ways += _closed(setting, growth, "6.7")
    elif setting.penalty == "lasso":
        whole = weight * lipschitz + strength * math.sqrt(setting.dimension)
        slack = disturbance(setting, pull.error + strength * math.sqrt(setting.dimension))
        held = lasso_radius(0.0, kappa * weight, whole, strength, eta)
        root = lipschitz * math.sqrt(setting.square_steps) + strength * _slopes(setting)
        so_far = math.hypot(math.sqrt(2.0 * kappa * setting.step_sum), root)
        ways = [_held(setting, held + slack, "6.1"), _held(setting, so_far + slack, "6.6")]
        if weight == 1.0 and setting.weights == setting.n:

            def lassoed(steps: float, squares: float) -> float:
                pushed = lipschitz + strength * math.sqrt(setting.dimension)
                return math.sqrt(2.0 * kappa * steps + pushed * pushed * squares) + slack

            ways.append(_grown(setting, lassoed, "6.6"))
    else:
        growth = pull_growth(kappa * weight, weight * lipschitz * weight * lipschitz, eta, eta)
        ways = [_grown(setting, plain, "6.4" if setting.penalty == "proximal ridge" else "6.5")]
        ways += _proximal(setting, growth)
    if setting.task == "elo" and setting.penalty == "ridge":

        def ladder(steps: float, squares: float) -> float:
            return elo_sup_radius(setting.dimension, step, steps)

        ways.append(_grown(setting, ladder, "8.5 with 6.3"))
    if setting.structure in ("scalar", "disjoint") and setting.penalty in ("lasso", "ridge"):
        ways += _one_parameter(setting, pull)
    return ways


def _proximal(setting: Setting, growth: float) -> list[_Way]:
    """Where a penalty in proximal form holds the parameter; ``growth``: the most that a step adds."""
    eta, strength = setting.top_eta, setting.strength
    if setting.penalty == "proximal lasso":
        cut = growth / (eta * strength) / 2.0
        held = proximal_lasso_radius(0.0, growth, strength, eta) if setting.constant else cut
        return [_held(setting, held, "6.5")]
    ways = [_held(setting, proximal_ridge_radius(0.0, growth, strength, eta), "6.4")]
    if _plain(setting):
        held = proximal_ridge_closed_radius(growth, strength, eta, setting.n)
        ways.append(_held(setting, held, "6.4"))
    return ways


def _one_parameter(setting: Setting, pull: Pull) -> list[_Way]:
    """Results 3.1, 3.3, 3.4 and C1 with a penalty: it pulls to 0, and a lasso past it by one step at most."""
    step = setting.largest_step
    past = setting.top_eta * setting.strength if setting.penalty == "lasso" else 0.0
    if setting.task == "quantile":
        radius = setting.b + step * pull.error + past + disturbance(setting, pull.error + past)
        return [_held(setting, radius, "3.1 with 6.3")]
    if not pull.span > 0.0:
        return []
    start = pull.offset + step * pull.span + past

    def hard(steps: float, squares: float) -> float:
        return logistic_hard_radius(start, pull.span, step, steps, pull.offset)

    ways = [_grown(setting, hard, "3.4 with 6.3")]
    if setting.task == "probability_logit" and setting.odds_sum is not None:
        odds = logit_radius_from_odds(0.0, step + past, setting.top_eta * setting.odds_sum)
        ways.append(_held(setting, logaddexp(past, odds), "C1 with 6.3"))
    if setting.task in ("probability_shift", "glm"):
        a, b = (-1.0, 1.0) if setting.task == "probability_shift" else (
            setting.span_low, setting.span_high,
        )  # fmt: skip
        gap = min(setting.low - a, b - setting.high)
        if gap > 0.0:
            radius = logistic_horizon(pull.span, gap) + step * pull.span + past
            ways.append(_held(setting, radius, "3.3 with 6.3"))
    return ways


def _squared(setting: Setting) -> list[_Way]:
    """The squared error."""
    eta, step, weight, strength = (
        setting.top_eta, setting.largest_step, setting.weight_max, setting.strength,
    )  # fmt: skip
    one = setting.structure in ("scalar", "disjoint")
    if setting.penalty == "ridge":
        rho = 1.0 - eta * strength
        ways = [_squared_so_far(setting, setting.size / rho, "6.7")]
        rooted = setting.b * math.sqrt(weight)
        held = ridge_radius(
            0.0, rooted, setting.size * weight, strength, eta, setting.smallest_step
        )
        ways.append(_held(setting, held, "6.2"))
        room = 2.0 * rho - step * setting.size
        if room > 0.0:
            ways += _closed(setting, step * rho * rho * setting.b * setting.b / room, "6.7")
        if one and _plain_weights(setting):
            ways.append(_held(setting, scalar_ridge_radius(0.0, setting.b, strength, eta), "6.2"))
        elif one and step + eta * strength <= 1.0:
            ways.append(_held(setting, setting.b, "6.2"))
        return ways
    room = 2.0 - step * setting.size
    if room <= 0.0:
        return []
    if setting.penalty == "lasso":
        width = strength * math.sqrt(setting.dimension)
        extra = eta * width * math.sqrt(setting.size)
        observed = (root_squares(setting) + extra * math.sqrt(setting.step_sum)) / math.sqrt(room)
        so_far = math.hypot(observed, strength * _slopes(setting))
        held = squared_lasso_radius(
            setting.b, setting.size, setting.dimension, strength, eta, weight
        )
        ways = [_held(setting, so_far, "6.6"), _held(setting, held, "6.6")]
        if one:
            held = scalar_lasso_radius(setting.b, strength, step, eta)
            ways.append(_held(setting, held, "3.2 with 6.6"))
        if _plain_weights(setting):
            most = setting.b + extra

            def lassoed(steps: float, squares: float) -> float:
                added = most * most * (0.5 * steps + 0.5 * setting.size * squares / room)
                return math.sqrt(added + width * width * squares)

            ways.append(_grown(setting, lassoed, "6.6"))
        return ways
    result = "6.4" if setting.penalty == "proximal ridge" else "6.5"
    growth = squared_growth(eta * weight * setting.b * setting.b, setting.size, step)
    return [_squared_so_far(setting, setting.size, result), *_proximal(setting, growth)]


def _plain_weights(setting: Setting) -> bool:
    return setting.weight_max == 1.0 and setting.weights == setting.n


def _squared_so_far(setting: Setting, size: float, result: str) -> _Way:
    """What the errors alone can have added, as without a penalty (result 5.2) with rows of this size."""
    room = 2.0 - setting.largest_step * size
    if room <= 0.0:
        return _held(setting, math.inf, result)

    def residuals(steps: float, squares: float) -> float:
        return setting.b * math.sqrt(0.5 * steps + 0.5 * size * squares / room)

    way = _grown(setting, residuals, result)
    observed = _held(setting, root_squares(setting) / math.sqrt(room), result)
    return min(way, observed, key=lambda own: own.total)
