"""Elo on real games: the bias identity, the quality of the automatic step, the authors' definitions."""

import csv
import gzip
import math

import numpy as np
import pytest

from gradeq.layers.elo import Elo

SCORES = {"model_a": 1.0, "model_b": 0.0, "home": 1.0, "away": 0.0}


@pytest.fixture(scope="module")
def arena(data_dir):
    with gzip.open(data_dir / "arena_140k.csv.gz", "rt") as file:
        rows = [(r["model_a"], r["model_b"], r["winner"]) for r in csv.DictReader(file)]
    a, b, winner = zip(*rows, strict=True)
    return np.array(a), np.array(b), np.array([SCORES.get(w, 0.5) for w in winner])


@pytest.fixture(scope="module")
def football(data_dir):
    with gzip.open(data_dir / "football_internationals.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    a, b = (np.array([r[c] for r in rows]) for c in ("home_team", "away_team"))
    y = np.array([SCORES.get(r["winner"], 0.5) for r in rows])
    return a, b, y, np.array([r["neutral"] == "False" for r in rows], float)


def checked_by_hand(a, b, y, served, rows, eta):
    """Each player's mean predicted minus actual win rate, from the games alone."""
    names = {row.player: row for row in rows}
    own = (a != b) & ~np.isnan(y)
    for player, row in names.items():
        first, second = own & (a == player), own & (b == player)
        n = first.sum() + second.sum()
        predicted = (served[first].sum() + (1.0 - served[second]).sum()) / n
        won = (y[first].sum() + (1.0 - y[second]).sum()) / n
        assert row.games == n
        assert abs(row.bias - (predicted - won)) < 1e-12
        assert abs(row.bias + row.tracked / (eta * n)) < 1e-12


def test_arena_bias_identity_holds_to_twelve_digits(arena):
    a, b, y = arena
    elo = Elo(k=4)
    run = elo.run(a, b, y, skip_self=True)
    assert run.skipped == 10 and elo.equilibrium().rows == 135_624
    assert np.isnan(run.served[a == b]).all() and np.isfinite(run.served[a != b]).all()
    rows = elo.leaderboard()
    checked_by_hand(a, b, y, run.served, rows, elo.eta)
    assert len(rows) == 53 and elo.equilibrium().gap < 1e-15
    assert abs(math.fsum(elo.ratings.values())) < 1e-12
    # With the usual K = 4 the worst model with 30 games is off by 5 points, and the log loss is 0.670.
    assert 0.045 < max(abs(row.bias) for row in rows if row.rank) < 0.055
    assert round(elo.equilibrium().loss_after, 3) == 0.670
    assert rows[0].player == "gemini-2.5-pro" and round(rows[0].elo) == 1124
    assert abs((rows[0].elo_high - rows[0].elo) - 6.5) < 0.1


def test_football_bias_identity_holds_to_twelve_digits(football):
    a, b, y, _ = football
    elo = Elo(0.1)
    run = elo.run(a, b, y)
    checked_by_hand(a, b, y, run.served, elo.leaderboard(), 0.1)
    assert elo.equilibrium().gap < 1e-15


def test_bounds_hold_on_real_games(arena, football):
    for a, b, y in (arena, football[:3]):
        elo = Elo()
        elo.run(a, b, y, skip_self=True)
        assert all(abs(row.bias) <= row.bound for row in elo.leaderboard())
        assert elo.equilibrium().bound > abs(elo.equilibrium().largest)


def test_home_advantage_is_found_in_football(football):
    a, b, y, home = football
    plain, with_home = Elo(), Elo(home_advantage=True)
    plain.run(a, b, y)
    with_home.run(a, b, y, home=home)
    assert 70.0 < with_home.board().home.elo < 90.0  # 80 now, 99 all-time
    before, after = plain.equilibrium(), with_home.equilibrium()
    assert after.loss_after < before.loss_after
    assert abs(after.bias_after) < 0.2 * abs(before.bias_after)


def test_the_default_forecasts_better_than_any_fixed_step_and_leaves_less_bias(arena, football):
    """Log loss below the best of many fixed steps; mean |bias| (n >= 100) below that of 0.1."""
    ours, usual = [], []
    for a, b, y in (arena, football[:3]):
        frontier = Elo.sweep((0.003, 0.01, 0.023, 0.05, 0.1, 0.2, 0.4), a, b, y)
        elo = Elo()
        elo.run(a, b, y, skip_self=True)
        found = elo.equilibrium()
        assert found.loss_after < frontier.least_loss().loss
        assert found.gap < 1e-12 and found.exact
        ours.append(np.mean([abs(row.bias) for row in elo.leaderboard() if row.games >= 100]))
        usual.append(frontier.points[4].mean_100)
    assert np.mean(ours) < np.mean(usual)


def test_a_larger_step_leaves_less_bias_and_costs_loss_beyond_the_best(arena, football):
    small, usual = Elo.sweep([0.023, 0.1], *arena)
    assert 0.045 < small.worst < 0.055 and 0.012 < usual.worst < 0.016
    assert small.loss < usual.loss
    small, usual = Elo.sweep([0.023, 0.1], *football[:3])
    assert small.mean_100 > 2 * usual.mean_100 and small.loss > usual.loss
