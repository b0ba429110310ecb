"""How numbers and dates are written, in the terminal and on the page: one rule, one place.

Minus is U+2212; thousands have commas; a value that rounds to zero has no sign; powers of ten are
for gaps, for numbers that have more digits than a float knows, and for those that begin with many zeros.
"""

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from gradeq.numerics import raised

MINUS = "−"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # counted from it, dates before 1970 work on every platform
LARGE = 1e15  # from here on digits are none of the value's own
MANY_ZEROS = 9  # decimals: a number that needs more is written with a power of ten
FEW_ZEROS = 1e-3  # smaller ones of those
SMALLEST, LARGEST = 1e-12, 1e21  # of a setting: beyond them zeros would fill the line
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PLAIN_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_WORDS = (
    *("No", "One", "Two", "Three", "Four", "Five", "Six"),
    *("Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"),
)


def number(value: float, decimals: int = 3, sign: bool = False) -> str:
    """Write a value with fixed decimals; ``sign`` adds a plus to positive values.

    >>> number(-1234.5, 1), number(0.0004, 3, sign=True), number(0.1, 1, sign=True)
    ('−1,234.5', '0.000', '+0.1')
    >>> number(-1.5e300), number(1.2e-15, 16)
    ('−1.50×10³⁰⁰', '1.20×10⁻¹⁵')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else MINUS + "∞")
    if decimals > MANY_ZEROS and not value:
        return "0"
    powered = abs(value) >= LARGE or (decimals > MANY_ZEROS and abs(value) < FEW_ZEROS)
    digits = power(value, 2) if powered else f"{abs(value):,.{decimals}f}"
    if not digits.strip("0.,"):
        return digits
    return (MINUS if value < 0 else "+" if sign else "") + digits


def limit(value: float, decimals: int = 3) -> str:
    """Write an upper limit with fixed decimals, rounded up: what is read is not below what is meant.

    >>> limit(0.12415, 2), limit(0.0002, 1)
    ('0.13', '0.1')
    """
    powered = abs(value) >= LARGE or (decimals > MANY_ZEROS and 0.0 < abs(value) < FEW_ZEROS)
    return number(raised(value, ".2e" if powered else f".{decimals}f"), decimals)


def short(value: float, up: bool = False) -> str:
    """Write a figure for the terminal: three digits, two when small; ``up`` rounds up, for a limit.

    >>> short(-0.11288), short(-0.00746), short(1234.56), short(0.0), short(0.84901, up=True)
    ('-0.113', '-0.0075', '1,234.6', '0', '0.85')
    """
    if value == 0.0 or not math.isfinite(value):  # a mean of squares may be too large for a number
        return "0" if value == 0.0 else "-"
    size = abs(value)
    digits = ".3g" if size >= 1e15 else ",.1f" if size >= 100.0 else ".4g" if size >= 1.0 else ".3g"
    digits = ".2g" if size < 0.01 else digits
    return short(raised(value, digits)) if up else format(value, digits)


def count(n: int) -> str:
    return number(n, 0)


def word(n: int) -> str:
    """Write a small count as a capitalised word to open a sentence with: Three; 13 stays 13."""
    return _WORDS[n] if 0 <= n < len(_WORDS) else count(n)


def percent(fraction: float, decimals: int = 1) -> str:
    """Write a fraction as a percentage: 66.7 %."""
    return number(100.0 * fraction, decimals) + " %"


def target(fraction: float) -> str:
    """Write a wanted coverage with the decimals it needs and no more: 90 %, 97.5 %."""
    return plain(round(100.0 * fraction, 6)) + " %"


def points(fraction: float, sign: bool = True) -> str:
    """Write a difference of win rates or coverages in percentage points, one decimal: +5.1."""
    return number(100.0 * fraction, 1, sign)


def plain(value: float) -> str:
    """Write a setting as one would type it, an exponent only where zeros would fill the line.

    >>> plain(0.025), plain(4.0), plain(1e-5)
    ('0.025', '4', '0.00001')
    """
    if not math.isfinite(value):
        return number(value)
    if value and not SMALLEST <= abs(value) < LARGEST:
        return (MINUS if value < 0 else "") + power(value, 2)
    text = format(Decimal(repr(float(value))), "f")
    text = text.removesuffix(".0")
    return MINUS + text[1:] if text.startswith("-") else text


def edge(value: float) -> str:
    """Write the edge of a bin, with a power of ten where it begins with many zeros.

    >>> edge(0.05), edge(-5e-10)
    ('0.05', '−5×10⁻¹⁰')
    """
    if not value or abs(value) >= 10.0**-MANY_ZEROS * 100.0:
        return plain(value)
    digits = len(Decimal(repr(value)).normalize().as_tuple().digits)
    return (MINUS if value < 0 else "") + power(value, digits - 1)


def gap(value: float) -> str:
    """Write a rounding gap as one digit and a power of ten: 2 × 10⁻¹⁷; zero is 0.

    >>> gap(2.1e-17), gap(0.0)
    ('2 × 10⁻¹⁷', '0')
    """
    if value == 0.0 or not math.isfinite(value):
        return number(value, 0)
    return power(value, 0, " × ")


def power(value: float, decimals: int, times: str = "×") -> str:
    """Write the size of a value as a digit, decimals, and a power of ten: narrow, so that it fits where others do."""
    mantissa, exponent = f"{abs(value):.{decimals}e}".split("e")
    return f"{mantissa}{times}10{str(int(exponent)).translate(_SUPERSCRIPT)}"


def decimals(*values: float) -> int:
    """Decimals for values shown together: 3 below one, as for probabilities, fewer above.

    Two different values that would print alike get one decimal more.

    >>> decimals(0.251, 0.209), decimals(0.2297, 0.2304), decimals(14.73, 4.3)
    (3, 4, 2)
    """
    finite = [abs(value) for value in values if math.isfinite(value)]
    largest = max(finite, default=0.0)
    if largest == 0.0:
        places = 3
    elif largest >= 1.0:
        places = 2 if largest < 100 else 1 if largest < 10_000 else 0
    else:
        places = min(max(3, 1 - math.floor(math.log10(largest))), 12)
    if len(values) == 2 and values[0] != values[1]:
        places += number(values[0], places) == number(values[1], places)
    return places


def date(seconds: float) -> str:
    """Write a day in UTC in full: 2 April 2014."""
    at = EPOCH + timedelta(seconds=seconds)
    return f"{at.day} {MONTHS[at.month - 1]} {at.year}"


def month(seconds: float) -> str:
    """Write a month in UTC: Apr 2014."""
    at = EPOCH + timedelta(seconds=seconds)
    return f"{MONTHS[at.month - 1][:3]} {at.year}"


def moment(seconds: float) -> str:
    """Write a time of day in UTC: 15 Nov 2026, 20:20 UTC."""
    at = EPOCH + timedelta(seconds=seconds)
    return f"{at.day} {MONTHS[at.month - 1][:3]} {at.year}, {at:%H:%M} UTC"
