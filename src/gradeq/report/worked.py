"""Arithmetic in print: an equation whose printed left side gives its printed right side."""

import math
from collections.abc import Callable, Sequence

from gradeq.report.numerals import MINUS, PLAIN_DIGITS, decimals, number, plain
from gradeq.report.story import Worked

_DIGITS = range(4, 16)  # digits tried after the first; the fewest that hold are taken


def equation(
    left: Callable[..., float],
    form: str,
    terms: Sequence[float],
    value: float,
    places: int | None = None,
) -> str:
    """``form`` filled with the terms, = value; empty where no number of digits makes it true.

    >>> equation(
    ...     lambda u, eta, n: (0.0 - u) / (eta * n),
    ...     "(0 − {0}) / ({1} × {2})",
    ...     (-0.0185, 0.1, 336.5),
    ...     0.00055,
    ... )
    '(0 + 0.0185) / (0.1 × 336.5) = 0.00055'
    """
    places = max(decimals(value), 4) if places is None else places
    for digits in _DIGITS:
        shown = [_term(term, digits) for term in terms]
        if number(left(*map(read, shown)), places) == number(value, places):
            # Minus a negative term is written as plus.
            text = form.format(*shown).replace(f"{MINUS} {MINUS}", "+ ")
            return f"{text} = {number(value, places)}"
    return ""


def worked(line: Worked) -> str:
    """The arithmetic behind an average, and what the average is; empty where it does not hold."""
    if not line.n:
        return ""
    if line.eta is None:
        shown = equation(
            lambda total, n: total / n, "{0} / {1}", (line.total, line.n), line.average
        )
    elif not line.penalty:
        shown = equation(
            lambda u, eta, n: (0.0 - u) / (eta * n),
            f"(0 {MINUS} {{0}}) / ({{1}} × {{2}})",
            (line.u, line.eta, line.n),
            line.average,
        )
    else:
        shown = equation(
            lambda u, eta, n, penalty: (0.0 - u) / (eta * n) - penalty,
            f"(0 {MINUS} {{0}}) / ({{1}} × {{2}}) {MINUS} {{3}}",
            (line.u, line.eta, line.n, line.penalty),
            line.average,
        )
        shown += "" if not shown else " with the mean slope of the penalty taken off"
    if shown and line.own is not None and line.own != line.n:
        own = equation(
            lambda average, n, own: average * n / own,
            "{0} × {1} / {2}",
            (line.average, line.n, line.own),
            line.average * line.n / line.own,
        )
        shown += f"; over its own rows {own}"
    return f"{shown}{line.tail}." if shown else ""


def difference(ends: tuple[Worked, ...], levels: tuple[float, float]) -> str:
    """The coverage of an interval from the errors of its two ends."""
    low, high = ends
    (first, second), errors = levels, (high.average, low.average)
    return equation(
        lambda b, upper, a, lower: (b + upper) - (a + lower),
        "({0} + {1}) − ({2} + {3})".replace("−", MINUS),
        (second, errors[0], first, errors[1]),
        (second + errors[0]) - (first + errors[1]),
    ).replace(f"+ {MINUS}", f"{MINUS} ")


def read(text: str) -> float:
    """The value of a number in print.

    >>> read("−1,234.5"), read("1.09×10¹⁶"), read("2×10⁻¹⁷")
    (-1234.5, 1.09e+16, 2e-17)
    """
    mantissa, power, exponent = text.replace(",", "").replace(MINUS, "-").partition("×10")
    return float(f"{mantissa}e{exponent.translate(PLAIN_DIGITS)}" if power else mantissa)


def _term(value: float, digits: int) -> str:
    """A whole number with thousands, a short setting as typed, else with so many digits."""
    if value == round(value):
        return number(value, 0)
    typed = plain(value)
    small = max(0, -1 - math.floor(math.log10(abs(value))))
    return typed if len(typed) <= 8 else number(value, digits + small)
