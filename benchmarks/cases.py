"""What is measured, by name: whole columns through ``run``, and events through ``predict`` and ``update``.

Only what users call is used, so that two versions of the package can be measured by the same text (``compare``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import gradeq as gq

ETA, FADE, LATE = 0.05, 2.0 ** (-1.0 / 100.0), 1_000
LEVELS = [0.01, 0.025, *(k / 20 for k in range(1, 20)), 0.975, 0.99]
NUS = np.geomspace(0.005, 0.5, 8)


class Data(dict[str, Any]):
    """Columns by name; text is made when it is first asked for."""

    def __missing__(self, name: str) -> Any:
        import pyarrow as pa

        if name == "coded":
            self[name] = self["text"].dictionary_encode()
        else:
            codes = self["g" if name == "text" else "key"]
            self[name] = pa.array([f"group-{k}" for k in range(codes.max() + 1)]).take(codes)
        return self[name]


class Case(NamedTuple):
    """A layer and what it is given; ``goal`` for a million rows or one event."""

    make: Callable[[], Any]
    given: Callable[[Data], tuple[tuple[Any, ...], dict[str, Any]]]
    goal: str = ""
    rows: int = 1_000_000


def columns(n: int) -> Data:
    """Random columns for every case, the same for the same n."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=n)
    data = Data(n=n, f=base, y=base + rng.normal(0.5, 1.0, size=n), w=rng.random(n) + 0.5)
    data |= {"g": rng.integers(0, 10, n), "h": rng.integers(0, 5, n), "i": rng.integers(0, 3, n)}
    data["key"] = rng.integers(0, max(n // 10, 1), n)
    data |= {"times": np.arange(n), "due": np.arange(n) + rng.integers(0, LATE, n) + 0.5}
    a, b = rng.integers(0, 150, n), rng.integers(1, 150, n)
    data |= {"a": a, "b": (a + b) % 150, "score": rng.integers(0, 3, n) / 2.0}
    return data


def level_forecasts(data: Data) -> Any:
    """Forecasts of every level, around a walk."""
    rng = np.random.default_rng(1)
    spread = rng.normal(size=(data["n"], len(LEVELS)))
    spread += data["f"][:, None]
    spread.sort(axis=1)
    return spread


def plain(data: Data) -> Any:
    return (data["f"], data["y"]), {}


def by(*names: str, column: str = "") -> Callable[[Data], Any]:
    """Groups of these names; ``column`` has other values for the only one."""
    return lambda data: (
        (data["f"], data["y"]), {"groups": {name: data[column or name] for name in names}}
    )  # fmt: skip


def late(given: Callable[[Data], Any]) -> Callable[[Data], Any]:
    """Labels up to a thousand rows late, out of order."""
    return lambda data: (
        given(data)[0],
        given(data)[1] | {"times": data["times"], "label_times": data["due"]},
    )


def debias(*groups: str, eta: Any = ETA) -> Callable[[], Any]:
    return lambda: gq.Debiaser(eta, groups=list(groups))


COLUMNS = {
    "scalar": Case(debias(), plain, "<= 6 ns"),
    "groups, integers": Case(debias("g"), by("g"), "<= 20 ns"),
    "groups, text": Case(debias("g"), by("g", column="text"), "<= 60 ns"),
    "groups, arrow dictionary": Case(debias("g"), by("g", column="coded"), "<= 20 ns"),
    "two overlapping groups": Case(debias("g", "h"), by("g", "h"), "<= 60 ns"),
    "three overlapping groups": Case(debias("g", "h", "i"), by("g", "h", "i"), "<= 60 ns"),
    "weights": Case(debias(), lambda d: ((d["f"], d["y"]), {"weights": d["w"]}), "<= 15 ns"),
    "late labels": Case(debias(), late(plain), "<= 80 ns"),
    "late labels, groups": Case(debias("g"), late(by("g"))),
    "keyed, integers": Case(
        lambda: gq.Keyed(gq.Debiaser(ETA)), lambda d: ((d["f"], d["y"], d["key"]), {})
    ),
    "keyed, text": Case(
        lambda: gq.Keyed(gq.Debiaser(ETA)), lambda d: ((d["f"], d["y"], d["key text"]), {})
    ),
    "quantile, linear": Case(lambda: gq.QuantileTracker(0.9, eta=ETA, link="linear"), plain),
    "quantile, sinh": Case(lambda: gq.QuantileTracker(0.9, eta=ETA), plain),
    "interval": Case(lambda: gq.IntervalTracker(0.8, eta=ETA), plain),
    "23 levels": Case(
        lambda: gq.MultiQuantileTracker(LEVELS, eta=ETA, link="linear"),
        lambda d: ((level_forecasts(d), d["y"]), {}), "<= 600 ns", 200_000,
    ),
    "ensemble of 8": Case(lambda: gq.QuantileEnsemble(0.9, NUS.tolist(), 0.1), plain, "", 200_000),
    "auto, groups": Case(debias("g", eta="auto"), by("g"), "", 200_000),
    "auto, groups, late labels": Case(debias("g", eta="auto"), late(by("g")), "", 200_000),
    "Elo, integers": Case(lambda: gq.Elo(0.1), lambda d: ((d["a"], d["b"], d["score"]), {})),
}  # fmt: skip


class Events(NamedTuple):
    """A layer, what an event gives it beside f, and whether its label comes by id."""

    make: Callable[[], Any]
    given: Callable[[int], tuple[Any, ...]] = lambda i: ()
    ids: bool = False
    games: bool = False
    goal: str = "<= 2x river"


SEVERAL = [{"g": i % 10, "h": i % 7, "i": i % 3} for i in range(210)]
TEN = [{"g": i} for i in range(10)]
EVENTS = {
    "scalar": Events(debias(), goal="<= 1.2x river"),
    "scalar, ids": Events(debias(), ids=True),
    "ten disjoint groups": Events(debias("g"), lambda i: (TEN[i % 10],)),
    "three overlapping groups": Events(debias("g", "h", "i"), lambda i: (SEVERAL[i % 210],)),
    "quantile, linear": Events(lambda: gq.QuantileTracker(0.9, eta=ETA, link="linear")),
    "quantile, sinh": Events(lambda: gq.QuantileTracker(0.9, eta=ETA)),
    "interval": Events(lambda: gq.IntervalTracker(0.8, eta=ETA), goal=""),
    "keyed": Events(lambda: gq.Keyed(gq.Debiaser(ETA)), lambda i: (i % 1_000,)),
    "auto": Events(debias("g", eta="auto"), lambda i: (TEN[i % 10],), goal=""),
    "Elo": Events(lambda: gq.Elo(0.1), games=True, goal="<= 2x elote"),
}


def ran(case: Case, data: Data) -> Callable[[], Any]:
    """The job of a case: a new layer, and what it served."""
    positional, named = case.given(data)
    return lambda: case.make().run(*positional, **named).served


def happened(kind: Events, data: Data) -> Callable[[], list[Any]]:
    """The job of events: a new layer, each event by itself, and what was served."""
    f, y = data["f"].tolist(), data["y"].tolist()
    if kind.games:
        games = list(
            zip(data["a"].tolist(), data["b"].tolist(), data["score"].tolist(), strict=True)
        )
        return lambda: played(kind.make(), games)
    given = [(f[i], *kind.given(i)) for i in range(len(f))]
    return lambda: (
        driven_by_id(kind.make(), given, y) if kind.ids else driven(kind.make(), given, y)
    )


def driven(layer: Any, given: list[Any], y: list[float]) -> list[Any]:
    """Predict, then the label at once."""
    predict, update, served = layer.predict, layer.update, []
    for row, label in zip(given, y, strict=True):
        served.append(predict(*row))
        update(label)
    return served


def driven_by_id(layer: Any, given: list[Any], y: list[float]) -> list[Any]:
    """Predict, then the label at once, by id."""
    predict, update, served = layer.predict, layer.update, []
    for i, (row, label) in enumerate(zip(given, y, strict=True)):
        served.append(predict(*row, id=i))
        update(label, id=i)
    return served


def played(layer: Any, games: list[tuple[int, int, float]]) -> list[float]:
    """Predict a game, then its score."""
    predict, update, served = layer.predict, layer.update, []
    for a, b, score in games:
        served.append(predict(a, b))
        update(a, b, score)
    return served
