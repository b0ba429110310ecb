"""Elo: one game at a time, whole columns, any cut and a resumed state agree; games are counted as they should be."""

import math

import numpy as np
import pytest

import gradeq as gq
from gradeq.errors import BadInput
from gradeq.layers.elo import Elo
from gradeq.layers.registry import from_json
from gradeq.theory.features import ELO_POINTS_PER_LOGIT
from relative import relative

KINDS = {
    "plain": {"eta": 0.1},
    "k": {"k": 24},
    "drop": {"eta": 0.1, "ties": "drop"},
    "default": {},
    "power": {"schedule": gq.Power(1.0, 0.5)},
    "piecewise": {"schedule": gq.Piecewise((0.2, 0.05, 0.3), (50, 120))},
    "lasso": {"eta": 0.1, "penalty": gq.Lasso(0.01)},
    "ridge": {"eta": 0.1, "penalty": gq.Ridge(0.05)},
    "strong ridge": {"penalty": gq.Ridge(2.0), "eta": 0.4},
    "proximal": {"eta": 0.1, "proximal": 0.002},
    "home": {"eta": 0.1, "home_advantage": True},
    "home and ridge": {"eta": 0.1, "home_advantage": True, "penalty": gq.Ridge(0.02)},
    "default with home": {"home_advantage": True, "home_step": 0.002},
}


def games(n: int, players: int = 9, seed: int = 0, ties: float = 0.2):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, players, n)
    b = (a + rng.integers(1, players, n)) % players
    strength = rng.normal(0.0, 1.0, players)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(strength[b] - strength[a]))).astype(float)
    y[rng.random(n) < ties] = 0.5
    return a, b, y


def played_one_by_one(elo: Elo, a, b, y, w=None) -> list[float]:
    served = []
    for i in range(len(a)):
        served.append(elo.peek(int(a[i]), int(b[i])))
        if y[i] == y[i]:
            elo.play(str(a[i]), int(b[i]), y[i], 1.0 if w is None else w[i])
    return served


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_events_batch_any_cut_and_a_resumed_state_agree_to_the_last_bit(settings, weighted):
    a, b, y = games(300)
    w = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 2.0], len(a)) if weighted else None
    one, whole, cut = Elo(**settings), Elo(**settings), Elo(**settings)
    served = played_one_by_one(one, a, b, y, w)
    run = whole.run(a, b, y, weights=w)
    for piece in np.split(np.arange(len(a)), [0, 7, 150]):
        cut.run(a[piece], b[piece], y[piece], weights=None if w is None else w[piece])
        cut = from_json(cut.to_json())
    assert one.to_json() == whole.to_json() == cut.to_json()
    assert run.served.tolist() == served


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_compiled_and_interpreted_loops_agree_to_the_last_bit(settings, monkeypatch):
    a, b, y = games(3000)
    slow, fast = Elo(**settings), Elo(**settings)
    monkeypatch.setenv("GRADEQ_COMPILE", "0")
    slow.run(a, b, y)
    monkeypatch.setenv("GRADEQ_COMPILE", "1")
    fast.run(a, b, y)
    assert slow.to_json() == fast.to_json()


def test_columns_of_any_library_name_the_same_players():
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    a, b, y = games(200)
    words = np.array([f"p{i}" for i in range(9)])
    states = set()
    for x in (
        lambda c: words[c],
        lambda c: words[c].tolist(),
        lambda c: words[c].astype(object),
        lambda c: pd.Series(words[c]),
        lambda c: pd.Series(words[c]).astype("category"),
        lambda c: pl.Series(words[c]),
        lambda c: pl.Series(words[c]).cast(pl.Categorical),
        lambda c: pa.array(words[c]),
        lambda c: pa.array(words[c]).dictionary_encode(),
        lambda c: pa.chunked_array([words[c][:50], words[c][50:]]),
    ):
        elo = Elo()
        elo.run(x(a), x(b), y)
        states.add(elo.to_json())
    assert len(states) == 1
    run = Elo().run(pd.Series(words[a]), pd.Series(words[b]), pd.Series(y, name="score"))
    assert isinstance(run.served, pd.Series) and run.served.name == "score"


