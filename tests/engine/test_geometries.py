"""Laws of geometries: where primal lands, that it is the nearest point, and its normal part."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from every_part import ENTROPIC, EUCLIDEAN, GEOMETRIES, PROXIMAL
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

points = st.lists(st.floats(-3.0, 3.0), min_size=3, max_size=3)


def primal(geometry, z, eta=0.5):
    out = [0.0] * len(z)
    geometry.primal(list(z), eta, out)
    return np.array(out)


def dual(geometry, theta):
    out = [0.0] * len(theta)
    geometry.dual(list(theta), out)
    return np.array(out)


def contains(geometry, theta, slack=1e-9):
    """Membership, written out of the definition of each set."""
    match geometry:
        case Box():
            return (theta >= geometry.low).all() and (theta <= geometry.high).all()
        case NonNegative():
            return (theta >= 0.0).all()
        case Ball():
            return np.linalg.norm(theta) <= geometry.radius * (1.0 + slack)
        case Affine():
            return np.allclose(np.array(geometry.A) @ theta, geometry.b, atol=slack)
        case Simplex():
            return (theta >= 0.0).all() and abs(theta.sum() - 1.0) <= slack
        case EntropicSimplex():
            return (theta >= geometry.floor).all() and abs(theta.sum() - 1.0) <= slack
        case Isotonic():
            return (np.diff(theta) >= 0.0).all()
    return True


def members(geometry, seed=0, count=40):
    """Random points of the set, found without its projection where that is easy."""
    rng = np.random.default_rng(seed)
    match geometry:
        case Box():
            return rng.uniform(geometry.low, geometry.high, (count, 3))
        case NonNegative():
            return np.abs(rng.normal(size=(count, 3)))
        case Ball():
            x = rng.normal(size=(count, 3))
            return geometry.radius * x / np.linalg.norm(x, axis=1)[:, None] * rng.random((count, 1))
        case Affine():
            _, _, v = np.linalg.svd(np.array(geometry.A))
            null = v[len(geometry.b) :]
            return np.array(geometry.origin) + rng.normal(size=(count, len(null))) @ null
        case Simplex():
            return rng.dirichlet([0.5] * 3, count)
        case EntropicSimplex():
            return geometry.floor + (1.0 - 3 * geometry.floor) * rng.dirichlet([0.5] * 3, count)
        case Isotonic():
            return np.sort(rng.normal(size=(count, 3)), axis=1)
    return rng.normal(size=(count, 3))


def penalty_of(geometry, x):
    """r(x): the proximal penalty, or 0 on the set."""
    if isinstance(geometry, SoftThreshold):
        return geometry.strength * np.abs(x).sum()
    if isinstance(geometry, Shrink):
        return 0.5 * geometry.strength * (x * x).sum()
    return 0.0


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=repr)
@given(z=points, eta=st.floats(0.01, 2.0))
def test_primal_lands_in_the_set(geometry, z, eta):
    assert contains(geometry, primal(geometry, z, eta))


@pytest.mark.parametrize("geometry", [*EUCLIDEAN, *ENTROPIC], ids=repr)
@given(z=points)
def test_projecting_twice_is_projecting_once(geometry, z):
    once = primal(geometry, z)
    twice = primal(geometry, dual(geometry, once))
    np.testing.assert_allclose(twice, once, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=repr)
def test_primal_undoes_dual_on_the_set(geometry):
    """primal(dual(theta), 0) = theta."""
    for theta in members(geometry):
        np.testing.assert_allclose(primal(geometry, dual(geometry, theta), 0.0), theta, atol=1e-12)


@pytest.mark.parametrize("geometry", [*EUCLIDEAN, *PROXIMAL], ids=repr)
@given(a=points, b=points)
def test_euclidean_primal_is_non_expansive(geometry, a, b):
    apart = np.linalg.norm(primal(geometry, a) - primal(geometry, b))
    assert apart <= np.linalg.norm(np.array(a) - np.array(b)) * (1.0 + 1e-12) + 1e-12


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=repr)
@given(z=points, eta=st.floats(0.01, 2.0))
def test_what_primal_takes_back_is_normal(geometry, z, eta):
    """n = (z - dual(theta)) / eta is a subgradient of r at theta: r(x) >= r(theta) + n'(x - theta).

    For a set this is the normal cone; with the entropic map it is the optimality of the KL projection.
    """
    theta = primal(geometry, z, eta)
    normal = (np.array(z) - dual(geometry, theta)) / eta
    here = penalty_of(geometry, theta)
    for x in members(geometry):
        gain = penalty_of(geometry, x) - here - normal @ (x - theta)
        assert gain >= -1e-9 * (1.0 + np.abs(normal).max())


@given(z=points, eta=st.floats(0.01, 2.0))
def test_soft_threshold_and_clip_add_up_to_the_point(z, eta):
    """Moreau: prox of eta r, plus the projection onto the dual ball of radius eta strength, is z."""
    geometry = SoftThreshold(0.3)
    clipped = np.clip(z, -0.3 * eta, 0.3 * eta)
    np.testing.assert_allclose(primal(geometry, z, eta) + clipped, z, atol=1e-15)


@given(z=st.lists(st.floats(-3, 3), min_size=1, max_size=7))
def test_pooling_is_the_min_max_formula(z):
    """Isotonic regression at k is the largest, over starts i <= k, of the least mean of z[i..j] over ends j >= k."""
    n = len(z)
    expected = [max(min(np.mean(z[i : j + 1]) for j in range(k, n)) for i in range(k + 1)) for k in range(n)]
    np.testing.assert_allclose(primal(Isotonic(), z), expected, atol=1e-12)


@given(z=st.lists(st.floats(-3, 3), min_size=1, max_size=6))
def test_simplex_projection_is_the_best_support(z):
    """Among all supports the projection is the feasible point nearest to z."""
    z = np.array(z)
    best = math.inf
    for size in range(1, len(z) + 1):
        for support in itertools.combinations(range(len(z)), size):
            x = np.zeros(len(z))
            chosen = list(support)
            x[chosen] = z[chosen] - (z[chosen].sum() - 1.0) / size
            if (x >= 0).all():
                best = min(best, np.linalg.norm(x - z))
    assert np.linalg.norm(primal(Simplex(), z) - z) == pytest.approx(best, abs=1e-12)


@given(z=st.lists(st.floats(-800, 800), min_size=2, max_size=8), share=st.floats(0.0, 1.0))
def test_kl_projection_is_the_one_by_sorting(z, share):
    """Result 7.3: sort, take the largest m whose smallest member stays above the floor."""
    k = len(z)
    floor = share / k
    scaled = np.exp(np.array(z) - max(z))
    order = np.sort(scaled)[::-1]
    scale = None
    for m in range(1, k + 1):
        s = (1.0 - (k - m) * floor) / order[:m].sum()
        if s * order[m - 1] >= floor:
            scale = s
    expected = np.full(k, floor) if scale is None else np.maximum(floor, scale * scaled)
    np.testing.assert_allclose(primal(EntropicSimplex(floor), z), expected, rtol=1e-9, atol=1e-12)


@given(z=st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=5))
def test_simplex_projections_survive_far_points(z):
    for geometry in (Simplex(), EntropicSimplex(0.1), EntropicSimplex()):
        theta = primal(geometry, z)
        assert theta.sum() == pytest.approx(1.0, abs=1e-12)
        assert (theta >= 0.0).all()


def test_affine_agrees_with_least_squares():
    rng = np.random.default_rng(2)
    for _ in range(20):
        a, x = rng.normal(size=(2, 4)), rng.normal(size=4)
        geometry = Affine(a, a @ x)
        z = rng.normal(size=4)
        correction = np.linalg.lstsq(a, a @ z - a @ x, rcond=None)[0]
        np.testing.assert_allclose(primal(geometry, z), z - correction, atol=1e-10)


def test_affine_with_a_repeated_row_is_the_same_set():
    once, twice = Affine([[1.0, 2.0]], [3.0]), Affine([[1.0, 2.0], [2.0, 4.0]], [3.0, 6.0])
    np.testing.assert_allclose(primal(once, [0.3, -1.0]), primal(twice, [0.3, -1.0]), atol=1e-12)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=repr)
def test_geometries_are_values_and_say_whether_lazy_is_sound(geometry):
    named = [f.name for f in dataclasses.fields(geometry) if f.init]
    again = type(geometry)(*(getattr(geometry, name) for name in named))
    assert again == geometry
    assert hash(again) == hash(geometry)
    assert isinstance(geometry.lazy_is_sound, bool)
    assert geometry.lazy_because


def test_only_a_floor_gives_the_entropic_simplex_a_guarantee():
    assert EntropicSimplex(0.01).has_guarantee
    assert not EntropicSimplex(0.0).has_guarantee


@pytest.mark.parametrize(
    "make",
    [
        lambda: Box(1.0, 1.0),
        lambda: Box(math.nan, 1.0),
        lambda: Ball(0.0),
        lambda: Ball(math.inf),
        lambda: SoftThreshold(-1.0),
        lambda: Shrink(math.nan),
        lambda: EntropicSimplex(-0.1),
        lambda: EntropicSimplex(0.4).check(3),
        lambda: Affine([[1.0, 1.0]], [1.0, 2.0]),
        lambda: Affine([[1.0], [1.0]], [1.0, 2.0]),
        lambda: Affine([[math.nan]], [1.0]),
        lambda: Affine([["a"]], [1.0]),
        lambda: Affine([[1.0, 1.0]], [1.0]).check(3),
    ],
)
def test_a_set_that_cannot_be_is_refused_in_one_line(make):
    with pytest.raises(BadInput) as error:
        make()
    assert "\n" not in str(error.value)


def test_euclidean_changes_nothing():
    assert primal(Euclidean(), [1.0, -2.0]).tolist() == [1.0, -2.0]
