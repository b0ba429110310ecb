"""What is measured, by name: whole columns through ``run``, and events through ``predict`` and ``update``.

Only what users call is used, so that two versions of the package can be measured by the same text (``against``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import gradeq as gq
from benchmarks.inputs import Data

ETA, FADE = 0.05, 2.0 ** (-1.0 / 100.0)
Given = Callable[[Data], tuple[tuple[Any, ...], dict[str, Any]]]


class Case(NamedTuple):
    """A layer and what it is given; ``goal`` for a row of a million; ``found``: what is looked at afterwards."""

    make: Callable[[Data], Any]
    given: Given
    goal: str = ""
    rows: int = 1_000_000
    found: Callable[[Data, Any, Any], Any] = lambda data, layer, run: run.served


def plain(data: Data) -> Any:
    return (data["f"], data["y"]), {}


def by(*names: str, column: str = "") -> Given:
    """Groups of these names; ``column`` has other values for the only one."""
    return lambda data: (
        (data["f"], data["y"]), {"groups": {name: data[column or name] for name in names}}
    )  # fmt: skip


def late(given: Given) -> Given:
    """Labels up to a thousand rows late, out of order."""
    return lambda data: (given(data)[0], given(data)[1] | {"times": data["times"], "label_times": data["due"]})


def featured(data: Data) -> Any:
    """Every feature as a column of its own, as files and frames have them."""
    columns = np.ascontiguousarray(data["x"].T)
    return (data["f"], data["y"]), {"features": dict(zip(feature_names(data), columns, strict=True))}


def feature_names(data: Data) -> list[str]:
    return [f"x{k}" for k in range(data["d"])]


def debias(*groups: str, eta: Any = ETA) -> Callable[[Data], Any]:
    return lambda data: gq.Debiaser(eta, groups=list(groups))


def keyed(data: Data) -> Any:
    return gq.Keyed(gq.Debiaser(ETA))


def games(data: Data) -> Any:
    return (data["a"], data["b"], data["score"]), {}


def games_by_name(data: Data) -> Any:
    return (data["a name"], data["b name"], data["score"]), {}


def ratings(data: Data, layer: Any, run: Any) -> list[float]:
    """The online ratings by number of the player."""
    return by_number(data, layer.theta)


def on_board(data: Data, layer: Any, run: Any) -> list[float]:
    """The same read from the leaderboard: a fit, its ranks and intervals are made too."""
    return by_number(data, {row.player: row.tracked for row in layer.leaderboard()})


def by_number(data: Data, found: dict[str, float]) -> list[float]:
    """Players who never played have 0."""
    return [found.get(f"player-{k}", 0.0) for k in range(data["players"])]


COLUMNS = {
    "scalar": Case(debias(), plain, "<= 6 ns"),
    "groups, integers": Case(debias("g"), by("g"), "<= 20 ns"),
    "groups, text": Case(debias("g"), by("g", column="text"), "<= 60 ns"),
    "groups, arrow dictionary": Case(debias("g"), by("g", column="coded"), "<= 20 ns"),
    "two overlapping groups": Case(debias("g", "h"), by("g", "h"), "<= 60 ns"),
    "three overlapping groups": Case(debias("g", "h", "i"), by("g", "h", "i"), "<= 60 ns"),
    "features": Case(lambda d: gq.Debiaser(ETA, features=feature_names(d)), featured),
    "weights": Case(debias(), lambda d: ((d["f"], d["y"]), {"weights": d["w"]}), "<= 15 ns"),
    "late labels": Case(debias(), late(plain), "<= 80 ns"),
    "late labels, groups": Case(debias("g"), late(by("g"))),
    "keyed, integers": Case(keyed, lambda d: ((d["f"], d["y"]), {"key": d["key"]})),
    "keyed, text": Case(keyed, lambda d: ((d["f"], d["y"]), {"key": d["key text"]})),
    "quantile, linear": Case(lambda d: gq.QuantileTracker(0.9, eta=ETA, link="linear"), plain),
    "quantile, sinh": Case(lambda d: gq.QuantileTracker(0.9, eta=ETA), plain),
    "interval": Case(lambda d: gq.IntervalTracker(0.8, eta=ETA), plain),
    "23 levels": Case(
        lambda d: gq.MultiQuantileTracker(d["taus"], eta=ETA, link="linear"),
        lambda d: ((d["level forecasts"], d["y"]), {}), "<= 600 ns", 200_000,
    ),
    "ensemble of 8": Case(
        lambda d: gq.QuantileEnsemble(0.9, d["nus"].tolist(), 0.1), plain, "", 200_000
    ),
    "auto, groups": Case(debias("g", eta="auto"), by("g"), "", 200_000),
    "auto, groups, late labels": Case(debias("g", eta="auto"), late(by("g")), "", 200_000),
    "Elo, integers": Case(lambda d: gq.Elo(0.1), games),
    "ratings, names": Case(lambda d: gq.Elo(0.1), games_by_name, found=ratings),
    "leaderboard, names": Case(lambda d: gq.Elo(0.1), games_by_name, found=on_board),
}  # fmt: skip


class Events(NamedTuple):
    """A layer, what an event gives it beside f, and whether its label comes by id. ``same``: the case of columns."""

    make: Callable[[Data], Any]
    given: Callable[[Data], list[tuple[Any, ...]]] = lambda data: [()] * data["n"]
    same: str = ""
    ids: bool = False
    keys: bool = False
    games: bool = False
    goal: str = "<= 2x river"


def grouped(*names: str) -> Callable[[Data], list[tuple[Any, ...]]]:
    """The groups of each event."""
    return lambda data: [
        (dict(zip(names, own, strict=True)),) for own in zip(*(data[name].tolist() for name in names), strict=True)
    ]


EVENTS = {
    "scalar": Events(debias(), same="scalar", goal="<= 1.2x river"),
    "scalar, ids": Events(debias(), same="scalar", ids=True),
    "ten disjoint groups": Events(debias("g"), grouped("g"), "groups, integers"),
    "three overlapping groups": Events(debias("g", "h", "i"), grouped("g", "h", "i"), "three overlapping groups"),
    "quantile, linear": Events(COLUMNS["quantile, linear"].make, same="quantile, linear"),
    "quantile, sinh": Events(COLUMNS["quantile, sinh"].make, same="quantile, linear"),
    "interval": Events(COLUMNS["interval"].make, same="interval", goal=""),
    "keyed": Events(keyed, lambda data: [(key,) for key in data["key"].tolist()], "keyed, integers", keys=True),
    "auto": Events(debias("g", eta="auto"), grouped("g"), goal=""),
    "Elo": Events(lambda d: gq.Elo(0.1), same="Elo, integers", games=True, goal="<= 2x elote"),
}  # fmt: skip


def ran(case: Case, data: Data) -> Callable[[], Any]:
    """The job of a case: a new layer, and what it served."""
    positional, named = case.given(data)

    def job() -> Any:
        layer = case.make(data)
        return case.found(data, layer, layer.run(*positional, **named))

    return job


def stepped(kind: Events, data: Data) -> Callable[[], Callable[[int], Any]]:
    """A new layer each time, and the function that is event i: predict, then the label at once."""
    if kind.games:
        played = [data[name].tolist() for name in ("a", "b", "score")]
        return lambda: playing(kind.make(data), *played)
    given = [
        (f, *own) for f, own in zip(data["f"].tolist(), kind.given(data), strict=True)
    ]  # fmt: skip
    learning = learning_by_id if kind.ids else learning_by_key if kind.keys else learning_in_order
    labels = data["y"].tolist()
    return lambda: learning(kind.make(data), given, labels)


def happened(kind: Events, data: Data) -> Callable[[], list[Any]]:
    """The job of events: a new layer, each event by itself, and what was served."""
    begin = stepped(kind, data)

    def job() -> list[Any]:
        step = begin()
        return [step(i) for i in range(data["n"])]

    return job


def learning_in_order(layer: Any, given: list[Any], y: list[float]) -> Callable[[int], Any]:
    """Labels of the oldest open prediction."""
    predict, update = layer.predict, layer.update

    def step(i: int) -> Any:
        served = predict(*given[i])
        update(y[i])
        return served

    return step


def learning_by_id(layer: Any, given: list[Any], y: list[float]) -> Callable[[int], Any]:
    """Labels by id."""
    predict, update = layer.predict, layer.update

    def step(i: int) -> Any:
        served = predict(*given[i], id=i)
        update(y[i], id=i)
        return served

    return step


def learning_by_key(layer: Any, given: list[Any], y: list[float]) -> Callable[[int], Any]:
    """Labels of the oldest open prediction, of many series."""
    predict, update = layer.predict, layer.update

    def step(i: int) -> Any:
        f, key = given[i]
        served = predict(f, key=key)
        update(y[i])
        return served

    return step


def playing(layer: Any, a: list[int], b: list[int], score: list[float]) -> Callable[[int], float]:
    """Games: the forecast, then the score."""
    peek, play = layer.peek, layer.play

    def step(i: int) -> float:
        served = peek(a[i], b[i])
        play(a[i], b[i], score[i])
        return float(served)

    return step
