"""Scalar functions that neither overflow nor lose digits, and upper limits rounded up."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal

LAMBERT_W = 0.2784645427610738  # W0(1/e): the largest value of u sigmoid(-u) (lem:logistic_grad_inner_prod)

# Of a step or a weight: products of smaller ones with errors lose digits, and sums would not match the state.
SMALLEST = 1e-100
FAINT = f"is above 0 and below {SMALLEST:g}, where rounding loses it; give 0 or a larger one"

# Of a prediction or a label: sums and differences of larger ones overflow.
LARGEST = 1e305
HUGE = f"is too large: sums of numbers beyond {LARGEST:g} are not finite; give the column in a larger unit"


def over(total: float, divisor: float) -> float:
    """total / divisor, or 0 if the divisor is not positive."""
    return total / divisor if divisor > 0.0 else 0.0


def sigmoid(u: float) -> float:
    """1 / (1 + exp(-u)), without overflow for any finite u.

    >>> sigmoid(0.0), sigmoid(-800.0), sigmoid(800.0)
    (0.5, 0.0, 1.0)
    """
    if u >= 0.0:
        return 1.0 / (1.0 + math.exp(-u))
    a = math.exp(u)
    return a / (1.0 + a)


def logit(p: float) -> float:
    """log(p / (1 - p)), the inverse of the sigmoid on (0, 1)."""
    return math.log(p / (1.0 - p))


def log1pexp(u: float) -> float:
    """log(1 + exp(u)), without overflow.

    >>> log1pexp(1000.0)
    1000.0
    """
    if u > 0.0:
        return u + math.log1p(math.exp(-u))
    return math.log1p(math.exp(u))


def bounded_sinh(u: float) -> float:
    """sinh(u), with |u| capped at 700 so that the result is always finite."""
    if -700.0 <= u <= 700.0:
        return math.sinh(u)
    return math.sinh(700.0 if u > 0.0 else -700.0)


def bounded_exp(u: float) -> float:
    """exp(u), with u capped at 700 so that the result is always finite."""
    return math.exp(u if u <= 700.0 else 700.0)


def sign(u: float) -> float:
    """-1, 0 or 1; the subgradient of |u| that is 0 at the kink.

    >>> sign(-3.0), sign(0.0), sign(2.0)
    (-1.0, 0.0, 1.0)
    """
    if u > 0.0:
        return 1.0
    if u < 0.0:
        return -1.0
    return 0.0


def within(x: float, low: float, high: float) -> float:
    """x, or the end of [low, high] that it lies beyond.

    >>> within(-1.0, 0.0, 5.0), within(2.0, 0.0, 5.0)
    (0.0, 2.0)
    """
    if x < low:
        return low
    if x > high:
        return high
    return x


FLOATS = 12  # significant digits; more are rounding errors of floats


def raised(value: float, format_: str) -> float:
    """The value rounded up to the digits of ``format_`` (such as .4g, .2f or .2e).

    >>> (f"{raised(0.21746, '.4g'):.4g}", f"{raised(0.1201, '.2f'):.2f}", f"{raised(0.1 + 0.2, '.2f'):.2f}")
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
