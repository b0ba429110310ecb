"""Bad input is refused in one line, with the state unchanged; odd but good input is taken as it is."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from gradeq.engine.learner import Learner
from gradeq.engine.learner_state import LearnerState
from gradeq.engine.rows import PairRows, Sparse
from gradeq.errors import BadInput, Diverging, GradeqError, StateError, StepTooLarge, TicketError
from gradeq.geometries import Affine, Box, EntropicSimplex, Euclidean, Simplex, SoftThreshold
from gradeq.ledger.values import Row, Ticket
from gradeq.links import Exp, Identity, Logit, Multiplicative, Shift, Sigmoid
from gradeq.losses import Logistic, Poisson, Quantile, Squared
from gradeq.penalties import Lasso
from gradeq.schedules import Called, Listed, Power

ROWS = np.arange(12.0).reshape(4, 3) / 12
LABELS = [0.0, 1.0, 0.5, 1.0]


def learner(loss=None):
    return Learner(loss or Squared(), 0.1)


BAD_RUNS = {
    "infinite label": (ROWS, [0.0, math.inf, 0.5, 1.0], {}, "row 1"),
    "text label": (ROWS, ["a", "b", "c", "d"], {}, "not numbers"),
    "text in objects": (ROWS, np.array([0, "x", 1, 1], dtype=object), {}, "'x'"),
    "complex label": (ROWS, [1j, 0, 0, 0], {}, "complex"),
    "dates": (ROWS, np.array(["2020-01-01"] * 4, dtype="datetime64[D]"), {}, "datetime"),
    "too large an integer": (ROWS, np.array([10**400, 0, 0, 0], dtype=object), {}, "too large"),
    "too few labels": (ROWS, [0.0], {}, "1 values for 4 rows"),
    "labels of two columns": (ROWS, np.zeros((4, 2)), {}, "one column"),
    "nan in rows": (np.where(ROWS[2, 1] == ROWS, np.nan, ROWS), LABELS, {}, "row 2"),
    "inf in rows": (np.where(ROWS[2, 1] == ROWS, -np.inf, ROWS), LABELS, {}, "row 2"),
    "wrong width": (ROWS[:, :2], LABELS, {}, "2 columns for 3 parameters"),
    "ragged": ([[1.0], [1.0, 2.0]], LABELS[:2], {}, "unequal length"),
    "a float column as rows": ([0.1, 0.2], LABELS[:2], {}, "active index"),
    "bools as an index": (np.array([True] * 4), LABELS, {}, "bool"),
    "three dimensions": (np.zeros((4, 3, 1)), LABELS, {}, "shape"),
    "no rows for three parameters": (None, LABELS, {}, "give rows"),
    "index below": ([0, 1, -1, 2], LABELS, {}, "row 2 has index -1"),
    "index above": ([0, 1, 3, 2], LABELS, {}, "0 to 2"),
    "nan offset": (ROWS, LABELS, {"offsets": [0.0, 0.0, math.nan, 0.0]}, "row 2"),
    "None offset": (ROWS, LABELS, {"offsets": [0.0, None, 0.0, 0.0]}, "row 1"),
    "one offset": (ROWS, LABELS, {"offsets": [0.0]}, "1 values for 4 rows"),
    "negative weight": (ROWS, LABELS, {"weights": [1, 1, -1, 1]}, "row 2"),
    "nan weight": (ROWS, LABELS, {"weights": [1, math.nan, 1, 1]}, "row 1"),
    "trace of nothing": (ROWS, LABELS, {"trace": 0}, "whole number"),
    "starts not from 0": (Sparse([1, 2], [0, 1], [1.0, 1.0]), [0.0], {}, "begin with 0"),
    "starts that fall": (Sparse([0, 2, 1], [0, 1], [1.0, 1.0]), [0.0, 0.0], {}, "never fall"),
    "entries missing": (Sparse([0, 2], [0], [1.0]), [0.0], {}, "every entry"),
    "float indices": (Sparse([0, 1], [0.0], [1.0]), [0.0], {}, "integers"),
    "sparse index above": (Sparse([0, 1], [3], [1.0]), [0.0], {}, "entry 0"),
    "sparse nan": (Sparse([0, 1], [2], [math.nan]), [0.0], {}, "entry 0"),
    "a game against oneself": (PairRows([0, 1], [1, 1]), [0.0, 1.0], {}, "row 1 pairs 1 with itself"),
    "half a pair": (PairRows([0, 1], [1]), [0.0, 1.0], {}, "one of each"),
    "rows for other labels": ([0, 1], LABELS, {}, "4 values for 2 rows"),
}


@pytest.mark.parametrize("case", BAD_RUNS, ids=str)
def test_a_bad_run_is_refused_in_one_line_and_changes_nothing(case):
    rows, labels, more, told = BAD_RUNS[case]
    start = learner().start(3)
    before = start.as_dict()
    with pytest.raises(BadInput) as error:
        learner().run(start, rows, labels, **more)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
    assert start.as_dict() == before


@pytest.mark.parametrize("k", [0, 3, 70_000])
def test_the_row_is_named_however_far_down_it_stands(k):
    labels = np.zeros(70_010)
    labels[k] = -math.inf
    with pytest.raises(BadInput, match=f"row {k} "):
        learner(Quantile(0.5)).run(learner().start(), None, labels)


@pytest.mark.parametrize(("loss", "bad"), [(Logistic(), 1.1), (Logistic(-1, 1), -1.5), (Poisson(), -1.0)], ids=repr)
def test_labels_outside_the_range_of_the_loss_are_refused(loss, bad):
    one = learner(loss)
    with pytest.raises(BadInput, match=r"row 1 .*outside"):
        one.run(one.start(), None, [0.0, bad])
    with pytest.raises(BadInput, match=r"row 1 .*outside"):
        one.run(one.start(), None, [0.0, bad], trace=1)
    state, ticket = one.ticket(one.start())
    with pytest.raises(BadInput, match="outside"):
        one.update(state, ticket, bad)


GOOD_LABELS = {
    "bool": np.array([False, True, True, False]),
    "int8": np.array([0, 1, 1, 0], dtype=np.int8),
    "uint8": np.array([0, 1, 1, 0], dtype=np.uint8),
    "float32": np.array([0, 1, 1, 0], dtype=np.float32),
    "object": np.array([0, True, 1.0, Decimal(0)], dtype=object),
    "fractions": [Fraction(0), Fraction(1), 1, 0],
    "tuple": (0, 1, 1, 0),
    "strided": np.array([0.0, 9.0, 1.0, 9.0, 1.0, 9.0, 0.0, 9.0])[::2],
    "big endian": np.array([0, 1, 1, 0], dtype=">f8"),
}


@pytest.mark.parametrize("kind", GOOD_LABELS, ids=str)
def test_any_kind_of_number_is_promoted_before_arithmetic(kind):
    expected = learner().run(learner().start(3), ROWS, [0.0, 1.0, 1.0, 0.0])
    run = learner().run(learner().start(3), ROWS, GOOD_LABELS[kind])
    assert run.state == expected.state
    assert run.served.dtype == np.float64


def test_small_integers_do_not_wrap_around():
    far = np.array([100, -100], dtype=np.int8)
    one = Learner(Squared(), 1.0)
    run = one.run(one.start(), None, far, offsets=np.array([-100, 100], dtype=np.int8))
    assert run.served.tolist() == [-100.0, 300.0]


def test_a_missing_label_is_never_a_zero():
    pandas = pytest.importorskip("pandas")
    expected = learner().run(learner().start(), None, [1.0, math.nan, 2.0])
    for labels in (
        [1.0, None, 2.0],
        np.array([1.0, None, 2.0], dtype=object),
        pandas.Series([1.0, None, 2.0]),
        pandas.array([1, None, 2], dtype="Int64"),
        np.array([1.0, pandas.NA, 2.0], dtype=object),
    ):
        run = learner().run(learner().start(), None, labels)
        assert run.state == expected.state
        assert run.state.n == 2


def test_empty_input_gives_empty_output_and_the_same_state():
    start = learner().start(3)
    for rows in (np.zeros((0, 3)), np.zeros(0, dtype=int), [], Sparse([0], [], [])):
        run = learner().run(start, rows, [])
        assert run.served.tolist() == []
        assert run.served.dtype == np.float64
        assert run.state == start


def test_one_row_works():
    run = learner().run(learner().start(3), [[1.0, 0.0, 0.0]], [1.0])
    assert run.state.theta.tolist() == [0.1, 0.0, 0.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("geometry", [Euclidean(), Box(-1.0, 1.0)], ids=repr)
def test_a_table_that_is_not_finite_is_found_behind_any_link(geometry, bad):
    """Long tables are read once: what is not finite shows in the sums, and is looked for only then."""
    rows = np.ones((50, 2))
    rows[20, 1] = bad
    one = Learner(Squared(), 0.1, geometry, link=Sigmoid())
    for labels in (np.ones(50), np.where(np.arange(50) == 20, np.nan, 1.0)):
        with pytest.raises(BadInput, match="rows: row 20 "):
            one.run(one.start(2), rows, labels)


def test_divergence_is_an_error_and_the_state_stays():
    """Squared error needs eta < 2: refused where z is known to be 1; elsewhere it overflows after a thousand rows."""
    one = Learner(Squared(), 3.0)
    start = one.start()
    with pytest.raises(StepTooLarge, match="below 2"):
        one.run(start, None, np.ones(3000))
    for more in ({}, {"trace": 100}):
        with pytest.raises(Diverging, match="diverging"):
            one.run(start, np.ones((3000, 1)), np.ones(3000), **more)
    state = start
    with pytest.raises(Diverging):
        for _ in range(3000):
            state, ticket = one.ticket(state)
            state = one.update(state, ticket, 1.0)
    assert math.isfinite(state.u[0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Learner(Squared(), 0.0),
        lambda: Learner(Squared(), -1),
        lambda: Learner(Squared(), math.nan),
        lambda: Learner(Squared(), math.inf),
        lambda: Learner(Squared(), "auto"),
        lambda: Learner(Squared, 0.1),
        lambda: Learner(0.1, Squared()),
        lambda: Learner(Squared(), 0.1, Simplex(), lazy=True),
        lambda: Learner(Squared(), 0.1, EntropicSimplex(0.1), lazy=True),
        lambda: Learner(Squared(), 0.1, SoftThreshold(0.1), lazy=True),
        lambda: learner().start(0),
        lambda: learner().start(True),
        lambda: learner().start([]),
        lambda: learner().start([math.nan]),
        lambda: learner().start("abc"),
        lambda: Learner(Squared(), 0.1, Box(0.0, 1.0)).start([2.0]),
        lambda: Learner(Squared(), 0.1, Simplex()).start([0.5, 0.6]),
        lambda: Learner(Squared(), 0.1, EntropicSimplex(0.1)).start([0.95, 0.05]),
        lambda: Learner(Squared(), 0.1, EntropicSimplex(0.4)).start(3),
        lambda: Learner(Squared(), 0.1, Affine([[1.0, 1.0]], [1.0])).start(3),
        lambda: learner().predict(learner().start(3)),
        lambda: learner().predict(learner().start(3), 3),
        lambda: learner().predict(learner().start(3), [1.0, math.inf, 0.0]),
        lambda: learner().predict(learner().start(3), [1.0]),
        lambda: learner().predict(learner().start(3), 0, offset=math.nan),
        lambda: learner().predict(learner().start(3), 0, offset="3"),
        lambda: learner().predict(learner().start(3), PairRows([0, 1], [1, 2])),
        lambda: learner().descend(learner().start(3), [1.0]),
        lambda: learner().descend(learner().start(1), [math.nan]),
        lambda: Learner(Squared(), Listed((0.1,))).run(learner().start(), None, [0.0, 0.0]),
    ],
)
def test_nonsense_is_refused_in_one_line(make):
    with pytest.raises(GradeqError) as error:
        make()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("loss", "link"),
    [
        (Logistic(), Sigmoid()),
        (Logistic(-1, 1), Logit()),
        (Logistic(), Shift()),
        (Poisson(), Exp()),
        (Poisson(), Multiplicative()),
    ],
    ids=repr,
)
def test_a_link_that_would_be_applied_twice_is_refused(loss, link):
    with pytest.raises(BadInput, match=r"twice: use Squared\(\)"):
        Learner(loss, 0.1, link=link)
    assert Learner(loss, 0.1).link == Identity()
    assert Learner(Squared(), 0.1, link=link).link == link


def test_a_ticket_comes_back_from_json_and_that_of_a_layer_is_refused():
    one = Learner(Squared(), 0.1, Simplex(), Lasso(0.1))
    state, ticket = one.ticket(one.start(3), [1.0, 0.5, -0.1], 0.2)
    read = Ticket.from_json(ticket.to_json())
    assert one.update(state, read, 1.0) == one.update(state, ticket, 1.0)
    for names in (("(all)",), ("3",), ("-1",)):
        stranger = ticket._replace(row=Row(names, (1.0,)))
        with pytest.raises(TicketError, match="names parameters"):
            one.update(state, stranger, 1.0)


@pytest.mark.parametrize(("y", "weight"), [(math.inf, 1.0), ("a", 1.0), (1.0, -1.0), (1.0, math.nan), (1j, 1.0)])
def test_a_bad_label_of_a_ticket_is_refused(y, weight):
    state, ticket = learner().ticket(learner().start())
    before = state.as_dict()
    with pytest.raises(BadInput):
        learner().update(state, ticket, y, weight)
    assert state.as_dict() == before


def test_the_state_of_another_kind_of_learner_is_refused():
    state, one = learner().start(3), Learner(Squared(), 0.1, Simplex())
    assert Learner(Quantile(0.5), 0.2).predict(state, 0) == 0.0  # the same sums
    _, ticket = one.ticket(one.start(3), 0)
    for act in (
        lambda: one.predict(state, 0),
        lambda: one.ticket(state, 0),
        lambda: one.update(state, ticket, 1.0),
        lambda: one.descend(state, [1.0, 0.0, 0.0]),
        lambda: one.run(state, ROWS, LABELS),
    ):
        with pytest.raises(StateError, match="another geometry or penalty"):
            act()


def test_a_state_that_is_not_ours_is_refused():
    saved = learner().start(2).as_dict()
    wrong = [
        {},
        {**saved, "more": 1},
        {**saved, "u": [0.0]},
        {**saved, "u": ["a", "b"]},
        {**saved, "u": [math.nan, 0.0]},
        {**saved, "heard": [-1.0, 0.0, 0.0]},
        {**saved, "heard": [5.0, 5.0, 0.1]},
        {**saved, "heard": [0.0, math.inf, 0.0]},
        {**saved, "u": [[0.0, 0.0]]},
    ]
    for broken in wrong:
        with pytest.raises(StateError):
            LearnerState.from_dict(broken)


class Halves:
    """A geometry of one's own, with nothing but the two maps."""

    def dual(self, theta, out):
        for j in range(len(theta)):
            out[j] = theta[j]

    def primal(self, z, eta, out):
        for j in range(len(z)):
            out[j] = min(0.5, z[j])


