"""scikit-learn estimators with a layer on top of any model: `fit` it, then `partial_fit` teaches the layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gradeq.errors import BadInput, missing_extra
from gradeq.inputs.arguments import MISSING_NAME, name_of
from gradeq.inputs.column_types import ColumnLike, FloatArray
from gradeq.layers.columns import same_length
from gradeq.layers.debiaser import Debiaser
from gradeq.layers.quantile import IntervalTracker, QuantileTracker

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import column_or_1d, get_tags
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise missing_extra("sklearn", "the scikit-learn adapters") from error

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.options import LateCap
    from gradeq.layers.quantile import Step
    from gradeq.penalties import Penalty
    from gradeq.schedules import Schedule


__all__ = ["DebiasedClassifier", "DebiasedRegressor", "TrackedInterval", "TrackedQuantile"]

LayerOnForecasts = Debiaser | QuantileTracker | IntervalTracker
Keys = Sequence[str | int]  # columns of X by name, or by place
Labels = NDArray[np.generic]


class Model(Protocol):
    """A regressor or classifier of scikit-learn."""

    def fit(self, X: object, y: ColumnLike, **options: object) -> Self:
        """Learn from rows."""

    def predict(self, X: object) -> FloatArray:
        """The forecasts of rows."""


def column_names(keys: Keys | None, known: NDArray[np.object_] | None) -> list[str]:
    """The layer's names of these columns: their own, or x0, x1, ... as scikit-learn counts them."""
    if isinstance(keys, str):
        raise BadInput(f"{keys!r} is one name; give a list of columns, [{keys!r}]")
    names = [] if known is None else [str(name) for name in known]
    return [key if isinstance(key, str) else names[key] if names else f"x{int(key)}" for key in keys or ()]


def column(X: Any, key: str | int) -> ColumnLike:
    """One column of a dataframe by name or place, of an array or list of rows by place."""
    values: ColumnLike
    if hasattr(X, "columns"):
        names = list(X.columns)
        if isinstance(key, str) and key not in names:
            raise BadInput(f"X has no column {key!r}; it has {', '.join(map(str, names))}")
        values = X[key if isinstance(key, str) else names[key]]
    elif isinstance(key, str):
        raise BadInput(f"X has no column names; give the place of {key!r} as a number, or a frame")
    elif hasattr(X, "tocsc"):
        values = X.tocsc()[:, [key]].toarray().ravel()
    else:
        values = np.asarray(X)[:, key]
    return values


