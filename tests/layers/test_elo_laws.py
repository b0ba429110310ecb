"""Laws of Elo: one thing in several verbs, a journal is the state, partitions add up, refused = unchanged."""

import math

import numpy as np
import pytest

import gradeq as gq
from gradeq.errors import GradeqError
from gradeq.layers.elo import Elo
from gradeq.layers.registry import from_json
from gradeq.ledger.values import Posting, Ticket
from laws.kinds import certified

KINDS = {
    "plain": {"eta": 0.1},
    "power": {"schedule": gq.Power(1.0, 0.5)},
    "drop": {"eta": 0.1, "ties": "drop"},
    "home": {"eta": 0.1, "home_advantage": True},
    "ridge": {"eta": 0.1, "penalty": gq.Ridge(0.05)},
    "lasso": {"eta": 0.1, "penalty": gq.Lasso(0.01)},
    "proximal": {"eta": 0.1, "proximal": 0.002},
    "home and ridge": {"eta": 0.1, "home_advantage": True, "penalty": gq.Ridge(0.02)},
    "home and lasso": {"eta": 0.1, "home_advantage": True, "penalty": gq.Lasso(0.02)},
    "auto": {"eta": "auto"},
    "auto with home": {"eta": "auto", "home_advantage": True},
    "in flight": {"eta": 0.1, "in_flight": 3},
}
LATE = {name: settings for name, settings in KINDS.items() if "proximal" not in settings}


class Games:
    """Columns of games, the first side's ground among them where it counts."""

    def __init__(self, n: int, seed: int, settings, weights=(0.5, 1.0, 2.0)) -> None:
        rng = np.random.default_rng(seed)
        self.a = rng.integers(0, 6, n)
        self.b = (self.a + rng.integers(1, 6, n)) % 6
        self.y = rng.choice([0.0, 0.5, 1.0, 0.3], n)
        self.w = rng.choice(weights, n)
        self.h = rng.choice([0.0, 1.0, -1.0, 0.25], n) if settings.get("home_advantage") else None
        self.due = np.arange(n) + rng.choice([0.0, 3.5, 20.5], n)

    def __len__(self) -> int:
        return len(self.a)

    def at(self, i: int) -> dict:
        home = {} if self.h is None else {"home": self.h[i]}
        return {"weight": self.w[i], **home}

    def columns(self, piece) -> dict:
        return {"weights": self.w[piece], "home": None if self.h is None else self.h[piece]}


def told(elo: Elo):
    """All that a layer says of what it has learned."""
    flight = {name: value for name, value in elo.traffic.items() if name != "open"}
    return elo.ratings, elo.theta, elo.steps, certified(elo).as_dict(), elo.leaderboard(), flight


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_one_by_one_columns_cuts_and_json_in_between_agree_at_once(settings):
    games = Games(240, 1, settings, (0.0, 0.5, 1.0, 2.0))
    one, whole, cut = Elo(**settings), Elo(**settings), Elo(**settings)
    served = []
    for i in range(len(games)):
        home = {} if games.h is None else {"home": games.h[i]}
        served.append(one.peek(games.a[i], games.b[i], **home))
        one.play(games.a[i], games.b[i], games.y[i], **games.at(i))
        if i % 50 == 0:
            one = from_json(one.to_json())
    run = whole.run(games.a, games.b, games.y, **games.columns(slice(None)))
    for piece in np.split(np.arange(240), [0, 1, 77, 140]):
        cut.run(games.a[piece], games.b[piece], games.y[piece], **games.columns(piece))
        cut = from_json(cut.to_json())
    assert run.served.tolist() == served
    assert one.to_json() == whole.to_json() == cut.to_json()


def in_order_of_time(elo: Elo, games: Games, open_, post) -> None:
    """Serve and post as whole columns with label times do."""
    waiting: list[int] = []
    for t in range(len(games)):
        for k in sorted((k for k in waiting if games.due[k] <= t), key=lambda k: (games.due[k], k)):
            waiting.remove(k)
            post(k)
        open_(t)
        waiting.append(t)


