"""The proven bounds of Elo hold against games made to break them."""

import random

import numpy as np
import pytest

import gradeq as gq
from gradeq.layers.elo import Elo

SETTINGS = {
    "plain": {"eta": 0.1},
    "large": {"eta": 1.5},
    "power": {"schedule": gq.Power(1.0, 0.4)},
    "rising": {"schedule": gq.Piecewise((0.05, 0.5, 0.1), (400, 900))},
    "lasso": {"eta": 0.2, "penalty": gq.Lasso(0.01)},
    "ridge": {"eta": 0.2, "penalty": gq.Ridge(0.05)},
    "proximal": {"eta": 0.2, "proximal": 0.002},
    "home": {"eta": 0.2, "home_advantage": True},
    "auto": {"eta": "auto"},
}


def ladder(elo: Elo, players: int, n: int, rng: random.Random, weight: float = 1.0) -> None:
    """Neighbours on the ladder play and the higher always wins: ratings spread as fast as they can."""
    for t in range(n):
        j = rng.randrange(players - 1) if t % 3 else t % (players - 1)
        elo.play(j, j + 1, 1.0, weight)


def seesaw(elo: Elo, players: int, n: int, rng: random.Random, weight: float = 1.0) -> None:
    """Whoever was expected to win loses, and one player is in every game."""
    for t in range(n):
        k = 1 + t % (players - 1)
        score = 0.0 if elo.peek(0, k) > 0.5 else 1.0
        elo.play(0, k, score, weight)


def coins(elo: Elo, players: int, n: int, rng: random.Random, weight: float = 1.0) -> None:
    """Random pairs, random scores in [0, 1]."""
    for _ in range(n):
        j, k = rng.sample(range(players), 2)
        elo.play(j, k, rng.choice([0.0, 0.5, 1.0, rng.random()]), weight)


@pytest.mark.parametrize("attack", [ladder, seesaw, coins])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_no_game_plan_breaks_a_bound(settings, attack):
    elo = Elo(**settings)
    attack(elo, 6, 1200, random.Random(1))
    found = elo.equilibrium()
    assert found.bound is not None
    assert abs(found.largest) <= found.bound * (1 + 1e-9)
    for row in elo.leaderboard():
        assert row.bound is not None
        assert abs(row.bias) <= row.bound * (1 + 1e-9)
        assert row.vacuous == (row.bound >= max(abs(row.win_rate - 0.5), 0.05))


def test_bounds_hold_with_weights_and_late_scores():
    rng = random.Random(2)
    elo = Elo(0.3)
    for w in (0.2, 3.0, 1.0):
        ladder(elo, 5, 300, rng, w)
    assert all(abs(row.bias) <= row.bound * (1 + 1e-9) for row in elo.leaderboard())
    for cap in ("auto", None):
        late = Elo(0.3, late_cap=cap)
        waiting: list[int] = []
        for t in range(1500):
            j = rng.randrange(4)
            late.predict(j, j + 1, id=t)
            waiting.append(t)
            if len(waiting) > 20 or t % 2:
                late.update(1.0, id=waiting.pop(rng.randrange(len(waiting))))
        rows = late.leaderboard()
        assert all(row.bound is not None for row in rows)
        assert all(abs(row.bias) <= row.bound * (1 + 1e-9) for row in rows)


def test_the_bound_of_a_player_falls_like_one_over_games_up_to_a_logarithm():
    bounds = []
    for n in (2000, 200_000):
        elo = Elo(0.1)
        rng = np.random.default_rng(3)
        a = rng.integers(0, 3, n)
        b = (a + rng.integers(1, 3, n)) % 3
        elo.run(a, b, (a < b).astype(float))
        bounds.append(max(row.bound for row in elo.leaderboard()))
    assert bounds[1] < bounds[0] / 40
