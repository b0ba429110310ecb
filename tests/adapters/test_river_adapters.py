"""river adapters: its own checks, late labels in its own evaluation, and the plain layer's bits."""

import json
import random
from copy import deepcopy
from typing import Any

import pytest
from river import base, checks, compose, datasets, evaluate, linear_model, metrics, naive_bayes, preprocessing, stream

import gradeq as gq
from gradeq.adapters.river import DebiasedClassifier, DebiasedRegressor, TrackedInterval
from gradeq.errors import BadInput, LabelConflict, OtherSettings, UnknownTicket

CASES = [
    (cls(**params), check)
    for cls in (DebiasedRegressor, DebiasedClassifier, TrackedInterval)
    for params in cls._unit_test_params()
    for check in checks.yield_checks(cls(**params))
]


@pytest.mark.parametrize(
    ("model", "check"), CASES, ids=[f"{type(model).__name__}-{check.__name__}" for model, check in CASES]
)
def test_river_accepts_the_adapter(model: Any, check: Any) -> None:
    random.seed(0)  # river's checks drop features at random
    check(model.clone())


class Certain(base.Classifier):
    """A model whose probabilities pass 1 by a rounding."""

    def learn_one(self, x: Any, y: Any) -> None:
        pass

    def predict_proba_one(self, x: Any, **kwargs: Any) -> Any:
        return {True: 1.0000000000000002}


class Echo(base.Regressor):
    """A model that says x["f"] and learns nothing."""

    def learn_one(self, x: Any, y: Any) -> None:
        pass

    def predict_one(self, x: Any) -> Any:
        return x["f"]


def rows(n: int = 200, seed: int = 0) -> list[tuple[dict[str, Any], float]]:
    rng = random.Random(seed)
    return [
        ({"f": rng.random(), "shop": rng.choice("ab"), "late": rng.randrange(20)}, rng.gauss(1, 1)) for _ in range(n)
    ]


def simulated(layer: Any, data: Any, delay: Any, base: Any = lambda x: x["f"]) -> Any:
    """The plain layer, with river's own order of questions and answers and ids of its own."""
    groups = layer.settings["groups"]
    for i, x, y in stream.simulate_qa(data, None, delay):
        if y is None:
            layer.predict(base(x), {name: x[name] for name in groups} or None, id=i)
        else:
            layer.update(y, id=i)
    return layer


def learned(layer: Any) -> Any:
    """Parameters and sums, bit for bit (ids of tickets left aside)."""
    return layer.theta, json.loads(layer.to_json())["state"]["columns"], layer.traffic


DELAYS = [None, 7, lambda x, y: x["late"], "late"]


@pytest.mark.parametrize("delay", DELAYS, ids=["at once", "constant", "any order", "by key"])
@pytest.mark.parametrize("groups", [None, ["shop"]])
def test_late_labels_give_the_plain_layer_bit_for_bit(delay: Any, groups: Any) -> None:
    model = DebiasedRegressor(Echo(), 0.1, groups=groups)
    evaluate.progressive_val_score(rows(), model, metrics.MAE(), delay=delay)
    layer = simulated(gq.Debiaser(0.1, groups=groups or ()), rows(), delay)
    assert learned(model.layer_) == learned(layer)
    assert model.equilibrium_ == layer.equilibrium()
    assert model.layer_.traffic["open"] == 0
    assert not model.layer_.ids


def test_intervals_give_the_plain_layer_bit_for_bit() -> None:
    model = TrackedInterval(Echo(), 0.8, groups=["shop"])
    evaluate.progressive_val_score(rows(), model, metrics.MAE(), delay="late")
    layer = simulated(gq.IntervalTracker(0.8, groups=["shop"]), rows(), "late")
    assert learned(model.layer_) == learned(layer)
    interval = model.predict_one({"f": 0.5, "shop": "a"}, with_interval=True)
    assert (interval.lower, interval.upper) == layer.predict(0.5, {"shop": "a"})


@pytest.mark.parametrize("delay", [None, 1, 12])
def test_a_scaler_before_the_model_does_not_break_the_pairs(delay: int | None) -> None:
    """The scaler changes x between question and answer; labels in row order still find their rows."""
    model = preprocessing.StandardScaler() | DebiasedRegressor(linear_model.LinearRegression())
    told: list[float] = []
    inner = model["DebiasedRegressor"]
    plain = preprocessing.StandardScaler() | linear_model.LinearRegression()
    layer = gq.Debiaser()
    for i, x, y in stream.simulate_qa(datasets.TrumpApproval().take(300), None, delay):
        if y is None:
            told.append(model.predict_one(x))
            assert told[-1] == layer.predict(plain.predict_one(x), id=i)
        else:
            model.learn_one(x, y)
            layer.update(y, id=i)
            plain.learn_one(x, y)
    assert learned(inner.layer_) == learned(layer)