@pytest.mark.parametrize("settings", LATE.values(), ids=LATE)
def test_tickets_in_the_book_and_in_hand_columns_and_cuts_agree_late(settings):
    games = Games(200, 2, settings)
    book, hand = Elo(**settings), Elo(**settings)
    whole, cut = Elo(**settings), Elo(**settings)
    tickets: dict[int, str] = {}
    journal: list[Ticket | Posting] = []
    served = []

    def predict(t: int) -> None:
        served.append(book.predict(games.a[t], games.b[t], id=t, **games.at(t)))
        ticket = hand.open(games.a[t], games.b[t], **games.at(t))
        tickets[t] = ticket.to_json()
        journal.append(ticket)
        assert ticket.served == served[-1]

    def settle(k: int) -> None:
        book.update(games.y[k], id=k)
        posting = hand.post(Ticket.from_json(tickets.pop(k)), games.y[k])
        journal.append(Posting.from_json(posting.to_json()))

    in_order_of_time(book, games, predict, settle)
    times, rows = np.arange(200.0), np.arange(200)
    run = whole.run(games.a, games.b, games.y, times=times, label_times=games.due, **games.columns(rows))
    for piece in np.split(rows, [40, 41, 120]):
        cut.run(
            games.a[piece], games.b[piece], games.y[piece], times=times[piece],
            label_times=games.due[piece], **games.columns(piece),
        )  # fmt: skip
        cut = from_json(cut.to_json())
    again = Elo(**settings)
    again.replay(journal)
    assert run.served.tolist() == served
    assert told(book) == told(hand) == told(whole)
    assert again.to_json() == hand.to_json()
    assert whole.to_json() == cut.to_json()


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_a_replayed_journal_with_corrections_is_the_state(settings):
    games = Games(120, 3, settings)
    elo, again = Elo(**settings), Elo(**settings)
    journal: list[Ticket | Posting] = []
    for i in range(len(games)):
        ticket = elo.open(games.a[i], games.b[i], **games.at(i))
        posting = elo.post(ticket, games.y[i])
        journal += [ticket, posting]
        if i % 9 == 0:
            journal += elo.repost(posting, 1.0 - games.y[i] if games.y[i] != 0.5 else 1.0)
    again.replay(journal)
    assert again.to_json() == elo.to_json()
    found = elo.equilibrium()
    assert found.gap < 1e-13 and found.bound is None and "corrected" in found.bound_from


def test_a_dropped_tie_that_becomes_a_win_brings_its_step_along():
    elo = Elo(0.5, ties="drop")
    first, late = elo.open("a", "b"), elo.open("a", "b")
    tie = elo.post(first, 0.5)
    assert tie.eta == 0.3 / 4 and elo.steps["largest"] == 0.0 and elo.equilibrium().rows == 0
    elo.post(late, 1.0)
    elo.repost(tie, 1.0)
    found = elo.equilibrium()
    assert found.rows == 2 and found.gap < 1e-15
    assert (elo.steps["smallest"], elo.steps["largest"]) == (0.3 / 4, 0.5)


def halves(settings, apart: bool):
    """Two partitions of the same games, by players if these are to be apart, and the whole."""
    games = Games(300, 4, {})
    y = games.y
    shift = np.where(np.arange(300) % 2, 10 if apart else 0, 0)
    a, b = games.a + shift, games.b + shift
    one, other, whole = Elo(**settings), Elo(**settings), Elo(**settings)
    odd = np.arange(300) % 2 == 1
    one.run(a[~odd], b[~odd], y[~odd])
    other.run(a[odd], b[odd], y[odd])
    whole.run(a, b, y)
    return one, other, whole


