"""river on the same recurrences, where it has them: models fed one event at a time, as it is meant to be used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any

from benchmarks.cases import ETA, Data

INSTALLED = find_spec("river") is not None
GROUPS = {
    "groups": ("g",),
    "two overlapping groups": ("g", "h"),
    "three overlapping groups": ("g", "h", "i"),
}


def by_river(name: str, data: Data) -> Callable[[], list[float]] | None:
    """What river does for a case over these rows; None where it has no such algorithm."""
    n, f, y = data["n"], data["f"].tolist(), data["y"].tolist()
    if not INSTALLED or "late" in name:
        return None
    columns = GROUPS.get(name.split(",")[0])
    if columns is not None:
        codes = [data[column].tolist() for column in columns]
        rows = [
            dict.fromkeys(zip(columns, own, strict=True), 1.0) for own in zip(*codes, strict=True)
        ]
        return lambda: served(linear(), rows, f, y)
    if name.startswith("keyed"):
        rows = [{key: 1.0} for key in data["key"].tolist()]
        return lambda: served(linear(), rows, f, y)
    if name == "weights":
        return lambda: served_weighted(intercept(), f, y, data["w"].tolist())
    if name.startswith("scalar"):
        return lambda: served(intercept(), [{}] * n, f, y)
    if name == "quantile, linear":
        return lambda: served(quantile(), [{}] * n, f, y)
    return None


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


def served(model: Any, rows: Iterable[Any], f: list[float], y: list[float]) -> list[float]:
    """The model learns the residuals of the predictions."""
    predict, learn, out = model.predict_one, model.learn_one, []
    for x, base, label in zip(rows, f, y, strict=True):
        out.append(base + predict(x))
        learn(x, label - base)
    return out


def served_weighted(model: Any, f: list[float], y: list[float], w: list[float]) -> list[float]:
    """The same with weights."""
    predict, learn, out = model.predict_one, model.learn_one, []
    for base, label, weight in zip(f, y, w, strict=True):
        out.append(base + predict({}))
        learn({}, label - base, weight)
    return out
