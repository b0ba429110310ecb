"""Spans of time with a unit (90s, 15m, 36h, 7d), and the kinds of time that can be compared."""

from __future__ import annotations

import math

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
# Kinds of times; only times of one kind are compared.
NUMBERS, NAIVE, ZONED = "numbers", "dates without a zone", "dates with a zone"
DATES = "dates"  # with or without a zone, in states of earlier versions


def comparable(one: str | None, other: str | None) -> bool:
    """Whether times of these kinds can be compared; None: not known yet.

    >>> comparable(NAIVE, ZONED), comparable(DATES, ZONED), comparable(None, NUMBERS)
    (False, True, True)
    """
    if one is None or other is None or one == other:
        return True
    return NUMBERS not in (one, other) and DATES in (one, other)


def remedy(one: str | None, other: str | None) -> str:
    """What to do about times of two kinds."""
    if NUMBERS in (one, other):
        return "write both in one way"
    return "write both with a zone (2024-01-31T17:05:00+01:00), or both without one"


def format_span(span: float | None) -> str:
    """A span in the unit of times; if that looks like nanoseconds, also as a duration.

    >>> format_span(30.0), format_span(14 * 86400e9), format_span(None)
    ('30', '1.2096e+15 (14d in dates)', 'none')
    """
    if span is None:
        return "none"
    text = as_span(span)
    return f"{span:g}" if text is None else f"{span:g} ({text} in dates)"


def as_span(nanoseconds: float) -> str | None:
    """Nanoseconds as a span with a unit; None below a second, where the number is in another unit.

    >>> as_span(40 * 86400e9), as_span(5400e9), as_span(30.0)
    ('40d', '90m', None)
    """
    if not 1e9 <= nanoseconds < math.inf:
        return None
    unit = next((u for u in "dhm" if nanoseconds % (UNITS[u] * 1e9) == 0.0), "s")
    return f"{nanoseconds / (UNITS[unit] * 1e9):.15g}{unit}"


def needs_dates(spans: dict[str, float | None], kind: str | None) -> str:
    """The error message for times that are not dates while an option is a span such as 5d.

    >>> needs_dates({"ttl": 5 * 86400e9, "maturity": None}, NUMBERS)
    "with ttl='5d' times are dates, not numbers; give dates, or ttl as a number in the unit of your times"
    """
    texts = {name: as_span(span) for name, span in spans.items() if span is not None}
    options = " and ".join(f"{name}={text!r}" for name, text in texts.items())
    remedy = f"give dates, or {' and '.join(texts)} as a number in the unit of your times"
    return f"with {options} times are dates, not {kind}; {remedy}"


def duration(text: str) -> float | None:
    """Seconds of a span of time with a unit; None for anything else.

    >>> duration("36h"), duration("1.5d"), duration("7")
    (129600.0, 129600.0, None)
    """
    if text[-1:] not in UNITS:
        return None
    try:
        return float(text[:-1]) * UNITS[text[-1]]
    except ValueError:
        return None


def shown_time(value: float, dates: bool) -> str:
    """A time as it is written: a number, or the date of nanoseconds since 1970.

    >>> shown_time(1704153600000000000, True), shown_time(2.5, False)
    ('2024-01-02', '2.5')
    """
    if not dates:
        return f"{float(value):.15g}"
    import numpy as np  # not needed to print the help of commands

    text = str(np.datetime64(int(value), "ns"))
    return text.removesuffix("T00:00:00.000000000").removesuffix(".000000000")
