"""Decaying steps give no regret AND equilibrium, on the whole space and against every player (result 1.7)."""

import math
import random

import numpy as np
import pytest

from gradeq.losses import Quantile, Squared
from gradeq.regret import regret
from gradeq.theory import (
    average_with_power_steps,
    average_with_varying_steps,
    descent_regret,
    inverse_step_variation,
    quantile_range,
    radius_1d,
    radius_zero_curvature,
    regret_with_power_steps,
    squared_radius,
)
from gradeq.theory.best import _steps_after
from gradeq.theory.setting import Setting
from theory.adversaries import SLACK

B = 1.0  # labels lie in [-B, B]
PLAYERS = ("up", "against", "random", "swing", "edge")


def label(player: str, theta: float, t: int, rng: random.Random) -> float:
    if player == "up":
        return B
    if player == "against":
        return -B if theta >= 0.0 else B
    if player == "swing":
        return B if math.log(t + 1) % 2 < 1 else -B
    if player == "edge":
        return min(B, theta + 1e-9)
    return rng.choice((-B, B))


def descend(loss, steps, player: str, seed: int = 0) -> tuple[list[float], list[float], list[float]]:
    """theta_t, y_t and g_t of plain descent from 0."""
    rng, theta = random.Random(seed), 0.0
    thetas, labels, slopes = [], [], []
    for t, eta in enumerate(steps, 1):
        y = label(player, theta, t, rng)
        g = loss.slope(theta, y)
        thetas.append(theta)
        labels.append(y)
        slopes.append(g)
        theta -= eta * g
    return thetas, labels, slopes


def facts(loss, eta: float) -> tuple[float, float]:
    """A radius that no iterate leaves, and a bound on the gradients within it."""
    if isinstance(loss, Squared):
        radius = squared_radius(0.0, B, eta)
        return radius, radius + B
    m = max(loss.level, 1.0 - loss.level)
    return radius_1d(0.0, B, m, eta), m


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("loss", [Squared(), Quantile(0.9), Quantile(0.5)], ids=repr)
@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.5, 0.8])
def test_power_steps_keep_regret_and_average_gradient_within_their_bounds(alpha: float, loss, player: str) -> None:
    c = 0.5
    thetas, labels, slopes = descend(loss, [c * t**-alpha for t in range(1, 1001)], player)
    radius, lipschitz = facts(loss, c)
    for t in (1, 2, 10, 100, 1000):
        most = regret_with_power_steps(radius + B, lipschitz, c, alpha, t)
        # The best constant lies among the labels, so within radius + B of every iterate.
        assert regret(loss, thetas[:t], labels[:t]) / t <= most * SLACK
        average = math.fsum(slopes[:t]) / t
        assert abs(average) <= average_with_power_steps(radius, c, alpha, t) * SLACK


@pytest.mark.parametrize("loss", [Squared(), Quantile(0.9)], ids=repr)
def test_both_vanish_where_a_constant_step_keeps_its_regret(loss) -> None:
    def ends(alpha: float) -> tuple[float, float]:
        steps = [0.5 * t**-alpha for t in range(1, 20_001)]
        thetas, labels, slopes = descend(loss, steps, "random")
        return regret(loss, thetas, labels) / len(steps), abs(math.fsum(slopes)) / len(steps)

    constant, decaying = ends(0.0), ends(0.5)
    assert constant[0] > 0.02 and constant[1] < 1e-3
    assert decaying[0] < 0.003 and decaying[1] < 1e-3


@pytest.mark.parametrize("seed", range(12))
def test_any_steps_keep_their_regret_bound_against_every_comparator(seed: int) -> None:
    rng = random.Random(seed)
    loss = (Squared(), Quantile(rng.uniform(0.1, 0.9)))[seed % 2]
    steps = [rng.uniform(0.05, 0.9) for _ in range(300)]
    thetas, labels, slopes = descend(loss, steps, PLAYERS[seed % 5], seed)
    radius, lipschitz = facts(loss, max(steps))
    variation = inverse_step_variation(steps)
    for u in (-2.0, 0.0, rng.uniform(-1, 1), 1.5):
        most = descent_regret(radius + abs(u), variation, lipschitz, sum(steps))
        assert regret(loss, thetas, labels, u) <= most * SLACK
    average = abs(math.fsum(slopes)) / len(steps)
    assert average <= average_with_varying_steps(2 * radius, variation, len(steps)) * SLACK


