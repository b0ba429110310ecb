"""Regret of descent on convex losses: result 1.7. With decaying steps it vanishes as the average gradient does."""

from __future__ import annotations

import math


def descent_regret(distance: float, variation: float, lipschitz: float, step_sum: float) -> float:
    """Most that descent can lose against one fixed u over all rounds, no projection needed (result 1.7).

        sum l_t(theta_t) - l_t(u) <= (D^2 V + L^2 sum eta_t)/2,   D >= ||theta_t - u||,  L >= ||g_t(theta_t)||

    V is :func:`gradeq.theory.inverse_step_variation`, 1/eta_last for nonincreasing steps. With
    a_t = ||theta_t - u||^2 convexity gives 2 (l_t(theta_t) - l_t(u)) <= 2 g_t'(theta_t - u) =
    (a_t - a_{t+1})/eta_t + eta_t ||g_t||^2, and summed by parts the first terms are at most D^2 V, because every a_t
    lies in [0, D^2]. G1 to G4 give D on the whole space; the remark after prop:restorative_lrt has a bounded set.

    >>> descent_regret(2.0, 10.0, 1.0, 4.0)
    22.0
    """
    return (distance * distance * variation + lipschitz * lipschitz * step_sum) / 2.0


def regret_with_power_steps(
    distance: float, lipschitz: float, c: float, alpha: float, n: float
) -> float:
    """The same per round for eta_t = c t^-alpha, 0 <= alpha < 1 (result 1.7).

        D^2/(2 c n^(1 - alpha)) + c L^2/(2 (1 - alpha) n^alpha)

    because sum t^-alpha <= n^(1 - alpha)/(1 - alpha). For 0 < alpha < 1 both terms vanish, and so does
    :func:`gradeq.theory.average_with_power_steps`: no regret AND equilibrium. At alpha = 0 the regret need not.

    >>> regret_with_power_steps(2.0, 1.0, 1.0, 0.5, 4)
    1.5
    """
    first = distance * distance / (2.0 * c * math.pow(n, 1.0 - alpha))
    return first + c * lipschitz * lipschitz / (2.0 * (1.0 - alpha) * math.pow(n, alpha))
