"""One parameter, or one per disjoint group: results 3.1 to 3.5 and 4, and which steps are stable."""

from __future__ import annotations

import math
from typing import NamedTuple

from gradeq.errors import StepTooLarge


def logaddexp(a: float, b: float) -> float:
    """log(e^a + e^b); either may be minus infinity.

    >>> logaddexp(1000.0, 1000.0) == 1000.0 + math.log(2.0)
    True
    """
    high, low = max(a, b), min(a, b)
    if low == -math.inf or high == math.inf:
        return high
    return high + math.log1p(math.exp(low - high))


def log_or_minus_infinity(x: float) -> float:
    """log(x), with log(0) = minus infinity.

    >>> log_or_minus_infinity(0.0)
    -inf
    """
    return math.log(x) if x > 0.0 else -math.inf


def exp_or_infinity(u: float) -> float:
    """e^u, infinite where a float cannot hold it.

    >>> exp_or_infinity(1e6)
    inf
    """
    return math.exp(u) if u < 709.0 else math.inf


def lambert_of_exp(a: float) -> float:
    """W0(e^a): the root w of w + log w = a, found without forming e^a.

    >>> round(lambert_of_exp(-1.0), 12)
    0.278464542761
    """
    if a < -30.0:
        return math.exp(a)
    w = a - math.log(a) if a > 2.0 else math.exp(min(a, 0.0)) * 0.5 + 0.1
    for _ in range(60):
        # Newton on log w as the variable: v + e^v = a is convex, so the iteration cannot leave w > 0.
        v = math.log(w)
        step = (v + w - a) / (1.0 + w)
        w = math.exp(v - step)
        if abs(step) < 1e-16:
            break
    return w


class Range(NamedTuple):
    """An interval that a parameter never leaves."""

    low: float
    high: float

    @property
    def length(self) -> float:
        """high - low."""
        return self.high - self.low

    def radius(self, start: float = 0.0) -> float:
        """The largest distance from ``start``."""
        return max(self.high - start, start - self.low)


def quantile_range(start: float, low: float, high: float, level: float, eta_max: float) -> Range:
    """Where a quantile tracker can be when every y - f lies in [low, high] (result 3.1).

        theta in [min(theta_1, low - eta (1 - tau)), max(theta_1, high + eta tau)]

    Any positive steps. |coverage - tau| <= radius(theta_1)/(eta n) with a constant step, length/(eta_n n)
    with nonincreasing ones. Ties count as covered, g = 1{y <= theta} - tau: with the g = -tau that
    cor:quantile_loss_zero_curv prescribes at a tie, a constant series is covered always.
    Conformal scores: the same with the score in place of y - f.

    >>> quantile_range(0.0, -1.0, 2.0, 0.75, 0.5)
    Range(low=-1.125, high=2.375)
    """
    return Range(min(start, low - eta_max * (1.0 - level)), max(start, high + eta_max * level))


def quantile_coverage_gap(start: float, low: float, high: float, level: float, eta: float, n: float) -> float:
    """Most by which coverage can miss its level with a constant step (result 3.1).

    >>> quantile_coverage_gap(0.0, -1.0, 1.0, 0.5, 0.5, 100)
    0.025
    """
    return quantile_range(start, low, high, level, eta).radius(start) / (eta * n)


def varying_range(start: float, lows: list[float], highs: list[float], level: float, etas: list[float]) -> Range:
    """Where the tracker can be after rounds whose ranges and steps all vary (result 8.3).

        U <- max(high_t + eta_t tau, U - eta_t (1 - tau)),  L <- min(low_t - eta_t (1 - tau), L + eta_t tau)

    >>> varying_range(0.0, [-1.0, -1.0], [1.0, 1.0], 0.5, [0.5, 0.5])
    Range(low=-1.25, high=1.25)
    """
    up = down = start
    for low, high, eta in zip(lows, highs, etas, strict=True):
        up = max(high + eta * level, up - eta * (1.0 - level))
        down = min(low - eta * (1.0 - level), down + eta * level)
    return Range(down, up)


def squared_factor(eta_max: float) -> float:
    """kappa = max(1, eta/(2 - eta)), the overshoot of the squared error (result 3.2); needs eta < 2.

    >>> squared_factor(0.5), squared_factor(1.5)
    (1.0, 3.0)
    """
    return max(1.0, eta_max / (2.0 - eta_max)) if eta_max < 2.0 else math.inf