@pytest.mark.parametrize("before", [False, True], ids=["alone", "after a scaler"])
def test_ids_in_the_data_set_make_pairs_exact(before: bool) -> None:
    data = [(x, y, {"id": f"row-{i}"}) for i, (x, y) in enumerate(rows())]
    model = DebiasedRegressor(Echo(), 0.1)
    scaled = (compose.Select("f") | preprocessing.StandardScaler() | model) if before else model
    evaluate.progressive_val_score(data, scaled, metrics.MAE(), delay="late")
    scaler = preprocessing.StandardScaler()
    layer = gq.Debiaser(0.1)
    for i, x, y in stream.simulate_qa(rows(), None, "late"):
        one = {"f": x["f"]}
        if y is None:
            layer.predict(scaler.transform_one(one)["f"] if before else x["f"], id=i)
        else:
            scaler.learn_one(one)
            layer.update(y, id=i)
    assert learned(model.layer_) == learned(layer)
    assert model.learn_one({"f": 0.0}, data[0][1], id="row-0") is None
    assert model.layer_.traffic["labelled"] == len(data)
    with pytest.raises(LabelConflict):
        model.learn_one({"f": 0.0}, 99.0, id="row-0")
    with pytest.raises(UnknownTicket):
        model.learn_one({"f": 0.0}, 1.0, id="stranger")


def test_rows_of_equal_content_are_answered_first_in_first_out() -> None:
    model, layer = DebiasedRegressor(Echo(), 0.5, late_cap=None), gq.Debiaser(0.5, late_cap=None)
    x = {"f": 1.0}
    model.predict_one(x), layer.predict(1.0, id=0)
    model.learn_one({"f": 1}, 3.0), layer.update(3.0, id=0)
    for i in (1, 2):
        assert model.predict_one(deepcopy(x)) == layer.predict(1.0, id=i)
    for i, y in ((1, 5.0), (2, 7.0)):
        model.learn_one(deepcopy(x), y), layer.update(y, id=i)
    assert learned(model.layer_) == learned(layer)


def test_labels_of_rows_never_served_are_paired_as_told() -> None:
    x, other = {"f": 1.0, "shop": "a"}, {"f": 2.0, "shop": "a"}
    posted = {}
    for pairing in ("auto", "content", "order"):
        model = DebiasedRegressor(Echo(), 0.5, groups=["shop"], pairing=pairing, late_cap=None)
        model.predict_one(x)
        model.learn_one(other, 3.0)
        posted[pairing] = model.layer_.theta["shop=a"], model.layer_.traffic["open"]
    assert posted == {"auto": (1.0, 0), "content": (0.5, 1), "order": (1.0, 0)}
    strangers = DebiasedRegressor(Echo(), 0.5, groups=["shop"], late_cap=None)
    strangers.predict_one(x)
    strangers.learn_one({"f": 2.0, "shop": "b"}, 3.0)
    assert strangers.layer_.theta == {"shop=a": 0.0, "shop=b": 0.5}


def test_both_verbs_for_one_row_are_one_question() -> None:
    model = DebiasedClassifier(naive_bayes.GaussianNB(), 0.5)
    for x, y in datasets.Phishing().take(50):
        p = model.predict_proba_one(x)
        assert model.predict_one(x) == (p[True] > 0.5)
        assert model.layer_.traffic["open"] == 1
        model.learn_one(x, y)
    assert model.layer_.traffic == {
        "open": 0, "peak": 1, "peak_lateness": 1, "served": 50, "labelled": 50, "mean_delay": 0.0, "longest_delay": 0,
    }  # fmt: skip


def test_probabilities_give_the_plain_layer_and_any_two_labels_work() -> None:
    model = DebiasedClassifier(naive_bayes.GaussianNB(), 0.1, labels=("ham", "spam"))
    plain, layer = naive_bayes.GaussianNB(), gq.Debiaser(0.1, outcome="binary")
    for x, good in datasets.Phishing().take(200):
        y = "ham" if good else "spam"
        known = plain.predict_proba_one(x)
        served = layer.predict(min(1.0, known.get("spam", 0.0)) if known else 0.5)
        assert model.predict_proba_one(x) == {"ham": 1.0 - served, "spam": served}
        model.learn_one(x, y), layer.update(float(y == "spam")), plain.learn_one(x, y)
    with pytest.raises(BadInput, match="neither of"):
        model.learn_one(x, "eggs")
    with pytest.raises(BadInput, match="pairing"):
        DebiasedClassifier(plain, pairing="luck")
    with pytest.raises(BadInput, match="give a list"):
        DebiasedClassifier(plain, groups="shop")


