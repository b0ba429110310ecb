"""MAPIE: adaptive conformal inference around given predictions, row by row: predict, update, adapt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.inputs import Data
from benchmarks.peers.entry import Entry, Step, one_by_one

WARM = 100  # rows whose scores it is given at first; they come again as the first rows
STEP = 0.005


def black_box() -> Any:
    """A fitted model whose prediction is its only feature."""
    from sklearn.base import BaseEstimator, RegressorMixin

    class Given(RegressorMixin, BaseEstimator):  # type: ignore[misc]
        def fit(self, x: Any, y: Any) -> Any:
            self.fitted_ = True
            return self

        def predict(self, x: Any) -> Any:
            return x[:, 0]

    return Given().fit(None, None)


def adaptive(data: Data) -> Callable[[], Step]:
    """80 % intervals."""
    from mapie.regression import TimeSeriesRegressor

    x, y = data["f"][:, None], data["y"]

    def start() -> Step:
        model = TimeSeriesRegressor(black_box(), method="aci", cv="prefit")
        model.fit(x[:WARM], y[:WARM])

        def step(i: int) -> Any:
            row, label = x[i : i + 1], y[i : i + 1]
            _, ends = model.predict(row, confidence_level=0.8)
            model.update(row, label)
            model.adapt_conformal_inference(row, label, gamma=STEP, confidence_level=0.8)
            return ends[0, :, 0]

        return step

    return start


DOES: dict[str, Entry] = {"interval": one_by_one(1_500, adaptive, None, "ACI: the quantile of all scores so far")}
