"""scikit-learn estimators whose quantiles and intervals cover as often as they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from gradeq.adapters.sklearn_layered import Layered
from gradeq.layers.quantile import IntervalTracker, QuantileTracker

if TYPE_CHECKING:
    from gradeq.layers.tracker import LateCap, Step
    from gradeq.penalties import Penalty
    from gradeq.schedules import Schedule


class TrackedQuantile(RegressorMixin, Layered):  # type: ignore[misc]
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

    _layer = QuantileTracker

    def __init__(
        self,
        estimator: Any,
        level: float = 0.9,
        eta: Step = None,
        *,
        groups: Sequence[str | int] | None = None,
        features: Sequence[str | int] | None = None,
        link: Literal["sinh", "linear"] = "sinh",
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: LateCap = "auto",
        shadow: bool = False,
    ) -> None:
        self._keep(locals())

    def predict(self, X: Any) -> Any:
        """The adjusted quantiles as of now."""
        return self._adjusted(X)


class TrackedInterval(RegressorMixin, Layered):  # type: ignore[misc]
    """Any regressor with intervals that hold the label with frequency ``coverage``, whatever the data.

    >>> from sklearn.linear_model import LinearRegression
    >>> model = TrackedInterval(LinearRegression(), coverage=0.8, eta=0.5)
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.5, 0.5, 2.5, 2.5]
    >>> model.fit(X, y).partial_fit(X, [1.0, 3.0, 2.0, 4.0]).predict_interval([[1.0]]).round(3)
    array([[0.795, 2.798]])
    >>> model.predict([[1.0]]).round(3)
    array([1.1])

    ``predict`` is the model's own point forecast, ``predict_interval`` the interval around it; covered means
    lower < y <= upper. ``lower`` and ``upper``: regressors of the two ends (with a quantile loss, say), fitted beside
    the model; left out, the point forecast serves for both. All else as for ``TrackedQuantile``; the guarantee is
    that of ``gradeq.IntervalTracker``.

    Attributes: ``estimator_``, ``lower_``, ``upper_``, ``layer_``, ``equilibrium_``, ``n_features_in_``,
    ``feature_names_in_``.
    """

    _layer = IntervalTracker
    _models = ("estimator", "lower", "upper")

    def __init__(
        self,
        estimator: Any,
        coverage: float = 0.9,
        eta: Step = None,
        *,
        lower: Any = None,
        upper: Any = None,
        groups: Sequence[str | int] | None = None,
        features: Sequence[str | int] | None = None,
        link: Literal["sinh", "linear"] = "sinh",
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: LateCap = "auto",
        shadow: bool = False,
    ) -> None:
        self._keep(locals())

    def predict(self, X: Any) -> Any:
        """The model's own point forecasts."""
        check_is_fitted(self, "layer_")
        point = self.estimator_.predict(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return point

    def predict_interval(self, X: Any) -> Any:
        """The adjusted intervals as of now, (n, 2): lower, upper."""
        return self._adjusted(X)

    def _base(self, X: Any) -> Any:
        point = self.estimator_.predict(X)
        ends = [
            point if getattr(self, name) is None else getattr(self, f"{name}_").predict(X)
            for name in ("lower", "upper")
        ]
        return np.column_stack(ends)
