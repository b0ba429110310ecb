"""What rounding may hide of the sums of a certificate.

A label that was corrected is taken out of the sums again, and what rounding did to them while it was in them stays.
The ranges remember the largest residual ever seen, so its size is known. Without corrections a sum of losses has no
such trouble: it holds its largest term.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradeq.kernels.account import (
    BEFORE,
    GRADIENT,
    HIGH,
    LOSS_AFTER,
    LOSS_BEFORE,
    LOW,
    MOVED,
    ROWS,
    WEIGHT,
)
from gradeq.ledger import facts as fact
from gradeq.numerics import over

ROUNDED = 2.0**-53  # of a sum: what one addition may lose
DIGITS = 1e-3  # of a figure: more must not be hidden
NOTHING = 1e-9  # of a mean: a zero that is known so well is a zero


BALANCED = 1e-8  # of the averages: state and sums may differ by as much, and by what is known to be rounding
HIDDEN = "a label that was corrected was so large that rounding hides the rest"


class Hidden(NamedTuple):
    """What rounding may have done to a sum of gradients and to a sum of losses."""

    gradient: float
    loss: float


class Unit(NamedTuple):
    """What residuals are measured in: the scale of the sinh link now, and the sum of residuals that it remembers."""

    scale: float
    remembered: float

    def largest(self, reach: float) -> float:
        """About the largest residual, given that in the tracked unit: with the scale of now, or as remembered."""
        return max(self.scale * math.sinh(min(reach, 700.0)), self.remembered)


def hidden(own: Any, facts: Any, single: bool, unit: Unit | None = None) -> Hidden:
    """Of an account: every posting rounds by as much as the largest one was; ``single``: errors have no levels.

    Errors of levels lie between -1 and 1, and their loss grows with the residual, not with its square.
    """
    corrected = facts[fact.CORRECTED]
    largest = max(abs(own[LOW]), abs(own[HIGH])) if own[LOW] <= own[HIGH] else 0.0
    if unit is not None:
        largest = unit.largest(largest)
    postings = own[ROWS] + 2.0 * corrected
    weight = facts[fact.HEAVIEST] * max(1.0, facts[fact.LARGEST])
    rounds = ROUNDED * postings * weight * (1.0 + corrected)
    if not single:
        return Hidden(rounds, rounds * largest)
    return Hidden(rounds * largest, rounds * largest * largest)


class Figures(NamedTuple):
    """Bias and mean loss before and after; None where rounding has destroyed them."""

    bias_before: float | None
    bias_after: float | None
    loss_before: float | None
    loss_after: float | None


def figures(
    accounts: Sequence[Any], facts: Any, single: bool, scale: float, unit: Unit | None = None
) -> Figures:
    """Over the rows of the accounts (one for each level); ``scale`` is what a mean loss is multiplied by."""
    digits = [known(own, facts, single, unit) for own in accounts]
    bias, loss = (all(flags) for flags in zip(*digits, strict=True))
    own, weight = accounts[0], accounts[0][WEIGHT]

    def mean(column: int) -> float | None:
        total = sum(account[column] for account in accounts)
        return scale * over(total, len(accounts) * weight) if loss else None

    step = facts[fact.STEP_HIGH] if facts[fact.STEP_LOW] >= facts[fact.STEP_HIGH] else None
    return Figures(
        over(own[BEFORE], weight) if bias and math.isfinite(own[BEFORE]) else None,
        mean_gradient(own, weight, step) if bias else None,
        mean(LOSS_BEFORE),
        mean(LOSS_AFTER),
    )


def mean_gradient(own: Any, weight: float, step: float | None) -> Any:
    """The mean gradient of an account; where the sum is too large for a number, from the sum of step times gradient.

    Of columns of accounts, a column.
    """
    total = own[GRADIENT]
    if np.all(np.isfinite(total)):
        return over(total, weight)
    if not step:
        return total * math.nan
    moved = own[MOVED] / weight / step
    return np.where(np.isfinite(total), total / weight, moved) if np.ndim(total) else moved


class Known(NamedTuple):
    """Whether bias and loss of an account still have their digits."""

    bias: bool
    loss: bool


def known(own: Any, facts: Any, single: bool, unit: Unit | None = None) -> Known:
    """Rounding may hide at most a thousandth of a figure; of a bias also of the typical error, if that is known."""
    weight = own[WEIGHT]
    if not facts[fact.CORRECTED] or not weight > 0.0:
        return Known(True, True)
    lost, losses = hidden(own, facts, single, unit), min(own[LOSS_BEFORE], own[LOSS_AFTER])
    loss = lost.loss <= max(DIGITS * losses, NOTHING * weight)
    errors = min(abs(own[BEFORE]), abs(own[GRADIENT]))
    if loss and single:
        errors = max(errors, math.sqrt(weight * max(0.0, losses)))
    bias = not single or lost.gradient <= max(DIGITS * errors, NOTHING * weight)
    return Known(bias, loss)


def balance(gap: float, averages: Iterable[float], loss: float | None, rounding: float) -> str:
    """Whether sums and state agree: "even", "rounded" (by what a large label explains) or "broken"."""
    if gap <= BALANCED:
        return "even"
    typical = math.sqrt(max(0.0, loss or 0.0))
    size = max(1.0, typical, *(abs(average) for average in averages if not math.isnan(average)))
    if gap <= BALANCED * size:
        return "even"
    return "rounded" if gap <= 2.0 * rounding else "broken"


def trusted(balanced: str, exact: bool, gap: str) -> str:
    """How far a certificate can be trusted, in words; where steps varied it rests on the stored sums.

    >>> trusted("even", True, "1e-17"), trusted("even", False, "0"), trusted("broken", True, "0.3")
    ('exact (gap 1e-17)', 'exact (gap 0, by the stored sums)', 'broken (gap 0.3)')
    """
    kind = {"even": "exact", "rounded": "exact, up to the rounding of a large label"}
    by = "" if exact else ", by the stored sums"
    return f"{kind.get(balanced, balanced)} (gap {gap}{by})"