@pytest.mark.parametrize("dimension", [2, 5])
@pytest.mark.parametrize("alpha", [0.25, 0.5, 0.75])
def test_a_spiral_in_many_dimensions_keeps_both_bounds(dimension: int, alpha: float) -> None:
    """l_t = L |v_t'theta| with v_t at right angles to theta_t: G2, where the radius itself grows."""
    rng, lipschitz, c = np.random.default_rng(dimension), 2.0, 0.7
    theta, total, steps, losses = np.zeros(dimension), np.zeros(dimension), [], []
    rows = []
    for t in range(1, 401):
        eta = c * t**-alpha
        v = rng.normal(size=dimension)
        size = float(theta @ theta)
        v = v - (v @ theta) / size * theta if size else v
        v /= np.linalg.norm(v)
        g = lipschitz * v  # a slope at the kink v'theta = 0
        losses.append(lipschitz * abs(float(v @ theta)))
        rows.append(v)
        total, theta = total + g, theta - eta * g
        steps.append(eta)
        squares = math.fsum(e * e for e in steps)
        radius = radius_zero_curvature(0.0, lipschitz, squares, 0.0)
        assert np.linalg.norm(theta) == pytest.approx(radius, rel=1e-9)  # attained
        average = np.linalg.norm(total) / t
        assert average <= average_with_power_steps(radius, c, alpha, t) * SLACK
        for u in (np.zeros(dimension), np.eye(dimension)[0]):
            fixed = lipschitz * float(np.abs(np.array(rows) @ u).sum())
            distance = radius + float(np.linalg.norm(u))
            most = regret_with_power_steps(distance, lipschitz, c, alpha, t)
            assert (math.fsum(losses) - fixed) / t <= most * SLACK


def test_the_regret_bound_is_attained_by_one_long_step() -> None:
    # From u + D one step of length eta L = D towards u: a_2 = 0, and the bound is an equality.
    distance, lipschitz = 3.0, 2.0
    eta = distance / lipschitz
    lost = lipschitz * distance  # l(theta_1) - l(u) for the linear loss L theta
    assert descent_regret(distance, 1.0 / eta, lipschitz, eta) == pytest.approx(lost)


def test_the_interval_of_a_quantile_gives_a_sharper_distance() -> None:
    c, alpha = 0.5, 0.5
    steps = [c * t**-alpha for t in range(1, 501)]
    low, high = quantile_range(0.0, -B, B, 0.9, c)
    for player in PLAYERS:
        thetas, labels, _ = descend(Quantile(0.9), steps, player)
        assert all(low <= theta <= high for theta in thetas)
        most = regret_with_power_steps(high - low, 0.9, c, alpha, len(steps))
        assert regret(Quantile(0.9), thetas, labels) / len(steps) <= most * SLACK


@pytest.mark.parametrize("alpha", [0.2, 0.4, 0.5, 0.8])
def test_sums_of_steps_are_foretold_as_the_schedule_falls(alpha: float) -> None:
    def sums(n: int) -> tuple[float, float]:
        steps = 0.3 * np.arange(1, n + 1) ** -alpha
        return float(steps.sum()), float((steps * steps).sum())

    mass, squares = sums(1000)
    setting = Setting(
        task="mean", n=1000, eta=0.3, decay=alpha, low=-1.0, high=1.0, step_mass=mass, step_squares=squares
    )  # fmt: skip
    found = _steps_after(setting, 9000)
    assert (found["step_mass"], found["step_squares"]) == pytest.approx(sums(9000), rel=1e-3)