def test_numbers_far_apart_and_their_text_are_one_name():
    a = np.array([10**15, 7, -3], dtype=np.int64)
    b = np.array([7, -3, 10**15], dtype=np.int64)
    numbers, text = Elo(), Elo()
    numbers.run(a, b, [1, 0, 1])
    text.run(a.astype(str), b.astype(str), [1, 0, 1])
    assert numbers.to_json() == text.to_json()
    assert list(numbers.ratings) == [str(10**15), "7", "-3"]


def test_the_sum_of_the_ratings_is_conserved():
    a, b, y = games(5000, seed=3)
    for settings in ({"eta": 0.1}, {"schedule": gq.Power(1.0, 0.5)}, {"eta": 0.1, "penalty": gq.Ridge(0.01)}):
        elo = Elo(**settings)
        elo.run(a, b, y, weights=np.random.default_rng(0).exponential(1.0, len(a)))
        assert abs(math.fsum(elo.ratings.values())) < 1e-12


def test_the_bias_of_a_player_is_minus_what_is_tracked_over_eta_times_games():
    a, b, y = games(4000, players=30, seed=4)
    elo = Elo(0.07)
    run = elo.run(a, b, y)
    for row in elo.leaderboard():
        j = int(row.player)
        mine = (a == j) | (b == j)
        predicted = np.where(a == j, run.served, 1.0 - run.served)[mine].mean()
        won = np.where(a == j, y, 1.0 - y)[mine]
        assert row.games == mine.sum() and row.wins == won.sum()
        assert abs(row.bias - (predicted - won.mean())) < 1e-13
        assert abs(row.bias + row.tracked / (0.07 * row.games)) < 1e-13
        assert row.tracked == elo.ratings[row.player]
        assert abs(row.predicted_win_rate - row.win_rate - row.bias) < 1e-15
        assert row.elo == 1000.0 + ELO_POINTS_PER_LOGIT * row.rating


def test_weighted_bias_is_minus_what_is_tracked_over_eta_times_weight():
    a, b, y = games(2000, seed=6)
    w = np.random.default_rng(6).exponential(1.0, len(a))
    elo = Elo(0.05)
    v = elo.run(a, b, y, weights=w).weighed
    assert v.tolist() == relative(w.tolist())
    for row in elo.leaderboard():
        mass = v[(a == int(row.player)) | (b == int(row.player))].sum()
        assert abs(row.bias + row.tracked / (0.05 * mass)) < 1e-13


def test_weight_zero_moves_nothing():
    elo = Elo()
    elo.run(["a", "b"], ["b", "c"], [1, 0])
    before = elo.ratings
    assert elo.play("a", "b", 0, 0.0) == "ignored"
    elo.run(["a", "c"], ["b", "a"], [0, 1], weights=[0.0, 0.0])
    assert elo.ratings == before
    assert {row.player: row.games for row in elo.leaderboard()} == {"a": 1, "b": 2, "c": 1}


def test_a_tie_is_half_a_win_for_both():
    elo = Elo(0.1)
    elo.play("a", "b", 0.5)
    assert elo.ratings == {"a": 0.0, "b": 0.0}
    assert [(row.games, row.wins, row.win_rate) for row in elo.leaderboard()] == [(1, 0.5, 0.5)] * 2
    elo.play("a", "b", 1)
    elo.play("a", "b", 0.5)
    assert 0.0 < elo.ratings["a"] < 0.05


def test_a_dropped_tie_is_no_game_but_is_predicted():
    a, b, y = games(500, ties=0.4)
    dropped, without = Elo(ties="drop"), Elo()
    run = dropped.run(a, b, y)
    without.run(a[y != 0.5], b[y != 0.5], y[y != 0.5])
    assert dropped.ratings == {name: without.ratings[name] for name in dropped.ratings}
    assert dropped.equilibrium().rows == (y != 0.5).sum()
    assert np.isfinite(run.served).all() and run.ties == (y == 0.5).sum()
    assert dropped.play("0", "1", 0.5) == "dropped"


def test_a_dropped_tie_does_not_count_in_the_time_of_a_decaying_step():
    schedule = gq.Power(1.0, 0.5)
    dropped, without = (Elo(schedule=schedule, ties="drop") for _ in range(2))
    dropped.run(["a", "a", "a"], ["b", "b", "b"], [1, 0.5, 1])
    without.run(["a", "a"], ["b", "b"], [1, 1])
    assert dropped.ratings == without.ratings


