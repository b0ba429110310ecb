"""Late labels, in any order: results 8.1 and A1 to A5.

A ticket is served at one state and posted later. Its *mass* is the step it was applied with times its
weight. ``open_mass`` is the largest mass of tickets of one group, just after one of them is served, that are
open and will be posted; ``stale_mass`` leaves out those served at the present state.

The lateness rule decides the step when the label is posted: w s <= c/d for a label of lateness d >= 2, and
w s <= eta w always. The ages of open tickets differ (the newest has age 1) and a ticket of age a is posted
with d >= a, so the masses are at most sums over the ages 2..D (:func:`age_mass`), D the largest lateness. A
ticket whose label never comes has no mass.
"""

from __future__ import annotations

import math

from gradeq.theory.scalar import Range, log_or_minus_infinity, logaddexp

_TERMS = 64  # terms of a sum that are added one by one before an integral takes over


def age_mass(step: float, cap: float | None, lateness: float, others: float = 0.0) -> float:
    """Mass of tickets with ages 2..D: sum of min(step, c/(age + others)); (D - 1) step without a cap (A1).

    ``step`` is the largest step times the largest weight, ``others`` what other groups of a row add to P at least.
    At most c (H_D - 1). From the 65th capped term on 1/a is replaced by its integral from a - 1/2 to a + 1/2,
    which is larger because 1/x is convex.

    >>> age_mass(0.5, None, 3), age_mass(0.5, 0.5, 3) == 0.5 / 2 + 0.5 / 3
    (1.0, True)
    """
    last = lateness + others
    flat = _uncapped_until(step, cap, 1.0 + others, last)
    if cap is None or flat >= last:
        return max(lateness - 1.0, 0.0) * step
    middle = min(last, flat + _TERMS)
    tail = math.fsum(1.0 / (flat + i) for i in range(1, int(middle - flat) + 1))
    tail += math.log((2.0 * last + 1.0) / (2.0 * middle + 1.0))
    return (flat - 1.0 - others) * step + cap * tail


def age_root_mass(step: float, cap: float | None, lateness: float) -> float:
    """Sum over ages 2..D of min(step, sqrt(step c/age)); (D - 1) step without a cap (A1, features).

    ``step`` includes the largest squared norm Z^2. It bounds the sum of w s r Z over open rows of norm r <= Z when
    w s <= min(eta w, c/(age r^2)): the worst r is where both are equal. At most 2 sqrt(step c D).

    >>> age_root_mass(0.5, None, 3), round(age_root_mass(0.5, 0.5, 2), 4)
    (1.0, 0.3536)
    """
    flat = _uncapped_until(step, cap, 1.0, lateness)
    if cap is None or flat >= lateness:
        return max(lateness - 1.0, 0.0) * step
    middle = min(lateness, flat + _TERMS)
    tail = math.fsum(1.0 / math.sqrt(flat + i) for i in range(1, int(middle - flat) + 1))
    tail += 2.0 * (math.sqrt(lateness + 0.5) - math.sqrt(middle + 0.5))
    return (flat - 1.0) * step + math.sqrt(step) * math.sqrt(cap) * tail


def _uncapped_until(step: float, cap: float | None, first: float, last: float) -> float:
    """The last number up to ``last`` by which the cap may be divided without acting; at least ``first``."""
    if cap is None or step * last <= cap:
        return last
    return max(first, float(math.floor(cap / step)))


def crossing_mass(step: float, cap: float | None, lateness: float) -> float:
    """M of :func:`late_squared_growth` under the lateness rule: step + 2 sqrt((D-1) step min(c, (D-1) step)).

    ``step`` includes the largest squared norm (or number of groups per row) J. Ticket j of lateness d_g in its
    groups g meets at most x = sum (d_g - 1) rows served while it is open, each of mass <= eta w; its own mass is at
    most min(eta w, c/sum d_g). Each cross term 2 |e_t e_j| is split as a e_t^2 + e_j^2/a with a = eta w x/y: then j
    pays at most y and row t at most J (D - 1) eta w min(c, eta w x)/y; y is chosen to make both equal. Features: the
    same with norms, x = d - 1 and a = eta w Z r_j x/y. Without a cap: (2 D - 1) step.

    >>> crossing_mass(0.25, None, 2), crossing_mass(0.25, 0.25, 5)
    (0.75, 1.25)
    """
    later = max(lateness - 1.0, 0.0) * step
    if cap is None or later <= cap:
        return step + 2.0 * later
    return step + 2.0 * math.sqrt(later) * math.sqrt(cap)