def test_a_geometry_of_ones_own_needs_its_two_maps_only():
    one = Learner(Squared(), 0.5, Halves())
    run = one.run(one.start(2), np.eye(2), [3.0, 0.2])
    assert run.state.theta.tolist() == [0.5, 0.1]
    with pytest.raises(BadInput, match="no lazy form: it does not say lazy_is_sound"):
        Learner(Squared(), 0.5, Halves(), lazy=True)


def test_what_a_part_of_ones_own_lacks_is_named():
    class NoDual:
        def primal(self, z, eta, out):
            out[:] = z

    for make, told in (
        (lambda: Learner(Squared(), 0.5, NoDual()), r"no method dual; NoDual needs dual\(theta, out\)"),
        (lambda: Learner(NoDual(), 0.5), r"no method slope; NoDual needs slope\(u, y\)"),
        (lambda: Learner(Squared, 0.5), r"Squared is a class; give Squared\(...\)"),
    ):
        with pytest.raises(BadInput, match=told):
            make()


def test_a_step_that_falls_as_one_over_t_is_a_power_as_it_is_a_function():
    falling, called = (Learner(Quantile(0.9), steps) for steps in (Power(0.5, 1.0), Called(lambda t: 0.5 / t)))
    runs = [one.run(one.start(), None, LABELS).state for one in (falling, called)]
    assert runs[0] == runs[1]
    with pytest.raises(BadInput, match=r"\[0, 1\]; above 1 the sum of all steps is finite"):
        Power(0.5, 1.5)
