"""The compiled batch against strict C loops, plain Python, numpy, torch and river on the same recurrence."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.c_loops import library
from benchmarks.timing import Row, best
from gradeq.kernels import descent as loops
from gradeq.kernels.account import LEAN
from gradeq.kernels.call import unsigned
from gradeq.kernels.compile import compiled, fields
from gradeq.links import Identity, Link, Shift
from gradeq.losses import Loss, Quantile, Squared

N = 2_000_000
C_DOUBLE = ctypes.c_double


def at(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def main() -> list[Row]:
    rng = np.random.default_rng(0)
    f, y = rng.normal(size=N), rng.normal(size=N)
    ours, theirs = np.empty(N), np.empty(N)
    c = library()
    if c is None:
        print("no C compiler: the ratios to C are left out")
        return []
    n = ctypes.c_int64(N)
    rows = []
    stream: Callable[[], Any] = lambda: c.stream(n, at(f), at(y), at(theirs))  # noqa: E731
    scalar_cases: list[tuple[str, Link, Loss, Any, str]] = [
        ("squared, one parameter", Identity(), Squared(), c.squared, ">= 0.9x C"),
        ("quantile, one parameter", Identity(), Quantile(0.9), c.quantile, ">= 0.6x C"),
        ("probability (shift), one parameter", Shift(), Squared(), c.shift, ">= 0.9x C"),
    ]
    for name, link, loss, theirs_loop, target in scalar_cases:
        run = compiled(loops.scalar, (link, loss))
        assert run is not None
        extra = (C_DOUBLE(0.9),) if isinstance(loss, Quantile) else ()
        jobs = {
            "gradeq": lambda run=run, link=link, loss=loss: run(
                fields(link), fields(loss), f, y, 0.05, 0.0, ours
            ),
            "C": lambda loop=theirs_loop, extra=extra: loop(
                n, at(f), at(y), C_DOUBLE(0.05), C_DOUBLE(0.0), at(theirs), *extra
            ),
        }
        rows.append(compared(name, jobs, ours, theirs, target))
    parts = (fields(Identity()), fields(Squared()))
    for keys in (10, 100_000, 1_000_000):
        index = rng.integers(0, keys, N)
        u, v = np.zeros(keys), np.zeros(keys)
        run = compiled(loops.indexed, (Identity(), Squared()))
        assert run is not None
        jobs = {
            "gradeq": lambda run=run, index=index, u=u: (u.fill(0), run(*parts, f, y, 0.05, index, u, ours)),
            "C": lambda index=index, v=v: (
                v.fill(0), c.indexed(n, at(f), at(y), C_DOUBLE(0.05), at(index), at(v), at(theirs)),
            ),
            "stream": stream,
        }  # fmt: skip
        target = ">= 0.35x stream" if keys == 1_000_000 else ">= 0.9x C"
        rows.append(compared(f"{keys:,} keys or groups", jobs, ours, theirs, target))
    rows.append(sparse_row(c, n, f, y, ours, theirs, rng))
    rows.append(dense_row(c, n, f, y, ours, theirs, rng))
    return rows


def sparse_row(c: Any, n: Any, f: Any, y: Any, ours: Any, theirs: Any, rng: Any) -> Row:
    """Three active groups a row."""
    starts, value = np.arange(N + 1) * 3, np.ones(3 * N)
    index = (rng.integers(0, 5, 3 * N) + np.tile([0, 5, 10], N)).astype(np.int64)
    weights, etas, u, v = np.ones(N), np.full(N, 0.05), np.zeros(15), np.zeros(15)
    run = compiled(loops.sparse, (Identity(), Squared()))
    assert run is not None
    parts = (fields(Identity()), fields(Squared()))
    jobs = {
        "gradeq": lambda: (u.fill(0), run(*parts, f, y, weights, etas, *unsigned(starts, index), value, u, ours)),
        "C": lambda: (
            v.fill(0),
            c.csr(n, at(f), at(y), at(weights), at(etas), at(starts), at(index), at(value), at(v), at(theirs)),
        ),
    }  # fmt: skip
    return compared("three overlapping groups (CSR)", jobs, ours, theirs, ">= 0.9x C")


def dense_row(c: Any, n: Any, f: Any, y: Any, ours: Any, theirs: Any, rng: Any) -> Row:
    """Ten dense features, as the Learner runs them: with the sums of its certificate."""
    x = rng.normal(size=(N, 10)) / 4
    u, v, sums = np.zeros(10), np.zeros(10), np.zeros(10 * LEAN)
    run = compiled(loops.dense, (Identity(), Squared()))
    assert run is not None
    parts = (fields(Identity()), fields(Squared()))
    jobs = {
        "gradeq": lambda: (u.fill(0), sums.fill(0), run(*parts, f, y, 0.01, x, u, sums, ours)),
        "C": lambda: (
            v.fill(0),
            c.dense(n, ctypes.c_int64(10), at(f), at(y), C_DOUBLE(0.01), at(x), at(v), at(theirs)),
        ),
    }
    return compared("ten dense features, with sums", jobs, ours, theirs, ">= 0.9x C")


def compared(
    name: str, jobs: dict[str, Callable[[], Any]], ours: Any, theirs: Any, target: str
) -> Row:
    """Time the jobs; refuse to print a figure unless gradeq and C served the same bits."""
    jobs["gradeq"]()
    jobs["C"]()
    if not np.array_equal(ours, theirs):
        raise AssertionError(f"{name}: gradeq and C differ by {np.abs(ours - theirs).max()}")
    times = best(jobs, N)
    ratios = {k: times[k] / times["gradeq"] for k in jobs if k != "gradeq"}
    return Row(name, times["gradeq"], ratios, target)
