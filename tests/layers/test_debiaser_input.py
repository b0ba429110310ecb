"""What a layer refuses, in one line and with nothing changed."""

from decimal import Decimal

import numpy as np
import pytest

import gradeq as gq
from gradeq import BadInput, Debiaser, StateError, StepTooLarge, from_json
from relative import relative


def one_line(error):
    return "\n" not in str(error.value) and len(str(error.value)) < 300


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), None, "3", "x", [1.0], 10**400])
@pytest.mark.parametrize("verb", ["predict", "update"])
def test_a_bad_number_is_refused_and_nothing_moves(verb, value):
    layer = Debiaser(eta=0.1)
    layer.predict(1.0)
    before = layer.to_json()
    if verb == "update" and (value is None or value != value):
        assert layer.update(value) == "skipped"  # no label will come
        return
    with pytest.raises(BadInput) as error:
        getattr(layer, verb)(value)
    assert one_line(error)
    assert layer.to_json() == before


@pytest.mark.parametrize(
    "value", [True, 1, np.int8(1), np.uint8(1), np.float32(1.0), np.float64(1.0), Decimal("1.0")]
)
def test_other_numbers_are_promoted_before_arithmetic(value):
    layer = Debiaser(eta=0.5, queue=True)
    assert layer.predict(value) == 1.0 and type(layer.predict(value)) is float
    layer.update(value)
    layer.update(np.uint8(3))
    assert layer.theta["(all)"] == pytest.approx(0.05 * 2)  # the second ticket was capped: 0.1 / 2


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "bool", "object", "int64"])
def test_columns_of_any_numeric_type_are_promoted(dtype):
    base, labels = np.array([0, 1, 1, 0]).astype(dtype), np.array([1, 1, 0, 0]).astype(dtype)
    served = Debiaser(eta=0.5).run(base, labels).served
    expected = Debiaser(eta=0.5).run(base.astype(float), labels.astype(float)).served
    assert np.array_equal(np.asarray(served, dtype=float), expected)


@pytest.mark.parametrize(
    "columns",
    [
        {"predictions": [1.0, float("nan")], "labels": [1.0, 1.0]},
        {"predictions": [1.0, 2.0], "labels": [1.0, float("inf")]},
        {"predictions": [1.0, 2.0], "labels": [1.0]},
        {"predictions": [1.0], "labels": [1.0, 2.0]},
        {"predictions": ["a", "b"], "labels": [1.0, 2.0]},
        {"predictions": [[1.0], [2.0]], "labels": [1.0, 2.0]},
        {"predictions": [1.0, 2.0], "labels": [1.0, 2.0], "weights": [1.0, -1.0]},
        {"predictions": [1.0, 2.0], "labels": [1.0, 2.0], "weights": [1.0]},
        {"predictions": [1.0, 2.0], "labels": [1.0, 2.0], "label_times": [1.0, 2.0]},
        {"predictions": [1.0, 2.0], "labels": [1.0, 2.0], "groups": {"g": ["a", "b"]}},
    ],
    ids=repr,
)
def test_bad_columns_are_refused_and_nothing_moves(columns):
    layer = Debiaser(eta=0.1)
    layer.run([1.0], [2.0])
    before = layer.to_json()
    with pytest.raises(BadInput) as error:
        layer.run(**columns)
    assert one_line(error)
    assert layer.to_json() == before


def test_probabilities_and_their_labels_lie_in_the_unit_interval():
    layer = Debiaser(outcome="binary")
    for bad in (-0.1, 1.1):
        with pytest.raises(BadInput, match="outside"):
            layer.predict(bad)
        layer.predict(0.5, id=str(bad))
        with pytest.raises(BadInput, match="outside"):
            layer.update(bad, id=str(bad))
        with pytest.raises(BadInput, match="row 1"):
            layer.run([0.5, bad], [1.0, 0.0])
    assert layer.theta["(all)"] == 0.0


@pytest.mark.parametrize("eta", [0, -1.0, float("nan"), float("inf"), "fast", None])
def test_a_step_must_be_positive_and_finite(eta):
    if eta is None:
        with pytest.raises(BadInput, match="required with features"):
            Debiaser(features=["x"])
    else:
        with pytest.raises(BadInput):
            Debiaser(eta=eta)


def test_a_step_that_can_diverge_is_refused_with_its_limit():
    with pytest.raises(StepTooLarge, match="eta < 2"):
        Debiaser(eta=2.0)
    with pytest.raises(StepTooLarge, match="eta < 1"):
        Debiaser(eta=1.0, groups=["a", "b"])
    Debiaser(eta=5.0, outcome="binary")  # bounded errors: any step is stable


def test_a_row_too_large_for_its_step_gets_a_smaller_one_and_is_served():
    """A huge feature or a heavy weight is no reason not to serve: its step is 1 / (w ||z||^2), and that is told."""
    rows = [(3.0, 1.0), (1.0, 10.0), (1e6, 0.5), (0.5, 0.5)]
    events, columns = (Debiaser(eta=0.5, features=["x"]) for _ in range(2))
    served = [events.open(0.0, features={"x": x}, weight=w) for x, w in rows]
    v = relative([w for _, w in rows])
    assert [ticket.weight for ticket in served] == v and v[1] == 10.0 / 5.5
    steps = [1.0 / 9.0, 0.5, 1.0 / (v[2] * 1e12), 0.5]
    assert [ticket.step for ticket in served] == steps
    heavy = Debiaser(eta=0.5)
    tickets = [heavy.open(0.0, weight=w) for w in [1.0] * 9 + [1000.0]]
    assert tickets[-1].weight == 1000.0 / 100.9 and tickets[-1].step == 100.9 / 1000.0
    again = Debiaser(eta=0.5, features=["x"])
    for x, w in rows:
        again.predict(0.0, features={"x": x}, weight=w), again.update(1.0)
    xs, ws = zip(*rows, strict=True)
    columns.run([0.0] * 4, [1.0] * 4, features={"x": xs}, weights=ws)
    assert again.to_json() == columns.to_json()
    assert columns.steps["resized"] == 2 and columns.equilibrium().gap < 1e-12


