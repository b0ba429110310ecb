"""Regret, no move regret and the best in hindsight."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from every_part import LOSSES, columns
from gradeq.engine.learner import Learner
from gradeq.equilibrium import certificate
from gradeq.errors import BadInput
from gradeq.links import Sigmoid
from gradeq.losses import Absolute, Logistic, Poisson, Quantile, Squared
from gradeq.regret import best_in_hindsight, certified_regret, hindsight_minimiser, no_move_regret, regret


def test_figure_3_with_its_errors_corrected():
    """Regret / T does not vanish while the bias does: half squared error, the right comparator, the paper's step."""
    labels = np.random.RandomState(3).normal(size=1000)
    learner = Learner(Squared(), 0.2)
    run = learner.run(learner.start(), None, labels, trace=1)
    assert regret(Squared(), run.trace, labels) / 1000 == pytest.approx(0.061658, abs=5e-7)
    assert abs(certificate(learner, run.state).largest) == pytest.approx(0.000710, abs=5e-7)
    assert run.state.theta[0] == pytest.approx(0.142043, abs=5e-7)
    larger = learner_with(0.4).run(learner.start(), None, labels, trace=1)
    assert regret(Squared(), larger.trace, labels) / 1000 == pytest.approx(0.136545, abs=5e-7)


def learner_with(eta):
    return Learner(Squared(), eta)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(labels=st.lists(st.floats(0.05, 0.95), min_size=1, max_size=12), other=st.floats(-2, 2))
def test_nothing_beats_the_minimiser_in_hindsight(loss, labels, other):
    best = hindsight_minimiser(loss, labels)
    thetas = np.full(len(labels), other)
    assert regret(loss, thetas, labels) >= -1e-9
    assert regret(loss, thetas, labels, comparator=best) == regret(loss, thetas, labels)


@given(labels=st.lists(st.floats(-3, 3), min_size=1, max_size=15), level=st.floats(0.05, 0.95))
def test_the_best_quantile_is_found_by_sorting(labels, level):
    best = hindsight_minimiser(Quantile(level), labels)[0]
    loss = Quantile(level)
    least = min(sum(loss.value(u, y) for y in labels) for u in labels)
    assert sum(loss.value(best, y) for y in labels) == pytest.approx(least, abs=1e-9)


def test_vector_runs_compare_with_least_squares():
    rows, labels, offsets = columns(80)
    learner = Learner(Squared(), 0.05)
    run = learner.run(learner.start(3), rows, labels, offsets, trace=1)
    best = hindsight_minimiser(Squared(), labels, rows, offsets)
    np.testing.assert_allclose(best, np.linalg.lstsq(rows, labels - offsets, rcond=None)[0])
    expected = 0.5 * ((run.served - labels) ** 2 - (rows @ best + offsets - labels) ** 2).sum()
    assert regret(Squared(), run.trace, labels, None, rows, offsets) == pytest.approx(expected)


def test_disjoint_groups_have_a_minimiser_each():
    labels, index = np.array([1.0, 2.0, 5.0, 7.0, 9.0]), np.array([0, 0, 1, 1, 1])
    assert hindsight_minimiser(Quantile(0.5), labels, index).tolist() == [1.0, 7.0]
    with pytest.raises(BadInput, match="comparator"):
        hindsight_minimiser(Squared(), labels, np.ones((5, 2)), link=Sigmoid())
    with pytest.raises(BadInput, match="no labels"):
        hindsight_minimiser(Squared(), [None])


