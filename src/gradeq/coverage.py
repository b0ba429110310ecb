"""Coverage: how often labels were at or below what was served, over all labelled rows, beside target and bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from gradeq.certificate import total_bounds
from gradeq.certificate_reading import reading_of
from gradeq.informative import is_vacuous, rate_error
from gradeq.kernels.account import BEFORE, GRADIENT, WEIGHT


class Coverage(NamedTuple):
    """The share of labels covered by the base forecast and by what was served, and the bound on |after - target|.

    The bound is that of all rows together; None where none is proven (overlapping groups, features). ``clipped``:
    with a support the share covered by the values as shown, inside its limits; ``after`` is judged before them.
    """

    target: float
    before: float
    after: float
    bound: float | None
    vacuous: bool | None
    clipped: float | None = None


def coverages(layer: Any) -> list[Coverage]:
    """The coverage of each level over all labelled rows; nan before there are any."""
    reading = reading_of(layer)
    found = []
    for k, (tau, bound) in enumerate(zip(reading.terms.levels, total_bounds(reading), strict=True)):
        own = reading.total(k)
        weight = own[WEIGHT] if own[WEIGHT] > 0.0 else math.nan
        before, after = share(tau, own[BEFORE] / weight), share(tau, own[GRADIENT] / weight)
        more = reading.limited(k)
        clipped = None if more is None else share(after, more / weight)
        vacuous = is_vacuous(bound.value, float(rate_error(before - tau)))
        found.append(Coverage(tau, before, after, bound.value, vacuous, clipped))
    return found


def between(lower: Coverage, upper: Coverage, target: float) -> Coverage:
    """Of the interval between two levels that never cross: the difference, the two bounds added (result 8.4)."""
    bound, vacuous = joint((lower, upper), target)
    before, after = share(upper.before, -lower.before), share(upper.after, -lower.after)
    clipped = None
    if lower.clipped is not None and upper.clipped is not None:
        clipped = share(upper.clipped, -lower.clipped)
    return Coverage(target, before, after, bound, vacuous, clipped)


def joint(parts: Sequence[Any], target: float | None = None) -> tuple[float | None, bool | None]:
    """The bound on several parameters, and whether it says nothing: the largest of theirs; None where one has none.

    With a ``target`` they are the two ends of an interval: the sum of theirs, held against its own raw error.
    """
    known = [own.bound for own in parts if own.bound is not None]
    if not known or len(known) < len(parts):
        return None, None
    if target is None:
        return max(known), any(own.vacuous for own in parts)
    bound, off = math.fsum(known), [raw_of(own) for own in parts]
    return bound, is_vacuous(bound, float(rate_error(off[-1] - off[0])))


def raw_of(part: Any) -> float:
    """How far the raw coverage of a level was off, of a coordinate or of a coverage."""
    if isinstance(part, Coverage):
        return part.before - part.target
    return float(part.bias_before or 0.0)


def share(a: float, b: float) -> float:
    """a + b, a share of rows; what long sums lost in the last digits is rounded away."""
    return round(a + b, 10) + 0.0
