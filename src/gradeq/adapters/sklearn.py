"""scikit-learn estimators that keep any model honest: fit it, then let the layer learn with ``partial_fit``."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from gradeq.errors import BadInput, missing_extra
from gradeq.frames import MISSING_NAME, name_of
from gradeq.layers.debiaser import Debiaser

try:
    from sklearn.base import ClassifierMixin, RegressorMixin
    from sklearn.utils.multiclass import type_of_target
except ImportError as error:
    raise missing_extra("sklearn", "the scikit-learn adapters") from error

from gradeq.adapters.sklearn_layered import Layered, is_fitted
from gradeq.adapters.sklearn_tracked import TrackedInterval, TrackedQuantile

if TYPE_CHECKING:
    from gradeq.layers.tracker import LateCap, Step
    from gradeq.penalties import Penalty
    from gradeq.schedules import Schedule

__all__ = ["DebiasedClassifier", "DebiasedRegressor", "TrackedInterval", "TrackedQuantile"]


class DebiasedRegressor(RegressorMixin, Layered):  # type: ignore[misc]
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
    serves the rows in order and learns from each label, bit for bit as ``Debiaser.run``. ``predict`` looks and
    changes nothing. To wrap a fitted model: ``DebiasedRegressor(model).partial_fit(X, y)``, or
    ``FrozenEstimator(model)``, which also stays fitted through ``clone``. Labels that come late:
    ``serve(X, ids)``, then ``learn(ids, y)``.

    ``groups``, ``features``: columns of X by name (dataframes) or place; the model sees them too, so drop them there
    with a ColumnTransformer if it should not. The other settings are those of ``gradeq.Debiaser``, with its guarantee
    over all rows of ``partial_fit`` and ``learn`` since ``fit``. A pipeline of scikit-learn has no ``partial_fit``:
    put the pipeline inside, ``DebiasedRegressor(make_pipeline(...))``.

    Attributes: ``estimator_`` (the fitted model), ``layer_`` (the ``Debiaser``; ``layer_.to_json()`` saves it),
    ``equilibrium_`` (the certificate), ``n_features_in_``, ``feature_names_in_``.
    """

    _layer = Debiaser

    def __init__(
        self,
        estimator: Any,
        eta: Step = None,
        *,
        groups: Sequence[str | int] | None = None,
        features: Sequence[str | int] | None = None,
        link: Literal["identity", "exp"] = "identity",
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: LateCap = "auto",
        shadow: bool = False,
    ) -> None:
        self._keep(locals())

    def predict(self, X: Any) -> Any:
        """The adjusted predictions as of now."""
        return self._adjusted(X)


class DebiasedClassifier(ClassifierMixin, Layered):  # type: ignore[misc]
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
    goes inside ``CalibratedClassifierCV``, and the layer on top of that. All else as for ``DebiasedRegressor``.

    Attributes: ``classes_``, ``estimator_``, ``layer_``, ``equilibrium_``, ``n_features_in_``, ``feature_names_in_``.
    """

    _layer = Debiaser
    _fixed = MappingProxyType({"outcome": "binary"})

    def __init__(
        self,
        estimator: Any,
        eta: Step = None,
        *,
        groups: Sequence[str | int] | None = None,
        features: Sequence[str | int] | None = None,
        link: Literal["logit", "shift"] = "logit",
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: LateCap = "auto",
        clip: float = 1e-6,
        shadow: bool = False,
    ) -> None:
        self._keep(locals())

    def partial_fit(  # type: ignore[override]  # scikit-learn's own order of arguments for classifiers
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Serve the rows in order and learn from each label before the next row; the model stays as it is.

        ``classes``, if given, must be those of the fitted model. Otherwise as ``DebiasedRegressor.partial_fit``.
        """
        if classes is not None:
            model = getattr(self, "estimator_", self.estimator)
            known = model.classes_ if is_fitted(model) else np.unique(y)
            if not np.array_equal(np.unique(classes), known):
                raise BadInput(f"classes {list(classes)} are not those of the model: {known}")
        return super().partial_fit(X, y, sample_weight)

    def predict_proba(self, X: Any) -> Any:
        """The adjusted probabilities as of now, one column for each of ``classes_``."""
        return self._answer(self._adjusted(X))

    def predict(self, X: Any) -> Any:
        """The more probable class as of now; the first one at exactly one half."""
        positive = self._adjusted(X) > 0.5
        return self.classes_[positive.astype(int)]

    @property
    def classes_(self) -> Any:
        """The two classes, the positive one last."""
        return self.estimator_.classes_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _begin(self) -> Self:
        if not hasattr(self.estimator_, "predict_proba"):
            name = type(self.estimator_).__name__
            raise BadInput(f"{name} has no predict_proba; put it inside CalibratedClassifierCV")
        if len(self.estimator_.classes_) != 2:
            raise BadInput(
                f"the model knows {len(self.estimator_.classes_)} classes; "
                "Only binary classification is supported."
            )
        return super()._begin()

    def _targets(self, y: Any) -> Any:
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise BadInput(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        return y

    def _labels(self, y: Any) -> Any:
        labels = np.where(y == self.classes_[1], 1.0, np.where(y == self.classes_[0], 0.0, np.nan))
        for i in np.flatnonzero(np.isnan(labels)).tolist():
            if name_of(y[i]) != MISSING_NAME:
                raise BadInput(f"label {y.tolist()[i]!r} in row {i} is not one of {self.classes_}")
        return labels

    def _base(self, X: Any) -> Any:
        return self.estimator_.predict_proba(X)[:, 1]

    def _answer(self, served: Any) -> Any:
        return np.column_stack([1.0 - served, served])
