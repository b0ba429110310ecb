"""Upper limits in writing: rounded up, for a bound that is written smaller than it is would be a false claim."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal

FLOATS = 12  # digits: beyond them a value is the rounding of floats


def raised(value: float, format_: str) -> float:
    """The smallest number that ``format_`` (such as .4g, .2f or .2e) writes in full and that is not below the value.

    >>> (
    ...     f"{raised(0.21746, '.4g'):.4g}",
    ...     f"{raised(0.1201, '.2f'):.2f}",
    ...     f"{raised(0.1 + 0.2, '.2f'):.2f}",
    ... )
    ('0.2175', '0.13', '0.30')
    """
    if not math.isfinite(value):
        return value
    exact = Decimal(f"{value:.{FLOATS}g}")
    places, kind = int(format_[:-1].rpartition(".")[2]), format_[-1]
    if kind == "f":
        last = max(-places, exact.adjusted() - FLOATS)
        return float(exact.quantize(Decimal(1).scaleb(last), ROUND_CEILING))
    digits = places + 1 if kind == "e" else places
    return float(Context(prec=digits, rounding=ROUND_CEILING).plus(exact))
