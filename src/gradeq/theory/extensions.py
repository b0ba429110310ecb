"""Missing labels, two-sided intervals, levels that never cross, lazy projection: 8.2, 8.4, 8.6, 8.7.

Result 8.1 is in ``late``, 8.3 in ``scalar``, 8.5 in ``elo``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradeq.theory.scalar import Range


def observed_average(start: float, radius: float, eta: float, observed: float) -> float:
    """Missing labels: every bound with the number of OBSERVED rounds, about those rounds only (8.2).

    Nothing is implied for rounds whose label never came; result D7 says what propensities restore.

    >>> observed_average(0.0, 1.0, 0.1, 100)
    0.1
    """
    return (abs(start) + radius) / (eta * observed)


def propensity_lipschitz(lipschitz: float, propensity_min: float) -> float:
    """Size of an inverse-propensity gradient g/pi: L/pi_min (result 8.2).

    >>> propensity_lipschitz(1.0, 0.5)
    2.0
    """
    return lipschitz / propensity_min


def two_sided_coverage(upper_coverage: float, lower_coverage: float, crossing: float) -> float:
    """Coverage of [lo, hi] from its two trackers: c_hi - c_lo + frequency of hi < y < lo (result 8.4).

    c_hi counts y <= hi, c_lo counts y < lo. Crossing only adds: coverage >= 1 - alpha - e_hi - e_lo always.

    >>> two_sided_coverage(0.95, 0.05, 0.0)
    0.8999999999999999
    """
    return upper_coverage - lower_coverage + crossing


def two_sided_shortfall(upper_gap: float, lower_gap: float) -> float:
    """Most by which two-sided coverage can fall short of its target: the two gaps added (result 8.4).

    >>> two_sided_shortfall(0.01, 0.02)
    0.03
    """
    return upper_gap + lower_gap


def isotonic_ranges(
    levels: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    gaps: Sequence[float],
    eta_max: float,
    zero_scale_rounds: float = 0,
) -> list[Range]:
    """Where each u_k can be under lazy isotonic projection, from u_1 = 0 (result 8.6).

        u_k in [low_k - eta (1 - tau_k) - sum_{j<k} (G_j + v_j), high_k + eta tau_k + sum_{j>=k} (G_j + v_j)]
        v_j = eta (1 - (tau_{j+1} - tau_j))

    and 0. y - f_k in [low_k, high_k], ``gaps`` G_j = largest f_{j+1} - f_j (K - 1 of them, 0 with one
    base forecast). |coverage_k - tau_k| <= radius/(eta n). Needs the equal-weights L2 isotonic projection:
    sorting the levels or projecting greedily does not work. A round served while the scale of a sinh link was
    0 ignores u, so each such round may add one step to every u_k and one v_j to every gap.

    >>> isotonic_ranges([0.25, 0.75], [-1.0, -1.0], [1.0, 1.0], [0.0], 0.5)
    [Range(low=-1.375, high=1.375), Range(low=-1.375, high=1.375)]
    """
    drops = [
        gap + (1.0 + zero_scale_rounds) * eta_max * (1.0 - (upper - lower))
        for gap, lower, upper in zip(gaps, levels[:-1], levels[1:], strict=True)
    ]
    ranges = []
    for k, (level, low, high) in enumerate(zip(levels, lows, highs, strict=True)):
        down, up = eta_max * (1.0 - level), eta_max * level
        ranges.append(
            Range(
                min(0.0, low - down - math.fsum(drops[:k])) - zero_scale_rounds * down,
                max(0.0, high + up + math.fsum(drops[k:])) + zero_scale_rounds * up,
            )
        )
    return ranges


def lazy_growth(kappa: float, normal_kappa: float, lipschitz: float, eta: float, n: float) -> float:
    """Growth of ||u||^2 under lazy projection: n (2 eta (kappa + kappa_n) + eta^2 L^2) (result 8.7).

    g'theta >= -kappa, g'(u - theta) >= -kappa_n (0 when the negative gradient points into the set). Without
    such an inward flow ||u|| can grow linearly.

    >>> lazy_growth(1.0, 0.0, 1.0, 1.0, 3)
    9.0
    """
    return n * (2.0 * eta * (kappa + normal_kappa) + eta**2 * lipschitz**2)
