"""Elo beyond plain games: the quick forms of penalties beside the same on every player, steps swept in one pass."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.cases import playing
from benchmarks.timing import Row, Took, best, compare
from gradeq.layers.elo import Elo
from gradeq.penalties import Lasso, Ridge

PLAYERS, ETA = 150, 0.1
MANY, FEW = 7_556, 20_000  # players and games for the penalties
FIRST = 500  # games that are also played one by one
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
    first = [column[:FIRST].tolist() for column in (a, b, y)]
    took: dict[str, Took] = {}
    gaps: dict[str, float] = {}
    for name, settings in KINDS.items():
        n = FEW // 10 if "every" in name else FEW
        elo = Elo(ETA, **settings)
        served = elo.run(a[:n], b[:n], y[:n]).served
        step = playing(Elo(ETA, **settings), *first)
        gaps[name] = compare(name, served[:FIRST], [step(i) for i in range(FIRST)])
        took[name] = best({"": lambda elo=elo, n=n: elo.run(a[:n], b[:n], y[:n])}, n, 3)[""]
    dense = took["lasso, every player"].cpu
    for name, own in took.items():
        ratios = {} if "every" in name else {"every player": dense / own.cpu}
        yield Row(f"{MANY:,} players, {name}", own, ratios, gap=gaps[name])


def sweep() -> Row:
    """Sixteen steps in one pass against sixteen runs."""
    n = 100_000
    a, b, y = games(n, PLAYERS)
    etas = np.geomspace(0.003, 1.0, 16)
    jobs = {
        "fused": lambda: Elo.sweep(etas, a, b, y),
        "apart": lambda: [Elo(float(eta)).run(a, b, y) for eta in etas],
    }
    fused, apart = (job() for job in jobs.values())
    gap = compare("sweep", [own.loss for own in fused.points], [log_loss(y, own) for own in apart])
    times = best(jobs, n, 3)
    ratio = times["fused"].cpu / times["apart"].cpu
    return Row("16 steps in one pass", times["fused"], {"of 16 runs": ratio}, "<= 0.6x", gap=gap)


def log_loss(y: Any, run: Any) -> float:
    """The mean log loss of what a run served."""
    p = np.asarray(run.served)
    return float(-np.mean(y * np.log(p) + (1.0 - y) * np.log1p(-p)))
