"""What comes in: single values and columns become floats (or indices), or are refused in one line.

Converting happens here, before any arithmetic, so that small integers cannot wrap around. Every check takes the
value first and what it is called second; those of a block of a column name the row, ``first`` is where it begins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradeq.errors import BadInput
from gradeq.inputs.arguments import as_float, as_shown
from gradeq.kernels.account import is_finite
from gradeq.numerics import FAINT, SMALLEST
from gradeq.schedules import check_step

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Single values


def as_number(value: object, what: str, *, missing: bool = False) -> float:
    """A finite float; anything else is refused with its name. ``missing`` lets None, NA and nan through as nan.

    >>> as_number(True, "label")
    1.0
    """
    if type(value) is float and math.isfinite(value):
        return value
    if missing and (value is None or type(value).__name__ in ("NAType", "NaTType")):
        return math.nan
    found = as_float(float(value) if isinstance(value, (bool, np.bool_)) else value)
    if found is None and isinstance(value, int):
        raise BadInput(f"{what} is too large for a float; give a finite number")
    if found is None or (found != found and not isinstance(value, (float, np.floating))):
        raise BadInput(f"{what} {as_shown(value)} is not a number; give a finite number")
    result = found
    if math.isinf(result) or (result != result and not missing):
        raise BadInput(f"{what} {result} is not finite; give a finite number")
    return result


def is_missing(value: object) -> bool:
    """Whether a label says that none will come: None, NA, NaT or nan.

    >>> is_missing(None), is_missing(math.nan), is_missing(0.0)
    (True, True, False)
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(value != value)


def probability(value: object, what: str) -> float:
    """A number in [0, 1]."""
    result = as_number(value, what)
    if not 0.0 <= result <= 1.0:
        raise BadInput(f"{what} {result} lies outside [0, 1]; a binary outcome needs probabilities and 0/1 labels")
    return result


def positive(value: object, what: str) -> float:
    """A number above 0."""
    result = as_number(value, what)
    if not result > 0.0:
        raise BadInput(f"{what} {result} is not positive; link exp needs positive predictions")
    return result


def step(value: object, what: str = "eta") -> float:
    """A step as a number; whether it is one that a layer can take is for the layer to say."""
    if is_flag(value):
        raise BadInput(f"{what}={value!r} is not a number; give a step such as 0.1")
    found = as_number(value, what)
    if what != "eta":
        check_step(f"({what}=", found)
    return found


def option(value: object, what: str) -> float:
    """An option that is a number; True and False are none."""
    if is_flag(value):
        raise BadInput(f"{what}={value!r} is not a number; give one")
    return as_number(value, what)


def is_flag(value: object) -> bool:
    """Whether this is True or False, which would pass for 1 or 0."""
    return isinstance(value, (bool, np.bool_))


def word(value: object, what: str, known: Iterable[str], rule: str) -> str:
    """One of the words that an option knows."""
    if not isinstance(value, str) or value not in known:
        raise BadInput(f"{what}={as_shown(value)}: must be {rule}")
    return value


def bound(value: object) -> float:
    """A bound that is to be reached: a number above 0."""
    result = as_number(value, "bound")
    if not result > 0.0:
        raise BadInput(f"bound {result} is not positive; no proven bound falls so far")
    return result


def several(values: object, what: str, items: str) -> list[Any]:
    """A list of whatever can be gone through; a text or a single value is none."""
    return list(iterable(values, what, items))


def iterable(values: object, what: str, items: str) -> Iterable[Any]:
    """What can be gone through; a text or a single value is none."""
    if isinstance(values, (str, bytes, dict)) or not hasattr(values, "__iter__") or getattr(values, "ndim", 1) == 0:
        raise BadInput(f"{what}={as_shown(values)}: give a list of {items}")
    found: Iterable[Any] = values
    return found


def schedule(value: object) -> None:
    if value is not None and not _answers(value, "step", 1):
        raise BadInput(f"schedule={as_shown(value)}: give a schedule such as gradeq.Power(0.5, 0.5)")


def penalty(value: object) -> None:
    if value is not None and not _answers(value, "slope", 0.0):
        raise BadInput(f"penalty={as_shown(value)}: give a penalty such as gradeq.Ridge(0.01)")


def loss(value: Any) -> None:
    """Refuse a slope that does not take a prediction and a label; what it says of them is looked at later."""
    try:
        value.slope(0.5, 0.5)
    except TypeError:
        raise BadInput(f"loss={as_shown(value)}: give a loss such as gradeq.Squared(), with slope(u, y)") from None
    except Exception:
        return


