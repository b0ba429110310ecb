"""The bound of a Learner: found without being asked, never contradicted; where there is none the reason is said."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from gradeq.engine.learner import Learner
from gradeq.engine.learner_state import LearnerState
from gradeq.equilibrium import certificate, window
from gradeq.errors import BadInput
from gradeq.geometries import (
    Affine,
    Ball,
    Box,
    EntropicSimplex,
    Euclidean,
    Isotonic,
    NonNegative,
    Shrink,
    Simplex,
    SoftThreshold,
)
from gradeq.links import Exp, Identity, Logit, Multiplicative, Shift, Sigmoid
from gradeq.losses import Absolute, Expectile, Huber, Linear, Logistic, LogLoss, Poisson, Quantile, Squared
from gradeq.penalties import Lasso, Ridge
from gradeq.schedules import Constant, Piecewise, Power


@dataclass(frozen=True)
class MyPinball:
    """A loss of one's own: |slope| <= 0.7, and slope times u >= -0.7 max|y|."""

    def value(self, u, y):
        return max(0.7 * (y - u), 0.3 * (u - y))

    def slope(self, u, y):
        return 0.3 if y <= u else -0.7


# loss, link, the ends of labels and of offsets, the largest step x ||z||^2
TASKS = {
    "squared": (Squared(), Identity(), (-3.0, 2.0), (-1.0, 1.0), 1.9),
    "linear": (Linear(), Identity(), (-3.0, 2.0), (-1.0, 1.0), 1.9),
    "expectile": (Expectile(0.8), Identity(), (-3.0, 2.0), (-1.0, 1.0), 1.1),
    "quantile": (Quantile(0.9), Identity(), (-3.0, 2.0), (-1.0, 1.0), 2.0),
    "absolute": (Absolute(), Identity(), (-3.0, 2.0), (-1.0, 1.0), 2.0),
    "huber": (Huber(0.7), Identity(), (-3.0, 2.0), (-1.0, 1.0), 3.0),
    "logistic": (Logistic(), Identity(), (0.0, 1.0), (0.0, 0.0), 5.0),
    "logistic with offsets": (Logistic(-2.0, 1.0), Identity(), (-2.0, 1.0), (-2.0, 2.0), 3.0),
    "soft logistic": (Logistic(), Identity(), (0.1, 0.9), (-1.0, 1.0), 3.0),
    "shift": (Squared(), Shift(), (0.0, 1.0), (0.0, 1.0), 3.0),
    "logit": (Squared(), Logit(0.01), (0.0, 1.0), (0.0, 1.0), 3.0),
    "sigmoid": (Squared(), Sigmoid(-1.0, 3.0), (-1.0, 3.0), (-1.0, 1.0), 2.0),
    "own": (MyPinball(), Identity(), (-3.0, 2.0), (0.0, 0.0), 2.0),
}
COUNTS = {
    "poisson": (Poisson(), Identity(), (0.0, 3.0), (-1.0, 0.5), 0.2),
    "exp": (Squared(), Exp(), (0.5, 3.0), (-1.0, 0.5), 0.2),
    "multiplicative": (Squared(), Multiplicative(), (0.5, 3.0), (0.5, 2.0), 0.2),
}


def lived(learner, state, rng, rounds, form, labels, offsets, weights=False):
    """Rows that turn away from theta, and the label that moves it farthest from where it began."""
    start = state.first.copy()
    for _ in range(rounds):
        d = state.dimension
        row = form(rng, state.theta - start, d)
        offset = float(rng.uniform(*offsets))
        moved = []
        weight = float(rng.choice([0.1, 1.0])) if weights else 1.0
        served, ticket = learner.ticket(state, row, offset)
        for y in labels:
            after = learner.update(served, ticket, y, weight)
            moved.append((float(np.linalg.norm(after.u - start)), rng.random(), after))
        state = max(moved)[2] if rng.random() < 0.9 else moved[0][2]
    return state


def one(rng, away, d):
    return None if d == 1 else int(rng.integers(d))


def features(rng, away, d):
    z = rng.normal(size=d)
    if rng.random() < 0.8 and d > 1 and away @ away > 0.0:  # a spiral: nothing of it points back
        z = z - (z @ away) / (away @ away) * away
    return z / max(1.0, float(np.linalg.norm(z)))


def steps(rng, most):
    eta = float(most * 10 ** -rng.uniform(0.0, 2.0))
    return [
        Constant(eta), Constant(eta), Power(eta, float(rng.uniform(0.1, 0.9))), Power(eta, 1.0),
        Piecewise((eta, eta / 5, eta), (10, 25)),
    ][int(rng.integers(5))]  # fmt: skip