def late_squared_radius(start: float, b: float, open_mass: float, stale_mass: float) -> float:
    """Squared error, |y - f| <= b: (H + S b)/(1 - S), H = max(|theta_1|, b) (result A1).

    S is the stale mass, or the open mass less 1 if that is larger. Infinite from S = 1 on: there a
    hold-and-release schedule diverges. One parameter, or one per disjoint group with its own masses.
    Any order, any delay, any steps; the last row served at a state up to H is where the count begins
    (:func:`late_squared_range`).

    >>> late_squared_radius(0.0, 1.0, 0.1, 0.0), round(late_squared_radius(0.0, 1.0, 0.6, 0.5), 12)
    (1.0, 3.0)
    """
    s = max(stale_mass, open_mass - 1.0)
    return (max(abs(start), b) + s * b) / (1.0 - s) if s < 1.0 else math.inf


def late_squared_range(start: float, low: float, high: float, open_mass: float, stale_mass: float) -> Range:
    """The same with both ends, y - f in [low, high] (result A1).

        U = top + S (high - L),  L = bottom - S (U - low),  top = max(theta_1, high), bottom = min(theta_1, low)

    Rows served above top push down, so count from the last row served at a state x <= top. Up can push only what
    was open then: tickets served at x with mass m bring x to at most top if m <= 1 (else add (m - 1)(high - L)),
    stale ones add at most S (high - L). Symmetric below; the two lines are solved for U and L.

    >>> late_squared_range(0.0, -1.0, 1.0, 0.6, 0.5) == Range(-3.0, 3.0)
    True
    """
    s = max(stale_mass, open_mass - 1.0, 0.0)
    if not s < 1.0:
        return Range(-math.inf, math.inf)
    bottom, top, room = min(start, low), max(start, high), (1.0 - s) * (1.0 + s)
    return Range(
        (bottom - s * (top - low) - s * (s * high)) / room, (top + s * (high - bottom) - s * (s * low)) / room
    )


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


def late_quantile_range(start: float, low: float, high: float, level: float, open_mass: float) -> Range:
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


def late_logistic_virtual_radius(start: float, span: float, open_mass: float, step_odds_sum: float) -> float:
    """Logistic mean with hard labels: bound on the sum of steps in order of service (results A1, C5).

        |v| <= log(e^|theta_1| + L e^(L S) sum eta_t e^|o_t|),   L = b - a

    ``step_odds_sum`` = sum of eta_t e^|o_t| (no offset: sum of eta_t). v over the posted tickets ends at the
    present state, so this bounds the average; on the way |theta| <= |v| + L S.

    >>> round(late_logistic_virtual_radius(0.0, 1.0, 0.0, 100.0), 3)
    4.615
    """
    growth = log_or_minus_infinity(span * step_odds_sum) + span * open_mass
    return logaddexp(abs(start), growth)


def late_logistic_radius_by_delay(start: float, span: float, eta: float, n: float, delay: int) -> float:
    """The same with every delay at most D: log(max(e^|theta_1|, e^s) + n s e^((2 D + 1) s)) (result 8.1)."""
    s = eta * span
    return logaddexp(max(abs(start), s), log_or_minus_infinity(n * s) + (2 * delay + 1) * s)


def late_pull_growth(
    kappa: float, lipschitz_squared: float, eta_max: float, step_sum: float, overlap: float
) -> float:
    """Growth of ||v||^2 for ||g|| <= L, g'theta >= -kappa, any order (result A1, features).

        sum of 2 eta kappa + eta^2 L^2 + 2 eta A_t,   A_t = sum of eta_j |g_j'g_t| over j open when t is served

    v adds the steps in order of service, so v_t = theta_t - sum of eta_j g_j over what is open, and
    ||v_{t+1}||^2 - ||v_t||^2 is the line above. ``overlap`` bounds A_t: tickets that share no feature add nothing.
    v over the posted tickets ends at the present state. A constant step and at most P open: A <= (P - 1) eta L^2.

    >>> late_pull_growth(1.0, 2.0, 0.5, 10.0, 0.25)
    35.0
    """
    return step_sum * (2.0 * kappa + eta_max * lipschitz_squared + 2.0 * overlap)


