"""Lasso and ridge: bounded parameters, and a floor under the average."""

import math
import random

import pytest

from gradeq.numerics import LAMBERT_W
from gradeq.theory import (
    bounded_ridge_radius,
    lasso_horizon,
    lasso_radius,
    logistic_lasso_average,
    penalised_average,
    ridge_constant,
    ridge_radius,
    scalar_ridge_radius,
)
from theory.adversaries import SLACK, Game, play

RULES = ("up", "greedy", "extreme", "alternate", "swing")


@pytest.mark.parametrize("strength", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("eta", [0.05, 0.5, 3.0])
def test_logistic_lasso_stays_inside_its_radius(strength: float, eta: float) -> None:
    rng = random.Random(2)
    for rows in ("spiral", "random"):
        for labels in RULES:
            game = Game(
                task="probability_shift", structure="features", dimension=3, eta=eta, rows=rows,
                labels=labels, penalty="lasso", strength=strength,
            )  # fmt: skip
            played = play(game, rng)
            lipschitz = 2.0 + strength * math.sqrt(3)
            radius = lasso_radius(0.0, 2.0 * LAMBERT_W, lipschitz, strength, eta)
            assert played.farthest_norm <= radius * SLACK
            average = math.sqrt(sum(v * v for v in played.total)) / played.n
            bound = logistic_lasso_average(0.0, 2.0, 1.0, strength, 3, eta, played.n)
            assert average <= bound * SLACK
            printed = (2 + strength * math.sqrt(3)) / played.n + bound
            assert average <= printed


def test_the_lasso_radius_is_attained_when_the_step_is_large() -> None:
    # From 0 one step has length eta ||g||; the third term of the radius is what it can reach at most.
    kappa, lipschitz, strength, eta = 0.0, 1.0, 1.0, 1.0
    h = lasso_horizon(kappa, lipschitz, strength, eta)
    assert lasso_radius(0.0, kappa, lipschitz, strength, eta) == pytest.approx(eta * lipschitz)
    assert h < eta * lipschitz


@pytest.mark.parametrize("strength", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("eta", [0.05, 0.3, 0.6])
def test_squared_ridge_stays_inside_its_radius(strength: float, eta: float) -> None:
    rng = random.Random(2)
    for rows in ("spiral", "random"):
        for labels in RULES:
            game = Game(
                structure="features", dimension=3, eta=eta, rows=rows, labels=labels,
                penalty="ridge", strength=strength, rounds=600,
            )  # fmt: skip
            played = play(game, rng)
            radius = ridge_radius(0.0, 1.0, 1.0 + 1e-12, strength, eta)
            assert played.farthest_norm <= radius * SLACK
            average = math.sqrt(sum(v * v for v in played.total)) / played.n
            assert average <= penalised_average(0.0, radius, strength * radius, eta, played.n)


def test_the_ridge_radius_is_attained() -> None:
    b, c2, strength, eta = 1.0, 1.0, 0.1, 0.3
    radius = ridge_radius(0.0, b, c2, strength, eta)
    # One step from the radius with the margin that maximises the next norm comes back to the radius.
    best = 0.0
    for k in range(-4000, 4001):
        m = k / 1000.0
        e = m - b
        after = (1 - eta * strength) ** 2 * radius**2
        after += -2 * eta * (1 - eta * strength) * e * m + eta**2 * e * e * c2
        best = max(best, after)
    assert math.sqrt(best) == pytest.approx(radius, rel=1e-6)


def test_the_printed_ridge_constant_is_the_same_number() -> None:
    rng = random.Random(0)
    for _ in range(500):
        strength, c2, b = rng.uniform(0.01, 1), rng.uniform(0.1, 2), rng.uniform(0.1, 3)
        eta = rng.uniform(0.01, 0.99) / (strength + c2 / 2)
        le, ce = strength * eta, eta * c2
        first = (1 - le - ce) ** 2 * b**2 / (4 * (1 - le - ce / 2)) + ce * b**2 / 2
        assert ridge_constant(b, c2, strength, eta) == pytest.approx(first / (1 - le / 2))
    assert ridge_constant(1.0, 1.0, 1.0, 1.0) == math.inf


@pytest.mark.parametrize("eta", [0.1, 0.7, 1.2])
def test_one_parameter_with_ridge_is_attained(eta: float) -> None:
    strength, theta, farthest = 0.4, 0.0, 0.0
    for t in range(3000):
        y = 1.0 if eta * (1 + strength) <= 1 or t % 2 else -1.0
        theta -= eta * (theta - y + strength * theta)
        farthest = max(farthest, abs(theta))
    assert farthest == pytest.approx(scalar_ridge_radius(0.0, 1.0, strength, eta), rel=1e-6)
    assert scalar_ridge_radius(0.0, 1.0, strength, 2.0) == math.inf


@pytest.mark.parametrize("eta", [0.05, 0.5, 2.0])
def test_ridge_bounds_every_error_of_bounded_size(eta: float) -> None:
    rng, strength = random.Random(7), 0.2
    for rows in ("spiral", "random"):
        for labels in RULES:
            game = Game(
                task="probability_shift", structure="features", dimension=3, eta=eta, rows=rows,
                labels=labels, penalty="ridge", strength=strength, rounds=500,
            )  # fmt: skip
            played = play(game, rng)
            radius = bounded_ridge_radius(0.0, 2.0 * LAMBERT_W, 2.0, strength, eta)
            assert played.farthest_norm <= radius * SLACK
    assert bounded_ridge_radius(0.0, 1.0, 1.0, 1.0, 1.5) == math.inf
