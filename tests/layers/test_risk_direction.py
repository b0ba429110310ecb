"""A risk whose error does not fall as the knob rises is told by name; honest errors never are."""

import warnings

import numpy as np
import pytest

import gradeq as gq
from gradeq.layers.risk import BLOCK, SURE, Direction

REVERSED = {
    "step": (lambda theta, y: float(y < theta), 0.05),
    "step, other sign": (lambda theta, y: float(y > -theta), 0.1),
    "smooth": (lambda theta, y: float(1.0 / (1.0 + np.exp(np.clip(y - theta, -30.0, 30.0)))), 0.2),
    "far away": (lambda theta, y: float(1e6 * y < theta), 0.3),
}
HONEST = {
    "step": lambda theta, y: float(y > theta),
    "smooth": lambda theta, y: float(1.0 / (1.0 + np.exp(np.clip(theta - y, -30.0, 30.0)))),
    "rare": lambda theta, y: float(y > theta + 3.0),
    "constant": lambda theta, y: 0.05,
    "sometimes free": lambda theta, y: float(y > theta) if y > 0 else 0.0,
    "size": lambda theta, y: float(min(1.0, max(0.0, (y - theta) / 10.0))),
}
STREAMS = {
    "still": lambda rng, n: rng.normal(0.0, 1.0, n),
    "ramp": lambda rng, n: np.arange(n) * 3.0 + rng.normal(0.0, 1.0, n),
    "fall": lambda rng, n: -np.arange(n) * 3.0,
    "jumps": lambda rng, n: np.repeat(rng.normal(0.0, 100.0, n // 50), 50),
    "walk": lambda rng, n: np.cumsum(rng.normal(0.0, 2.0, n)),
    "heavy": lambda rng, n: rng.standard_cauchy(n),
}


def lived(layer, labels):
    for y in labels:
        layer.predict()
        layer.update(float(y))


@pytest.mark.parametrize("name", REVERSED)
def test_a_reversed_error_is_told_soon(name):
    error, target = REVERSED[name]
    layer = gq.RiskControl(error, target, 0.5)
    with pytest.warns(gq.GradeqWarning, match="does not fall as theta rises"):
        lived(layer, STREAMS["still"](np.random.default_rng(3), 200))
    assert "does not fall as theta rises" in str(layer.equilibrium())


def test_a_reversed_outcome_that_only_the_world_knows_is_told():
    layer, rng = gq.RiskControl(lambda theta, y: y, 0.05, 0.5), np.random.default_rng(4)
    with pytest.warns(gq.GradeqWarning, match="does not fall as theta rises"):
        for _ in range(600):
            theta = layer.predict()
            layer.update(float(rng.normal() < theta))


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("eta", [0.01, 0.5, 20.0])
def test_an_honest_error_is_never_called_reversed(name, stream, eta):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer = gq.RiskControl(HONEST[name], 0.1, eta)
        lived(layer, STREAMS[stream](np.random.default_rng(5), 600))
        assert "does not fall" not in str(layer.equilibrium())


def test_an_honest_outcome_that_only_the_world_knows_is_not_called_reversed():
    rng = np.random.default_rng(6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for start in (-50.0, 0.0, 50.0):
            layer = gq.RiskControl(lambda theta, y: y, 0.1, 0.5, start=start)
            for _ in range(6000):
                layer.update(float(rng.normal() > layer.predict()))


def test_columns_tell_it_too_and_the_verdict_has_the_target():
    layer = gq.RiskControl(REVERSED["step"][0], 0.05, 0.5)
    with pytest.warns(gq.GradeqWarning, match="does not fall as theta rises"):
        layer.run(np.random.default_rng(7).normal(0.0, 1.0, 300))
    good = gq.RiskControl(HONEST["step"], 0.05, 0.5)
    good.run(np.random.default_rng(7).normal(0.0, 1.0, 300))
    assert "target of 0.05" in str(good.equilibrium())


def test_an_error_that_fails_at_other_knobs_is_left_alone():
    def error(theta, y):
        if abs(theta) > 3.0:
            raise ValueError("out of range")
        return float(y > theta)

    layer = gq.RiskControl(error, 0.5, 0.1)
    lived(layer, np.random.default_rng(8).normal(0.0, 1.0, 200))


def test_an_error_that_rises_for_a_few_labels_only_is_not_called_reversed():
    rng = np.random.default_rng(2)
    seen = Direction(lambda theta, y: float(theta < y if y < 0.7 else theta > y), 0.2, 1.0, 0.0)
    for y in rng.random(400):
        seen(0.5, y)
    assert seen.fell > seen.rose >= SURE and not seen.reversed


@pytest.mark.parametrize(
    ("errors", "thetas", "reversed"),
    [
        ((0.8, 0.85, 0.9, 0.95), (1.0, 2.0, 3.0, 4.0), True),
        ((0.95, 0.9, 0.85, 0.8), (1.0, 2.0, 3.0, 4.0), False),  # it falls, if slowly
        ((0.3, 0.35, 0.4, 0.45), (1.0, 2.0, 3.0, 4.0), False),  # nearer to its target than to 1
        ((0.1, 0.85, 0.9, 0.95), (1.0, 2.0, 3.0, 4.0), False),  # not always above its target
        ((0.8, 0.85, 0.9, 0.95), (1.0, 2.0, 1.5, 4.0), False),  # theta does not run off
    ],
)
def test_an_error_that_theta_cannot_move_is_reversed_only_while_both_run_off(errors, thetas, reversed):
    seen = Direction(lambda theta, y: y, 0.2, 1.0, 0.0)
    for error, theta in zip(errors, thetas, strict=True):
        assert not seen.reversed
        for _ in range(BLOCK):
            seen(theta, error)
    assert seen.reversed == reversed


def coin(theta, y):
    return float(np.random.default_rng(int(1e9 * abs(theta + y))).random() < 0.5)


@pytest.mark.parametrize(
    ("error", "target", "said"),
    [
        (lambda theta, y: float(y > 50.0), 0.05, "does the error depend"),
        (lambda theta, y: 0.0, 0.2, "does the error depend"),
        (coin, 0.2, "does not fall"),
    ],
    ids=["forgot theta", "never wrong", "coin"],
)
def test_an_error_that_does_not_depend_on_theta_is_told_and_stays_told(error, target, said):
    layer, labels = gq.RiskControl(error, target, 2.0, start=40.0), np.random.default_rng(0).gamma(4.0, 10.0, 4000)
    with pytest.warns(gq.GradeqWarning, match=said) as told:
        lived(layer, labels)
    assert len(told) == 1
    assert said in str(layer.equilibrium())


@pytest.mark.parametrize("way", ["columns", "events"])
@pytest.mark.parametrize(
    ("error", "labels"),
    [
        (lambda theta, y: float(y <= theta), np.random.default_rng(5).gamma(4.0, 10.0, 4000)),
        (lambda theta, y: float(y > theta), np.full(4000, 1000.0)),
        (lambda theta, y: float(y > theta), np.full(4000, -1000.0)),
        (lambda theta, y: float(y > theta), np.linspace(0.0, 1000.0, 4000)),
    ],
    ids=["reversed", "above the span", "below the span", "leaves the span"],
)
def test_no_bound_where_the_labels_contradict_what_it_needs(error, labels, way):
    layer = gq.RiskControl(error, 0.05, 0.4, start=40.0, span=(0.0, 100.0))
    with pytest.warns(gq.GradeqWarning):
        layer.run(labels) if way == "columns" else lived(layer, labels)
    found = layer.equilibrium()
    assert found.bound is None and found.vacuous is None and found.coordinates[0].bound is None
    assert "no bound applies: a bound needs" in str(found)
    assert layer.labels_until(0.01) is None


def test_a_false_span_is_seen_in_a_restored_layer_too():
    def error(theta, y):
        return float(y > theta)

    layer = gq.RiskControl(error, 0.05, 0.4, start=40.0, span=(0.0, 100.0))
    with pytest.warns(gq.GradeqWarning):
        layer.run(np.full(4000, 1000.0))
    assert gq.RiskControl.from_json(layer.to_json(), error).equilibrium().bound is None


def test_a_true_span_keeps_its_bound():
    layer = gq.RiskControl(lambda theta, y: float(y > theta), 0.05, 0.4, start=40.0, span=(0.0, 100.0))
    layer.run(np.random.default_rng(5).uniform(0.0, 100.0, 4000))
    found = layer.equilibrium()
    assert found.bound is not None and abs(layer.risk - 0.05) <= found.bound


def test_an_error_that_was_always_0_is_printed_as_0():
    layer = gq.RiskControl(lambda theta, y: 0.0, 0.2, 0.1)
    layer.run(np.zeros(1500))
    assert layer.risk == 0.0 and "error 0 against" in str(layer.equilibrium())


def test_a_label_that_is_refused_says_nothing_about_the_span():
    layer = gq.RiskControl(lambda theta, y: y, 0.5, 0.1, start=-2.0, span=(-1.0, 1.0))
    with pytest.raises(gq.BadInput):
        layer.predict()
        layer.update(-3.0)
    layer.update(0.9)
    assert layer.equilibrium().rows == 1 and "span" not in str(layer.equilibrium())
