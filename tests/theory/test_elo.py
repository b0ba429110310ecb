"""Elo without a penalty: ratings grow at most like the logarithm of the games, under every schedule."""

import math
import random

import pytest

from gradeq.numerics import sigmoid
from gradeq.theory import (
    elo_excess,
    elo_growth,
    elo_norm_radius,
    elo_player_bias,
    elo_radius,
    elo_sup_radius,
    step_from_k,
)
from theory.adversaries import SLACK, Game, play


def ladder(players: int, eta: float, games: int, seed: int = 0) -> list[float]:
    """Neighbours meet where the gap is smallest, and the stronger one wins again."""
    rng, theta = random.Random(seed), [0.0] * players
    for _ in range(games):
        ranked = sorted(range(players), key=theta.__getitem__)
        gaps = [theta[ranked[k + 1]] - theta[ranked[k]] for k in range(players - 1)]
        k = gaps.index(min(gaps)) if rng.random() < 0.9 else rng.randrange(players - 1)
        low, high = ranked[k], ranked[k + 1]
        move = eta * sigmoid(theta[low] - theta[high])
        theta[low], theta[high] = theta[low] - move, theta[high] + move
    return theta


@pytest.mark.parametrize("players", [2, 3, 6])
@pytest.mark.parametrize("eta", [0.05, 0.3, 1.0])
def test_no_schedule_exceeds_the_bounds(players: int, eta: float) -> None:
    rng = random.Random(5)
    for rows in ("random", "ladder"):
        for labels in ("up", "greedy", "extreme", "random", "alternate"):
            game = Game(
                task="elo", structure="features", dimension=players, size=2.0, low=0.0, eta=eta,
                rows=rows, labels=labels,
            )  # fmt: skip
            played = play(game, rng)
            n = played.n
            assert abs(sum(played.theta)) < 1e-9  # the sum of ratings is conserved
            assert played.farthest_norm <= math.sqrt(elo_growth(eta, eta * n)) * SLACK
            assert played.farthest <= elo_norm_radius(0.0, players, eta, eta * n) * SLACK
            radius = elo_radius(players, eta, eta * n)
            assert played.farthest <= radius * SLACK
            for total, count in zip(played.total, played.counts, strict=True):
                if count:
                    assert abs(total) / count <= elo_player_bias(0.0, radius, eta, count) * SLACK


def test_the_ladder_grows_at_the_proven_rate() -> None:
    players, eta = 4, 0.5
    heights = [max(ladder(players, eta, games)) for games in (2000, 20_000)]
    rate = (players - 1) / 2 * math.log(10.0)
    assert heights[1] - heights[0] == pytest.approx(rate, rel=0.05)
    assert heights[1] <= elo_sup_radius(players, eta, eta * 20_000)


def test_any_start_is_allowed() -> None:
    rng = random.Random(7)
    for _ in range(30):
        players, eta = rng.choice((2, 5)), rng.choice((0.1, 0.5))
        start = [rng.gauss(0, 3) for _ in range(players)]
        mean = sum(start) / players
        theta = [r - mean for r in start]
        for game in range(1, 201):
            a, b = rng.sample(range(players), 2)
            y = rng.choice((0.0, 0.5, 1.0, float(theta[b] > theta[a])))
            error = sigmoid(theta[b] - theta[a]) - y
            theta[a], theta[b] = theta[a] + eta * error, theta[b] - eta * error
            assert max(map(abs, theta)) <= elo_radius(players, eta, eta * game, start) * SLACK


def test_a_k_factor_is_a_step() -> None:
    assert step_from_k(400.0) == pytest.approx(math.log(10.0))
    assert elo_sup_radius(1, 0.1, 10.0) == 0.0
    assert elo_excess([5.0, -5.0], 1.0) == pytest.approx(4.5)