def squared_radius(start: float, b: float, eta_max: float) -> float:
    """Where a mean tracker can be when |y - f| <= b: max(|theta_1|, kappa b) (result 3.2).

    The exact horizon; any steps below 2 (cor:squared_loss_quad_curv is valid and looser).

    >>> squared_radius(0.0, 2.0, 0.1)
    2.0
    """
    return max(abs(start), squared_factor(eta_max) * b)


def squared_range(start: float, low: float, high: float, eta_max: float) -> Range:
    """The same with both ends: for steps up to 1 the tracker stays among the residuals (result 3.2).

    >>> squared_range(0.0, 1.0, 3.0, 0.5)
    Range(low=0.0, high=3.0)
    """
    if eta_max <= 1.0:
        return Range(min(start, low), max(start, high))
    radius = squared_radius(start, max(abs(low), abs(high)), eta_max)
    return Range(-radius, radius)


def squared_bias_printed(start: float, b: float, delta: float, eta: float, n: float) -> float:
    """The bias bound as the paper prints it, valid for eta <= 2 (1 - delta)/(1 + delta)^2 (result 3.2).

    (2 |theta_1| + b eta (1 + 1/delta) + b/delta) / (eta n); :func:`squared_radius` is never worse.
    """
    return (2.0 * abs(start) + b * eta * (1.0 + 1.0 / delta) + b / delta) / (eta * n)


def logistic_horizon(span: float, gap: float) -> float:
    """log((b - a - eps)/eps): where the logistic mean meets labels eps inside [a, b] (result 3.3).

    The paper prints log((b - a)/(2 eps)) (cor:logistic_loss_zero_curv), which is too small for every
    eps below (b - a)/2 and is violated by constant labels. ``span`` = b - a, ``gap`` = eps.

    >>> round(logistic_horizon(1.0, 0.01), 3)
    4.595
    """
    if gap <= 0.0:
        return math.inf
    return max(0.0, math.log((span - gap) / gap)) if gap < span else 0.0


def logistic_soft_radius(start: float, span: float, gap: float, eta_max: float) -> float:
    """Where a logistic tracker can be when labels stay ``gap`` inside [a, b] (result 3.3).

    max(|theta_1|, h) if eta (b - a) <= 4, because then theta - eta (mean - y) is increasing in theta and
    cannot jump over its fixed point; else max(|theta_1|, h + eta (b - a)).

    >>> round(logistic_soft_radius(0.0, 1.0, 0.01, 0.1), 3)
    4.595
    """
    horizon = logistic_horizon(span, gap)
    overshoot = 0.0 if eta_max * span <= 4.0 else eta_max * span
    return max(abs(start), horizon + overshoot)


def logistic_hard_radius(start: float, span: float, eta_max: float, step_sum: float, horizon: float = 0.0) -> float:
    """Where a logistic tracker can be with any labels in [a, b], 0 and 1 included (results 3.4, C1).

        R = log(max(e^|theta_1|, e^(B + s)) + (b - a) (sum of steps) e^(B + s/2)),   s = eta (b - a)

    so that the bias is O(log n / n). ``horizon`` B bounds a known offset added to theta (0: none).
    With a constant step the sum of steps is eta n. The paper has nothing for hard labels in one dimension.

    >>> round(logistic_hard_radius(0.0, 1.0, 0.1, 0.1 * 1000), 3)
    4.666
    """
    s = eta_max * span
    growth = log_or_minus_infinity(span * step_sum) + horizon + s / 2.0
    return logaddexp(max(abs(start), horizon + s), growth)


