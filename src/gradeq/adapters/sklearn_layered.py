"""What the scikit-learn adapters share: a model below, a layer above, and the verbs that join them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from gradeq.adapters.sklearn_rows import cells, named, rows_of
from gradeq.frames import same_length

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.layer import Layer


class Layered(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A model and a layer; classes that users make say which layer, and what goes in and out of it."""

    estimator: Any
    groups: Sequence[str | int] | None
    features: Sequence[str | int] | None
    _models: tuple[str, ...] = ("estimator",)
    _layer: type[Layer]
    _fixed: Mapping[str, Any] = {}  # settings of the layer that users do not choose

    def _keep(self, given: dict[str, Any]) -> None:
        """Keep every argument of ``__init__`` under its own name, as scikit-learn wants it."""
        self.__dict__.update({name: value for name, value in given.items() if name != "self"})

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model; the layer starts from zero, because no label here is new to the model."""
        validate_data(self, X, y, skip_check_array=True)
        y = self._targets(column_or_1d(y, warn=True))
        extra = {} if sample_weight is None else {"sample_weight": sample_weight}
        for name in self._models:
            if (model := getattr(self, name)) is not None:
                setattr(self, f"{name}_", clone(model).fit(X, y, **extra))
        return self._begin()

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Serve the rows in order and learn from each label before the next row; the model stays as it is.

        A missing label is served, not learned from. On an unfitted adapter: a model that is fitted already is taken
        as it is, another is fitted to these rows, from which the layer then learns nothing.
        """
        if not hasattr(self, "layer_"):
            if not all(map(is_fitted, self._given())):
                return self.fit(X, y, sample_weight)
            validate_data(self, X, y, skip_check_array=True)
            for name in self._models:
                if (model := getattr(self, name)) is not None:
                    setattr(self, f"{name}_", model)
            self._begin()
        self._run(self.layer_, X, self._labels(column_or_1d(y, warn=True)), sample_weight)
        return self

    def serve(self, X: Any, ids: Any) -> Any:
        """Adjusted predictions whose labels come later, each under an id of its own; see ``learn``."""
        check_is_fitted(self, "layer_")
        forecasts = self._forecast(X)
        names = listed(ids)
        n = same_length(X=forecasts, ids=names)
        rows = cells(rows_of(X, self.groups, self.features, self._names), n)

        def serve_all() -> list[Any]:
            return [
                self.layer_.predict(f, *row, id=id)
                for f, row, id in zip(forecasts.tolist(), rows, names, strict=True)
            ]

        return self._answer(np.array(self._all_or_nothing(serve_all)))

    def learn(self, ids: Any, y: Any) -> list[str]:
        """Post the labels of served rows, in any order: ``applied``, or ``duplicate`` if posted before."""
        check_is_fitted(self, "layer_")
        names = listed(ids)
        labels = self._labels(column_or_1d(y))
        same_length(ids=names, y=labels)

        def learn_all() -> list[str]:
            return [
                self.layer_.update(label, id=id)
                for id, label in zip(names, labels.tolist(), strict=True)
            ]

        answers: list[str] = self._all_or_nothing(learn_all)
        return answers

    @property
    def equilibrium_(self) -> Equilibrium:
        """The certificate: exact averages, bias and loss before and after, the proven bound."""
        check_is_fitted(self, "layer_")
        found: Equilibrium = self.layer_.equilibrium()
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        below = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = below.sparse, below.allow_nan
        return tags

    @property
    def _names(self) -> Any:
        """Column names of X, if it had any."""
        return getattr(self, "feature_names_in_", None)

    def _given(self) -> list[Any]:
        """The models as they were handed over."""
        return [model for name in self._models if (model := getattr(self, name)) is not None]

    def _begin(self) -> Self:
        """A fresh layer, from the arguments that are its own."""
        given = self.get_params(deep=False)
        own = {name: value for name, value in given.items() if name not in self._models}
        own |= {name: named(own[name], self._names) for name in ("groups", "features")}
        self.layer_: Any = self._layer(**own, **self._fixed)
        return self

    def _adjusted(self, X: Any) -> Any:
        """What the layer would serve now, by a copy: predicting changes nothing."""
        check_is_fitted(self, "layer_")
        return self._run(self.layer_.copy(), X, None, None)

    def _run(self, layer: Any, X: Any, labels: Any, weights: Any) -> Any:
        forecasts = self._forecast(X)
        rows = rows_of(X, self.groups, self.features, self._names)
        ran = layer.run(
            forecasts, labels, groups=rows.groups, features=rows.features, weights=weights
        )
        return ran.served

    def _forecast(self, X: Any) -> Any:
        """The model's predictions of these rows, float64."""
        forecasts = np.asarray(self._base(X), np.float64)
        validate_data(self, X, reset=False, skip_check_array=True)
        return forecasts

    def _all_or_nothing(self, act: Any) -> Any:
        """Many events as one: the layer is unchanged if any of them is refused."""
        before = self.layer_.copy()
        try:
            return act()
        except Exception:
            self.layer_.__dict__.update(before.__dict__)
            raise

    def _base(self, X: Any) -> Any:
        return self.estimator_.predict(X)

    def _targets(self, y: Any) -> Any:
        """The labels as the model wants them."""
        return y

    def _labels(self, y: Any) -> Any:
        """The labels as the layer wants them."""
        return y

    def _answer(self, served: Any) -> Any:
        """Served values in the shape that the user wants."""
        return served


def is_fitted(model: Any) -> bool:
    """Whether the model has learned already."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def listed(ids: Any) -> list[Any]:
    """Ids as plain numbers or text."""
    values: list[Any] = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    return values
