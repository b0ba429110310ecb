"""Nothing depends on the axes: linear equalities and orthogonal features in any orthonormal basis."""

import math

import numpy as np
import pytest

from gradeq import Learner
from gradeq.geometries import Affine
from gradeq.losses import Quantile, Squared
from gradeq.theory import (
    affine_residual,
    average_from_radius,
    average_gradient,
    quantile_range,
    radius_quadratic_curvature,
    squared_factor,
    squared_radius,
)
from theory.adversaries import SLACK

ETA = 0.3


def orthonormal(rng: np.random.Generator, d: int) -> np.ndarray:
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def directions(a: np.ndarray) -> np.ndarray:
    """Columns: an orthonormal basis of null(a)."""
    return np.linalg.svd(a)[2][len(a) :].T


@pytest.mark.parametrize("d", [3, 6])
@pytest.mark.parametrize("equations", [1, 2])
def test_descent_on_linear_equalities_is_descent_in_any_coordinates_of_their_directions(
    d: int, equations: int
) -> None:
    """theta = theta_1 + U phi with phi+ = phi - eta U'g: same path, and U'avg g is the displacement of phi."""
    rng = np.random.default_rng(10 * d + equations)
    a = rng.normal(size=(equations, d))
    u = directions(a)
    u = u @ orthonormal(rng, d - equations)  # any other basis would do as well
    start = rng.normal(size=d)
    theta, phi, total, rounds = start.copy(), np.zeros(d - equations), np.zeros(d), 400
    for t in range(1, rounds + 1):
        y = rng.choice((-1.0, 1.0), d)
        g = theta - y
        total += g
        z = theta - ETA * g
        theta = z - np.linalg.pinv(a) @ (a @ z - a @ start)  # the nearest point of the set
        phi = phi - ETA * (u.T @ ((start + u @ phi) - y))
        assert theta == pytest.approx(start + u @ phi, abs=1e-9)
        residual = affine_residual((total / t).tolist(), u.T.tolist())
        assert residual == pytest.approx(float(np.linalg.norm(phi)) / (ETA * t), abs=1e-9)
        b = math.sqrt(d) + float(np.linalg.norm(start))  # the target of phi is U'(y - theta_1)
        h = squared_factor(ETA) * b
        radius = radius_quadratic_curvature(0.0, h, h + b, ETA)
        assert residual <= average_from_radius(0.0, radius, ETA, t) * SLACK
    assert residual < 0.1
    # Along the rows of A nothing vanishes: there the constraint decides.
    assert float(np.linalg.norm(a @ (total / rounds))) > 0.1


def test_the_residual_does_not_depend_on_the_basis() -> None:
    rng = np.random.default_rng(1)
    u = directions(rng.normal(size=(2, 5)))
    average = rng.normal(size=5)
    first = affine_residual(average.tolist(), u.T.tolist())
    other = affine_residual(average.tolist(), (u @ orthonormal(rng, 3)).T.tolist())
    assert first == pytest.approx(other, rel=1e-12)


def test_the_engine_on_linear_equalities_reaches_their_equilibrium() -> None:
    rng, n = np.random.default_rng(2), 600
    a, b = [[1.0, 1.0, 1.0]], [1.0]
    u = directions(np.array(a))
    x = rng.normal(size=(n, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    learner = Learner(Squared(), ETA, geometry=Affine(a, b))
    run = learner.run(learner.start(3), x, rng.choice((-1.0, 1.0), n), trace=1)
    assert run.trace.sum(axis=1) == pytest.approx(np.ones(n), abs=1e-9)
    average = run.state.gradients / n
    moved = u.T @ (run.state.theta - run.trace[0])
    assert affine_residual(list(average), u.T.tolist()) == pytest.approx(
        float(np.linalg.norm(moved)) / (ETA * n), abs=1e-12
    )


@pytest.mark.parametrize("loss", [Squared(), Quantile(0.8)], ids=repr)
@pytest.mark.parametrize("d", [2, 5])
def test_orthogonal_features_are_disjoint_groups_in_any_orthonormal_basis(loss, d: int) -> None:
    """cor:glm_loss_ortho_features: rows from any orthonormal set; q_j'theta is a process of one parameter."""
    rng, n = np.random.default_rng(d), 500
    q = orthonormal(rng, d)
    which = rng.choice(d, n, p=np.arange(1, d + 1) / (d * (d + 1) / 2))
    y = np.where(rng.random(n) < 0.7, 1.0, -1.0) * rng.uniform(0.2, 1.0, n)
    learner = Learner(loss, ETA)
    turned = learner.run(learner.start(d), q[:, which].T, y, trace=1)
    groups = learner.run(learner.start(d), np.eye(d)[which], y, trace=1)
    assert turned.trace @ q == pytest.approx(groups.trace, abs=1e-9)
    average = turned.state.gradients @ q
    for j in range(d):
        count = int((which == j).sum())
        end = float(q[:, j] @ turned.state.theta)
        bias = float(average[j]) / count
        assert bias == pytest.approx(average_gradient(0.0, end, ETA, count), abs=1e-12)
        if isinstance(loss, Squared):
            radius = squared_radius(0.0, 1.0, ETA)
        else:
            radius = max(map(abs, quantile_range(0.0, -1.0, 1.0, 0.8, ETA)))
        assert np.abs(turned.trace @ q[:, j]).max() <= radius * SLACK
        assert abs(bias) <= average_from_radius(0.0, radius, ETA, count) * SLACK