@pytest.mark.parametrize("ties", ["half", "drop"])
def test_partitions_with_players_apart_join_to_the_whole(ties):
    one, other, whole = halves({"eta": 0.1, "ties": ties}, True)
    one.merge(other)
    assert one.ratings == {name: whole.ratings[name] for name in one.ratings}
    ours, theirs = one.equilibrium(), whole.equilibrium()
    assert ours.rows == theirs.rows and ours.exact and ours.gap < 1e-15
    assert abs(ours.loss_after - theirs.loss_after) < 1e-13
    assert abs(ours.bound - theirs.bound) < 1e-12
    boards = [{row.player: row._replace(elo_now=0.0) for row in elo.leaderboard("all-time")} for elo in (one, whole)]
    assert boards[0] == boards[1]


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_sums_of_partitions_add_up_and_the_certificate_stays_exact(settings):
    one, other, _ = halves(settings, False)
    before = [elo.equilibrium() for elo in (one, other)]
    sums = [{row.player: row.wins for row in elo.leaderboard()} for elo in (one, other)]
    ratings = [elo.theta for elo in (one, other)]
    one.merge(other)
    found = one.equilibrium()
    assert found.rows == sum(own.rows for own in before)
    assert found.gap < 1e-12 and found.bound is None and "merged" in found.bound_from
    total = math.fsum(own.loss_after * own.rows for own in before)
    assert abs(found.loss_after * found.rows - total) < 1e-10
    for row in one.leaderboard():
        assert abs(row.wins - sum(own.get(row.player, 0.0) for own in sums)) < 1e-12
    for name, theta in one.theta.items():
        assert abs(theta - sum(own.get(name, 0.0) for own in ratings)) < 1e-13
    one.play("new", 0, 1)
    assert one.equilibrium().gap < 1e-12


def test_bounds_of_merged_partitions_know_the_steps_of_both():
    one, other = Elo(2.0), Elo(0.01)
    for _ in range(3):
        one.play("a", "b", 1)
    one.set_step(0.01)
    for _ in range(3000):
        other.play("c", "d", 1)
    one.merge(other)
    for row in one.leaderboard():
        assert abs(row.bias) <= row.bound


@pytest.mark.parametrize("settings", LATE.values(), ids=LATE)
def test_open_and_waiting_tickets_come_along_in_a_merge(settings):
    one, other = Elo(**settings), Elo(**settings)
    one.run(["a", "b", "e"], ["b", "e", "a"], [1, 0, 1])
    other.run(["c", "b"], ["a", "d"], [1, 0])
    other.predict("b", "c", id="late")
    other.run(["d", "b"], ["a", "c"], [1, 1], times=[0, 1], label_times=[5, 6])
    one.merge(other)
    assert one.update(1, id="late") == "applied"
    one.run(["a"], ["d"], [0], times=[7], label_times=[7])
    assert one.equilibrium().gap < 1e-14 and one.equilibrium().rows == 8
    assert one.traffic["longest_delay"] == 2 and one.traffic["open"] == 1


REFUSED = {
    "duplicate id": lambda elo: elo.predict("x", "y", id="known"),
    "bad id": lambda elo: elo.predict("x", "y", id=1.5),
    "bad time": lambda elo: elo.predict("x", "y", id="new", time=math.nan),
    "negative weight": lambda elo: elo.predict("x", "y", id="new", weight=-1.0),
    "weight": lambda elo: elo.play("x", "y", 1, math.nan),
    "weight of a ticket": lambda elo: elo.open("x", "y", weight=-1.0),
    "oneself": lambda elo: elo.play("x", "x", 1),
    "oneself, predicted": lambda elo: elo.peek("x", "x"),
    "nobody": lambda elo: elo.play("x", None, 1),
    "the first side": lambda elo: elo.play("x", "(first side)", 1),
    "score": lambda elo: elo.play("x", "y", 2),
    "settled score": lambda elo: elo.update(-1, id="known"),
    "home": lambda elo: elo.play("x", "y", 1, home=2.0),
    "corrected score": lambda elo: elo.correct("done", 7),
    "unknown id": lambda elo: elo.update(1, id="unheard of"),
    "run with oneself": lambda elo: elo.run(["x", "y"], ["y", "y"], [1, 1]),
    "run with a bad score": lambda elo: elo.run(["x"], ["y"], [2]),
    "run with a bad weight": lambda elo: elo.run(["x"], ["y"], [1], weights=[-1]),
    "run with few weights": lambda elo: elo.run(["x", "z"], ["y", "y"], [1, 0], weights=[1]),
    "run without times": lambda elo: elo.run(["x"], ["y"], [1], label_times=[1]),
    "run of the first side": lambda elo: elo.run(["x"], ["(first side)"], [1]),
    "step": lambda elo: elo.set_step(-1),
    "merged with other settings": lambda elo: elo.merge(Elo(0.3)),
}