def late_squared_growth(square_sum: float, size: float, crossing: float) -> float:
    """Growth of ||v||^2 for the squared error with features: sum eta r^2/(2 - c^2 M) (result A1).

    M = largest of eta_t + A_t + A'_t: mass open when t is served plus mass served while t is open. It needs a
    bounded delay: M <= (2 D + 1) eta; under the lateness rule :func:`crossing_mass` is c^2 M. ``square_sum`` = sum of
    eta_t r_t^2, or b^2 sum eta_t. Infinite from c^2 M = 2 on.

    >>> late_squared_growth(100.0, 1.0, 1.0)
    100.0
    """
    room = 2.0 - size * crossing
    return square_sum / room if room > 0.0 else math.inf


def late_squared_wander(radius: float, open_mass: float, room: float) -> float:
    """How far a coordinate of theta is from that of v at any time: 2 R sqrt(S/(2 - M)) (result A1, features).

    R = sqrt(B/(2 - M)) bounds v, B = sum eta r^2. The growth of ||v||^2 also gives (2 - M) Q <= 2 sqrt(Q B) for
    Q = sum eta e^2, and the open tickets of total mass S in that coordinate move it by at most sqrt(S Q).

    >>> late_squared_wander(1.0, 0.25, 1.0)
    1.0
    """
    return 2.0 * radius * math.sqrt(open_mass / room) if room > 0.0 else math.inf


def late_unposted_average(displacement: float, lipschitz: float, open_count: float, eta: float, n: float) -> float:
    """Average over ALL rounds, the open ones included: ||theta_1 - theta||/(eta n) + open L/n (result 8.1).

    >>> late_unposted_average(1.0, 1.0, 50, 0.1, 100)
    0.6
    """
    return abs(displacement) / (eta * n) + min(open_count, n) * lipschitz / n


def late_service_diameter_squared(radius: float, b: float, open_mass: float) -> float:
    """Diameter of the path in order of service, squared error: 2 (R + S (R + b)) (result A2).

    With ticket-fixed steps nonincreasing in order of service, |sum of g| <= diameter/eta_min; with steps
    decided at posting, 1.2 in order of posting with the diameter of theta itself takes its place.

    >>> late_service_diameter_squared(1.0, 1.0, 0.5)
    4.0
    """
    return 2.0 * (radius + open_mass * (radius + b))


def late_service_diameter_quantile(start: float, low: float, high: float, open_mass: float) -> float:
    """The same for the quantile: max(theta_1, high) - min(theta_1, low) + 2 S (result A2).

    >>> late_service_diameter_quantile(0.0, -1.0, 1.0, 0.5)
    3.0
    """
    return max(start, high) - min(start, low) + 2.0 * open_mass


def capped_step(eta: float, cap: float, most_open: int) -> float:
    """min(eta, c/P): a cap by the most tickets ever open at once, P (results A3, A4).

    >>> capped_step(0.05, 0.1, 10)
    0.01
    """
    return min(eta, cap / most_open)


def capped_radius_ticket_fixed(b: float, cap: float, most_open: int) -> float:
    """Squared error, steps min(eta, c/P_t) fixed at serving, c <= 1, |theta_1| <= b (result A3a).

        R + b <= 2 b Gamma(P + c)/(Gamma(P) Gamma(1 + c)) ~ 2 b P^c

    It needs P to be the most ever open at serving: steps decided at posting by a renewed lateness peak can exceed it.

    >>> round(capped_radius_ticket_fixed(1.0, 0.1, 100), 2)
    2.33
    """
    if cap > 1.0:
        return math.inf
    p = float(most_open)
    factor = math.exp(math.lgamma(p + cap) - math.lgamma(p) - math.lgamma(1.0 + cap))
    return b * (2.0 * factor - 1.0)


def capped_open_mass(eta: float, cap: float, most_open: int) -> float:
    """Open mass of capped tickets: the j-th oldest was served with j open, so at most c/j (result A3a).

    max(c, eta) + c (1/2 + ... + 1/P) when the step is uncapped with one open ticket. For steps decided at
    posting see :func:`age_mass`.
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