def test_steps_that_rise_too_far_are_limited_alike_by_events_and_columns():
    steps = gq.Piecewise((0.1, 5.0), (3,))
    events, columns = Debiaser(schedule=steps), Debiaser(schedule=steps)
    for _ in range(6):
        events.predict(0.0), events.update(1.0)
    columns.run([0.0] * 6, [1.0] * 6)
    assert events.to_json() == columns.to_json() and events.steps["resized"] == 3


@pytest.mark.parametrize(
    "settings",
    [{"outcome": "count"}, {"link": "logit"}, {"link": "shift"}, {"outcome": "binary", "link": "exp"},
     {"late_cap": 2.0}, {"in_flight": 0}, {"ttl": -1}, {"groups": ["g", "g"]}, {"bins": [1.0, 0.5]},
     {"eta": "auto", "penalty": gq.Ridge(0.1)}, {"eta": "auto", "features": ["x"]}, {"groups": ""},
     {"eta": 0.1, "schedule": gq.Constant(0.1)}],
    ids=repr,
)  # fmt: skip
def test_settings_that_do_not_fit_are_refused(settings):
    with pytest.raises(BadInput) as error:
        Debiaser(**settings)
    assert one_line(error)


def test_groups_and_features_must_be_the_layers_own():
    layer = Debiaser(eta=0.1, groups=["g"])
    for groups in (None, {}, {"h": 1}, {"g": 1, "h": 2}):
        with pytest.raises(BadInput, match="group"):
            layer.predict(1.0, groups)
    with pytest.raises(BadInput, match="is not one of this layer"):
        layer.run([1.0], [1.0], groups={"h": [1]})


def test_empty_and_single_rows_work():
    layer = Debiaser(eta=0.1, groups=["g"])
    run = layer.run([], [], groups={"g": []})
    assert len(run.served) == 0 and layer.equilibrium().rows == 0
    assert list(layer.run([1.0], [2.0], groups={"g": ["a"]}).served) == [1.0]
    assert "nothing to certify" in str(Debiaser(eta=0.1).equilibrium())


def test_a_missing_group_is_a_group_of_its_own():
    layer = Debiaser(eta=0.5, groups=["g"])
    layer.run([0.0, 0.0], [1.0, 1.0], groups={"g": [None, "a"]})
    assert list(layer.theta) == ["g=(missing)", "g=a"]
    assert layer.predict(0.0, {"g": float("nan")}) == 0.5


def test_a_group_without_labels_is_served_with_what_is_known_and_flagged():
    layer = Debiaser(eta=0.5, groups=["race", "sex"])
    layer.predict(0.0, {"race": "a", "sex": "f"}), layer.update(1.0)
    assert layer.predict(0.0, {"race": "b", "sex": "f"}) == 0.5
    assert layer.cold == ("race=b",)


@pytest.mark.parametrize("damage", ["flip", "truncate", "newer", "foreign", "twice", "nan", "empty"])
def test_a_damaged_state_is_refused(damage):
    layer = Debiaser(eta=0.1)
    layer.run(np.zeros(5), np.ones(5))
    text = layer.to_json()
    changed = {
        "flip": text.replace('"eta":0.1', '"eta":0.2'),
        "truncate": text[:-10],
        "newer": text.replace('"format":2', '"format":99'),
        "foreign": '{"hello": 1}',
        "twice": text[:-1] + ',"format":2}',
        "nan": text.replace('"eta":0.1', '"eta":NaN'),
        "empty": "",
    }[damage]
    with pytest.raises(StateError) as error:
        from_json(changed)
    assert one_line(error)


def test_no_bit_flip_in_a_state_passes_silently():
    layer = Debiaser(eta=0.1, groups=["g"])
    layer.run(np.zeros(5), np.ones(5), groups={"g": list("abcab")})
    raw = layer.to_json().encode()
    rng, refused = np.random.default_rng(0), 0
    for _ in range(300):
        place, bit = rng.integers(len(raw)), 1 << rng.integers(8)
        flipped = bytearray(raw)
        flipped[place] ^= bit
        try:  # 1e-16 and 1E-16 are one number: the state is what it was
            assert from_json(bytes(flipped)).to_json() == layer.to_json()
        except StateError:
            refused += 1
    assert refused > 290


def test_a_state_of_another_format_is_refused_by_its_version():
    text = Debiaser(eta=0.1).to_json().replace('"format":2', '"format":1').replace("0.2.0", "0.1.0")
    with pytest.raises(StateError, match=r"written by gradeq 0\.1\.0, format 1") as error:
        from_json(text)
    assert one_line(error)
    for odd in ("0", "-1", '"2"', "true", "2.5", "null"):
        with pytest.raises(StateError):
            from_json(Debiaser(eta=0.1).to_json().replace('"format":2', f'"format":{odd}'))
