"""Whether a column is finite, at the speed of memory."""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray

from gradeq.kernels.account import Floats
from gradeq.kernels.compile import kernel

LARGEST = sys.float_info.max


def unbounded(x: Floats) -> int:
    """How many are not finite."""
    count = 0
    for i in range(len(x)):
        count = count + (0 if abs(x[i]) <= LARGEST else 1)
    return count


def is_finite(block: NDArray[np.float64]) -> bool:
    """Whether all are finite.

    >>> is_finite(np.array([1.0, np.inf]))
    False
    """
    flat = block.reshape(-1)
    fast = kernel(unbounded, (), len(block))
    if fast is not None:
        return fast(flat) == 0  # type: ignore[no-any-return]
    with np.errstate(over="ignore", invalid="ignore"):  # a sum is finite only if every term is
        return math.isfinite(flat.sum()) or bool(np.isfinite(flat).all())