def exponential_range(
    start: float,
    ratio_low: float,
    ratio_high: float,
    forecast_max: float,
    label_max: float,
    eta_max: float,
    step_sum: float,
) -> Range:
    """Where theta can be when f e^theta is served and f e^theta - y is the error (result 3.5).

    f = 1 is the Poisson mean. With every y/f in [ratio_low, ratio_high], f <= forecast_max, y <= label_max:

        U0 = max(theta_1, log ratio_high),  L0 = min(theta_1, log ratio_low)
        eta f_max e^U0 <= 1:   theta in [L0, U0], since no step can jump over its fixed point
        otherwise:             U = max(theta_1, log ratio_high + eta y_max),
                               L = min(theta_1, log ratio_low - eta f_max e^U)

    and if some y is 0, L = -log(max(e^-theta_1, exp(eta f_max e^U)) + f_max (sum of steps) e^(eta f_max)).
    The paper lists the Poisson loss without a result. The constants are exponential: keep eta f small.
    Infinite where a float cannot hold them.

    >>> exponential_range(0.0, 0.5, 2.0, 1.0, 2.0, 0.25, 25.0) == Range(math.log(0.5), math.log(2.0))
    True
    """
    push = eta_max * forecast_max
    top = max(start, log_or_minus_infinity(ratio_high))
    gentle = push * exp_or_infinity(top) <= 1.0
    if not gentle:
        top = max(start, log_or_minus_infinity(ratio_high) + eta_max * label_max)
    drop = push * exp_or_infinity(top)
    if ratio_low > 0.0:
        bottom = min(start, math.log(ratio_low) - (0.0 if gentle else drop))
        return Range(bottom, top)
    growth = log_or_minus_infinity(forecast_max * step_sum) + push
    return Range(-logaddexp(max(-start, drop), growth), top)


def step_limit(task: str, *, size: float = 1.0, weight: float = 1.0, ridge: float = 0.0, delay: int = 0) -> float:
    """The step that must not be reached: 2/(c^2 w) for the squared error, infinite for bounded errors.

    ``size`` is the largest squared norm c^2 of a feature row, ``weight`` the largest weight, ``ridge`` the
    strength lambda of a penalty (lambda/2)||theta||^2, ``delay`` the most tickets served while one is open
    (results 3.2, 5.2, 6.2, D3, and the features line of A1: c^2 eta (2 D + 1) < 2). With a ridge and late labels
    no step is proven: 0.

    >>> step_limit("mean"), step_limit("mean", size=4.0), step_limit("quantile")
    (2.0, 0.5, inf)
    """
    if ridge > 0.0 and delay > 0:
        return 0.0
    if task != "mean":
        return 1.0 / ridge if ridge > 0.0 else math.inf
    effective = size * weight
    if ridge > 0.0:
        return 1.0 / (ridge + effective / 2.0)
    return 2.0 / (effective * (2 * delay + 1)) if effective > 0.0 else math.inf


def require_step(
    eta: float, task: str, *, size: float = 1.0, weight: float = 1.0, ridge: float = 0.0, delay: int = 0
) -> None:
    """Refuse a step that is not positive and finite, or not below :func:`step_limit`.

    >>> require_step(2.0, "mean")
    Traceback (most recent call last):
    gradeq.errors.StepTooLarge: eta = 2: the squared error needs eta below 2; take a smaller step
    """
    if not (math.isfinite(eta) and eta > 0.0):
        raise StepTooLarge(f"eta = {eta:g}: a step must be positive and finite; 0.01 is a safe start")
    limit = step_limit(task, size=size, weight=weight, ridge=ridge, delay=delay)
    if eta >= limit:
        kind = "the squared error" if task == "mean" else "a ridge penalty"
        raise StepTooLarge(f"eta = {eta:g}: {kind} needs eta below {limit:g}; take a smaller step")


def require_open_mass(mass: float) -> None:
    """Refuse an open step mass of 1 or more for the squared error with late labels (result A1).

    Below 1 every schedule of labels is safe; above 1 a hold-and-release schedule diverges.

    >>> require_open_mass(1.5)
    Traceback (most recent call last):
    gradeq.errors.StepTooLarge: open step mass 1.5: late labels need it below 1; take a smaller step
    """
    if not mass < 1.0:
        raise StepTooLarge(f"open step mass {mass:g}: late labels need it below 1; take a smaller step")


def fifo_step_limit(delay: int) -> float:
    """Exact limit for the squared error when every label comes ``delay`` rounds late (result 8.1).

        2 sin(pi / (2 (2 D + 1)))

    >>> fifo_step_limit(0), round(fifo_step_limit(1), 12)
    (2.0, 1.0)
    """
    return 2.0 * math.sin(math.pi / (2.0 * (2 * delay + 1)))
