"""The quantile ensemble: the corrected algorithm written out, its weights, and coverage only with a final tracker."""

import numpy as np
import pytest

from gradeq import BadInput, QuantileEnsemble, from_json
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
    assert list(layer.tracker_weights.values()) == pytest.approx(w, rel=1e-8)
    assert list(layer.trackers.values()) == pytest.approx(theta, abs=1e-12)
    assert min(layer.tracker_weights.values()) >= floor


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
    weights = layer.run(np.zeros(4000), y).tracker_weights
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


KINDS = ({}, {"final_eta": None}, {"final_eta": None, "floor": 0.1}, {"link": "linear"})


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_late_columns_equal_late_events_and_any_cut(kind):
    rng = np.random.default_rng(3)
    n = 400
    f, times = rng.normal(size=n), np.arange(float(n))
    y, due = f + rng.standard_t(3, size=n), times + rng.integers(0, 30, n)
    whole, cut, events = (QuantileEnsemble(0.9, [0.01, 0.1, 1.0], 0.3, **kind) for _ in range(3))
    served = whole.run(f, y, times, due).served
    pieces = []
    for a, b in ((0, 1), (1, 150), (150, n)):
        pieces.extend(cut.run(f[a:b], y[a:b], times[a:b], due[a:b]).served)
        cut = from_json(cut.to_json())
    assert np.array_equal(served, pieces) and whole.to_json() == cut.to_json()
    one_by_one, waiting = [], []
    for i in range(n):
        for _, k in sorted(own for own in waiting if own[0] <= i):
            events.update(y[k], id=k)
        waiting = [own for own in waiting if own[0] > i]
        one_by_one.append(events.predict(f[i], id=i))
        waiting.append((due[i], i))
    assert np.array_equal(served, one_by_one)
    assert events.tracker_weights == whole.tracker_weights and events.trackers == whole.trackers
    assert events.steps == whole.steps and whole.steps["capped"] > 0


@pytest.mark.parametrize("final", [None, 0.3])
def test_trackers_and_weights_take_the_same_share_of_their_steps_as_the_final_tracker(final):
    """Three labels at once, each three rows late: a cap of 0.3 / 3 leaves a third of a step of 0.3."""
    layer = QuantileEnsemble(0.9, [0.1, 1.0], 0.3, final, link="linear")
    tickets = [layer.open(0.0) for _ in range(3)]
    share = layer.post(tickets[0], 5.0).eta / tickets[0].step
    assert share == pytest.approx(1 / 3)
    assert list(layer.trackers.values()) == pytest.approx([0.1 * 0.9 * share, 0.9 * share])


def test_a_correction_moves_the_final_tracker_and_no_other():
    layer, twin = (QuantileEnsemble(0.9, [0.1, 1.0], 0.3) for _ in range(2))
    for i in range(50):
        for each in (layer, twin):
            each.predict(0.0, id=i)
            each.update(float(i % 7), id=i)
    layer.correct(20, 100.0)
    assert layer.trackers == twin.trackers and layer.tracker_weights == twin.tracker_weights
    assert layer.theta != twin.theta and layer.equilibrium().gap < 1e-12
