"""The quantile ensemble: the corrected algorithm written out, its weights, and coverage only with a final tracker."""

import numpy as np
import pytest

from gradeq import BadInput, QuantileEnsemble
from gradeq.theory import quantile_range


def reference(level, nus, nu, floor, f, y):
    """Corrected alg:quantile-ensembling in numpy, with the exact KL projection of result 7.3."""
    count = len(nus)
    theta, w = np.zeros(count), np.full(count, 1.0 / count)
    served = []
    for x, label in zip(f, y, strict=True):
        q = x + w @ theta
        served.append(q)
        own = (label <= x + theta) - level
        miss = (label <= q) - level
        w = projected(w * np.exp(-nu * theta * miss), floor)
        theta = theta - nus * own
    return np.array(served), w, theta


def projected(z, floor):
    order = np.sort(z)[::-1]
    sums = np.cumsum(order)
    m = np.arange(1, len(z) + 1)
    scale = (1.0 - (len(z) - m) * floor) / sums
    best = np.flatnonzero(scale * order >= floor)[-1]
    return np.maximum(floor, scale[best] * z)


@pytest.mark.parametrize("floor", [0.0, 0.05])
def test_it_is_the_corrected_algorithm(floor):
    rng = np.random.default_rng(0)
    f, nus = rng.normal(size=500), np.array([0.01, 0.1, 0.3, 1.0])
    y = f + rng.normal(size=500) * 2 + 1
    layer = QuantileEnsemble(0.9, nus, 0.2, None, floor=floor)
    served, w, theta = reference(0.9, nus, 0.2, floor, f, y)
    assert layer.run(f, y).served == pytest.approx(served, rel=1e-9)
    assert list(layer.weights.values()) == pytest.approx(w, rel=1e-8)
    assert list(layer.trackers.values()) == pytest.approx(theta, abs=1e-12)
    assert min(layer.weights.values()) >= floor


def test_every_tracker_keeps_its_own_range():
    """With its own error each tracker stays where result 3.1 says; with a shared one, as printed, it does not."""
    rng = np.random.default_rng(1)
    y = rng.uniform(-1, 1, size=3000)
    layer = QuantileEnsemble(0.9, [0.005, 0.5], 0.1, None)
    layer.run(np.zeros(3000), y)
    for eta, theta in zip((0.005, 0.5), layer.trackers.values(), strict=True):
        where = quantile_range(0.0, -1.0, 1.0, 0.9, eta)
        assert where.low <= theta <= where.high


def bounded_adversary(layer, rounds):
    """Labels in [-1, 1]: just above the ensemble while it can be missed, low enough to keep trackers down."""
    covered = 0
    for t in range(rounds):
        q = layer.predict(0.0)
        y = min(1.0, q + 1e-6) if t % 5 == 0 or q < 0.2 else -1.0
        covered += y <= q
        layer.update(y)
    return covered / rounds


def test_only_the_final_tracker_guarantees_coverage():
    """Result 7.5: a bounded player holds the plain ensemble off its level, not the one that has it."""
    plain, safe = (QuantileEnsemble(0.9, [0.01, 0.1, 1.0], 0.5, final) for final in (None, 0.03))
    off = abs(bounded_adversary(plain, 4000) - 0.9)
    assert off > 0.05
    gap = abs(bounded_adversary(safe, 4000) - 0.9)
    equilibrium = safe.equilibrium()
    assert gap == pytest.approx(abs(equilibrium.largest), abs=1e-9)
    assert gap <= equilibrium.bound + 1e-9
    assert equilibrium.exact and equilibrium.gap < 1e-12
    assert plain.equilibrium().bound is None and plain.coverage.bound is None


def test_weights_move_to_the_better_tracker():
    rng = np.random.default_rng(2)
    y = np.cumsum(rng.normal(size=4000)) * 0.3  # only a large step keeps up
    layer = QuantileEnsemble(0.5, [0.001, 0.5], 0.05)
    weights = layer.run(np.zeros(4000), y).weights
    assert weights.names == ["0.001", "0.5"]
    assert weights.theta[0].tolist() == [0.5, 0.5]
    assert weights.theta[-1][1] > 0.9


@pytest.mark.parametrize(
    "settings",
    [
        {"etas": []},
        {"etas": [0.1, 0.1]},
        {"etas": [0.0, 0.1]},
        {"ensemble_eta": -1.0},
        {"final_eta": 0.0},
        {"floor": 0.6},
        {"link": "log"},
        {"level": 1.0},
    ],
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(BadInput):
        QuantileEnsemble(**{"level": 0.9, "etas": [0.1, 1.0], "ensemble_eta": 0.1, **settings})
