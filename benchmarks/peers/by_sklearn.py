"""scikit-learn: SGDRegressor.partial_fit row by row on residuals; isotonic regression at every row for levels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases import ETA
from benchmarks.inputs import Data
from benchmarks.peers.entry import Entry, Step, one_by_one


def residuals(rows: Callable[[Data], Any]) -> Callable[[Data], Callable[[], Step]]:
    """A linear model of the residuals; its first call only sets the parameters to zero."""

    def begin(data: Data) -> Callable[[], Step]:
        from sklearn.linear_model import SGDRegressor

        x, f, off = rows(data), data["f"], data["y"] - data["f"]

        def start() -> Step:
            model = SGDRegressor(penalty=None, learning_rate="constant", eta0=ETA, fit_intercept=False)
            model.partial_fit(np.zeros((1, x.shape[1])), [0.0])

            def step(i: int) -> float:
                row = x[i : i + 1]
                served = float(f[i] + model.predict(row)[0])
                model.partial_fit(row, off[i : i + 1])
                return served

            return step

        return start

    return begin


def one_hot(data: Data) -> Any:
    return np.eye(10)[data["g"]]


def levels(data: Data) -> Callable[[], Step]:
    """Lazy isotonic tracking, as research code has it: numpy, and isotonic_regression at every row."""
    from sklearn.isotonic import isotonic_regression

    base, y, taus = data["level forecasts"], data["y"], np.array(data["taus"])

    def start() -> Step:
        u = np.zeros(len(taus))

        def step(i: int) -> Any:
            served = isotonic_regression(base[i] + u)
            np.subtract(u, ETA * ((y[i] <= served) - taus), out=u)
            return served

        return step

    return start


DOES: dict[str, Entry] = {
    "scalar": one_by_one(4_000, residuals(lambda data: np.ones((data["n"], 1)))),
    "groups, integers": one_by_one(4_000, residuals(one_hot)),
    "features": one_by_one(4_000, residuals(lambda data: data["x"])),
    "23 levels": one_by_one(8_000, levels, remark="isotonic_regression at every row"),
}
