"""Rows served without a label coming: counted alike on every path, and said where labels stay away."""

import numpy as np
import pytest

from gradeq import Debiaser, QuantileTracker, Ticket, from_json

N, GONE, BACK = 3000, 1000, 1800


def arrivals(late):
    """When the label of each row is known: soon, but from GONE on only at BACK; every tenth never."""
    times = np.arange(float(N))
    due = times + (5.0 if late else 0.5)
    due[(due > GONE) & (due < BACK)] = BACK
    due[::10] = np.nan
    return times, due


def made(kind):
    return QuantileTracker(0.9, groups=["g"]) if kind == "quantile" else Debiaser(groups=["g"])


def stream():
    rng = np.random.default_rng(0)
    f, g = rng.normal(size=N), rng.choice(["a", "b"], N)
    return f, f + rng.normal(size=N), g


@pytest.mark.parametrize("kind", ["mean", "quantile"])
def test_an_outage_released_at_once_gives_the_same_bits_in_events_columns_pieces_and_a_journal(kind, monkeypatch):
    f, y, g = stream()
    times, due = arrivals(late=True)
    monkeypatch.setenv("GRADEQ_COMPILE", "0")

    def run(layer, a=0, b=N):
        part = slice(a, b)
        return layer.run(f[part], y[part], {"g": g[part]}, times=times[part], label_times=due[part]).served

    whole, cut, pieces = made(kind), made(kind), []
    served = run(whole)
    for a, b in ((0, 900), (900, 1500), (1500, 1801), (1801, N)):
        pieces.extend(run(cut, a, b))
        cut = from_json(cut.to_json())
    assert np.array_equal(served, pieces) and cut.to_json() == whole.to_json()
    events, journal, waiting, one_by_one = made(kind), [], [], []
    for i in range(N):
        for _, k, ticket in sorted(own for own in waiting if own[0] <= i):
            journal.append(events.post(Ticket.from_json(ticket), y[k]))
        waiting = [own for own in waiting if own[0] > i]
        journal.append(events.open(f[i], {"g": g[i]}))
        one_by_one.append(journal[-1].served)
        if due[i] == due[i]:
            waiting.append((due[i], i, journal[-1].to_json()))
    again = made(kind)
    again.replay(journal)
    assert np.array_equal(served, one_by_one)
    assert events.internals.state == again.internals.state
    assert events.internals.state.saved() == whole.internals.state.saved()
    monkeypatch.setenv("GRADEQ_COMPILE", "1")
    fast = made(kind)
    assert np.array_equal(run(fast), served) and fast.to_json() == whole.to_json()


@pytest.mark.parametrize("late", [False, True])
def test_labels_that_stay_away_are_told_while_they_do_and_afterwards(late):
    f, y, g = stream()
    times, due = arrivals(late)
    layer = made("mean")

    def upto(a, b):
        part = slice(a, b)
        columns = {"times": times[part], "label_times": due[part]}
        layer.run(f[part], y[part], {"g": g[part]}, **columns)
        return layer.equilibrium()

    calm = upto(0, GONE)
    assert calm.learning.gaps == "" and "labels:" not in str(calm)
    assert calm.learning.silent <= calm.learning.silence <= 2
    away = upto(GONE, BACK - 1)
    assert away.learning.stopped and BACK - 5 - GONE <= away.learning.silent <= BACK - GONE
    assert f"none has come for the last {away.learning.silent} rows" in str(away)
    back = upto(BACK - 1, N)
    assert back.learning.outage and not back.learning.stopped
    assert BACK - 2 - GONE <= back.learning.silence <= BACK - GONE
    assert f"none came for {back.learning.silence} rows at one time" in str(back)
    assert str(back.learning).count("none came") == 1
    assert back.as_dict()["learning"]["silence"] == back.learning.silence


def test_labels_in_regular_batches_are_no_outage():
    times = np.arange(2000.0)
    layer = Debiaser()
    layer.run(times, times, times=times, label_times=np.floor(times / 200) * 200 + 200)
    assert layer.equilibrium().learning.silence == 200
    assert layer.equilibrium().learning.gaps == ""


def test_labels_at_once_count_rows_without_a_label_as_events_do():
    y = np.where(np.arange(500) % 7 < 3, np.nan, 1.0)
    y[200:330] = np.nan
    columns, events = Debiaser(), Debiaser()
    columns.run(np.zeros(500), y)
    for label in y:
        ticket = events.open(0.0)
        if label == label:
            events.post(ticket, label)
    assert list(columns.internals.state.silence) == list(events.internals.state.silence)
    assert columns.equilibrium().learning.silence >= 130


def test_a_state_kept_before_silence_was_counted_reads_back_and_counts_from_then_on():
    layer = Debiaser()
    layer.run(np.zeros(300), np.ones(300))
    state = layer.internals.state.saved()
    del state["silence"]
    twin = Debiaser()
    twin.internals.state.restore(state, 1, 1)
    assert twin.equilibrium().learning.silent == 0
    twin.run(np.zeros(10), np.ones(10))
    assert list(twin.internals.state.silence) == [310.0, 1.0]


@pytest.mark.parametrize("kind", ["mean", "quantile"])
def test_labels_held_back_by_an_outage_change_nothing_before_it_ends(kind):
    """No leakage: other labels for the rows of the outage, and what is served until they come is the same."""
    f, y, g = stream()
    times, due = arrivals(late=True)
    held = due == BACK
    other = np.where(held, y + 50.0, y)
    one, two = (made(kind).run(f, labels, {"g": g}, times=times, label_times=due).served for labels in (y, other))
    assert held.sum() > 600
    assert np.array_equal(one[:BACK], two[:BACK])
    assert not np.array_equal(one[BACK:], two[BACK:])