@dataclass(eq=False, repr=False)  # scikit-learn compares and prints estimators in its own way
class LayeredEstimator(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A model with a layer on top. Subclasses choose the layer, and what goes into it and comes out."""

    _model_names: ClassVar[tuple[str, ...]] = ("estimator",)
    _make_layer: ClassVar[Callable[..., LayerOnForecasts]]

    estimator: Model
    _: KW_ONLY
    groups: Keys | None = None
    features: Keys | None = None
    schedule: Schedule | None = None
    penalty: Penalty | None = None
    late_cap: LateCap = "auto"
    shadow: bool = False

    def fit(self, X: object, y: ColumnLike, sample_weight: ColumnLike | None = None) -> Self:
        """Fit the model; the layer starts from zero, because no label here is new to the model."""
        validate_data(self, X, y, skip_check_array=True)
        y = self._model_labels(column_or_1d(y, warn=True))
        extra = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self._begin(lambda model: clone(model).fit(X, y, **extra))

    def partial_fit(self, X: object, y: ColumnLike, sample_weight: ColumnLike | None = None) -> Self:
        """Serve the rows in order and learn from each label before the next row; the model stays as it is.

        A row without a label is served, not learned from. On an unfitted adapter, a model that is already fitted is
        used as it is; any other model is fitted to these rows, and the layer learns nothing from them.
        """
        if not hasattr(self, "layer_"):
            models = [getattr(self, name) for name in self._model_names]
            if not all(_is_fitted(model) for model in models if model is not None):
                return self.fit(X, y, sample_weight)
            validate_data(self, X, y, skip_check_array=True)
            self._begin(lambda model: model)
        labels = self._layer_labels(column_or_1d(y, warn=True))
        self.layer_.run(**self._layer_inputs(X), labels=labels, weights=sample_weight)
        return self

    def predict(self, X: object) -> FloatArray:
        """What the layer would serve now; predicting changes nothing."""
        return self._adjusted(X)

    def serve(self, X: object, ids: Iterable[str | int]) -> FloatArray:
        """Adjusted predictions whose labels come later, each with its id; see ``learn``."""
        check_is_fitted(self, "layer_")
        return np.asarray(self.layer_.predict_many(**self._layer_inputs(X), ids=_as_list(ids)))

    def learn(self, ids: Iterable[str | int], y: ColumnLike) -> list[str]:
        """Post the labels of served rows, in any order: ``applied``, or ``duplicate`` if posted before."""
        check_is_fitted(self, "layer_")
        rows, labels = _as_list(ids), self._layer_labels(column_or_1d(y))
        same_length(len(rows), len(labels), "y")
        before = self.layer_.copy()
        try:
            return [self.layer_.update(label, id=id) for id, label in zip(rows, labels.tolist(), strict=True)]
        except Exception:  # all or nothing
            self.layer_.__dict__.update(before.__dict__)
            raise

    @property
    def equilibrium_(self) -> Equilibrium:
        """The certificate: exact averages, bias and loss before and after, the proven bound."""
        check_is_fitted(self, "layer_")
        return self.layer_.equilibrium()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        below = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = below.sparse, below.allow_nan
        return tags

    def _begin(self, fitted: Callable[[Model], Model]) -> Self:
        """Set the fitted models, and a new layer from the remaining arguments."""
        for name in self._model_names:
            if (model := getattr(self, name)) is not None:
                setattr(self, f"{name}_", fitted(model))
        settings = {
            name: value for name, value in self.get_params(deep=False).items() if name not in self._model_names
        }
        known = getattr(self, "feature_names_in_", None)
        settings |= {name: column_names(settings[name], known) for name in ("groups", "features")}
        self.layer_ = type(self)._make_layer(**settings)
        return self

    def _adjusted(self, X: object) -> FloatArray:
        check_is_fitted(self, "layer_")
        return self.layer_.copy().run(**self._layer_inputs(X)).served

    def _layer_inputs(self, X: object) -> dict[str, Any]:
        """The model's predictions of these rows, and their groups and features by the layer's names."""
        forecasts = np.asarray(self._forecast(X), np.float64)
        validate_data(self, X, reset=False, skip_check_array=True)
        known = getattr(self, "feature_names_in_", None)
        groups, features = (
            {name: column(X, key) for name, key in zip(column_names(keys, known), keys or (), strict=True)}
            for keys in (self.groups, self.features)
        )
        return {"predictions": forecasts, "groups": groups or None, "features": features or None}

    def _forecast(self, X: object) -> FloatArray:
        forecasts: FloatArray = self.estimator_.predict(X)
        return forecasts

    def _model_labels(self, y: Labels) -> Labels:
        return y

    def _layer_labels(self, y: Labels) -> FloatArray:
        return y  # type: ignore[return-value]  # the layer checks them


def _is_fitted(model: Model) -> bool:
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _as_list(ids: Iterable[str | int]) -> list[str | int]:
    return ids.tolist() if hasattr(ids, "tolist") else list(ids)


@dataclass(eq=False, repr=False)
class DebiasedRegressor(RegressorMixin, LayeredEstimator):  # type: ignore[misc]
    """Any regressor, debiased online: in equilibrium the mean prediction equals the mean label.

    >>> from sklearn.linear_model import LinearRegression
    >>> model = DebiasedRegressor(LinearRegression(), eta=0.5)
    >>> model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).predict([[3.0]]).round(6)
    array([3.])
    >>> model.partial_fit([[3.0], [4.0]], [5.0, 6.0]).predict([[3.0]]).round(6)
    array([4.5])
    >>> round(model.equilibrium_.bias_after, 6)
    -1.5

    ``fit`` fits a clone of the model and starts the layer from zero; ``partial_fit`` leaves the model alone: it
    serves the rows in order and learns from each label, bit for bit as ``Debiaser.run``. ``predict`` changes
    nothing. To wrap a fitted model: ``DebiasedRegressor(model).partial_fit(X, y)``, or
    ``FrozenEstimator(model)``, which also stays fitted through ``clone``. Labels that come late:
    ``serve(X, ids)``, then ``learn(ids, y)``.

    ``groups``, ``features``: columns of X by name (dataframes) or place; the model sees them too, so drop them there
    with a ColumnTransformer if it should not. The other settings are those of ``gradeq.Debiaser``, with its guarantee
    over all rows of ``partial_fit`` and ``learn`` since ``fit``. A pipeline of scikit-learn has no ``partial_fit``:
    put the pipeline inside, ``DebiasedRegressor(make_pipeline(...))``.

    Attributes: ``estimator_`` (the fitted model), ``layer_`` (the ``Debiaser``; ``layer_.to_json()`` saves it),
    ``equilibrium_`` (the certificate), ``n_features_in_``, ``feature_names_in_``.
    """

    _make_layer = Debiaser

    eta: Step = None
    _: KW_ONLY
    link: Literal["identity", "exp"] = "identity"


@dataclass(eq=False, repr=False)
class DebiasedClassifier(ClassifierMixin, LayeredEstimator):  # type: ignore[misc]
    """Any binary classifier, debiased online: in equilibrium the mean probability is the share of positives.

    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> model = DebiasedClassifier(LogisticRegression(), eta=0.5).fit(X, y)
    >>> model.predict_proba([[1.5]]).round(3)
    array([[0.5, 0.5]])
    >>> model.partial_fit([[1.5], [1.5]], ["yes", "yes"]).predict_proba([[1.5]]).round(3)
    array([[0.385, 0.615]])

    The second of ``classes_`` is the positive one; its probability goes through ``link``: "logit" stays in [0, 1],
    "shift" is the paper's. The model needs ``predict_proba``; one without it, or one that is calibrated on old data,
    goes inside ``CalibratedClassifierCV``, and the layer on top. Everything else works as for ``DebiasedRegressor``.

    Attributes: ``classes_``, ``estimator_``, ``layer_``, ``equilibrium_``, ``n_features_in_``, ``feature_names_in_``.
    """

    _make_layer = partial(Debiaser, outcome="binary")

    eta: Step = None
    _: KW_ONLY
    link: Literal["logit", "shift"] = "logit"
    clip: float = 1e-6

    def partial_fit(  # type: ignore[override]  # scikit-learn's own order of arguments for classifiers
        self,
        X: object,
        y: ColumnLike,
        classes: Sequence[object] | None = None,
        sample_weight: ColumnLike | None = None,
    ) -> Self:
        """Serve the rows in order and learn from each label before the next row; the model stays as it is.

        ``classes``, if given, must be those of the fitted model. Otherwise as ``DebiasedRegressor.partial_fit``.
        """
        if classes is not None:
            model = getattr(self, "estimator_", self.estimator)
            known = getattr(model, "classes_", ()) if _is_fitted(model) else np.unique(np.asarray(y))
            if not np.array_equal(np.unique(np.asarray(classes)), known):
                raise BadInput(f"classes {list(classes)} are not those of the model: {known}")
        return super().partial_fit(X, y, sample_weight)

    def predict_proba(self, X: object) -> FloatArray:
        """The adjusted probabilities as of now, one column for each of ``classes_``."""
        return _two_columns(self._adjusted(X))

    def serve(self, X: object, ids: Iterable[str | int]) -> FloatArray:
        """Adjusted probabilities whose labels come later, each with its id; see ``learn``."""
        return _two_columns(super().serve(X, ids))

    def predict(self, X: object) -> Labels:  # type: ignore[override]
        """The more probable class as of now; the first one at exactly one half."""
        positive = self._adjusted(X) > 0.5
        classes: Labels = self.classes_[positive.astype(int)]
        return classes

    @property
    def classes_(self) -> Labels:
        """The two classes, the positive one last."""
        classes: Labels = self.estimator_.classes_
        return classes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _begin(self, fitted: Callable[[Model], Model]) -> Self:
        def checked(model: Model) -> Model:
            model = fitted(model)
            if not hasattr(model, "predict_proba"):
                raise BadInput(f"{type(model).__name__} has no predict_proba; put it inside CalibratedClassifierCV")
            if (known := len(getattr(model, "classes_", ()))) != 2:
                raise BadInput(f"the model knows {known} classes; Only binary classification is supported.")
            return model

        return super()._begin(checked)

    def _model_labels(self, y: Labels) -> Labels:
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise BadInput(f"Only binary classification is supported. The type of the target is {kind}.")
        return y

    def _layer_labels(self, y: Labels) -> FloatArray:
        labels = np.where(y == self.classes_[1], 1.0, np.where(y == self.classes_[0], 0.0, np.nan))
        for i in np.flatnonzero(np.isnan(labels)).tolist():
            if name_of(y[i]) != MISSING_NAME:
                raise BadInput(f"label {y.tolist()[i]!r} in row {i} is not one of {self.classes_}")
        return labels

    def _forecast(self, X: object) -> FloatArray:
        positive: FloatArray = self.estimator_.predict_proba(X)[:, 1]
        return positive


def _two_columns(positive: FloatArray) -> FloatArray:
    return np.column_stack([1.0 - positive, positive])


@dataclass(eq=False, repr=False)
class TrackedQuantile(RegressorMixin, LayeredEstimator):  # type: ignore[misc]
    """Any regressor as a quantile forecast that labels stay at or below with frequency ``level``.

    >>> from sklearn.linear_model import LinearRegression
    >>> model = TrackedQuantile(LinearRegression(), level=0.9, eta=0.5)
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.5, 0.5, 2.5, 2.5]
    >>> model.fit(X, y).partial_fit(X, [1.0, 3.0, 2.0, 4.0]).predict([[1.0]]).round(3)
    array([2.798])

    The model may forecast the mean or, with a quantile loss, the quantile itself. ``fit``, ``partial_fit``,
    ``serve``, ``learn``, ``groups`` and ``features`` as for ``DebiasedRegressor``; the other settings and the
    guarantee are those of ``gradeq.QuantileTracker``.

    Attributes: ``estimator_``, ``layer_``, ``equilibrium_``, ``n_features_in_``, ``feature_names_in_``.
    """

    _make_layer = QuantileTracker

    level: float = 0.9
    eta: Step = None
    _: KW_ONLY
    link: Literal["sinh", "linear"] = "sinh"


@dataclass(eq=False, repr=False)
class TrackedInterval(RegressorMixin, LayeredEstimator):  # type: ignore[misc]
    """Any regressor with intervals that contain the label with frequency ``coverage``, whatever the data.

    >>> from sklearn.linear_model import LinearRegression
    >>> model = TrackedInterval(LinearRegression(), coverage=0.8, eta=0.5)
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.5, 0.5, 2.5, 2.5]
    >>> model.fit(X, y).partial_fit(X, [1.0, 3.0, 2.0, 4.0]).predict_interval([[1.0]]).round(3)
    array([[0.795, 2.798]])
    >>> model.predict([[1.0]]).round(3)
    array([1.1])

    ``predict`` is the model's own point forecast, ``predict_interval`` the interval around it; covered means
    lower < y <= upper. ``lower`` and ``upper``: regressors of the two ends (with a quantile loss, say), fitted beside
    the model; by default both ends start from the point forecast. Everything else works as for ``TrackedQuantile``;
    the guarantee is that of ``gradeq.IntervalTracker``.

    Attributes: ``estimator_``, ``lower_``, ``upper_``, ``layer_``, ``equilibrium_``, ``n_features_in_``,
    ``feature_names_in_``.
    """

    _make_layer = IntervalTracker
    _model_names = ("estimator", "lower", "upper")

    coverage: float = 0.9
    eta: Step = None
    _: KW_ONLY
    lower: Model | None = None
    upper: Model | None = None
    link: Literal["sinh", "linear"] = "sinh"

    def predict(self, X: object) -> FloatArray:
        """The model's own point forecasts."""
        check_is_fitted(self, "layer_")
        point: FloatArray = self.estimator_.predict(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return point

    def predict_interval(self, X: object) -> FloatArray:
        """The adjusted intervals as of now, (n, 2): lower, upper."""
        return self._adjusted(X)

    def _forecast(self, X: object) -> FloatArray:
        point = self.estimator_.predict(X)
        ends = [
            point if getattr(self, name) is None else getattr(self, f"{name}_").predict(X)
            for name in ("lower", "upper")
        ]
        return np.column_stack(ends)
