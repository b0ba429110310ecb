"""Elo: the quick passes against strict C loops, the penalties against their dense forms, the sweep, end to end."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.c_loops import FLAGS
from benchmarks.timing import Row, best
from gradeq.engine.columns import Columns, run_columns
from gradeq.kernels.compile import compiled, fields
from gradeq.kernels.rating import DECIDED, STRIDE, TIED, TOTALS, played, played_dense
from gradeq.kernels.rating_plain import accounted, rated
from gradeq.layers.elo import Elo
from gradeq.layers.elo_run import two_columns
from gradeq.penalties import Lasso, Ridge
from gradeq.rules.rating import COIN, JUDGE, Rating
from gradeq.schedules import Constant

N, PLAYERS, ETA = 1_000_000, 150, 0.1
MANY, FEW = 7_556, 100_000  # players and games for the penalties

SOURCE = r"""
#include <math.h>
#include <stdint.h>
#define GAMES int64_t n, const int64_t *a, const int64_t *b, const double *y, double eta, double *u, double *s
#define GAME int64_t j = a[i], k = b[i]; double p = 1.0 / (1.0 + exp(-(u[j] - u[k]))); s[i] = p; \
  double e = p - y[i], m = eta * e; u[j] = u[j] - m; u[k] = u[k] + m;
void ratings(GAMES) {
  for (int64_t i = 0; i < n; i++) { GAME } }
void bias(GAMES, double *g) {
  for (int64_t i = 0; i < n; i++) { GAME
    g[2 * j] += 1; g[2 * k] += 1; g[2 * j + 1] += e; g[2 * k + 1] -= e; } }
void all(GAMES, double *g) {
  double loss = 0;
  for (int64_t i = 0; i < n; i++) { GAME
    g[2 * j] += 1; g[2 * k] += 1; g[2 * j + 1] += e; g[2 * k + 1] -= e;
    loss -= y[i] * log(p) + (1 - y[i]) * log(1 - p); }
  g[0] = loss; }
