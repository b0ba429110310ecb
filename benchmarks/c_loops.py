"""Yardsticks: the recurrences alone, without checks or accounts, as strict C loops compiled on the spot."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import ETA, FADE
from benchmarks.inputs import Data

SOURCE = r"""
#include <math.h>
#include <stdint.h>
#include <string.h>
#define LOOP for (int64_t i = 0; i < n; i++)
#define EACH for (int64_t k = 0; k < d; k++)
void pass(int64_t n, const double *f, const double *y, double *s) { LOOP s[i] = f[i] + y[i]; }
void squared(int64_t n, const double *f, const double *y, double eta, double *s) { double u = 0.0;
  LOOP { double v = f[i] + u; s[i] = v; u = u - eta * (v - y[i]); } }
void weighted(int64_t n, const double *f, const double *y, const double *w, double eta, double *s) {
  double u = 0.0, mean = 0.0;
  LOOP { double v = f[i] + u; s[i] = v; mean = mean + (w[i] - mean) / (i + 1.0);
    u = u - eta * (w[i] / mean * (v - y[i])); } }
void quantile(int64_t n, const double *f, const double *y, double eta, double tau, double *s) {
  double u = 0.0, up = 1.0 - tau, down = -tau;
  LOOP { double v = f[i] + u; s[i] = v; u = u - eta * (y[i] <= v ? up : down); } }
void indexed(int64_t n, const double *f, const double *y, double eta, const int64_t *g, double *u, double *s) {
  LOOP { int64_t j = g[i]; double v = f[i] + u[j]; s[i] = v; u[j] = u[j] - eta * (v - y[i]); } }
void overlapping(int64_t n, int64_t d, const double *f, const double *y, double eta, const int64_t *g, double *u,
                 double *s) {
  LOOP { double m = 0.0; const int64_t *r = g + i * d; EACH m = m + u[r[k]];
    double v = f[i] + m; s[i] = v; double e = v - y[i]; EACH u[r[k]] = u[r[k]] - eta * e; } }
void dense(int64_t n, int64_t d, const double *f, const double *y, double eta, const double *x, double *u,
           double *s) {
  LOOP { double m = 0.0; const double *r = x + i * d; EACH m = m + u[k] * r[k];
    double v = f[i] + m; s[i] = v; double e = v - y[i]; EACH u[k] = u[k] - eta * (e * r[k]); } }
static void pool(int64_t d, double *z) {
  double mean[64]; int64_t size[64], top = 0;
  EACH { mean[top] = z[k]; size[top] = 1;
    while (top > 0 && mean[top - 1] > mean[top]) { top--;
      mean[top] = (mean[top] * size[top] + mean[top + 1] * size[top + 1]) / (size[top] + size[top + 1]);
      size[top] += size[top + 1]; }
    top++; }
  for (int64_t b = 0, k = 0; b < top; b++) for (int64_t c = 0; c < size[b]; c++) z[k++] = mean[b]; }
void levels(int64_t n, int64_t d, int64_t curved, const double *f, int64_t stride, const double *y, double eta,
            const double *tau, double fade, double *s) {
  double u[64] = {0}, z[64], num = 0.0, den = 0.0;
  LOOP { const double *b = f + i * stride; double *o = s + i * d; int rising = 1;
    if (curved && num == 0.0) EACH o[k] = b[0];
    else {
      EACH { z[k] = (curved ? 0.0 : b[k]) + u[k]; rising &= k == 0 || z[k - 1] <= z[k]; }
      if (!rising) pool(d, z);
      double scale = curved ? fmax(num / den, 1e-9 * fabs(b[0])) : 0.0;
      EACH o[k] = curved ? b[0] + scale * sinh(z[k]) : z[k]; }
    EACH u[k] = u[k] - eta * (y[i] <= o[k] ? 1.0 - tau[k] : -tau[k]);
    if (curved) { num = fade * num + fabs(y[i] - b[0]); den = fade * den + 1.0; } } }
void ensemble(int64_t n, int64_t d, const double *f, const double *y, const double *nus, double nu, double tau,
              double *s) {
  double theta[64] = {0}, z[64] = {0}, w[64];
  EACH w[k] = 1.0 / d;
  LOOP { double q = 0.0; EACH q = q + w[k] * theta[k];
    q = f[i] + q; s[i] = q; double miss = y[i] <= q ? 1.0 - tau : -tau, top = -1e300, total = 0.0;
    EACH { z[k] = z[k] - nu * (theta[k] * miss); top = z[k] > top ? z[k] : top;
      theta[k] = theta[k] - nus[k] * (y[i] <= f[i] + theta[k] ? 1.0 - tau : -tau); }
    EACH { w[k] = exp(z[k] - top); total = total + w[k]; }
    double scale = 1.0 / total; EACH w[k] = scale * w[k]; } }
