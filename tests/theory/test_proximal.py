"""Lasso and ridge in proximal form: no player drives theta out of its radius, and the average follows."""

import math

import numpy as np
import pytest

from gradeq import Learner
from gradeq.geometries import Shrink, SoftThreshold
from gradeq.losses import Logistic, Quantile, Squared
from gradeq.numerics import LAMBERT_W, sigmoid
from gradeq.theory import (
    logistic_growth,
    penalised_average,
    proximal_lasso_radius,
    proximal_ridge_radius,
    quantile_growth,
    squared_growth,
)
from theory.adversaries import SLACK

LEVEL = 0.8
TASKS = ("mean", "probability", "quantile")
PLAYERS = ("spiral", "axis", "sparse", "random", "greedy")


def error(task: str, margin: float, y: float) -> float:
    if task == "mean":
        return margin - y
    if task == "quantile":
        return (y <= margin) - LEVEL
    return 2.0 * sigmoid(margin) - 1.0 - y


def growth(task: str, eta: float, size: float) -> float:
    """K of one round, labels in [-1, 1]."""
    if task == "mean":
        return squared_growth(eta, size, eta)
    if task == "quantile":
        return quantile_growth(-1.0, 1.0, LEVEL, size, eta, eta)
    return logistic_growth(2.0, size, eta, eta)


def best_margin(task: str, eta: float, size: float) -> float:
    """Where one step with the label 1 adds most to the squared norm."""
    if task == "mean":
        return 1.0 - 1.0 / (2.0 - eta * size)
    return 1.0 - 1e-9 if task == "quantile" else 1.0 + LAMBERT_W


def row(player: str, theta: np.ndarray, margin: float, c: float, rng) -> np.ndarray:
    """A row of norm c: with the margin that hurts, the rest across; or along one axis; or anything."""
    d, length = len(theta), float(np.linalg.norm(theta))
    if player == "axis" or (player == "sparse" and rng.random() < 0.7):
        return c * np.eye(d)[int(np.argmax(np.abs(theta))) if player == "axis" else rng.integers(d)]
    v = rng.normal(size=d)
    if player == "random" or length == 0.0:
        return c * v / np.linalg.norm(v)
    along = max(-1.0, min(1.0, margin / (c * length)))
    v -= (v @ theta) / length**2 * theta
    v /= np.linalg.norm(v)
    return c * (along * theta / length + math.sqrt(1.0 - along * along) * v)


def play(task: str, player: str, penalty: str, strength: float, eta: float, c: float, seed: int):
    """The farthest norm, the average gradient, and the average of the penalty's slopes at theta_2, theta_3, ..."""
    rng, d = np.random.default_rng(seed), (1, 2, 4)[seed % 3]
    if d == 1:
        player = "axis"
    theta, total, farthest, rounds = np.zeros(d), np.zeros(d), 0.0, 400
    for _ in range(rounds):
        z = row(player, theta, best_margin(task, eta, c * c), c, rng)
        margin = float(z @ theta)
        y = 1.0 if player == "spiral" else float(rng.choice((-1.0, 1.0)))
        if player == "greedy":
            y = 1.0 if margin >= 0.0 else -1.0
        g = error(task, margin, y) * z
        total += g
        moved = theta - eta * g
        if penalty == "ridge":
            theta = moved / (1.0 + eta * strength)
        else:
            theta = np.sign(moved) * np.maximum(np.abs(moved) - eta * strength, 0.0)
        farthest = max(farthest, float(np.linalg.norm(theta)))
    return farthest, total / rounds, rounds, d


@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("player", PLAYERS)
def test_no_player_drives_theta_out_of_its_radius(player: str, task: str, penalty: str) -> None:
    seed = 0
    for strength in (0.003, 0.05, 0.5, 4.0):
        for eta, c in ((0.05, 1.0), (0.6, 1.0), (0.3, 2.0), (1.9, 1.0)):
            seed += 1
            k = growth(task, eta, c * c)
            farthest, average, n, d = play(task, player, penalty, strength, eta, c, seed)
            if penalty == "ridge":
                radius = proximal_ridge_radius(0.0, k, strength, eta)
                slope = strength * radius
            else:
                radius = proximal_lasso_radius(0.0, k, strength, eta)
                slope = strength * math.sqrt(d)
                coordinate = penalised_average(0.0, radius, strength, eta, n)
                assert float(np.abs(average).max()) <= coordinate * SLACK
            assert farthest <= radius * SLACK + 1e-12
            most = penalised_average(0.0, radius, slope, eta, n)
            assert float(np.linalg.norm(average)) <= most * SLACK


def test_the_spiral_attains_the_ridge_radius() -> None:
    for task in ("mean", "quantile"):
        eta, strength = 0.3, 0.02
        radius = proximal_ridge_radius(0.0, growth(task, eta, 1.0), strength, eta)
        farthest = max(play(task, "spiral", "ridge", strength, eta, 1.0, seed)[0] for seed in (1, 2))
        assert farthest > 0.95 * radius


def test_one_step_within_the_lasso_radius_stays_there_and_the_fixed_point_is_exact() -> None:
    """On an axis the two norms agree, and a step that adds K straight outward returns to the radius."""
    k, strength, eta = 0.4, 0.3, 0.5
    radius = proximal_lasso_radius(0.0, k, strength, eta)
    assert math.sqrt(radius**2 + k) - eta * strength == pytest.approx(radius)
    assert proximal_lasso_radius(0.0, 1e-9, strength, eta) == 0.0  # the threshold swallows every step


@pytest.mark.parametrize("start", [0.0, 3.0])
@pytest.mark.parametrize("loss", [Squared(), Quantile(LEVEL), Logistic(-1.0, 1.0)], ids=repr)
@pytest.mark.parametrize("part", [Shrink, SoftThreshold])
def test_the_engine_keeps_the_bounds_from_any_start(part, loss, start: float) -> None:
    rng, n, eta, strength = np.random.default_rng(3), 500, 0.4, 0.2
    x = rng.normal(size=(n, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = rng.choice((-1.0, 1.0), n)
    learner = Learner(loss, eta, geometry=part(strength))
    run = learner.run(learner.start([start, 0.0, 0.0]), x, y, trace=1)
    task = {Squared: "mean", Quantile: "quantile", Logistic: "probability"}[type(loss)]
    k = growth(task, eta, 1.0)
    radius = (proximal_ridge_radius if part is Shrink else proximal_lasso_radius)(start, k, strength, eta)
    assert np.linalg.norm(run.trace, axis=1).max() <= radius * SLACK
    slope = strength * (radius if part is Shrink else math.sqrt(3))
    average = float(np.linalg.norm(run.state.gradients)) / n
    assert average <= penalised_average(start, radius, slope, eta, n) * SLACK
