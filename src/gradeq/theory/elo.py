"""Elo without a penalty, for every schedule and every result in [0, 1]: result 8.5.

A game has z = -1 at a and +1 at b. Ratings are in natural log-odds and centred: their sum is conserved.
What vanishes is the SIGNED bias of a player, mean predicted win probability minus win rate over the games
of that player; the unsigned difference that the paper's introduction prints does not vanish.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradeq.numerics import LAMBERT_W

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


def elo_sup_radius(
    players: int, eta_max: float, step_sum: float, start: Sequence[float] = ()
) -> float:
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
    return min(
        elo_norm_radius(norm, players, eta_max, step_sum),
        elo_sup_radius(players, eta_max, step_sum, start),
    )


def elo_player_bias(start: float, radius: float, eta: float, player_games: float) -> float:
    """|mean predicted win probability - win rate| of one player (result 8.5).

    (|theta_1m| + R)/(eta n_m); exactly |theta_1m - theta_m|/(eta n_m) with a constant step.

    >>> elo_player_bias(0.0, 2.0, 0.1, 200)
    0.1
    """
    return (abs(start) + radius) / (eta * player_games)
