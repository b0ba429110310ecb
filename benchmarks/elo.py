"""Elo beyond plain games: the quick forms of penalties beside the same on every player, steps swept in one pass."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.timing import Row, Took, best
from gradeq.layers.elo import Elo
from gradeq.penalties import Lasso, Ridge

PLAYERS, ETA = 150, 0.1
MANY, FEW = 7_556, 20_000  # players and games for the penalties
KINDS: dict[str, dict[str, Any]] = {
    "none": {}, "proximal lasso": {"proximal": 1e-3}, "ridge": {"penalty": Ridge(1e-3)},
    "lasso, every player": {"penalty": Lasso(1e-3)},
}  # fmt: skip


def main() -> Iterator[Row]:
    os.environ["GRADEQ_COMPILE"] = "1"
    yield from penalties()
    yield sweep()
    del os.environ["GRADEQ_COMPILE"]


def games(n: int, players: int) -> tuple[Any, Any, Any]:
    """A fifth of the games are ties."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, players, n)
    b = (a + rng.integers(1, players, n)) % players
    strength = rng.normal(0.0, 0.7, players)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(strength[b] - strength[a]))).astype(float)
    y[rng.random(n) < 0.2] = 0.5
    return a, b, y


def penalties() -> Iterator[Row]:
    """Quick forms of the penalties against the same on every player, which gets a tenth of the games."""
    a, b, y = games(FEW, MANY)
    took: dict[str, Took] = {}
    for name, settings in KINDS.items():
        n = FEW // 10 if "every" in name else FEW
        elo = Elo(ETA, **settings)
        elo.run(a[:n], b[:n], y[:n])
        took[name] = best({"": lambda elo=elo, n=n: elo.run(a[:n], b[:n], y[:n])}, n, 3)[""]
    dense = took["lasso, every player"].cpu
    for name, own in took.items():
        ratios = {} if "every" in name else {"every player": dense / own.cpu}
        yield Row(f"{MANY:,} players, {name}", own, ratios)


def sweep() -> Row:
    """Sixteen steps in one pass against sixteen runs."""
    n = 100_000
    a, b, y = games(n, PLAYERS)
    etas = np.geomspace(0.003, 1.0, 16)
    jobs = {
        "fused": lambda: Elo.sweep(etas, a, b, y),
        "apart": lambda: [Elo(float(eta)).run(a, b, y) for eta in etas],
    }
    for job in jobs.values():
        job()
    times = best(jobs, n, 3)
    ratio = times["fused"].cpu / times["apart"].cpu
    return Row("16 steps in one pass", times["fused"], {"of 16 runs": ratio}, "<= 0.6x")