def promised(loss, start):
    """What the loss of one's own promises, the margin measured from where it began."""
    kappa = 0.7 * (3.0 + float(np.abs(start).sum()))
    return {"lipschitz": 0.7, "kappa": kappa} if isinstance(loss, MyPinball) else {}


def holds(found, of="average_gradient"):
    most = max(abs(getattr(c, of)) for c in found.coordinates)
    return most <= found.bound * (1.0 + 1e-9) + 1e-12


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("task", "form"),
    [(task, one) for task in (*TASKS, *COUNTS)] + [(task, features) for task in TASKS],
    ids=lambda own: own if isinstance(own, str) else own.__name__,
)
def test_a_bound_is_printed_and_no_run_contradicts_it(task, form, seed):
    loss, link, labels, offsets, most = (TASKS | COUNTS)[task]
    rng = np.random.default_rng(seed)
    d = int(rng.choice([1, 3])) if form is one else int(rng.choice([1, 2, 4]))
    learner = Learner(loss, steps(rng, most), link=link)
    start = rng.normal(size=d) * rng.choice([0.0, 0.5])
    state = lived(learner, learner.start(start), rng, 60, form, labels, offsets, seed % 2 == 1)
    found = certificate(learner, state, **promised(loss, start))
    assert found.bound is not None, found.verdict()
    assert holds(found), found.verdict()
    assert all(c.bound == found.bound for c in found.coordinates)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("penalty", [Ridge(0.05), Lasso(0.01), Ridge(1e-5), Lasso(1e-6)], ids=repr)
@pytest.mark.parametrize("task", ["quantile", "absolute", "logistic", "squared", "sigmoid"])
def test_bounds_with_a_penalty_hold(task, penalty, seed):
    loss, link, labels, _, most = TASKS[task]
    rng = np.random.default_rng(seed)
    form, d = (one, 3) if seed % 2 else (features, 2)
    learner = Learner(loss, min(0.4, most) * 10 ** -rng.uniform(0.0, 1.0), penalty=penalty, link=link)
    found = certificate(learner, lived(learner, learner.start(d), rng, 60, form, labels, (0.0, 0.0)))
    if task != "squared" or isinstance(penalty, Ridge):
        assert found.bound is not None, found.verdict()
    assert found.bound is None or holds(found), found.verdict()
    start = learner.start([0.5] * d)
    elsewhere = certificate(learner, lived(learner, start, rng, 3, form, labels, (0.0, 0.0)))
    assert "another start than 0" in elsewhere.verdict()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("geometry", [Shrink(0.1), SoftThreshold(0.1), SoftThreshold(1e-6)], ids=repr)
@pytest.mark.parametrize("task", ["squared", "quantile", "logistic"])
def test_bounds_of_proximal_penalties_hold(task, geometry, seed):
    loss, link, labels, _, most = TASKS[task]
    rng = np.random.default_rng(seed)
    learner = Learner(loss, min(1.0, most) * 10 ** -rng.uniform(0.0, 1.0), geometry, link=link)
    state = lived(learner, learner.start(2), rng, 60, features, labels, (0.0, 0.0))
    found = certificate(learner, state)
    assert found.bound is not None, found.verdict()
    assert holds(found), found.verdict()


SETS = [Box(-0.5, 1.0), NonNegative(), Ball(0.7), Simplex(), Affine([[1.0, 1.0]], [1.0]), Isotonic()]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("geometry", SETS, ids=repr)
@pytest.mark.parametrize("task", ["squared", "quantile", "logistic with offsets"])
def test_on_a_set_the_bound_is_of_gradient_plus_normal_part_and_says_so(task, geometry, seed):
    loss, link, labels, offsets, most = TASKS[task]
    rng = np.random.default_rng(seed)
    learner = Learner(loss, min(1.0, most) * 10 ** -rng.uniform(0.0, 1.0), geometry, link=link)
    state = lived(learner, learner.start(2), rng, 80, features, labels, offsets)
    found = certificate(learner, state)
    assert found.bound is not None, found.verdict()
    assert holds(found, "residual"), found.verdict()
    assert "(result 7.1, of gradient plus normal part)" in found.verdict()


def test_result_5_2_bounds_features_where_nothing_was_printed():
    rng = np.random.default_rng(1)
    rows, eta = rng.uniform(-1.0, 1.0, (1000, 3)), 0.1
    labels = rng.uniform(-1.0, 1.0, 1000)
    learner = Learner(Squared(), eta)
    found = certificate(learner, learner.run(learner.start(3), rows, labels).state)
    expected = math.sqrt((eta * labels**2 / (2.0 - eta * (rows**2).sum(axis=1))).sum()) / (eta * 1000)
    assert found.bound == pytest.approx(expected, rel=1e-12)
    assert found.bound_from == "5.2"
    assert "proven limit 0.0" in found.verdict() and "no bound" not in found.verdict()


