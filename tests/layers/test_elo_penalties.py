"""Penalties of Elo: the dense definitions, and the quick forms that give the same numbers."""

import math

import numpy as np
import pytest

import gradeq as gq
from gradeq.layers.elo import Elo

T, M = 4000, 40


def games(seed: int = 0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, M, T)
    b = (a + rng.integers(1, M, T)) % M
    strength = rng.normal(0.0, 1.0, M)
    y = (rng.random(T) < 1.0 / (1.0 + np.exp(strength[b] - strength[a]))).astype(float)
    y[rng.random(T) < 0.2] = 0.5
    return a, b, y


def dense(a, b, y, etas, after=None, slope=None):
    """The definition: a gradient step on every rating, the penalty's slope in it or its proximal map behind it."""
    theta = np.zeros(M)
    served, gradients = np.empty(len(a)), np.zeros(M)
    for i, (j, k) in enumerate(zip(a, b, strict=True)):
        p = 1.0 / (1.0 + math.exp(theta[k] - theta[j]))
        served[i] = p
        g = np.zeros(M)
        g[j], g[k] = p - y[i], y[i] - p
        gradients += g
        theta = theta - etas[i] * (g if slope is None else g + slope(theta))
        if after is not None:
            theta = after(theta, etas[i])
    return theta, served, gradients


def soft(strength):
    return lambda theta, eta: np.sign(theta) * np.maximum(np.abs(theta) - eta * strength, 0.0)


CASES = {
    "lasso": ({"penalty": gq.Lasso(0.003)}, {"slope": lambda theta: 0.003 * np.sign(theta)}),
    "ridge": ({"penalty": gq.Ridge(0.02)}, {"slope": lambda theta: 0.02 * theta}),
    "proximal": ({"proximal": 0.003}, {"after": soft(0.003)}),
    "none": ({}, {}),
}


@pytest.mark.parametrize("decay", [0.0, 0.5], ids=["constant", "decaying"])
@pytest.mark.parametrize(("settings", "definition"), CASES.values(), ids=CASES)
def test_every_penalty_is_its_dense_definition(settings, definition, decay):
    a, b, y = games()
    etas = 0.3 * np.arange(1.0, T + 1) ** -decay
    theta, served, gradients = dense(a, b, y, etas, **definition)
    step = {"eta": 0.3} if decay == 0.0 else {"schedule": gq.Power(0.3, decay)}
    elo = Elo(**settings, **step)
    run = elo.run(a, b, y)
    ours = np.array([elo.ratings[str(j)] for j in range(M)])
    assert np.abs(ours - theta).max() < 1e-10
    assert np.abs(run.served - served).max() < 1e-10
    found = {c.name: c for c in elo.equilibrium().coordinates}
    average = np.array([found[str(j)].average_gradient for j in range(M)])
    assert np.abs(average - gradients / T).max() < 1e-12
    assert elo.equilibrium().gap < 1e-13


@pytest.mark.parametrize("penalty", [gq.Ridge(0.5), gq.Ridge(0.03)], ids=repr)
def test_the_common_factor_of_the_ridge_may_be_written_out_many_times(penalty):
    a, b, y = games(1)
    theta, _, _ = dense(a, b, y, np.full(T, 0.9), slope=lambda x: penalty.strength * x)
    elo = Elo(0.9, penalty=penalty)
    elo.run(a, b, y)
    assert max(abs(elo.ratings[str(j)] - theta[j]) for j in range(M)) < 1e-12
    assert elo.equilibrium().gap < 1e-13


def test_the_proximal_lasso_sets_weak_ratings_to_zero_and_the_subgradient_does_not():
    a, b, y = games(2)
    prox, plain = Elo(0.1, proximal=0.01), Elo(0.1, penalty=gq.Lasso(0.01))
    prox.run(a, b, y)
    plain.run(a, b, y)
    assert sum(rating == 0.0 for rating in prox.ratings.values()) >= 5
    assert all(rating != 0.0 for rating in plain.ratings.values())


def test_the_lasso_leaves_at_most_its_strength_of_average_gradient():
    a, b, y = games(3)
    for settings in ({"penalty": gq.Lasso(0.002)}, {"proximal": 0.002}):
        elo = Elo(0.3, **settings)
        elo.run(a, b, y)
        found = elo.equilibrium()
        for c in found.coordinates:
            pull = c.average_penalty + c.average_normal
            assert abs(pull) <= 0.002 * (1 + 1e-9)
            assert abs(c.average_gradient + pull - c.from_state) < 1e-14


def test_players_who_come_late_do_not_feel_the_past_of_a_penalty():
    for settings in ({"penalty": gq.Ridge(0.05)}, {"proximal": 0.01}, {"penalty": gq.Lasso(0.01)}):
        a, b, y = games(4)
        whole, late = Elo(0.2, **settings), Elo(0.2, **settings)
        whole.run(np.append(a, 1000), np.append(b, 0), np.append(y, 1.0))
        late.run(a, b, y)
        late.play(1000, 0, 1.0)
        assert whole.to_json() == late.to_json()
