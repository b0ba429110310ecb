"""What Elo refuses, in one line and with nothing changed; and its leaderboard."""

import math

import numpy as np
import pytest

import gradeq as gq
from gradeq.errors import BadInput, GradeqError, StepTooLarge
from gradeq.layers.elo import Elo


def games(n: int, players: int, seed: int, ties: float = 0.2):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, players, n)
    b = (a + rng.integers(1, players, n)) % players
    strength = rng.normal(0.0, 1.0, players)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(strength[b] - strength[a]))).astype(float)
    y[rng.random(n) < ties] = 0.5
    return a, b, y


def test_leaderboard_is_sorted_and_who_has_few_games_has_no_rank():
    a, b, y = games(6000, players=20, seed=9)
    elo = Elo(0.02)
    elo.run(np.append(a, 99), np.append(b, 0), np.append(y, 1.0))
    rows = elo.leaderboard()
    some = [row for row in rows if row.rank is not None]
    assert rows[: len(some)] == some and [row.rank for row in some] == list(range(1, 21))
    assert [row.elo for row in some] == sorted((row.elo for row in some), reverse=True)
    assert abs(np.mean([row.elo for row in some]) - 1000.0) < 1e-9
    assert all(row.rank_low <= row.rank <= row.rank_high for row in some)
    newcomer = rows[-1]
    assert newcomer.player == "99" and newcomer.rank is None and newcomer.games == 1
    assert newcomer.elo_high - newcomer.elo_low > 5 * (some[0].elo_high - some[0].elo_low)


def test_intervals_are_as_wide_as_a_bootstrap_of_the_games():
    a, b, y = games(9_000, players=12, seed=10, ties=0.25)
    elo = Elo(0.03)
    elo.run(a, b, y)
    rng = np.random.default_rng(11)
    again = []
    for _ in range(40):
        pick = np.sort(rng.integers(0, len(a), len(a)))
        other = Elo(0.03)
        other.run(a[pick], b[pick], y[pick])
        found = {row.player: row.elo for row in other.leaderboard("all-time")}
        again.append([found[str(j)] for j in range(12)])
    spread = np.std(again, axis=0, ddof=1)
    rows = elo.leaderboard("all-time")
    half = {row.player: (row.elo_high - row.elo_low) / 2 / 1.96 for row in rows}
    ours = np.array([half[str(j)] for j in range(12)])
    assert 0.9 < np.mean(ours / spread) < 1.25


BAD = {
    "eta": ({"eta": 0.0}, "positive"),
    "nan": ({"eta": math.nan}, "finite"),
    "text": ({"eta": "fast"}, "not a number"),
    "two": ({"eta": 0.1, "k": 4}, "one of"),
    "ties": ({"ties": "win"}, "half"),
    "k": ({"k": -1}, "positive"),
    "auto": ({"eta": "auto", "penalty": gq.Lasso(0.1)}, "penalty"),
    "no step": ({"penalty": gq.Lasso(0.1)}, "penalty"),
    "home step": ({"eta": 0.1, "home_step": 0.2}, "at most the players' step"),
    "both": ({"eta": 0.1, "penalty": gq.Lasso(0.1), "proximal": 0.1}, "not both"),
    "strength": ({"eta": 0.1, "proximal": 0.0}, "positive"),
    "ridge": ({"eta": 0.5, "penalty": gq.Ridge(2.0)}, "below 1"),
    "cap": ({"late_cap": 3}, "late_cap"),
}


@pytest.mark.parametrize(("settings", "message"), BAD.values(), ids=BAD)
def test_settings_that_make_no_sense_are_refused_in_one_line(settings, message):
    with pytest.raises(GradeqError, match=message) as refused:
        Elo(**settings)
    assert "\n" not in str(refused.value)


ROWS = {
    "score": ((["a"], ["b"], [1.5]), "outside"),
    "infinite": ((["a"], ["b"], [math.inf]), "infinite"),
    "text": ((["a"], ["b"], ["won"]), "number"),
    "length": ((["a", "b"], ["b"], [1, 0]), "rows"),
    "scores": ((["a"], ["b"], [1, 0]), "rows"),
    "nobody": ((["a", None], ["b", "a"], [1, 0]), "row 1.*no name"),
}


@pytest.mark.parametrize(("columns", "message"), ROWS.values(), ids=ROWS)
def test_columns_that_make_no_sense_are_refused_and_nothing_has_changed(columns, message):
    elo = Elo()
    elo.play("a", "z", 1)
    before = elo.to_json()
    with pytest.raises(BadInput, match=message):
        elo.run(*columns)
    assert elo.to_json() == before
    with pytest.raises(BadInput):
        elo.play("a", "b", 2)
    assert elo.to_json() == before


def test_no_games_and_one_game_are_fine():
    elo = Elo()
    assert len(elo.run([], [], []).served) == 0
    assert elo.leaderboard() == [] and elo.equilibrium().rows == 0
    assert elo.run(["a"], ["b"], [1]).served == [0.5]


def test_a_ridge_step_that_would_flip_ratings_is_refused():
    elo = Elo(schedule=gq.Listed((0.1, 0.1, 2.0)), penalty=gq.Ridge(1.0))
    with pytest.raises(StepTooLarge):
        elo.run(["a"] * 3, ["b"] * 3, [1, 1, 1])
    assert elo.ratings == {}