def test_a_probability_that_passes_one_by_a_rounding_is_one() -> None:
    served = DebiasedClassifier(Certain()).predict_proba_one({})
    assert served[True] == gq.Debiaser(outcome="binary").predict(1.0)


def test_rows_without_a_label_lapse_and_their_late_label_moves_nothing() -> None:
    model = DebiasedRegressor(Echo(), 0.5, ttl=10)
    model.predict_one({"f": -1.0})
    for i in range(20):
        model.predict_one({"f": float(i)})
        model.learn_one({"f": float(i)}, float(i))
    assert model.layer_.traffic["open"] == 0
    model.learn_one({"f": -1.0}, 100.0)
    assert model.layer_.theta == {"(all)": 0.0}
    assert not model._rows.open.waiting
    assert not model._rows.open.expired


def test_a_saved_layer_knows_the_rows_that_have_lapsed() -> None:
    model = DebiasedRegressor(Echo(), 0.5, ttl=3)
    for i in range(6):
        model.predict_one({"f": float(i)})
    assert list(model.layer_.ids.values()) == ["expired"] * 2 + ["open"] * 4
    again = model.clone()
    again.layer_ = gq.from_json(model.layer_.to_json())
    for each in (model, again):
        each.learn_one({"f": 0.0}, 100.0)
        assert each.layer_.theta == {"(all)": 0.0}
        each.learn_one({"f": 5.0}, 5.0)
        assert (each.layer_.traffic["open"], each.layer_.traffic["labelled"]) == (3, 1)


def test_a_saved_layer_finds_the_rows_that_were_open() -> None:
    data = rows(60)
    whole, first = (DebiasedRegressor(Echo(), 0.1, groups=["shop"]) for _ in range(2))
    second = first.clone()
    for model in (whole, first):
        for x, _ in data[:40]:
            model.predict_one(x)
        for x, y in data[10:30]:
            model.learn_one(x, y)
    second.layer_ = gq.from_json(first.layer_.to_json())
    for model in (whole, second):
        for x, y in [*data[30:40], *data[:10]]:
            model.learn_one(x, y)
    assert second.layer_.to_json() == whole.layer_.to_json()
    with pytest.raises(OtherSettings):
        second.layer_ = gq.Debiaser(0.2, groups=["shop"])


def test_a_label_that_is_refused_changes_nothing() -> None:
    model = DebiasedRegressor(linear_model.LinearRegression(), 0.1)
    model.predict_one({"f": 1.0})
    before = model.layer_.to_json()
    with pytest.raises(BadInput, match="not finite"):
        model.learn_one({"f": 1.0}, float("nan"))
    fresh = model.clone(new_params={"pairing": "content"})
    with pytest.raises(BadInput, match="not finite"):
        fresh.learn_one({"f": 2.0}, float("nan"))
    assert fresh.layer_.to_json() == model.clone().layer_.to_json()
    assert model.layer_.to_json() == before
    assert model.regressor.weights == {}
    model.learn_one({"f": 1.0}, 1.0)
    assert model.layer_.traffic["open"] == 0


def test_features_and_weights_are_keys_of_the_row() -> None:
    model = DebiasedRegressor(Echo(), 0.1, features=["a", "b"], weight="w")
    layer = gq.Debiaser(0.1, features=["a", "b"])
    for x in ({"f": 1.0, "a": 0.5, "w": 2.0}, {"f": 2.0, "a": 1.0, "b": 0.3, "w": 0.0}):
        served = layer.predict(x["f"], None, {"a": x["a"], "b": x.get("b", 0.0)}, x["w"])
        assert model.predict_one(x) == served
        model.learn_one(x, 3.0), layer.update(3.0)
    assert learned(model.layer_) == learned(layer)


def test_the_bias_of_a_model_blind_to_a_group_all_but_vanishes_in_each() -> None:
    def shifted() -> Any:
        for i, (x, y) in enumerate(datasets.TrumpApproval()):
            yield {**x, "half": i % 2}, y + 3.0 * (i % 2)

    numbers = compose.Discard("half") | preprocessing.StandardScaler()
    model = DebiasedRegressor(numbers | linear_model.LinearRegression(), 0.1, groups=["half"])
    evaluate.progressive_val_score(shifted(), model, metrics.MAE())
    for half in model.equilibrium_.coordinates:
        assert abs(half.bias_before) > 0.5
        assert abs(half.bias_after) < 0.04 < half.bound
