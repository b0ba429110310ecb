"""Late scores: by id, in any order, capped by the players in flight, corrected, expired, carried over."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradeq as gq
from gradeq.errors import BadInput, ExpiredTicket, LabelConflict, UnknownTicket
from gradeq.layers.elo import Elo
from gradeq.layers.registry import from_json
from laws.kinds import certified

KINDS = {
    "plain": {"eta": 0.1},
    "no cap": {"late_cap": None},
    "power": {"schedule": gq.Power(1.0, 0.3)},
    "lasso": {"eta": 0.1, "penalty": gq.Lasso(0.01)},
    "ridge": {"eta": 0.1, "penalty": gq.Ridge(0.05)},
    "home": {"eta": 0.1, "home_advantage": True},
    "auto": {"eta": "auto"},
    "drop": {"eta": 0.1, "ties": "drop"},
}


def games(n: int, seed: int):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 6, n)
    b = (a + rng.integers(1, 6, n)) % 6
    y = rng.choice([0.0, 0.5, 1.0], n, p=[0.4, 0.2, 0.4])
    return a, b, y, np.arange(n) + rng.integers(1, 25, n) - 0.5


def by_tickets(elo: Elo, a, b, y, due) -> list[float]:
    served = []
    waiting: list[int] = []
    for t in range(len(a)):
        for k in sorted((k for k in waiting if due[k] <= t), key=lambda k: (due[k], k)):
            elo.update(y[k], id=k)
            waiting.remove(k)
        served.append(elo.predict(a[t], b[t], id=t))
        waiting.append(t)
    return served


def learned(elo: Elo):
    """All that can be read of what was learned, without open tickets and labels that only a run knows in advance."""
    flight = {name: value for name, value in elo.traffic.items() if name != "open"}
    return elo.ratings, elo.theta, elo.steps, certified(elo).as_dict(), elo.leaderboard(), flight


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_tickets_columns_and_resumed_columns_agree_to_the_last_bit(settings):
    a, b, y, due = games(160, 1)
    one, whole, cut = Elo(**settings), Elo(**settings), Elo(**settings)
    served = by_tickets(one, a, b, y, due)
    run = whole.run(a, b, y, times=np.arange(160.0), label_times=due)
    for piece in np.split(np.arange(160), [30, 31, 90]):
        cut.run(a[piece], b[piece], y[piece], times=piece.astype(float), label_times=due[piece])
        cut = from_json(cut.to_json())
    assert run.served.tolist() == served
    assert learned(one) == learned(whole)
    assert whole.to_json() == cut.to_json()
    assert run.waiting == cut.traffic["open"] > 0


@pytest.mark.parametrize("settings", [{}, {"eta": "auto"}], ids=["plain", "auto"])
def test_compiled_and_interpreted_late_scores_agree_to_the_last_bit(settings, monkeypatch):
    a, b, y, due = games(2000, 3)
    slow, fast = Elo(**settings), Elo(**settings)
    monkeypatch.setenv("GRADEQ_COMPILE", "0")
    slow.run(a, b, y, times=np.arange(2000.0), label_times=due)
    monkeypatch.setenv("GRADEQ_COMPILE", "1")
    fast.run(a, b, y, times=np.arange(2000.0), label_times=due)
    assert slow.to_json() == fast.to_json()


@given(st.randoms(use_true_random=False))
def test_scores_in_any_order_give_the_same_ratings_to_rounding(random):
    """Given steps commute; without the cap every score has the same one."""
    a, b, y, _ = games(40, 2)
    first, other = Elo(0.1, late_cap=None), Elo(0.1, late_cap=None)
    capped = Elo(0.1)
    for elo in (first, other, capped):
        for t in range(40):
            elo.predict(a[t], b[t], id=t)
    for t in range(40):
        first.update(y[t], id=t)
    order = list(range(40))
    random.shuffle(order)
    for t in order:
        other.update(y[t], id=t)
        capped.update(y[t], id=t)
    assert all(abs(first.ratings[name] - r) < 1e-13 for name, r in other.ratings.items())
    assert other.equilibrium().gap < 1e-14 and capped.equilibrium().gap < 1e-14


@given(st.integers(0, 10**6))
def test_a_score_that_has_not_come_moves_no_served_probability(seed):
    a, b, y, due = games(60, seed)
    flip = seed % 60
    other = y.copy()
    other[flip] = 1.0 if y[flip] < 1.0 else 0.0
    runs = [Elo().run(a, b, z, times=np.arange(60.0), label_times=due).served for z in (y, other)]
    before = np.arange(60) < due[flip]
    assert (runs[0][before] == runs[1][before]).all()


def test_the_cap_is_three_tenths_over_the_peaks_of_both_players():
    elo, uncapped, heavy = Elo(0.5), Elo(0.5, late_cap=None), Elo(0.5)
    for layer, w in ((elo, 1.0), (uncapped, 1.0), (heavy, 3.0)):
        tickets = [layer.open("a", f"b{t}", weight=w**t) for t in range(4)]
        postings = [layer.post(ticket, 1.0) for ticket in tickets]
        assert [posting.late for posting in postings] == [(4, 1), (3, 1), (2, 1), (1, 1)]
        # a's peak stays at 4 from the first score on; each b has 1.
        for ticket, posting in zip(tickets, postings, strict=True):
            step = {elo: 0.3 / 5, uncapped: 0.5, heavy: 0.3 / (ticket.weight * 5)}[layer]
            assert posting.eta == step
    assert elo.steps["capped"] == 4 and uncapped.steps["capped"] == 0


def test_games_at_once_among_players_in_flight_are_capped_alike_in_events_and_columns():
    one, batch = Elo(0.5), Elo(0.5)
    for elo in (one, batch):
        elo.predict("a", "b", id=1)
        elo.predict("a", "c", id=2)
        elo.update(1, id=1)
    one.play("a", "d", 1)
    one.play("c", "d", 0)
    batch.run(["a", "c"], ["d", "d"], [1, 0])
    assert one.to_json() == batch.to_json()
    assert one.traffic["open"] == 1 and one.steps["smallest"] == 0.3 / 3


def test_duplicates_conflicts_unknown_and_expired_scores_are_told_apart():
    elo = Elo(ttl=10.0)
    elo.predict("a", "b", id="g", time=0.0)
    assert elo.update(1, id="g") == "applied"
    assert elo.update(1, id="g") == "duplicate"
    with pytest.raises(LabelConflict):
        elo.update(0, id="g")
    with pytest.raises(UnknownTicket):
        elo.update(0, id="h")
    elo.predict("a", "b", id="old", time=1.0)
    assert elo.expire(100.0) == 1
    with pytest.raises(ExpiredTicket):
        elo.update(1, id="old")


def test_a_corrected_score_leaves_what_the_right_one_would_have():
    for ties in ("half", "drop"):
        for wrong, right in ((1.0, 0.0), (0.5, 1.0), (0.0, 0.5)):
            fixed, straight = Elo(0.1, ties=ties), Elo(0.1, ties=ties)
            for elo, score in ((fixed, wrong), (straight, right)):
                elo.predict("a", "b", id=1)
                elo.predict("b", "c", id=2)
                elo.update(score, id=1)
                elo.update(1, id=2)
            fixed.correct(1, right)
            assert all(abs(fixed.ratings[n] - r) < 1e-15 for n, r in straight.ratings.items())
            ours, theirs = fixed.equilibrium(), straight.equilibrium()
            assert ours.rows == theirs.rows and abs(ours.loss_after - theirs.loss_after) < 1e-12
            assert ours.gap < 1e-15
            boards = [[r[:8] for r in elo.leaderboard("all-time")] for elo in (fixed, straight)]
            assert boards[0] == boards[1]


def test_a_tie_on_a_ticket_is_dropped_and_closes_it():
    for settings in ({}, {"eta": 0.1}):
        elo = Elo(ties="drop", **settings)
        elo.predict("a", "b", id=1)
        assert elo.update(0.5, id=1) == "dropped"
        assert elo.update(0.5, id=1) == "duplicate"
        assert elo.traffic["open"] == 0 and elo.equilibrium().rows == 0


def test_the_proximal_lasso_refuses_late_scores():
    elo = Elo(0.1, proximal=0.01)
    with pytest.raises(BadInput, match="at once"):
        elo.predict("a", "b", id=1)
    with pytest.raises(BadInput, match="at once"):
        elo.run(["a"], ["b"], [1], times=[0], label_times=[1])


def test_a_ticket_that_never_closes_costs_no_memory_and_no_step():
    elo, other = Elo(), Elo()
    elo.predict("a", "b", id="never")
    for _ in range(50):
        elo.play("a", "c", 1)
        other.play("a", "c", 1)
    assert elo.traffic["open"] == 1 and elo.steps == other.steps
    assert {**elo.ratings, "b": 0.0} == {**other.ratings, "b": 0.0}


def test_with_a_penalty_the_lateness_is_that_of_the_layer_and_slopes_are_those_of_serving():
    for penalty in (gq.Ridge(0.1), gq.Lasso(0.01)):
        elo = Elo(0.5, penalty=penalty)
        elo.play("a", "b", 1)
        rating = elo.ratings["a"]
        first, second = elo.open("a", "b"), elo.open("c", "d")
        elo.post(first, 1)
        assert abs(second.slopes[1] - penalty.slope(rating)) < 1e-15
        posting = elo.post(second, 0)
        assert posting.late == (1,) and posting.eta == 0.3 / 2
        assert elo.equilibrium().gap < 1e-15