@pytest.mark.parametrize("settings", [{"eta": 8.0}, {"eta": "auto"}], ids=["plain", "auto"])
@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_has_changed_nothing(refused, settings):
    elo = Elo(**settings)
    elo.play("a", "b", 1)
    elo.predict("a", "c", id="known")
    elo.predict("a", "c", id="done")
    elo.update(1, id="done")
    before = elo.to_json()
    with pytest.raises(GradeqError):
        refused(elo)
    assert elo.to_json() == before


def test_a_rating_that_would_leave_the_finite_numbers_is_refused():
    """No weight can do that, as it is relative to others; only a ticket that no layer wrote."""
    elo = Elo(8.0)
    elo.play("a", "b", 1)
    ticket = elo.open("x", "y")._replace(weight=1.7e308)
    before = elo.to_json()
    with pytest.raises(GradeqError, match="a ticket of weight"):
        elo.post(ticket, 1)
    assert elo.to_json() == before
    elo.run(["x"] * 3, ["y"] * 3, [1, 0, 1], weights=[1.7e308] * 3)
    assert all(abs(rating) < 40.0 for rating in elo.ratings.values())


def test_a_ticket_of_another_layer_is_refused():
    elo, home = Elo(0.1), Elo(0.1, home_advantage=True)
    ridge = Elo(0.1, penalty=gq.Ridge(0.1))
    for ticket in (home.open("a", "b"), gq.Debiaser(0.1).open(1.0), ridge.open("a", "b")):
        with pytest.raises(GradeqError):
            elo.post(ticket, 1)
        assert elo.to_json() == Elo(0.1).to_json()


def test_who_plays_nobody_else_is_no_player():
    elo = Elo()
    elo.run(["a", "z"], ["b", "z"], [1, 1], skip_self=True)
    assert list(elo.ratings) == ["a", "b"]


def test_proximal_scores_that_come_after_others_are_refused():
    elo = Elo(0.1, proximal=0.01)
    first, second = elo.open("a", "b"), elo.open("a", "c")
    elo.post(second, 1)
    before = elo.to_json()
    with pytest.raises(GradeqError, match="at once"):
        elo.post(first, 1)
    assert elo.to_json() == before


def test_thresholds_of_light_games_are_in_the_bound():
    """A threshold of strength a game is strength / weight of a game's average: here it keeps every rating at 0."""
    elo = Elo(0.2, proximal=0.06)
    games = (["a", "c"] * 2500, ["b", "d"] * 2500, [1.0, 0.5] * 2500)
    elo.run(*games, weights=[0.1, 1.9] * 2500)
    found = elo.equilibrium()
    assert set(elo.ratings.values()) == {0.0} and abs(found.largest) <= found.bound
    board = {row.player: row for row in elo.leaderboard()}
    assert abs(board["a"].bias) == pytest.approx(0.5, abs=1e-3)
    assert all(abs(row.bias) <= row.bound for row in board.values())


@pytest.mark.parametrize("penalty", [gq.Lasso(0.05), gq.Ridge(0.05)], ids=repr)
def test_the_first_side_counts_in_the_dimension_of_a_penalised_bound(penalty):
    elo = Elo(0.4, penalty=penalty, home_advantage=True)
    elo.run(["a", "c"] * 2000, ["b", "d"] * 2000, [1.0, 1.0] * 2000)
    found = elo.equilibrium()
    assert found.bound is not None and abs(found.largest) <= found.bound
    for c in found.coordinates:
        assert abs(c.bias_after) <= c.bound


def test_a_window_is_what_happened_between_two_states():
    for settings in ({}, {"eta": 0.1}, {"eta": 0.1, "penalty": gq.Ridge(0.05)}, {"schedule": gq.Power(1.0, 0.5)}):
        games = Games(300, 8, settings)
        elo = Elo(**settings)
        elo.run(games.a[:100], games.b[:100], games.y[:100])
        earlier = elo.copy()
        run = elo.run(games.a[100:], games.b[100:], games.y[100:])
        found = elo.since(earlier)
        assert found.rows == 200 and found.gap < 1e-13
        j, p, y = 2, run.served, games.y[100:]
        mine, other = games.a[100:] == j, games.b[100:] == j
        bias = ((p - y)[mine].sum() - (p - y)[other].sum()) / (mine.sum() + other.sum())
        assert abs(found.bias["2"] - bias) < 1e-13
