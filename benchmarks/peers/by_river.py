"""river: models fed one event at a time, as it is meant to be used. They learn the residuals of the predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases import ETA
from benchmarks.inputs import Data
from benchmarks.peers.entry import Entry, Step, one_by_one

Rows = Callable[[Data], list[dict[Any, float]]]


def intercept() -> Any:
    """One parameter. Its loss is the square, ours half of it: hence eta / 2."""
    from river import linear_model, optim

    steps = optim.schedulers.Constant(ETA / 2)
    return linear_model.LinearRegression(optimizer=optim.SGD(0.0), intercept_lr=steps)


def linear() -> Any:
    """A parameter for each name."""
    from river import linear_model, optim

    return linear_model.LinearRegression(optimizer=optim.SGD(ETA / 2), intercept_lr=0.0)


def quantile() -> Any:
    """One parameter, pinball loss at 0.9."""
    from river import linear_model, optim

    steps = optim.schedulers.Constant(ETA)
    loss = optim.losses.Quantile(0.9)
    return linear_model.LinearRegression(optimizer=optim.SGD(0.0), loss=loss, intercept_lr=steps)


def jackknife() -> Any:
    """Intervals from the quantiles of all residuals so far; its model of the residuals says 0 for ever."""
    from river import conf, linear_model, optim

    zero = linear_model.LinearRegression(optimizer=optim.SGD(0.0), intercept_lr=0.0)
    return conf.RegressionJackknife(zero, confidence_level=0.8)


def nothing(data: Data) -> list[dict[Any, float]]:
    return [{}] * int(data["n"])


def indicators(*columns: str) -> Rows:
    """The groups of each row."""

    def rows(data: Data) -> list[dict[Any, float]]:
        codes = zip(*(data[column].tolist() for column in columns), strict=True)
        return [dict.fromkeys(zip(columns, own, strict=True), 1.0) for own in codes]

    return rows


def features(data: Data) -> list[dict[Any, float]]:
    return [dict(enumerate(row)) for row in data["x"].tolist()]


def relative(w: Any) -> list[float]:
    """Weights over the mean of those so far, as gradeq has them."""
    means = np.cumsum(w) / np.arange(1, len(w) + 1)
    return (w / means).tolist()  # type: ignore[no-any-return]


def learning(make: Callable[[], Any], rows: Rows, weights: bool = False) -> Callable[[Data], Callable[[], Step]]:
    """A model of the residuals."""

    def begin(data: Data) -> Callable[[], Step]:
        x, f, y = rows(data), data["f"].tolist(), data["y"].tolist()
        rest = [(w,) for w in relative(data["w"])] if weights else [()] * data["n"]

        def start() -> Step:
            model = make()
            predict, learn = model.predict_one, model.learn_one

            def step(i: int) -> float:
                served: float = f[i] + predict(x[i])
                learn(x[i], y[i] - f[i], *rest[i])
                return served

            return step

        return start

    return begin


def intervals(data: Data) -> Callable[[], Step]:
    """The interval of the residual, around the forecast."""
    f, y = data["f"].tolist(), data["y"].tolist()

    def start() -> Step:
        model = jackknife()

        def step(i: int) -> tuple[float, float]:
            own = model.predict_one({}, with_interval=True)
            model.learn_one({}, y[i] - f[i])
            return f[i] + own.lower, f[i] + own.upper

        return step

    return start


MANY = 200_000
DOES: dict[str, Entry] = {
    "scalar": one_by_one(MANY, learning(intercept, nothing)),
    "groups, integers": one_by_one(MANY, learning(linear, indicators("g"))),
    "two overlapping groups": one_by_one(MANY, learning(linear, indicators("g", "h"))),
    "three overlapping groups": one_by_one(MANY, learning(linear, indicators("g", "h", "i"))),
    "features": one_by_one(50_000, learning(linear, features)),
    "weights": one_by_one(MANY, learning(intercept, nothing, True)),
    "keyed, integers": one_by_one(MANY, learning(linear, indicators("key"))),
    "quantile, linear": one_by_one(MANY, learning(quantile, nothing)),
    "interval": one_by_one(
        50_000, intervals, None, "jackknife: quantiles of all residuals so far"
    ),
}  # fmt: skip
