"""Late labels, in any order, with no bound on the delay unless said: results 8.1 and A1 to A5.

A ticket is served at one state and posted later. Its *mass* is its step (times its weight).
``open_mass`` is the largest mass of tickets open at one time that will be posted, the one just served
included; ``stale_mass`` the largest mass, just before a posting, of open tickets served before the
posting before it. At most P open with a constant step: open_mass <= P eta, stale_mass <= (P - 1) eta.
"""

from __future__ import annotations

import math

from gradeq.theory.scalar import Range
from gradeq.theory.stable import log_or_minus_infinity, logaddexp


def late_squared_radius(start: float, b: float, open_mass: float, stale_mass: float) -> float:
    """Squared error, |y - f| <= b: (H + S b)/(1 - S), H = max(|theta_1|, b) (result A1).

    S is the stale mass, plus what the open mass exceeds 1 by. Infinite from S = 1 on: there a
    hold-and-release schedule diverges. One parameter, or one per disjoint group with its own masses.

    >>> late_squared_radius(0.0, 1.0, 0.1, 0.0), round(late_squared_radius(0.0, 1.0, 0.6, 0.5), 12)
    (1.0, 3.0)
    """
    s = stale_mass + max(0.0, open_mass - 1.0)
    return (max(abs(start), b) + s * b) / (1.0 - s) if s < 1.0 else math.inf


def late_squared_radius_by_delay(start: float, b: float, eta: float, delay: int) -> float:
    """Squared error with every delay at most D, eta <= 1 and 2 D eta < 1 (result 8.1).

    max(|theta_1|, b (1 + 2 D eta)/(1 - 2 D eta)); :func:`late_squared_radius` needs less and gives more.

    >>> late_squared_radius_by_delay(0.0, 1.0, 0.25, 1)
    3.0
    """
    pull = 2.0 * delay * eta
    if eta > 1.0 or pull >= 1.0:
        return math.inf
    return max(abs(start), b * (1.0 + pull) / (1.0 - pull))


def late_squared_radius_in_order(start: float, b: float, eta: float, delay: int) -> float:
    """The same when every label comes exactly D rounds late: D in place of 2 D (result 8.1).

    >>> late_squared_radius_in_order(0.0, 1.0, 0.5, 1)
    3.0
    """
    pull = delay * eta
    if eta > 1.0 or pull >= 1.0:
        return math.inf
    return max(abs(start), b * (1.0 + pull) / (1.0 - pull))


def late_quantile_range(
    start: float, low: float, high: float, level: float, open_mass: float
) -> Range:
    """Quantile tracking, any steps: the range grows by the open mass (results A1, 8.1; attained).

        theta in [min(theta_1, low) - S (1 - tau), max(theta_1, high) + S tau],  S = open mass

    >>> late_quantile_range(0.0, -1.0, 1.0, 0.5, 2.0)
    Range(low=-2.0, high=2.0)
    """
    return Range(min(start, low) - open_mass * (1.0 - level), max(start, high) + open_mass * level)


def late_radius_1d(start: float, horizon: float, lipschitz: float, open_mass: float) -> float:
    """Any G1 loss, such as the logistic with soft labels: max(|theta_1|, h) + S L (results A1, 8.1).

    >>> late_radius_1d(0.0, 1.0, 1.0, 0.5)
    1.5
    """
    return max(abs(start), horizon) + open_mass * lipschitz


def late_logistic_virtual_radius(
    start: float, span: float, open_mass: float, step_odds_sum: float
) -> float:
    """Logistic mean with hard labels: bound on the sum of steps in order of service (results A1, C5).

        |v| <= log(e^|theta_1| + L e^(L S) sum eta_t e^|o_t|),   L = b - a

    ``step_odds_sum`` = sum of eta_t e^|o_t| (no offset: sum of eta_t). v over the posted tickets ends at the
    present state, so this bounds the average; on the way |theta| <= |v| + L S.

    >>> round(late_logistic_virtual_radius(0.0, 1.0, 0.0, 100.0), 3)
    4.615
    """
    growth = log_or_minus_infinity(span * step_odds_sum) + span * open_mass
    return logaddexp(abs(start), growth)


def late_logistic_radius_by_delay(
    start: float, span: float, eta: float, n: float, delay: int
) -> float:
    """The same with every delay at most D: log(max(e^|theta_1|, e^s) + n s e^((2 D + 1) s)) (result 8.1)."""
    s = eta * span
    return logaddexp(max(abs(start), s), log_or_minus_infinity(n * s) + (2 * delay + 1) * s)


def late_pull_growth(
    kappa: float, lipschitz_squared: float, open_mass: float, step_sum: float, n: float
) -> float:
    """Growth of ||v||^2 for ||g|| <= L, g'theta >= -kappa, any order (result A1, features).

        sum of 2 eta kappa + eta^2 L^2 + 2 eta A_t L^2,   A_t = mass open when t is served <= S - eta_t

    Each term is increasing and concave in eta_t, so the sum is at most n times its value at the mean step.
    For a constant step and at most P open: n eta (2 kappa + eta L^2 (1 + 2 (P - 1))).
    Only tickets that share a feature with the one served count in the open mass.

    >>> round(late_pull_growth(0.0, 1.0, 0.3, 1.0, 10), 12)
    0.5
    """
    mean_step = min(step_sum / n, open_mass)
    return step_sum * (2.0 * kappa + 2.0 * open_mass * lipschitz_squared) - (
        n * mean_step**2 * lipschitz_squared
    )