def test_the_step_of_game_t_is_the_schedule_at_t():
    etas = [1.0, 0.5**0.5, (1 / 3) ** 0.5]
    elo = Elo(schedule=gq.Power(1.0, 0.5))
    u = 0.0
    for eta in etas:
        elo.play("a", "b", 1)
        u -= eta * (1.0 / (1.0 + math.exp(-2.0 * u)) - 1.0)
        assert abs(elo.ratings["a"] - u) < 1e-15


def test_a_game_against_oneself_is_refused_or_skipped():
    elo = Elo()
    with pytest.raises(BadInput, match="row 1: player 'b' cannot play itself"):
        elo.run(["a", "b"], ["b", "b"], [1, 1])
    assert elo.to_json() == Elo().to_json()
    with pytest.raises(BadInput, match="cannot play itself"):
        elo.play(7, "7", 1)
    run = elo.run(["a", "b", "a"], ["b", "b", "b"], [1, 1, 0], skip_self=True)
    assert math.isnan(run.served[1]) and run.skipped == 1 and run.labelled == 2
    other = Elo()
    other.run(["a", "a"], ["b", "b"], [1, 0])
    assert other.ratings == elo.ratings


def test_a_missing_score_is_predicted_and_not_learned_from():
    elo = Elo()
    run = elo.run(["a", "b", "a"], ["b", "c", "c"], [1.0, None, 0.0])
    assert run.labelled == 2 and len(run.served) == 3
    assert elo.equilibrium().rows == 2


def test_unknown_players_start_even_and_predicting_changes_nothing():
    elo = Elo()
    elo.play("a", "b", 1)
    state = elo.to_json()
    assert elo.peek("x", "y") == 0.5
    assert elo.peek("a", "x") > 0.5
    assert elo.to_json() == state


def test_no_score_moves_an_earlier_prediction():
    a, b, y = games(200)
    for settings in ({}, {"eta": "auto"}, {"eta": 0.1, "penalty": gq.Lasso(0.01)}):
        first = Elo(**settings).run(a, b, y).values
        flipped = y.copy()
        flipped[120] = 1.0 - flipped[120] if flipped[120] != 0.5 else 1.0
        second = Elo(**settings).run(a, b, flipped).values
        assert (first[:121] == second[:121]).all()
        assert (first[121:] != second[121:]).any()


def test_k_is_the_chess_factor():
    elo = Elo(k=32)
    elo.play("a", "b", 1)
    assert elo.eta == 32 * math.log(10) / 400
    assert abs(elo.leaderboard()[0].tracked * 400 / math.log(10) - 16.0) < 1e-9


def test_log_loss_is_that_of_the_served_probabilities_and_begins_with_a_coin():
    a, b, y = games(20_000, seed=8)
    y[::7] = 0.3
    w = np.random.default_rng(1).choice([1.0, 1.0, 2.5], len(a))
    for weights in (None, w):
        elo = Elo(0.3)
        p = np.clip(elo.run(a, b, y, weights=weights).served, 1e-6, 1 - 1e-6)
        mass = np.ones(len(a)) if weights is None else relative(weights.tolist())
        losses = -y * np.log(p) - (1 - y) * np.log1p(-p)
        found = elo.equilibrium()
        assert found.loss_name == "log loss" and found.loss_before == math.log(2.0)
        assert abs(found.loss_after - np.average(losses, weights=mass)) < 1e-12
        assert abs(found.bias_after - np.average(p - y, weights=mass)) < 1e-12
        assert found.exact and found.gap < 1e-15


def test_home_advantage_is_learned_as_a_parameter_of_the_first_side():
    rng = np.random.default_rng(2)
    a, b, _ = games(20_000, seed=2)
    home = rng.choice([0.0, 1.0], len(a))
    y = (rng.random(len(a)) < 1 / (1 + np.exp(-0.8 * home))).astype(float)
    elo = Elo(0.01, home_advantage=True, home_step=0.001)
    elo.run(a, b, y, home=home)
    assert abs(elo.theta["(first side)"] - 0.8) < 0.15
    assert abs(math.fsum(elo.ratings.values())) < 1e-10
    assert elo.peek(0, 1, home=1) > elo.peek(0, 1, home=0) > elo.peek(0, 1, home=-1)
    found = elo.equilibrium()
    assert found.gap < 1e-14 and found.coordinates[0].name == "(first side)"
    at_home = home == 1.0
    p = Elo(0.01, home_advantage=True).run(a, b, y, home=home).served
    # The first side enters rows as sqrt(1/10), so its step is a tenth.
    ours, wanted = found.coordinates[0].bias_after, (p - y)[at_home].mean()
    assert abs(ours - math.sqrt(0.1) * wanted) < 1e-12
    told = elo.board().home
    assert abs(told.bias - wanted) < 1e-12 and abs(told.from_state - wanted) < 1e-12
    assert told.low < 400 * 0.8 / math.log(10) < told.high
    with pytest.raises(BadInput, match="home_advantage"):
        Elo().peek("a", "b", home=0.0)