def _answers(part: object, method: str, at: float) -> bool:
    """Whether a part has this method, of one argument, that gives a number."""
    if isinstance(part, type) or not callable(getattr(part, method, None)):
        return False
    try:
        return as_float(getattr(part, method)(at)) is not None
    except TypeError:
        return False


def flag(value: object, what: str) -> bool:
    """True or False; a text such as "no" would count as True."""
    if not is_flag(value):
        raise BadInput(f"{what}={as_shown(value)}: give True or False")
    return bool(value)


def weight(value: object) -> float:
    """A weight: a finite number, 0 or more."""
    result = as_number(value, "weight")
    if result < 0.0:
        raise BadInput(f"weight {result} is negative; weights are 0 (do not learn) or more")
    if 0.0 < result < SMALLEST:
        raise BadInput(f"weight {result} {FAINT}")
    return result


# Columns


def floats(values: object, what: str, *, missing: bool = False, dimensions: int = 1) -> Floats:
    """A column (or a table, with ``dimensions=2``) as float64; ``missing`` lets None and NA through as nan."""
    array = as_array(values, what)
    if array.dtype.kind == "O":
        cells = [
            as_number(cell, f"{what}, row {i}:", missing=missing) for i, cell in enumerate(array.ravel().tolist())
        ]
        array = np.array(cells, dtype=np.float64).reshape(array.shape)
    elif array.dtype.kind not in "biuf" and array.size:
        raise BadInput(f"{what}: values of type {array.dtype} are not numbers; convert them first")
    if array.ndim != dimensions:
        shape = "one column" if dimensions == 1 else "a table (rows, parameters)"
        raise BadInput(f"{what}: an array of shape {array.shape}; give {shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


def integers(values: object, what: str) -> Ints:
    """A column of whole numbers as int64; floats and bools are refused, they are no indices."""
    array = as_array(values, what)
    if array.ndim != 1:
        raise BadInput(f"{what}: an array of shape {array.shape}; give one column")
    if array.size and array.dtype.kind not in "iu":
        raise BadInput(f"{what}: values of type {array.dtype} are no indices; give integers from 0")
    return np.ascontiguousarray(array, dtype=np.int64)


def as_array(values: object, what: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise BadInput(f"{what}: rows of unequal length; give a rectangular table") from None


def same_length(values: NDArray[Any], what: str, count: int) -> None:
    """Refuse a column of another length; nothing is ever broadcast."""
    if len(values) != count:
        raise BadInput(f"{what}: {len(values)} values for {count} rows; give one for each row")


def check_finite(block: Floats, what: str, first: int = 0, unit: str = "row") -> None:
    """Refuse nan and inf."""
    if not is_finite(block):
        cells = np.isfinite(block)
        bad = ~(cells if block.ndim == 1 else cells.all(axis=1))
        i = int(np.argmax(bad))
        raise BadInput(
            f"{what}: {unit} {first + i} is {block[i]}, not finite ({int(bad.sum())} such here); drop or impute first"
        )


def check_labels(block: Floats, first: int = 0, low: float = -math.inf, high: float = math.inf) -> bool:
    """Refuse an infinite label or one outside [low, high]; answers whether none is missing (nan)."""
    complete = is_finite(block)
    if not complete:
        bad = np.isinf(block)
        if bad.any():
            i = int(np.argmax(bad))
            raise BadInput(
                f"labels: row {first + i} is {block[i]}, not finite; drop it, or give nan if not yet known"
            )
    if low > -math.inf or high < math.inf:
        bad = (block < low) | (block > high)
        if bad.any():
            i = int(np.argmax(bad))
            raise BadInput(
                f"labels: row {first + i} is {block[i]}, outside [{low}, {high}] where the loss lives; "
                "rescale or clip it"
            )
    return complete


def check_weights(block: Floats, first: int = 0) -> None:
    """Refuse a weight that is not finite or below 0."""
    check_finite(block, "weights", first)
    if len(block) and block.min() < 0.0:
        i = int(np.argmax(block < 0.0))
        raise BadInput(f"weights: row {first + i} is {block[i]}; a weight is >= 0, and 0 learns nothing")


def check_index(block: Ints, what: str, dimension: int, first: int = 0, unit: str = "row") -> None:
    """Refuse an index outside 0 .. dimension - 1: compiled loops do not look."""
    # Read as unsigned, a negative index is huge: one pass sees both ends.
    if len(block) and block.view(np.uint64).max() >= dimension:
        i = int(np.argmax((block < 0) | (block >= dimension)))
        raise BadInput(
            f"{what}: {unit} {first + i} has index {block[i]}, but there are {dimension} parameters; "
            f"indices run from 0 to {dimension - 1}"
        )
