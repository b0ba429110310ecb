"""Reliability of probabilities: how often what was predicted at p came, in bins of five points."""

from __future__ import annotations

import math

import numpy as np

from gradeq.files.numbers import Floats
from gradeq.report.charts import Bin

BINS = 20


class Bins:
    """Sums over rows by predicted probability, in bounded memory."""

    def __init__(self) -> None:
        self._sums = np.zeros((4, BINS))  # rows, sums of p, of outcomes, of their squares

    def add(self, p: Floats, y: Floats, weights: Floats | None = None) -> None:
        """Take rows; with weights each counts as much as its own. What lies outside [0, 1] is in an end bin."""
        w = np.ones(len(p)) if weights is None else weights
        place = np.clip((p * BINS).astype(np.int64), 0, BINS - 1)
        for row, values in zip(self._sums, (w, w * p, w * y, w * y * y), strict=True):
            row += np.bincount(place, values, BINS)

    def bins(self) -> tuple[Bin, ...]:
        """Mean prediction and mean outcome of every bin that has rows, with 95 % intervals."""
        found = []
        for n, p, y, square in self._sums.T.tolist():
            if n < 1:
                continue
            mean = y / n
            half = 1.96 * math.sqrt(max(square / n - mean * mean, 1e-9) / n)
            low, high = max(mean - half, 0.0), min(mean + half, 1.0)
            found.append(Bin(p / n, mean, int(n), low, high))
        return tuple(found)
