"""Single values at the door: promoted to float, finite, in range; refused in one line otherwise."""

from __future__ import annotations

import math
from typing import Any

from gradeq.errors import BadInput


def number(value: Any, what: str) -> float:
    """A finite float; anything else is refused with its name."""
    if type(value) is float and math.isfinite(value):
        return value
    try:
        result = float(value) if not isinstance(value, (str, bytes)) else math.nan
    except (TypeError, ValueError):
        result = math.nan
    except OverflowError:
        raise BadInput(f"{what} is too large for a float; give a finite number") from None
    if result != result and not isinstance(value, float):
        shown = repr(value)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        raise BadInput(f"{what} {shown} is not a number; give a finite number")
    if not math.isfinite(result):
        raise BadInput(f"{what} {result} is not finite; give a finite number")
    return result


def probability(value: Any, what: str) -> float:
    """A number in [0, 1]."""
    result = number(value, what)
    if not 0.0 <= result <= 1.0:
        raise BadInput(
            f"{what} {result} lies outside [0, 1]; a binary outcome needs probabilities and 0/1 labels"
        )
    return result


def positive(value: Any, what: str) -> float:
    """A number above 0."""
    result = number(value, what)
    if not result > 0.0:
        raise BadInput(f"{what} {result} is not positive; link exp needs positive predictions")
    return result


def weight(value: Any) -> float:
    """A weight: a finite number, 0 or more."""
    result = number(value, "weight")
    if result < 0.0:
        raise BadInput(f"weight {result} is negative; weights are 0 (do not learn) or more")
    return result
