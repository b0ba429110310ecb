"""A batch is what the events give one by one, wherever it is cut, in whatever form its rows come."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from every_part import GEOMETRIES, LAZY, LINKS, LOSSES, PENALTIES, SCHEDULES, columns
from gradeq.engine.learner import Learner
from gradeq.engine.learner_state import LearnerState
from gradeq.engine.rows import PairRows, Sparse
from gradeq.errors import BadInput, TicketError
from gradeq.geometries import Simplex
from gradeq.ledger.values import Row
from gradeq.links import Identity, Sigmoid
from gradeq.losses import Expectile, Linear, Logistic, Poisson, Quantile, Squared
from gradeq.penalties import Lasso
from gradeq.schedules import Listed, Power

T = 40


def events(learner, state, rows, labels, offsets, weights):
    """The same rows, one ticket and one update at a time."""
    served = []
    for row, y, f, w in zip(rows, labels, offsets, weights, strict=True):
        state, ticket = learner.ticket(state, row, f)
        served.append(ticket.served)
        state = learner.update(state, ticket, y, w)
    return served, state


def learners():
    """Every geometry with each penalty and several schedules; losses and links take turns."""
    combinations = product(GEOMETRIES, [None, *PENALTIES], SCHEDULES[:3])
    for k, (geometry, penalty, schedule) in enumerate(combinations):
        loss, link = LOSSES[k % len(LOSSES)], LINKS[k % len(LINKS)]
        if isinstance(loss, (Logistic, Poisson)):  # losses of the margin have their link inside
            link = Identity()
        yield Learner(loss, schedule, geometry, penalty, link)
    for k, geometry in enumerate(LAZY):
        yield Learner(LOSSES[k], 0.1, geometry, lazy=True)
    for loss, schedule in product((Squared(), Expectile(0.8), Linear()), SCHEDULES[:3]):  # some rows are too large
        yield Learner(loss, schedule)


@pytest.mark.parametrize("learner", list(learners()), ids=str)
def test_run_is_events_is_any_cut(learner):
    rows, labels, offsets = columns(T)
    labels[::7] = np.nan
    weights = np.where(np.arange(T) % 5 == 0, 0.0, 1.0 + np.arange(T) % 3)
    start = learner.start(3)
    whole = learner.run(start, rows, labels, offsets, weights)
    served, state = events(learner, start, rows, labels, offsets, weights)
    assert whole.served.tolist() == served
    assert whole.state == state
    for cut in (0, 1, 17, T):
        first = learner.run(start, rows[:cut], labels[:cut], offsets[:cut], weights[:cut])
        second = learner.run(first.state, rows[cut:], labels[cut:], offsets[cut:], weights[cut:])
        assert second.state == whole.state
        assert [*first.served, *second.served] == served


@given(cuts=st.lists(st.integers(0, T), max_size=5), seed=st.integers(0, 5))
def test_plain_descent_may_be_cut_anywhere(cuts, seed):
    """The quick path and the careful one, which a missing label or a trace takes, agree to the last bit."""
    rows, labels, offsets = columns(T, seed=seed)
    learner = Learner(Squared(), 0.1)
    whole = learner.run(learner.start(3), rows, labels, offsets)
    state = learner.start(3)
    edges = [0, *sorted(cuts), T]
    for a, b in pairwise(edges):
        state = learner.run(state, rows[a:b], labels[a:b], offsets[a:b]).state
    assert state == whole.state
    assert learner.run(learner.start(3), rows, labels, offsets, trace=7).state == whole.state
    assert learner.run(learner.start(3), rows, labels, offsets, np.ones(T)).state == whole.state


@pytest.mark.parametrize("schedule", SCHEDULES[:2], ids=repr)
def test_the_form_of_a_row_does_not_show(schedule):
    index = np.arange(T) * 7 % 3
    dense = np.eye(3)[index]
    _, labels, offsets = columns(T)
    learner = Learner(Squared(), schedule)
    sparse = Sparse(np.arange(T + 1), index, np.ones(T))
    runs = [learner.run(learner.start(3), form, labels, offsets) for form in (index, dense, sparse)]
    assert runs[0].served.tolist() == runs[1].served.tolist() == runs[2].served.tolist()
    assert runs[0].state == runs[1].state == runs[2].state
    ones = learner.run(learner.start(1), None, labels, offsets)
    zeros = learner.run(learner.start(1), np.zeros(T, dtype=int), labels, offsets)
    assert ones.state == zeros.state


def test_pairs_are_minus_one_and_one():
    a, b = np.arange(T) % 3, (np.arange(T) % 3 + 1 + np.arange(T) % 2) % 3
    dense = np.zeros((T, 3))
    dense[np.arange(T), a], dense[np.arange(T), b] = -1.0, 1.0
    _, labels, _ = columns(T)
    learner = Learner(Squared(), 0.2, link=Sigmoid())
    pairs = learner.run(learner.start(3), PairRows(a, b), labels)
    same = learner.run(learner.start(3), dense, labels)
    np.testing.assert_allclose(pairs.served, same.served, atol=1e-15)
    assert sum(pairs.state.theta) == pytest.approx(0.0, abs=1e-12)
    state, ticket = learner.ticket(learner.start(3), PairRows(0, 2))
    assert (ticket.row, ticket.served) == (Row(("0", "2"), (-1.0, 1.0)), 0.5)
    assert state.t == 1


def test_a_repeated_entry_counts_each_time():
    rows = Sparse([0, 2, 4], [0, 0, 1, 0], [1.0, 0.5, 1.0, -1.0])
    learner = Learner(Squared(), 0.1)
    run = learner.run(learner.start([1.0, 2.0]), rows, [0.0, 1.0])
    _, state = events(
        learner,
        learner.start([1.0, 2.0]),
        [Sparse([0, 2], [0, 0], [1.0, 0.5]), Sparse([0, 2], [1, 0], [1.0, -1.0])],
        [0.0, 1.0],
        [0.0, 0.0],
        [1.0, 1.0],
    )
    assert run.served[0] == 1.5
    assert run.state == state


def test_keyed_series_are_independent_and_stay_in_row_order():
    """One pass over mixed keys gives each key what a run over its own rows gives."""
    rng = np.random.default_rng(3)
    keys, labels = rng.integers(0, 5, 200), rng.normal(size=200)
    learner = Learner(Quantile(0.9), 0.3)
    mixed = learner.run(learner.start(5), keys, labels)
    for key in range(5):
        own = learner.run(learner.start(), None, labels[keys == key])
        assert own.served.tolist() == mixed.served[keys == key].tolist()
        assert own.state.u[0] == mixed.state.u[key]


@pytest.mark.parametrize("penalty", [None, *PENALTIES], ids=repr)
@pytest.mark.parametrize("geometry", LAZY, ids=repr)
@given(order=st.permutations(range(12)))
def test_tickets_posted_in_any_order_give_the_same_state_to_rounding(geometry, penalty, order):
    rows, labels, offsets = columns(12)
    for schedule in (0.1, Power(0.3, 0.4)):
        learner = Learner(Squared(), schedule, geometry, penalty, lazy=True)
        state, tickets = learner.start(3), []
        for row, f in zip(rows, offsets, strict=True):
            state, ticket = learner.ticket(state, row, f)
            tickets.append(ticket)
        straight = shuffled = state
        for k in range(12):
            straight = learner.update(straight, tickets[k], labels[k])
        for k in order:
            shuffled = learner.update(shuffled, tickets[k], labels[k])
        for name in ("u", "theta", "gradients", "penalties", "moves"):
            np.testing.assert_allclose(getattr(straight, name), getattr(shuffled, name), atol=1e-13)
        assert (straight.n, straight.t) == (shuffled.n, shuffled.t) == (12, 12)


def test_a_late_label_is_refused_where_the_order_matters():
    learner = Learner(Squared(), 0.1, Simplex())
    state, early = learner.ticket(learner.start(3), 0)
    state, late = learner.ticket(state, 1)
    state = learner.update(state, early, 1.0)
    with pytest.raises(TicketError, match="order of serving"):
        learner.update(state, late, 1.0)
    state, fresh = learner.ticket(state, 1)
    assert learner.update(state, fresh, 1.0).n == 2


def test_missing_labels_and_zero_weights_change_nothing_but_the_clock():
    learner = Learner(Squared(), Power(0.1, 0.5), penalty=Lasso(0.1))
    rows, labels, _ = columns(T)
    state = learner.run(learner.start(3), rows, labels).state
    unseen = learner.run(state, rows, [None] * T).state
    later = LearnerState.from_dict({**state.as_dict(), "served": [2.0 * T]})
    assert (later.t, unseen) == (2 * T, later)
    unweighted = learner.run(state, rows, labels, weights=np.zeros(T)).state
    assert unweighted == later


def test_states_are_values_that_nobody_changes():
    rows, labels, offsets = columns(T)
    learner = Learner(Squared(), 0.1)
    start = learner.start(3)
    before = start.as_dict()
    given = [array.copy() for array in (rows, labels, offsets)]
    state = learner.run(start, rows, labels, offsets).state
    assert start.as_dict() == before
    for array, copy in zip((rows, labels, offsets), given, strict=True):
        assert array.tolist() == copy.tolist()
    with pytest.raises(ValueError, match="read-only"):
        state.u[0] = 1.0
    assert LearnerState.from_dict(state.as_dict()) == state
    assert hash(LearnerState.from_dict(state.as_dict())) == hash(state)
    assert state != start


def test_the_trace_holds_theta_before_every_kth_row():
    rows, labels, _ = columns(T)
    for geometry in GEOMETRIES:
        learner = Learner(Squared(), 0.1, geometry)
        full = learner.run(learner.start(3), rows, labels, trace=1)
        thin = learner.run(learner.start(3), rows, labels, trace=15)
        assert full.trace.shape == (T, 3)
        assert thin.trace.tolist() == full.trace[::15].tolist()
        np.testing.assert_allclose((full.trace * rows).sum(axis=1), full.served, atol=1e-14)


def test_predicting_changes_nothing_and_needs_no_step():
    learner = Learner(Squared(), Listed((0.1,)), link=Sigmoid())
    state = learner.run(learner.start(), None, [1.0]).state
    assert learner.predict(state, offset=0.5) == Sigmoid().serve(0.5, state.theta[0])
    with pytest.raises(BadInput, match="step"):
        learner.ticket(state)


def test_start_takes_parameters_or_their_number():
    assert Learner(Squared(), 0.1).start(2).theta.tolist() == [0.0, 0.0]
    assert Learner(Squared(), 0.1).start([1.0, 2.0]).u.tolist() == [1.0, 2.0]
    assert Learner(Squared(), 0.1).start(1.5).theta.tolist() == [1.5]
    assert Learner(Squared(), 0.1, Simplex()).start(4).theta.tolist() == [0.25] * 4
    for geometry in GEOMETRIES:
        learner = Learner(Squared(), 0.1, geometry)
        theta = learner.start(3).theta
        np.testing.assert_allclose(learner.start(theta).theta, theta, atol=1e-12)


def test_learners_are_values():
    assert Learner(Squared(), 0.1) == Learner(Squared(), 0.1)
    assert Learner(Squared(), 0.1) != Learner(Squared(), 0.2)
    assert "Constant(eta=0.1)" in repr(Learner(Squared(), 0.1))
    assert len({Learner(Squared(), 0.1), Learner(Squared(), 0.1)}) == 1
