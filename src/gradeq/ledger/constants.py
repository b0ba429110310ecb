"""Columns of zeros, ones and row numbers that runs read and never write, kept from chunk to chunk."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

KEPT = 1 << 20  # rows; longer columns are made when they are needed and forgotten


def zeros(n: int) -> NDArray[np.int64]:
    """n integer zeros; do not write to them."""
    return _zeros(n) if n <= KEPT else np.zeros(n, dtype=np.int64)


def ones(n: int) -> NDArray[np.float64]:
    """n ones; do not write to them."""
    return _ones(n) if n <= KEPT else np.ones(n)


def numbers(n: int) -> NDArray[np.int64]:
    """0, 1, ..., n - 1; do not write to them."""
    return multiples(n, 1)


def multiples(n: int, step: int) -> NDArray[np.int64]:
    """The first n multiples of a number, from 0 on; do not write to them."""
    return _multiples(n, step) if n <= KEPT else np.arange(n) * step


def filled(n: int, value: float) -> NDArray[np.float64]:
    """n times the same number; do not write to them."""
    return _filled(n, value) if n <= KEPT else np.full(n, value)


@lru_cache(maxsize=2)
def _filled(n: int, value: float) -> NDArray[np.float64]:
    return np.full(n, value)


@lru_cache(maxsize=2)
def _zeros(n: int) -> NDArray[np.int64]:
    return np.zeros(n, dtype=np.int64)


@lru_cache(maxsize=2)
def _ones(n: int) -> NDArray[np.float64]:
    return np.ones(n)


@lru_cache(maxsize=4)
def _multiples(n: int, step: int) -> NDArray[np.int64]:
    return np.arange(0, n * step, step)