void games(int64_t n, const int64_t *a, const int64_t *b, const double *y, double eta, double *u, double *s) {
  LOOP { int64_t j = a[i], k = b[i]; double p = 1.0 / (1.0 + exp(-(u[j] - u[k]))); s[i] = p;
    double m = eta * (p - y[i]); u[j] = u[j] - m; u[k] = u[k] + m; } }
"""
FLAGS = [
    "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-shared", "-fPIC",
]  # fmt: skip


def library() -> ctypes.CDLL | None:
    """The loops above as a shared library, or None without a C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="gradeq-bench-"))
    source, target = folder / "loops.c", folder / "loops.so"
    source.write_text(SOURCE)
    subprocess.run([compiler, *FLAGS, str(source), "-o", str(target), "-lm"], check=True)
    loops = ctypes.CDLL(str(target))
    shutil.rmtree(folder)
    return loops


def called(loop: Any, n: int, shape: tuple[int, ...], *values: Any) -> Any:
    """Call a loop: arrays go by address, numbers by their type; what it served comes back."""
    served = np.empty(shape)
    kinds = {int: ctypes.c_int64, float: ctypes.c_double}
    loop(
        ctypes.c_int64(n),
        *(kinds[type(v)](v) if type(v) in kinds else ctypes.c_void_p(v.ctypes.data) for v in (*values, served)),
    )
    return served


def in_c(c: Any, name: str, data: Data) -> Callable[[], Any] | None:
    """The same recurrence as a case's, in C; None where there is none."""
    n = data["n"]
    if name.startswith(("Elo", "ratings", "leaderboard")):
        games = [data[column] for column in ("a", "b", "score")]
        players, board = data["players"], not name.startswith("Elo")

        def rated() -> Any:
            u = np.zeros(players)
            served = called(c.games, n, (n,), *games, 0.1, u)
            return u if board else served

        return rated
    f, y = data["f"], data["y"]
    if name == "scalar":
        return lambda: called(c.squared, n, (n,), f, y, ETA)
    if name == "weights":
        return lambda: called(c.weighted, n, (n,), f, y, data["w"], ETA)
    if name.startswith(("groups", "keyed")):
        index = data["g" if name.startswith("groups") else "key"]
        return lambda: called(c.indexed, n, (n,), f, y, ETA, index, np.zeros(index.max() + 1))
    if "overlapping" in name:
        names = ("g", "h", "i")[: 2 if name.startswith("two") else 3]
        index = np.stack([data[g] + 10 * k for k, g in enumerate(names)], axis=1)
        return lambda: called(c.overlapping, n, (n,), len(names), f, y, ETA, index, np.zeros(30))
    if name == "features":
        x, d = data["x"], data["d"]
        return lambda: called(c.dense, n, (n,), d, f, y, ETA, x, np.zeros(d))
    if name == "quantile, linear":
        return lambda: called(c.quantile, n, (n,), f, y, ETA, 0.9)
    if name == "23 levels":
        base, taus = data["level forecasts"], np.array(data["taus"])
        shape = n, len(taus)
        return lambda: called(c.levels, n, shape, shape[1], 0, base, shape[1], y, ETA, taus, FADE)
    if name in ("quantile, sinh", "interval"):
        taus = np.array([0.9] if name != "interval" else [0.1, 0.9])
        shape = (n, len(taus)) if len(taus) > 1 else (n,)
        return lambda: called(c.levels, n, shape, len(taus), 1, f, 1, y, ETA, taus, FADE)
    if name.startswith("ensemble"):
        nus = data["nus"]

        def mixed() -> Any:
            mix = called(c.ensemble, n, (n,), len(nus), f, y, nus, 0.1, 0.9)
            return called(c.levels, n, (n,), 1, 1, mix, 1, y, 0.03, np.array([0.9]), FADE)

        return mixed
    return None


def passed(c: Any, data: Data) -> Callable[[], Any]:
    """A pure pass over memory: two columns read, one written."""
    n, f, y = data["n"], data["f"], data["y"]
    return lambda: called(c["pass"], n, (n,), f, y)
