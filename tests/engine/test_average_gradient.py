"""The average gradient is a displacement of the state: results 1.1, 1.2, 1.4 and 1.5, for every combination.

Tolerance: a sum of T terms of size at most M loses about T eps M; each test allows a hundred times that.
"""

import numpy as np
import pytest

from every_part import GEOMETRIES, LAZY, LINKS, LOSSES, PENALTIES, SCHEDULES, columns
from gradeq.engine.learner import Learner
from gradeq.equilibrium import certificate, window
from gradeq.geometries import Euclidean, Shrink
from gradeq.losses import Quantile, Squared
from gradeq.schedules import Constant, Power

T = 60
EPS = np.finfo(float).eps


def slack(state):
    sums = (state.gradients, state.penalties, state.normals, state.u, state.first)
    return 100 * T * EPS * (1.0 + max(float(np.abs(x).max()) for x in sums))


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_average_gradient_plus_normal_is_the_dual_displacement(loss, geometry):
    """Result 1.4 (prop:pmd_simple), greedy, for every schedule; result 1.1 is its Euclidean case."""
    rows, labels, _ = columns(T)
    for schedule in SCHEDULES:
        learner = Learner(loss, schedule, geometry)
        state = learner.run(learner.start(3), rows, labels).state
        displaced = state.first - state.u
        if isinstance(schedule, Constant):
            total = state.gradients + state.normals
            np.testing.assert_allclose(total, displaced / schedule.eta, rtol=0, atol=slack(state))
        else:
            np.testing.assert_allclose(state.moves, displaced, rtol=0, atol=slack(state))
        assert certificate(learner, state).gap <= slack(state)


@pytest.mark.parametrize("geometry", LAZY, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_lazy_average_gradient_is_the_displacement(loss, geometry):
    """Result 1.5: no normal part; theta is always the projection of the plain sum."""
    rows, labels, _ = columns(T)
    for schedule in SCHEDULES:
        learner = Learner(loss, schedule, geometry, lazy=True)
        state = learner.run(learner.start(3), rows, labels).state
        assert not state.normals.any()
        out = [0.0] * 3
        geometry.primal(state.u.tolist(), state.step, out)
        assert state.theta.tolist() == out
        if isinstance(schedule, Constant):
            displaced = (state.first - state.u) / schedule.eta
            np.testing.assert_allclose(state.gradients, displaced, rtol=0, atol=slack(state))
        assert certificate(learner, state).gap <= slack(state)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_average_gradient_with_varying_steps_is_a_weighted_displacement(loss, schedule):
    """Result 1.2 (prop:gd_simple_lrt): avg g = (1/T) sum Delta_t (theta_t - theta_{T+1})."""
    rows, labels, _ = columns(T)
    learner = Learner(loss, schedule)
    run = learner.run(learner.start([0.3, -0.2, 0.1]), rows, labels, trace=1)
    inverse = np.array([1.0 / schedule.step(t) for t in range(1, T + 1)])
    delta = np.diff(inverse, prepend=0.0)
    weighted = delta @ (run.trace - run.state.theta) / T
    np.testing.assert_allclose(run.state.gradients / T, weighted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=repr)
@pytest.mark.parametrize("link", LINKS, ids=repr)
def test_identity_holds_with_any_link_penalty_and_weights(link, geometry, penalty):
    rows, labels, offsets = columns(T)
    weights = np.arange(T) % 4 / 2.0
    learner = Learner(Squared(), 0.05, geometry, penalty, link)
    state = learner.run(learner.start(3), rows, labels, offsets, weights).state
    total = state.gradients + state.penalties + state.normals
    np.testing.assert_allclose(total, (state.first - state.u) / 0.05, rtol=0, atol=slack(state))
    assert state.n == np.count_nonzero(weights)
    assert state.weight == weights.sum()


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=repr)
def test_any_window_is_the_difference_of_two_states(geometry):
    rows, labels, _ = columns(90)
    for schedule in (Constant(0.1), Power(0.2, 0.3)):
        learner = Learner(Quantile(0.7), schedule, geometry)
        states = [learner.start(3)]
        for cut in range(0, 90, 30):
            states.append(learner.run(states[-1], rows[cut : cut + 30], labels[cut : cut + 30]).state)
        middle = window(learner, states[1], states[2])
        assert middle.rows == 30
        assert middle.gap <= slack(states[2])
        errors = []
        state = states[1]
        for row, y in zip(rows[30:60], labels[30:60], strict=True):
            served = learner.predict(state, row)
            errors.append(learner.loss.slope(served, y) * row)
            state = learner.run(state, [row], [y]).state
        averages = [c.average_gradient for c in middle.coordinates]
        np.testing.assert_allclose(averages, np.mean(errors, axis=0), atol=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__)
def test_normal_part_of_a_proximal_form_is_the_slope_of_its_penalty(schedule):
    """n_t in dr(theta_t) whatever the step: for the ridge exactly strength theta_t, with n_1 = 0."""
    rows, labels, _ = columns(T)
    learner = Learner(Squared(), schedule, Shrink(0.5))
    run = learner.run(learner.start(3), rows, labels, trace=1)
    np.testing.assert_allclose(run.state.normals, 0.5 * run.trace[1:].sum(axis=0), atol=1e-12)


def test_bring_your_own_gradient_obeys_the_same_identity():
    rng = np.random.default_rng(5)
    for geometry in GEOMETRIES:
        learner = Learner(Squared(), 0.05, geometry)
        state = learner.start(3)
        total = np.zeros(3)
        for g in rng.normal(size=(T, 3)):
            state = learner.descend(state, g)
            total += g
        np.testing.assert_allclose(state.gradients, total, atol=1e-12)
        summed = state.gradients + state.normals
        np.testing.assert_allclose(summed, (state.first - state.u) / 0.05, rtol=0, atol=slack(state))


def test_a_lost_update_shows_in_the_gap():
    """The checksum of learning: the identity is broken by exactly what is missing."""
    rows, labels, _ = columns(T)
    learner = Learner(Squared(), 0.1)
    state = learner.run(learner.start(3), rows, labels).state
    saved = state.as_dict()
    saved["u"][1] += 0.1 * 0.5  # one gradient of 0.5 was summed but never applied
    damaged = type(state).from_dict(saved)
    assert certificate(learner, damaged).gap == pytest.approx(0.5 / T)
    assert isinstance(learner.geometry, Euclidean)
