"""Quantile levels: 23 levels against numpy row by row, one level through the sinh link, an ensemble against C."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from benchmarks.c_loops import library
from benchmarks.timing import Row, best
from gradeq import MultiQuantileTracker, QuantileEnsemble, QuantileTracker
from gradeq.geometries import EntropicSimplex
from gradeq.kernels import ensemble as loops
from gradeq.kernels.compile import compiled, fields
from gradeq.losses import Quantile

N, SHORT = 200_000, 4_000
LEVELS = [0.01, 0.025, *(k / 20 for k in range(1, 20)), 0.975, 0.99]
MULTIQT = (
    406  # rows a second with 23 levels, measured on another machine: only told, it is no ratio
)
ETA = 0.05
TRACKERS = 8


def main() -> list[Row]:
    return [several(), one(), *ensemble()]


def several() -> Row:
    """23 levels with forecasts of their own that never cross, accounts of every level included."""
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=N)) * 0.1
    base = np.sort(y[:, None] + rng.normal(size=(N, len(LEVELS))), axis=1)

    def ours() -> Any:
        return MultiQuantileTracker(LEVELS, eta=ETA, link="linear").run(base, y).served

    expected = by_numpy(base[:SHORT], y[:SHORT])
    gap = np.abs(np.asarray(ours())[:SHORT] - expected).max()
    if gap > 1e-9:
        raise AssertionError(f"23 levels: gradeq and numpy differ by {gap}")
    mine = best({"": ours}, N, 3)[""]
    theirs = best({"": lambda: by_numpy(base[:SHORT], y[:SHORT])}, SHORT, 3)[""]
    told = f"{1e9 / mine:,.0f} rows/s; multiQT was seen at {MULTIQT}, so about {1e9 / mine / MULTIQT:,.0f}x"
    return Row("23 levels, run", mine, {"numpy by rows": theirs / mine}, ">= 1,000x multiQT", told)


def by_numpy(base: Any, y: Any) -> Any:
    """The same in numpy, a row at a time: the isotonic projection by its min-max formula."""
    taus, u, served = np.array(LEVELS), np.zeros(len(LEVELS)), np.empty_like(base)
    for i in range(len(y)):
        wish = base[i] + u
        served[i] = wish if (np.diff(wish) >= 0.0).all() else increasing(wish)
        u = u - ETA * ((y[i] <= served[i]) - taus)
    return served


def increasing(z: Any) -> Any:
    """The nearest increasing sequence: max over starts of min over ends of the means between."""
    sums = np.concatenate([[0.0], np.cumsum(z)])
    n = len(z)
    start, end = np.arange(n)[:, None], np.arange(1, n + 1)[None, :]
    means = np.where(end > start, (sums[end] - sums[start]) / np.maximum(end - start, 1), np.inf)
    least = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
    least[end <= start] = -np.inf
    return np.maximum.accumulate(least, axis=0).diagonal()


def one() -> Row:
    """One level through the sinh link, against plain Python."""
    rng = np.random.default_rng(1)
    y = rng.standard_exponential(N)
    f = np.ones(N)

    def ours() -> Any:
        return QuantileTracker(0.9, eta=ETA).run(f, y).served

    lists = f[:SHORT].tolist(), y[:SHORT].tolist()
    if not np.array_equal(np.asarray(ours())[:SHORT], plain(*lists)):
        raise AssertionError("sinh link: gradeq and plain Python differ")
    mine = best({"": ours}, N, 3)[""]
    theirs = best({"": lambda: plain(*lists)}, SHORT, 3)[""]
    return Row("one level, sinh link, run", mine, {"plain Python": theirs / mine})


def plain(f: list[float], y: list[float]) -> list[float]:
    """f + s sinh(u), s the running mean of |y - f| with a half-life of 100 labels."""
    fade, num, den, u, served = 2.0 ** (-1.0 / 100.0), 0.0, 0.0, 0.0, []
    for a, b in zip(f, y, strict=True):
        s = a
        if num > 0.0:
            s = a + max(num / den, 1e-9 * abs(a)) * math.sinh(u)
        served.append(s)
        u = u - ETA * (0.1 if b <= s else -0.9)
        num, den = fade * num + abs(b - a), fade * den + 1.0
    return served


def ensemble() -> list[Row]:
    """Eight trackers: the whole run, and its loop against C doing the same (without the accounts)."""
    rng = np.random.default_rng(2)
    f, y = rng.normal(size=N), rng.normal(size=N)
    nus, nu = np.geomspace(0.005, 0.5, TRACKERS), 0.1
    layer = lambda: QuantileEnsemble(0.9, nus.tolist(), nu).run(f, y)  # noqa: E731
    whole = Row("ensemble of 8, run with its final tracker", best({"": layer}, N, 3)[""], {})
    c = library()
    kinds = (Quantile(0.9), EntropicSimplex(0.0))
    run = compiled(loops.blended, kinds)
    if c is None or run is None:
        return [whole]
    parts = [fields(part) for part in kinds]
    ones, each = np.ones(N), np.arange(N)
    mixed, theirs = np.empty(N), np.empty(N)

    def ours() -> None:
        thetas, logs, weights = (
            np.zeros(TRACKERS),
            np.zeros(TRACKERS),
            np.full(TRACKERS, 1 / TRACKERS),
        )
        run(*parts, False, nus, nu, f, y, ones, ones, ones, 0, each, each, thetas, logs, weights, 0,
            np.empty(TRACKERS), mixed)  # fmt: skip

    def in_c() -> None:
        at = [ctypes.c_void_p(a.ctypes.data) for a in (f, y, nus, theirs)]
        c.ensemble(ctypes.c_int64(N), ctypes.c_int64(TRACKERS), *at[:3], ctypes.c_double(nu),
                   ctypes.c_double(0.9), at[3])  # fmt: skip

    ours()
    in_c()
    if not np.allclose(mixed, theirs, atol=1e-9):
        raise AssertionError(f"ensemble: gradeq and C differ by {np.abs(mixed - theirs).max()}")
    times = best({"gradeq": ours, "C": in_c}, N, 5)
    loop = Row(
        "ensemble of 8, loop", times["gradeq"], {"C": times["C"] / times["gradeq"]}, ">= 0.9x C"
    )
    return [whole, loop]