def late_squared_growth(square_sum: float, size: float, crossing_mass: float) -> float:
    """Growth of ||v||^2 for the squared error with features: sum eta r^2/(2 - c^2 M) (result A1).

    M = largest of eta_t + A_t + A'_t: mass open when t is served plus mass served while t is open. It needs a
    bounded delay: M <= (2 D + 1) eta. ``square_sum`` = sum of eta_t r_t^2, or b^2 sum eta_t.
    Infinite from c^2 M = 2 on.

    >>> late_squared_growth(100.0, 1.0, 1.0)
    100.0
    """
    room = 2.0 - size * crossing_mass
    return square_sum / room if room > 0.0 else math.inf


def late_unposted_average(
    displacement: float, lipschitz: float, open_count: float, eta: float, n: float
) -> float:
    """Average over ALL rounds, the open ones included: ||theta_1 - theta||/(eta n) + open L/n (result 8.1).

    >>> late_unposted_average(1.0, 1.0, 50, 0.1, 100)
    0.6
    """
    return abs(displacement) / (eta * n) + min(open_count, n) * lipschitz / n


def late_service_diameter_squared(radius: float, b: float, open_mass: float) -> float:
    """Diameter of the path in order of service, squared error: 2 (R + S (R + b)) (result A2).

    With ticket-fixed steps nonincreasing in order of service, |sum of g| <= diameter/eta_min; with steps
    fixed at posting, nonincreasing in order of posting, 2 R takes its place.

    >>> late_service_diameter_squared(1.0, 1.0, 0.5)
    4.0
    """
    return 2.0 * (radius + open_mass * (radius + b))


def late_service_diameter_quantile(
    start: float, low: float, high: float, open_mass: float
) -> float:
    """The same for the quantile: max(theta_1, high) - min(theta_1, low) + 2 S (result A2).

    >>> late_service_diameter_quantile(0.0, -1.0, 1.0, 0.5)
    3.0
    """
    return max(start, high) - min(start, low) + 2.0 * open_mass


def capped_step(eta: float, cap: float, most_open: int) -> float:
    """min(eta, c/P): the late-label cap, P = most tickets ever open at once (results A3, A4).

    >>> capped_step(0.05, 0.1, 10)
    0.01
    """
    return min(eta, cap / most_open)


def capped_radius_ticket_fixed(b: float, cap: float, most_open: int) -> float:
    """Squared error, steps min(eta, c/P_t) fixed at serving, c <= 1, |theta_1| <= b (result A3a).

        R + b <= 2 b Gamma(P + c)/(Gamma(P) Gamma(1 + c)) ~ 2 b P^c

    >>> round(capped_radius_ticket_fixed(1.0, 0.1, 100), 2)
    2.33
    """
    if cap > 1.0:
        return math.inf
    p = float(most_open)
    factor = math.exp(math.lgamma(p + cap) - math.lgamma(p) - math.lgamma(1.0 + cap))
    return b * (2.0 * factor - 1.0)


def capped_radius_free_first(b: float, eta: float, cap: float, most_open: int) -> float:
    """The same when the step is left uncapped while only one ticket is open, eta <= 1 (result A3a).

        R + b <= 2 b (1 + max(c, eta)) prod_{2 <= j < P} (1 + c/j)        (attained)

    >>> round(capped_radius_free_first(1.0, 0.5, 0.1, 2), 12)
    2.0
    """
    if cap > 1.0 or eta > 1.0:
        return math.inf
    if most_open < 2:
        return b
    p = float(most_open)
    product = math.exp(math.lgamma(p + cap) - math.lgamma(p) - math.lgamma(2.0 + cap))
    return b * (2.0 * (1.0 + max(cap, eta)) * product - 1.0)


def capped_open_mass(eta: float, cap: float, most_open: int) -> float:
    """Open mass of capped tickets: the j-th oldest was served with j open, so at most c/j (result A3a).

    max(c, eta) + c (1/2 + ... + 1/P) when the step is uncapped with one open ticket.
    """
    if most_open <= 100_000:
        tail = math.fsum(1.0 / j for j in range(2, most_open + 1))
    else:
        tail = math.log(most_open) - 0.4227843350984671 + 0.5 / most_open
    return max(cap, eta) + cap * tail if most_open > 1 else eta


def capped_radius_at_posting(b: float, cap: float) -> float:
    """Squared error, steps capped again at posting to c/P_now, c < 1: R <= b (1 + c)/(1 - c) (result A3b).

    >>> round(capped_radius_at_posting(1.0, 0.1), 2)
    1.22
    """
    return b * (1.0 + cap) / (1.0 - cap) if cap < 1.0 else math.inf
