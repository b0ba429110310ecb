"""Yardsticks: the same recurrences as strict C loops, compiled on the spot."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCE = r"""
#include <math.h>
#include <stdint.h>
#define LOOP for (int64_t i = 0; i < n; i++)
void stream(int64_t n, const double *f, const double *y, double *s) { LOOP s[i] = f[i] + y[i]; }
double squared(int64_t n, const double *f, const double *y, double eta, double u, double *s) {
  LOOP { double v = f[i] + u; s[i] = v; u = u - eta * (v - y[i]); } return u; }
double quantile(int64_t n, const double *f, const double *y, double eta, double u, double *s, double tau) {
  double up = 1.0 - tau, down = -tau;
  LOOP { double v = f[i] + u; s[i] = v; u = u - eta * (y[i] <= v ? up : down); } return u; }
static inline double sigmoid(double u) {
  if (u >= 0.0) return 1.0 / (1.0 + exp(-u)); double a = exp(u); return a / (1.0 + a); }
double shift(int64_t n, const double *f, const double *y, double eta, double u, double *s) {
  LOOP { double v = f[i] + (2.0 * sigmoid(u) - 1.0); s[i] = v; u = u - eta * (v - y[i]); } return u; }
void indexed(int64_t n, const double *f, const double *y, double eta, const int64_t *g, double *u, double *s) {
  LOOP { int64_t j = g[i]; double v = f[i] + u[j]; s[i] = v; u[j] = u[j] - eta * (v - y[i]); } }
void csr(int64_t n, const double *f, const double *y, const double *w, const double *etas, const int64_t *starts,
         const int64_t *index, const double *value, double *u, double *s) {
  LOOP { double m = 0.0; for (int64_t a = starts[i]; a < starts[i + 1]; a++) m = m + u[index[a]] * value[a];
    double v = f[i] + m; s[i] = v; double yi = y[i];
    if (yi == yi && w[i] > 0.0) { double e = w[i] * (v - yi);
      for (int64_t a = starts[i]; a < starts[i + 1]; a++) {
        int64_t j = index[a]; u[j] = u[j] - etas[i] * (e * value[a]); } } } }
void dense(int64_t n, int64_t d, const double *f, const double *y, double eta, const double *x, double *u,
           double *s) {
  LOOP { double m = 0.0; const double *r = x + i * d; for (int64_t j = 0; j < d; j++) m = m + u[j] * r[j];
    double v = f[i] + m; s[i] = v; double e = v - y[i];
    for (int64_t j = 0; j < d; j++) u[j] = u[j] - eta * (e * r[j]); } }
void ensemble(int64_t n, int64_t d, const double *f, const double *y, const double *nus, double nu, double tau,
              double *s) {
  double theta[64] = {0}, z[64] = {0}, w[64];
  for (int64_t k = 0; k < d; k++) w[k] = 1.0 / d;
  LOOP { double q = 0.0; for (int64_t k = 0; k < d; k++) q = q + w[k] * theta[k];
    q = f[i] + q; s[i] = q; double miss = y[i] <= q ? 1.0 - tau : -tau, top = -1e300, total = 0.0;
    for (int64_t k = 0; k < d; k++) { z[k] = z[k] - nu * (theta[k] * miss); top = z[k] > top ? z[k] : top;
      theta[k] = theta[k] - nus[k] * (y[i] <= f[i] + theta[k] ? 1.0 - tau : -tau); }
    for (int64_t k = 0; k < d; k++) { w[k] = exp(z[k] - top); total = total + w[k]; }
    double scale = 1.0 / total; for (int64_t k = 0; k < d; k++) w[k] = scale * w[k]; } }
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
    for name in ("squared", "quantile", "shift"):
        getattr(loops, name).restype = ctypes.c_double
    return loops
