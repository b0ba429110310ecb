"""Lasso and ridge in proximal form: results 6.4 and 6.5. The paper states none.

The step is taken first, z = theta - eta g, then the penalty. ``growth`` is K, the most that the step adds to the
squared norm, ||z||^2 <= ||theta||^2 + K: what results 5.1 to 5.3 say of one round (with eta for the sum of steps).
The average of g follows from the radius by :func:`gradeq.theory.penalised_average`: with n = (z - theta+)/eta the
slope of the penalty, sum (g + n) = (theta_1 - theta_{T+1})/eta.
"""

from __future__ import annotations

import math

from gradeq.theory.penalised import ridge_closed_radius


def proximal_ridge_radius(start: float, growth: float, strength: float, eta: float) -> float:
    """max(||theta_1||, sqrt(K/((1 + eta lambda)^2 - 1))), for (lambda/2)||theta||^2; any strength (result 6.4).

    theta+ = z/(1 + eta lambda), so (1 + eta lambda)^2 ||theta+||^2 <= ||theta||^2 + K, and a theta within the radius
    stays within it. A spiral attains it where K is attained (5.2, 5.3).

    >>> proximal_ridge_radius(0.0, 3.0, 1.0, 1.0)
    1.0
    """
    return max(abs(start), math.sqrt(growth / (eta * strength * (2.0 + eta * strength))))


def proximal_lasso_radius(start: float, growth: float, strength: float, eta: float) -> float:
    """max(||theta_1||, (K/(eta lambda) - eta lambda)/2), for lambda ||theta||_1; any strength (result 6.5).

    z = theta+ + eta lambda s with s a slope of ||theta+||_1, so ||z||^2 = ||theta+||^2 + 2 eta lambda ||theta+||_1 +
    (eta lambda ||s||)^2. Unless theta+ is 0, ||s|| >= 1 and ||theta+||_1 >= ||theta+||, so
    (||theta+|| + eta lambda)^2 <= ||theta||^2 + K, and a theta within the radius stays within it. It covers the
    squared error too.

    >>> proximal_lasso_radius(0.0, 3.0, 1.0, 1.0)
    1.0
    """
    cut = eta * strength
    return max(abs(start), (growth / cut - cut) / 2.0)


def proximal_ridge_closed_radius(growth: float, strength: float, eta: float, n: float) -> float:
    """R of R^2 <- (R^2 + K)/(1 + eta lambda)^2 from 0 after n rounds (result 6.4), at most sqrt(n K).

    >>> proximal_ridge_closed_radius(4.0, 1.0, 1.0, 1)
    1.0
    """
    kept = 1.0 / (1.0 + eta * strength)
    return kept * ridge_closed_radius(growth, kept, n)