def test_links_are_part_of_the_loss():
    labels = np.array([1.0, 1.0, 0.0, 1.0])
    best = hindsight_minimiser(Squared(), labels, link=Sigmoid())
    assert Sigmoid().serve(0.0, best[0]) == pytest.approx(0.75, abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(seed=st.integers(0, 20), radius=st.floats(0.1, 2.0))
def test_equilibrium_implies_no_move_regret(loss, seed, radius):
    """prop:geq_implies_nmr: moving all iterates by delta gains at most radius |average gradient|."""
    _, labels, _ = columns(30, seed=seed)
    learner = Learner(loss, 0.1)
    run = learner.run(learner.start(), None, labels, trace=1)
    gain = no_move_regret(loss, run.trace, labels, radius)
    assert gain <= 0.0
    assert gain >= -radius * abs(certificate(learner, run.state).largest) - 1e-12


@given(seed=st.integers(0, 20))
def test_no_move_regret_implies_equilibrium_for_smooth_losses(seed):
    """prop:nmr_implies_geq with beta = 1: the best move gains G^2 / 2, attained by the squared error."""
    _, labels, _ = columns(30, seed=seed)
    learner = Learner(Squared(), 0.1)
    run = learner.run(learner.start(), None, labels, trace=1)
    g = certificate(learner, run.state).largest
    assert no_move_regret(Squared(), run.trace, labels, 5.0) == pytest.approx(-0.5 * g * g, abs=1e-12)


def least_by_grids(loss, thetas, labels, radius, rows, offsets):
    """The least average change over ever finer grids of the ball."""

    def total(delta):
        served = (rows * (thetas + delta)).sum(axis=1) + offsets
        return sum(loss.value(s, y) for s, y in zip(served, labels, strict=True))

    stay, best, middle, reach = total(0.0), 0.0, np.zeros(rows.shape[1]), radius
    while reach > 1e-7 * radius:
        axis = np.linspace(-reach, reach, 9)
        for shift in np.stack(np.meshgrid(*[axis] * len(middle)), -1).reshape(-1, len(middle)):
            delta = middle + shift
            delta *= min(1.0, radius / max(np.linalg.norm(delta), 1e-300))
            if (change := total(delta) - stay) < best:
                best, found = change, delta
        middle, reach = found, 0.6 * reach
    return best / len(labels)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("radius", [0.05, 1.0])
def test_no_move_regret_of_several_parameters_is_the_least_in_the_ball(loss, radius):
    rows, labels, offsets = columns(8, d=2, seed=3)
    thetas = np.random.default_rng(4).normal(size=rows.shape) * 0.3
    found = no_move_regret(loss, thetas, labels, radius, rows, offsets)
    tried = least_by_grids(loss, thetas, labels, radius, rows, offsets)
    assert found == pytest.approx(tried, rel=1e-5)
    assert found <= tried + 1e-8 * abs(tried)  # only the grids are coarse


@pytest.mark.parametrize("d", [1, 2, 7])
def test_no_move_regret_of_squared_error_in_closed_form(d):
    """With a small radius the least is on the sphere, with a large one at the least squares move."""
    rows, labels, offsets = columns(60, d=d, seed=d)
    thetas = np.random.default_rng(d).normal(size=rows.shape) * 0.3
    errors = (rows * thetas).sum(axis=1) + offsets - labels
    gram, g = rows.T @ rows / 60, rows.T @ errors / 60
    best = -np.linalg.solve(gram, g)
    far = no_move_regret(Squared(), thetas, labels, 50.0, rows, offsets)
    assert far == pytest.approx(0.5 * g @ best, rel=1e-9)
    values, vectors = np.linalg.eigh(gram)
    pull = 0.7  # the multiplier of the sphere: delta = -(gram + pull)^-1 g
    delta = -vectors @ ((vectors.T @ g) / (values + pull))
    near = no_move_regret(Squared(), thetas, labels, np.linalg.norm(delta), rows, offsets)
    assert near == pytest.approx(g @ delta + 0.5 * delta @ gram @ delta, rel=1e-9)


def test_no_move_regret_of_parameters_that_move_together_or_not_at_all():
    """Two equal features are one of sqrt(2) times the size; one that is always 0 changes nothing."""
    rows, labels, _ = columns(40, d=1, seed=1)
    thetas = np.random.default_rng(5).normal(size=(40, 1)) * 0.3
    for loss in LOSSES:
        alone = no_move_regret(loss, thetas / np.sqrt(2), labels, 1.5, rows * np.sqrt(2))
        wide = np.hstack((rows, rows, 0.0 * rows))
        path = np.hstack((thetas, 0.0 * thetas, thetas))
        assert no_move_regret(loss, path, labels, 1.5, wide) == pytest.approx(alone, rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_equilibrium_implies_no_move_regret_of_several_parameters(loss):
    rows, labels, offsets = columns(30)
    learner = Learner(loss, 0.1)
    run = learner.run(learner.start(3), rows, labels, offsets, trace=1)
    for radius in (1e-3, 0.3, 1e3):
        gain = no_move_regret(loss, run.trace, labels, radius, rows, offsets)
        assert -radius * certificate(learner, run.state).norm * (1.0 + 1e-9) <= gain < 0.0


def test_a_move_that_gains_nothing_has_no_regret():
    rows, _, _ = columns(20)
    still = np.zeros((20, 3))
    assert no_move_regret(Absolute(), still, np.zeros(20), 1.0, rows) == 0.0
    assert no_move_regret(Squared(), still, np.zeros(20), 1.0, rows) == 0.0
    assert no_move_regret(Squared(), still, np.ones(20), 0.0, rows) == 0.0
    assert no_move_regret(Squared(), still, [None] * 20, 1.0, rows) == 0.0


def test_bad_input_is_refused():
    with pytest.raises(BadInput, match="1 values for 2 rows"):
        regret(Squared(), [0.0], [1.0, 2.0])
    with pytest.raises(BadInput, match="not finite"):
        regret(Squared(), [np.nan, 0.0], [1.0, 2.0])
    with pytest.raises(BadInput, match="negative"):
        no_move_regret(Squared(), [0.0], [1.0], radius=-1.0)
    with pytest.raises(BadInput, match="comparator"):
        regret(Squared(), [0.0], [1.0], comparator=[1.0, 2.0])
    two = np.eye(2)
    with pytest.raises(BadInput, match="identity link"):
        no_move_regret(Squared(), two, [1.0, 2.0], 1.0, two, link=Sigmoid())

    class Counts:
        def value(self, u, y):
            return math.exp(u) - y * u

        def slope(self, u, y):
            return math.exp(u) - y

    with pytest.raises(BadInput, match="overflow"):
        no_move_regret(Counts(), two, [1.0, 2.0], 1e5, two)
    with pytest.raises(BadInput, match="overflow"):
        no_move_regret(Counts(), [0.0, 0.0], [1.0, 2.0], 1e5)


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_no_competitor_beats_the_best_in_hindsight_by_more_than_the_tolerance(loss, d):
    """Any convex loss, kinks and ties included: random searches near and far, and along single coordinates."""
    rng = np.random.default_rng(d)
    n = 60
    rows = np.round(rng.normal(size=(n, d)), 1)
    labels = np.round(rng.uniform(0.05, 0.95, n), 1)
    best = best_in_hindsight(loss, labels, rows if d > 1 else None)
    z = rows if d > 1 else np.ones((n, 1))

    def total(theta):
        return math.fsum(loss.value(float(m), y) for m, y in zip(z @ theta, labels, strict=True))

    assert best.total == pytest.approx(total(best.theta), rel=1e-12)
    assert best.tolerance <= 1e-7 * (1.0 + abs(best.total))
    for size in 10.0 ** rng.uniform(-7, 0, 300):
        other = best.theta + size * rng.normal(size=d)
        if rng.random() < 0.3:
            other = best.theta + size * np.eye(d)[rng.integers(d)] * rng.choice([-1.0, 1.0])
        if np.linalg.norm(other) <= best.radius:
            assert total(other) >= best.total - best.tolerance - 1e-12


@pytest.mark.parametrize("loss", [Quantile(0.3), Absolute(), *LOSSES[:2]], ids=repr)
def test_regret_of_several_parameters_is_printed_with_its_tolerance(loss):
    rng = np.random.default_rng(7)
    rows, labels = rng.normal(size=(80, 3)), rng.uniform(0.1, 0.9, 80)
    learner = Learner(loss, 0.1)
    run = learner.run(learner.start(3), rows, labels, trace=1)
    found = certified_regret(loss, run.trace, labels, rows, radius=3.0)
    assert found.value == pytest.approx(regret(loss, run.trace, labels, None, rows), abs=1e-6)
    assert found.radius == 3.0 and found.rows == 80
    assert "certified within" in str(found) and "norm at most 3" in str(found)
    for theta in rng.normal(size=(50, 3)):
        theta *= 3.0 / max(3.0, np.linalg.norm(theta))
        assert regret(loss, run.trace, labels, theta, rows) <= found.value + found.tolerance + 1e-9


def test_a_minimum_at_infinity_is_a_matter_of_the_radius():
    rows, labels = np.array([[1.0, 0.0], [1.0, 1.0], [2.0, 1.0]]), [1.0, 1.0, 1.0]
    found = best_in_hindsight(Logistic(), labels, rows, radius=5.0)
    assert found.total + found.tolerance >= 0.0
    assert found.tolerance < 0.2
    assert np.isfinite(hindsight_minimiser(Poisson(), [0.0, 0.0, 0.0], rows)).all()


def test_what_is_not_convex_is_not_certified():
    with pytest.raises(BadInput, match="not convex"):
        best_in_hindsight(Squared(), [0.0, 1.0], link=Sigmoid())
    with pytest.raises(BadInput, match="radius"):
        best_in_hindsight(Squared(), [0.0, 1.0], radius=-1.0)
