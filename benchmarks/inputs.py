"""Random columns for every benchmark: made when they are asked for, the same whenever they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LATE = 1_000  # rows that a late label may take
HUB = [0.01, 0.025, *(k / 20 for k in range(1, 20)), 0.975, 0.99]  # the levels of the forecast hubs


class Data(dict[str, Any]):
    """``n`` rows by name, and how many features, keys, players, levels and experts there are."""

    def __init__(self, n: int, **sizes: int) -> None:
        super().__init__(n=n, d=10, keys=max(n // 10, 1), players=150, levels=len(HUB), experts=8)
        self.update(sizes)

    def __missing__(self, name: str) -> Any:
        self[name] = MADE[name](self, np.random.default_rng(list(name.encode())))
        return self[name]


def named(what: str, count: int, codes: Any) -> Any:
    """Names instead of numbers, as an arrow column."""
    import pyarrow as pa

    return pa.array([f"{what}-{k}" for k in range(count)]).take(pa.array(codes))


def level_forecasts(data: Data, rng: Any) -> Any:
    """Forecasts of every level around f, in their order."""
    spread = rng.normal(size=(data["n"], data["levels"]))
    spread += data["f"][:, None]
    spread.sort(axis=1)
    return spread


def taus(data: Data, rng: Any) -> list[float]:
    """The levels of the hubs, or as many at equal distances."""
    count = data["levels"]
    return HUB if count == len(HUB) else [(k + 1) / (count + 1) for k in range(count)]


MADE: dict[str, Callable[[Data, Any], Any]] = {
    "f": lambda data, rng: rng.normal(size=data["n"]),
    "y": lambda data, rng: data["f"] + rng.normal(0.5, 1.0, size=data["n"]),
    "w": lambda data, rng: rng.random(data["n"]) + 0.5,
    "g": lambda data, rng: rng.integers(0, 10, data["n"]),
    "h": lambda data, rng: rng.integers(0, 5, data["n"]),
    "i": lambda data, rng: rng.integers(0, 3, data["n"]),
    "x": lambda data, rng: rng.normal(size=(data["n"], data["d"])) / data["d"] ** 0.5,
    "key": lambda data, rng: rng.integers(0, data["keys"], data["n"]),
    "times": lambda data, rng: np.arange(data["n"]),
    "due": lambda data, rng: data["times"] + rng.integers(0, LATE, data["n"]) + 0.5,
    "a": lambda data, rng: rng.integers(0, data["players"], data["n"]),
    "b": lambda data, rng: (data["a"] + rng.integers(1, data["players"], data["n"])) % data["players"],
    "score": lambda data, rng: rng.integers(0, 3, data["n"]) / 2.0,
    "taus": taus,
    "nus": lambda data, rng: np.geomspace(0.005, 0.5, data["experts"]),
    "level forecasts": level_forecasts,
    "text": lambda data, rng: named("group", 10, data["g"]),
    "coded": lambda data, rng: data["text"].dictionary_encode(),
    "key text": lambda data, rng: named("key", data["keys"], data["key"]),
    "a name": lambda data, rng: named("player", data["players"], data["a"]),
    "b name": lambda data, rng: named("player", data["players"], data["b"]),
}  # fmt: skip
