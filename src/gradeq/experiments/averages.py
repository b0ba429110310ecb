"""Averages along a sequence, as the paper defines them, and as the authors' notebooks plotted them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def running_mean(x: Any) -> Floats:
    """(x_1 + ... + x_t)/t for every t; a table is averaged down its columns.

    >>> running_mean([1.0, 3.0]).tolist()
    [1.0, 2.0]
    """
    values = np.asarray(x, dtype=np.float64)
    steps = np.arange(1, len(values) + 1).reshape(-1, *([1] * (values.ndim - 1)))
    return np.asarray(np.cumsum(values, axis=0) / steps)


def plotted_mean(x: Any) -> float:
    """The last average of the authors' plots: a dummy zero comes in first, the last step is left out.

    >>> plotted_mean([1.0, 3.0])
    0.5
    """
    values = np.asarray(x, dtype=np.float64)
    return float(values[:-1].sum() / len(values))


def trailing_mean(x: Any, window: int) -> Floats:
    """The mean of the last ``window`` values, or of as many as there are.

    >>> trailing_mean([1.0, 3.0, 5.0], 2).tolist()
    [1.0, 2.0, 4.0]
    """
    values = np.asarray(x, dtype=np.float64)
    sums = np.concatenate(([0.0], np.cumsum(values)))
    stops = np.arange(1, len(values) + 1)
    starts = np.maximum(stops - window, 0)
    return np.asarray((sums[stops] - sums[starts]) / (stops - starts))


def centred_mean(x: Any, window: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """Means over ``window`` steps and the steps, from 1, in their middle; whole windows only.

    >>> [part.tolist() for part in centred_mean([1.0, 3.0, 5.0], 2)]
    [[2, 3], [2.0, 4.0]]
    """
    values = np.asarray(x, dtype=np.float64)
    width = min(window, len(values))
    sums = np.concatenate(([0.0], np.cumsum(values)))
    means = (sums[width:] - sums[:-width]) / width
    return np.arange(len(means)) + 1 + width // 2, means


def centred_quantile(x: Any, window: int, level: float) -> tuple[npt.NDArray[np.int64], Floats]:
    """The quantile of a level over windows, with the steps in their middle; at most 400 windows are taken."""
    values = np.asarray(x, dtype=np.float64)
    width = min(window, len(values))
    starts = np.unique(np.linspace(0, len(values) - width, 400).astype(int))
    found = [float(np.quantile(values[i : i + width], level)) for i in starts]
    return starts + 1 + width // 2, np.array(found)
