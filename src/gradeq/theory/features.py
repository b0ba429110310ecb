"""Links (C0 to C5, B3), bounded features (5.1 to 5.3), rows with weights (D1 to D7), Elo (8.5)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradeq.numerics import LAMBERT_W
from gradeq.theory.generic import average_gradient
from gradeq.theory.late import late_logistic_virtual_radius
from gradeq.theory.scalar import (
    Range,
    lambert_of_exp,
    log_or_minus_infinity,
    logaddexp,
    logistic_hard_radius,
    quantile_range,
    squared_radius,
)


def clip_bound(eps: float) -> float:
    """B = log((1 - eps)/eps), the largest offset of a clipped probability.

    >>> clip_bound(0.5)
    0.0
    """
    return math.log1p(-eps) - math.log(eps)


def logit_radius_from_odds(start: float, eta_max: float, step_odds_sum: float) -> float:
    """One parameter, any labels in [0, 1]: log(e^|theta_1| + e^eta sum eta_t e^|o_t|) (results C1, D4).

    ``step_odds_sum`` = sum of eta_t e^|o_t|; e^|o| is the larger of the odds p/(1-p) and (1-p)/p.

    >>> round(logit_radius_from_odds(0.0, 0.1, 100.0), 3)
    4.714
    """
    return logaddexp(abs(start), log_or_minus_infinity(step_odds_sum) + eta_max)


def logit_radius_from_clip(start: float, offset_bound: float, eta_max: float, step_sum: float) -> float:
    """The same from |o_t| <= B alone: log(max(e^|theta_1|, e^(B+eta)) + e^(B+eta/2) sum eta_t) (result C1).

    >>> round(logit_radius_from_clip(0.0, 0.0, 0.1, 100.0), 3)
    4.666
    """
    return logistic_hard_radius(start, 1.0, eta_max, step_sum, horizon=offset_bound)


def logit_soft_radius(start: float, offset_bound: float, gap: float, eta_max: float) -> float:
    """Labels in [d, 1 - d]: max(|theta_1|, B + log((1 - d)/d)), plus eta if eta > 4 (result C2).

    While eta <= 4 a step cannot jump over its fixed point, so nothing is added.

    >>> logit_soft_radius(0.0, 1.0, 0.5, 0.1)
    1.0
    """
    if gap <= 0.0:
        return math.inf
    target = max(0.0, math.log((1.0 - gap) / gap)) if gap < 1.0 else 0.0
    return max(abs(start), offset_bound + target + (0.0 if eta_max <= 4.0 else eta_max))


def logit_pull(offset_bound: float) -> float:
    """kappa(B) = sup u/(1 + e^(u - B)) = W0(e^(B - 1)), for features (result C3).

    >>> round(logit_pull(0.0), 4), round(logit_pull(clip_bound(0.01)), 3)
    (0.2785, 2.629)
    """
    return lambert_of_exp(offset_bound - 1.0)


def logit_growth(offset_bound: float, size: float, eta_max: float, step_sum: float) -> float:
    """Growth of ||theta||^2 with features, ||z||^2 <= size: sum of 2 eta kappa(B) + eta^2 c^2 (result C3)."""
    return step_sum * (2.0 * logit_pull(offset_bound) + eta_max * size)


def late_logit_radius(start: float, open_mass: float, step_odds_sum: float) -> float:
    """Late labels: |theta| <= log(e^|theta_1| + e^S sum eta_t e^|o_t|) + S, S = open mass (result C5).

    The state after all posted tickets is bounded without the last S
    (:func:`gradeq.theory.late_logistic_virtual_radius`).
    """
    return late_logistic_virtual_radius(start, 1.0, open_mass, step_odds_sum) + open_mass


def asinh_bound(ratio: float) -> float:
    """asinh(rho): the range of asinh((y - f)/s) when |y - f| <= rho s (result B3).

    Tracking the quantile of asinh((y - f)/s_t), s_t known before y_t, is quantile tracking: every
    quantile result holds with this in place of b, and the step has no unit.

    >>> asinh_bound(0.0)
    0.0
    """
    return math.asinh(ratio)


def sinh_coverage_gap(start: float, ratio: float, eta: float, n: float, zero_scale_rounds: float = 0) -> float:
    """|coverage - tau| of the sinh link: (|u_1| + max(|u_1|, asinh(rho) + eta))/(eta n) + n_0/n (result B3).

    n_0 counts rounds served while the scale was still 0.

    >>> sinh_coverage_gap(0.0, 0.0, 0.1, 100)
    0.01
    """
    reach = max(abs(start), asinh_bound(ratio) + eta)
    return (abs(start) + reach) / (eta * n) + zero_scale_rounds / n


def warm_start(level: float) -> float:
    """u_1 = asinh(-ln(1 - tau)): start nonnegative scores as if they were exponential (result B3).

    >>> round(warm_start(0.9), 3)
    1.571
    """
    return math.asinh(-math.log1p(-level))


def logistic_growth(span: float, size: float, eta_max: float, step_sum: float) -> float:
    """Growth of ||theta||^2 for the logistic mean on [a, b]: sum of 2 eta W (b-a) + eta^2 c^2 (b-a)^2 (5.1).

    W = W0(1/e) = 0.27846 (lem:logistic_grad_inner_prod). ``size`` = c^2, ``span`` = b - a.
    """
    return pull_growth(LAMBERT_W * span, size * span * span, eta_max, step_sum)


def squared_growth(square_sum: float, size: float, eta_max: float) -> float:
    """Growth of ||theta||^2 for the squared error: sum of eta r^2/(2 - eta c^2) (result 5.2).

    Needs eta c^2 < 2. ``square_sum`` = sum of eta_t r_t^2 over the rounds, or eta n b^2 when only
    |r| <= b is known; r = y - f. From theta_1 = 0 the average is then at most b/sqrt(eta (2 - eta c^2) n).

    >>> squared_growth(100.0, 1.0, 1.0)
    100.0
    """
    return square_sum / (2.0 - eta_max * size) if eta_max * size < 2.0 else math.inf


def quantile_pull(low: float, high: float, level: float) -> float:
    """kappa of the pinball loss: most that a step can push theta outward, y - f in [low, high] (5.3).

    max(tau high+, (1 - tau) low-); at most max(tau, 1 - tau) b.

    >>> quantile_pull(-1.0, 3.0, 0.5)
    1.5
    """
    return max(level * max(high, 0.0), (1.0 - level) * max(-low, 0.0))


def huber_pull(low: float, high: float, width: float) -> float:
    """kappa of the Huber loss: the most of -u clip(u - r, -width, width) over u, r in [low, high].

    r^2/4 at u = r/2 while |r| <= 2 width, width (|r| - width) at u = r - width beyond.

    >>> huber_pull(-1.0, 2.0, 1.0), huber_pull(-5.0, 2.0, 1.0)
    (1.0, 4.0)
    """
    farthest = max(abs(low), abs(high))
    if farthest <= 2.0 * width:
        return farthest * farthest / 4.0
    return width * (farthest - width)


def quantile_growth(low: float, high: float, level: float, size: float, eta_max: float, step_sum: float) -> float:
    """Growth of ||theta||^2 for the pinball loss of x'theta: sum of 2 eta kappa + eta^2 c^2 m^2 (5.3).

    m = max(tau, 1 - tau).
    """
    m = max(level, 1.0 - level)
    return pull_growth(quantile_pull(low, high, level), size * m * m, eta_max, step_sum)


def pull_growth(kappa: float, lipschitz_squared: float, eta_max: float, step_sum: float) -> float:
    """sum of 2 eta kappa + eta^2 L^2 (G2'), with each eta^2 at most eta_max eta.

    >>> pull_growth(1.0, 2.0, 0.5, 10.0)
    30.0
    """
    return step_sum * (2.0 * kappa + eta_max * lipschitz_squared)


def feature_average(start: float, growth: float, eta: float, n: float) -> float:
    """||avg (prediction - y) x|| with a constant step: (||theta_1|| + sqrt(||theta_1||^2 + growth))/(eta n).

    The same number bounds the multiaccuracy error over {x'alpha : ||alpha|| <= 1}.

    >>> feature_average(0.0, 100.0, 0.5, 10)
    2.0
    """
    return (abs(start) + math.hypot(start, math.sqrt(growth))) / (eta * n)


def best_squared_average(b: float, c: float, n: float) -> float:
    """The squared error at its best step eta = 1/c^2: b c/sqrt(n) (result 5.2).

    >>> best_squared_average(2.0, 3.0, 36)
    1.0
    """
    return b * c / math.sqrt(n)


def group_average(feature_bound: float, n: float, group_rows: float) -> float:
    """Bias inside one of several overlapping groups: n/n_j times the bound on the average (result 5).

    n_j/sqrt(n) -> infinity is enough; the paper takes n_j to grow linearly.

    >>> group_average(0.01, 1000, 100)
    0.1
    """
    return feature_bound * n / group_rows


def weighted_average(start: float, end: float, eta: float, weight_sum: float) -> float:
    """sum w e z / W = (u_1 - u)/(eta W), exactly (result D1).

    >>> weighted_average(0.0, -1.0, 0.1, 100.0)
    0.1
    """
    return average_gradient(start, end, eta, weight_sum)


def weighted_quantile_range(
    start: float, low: float, high: float, level: float, eta: float, weight_max: float
) -> Range:
    """The quantile's range with steps up to eta wbar; |weighted coverage - tau| <= length/(eta W) (D2).

    >>> weighted_quantile_range(0.0, -1.0, 1.0, 0.5, 0.5, 2.0)
    Range(low=-1.5, high=1.5)
    """
    return quantile_range(start, low, high, level, eta * weight_max)


def weighted_squared_radius(start: float, b: float, eta: float, weight_max: float) -> float:
    """max(|theta_1|, kappa b) with kappa of eta wbar, which must stay below 2 (result D3).

    >>> weighted_squared_radius(0.0, 1.0, 0.5, 3.0)
    3.0
    """
    return squared_radius(start, b, eta * weight_max)


def weighted_logit_radius(start: float, eta: float, weight_max: float, weighted_odds: float) -> float:
    """log(e^|theta_1| + eta e^(eta wbar) sum w_t e^|o_t|) (result D4).

    >>> weighted_logit_radius(0.0, 0.5, 2.0, 0.0)
    0.0
    >>> round(weighted_logit_radius(0.0, 0.5, 2.0, 100.0), 3)
    4.919
    """
    return logit_radius_from_odds(start, eta * weight_max, eta * weighted_odds)


def weighted_pull_growth(
    kappa: float, lipschitz_squared: float, eta: float, weight_sum: float, weight_squares: float
) -> float:
    """Growth of ||theta||^2 with features: sum of 2 eta w kappa + eta^2 w^2 L^2 (result D5).

    >>> weighted_pull_growth(1.0, 1.0, 0.5, 4.0, 8.0)
    6.0
    """
    return 2.0 * eta * kappa * weight_sum + eta**2 * lipschitz_squared * weight_squares


def weighted_squared_growth(b: float, size: float, eta: float, weight_max: float, weight_sum: float) -> float:
    """The same for the squared error: sum of eta w b^2/(2 - eta wbar c^2) (result D5, attained).

    >>> weighted_squared_growth(1.0, 1.0, 0.5, 2.0, 10.0)
    5.0
    """
    room = 2.0 - eta * weight_max * size
    return eta * weight_sum * b * b / room if room > 0.0 else math.inf


def weighted_harm_factor(eta: float, weight_max: float, size: float = 1.0) -> float:
    """Weighted MSE served is at most the weighted base MSE times 1/(1 - eta wbar c^2) (result D6).

    >>> weighted_harm_factor(0.25, 2.0)
    2.0
    """
    room = 1.0 - eta * weight_max * size
    return 1.0 / room if room > 0.0 else math.inf


def propensity_average(
    displacement: float,
    eta: float,
    n: float,
    error_bound: float,
    inverse_propensity_excess: float,
    propensity_min: float,
    delta: float,
) -> float:
    """Average error over ALL rounds, seen or not, with probability 1 - delta (result D7; Freedman).

        |u_1 - u|/(eta n) + sqrt(2 E^2 sum(1/pi - 1) ln(2/delta))/n + E ln(2/delta)/(3 pi_min n)

    Weights 1{seen}/pi_t, observation independent of y_t given the past and x_t, |e| <= E. The squared
    error needs eta < 2 pi_min, since a weight is as large as 1/pi_min. A wrong pi promises nothing.
    """
    log_term = math.log(2.0 / delta)
    spread = math.sqrt(2.0 * error_bound**2 * inverse_propensity_excess * log_term)
    tail = error_bound * log_term / (3.0 * propensity_min)
    return abs(displacement) / (eta * n) + (spread + tail) / n


ELO_POINTS_PER_LOGIT = 400.0 / math.log(10.0)


def step_from_k(k: float) -> float:
    """The step that a K-factor means: eta = K ln 10/400.

    >>> round(step_from_k(17.0), 3)
    0.098
    """
    return k / ELO_POINTS_PER_LOGIT


def elo_growth(eta_max: float, step_sum: float) -> float:
    """Growth of the squared norm of the ratings: sum of 2 eta W + 2 eta^2 (result 8.5).

    >>> round(elo_growth(0.1, 0.1 * 100), 3)
    7.569
    """
    return step_sum * (2.0 * LAMBERT_W + 2.0 * eta_max)


def elo_norm_radius(start_norm: float, players: int, eta_max: float, step_sum: float) -> float:
    """Largest |rating| from the norm; a centred vector has max <= sqrt((M - 1)/M) norm (result 8.5)."""
    norm = math.sqrt(start_norm**2 + elo_growth(eta_max, step_sum))
    return norm * math.sqrt((players - 1) / players)


def elo_excess(start: Sequence[float], c: float) -> float:
    """V_1 = max(0, max_k(S_k - (c/2) k (M - k))), S_k the sum of the k largest centred ratings (8.5).

    >>> elo_excess([0.0, 0.0], 1.0)
    0.0
    """
    m = len(start)
    mean = math.fsum(start) / m
    total, worst = 0.0, 0.0
    for k, rating in enumerate(sorted(start, reverse=True), 1):
        total += rating - mean
        worst = max(worst, total - 0.5 * c * k * (m - k))
    return worst


def elo_sup_radius(players: int, eta_max: float, step_sum: float, start: Sequence[float] = ()) -> float:
    """Largest |centred rating| after n games: about (M - 1)/2 log n, and no better is possible (8.5).

        c (M - 1)/2 + V_1 + (sum of steps) e^(2 eta - c),   c = max(3 eta, 2 eta + log(2 eta n/(M - 1)))

    The paper leaves the case without a penalty open; ratings are not bounded in general.

    >>> round(elo_sup_radius(2, 0.1, 0.1 * 1000), 3)
    3.249
    """
    if players < 2:
        return 0.0
    c = max(3.0 * eta_max, 2.0 * eta_max + math.log(max(2.0 * step_sum / (players - 1), 1e-300)))
    excess = elo_excess(start, c) if start else 0.0
    return 0.5 * c * (players - 1) + excess + step_sum * math.exp(2.0 * eta_max - c)


def elo_radius(players: int, eta_max: float, step_sum: float, start: Sequence[float] = ()) -> float:
    """The smaller of the two bounds on the largest centred rating (result 8.5)."""
    mean = math.fsum(start) / len(start) if start else 0.0
    norm = math.sqrt(math.fsum((r - mean) ** 2 for r in start))
    return min(elo_norm_radius(norm, players, eta_max, step_sum), elo_sup_radius(players, eta_max, step_sum, start))


def elo_player_bias(start: float, radius: float, eta: float, player_games: float) -> float:
    """|mean predicted win probability - win rate| of one player (result 8.5).

    (|theta_1m| + R)/(eta n_m); exactly |theta_1m - theta_m|/(eta n_m) with a constant step.

    >>> elo_player_bias(0.0, 2.0, 0.1, 200)
    0.1
    """
    return (abs(start) + radius) / (eta * player_games)
