"""Columns at the door: whatever comes in becomes float64 or int64, or is refused in one line.

Converting happens here, before any arithmetic, so that small integers cannot wrap around. Finiteness is checked
block by block as the columns are read, so that a long run touches its memory once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradeq.errors import BadInput
from gradeq.kernels.finite import is_finite

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def number(name: str, value: Any, *, missing: bool = False) -> float:
    """One value as a float: text and complex numbers are refused, and so is nothing unless it may be missing.

    >>> number("label", True)
    1.0
    """
    if missing and _is_missing(value):
        return math.nan
    try:
        if isinstance(value, (str, bytes, complex)):
            raise TypeError
        result = float(value)
    except OverflowError:
        raise BadInput(f"{name}: {value!r:.40} is too large for a float; rescale it") from None
    except (TypeError, ValueError):
        raise BadInput(f"{name}: {value!r:.40} is not a number; convert it first") from None
    if math.isinf(result) or (math.isnan(result) and not missing):
        raise BadInput(f"{name}: {result} is not finite; drop or impute it first")
    return result


def floats(name: str, values: Any, *, missing: bool = False, dimensions: int = 1) -> Floats:
    """A column (or a table, with ``dimensions=2``) as float64; ``missing`` lets None and NA through as nan."""
    array = as_array(name, values)
    if array.dtype.kind == "O":
        cells = [
            number(f"{name}, row {i}", cell, missing=missing)
            for i, cell in enumerate(array.ravel().tolist())
        ]
        array = np.array(cells, dtype=np.float64).reshape(array.shape)
    elif array.dtype.kind not in "biuf" and array.size:
        raise BadInput(f"{name}: values of type {array.dtype} are not numbers; convert them first")
    if array.ndim != dimensions:
        shape = "one column" if dimensions == 1 else "a table (rows, parameters)"
        raise BadInput(f"{name}: an array of shape {array.shape}; give {shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


def integers(name: str, values: Any) -> Ints:
    """A column of whole numbers as int64; floats and bools are refused, they are no indices."""
    array = as_array(name, values)
    if array.ndim != 1:
        raise BadInput(f"{name}: an array of shape {array.shape}; give one column")
    if array.size and array.dtype.kind not in "iu":
        raise BadInput(f"{name}: values of type {array.dtype} are no indices; give integers from 0")
    return np.ascontiguousarray(array, dtype=np.int64)


def same_length(name: str, values: NDArray[Any], count: int) -> None:
    """Refuse a column of another length; nothing is ever broadcast."""
    if len(values) != count:
        raise BadInput(f"{name}: {len(values)} values for {count} rows; give one for each row")


def check_finite(
    name: str, block: Floats, first: int = 0, unit: str = "row", total: int = 0
) -> None:
    """Refuse nan and inf, naming the row; ``first`` is where the block begins in a run of ``total`` rows."""
    if not is_finite(block, total):
        cells = np.isfinite(block)
        bad = ~(cells if block.ndim == 1 else cells.all(axis=1))
        i = int(np.argmax(bad))
        raise BadInput(
            f"{name}: {unit} {first + i} is {block[i]}, not finite ({int(bad.sum())} such here); "
            "drop or impute first"
        )


def check_labels(block: Floats, first: int, low: float, high: float, total: int = 0) -> bool:
    """Refuse an infinite label or one outside [low, high]; answers whether none is missing (nan)."""
    complete = is_finite(block, total)
    if not complete:
        bad = np.isinf(block)
        if bad.any():
            i = int(np.argmax(bad))
            raise BadInput(
                f"labels: row {first + i} is {block[i]}, not finite; drop it, or give nan if not yet known"
            )
        complete = not np.isnan(block).any()
    check_range(block, first, low, high)
    return complete


def check_range(block: Floats, first: int, low: float, high: float) -> None:
    """Refuse a label outside [low, high]; a missing one (nan) passes."""
    if low > -math.inf or high < math.inf:
        bad = (block < low) | (block > high)
        if bad.any():
            i = int(np.argmax(bad))
            raise BadInput(
                f"labels: row {first + i} is {block[i]}, outside [{low}, {high}] where the loss lives; "
                "rescale or clip it"
            )


def check_weights(block: Floats, first: int) -> None:
    """Refuse a weight that is not finite or below 0."""
    check_finite("weights", block, first)
    if len(block) and block.min() < 0.0:
        i = int(np.argmax(block < 0.0))
        raise BadInput(
            f"weights: row {first + i} is {block[i]}; a weight is >= 0, and 0 learns nothing"
        )


def check_index(name: str, block: Ints, dimension: int, first: int = 0, unit: str = "row") -> None:
    """Refuse an index outside 0 .. dimension - 1: compiled loops do not look."""
    # Read as unsigned, a negative index is huge: one pass sees both ends.
    if len(block) and block.view(np.uint64).max() >= dimension:
        i = int(np.argmax((block < 0) | (block >= dimension)))
        raise BadInput(
            f"{name}: {unit} {first + i} has index {block[i]}, but there are {dimension} parameters; "
            f"indices run from 0 to {dimension - 1}"
        )


def as_array(name: str, values: Any) -> NDArray[Any]:
    """Anything array-like as an array of its own type."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise BadInput(f"{name}: rows of unequal length; give a rectangular table") from None


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")
