"""The limits that labels have by their nature and that what is served keeps to: ``support=(lo, hi)``.

A Debiaser judges the value that it served, limits included. A quantile tracker judges the value before: labels often
lie at a limit (no demand at all), and judged there, ties would drive the state away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradeq.engine import checks
from gradeq.errors import BadInput
from gradeq.kernels.limits import Limits
from gradeq.layers.columns import refuse
from gradeq.numerics import within
from gradeq.rules.held import Held

Support = tuple[float | None, float | None]


def checked_support(support: Any) -> Support | None:
    """A pair of numbers, the first below the second; None (or infinity) for no limit on that side."""
    if support is None:
        return None
    if not isinstance(support, (tuple, list)) or len(support) != 2:
        raise BadInput(
            f"support={support!r}: give a pair such as (0, None), None for no limit on that side"
        )
    low, high = (_limit(end, side) for end, side in zip(support, (-1.0, 1.0), strict=True))
    if low is not None and high is not None and not low < high:
        raise BadInput(f"support=({low:g}, {high:g}): the lower limit must be below the upper one")
    return None if low is None and high is None else (low, high)


def _limit(end: Any, side: float) -> float | None:
    if end is None or (isinstance(end, float) and end == side * math.inf):
        return None
    return checks.number(end, "limit of the support")


def limits_of(support: Support | None) -> tuple[float, float]:
    """The limits as numbers, infinite where there is none."""
    low, high = support or (None, None)
    return -math.inf if low is None else low, math.inf if high is None else high


def outside(support: Support) -> str:
    """Why a label is refused."""
    low, high = support
    if high is None:
        return f"lies below the support, which begins at {low:g} (--min); correct it, or lower the limit"
    if low is None:
        return f"lies above the support, which ends at {high:g} (--max); correct it, or raise the limit"
    return f"lies outside the support [{low:g}, {high:g}] (--min, --max); correct it, or widen the support"


def check_label(y: float, support: Support | None) -> float:
    """A label inside the support."""
    low, high = limits_of(support)
    if support is not None and not low <= y <= high:
        raise BadInput(f"label {y!r} {outside(support)}")
    return y


def check_labels(y: Any, support: Support | None) -> None:
    """Refuse a column with labels outside the support; missing ones are fine."""
    if support is not None:
        low, high = limits_of(support)
        refuse((y < low) | (y > high), y, "label", outside(support))


def held(served: Any, support: Support | None) -> Any:
    """What was served, held inside the limits: a number, one for each level, or whole columns."""
    if support is None:
        return served
    low, high = limits_of(support)
    if isinstance(served, float):
        return within(served, low, high)
    if isinstance(served, tuple):
        return tuple(within(s, low, high) for s in served)
    return np.clip(served, low, high)


def held_rule(
    rule: Any, levels: Sequence[float], support: Support, interval: bool, totals: bool
) -> Held:
    """A rule for quantiles that are shown inside the limits and judged before."""
    return Held(rule, Limits(tuple(levels), *limits_of(support), interval), totals)
