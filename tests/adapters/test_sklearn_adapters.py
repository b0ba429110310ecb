"""scikit-learn adapters: its own checks, and the plain layer's bits inside its verbs."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, QuantileRegressor, SGDRegressor
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import gradeq as gq
from gradeq.adapters.sklearn import DebiasedClassifier, DebiasedRegressor, TrackedInterval, TrackedQuantile
from gradeq.errors import BadInput, LabelConflict, UnknownTicket

ADAPTERS = [
    DebiasedRegressor(LinearRegression()),
    DebiasedClassifier(LogisticRegression()),
    TrackedQuantile(LinearRegression()),
    TrackedInterval(LinearRegression()),
]


# Infinite labels make scikit-learn itself warn before it refuses them.
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@parametrize_with_checks(ADAPTERS)
def test_scikit_learn_accepts_the_adapter(estimator: Any, check: Any) -> None:
    check(estimator)


def stream(n: int = 300, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows with a text group whose labels drift away from the model."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    region = np.where(rng.random(n) < 0.3, "north", "south")
    y = 2.0 * x + np.where(region == "north", 1.5, -0.5) + 0.1 * rng.normal(size=n)
    return pd.DataFrame({"x": x, "z": rng.normal(size=n), "region": region}), y


def numeric(model: Any) -> Any:
    """The model on the two numeric columns."""
    return make_pipeline(make_column_transformer(("passthrough", ["x", "z"])), model)


def test_partial_fit_is_the_plain_layer_bit_for_bit() -> None:
    X, y = stream()
    model = DebiasedRegressor(numeric(LinearRegression()), eta=0.05, groups=["region"], features=["z"]).fit(X, y)
    new, labels = stream(seed=1)
    layer = gq.Debiaser(0.05, groups=["region"], features=["z"])
    columns = {"groups": {"region": new["region"]}, "features": {"z": new["z"]}}
    layer.run(model.estimator_.predict(new), labels, **columns)
    model.partial_fit(new, labels)
    assert model.layer_.to_json() == layer.to_json()
    served = layer.copy().run(model.estimator_.predict(X), groups={"region": X["region"]},
                              features={"z": X["z"]}).served  # fmt: skip
    assert np.array_equal(model.predict(X), served)
    assert model.equilibrium_ == layer.equilibrium()


def test_probabilities_are_the_plain_layer_bit_for_bit() -> None:
    X, y = stream()
    said = np.where(y > 0, "yes", "no")
    model = DebiasedClassifier(numeric(LogisticRegression()), groups=["region"]).fit(X, said)
    new, labels = stream(seed=1)
    truth = labels > 0.7
    layer = gq.Debiaser(outcome="binary", groups=["region"])
    p = model.estimator_.predict_proba(new)[:, 1]
    layer.run(p, truth, groups={"region": new["region"]})
    model.partial_fit(new, np.where(truth, "yes", "no"), classes=["no", "yes"])
    assert model.layer_.to_json() == layer.to_json()
    shown = model.predict_proba(new)
    assert np.array_equal(shown.sum(axis=1), np.ones(len(new)))
    assert np.array_equal(model.predict(new) == "yes", shown[:, 1] > 0.5)


def test_quantiles_and_intervals_are_the_plain_layers_bit_for_bit() -> None:
    X, y = stream()
    new, labels = stream(seed=1)
    numbers, later = X[["x", "z"]], new[["x", "z"]]
    quantile = TrackedQuantile(LinearRegression(), 0.975).fit(numbers, y)
    point = quantile.estimator_.predict(later)
    one = gq.QuantileTracker(0.975)
    one.run(point, labels)
    assert quantile.partial_fit(later, labels).layer_.to_json() == one.to_json()
    interval = TrackedInterval(LinearRegression(), 0.8, lower=QuantileRegressor(quantile=0.1, alpha=0.0)).fit(
        numbers, y
    )
    two = gq.IntervalTracker(0.8)
    two.run(np.column_stack([interval.lower_.predict(later), point]), labels)
    assert interval.partial_fit(later, labels).layer_.to_json() == two.to_json()
    assert np.array_equal(interval.predict(later), point)
    ends = interval.predict_interval(later)
    assert ends.shape == (len(later), 2)
    assert (ends[:, 0] <= ends[:, 1]).all()


def test_any_cut_of_the_rows_gives_the_same_layer() -> None:
    X, y = stream()
    whole = DebiasedRegressor(FrozenEstimator(LinearRegression().fit(X[["x", "z"]], y)))
    parts = clone(whole)
    whole.partial_fit(X[["x", "z"]], y + 1.0)
    for a, b in ((0, 1), (1, 100), (100, 300)):
        parts.partial_fit(X[["x", "z"]][a:b], y[a:b] + 1.0)
    assert parts.layer_.to_json() == whole.layer_.to_json()
    assert parts.layer_.traffic["labelled"] == 300


def test_fit_teaches_the_layer_nothing_and_predict_changes_nothing() -> None:
    X, y = stream()
    model = DebiasedRegressor(numeric(LinearRegression()), eta="plain", groups=["region"]).fit(X, y + 5.0)
    assert model.layer_.to_json() == gq.Debiaser("plain", groups=["region"]).to_json()
    model.partial_fit(X, y)
    before = model.layer_.to_json()
    stranger = X.assign(region="east")
    assert np.array_equal(model.predict(stranger), model.estimator_.predict(stranger))
    assert model.layer_.to_json() == before


def test_a_fitted_model_is_taken_as_it_is_and_another_is_fitted_first() -> None:
    X, y = stream()
    numbers = X[["x", "z"]].to_numpy()
    fitted = LinearRegression().fit(numbers, y)
    taken = DebiasedRegressor(fitted).partial_fit(numbers, y + 1.0)
    assert taken.estimator_ is fitted
    assert taken.layer_.traffic["labelled"] == len(y)
    fresh = DebiasedRegressor(LinearRegression()).partial_fit(numbers, y + 1.0)
    assert fresh.layer_.traffic["labelled"] == 0
    with pytest.raises(NotFittedError):
        _ = clone(fresh).equilibrium_


def test_a_pipeline_holds_the_adapter_and_the_adapter_a_pipeline() -> None:
    X, y = stream()
    numbers = X[["x", "z"]]
    inside = DebiasedRegressor(make_pipeline(StandardScaler(), LinearRegression()), eta=0.1)
    outside = make_pipeline(StandardScaler(), DebiasedRegressor(LinearRegression(), eta=0.1))
    inside.fit(numbers, y).partial_fit(numbers, y + 1.0)
    outside.fit(numbers, y)[-1].partial_fit(outside[:-1].transform(numbers), y + 1.0)
    assert np.allclose(inside.predict(numbers), outside.predict(numbers), rtol=0, atol=1e-12)
    assert cross_val_score(outside, numbers, y).min() > 0.5


def test_parameters_reach_the_model_and_survive_clone() -> None:
    model = DebiasedRegressor(SGDRegressor(alpha=0.5), 0.1, groups=["region"], link="exp")
    model.set_params(eta=0.2, estimator__alpha=0.25)
    copy = clone(model)
    assert copy.get_params()["estimator__alpha"] == 0.25
    assert {k: v for k, v in copy.get_params(deep=False).items() if k != "estimator"} == {
        k: v for k, v in model.get_params(deep=False).items() if k != "estimator"
    }


def test_columns_by_name_by_place_and_of_any_frame_are_the_same_groups() -> None:
    X, y = stream()
    code = (X["region"] == "north").astype(int)
    frame = pd.DataFrame({"x": X["x"], "code": code})
    models = []
    for rows, groups in ((frame, ["code"]), (frame, [1]), (pl.from_pandas(frame), ["code"])):
        model = DebiasedRegressor(LinearRegression(), groups=groups).fit(rows, y)
        models.append(model.partial_fit(rows, y + 1.0))
    assert len({model.layer_.to_json() for model in models}) == 1
    plain = DebiasedRegressor(LinearRegression(), groups=[1]).fit(frame.to_numpy(), y)
    plain.partial_fit(frame.to_numpy(), y + 1.0)
    assert sorted(plain.layer_.theta) == ["x1=0", "x1=1"]
    assert np.array_equal(plain.predict(frame.to_numpy()), models[0].predict(frame))


def test_stacked_on_a_calibrator_the_bias_of_shifted_labels_goes_to_zero() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = rng.random(3000) < 1.0 / (1.0 + np.exp(-X[:, 0]))
    calibrated = CalibratedClassifierCV(LinearSVC(), cv=3)
    model = DebiasedClassifier(calibrated, eta=0.05).fit(X[:1000], y[:1000])
    shifted = y[1000:] & (rng.random(2000) < 0.5)
    found = model.partial_fit(X[1000:], shifted).equilibrium_
    assert found.bias_before > 0.2
    assert abs(found.bias_after) < 0.02
    assert found.loss_after < found.loss_before


def test_late_labels_are_posted_by_id_against_what_was_served() -> None:
    X, y = stream(40)
    model = DebiasedRegressor(numeric(LinearRegression()), groups=["region"]).fit(X, y)
    layer = gq.Debiaser(groups=["region"])
    served = model.serve(X, ids=np.arange(40))
    base = model.estimator_.predict(X).tolist()
    assert served.tolist() == [
        layer.predict(f, {"region": g}, id=i) for i, (f, g) in enumerate(zip(base, X["region"], strict=True))
    ]
    order = np.random.default_rng(0).permutation(40)
    assert set(model.learn(order, y[order])) == {"applied"}
    for i in order.tolist():
        layer.update(float(y[i]), id=i)
    assert model.layer_.to_json() == layer.to_json()
    assert model.learn([3], [y[3]]) == ["duplicate"]


def test_a_refused_batch_leaves_the_layer_as_it_was() -> None:
    X, y = stream(10)
    model = DebiasedRegressor(LinearRegression()).fit(X[["x"]], y)
    model.serve(X[["x"]], ids=range(10))
    before = model.layer_.to_json()
    with pytest.raises(BadInput, match="already served"):
        model.serve(X[["x"]], ids=range(5, 15))
    with pytest.raises(UnknownTicket):
        model.learn([0, 1, 99], [1.0, 2.0, 3.0])
    with pytest.raises(LabelConflict):
        model.learn([0, 0], [1.0, 2.0])
    with pytest.raises(BadInput, match="rows"):
        model.learn([0, 1], [1.0])
    with pytest.raises(BadInput, match="infinite"):
        model.partial_fit(X[["x"]], np.where(np.arange(10) == 5, np.inf, y))
    assert model.layer_.to_json() == before


def test_missing_labels_and_weight_zero_teach_nothing() -> None:
    X, y = stream(20)
    numbers = X[["x", "z"]]
    model = DebiasedRegressor(LinearRegression()).fit(numbers, y)
    model.partial_fit(numbers, y + 1.0, sample_weight=np.zeros(20))
    model.partial_fit(numbers, np.full(20, np.nan))
    assert model.layer_.theta == {"(all)": 0.0}
    said = np.where(y > 0, "yes", "no").astype(object)
    classifier = DebiasedClassifier(LogisticRegression()).fit(numbers, said)
    classifier.partial_fit(numbers, np.array([None] * 20, object))
    assert classifier.layer_.theta == {"(all)": 0.0}


def test_what_cannot_work_is_refused_in_one_line() -> None:
    X, y = stream(30)
    numbers, said = X[["x", "z"]], np.where(y > 0, "yes", "no")
    classifier = DebiasedClassifier(LogisticRegression()).fit(numbers, said)
    with pytest.raises(BadInput, match="'maybe' in row 1 is not one of"):
        classifier.partial_fit(numbers[:2], ["yes", "maybe"])
    with pytest.raises(BadInput, match="not those of the model"):
        classifier.partial_fit(numbers, said, classes=["no", "maybe"])
    with pytest.raises(BadInput, match="CalibratedClassifierCV"):
        DebiasedClassifier(LinearSVC()).fit(numbers, said)
    three = LogisticRegression().fit(numbers, np.arange(30) % 3)
    with pytest.raises(BadInput, match="Only binary"):
        DebiasedClassifier(three).partial_fit(numbers, said)
    with pytest.raises(BadInput, match="no column 'country'"):
        DebiasedRegressor(LinearRegression(), groups=["country"]).fit(numbers, y).predict(numbers)
    with pytest.raises(BadInput, match="give a list"):
        DebiasedRegressor(LinearRegression(), groups="x").fit(numbers, y)
    with pytest.raises(BadInput, match="no column names"):
        DebiasedRegressor(LinearRegression(), groups=["x"]).fit(numbers.to_numpy(), y).predict(numbers.to_numpy())


def test_the_layer_is_saved_and_taken_up_again() -> None:
    X, y = stream()
    numbers = X[["x", "z"]]
    model = DebiasedRegressor(LinearRegression()).fit(numbers, y).partial_fit(numbers, y + 1.0)
    again = DebiasedRegressor(LinearRegression()).fit(numbers, y)
    again.layer_ = gq.from_json(model.layer_.to_json())
    assert np.array_equal(again.predict(numbers), model.predict(numbers))