def test_a_decaying_step_has_a_bound_that_vanishes():
    rng = np.random.default_rng(2)
    learner, bounds = Learner(Squared(), Power(0.25, 0.5)), []
    for n in (10**3, 10**4, 10**5):
        rows, labels = rng.choice([-1.0, 1.0], (n, 2)), rng.uniform(-1.0, 1.0, n)
        bounds.append(certificate(learner, learner.run(learner.start(2), rows, labels).state).bound)
    assert bounds[0] > 1.6 * bounds[1] > 2.5 * bounds[2]


def test_a_large_bound_is_said_as_it_is():
    """A learner knows no raw error to judge it against, nor how many labels would make it small."""
    learner, rng = Learner(Quantile(0.9), Power(0.2, 0.9)), np.random.default_rng(3)
    state = learner.run(learner.start(3), rng.uniform(-1, 1, (50, 3)), rng.normal(size=50)).state
    found = certificate(learner, state)
    assert found.bound > 1.0 and found.vacuous is None
    assert "(result 5.3)" in found.verdict() and "guarantee" not in found.verdict()


NO_BOUND = {
    "counts with features": (
        lambda: Learner(Poisson(), 0.1), [[1.0, 0.5]] * 3, "a constant step can diverge",
    ),
    "an own loss": (lambda: Learner(MyPinball(), 0.1), [[1.0, 0.5]] * 3, "lipschitz=, kappa="),
    "log loss as it is": (lambda: Learner(LogLoss(), 0.1), [[1.0, 0.5]] * 3, "lipschitz=, kappa="),
    "too large a step": (lambda: Learner(Squared(), 3.0), [[1.0, 0.5]] * 3, "too large"),
    "mirror descent": (lambda: Learner(Squared(), 0.1, EntropicSimplex(0.1)), [[1.0, 0.5]] * 3, "7.3"),
    "lazy": (lambda: Learner(Squared(), 0.1, Box(0.0, 1.0), lazy=True), [[1.0, 0.5]] * 3, "8.7"),
    "penalty on a set": (
        lambda: Learner(Squared(), 0.1, Box(0.0, 1.0), Ridge(0.1)), [[1.0, 0.5]] * 3, "on a set",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_BOUND)
def test_where_no_theorem_fits_the_reason_is_said(case):
    make, rows, told = NO_BOUND[case]
    learner = make()
    run = learner.run(learner.start(2), np.array(rows), [1.0, 0.0, 1.0])
    found = certificate(learner, run.state)
    assert found.bound is None
    assert told in found.verdict()
    assert "\n" not in found.verdict()


def test_what_a_loss_of_ones_own_promises_is_asked_for_by_name():
    learner = Learner(MyPinball(), 0.1)
    state = learner.run(learner.start(2), np.ones((50, 2)), np.linspace(-1.0, 1.0, 50)).state
    found = certificate(learner, state, lipschitz=0.7, kappa=0.7)
    assert found.bound == pytest.approx(math.sqrt(50 * (0.14 + 0.0049 * 2)) / (0.1 * 50))
    assert "your lipschitz and kappa" in found.verdict()
    for bad in ({"lipschitz": 1.0}, {"kappa": 1.0}, {"lipschitz": -1.0, "kappa": 1.0},
                {"lipschitz": 1.0, "kappa": math.nan}, {"lipschitz": "1", "kappa": 0.0}):  # fmt: skip
        with pytest.raises(BadInput, match=r"lipschitz|kappa"):
            certificate(learner, state, **bad)


def test_a_label_that_came_after_others_had_moved_the_parameters_has_no_bound():
    learner = Learner(Squared(), 0.1)
    state, first = learner.ticket(learner.start())
    state, second = learner.ticket(state)
    state = learner.update(state, second, 1.0)
    assert certificate(learner, state).bound is not None
    late = certificate(learner, learner.update(state, first, 1.0))
    assert late.bound is None and "others had moved the parameters" in late.verdict()


def test_what_another_recipe_learned_is_not_vouched_for():
    one, other = Learner(Squared(), 0.1), Learner(Quantile(0.9), 0.1)
    state = other.run(one.run(one.start(), None, [1.0, 2.0]).state, None, [5.0, 1.0]).state
    for learner in (one, other):
        assert "another recipe" in certificate(learner, state).verdict()


def test_a_state_saved_before_bounds_were_kept_loads_and_has_none():
    learner = Learner(Squared(), 0.1)
    saved = learner.run(learner.start(), None, [1.0, 2.0]).state.as_dict()
    again = LearnerState.from_dict(saved)
    assert certificate(learner, again).bound == certificate(learner, LearnerState.from_dict(saved)).bound
    del saved["observed"]
    old = LearnerState.from_dict(saved)
    found = certificate(learner, learner.run(old, None, [1.0]).state)
    assert found.bound is None and "an earlier version" in found.verdict()
    fresh = learner.start().as_dict()
    del fresh["observed"]
    run = learner.run(LearnerState.from_dict(fresh), None, [1.0])
    assert certificate(learner, run.state).bound is not None


def test_entries_of_one_parameter_add_up():
    """A sparse row may name a parameter twice: its size is that of the sum."""
    from gradeq.engine.rows import Sparse

    rows = Sparse([0, 2], [1, 1], [1.0, 1.0])
    learner = Learner(Squared(), 0.7)
    run = learner.run(learner.start(2), rows, [1.0])
    assert "too large" in certificate(learner, run.state).verdict()


# Gradients of one's own: what is certified is what was given.


def adagrad(learner, rng, true_one):
    """AdaGrad by coordinate on labels of very different size, given as direction or as gradient."""
    state, squares, total = learner.start(2), np.zeros(2), np.zeros(2)
    for _ in range(400):
        g = (state.theta - rng.normal([1.0, 50.0], [1.0, 20.0])).copy()
        squares += g * g
        total += g
        scaled = g / np.sqrt(squares)
        given = (g, scaled) if true_one else (scaled,)
        state = learner.descend(state, *given)
    return state, total / 400


def test_a_preconditioned_step_certifies_the_true_gradient():
    learner = Learner(Squared(), 5.0)
    state, average = adagrad(learner, np.random.default_rng(5), True)
    found = certificate(learner, state)
    assert [c.average_gradient for c in found.coordinates] == pytest.approx(average.tolist(), rel=1e-12)
    assert found.gap < 1e-9 and not found.exact
    assert found.bound is None
    assert "certificate of the gradients given to descend" in found.verdict()
    assert "steps went along other directions" in found.verdict()
    assert "certified" in found.as_dict()["certificate"]


def test_without_a_direction_what_was_given_is_certified_and_named():
    learner = Learner(Squared(), 5.0)
    state, average = adagrad(learner, np.random.default_rng(5), False)
    found = certificate(learner, state)
    assert found.largest != pytest.approx(average.max(), rel=0.1)
    assert found.exact and found.gap < 1e-9
    assert "certificate of the gradients given to descend exact" in found.verdict()
    assert "lipschitz=, kappa=" in found.verdict()


@pytest.mark.parametrize("geometry", [Euclidean(), Box(-1.0, 1.0), Simplex()], ids=repr)
def test_a_direction_moves_the_state_and_the_gradient_is_summed(geometry):
    learner, rng = Learner(Squared(), 0.1, geometry), np.random.default_rng(6)
    state = twin = learner.start(3)
    total = np.zeros(3)
    for _ in range(30):
        g, d = rng.normal(size=3), rng.normal(size=3)
        total += g
        state, twin = learner.descend(state, g, direction=d), learner.descend(twin, d)
    assert state.theta.tolist() == twin.theta.tolist()
    assert state.gradients.tolist() == pytest.approx(total.tolist(), rel=1e-12)
    assert certificate(learner, state).gap < 1e-12
    assert window(learner, None, state).certified
    for bad in ([1.0], [1.0, math.nan, 0.0]):
        with pytest.raises(BadInput, match="direction"):
            learner.descend(state, [0.0] * 3, direction=bad)


@pytest.mark.parametrize("seed", range(4))
def test_gradients_that_keep_their_promise_are_bounded(seed):
    """Length 1 and never against theta by more than kappa: result G2', for steps that vary too."""
    rng = np.random.default_rng(seed)
    learner = Learner(Squared(), [Constant(0.3), Power(0.5, 0.5)][seed % 2])
    state = learner.start([0.4, -0.2, 0.1])
    first = state.first.copy()
    for _ in range(100):
        away = state.theta - first
        g = rng.normal(size=3)
        g -= (g @ away + 0.1) / max(away @ away, 1e-9) * away if away @ away > 0.1 else 0.0
        g /= max(1.0, np.linalg.norm(g))
        state = learner.descend(state, g)
    found = certificate(learner, state, lipschitz=1.0, kappa=0.5)
    assert found.bound is not None and holds(found), found.verdict()
