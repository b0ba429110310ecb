"""Arbitrary features without a penalty: growth like sqrt(n), attained by orthogonal spirals."""

import math
import random

import pytest

from gradeq.theory import (
    best_squared_average,
    clip_bound,
    feature_average,
    group_average,
    logistic_growth,
    logit_growth,
    quantile_growth,
    quantile_pull,
    squared_growth,
)
from theory.adversaries import SLACK, Game, Played, play


def growth(played: Played) -> float:
    game, n, size = played.game, played.n, played.size * SLACK
    if game.task == "mean":
        return squared_growth(game.eta * n * max(game.low**2, game.high**2), size, game.eta)
    if game.task == "quantile":
        return quantile_growth(game.low, game.high, game.level, size, game.eta, game.eta * n)
    if game.task == "probability_logit":
        return logit_growth(clip_bound(game.clip), size, game.eta, game.eta * n)
    return logistic_growth(2.0, size, game.eta, game.eta * n)


@pytest.mark.parametrize(
    ("task", "low", "high", "eta"),
    [
        ("mean", -1.0, 1.0, 0.3),
        ("mean", -2.0, 2.0, 0.6),
        ("quantile", -1.0, 1.0, 0.2),
        ("probability_shift", -1.0, 1.0, 0.02),
        ("probability_logit", 0.0, 1.0, 0.02),
    ],
)
def test_the_spiral_attains_the_growth_and_nothing_exceeds_it(task: str, low: float, high: float, eta: float) -> None:
    rng = random.Random(1)
    closest = 0.0
    for rows in ("spiral", "random"):
        for labels in ("up", "greedy", "extreme"):
            game = Game(
                task=task, structure="features", dimension=3, size=2.0, low=low, high=high,
                eta=eta, rows=rows, labels=labels, rounds=1500, level=0.5, clip=0.1,
            )  # fmt: skip
            played = play(game, rng)
            radius = math.sqrt(growth(played))
            assert played.farthest_norm <= radius * SLACK
            total = math.sqrt(sum(v * v for v in played.total))
            assert total / played.n <= feature_average(0.0, radius**2, eta, played.n) * SLACK
            closest = max(closest, played.farthest_norm / radius)
    assert closest > 0.93


def test_multiaccuracy_is_the_norm_of_the_same_average() -> None:
    rng = random.Random(3)
    played = play(Game(structure="features", dimension=3, eta=0.4, labels="extreme"), rng)
    bound = feature_average(0.0, growth(played), 0.4, played.n)
    for _ in range(50):
        alpha = [rng.gauss(0, 1) for _ in range(3)]
        size = math.sqrt(sum(a * a for a in alpha))
        error = sum(a / size * g for a, g in zip(alpha, played.total, strict=True)) / played.n
        assert abs(error) <= bound * SLACK


def test_the_best_step_of_the_squared_error_is_one_over_the_size() -> None:
    b, c, n = 2.0, 3.0, 50
    at = [feature_average(0.0, squared_growth(eta * n * b**2, c**2, eta), eta, n) for eta in (0.05, 1 / c**2, 0.2)]
    assert at[1] == pytest.approx(best_squared_average(b, c, n)) and at[1] == min(at)


def test_a_group_inside_overlapping_groups_pays_for_its_share() -> None:
    assert group_average(0.02, 1000, 1000) == 0.02
    assert group_average(0.02, 1000, 10) == pytest.approx(2.0)


def test_the_pull_of_the_pinball_loss_uses_both_sides() -> None:
    rng = random.Random(0)
    for _ in range(2000):
        low, level = rng.uniform(-3, 1), rng.uniform(0.05, 0.95)
        high, u = low + rng.uniform(0, 4), rng.uniform(-6, 6)
        y = rng.choice((low, high, rng.uniform(low, high)))
        assert ((y <= u) - level) * u >= -quantile_pull(low, high, level) - 1e-12


def test_growth_is_the_number_that_it_says() -> None:
    weight = 2 * 0.2784645427610738
    assert logistic_growth(2.0, 3.0, 0.1, 5.0) == pytest.approx(5.0 * (2 * weight + 0.1 * 12.0))
