"""Conformal sets of any score, and risk control of any bounded error: the promised average, exactly."""

import numpy as np
import pytest

from gradeq import BadInput, Conformal, RiskControl, StateError, from_json


def stream(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    f = np.cumsum(rng.normal(size=n))
    return f, f + rng.standard_t(3, size=n) * np.linspace(1.0, 5.0, n)


@pytest.mark.parametrize("score", ["absolute", "cqr"])
def test_intervals_hold_the_label_as_often_as_asked(score):
    f, y = stream()
    x = f if score == "absolute" else np.stack([f - 1.0, f + 2.0], axis=1)
    layer = Conformal(score, 0.9)
    lower, upper = layer.run(x, y).served.T
    held = np.mean((lower <= y) & (y <= upper))
    assert held == pytest.approx(layer.coverage.after, abs=2 / len(y))
    assert held == pytest.approx(0.9, abs=layer.coverage.bound)
    assert not layer.coverage.vacuous


def test_a_score_of_ones_own_covers_and_is_saved_without_it():
    f, y = stream(500)

    def relative(x, label):
        return abs(label - x) / (1.0 + abs(x))

    layer, held = Conformal(relative, 0.8, warm=True), 0
    for x, label in zip(f.tolist(), y.tolist(), strict=True):
        held += label in layer.predict(x)
        layer.update(label)
    assert layer.coverage.after == pytest.approx(held / len(f), abs=1e-9)
    text = layer.to_json()
    again = Conformal.from_json(text, relative)
    assert again.predict(3.0) == layer.predict(3.0)
    with pytest.raises(StateError, match="custom score"):
        from_json(text)
    with pytest.raises(BadInput, match="no interval"):
        _ = layer.peek(1.0).interval


def test_labels_may_be_anything_that_the_score_takes():
    """Sets of classes: the score is one minus the probability of the class."""
    rng = np.random.default_rng(1)
    layer = Conformal(lambda x, label: 1.0 - x[label], 0.8)
    sizes = []
    for _ in range(2000):
        p = rng.dirichlet([0.5] * 4)
        served = layer.predict({name: float(q) for name, q in zip("abcd", p, strict=True)})
        sizes.append(sum(name in served for name in "abcd"))
        layer.update("abcd"[rng.choice(4, p=p)])
    assert layer.coverage.after == pytest.approx(0.8, abs=layer.coverage.bound)
    assert 1.0 < np.mean(sizes) < 3.0


def test_a_score_that_is_not_finite_is_refused_and_changes_nothing():
    layer = Conformal(lambda x, label: float("nan"), 0.8)
    layer.predict(1.0)
    before = layer.to_json()
    with pytest.raises(BadInput, match="finite"):
        layer.update(1.0)
    assert layer.to_json() == before


@pytest.mark.parametrize("score", ["absolut", "", None])
def test_unknown_scores_are_refused(score):
    with pytest.raises(BadInput):
        Conformal(score, 0.9)


def test_risk_is_the_displacement_and_stays_within_its_bound():
    rng = np.random.default_rng(2)

    def lost(theta, values):
        """The share of items above the knob."""
        return float(np.mean(np.asarray(values) > theta))

    layer = RiskControl(lost, target=0.1, eta=0.05, span=(0.0, 1.0))
    errors = []
    for t in range(4000):
        theta = layer.predict()
        values = rng.beta(2 if t % 400 < 200 else 5, 3, size=5).tolist()
        errors.append(lost(theta, values))
        layer.update(values)
    assert layer.risk == pytest.approx(np.mean(errors), abs=1e-12)
    equilibrium = layer.equilibrium()
    assert equilibrium.gap < 1e-12
    assert abs(layer.risk - 0.1) <= equilibrium.bound < 0.01


def test_risk_control_of_an_indicator_is_quantile_tracking():
    rng = np.random.default_rng(3)
    y = rng.normal(size=500)
    risk = RiskControl(lambda theta, label: label > theta, target=0.1, eta=0.2)
    served = risk.run(y).served
    theta = 0.0
    for value, label in zip(served, y, strict=True):
        assert value == theta
        theta = theta - 0.2 * (0.1 - float(label > theta))
    assert risk.theta == {"(all)": theta}


@pytest.mark.parametrize("most", [1.0, 8.0])
def test_an_adversary_stays_within_the_bound_of_risk_control(most):
    layer = RiskControl(
        lambda theta, y: most * (y > theta), target=most / 4, eta=0.1 / most, span=(-1.0, 1.0), most=most
    )
    for _ in range(2000):
        theta = layer.predict()
        layer.update(min(1.0, theta + 1e-9) if theta < 0.5 else -1.0)
    assert abs(layer.risk - most / 4) <= layer.equilibrium().bound * (1 + 1e-9)


@pytest.mark.parametrize("settings", [{"target": 1.0}, {"target": 0.0}, {"eta": 0.0}, {"error": 3}])
def test_wrong_risk_settings_are_refused(settings):
    with pytest.raises(BadInput):
        RiskControl(**{"error": lambda theta, y: 0.0, "target": 0.1, "eta": 0.1, **settings})