def test_sweep_gives_what_a_run_of_each_step_gives():
    a, b, y = games(3000, seed=12)
    y[5] = 0.25
    frontier = Elo.sweep([0.3, 0.01, 0.1], a, b, y)
    assert [point.eta for point in frontier.points] == [0.01, 0.1, 0.3]
    for point in frontier.points:
        elo = Elo(point.eta)
        elo.run(a, b, y)
        bias = [abs(row.bias) for row in elo.leaderboard() if row.games >= 30]
        assert abs(point.loss - elo.equilibrium().loss_after) < 1e-12
        assert abs(point.mean - np.mean(bias)) < 1e-12
        assert abs(point.worst - max(bias)) < 1e-12
    assert frontier.least_loss().loss == min(point.loss for point in frontier)
    assert frontier.raw.loss == math.log(2.0) and frontier.least_bias(9.0).eta == 0.3


def test_the_trace_ends_at_the_ratings_and_begins_at_the_start():
    a, b, y = games(900)
    elo = Elo()
    elo.run(a[:300], b[:300], y[:300])
    start = elo.ratings
    run = elo.run(a[300:], b[300:], y[300:])
    trace = run.trace
    assert dict(zip(trace.names, trace.theta[-1], strict=True)) == elo.ratings
    assert dict(zip(trace.names, trace.theta[0], strict=True)) == start


def test_frozen_ratings_do_not_move_until_resumed():
    elo = Elo()
    elo.play("a", "b", 1)
    elo.freeze()
    before = elo.ratings
    assert elo.play("a", "b", 1) == "ignored"
    elo.run(["a"], ["b"], [1])
    assert elo.ratings == before
    elo.resume()
    elo.play("a", "b", 1)
    assert elo.ratings != before


def test_a_new_step_goes_on_from_the_ratings_with_exact_sums():
    a, b, y = games(600)
    elo = Elo(0.2)
    elo.run(a[:300], b[:300], y[:300])
    elo.set_step(0.05)
    elo.run(a[300:], b[300:], y[300:])
    found = elo.equilibrium()
    assert not found.exact and found.gap < 1e-13 and found.bound is not None


def test_labels_until_says_when_every_player_is_below_the_bound():
    a, b, y = games(3000)
    elo = Elo()
    elo.run(a, b, y)
    needed = elo.labels_until(0.2)
    worst = max(row.bound for row in elo.leaderboard())
    assert worst > 0.2 and needed is not None and needed > 0
    assert elo.labels_until(2 * worst) == 0
    assert Elo().labels_until(0.05) is None


def test_no_game_plan_costs_more_log_loss_than_the_harm_cap():
    elo = Elo(0.5)
    for _ in range(400):
        elo.play("a", "b", 0.0 if elo.peek("a", "b") > 0.5 else 1.0)
    cap, found = elo.harm_cap(), elo.equilibrium()
    assert cap.factor is not None
    assert found.loss_before < found.loss_after <= cap.factor * found.loss_before
    for settings in ({}, {"schedule": gq.Power(1.0, 0.5)}, {"eta": 0.1, "proximal": 0.1}):
        assert Elo(**settings).harm_cap().factor is None


def test_the_verdict_says_whose_bias_is_shown():
    """No player's: with a first side that always wins it stays, while every player's goes to zero."""
    elo = Elo(0.1)
    a, b, _ = games(2_000, seed=8)
    elo.run(a, b, np.ones(len(a)))
    found = elo.equilibrium()
    assert found.verdict().startswith(f"bias of the first side -0.5 -> {found.bias_after:.4g} over")
    assert max(abs(c.bias_after) for c in found.coordinates) < 0.1 < abs(found.bias_after)