"""


def library() -> Any:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="gradeq-bench-"))
    (folder / "elo.c").write_text(SOURCE)
    target = folder / "elo.so"
    subprocess.run([compiler, *FLAGS, str(folder / "elo.c"), "-o", str(target), "-lm"], check=True)
    loops = ctypes.CDLL(str(target))
    shutil.rmtree(folder)
    return loops


def games(n: int, players: int, seed: int = 1) -> tuple[Any, Any, Any]:
    """Players from 1 on, a fifth of the games ties."""
    rng = np.random.default_rng(seed)
    a = rng.integers(1, players + 1, n)
    b = (a - 1 + rng.integers(1, players, n)) % players + 1
    strength = rng.normal(0.0, 0.7, players + 1)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(strength[b] - strength[a]))).astype(float)
    y[rng.random(n) < 0.2] = 0.5
    return a, b, y


def main() -> list[Row]:
    return [*passes(), *whole(), *penalties(), sweep(), event()]


def passes() -> list[Row]:
    """The two loops of a run, against C doing the same."""
    c = library()
    if c is None:
        print("no C compiler: the ratios to C are left out")
        return []
    a, b, y = games(N, PLAYERS)
    index = (a.view(np.uint64), b.view(np.uint64))
    served, theirs = np.empty(N), np.empty(N)
    rate, enter = compiled(rated, ()), compiled(accounted, (JUDGE,))
    assert rate is not None and enter is not None

    def at(array: Any) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    def ratings() -> Any:
        u = np.zeros(PLAYERS + 1)
        rate(*index, y, ETA, u, served)
        return u

    def everything() -> Any:
        u, sums, total = ratings(), np.zeros(STRIDE * (PLAYERS + 1)), np.zeros(TOTALS)
        total[DECIDED] = total[TIED] = 1.0
        enter(fields(JUDGE), a, b, y, ETA, served, sums, total)
        return u

    def in_c(loop: Any, extra: int) -> Any:
        u = np.zeros(PLAYERS + 1)
        sums = [np.zeros(2 * (PLAYERS + 1))] * extra
        columns = (*(at(c) for c in (a, b, y)), ctypes.c_double(ETA))
        loop(ctypes.c_int64(N), *columns, at(u), at(theirs), *(at(g) for g in sums))
        return u

    assert (ratings() == in_c(c.ratings, 0)).all() and (served == theirs).all()
    times = best(
        {
            "ratings": ratings,
            "everything": everything,
            "C": lambda: in_c(c.ratings, 0),
            "C bias": lambda: in_c(c.bias, 1),
            "C all": lambda: in_c(c.all, 1),
        },
        N,
    )
    first, whole = times["ratings"], times["everything"]
    return [
        Row("ratings and predictions", first, {"C": times["C"] / first}, ">= 0.85x C"),
        Row(
            "with win rates, bias, intervals, log loss",
            whole,
            {
                "C with bias and counts": times["C bias"] / whole,
                "C with log loss too": times["C all"] / whole,
                "C ratings alone": times["C"] / whole,
            },
            ">= 0.6x C",
        ),
    ]


def plain_python(a: list[int], b: list[int], y: list[float]) -> list[float]:
    from math import exp

    u = [0.0] * (PLAYERS + 1)
    for j, k, score in zip(a, b, y, strict=True):
        move = ETA * (1.0 / (1.0 + exp(u[k] - u[j])) - score)
        u[j] -= move
        u[k] += move
    return u


def whole() -> list[Row]:
    """A run from columns to leaderboard, players as integers and as text, against what users have."""
    import pyarrow as pa

    a, b, y = games(N, PLAYERS)
    names = np.array([f"model-{j}" for j in range(PLAYERS + 1)])
    text = [pa.array(names[c]) for c in (a, b)]
    coded = [c.dictionary_encode() for c in text]

    def run(*columns: Any) -> Any:
        elo = Elo(ETA)
        elo.run(*columns, y)
        return elo.leaderboard()

    jobs: dict[str, Any] = {
        "integers": lambda: run(a, b),
        "arrow dictionaries": lambda: run(*coded),
        "arrow text": lambda: run(*text),
    }
    short = slice(0, N // 20)
    lists = (a[short].tolist(), b[short].tolist(), y[short].tolist())
    yard = {"plain Python": best({"": lambda: plain_python(*lists)}, N // 20, 3)[""]}
    if importlib.util.find_spec("evalica") is not None:
        import evalica

        winners = [
            {1.0: evalica.Winner.X, 0.0: evalica.Winner.Y}.get(s, evalica.Winner.Draw)
            for s in lists[2]
        ]
        one, two = ([str(names[j]) for j in column] for column in lists[:2])
        yard["evalica"] = best({"": lambda: evalica.elo(one, two, winners)}, N // 20, 3)[""]
    times = best(jobs, N, 5)
    return [
        Row(f"columns to leaderboard, {name}", ns, {k: v / ns for k, v in yard.items()})
        for name, ns in times.items()
    ]


def penalties() -> list[Row]:
    """Quick forms of the penalties against the same on every player."""
    a, b, y = games(FEW, MANY)
    kinds = {
        "none": (None, None), "proximal lasso": (None, 1e-3), "ridge": (Ridge(1e-3), None),
        "lasso, every player": (Lasso(1e-3), None),
    }  # fmt: skip
    weights = np.ones(FEW)
    jobs = {}
    for name, (penalty, proximal) in kinds.items():
        rule = Rating(Constant(ETA), penalty, proximal)
        # In memory, a compiled loop is used for short runs too.
        compiled(
            played_dense if rule.dense else played, (penalty if rule.dense else rule.way, JUDGE)
        )
        n = FEW // 10 if rule.dense else FEW
        elo = Elo(ETA, penalty=penalty, proximal=proximal)
        elo.run(a, b)
        placed = elo._names.columns(elo._names.entered(two_columns(a[:n], b[:n])), None)
        part = Columns(np.full(n, COIN), y[:n], weights[:n], placed)
        jobs[name] = lambda elo=elo, part=part: run_columns(elo._engine, part)
    times = best(jobs, FEW, 5)
    dense = 10.0 * times.pop("lasso, every player")
    rows = [
        Row(f"{MANY:,} players, {name}", ns, {"every player": dense / ns})
        for name, ns in times.items()
    ]
    return [*rows, Row(f"{MANY:,} players, lasso on every player", dense, {})]


def sweep() -> Row:
    """Sixteen steps in one pass against sixteen runs."""
    n = N // 5
    a, b, y = games(n, PLAYERS)
    etas = np.geomspace(0.003, 1.0, 16)
    times = best(
        {
            "fused": lambda: Elo.sweep(etas, a, b, y),
            "apart": lambda: [Elo(float(eta)).run(a, b, y) for eta in etas],
        },
        n,
        5,
    )
    ratio = times["fused"] / times["apart"]
    return Row("16 steps in one pass", times["fused"], {"of 16 runs": ratio}, "<= 0.6x")


def event() -> Row:
    """One game at a time, by name."""
    a, b, y = games(20_000, PLAYERS)
    names = [f"model-{j}" for j in range(PLAYERS + 1)]
    rows = list(zip([names[j] for j in a], [names[k] for k in b], y.tolist(), strict=True))

    def play_all() -> None:
        elo = Elo(ETA)
        for one, two, score in rows:
            elo.update(one, two, score)

    return Row("one game at a time", best({"": play_all}, len(rows), 3)[""], {})
