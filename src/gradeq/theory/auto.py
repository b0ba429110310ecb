"""Mixing several rates and the raw forecast, then one constant-step final layer: result B5.

The certificate is exactly that of the final layer; what is here bounds its residuals and the loss.
"""

from __future__ import annotations

import math

from gradeq.theory.harm import squared_harm_factor


def final_residual_bound(b: float, expert_radii: list[float]) -> float:
    """Residual range of the final layer over a mix of experts: b + max_k R_k (results B5, 7.5).

    >>> final_residual_bound(1.0, [0.0, 1.0])
    2.0
    """
    return b + max(expert_radii)


def bayes_mix_regret(experts: int) -> float:
    """Total log loss of the mix over that of the best of K + 1 experts: ln(K + 1) (result B5).

    Weights exp(-sum of log losses); 0/1 or soft labels. ``experts`` counts the raw forecast.

    >>> round(bayes_mix_regret(7), 3)
    1.946
    """
    return math.log(experts)


def bayes_final_log_loss(
    best_total: float, experts: int, final_eta: float, square_sum: float, size: float = 1.0
) -> float:
    """Total log loss served: best expert + ln(K + 1) + (eta_f c^2/2) sum e^2 (result B5)."""
    return best_total + bayes_mix_regret(experts) + 0.5 * final_eta * size * square_sum


def adahedge_regret(variance: float, loss_range: float, experts: int) -> float:
    """Regret of AdaHedge: sqrt(V ln K) + range (4/3 ln K + 2) (de Rooij et al. 2014; quoted in B5).

    >>> adahedge_regret(0.0, 1.0, 1)
    2.0
    """
    ln_k = math.log(experts)
    return math.sqrt(variance * ln_k) + loss_range * (4.0 / 3.0 * ln_k + 2.0)


def mixed_mse(base_mse: float, regret: float, n: float, final_eta: float) -> float:
    """MSE served by mix and final layer: (base + regret/n)/(1 - eta_f) (results B5, B1).

    >>> mixed_mse(1.0, 0.0, 10, 0.5)
    2.0
    """
    return (base_mse + regret / n) * squared_harm_factor(final_eta)


def late_mix_regret(
    experts: int, rate: float, range_squares: float, range_products: float
) -> float:
    """Exponential weights at a constant rate with late losses (result B5).

        ln K/lambda + lambda sum s_t^2/8 + (lambda/4) sum_t s_t sum_{j open} s_j,   s = range of a round's losses

    ``range_squares`` = sum s_t^2, ``range_products`` = sum of s_t s_j over the pairs open together.

    >>> late_mix_regret(1, 1.0, 8.0, 4.0)
    2.0
    """
    return math.log(experts) / rate + rate * range_squares / 8.0 + rate * range_products / 4.0
