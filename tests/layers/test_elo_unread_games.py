"""Plain games scored at once only move ratings; whatever is asked next finds everything entered, to the last bit."""

import numpy as np
import pytest

import gradeq.layers.elo as elo_module
from gradeq.errors import BadInput
from gradeq.layers import elo as layer
from gradeq.layers.elo import Elo
from gradeq.layers.registry import from_json
from gradeq.ledger import state as ledger


class Slow(Elo):
    """Every game through its ticket."""

    _plain = False


def lived(make, seed, ties):
    """All verbs in a random order; what each of them answered."""
    rng = np.random.default_rng(seed)
    elo, told, waiting = make(0.1, ties=ties), [], []
    for i in range(300):
        a, b = (int(k) for k in rng.choice(3 + i // 30, 2, replace=False))
        y = float(rng.choice([0.0, 0.5, 1.0, 0.3]))
        what = int(rng.integers(40))
        if what < 28:
            a, b = (a, b) if what % 2 else (f"{a}", f"{b}")
            told += [elo.peek(a, b), elo.play(a, b, y), elo.peek(a, b)]
        elif what < 31:
            told.append(elo.predict(a, b, id=i))
            waiting.append(i)
        elif what < 33 and waiting:
            told.append(elo.update(y, id=waiting.pop(0)))
            told.append(elo.correct(0, y) if 0 in elo.ids and elo.ids[0] == "closed" else "")
        elif what == 33:
            told.append(elo.run(["0", f"{a}"], ["x", "x"], [y, 0.0]).served)
        elif what == 34:
            told.append(elo.play(a, b, y, weight=float(rng.choice([0.0, 2.0]))))
        elif what == 35:
            elo.freeze()
            told.append(elo.play(a, b, y))
            elo.resume()
        elif what == 36:
            elo.set_step(float(rng.choice([0.05, 0.1])))
        elif what == 37:
            told += [elo.traffic, elo.ratings, elo.steps]
        elif what == 38:
            elo = elo.copy()
        else:
            with pytest.raises(BadInput):
                elo.play(a, a, y)
    return elo, told


@pytest.mark.parametrize("ties", ["half", "drop"])
def test_every_verb_finds_what_it_would_have_found(ties, monkeypatch):
    monkeypatch.setattr(elo_module, "MANY", 7)
    for seed in range(4):
        (quick, told), (slow, said) = (lived(make, seed, ties) for make in (Elo, Slow))
        assert told == said
        assert quick.to_json() == slow.to_json()
        assert quick.board() == slow.board() and quick.drift() == slow.drift()
        assert from_json(quick.to_json()).to_json() == slow.to_json()


def test_games_wait_until_somebody_asks():
    elo = Elo(0.1)
    for _ in range(50):
        elo.play("a", "b", 1.0)
    assert len(elo.internals.rally.games) == 49  # the first brings the players
    assert elo.equilibrium().rows == 50 and elo.internals.rally is None


def test_a_rally_is_entered_before_it_grows_long(monkeypatch):
    monkeypatch.setattr(elo_module, "MANY", 20)
    elo = Elo(0.1)
    for _ in range(70):
        elo.play("a", "b", 1.0)
        assert elo.internals.rally is None or len(elo.internals.rally.games) < 20
    assert elo.equilibrium().rows == 70


def test_scores_that_the_caller_writes_over_stay_what_they_were():
    a, b = np.array([0, 1, 2] * 40), np.array([1, 2, 0] * 40)
    y, w = np.array([1.0, 0.5, 0.0] * 40), np.full(120, 2.0)
    one, other = Elo(0.1), Elo(0.1)
    one.run(a, b, y, weights=w)
    other.run(a, b, y.copy(), weights=w.copy())
    y[:], w[:] = 0.0, 1.0
    assert one.board() == other.board()


@pytest.mark.parametrize("eta", [0.1, None])
def test_games_do_not_wait_for_ever_for_somebody_to_read_the_board(eta, monkeypatch):
    for home in (layer, ledger):
        monkeypatch.setattr(home, "UNREAD", 5)
    elo, other = Elo(eta), Elo(eta)
    a, b, y = np.arange(90) % 3, (np.arange(90) + 1) % 3, np.arange(90) % 2 / 1.0
    for i in range(90):
        elo.predict(f"{a[i]}", f"{b[i]}", id=i)
        elo.update(y[i], id=i)
        assert len(elo.internals.state.unread) <= 5
    for i in range(9):
        other.run(a[10 * i : 10 * i + 10], b[10 * i : 10 * i + 10], y[10 * i : 10 * i + 10])
        assert sum(len(entry[0]) for entry in other.internals.state.unread) <= 80
    assert elo.board() == other.board()


def test_a_corrected_score_changes_the_fit_and_teaches_the_filters_nothing():
    elo, right = Elo(0.1), Elo(0.1)
    for i in range(60):
        for own in (elo, right):
            own.predict("abc"[i % 3], "abc"[(i + 1) % 3], id=i)
        elo.update(i % 2, id=i)
        right.update(i % 2 if i != 7 else 0.5, id=i)
    before = elo.drift(), {row.player: row.elo_now for row in elo.leaderboard()}
    elo.correct(7, 0.5)
    assert before == (elo.drift(), {row.player: row.elo_now for row in elo.leaderboard()})
    assert [row[:8] for row in elo.leaderboard("all-time")] == [row[:8] for row in right.leaderboard("all-time")]
