"""Axis marks at round values, with the words written beside them."""

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from gradeq.report.numerals import MONTHS, number, percent

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STRIDES = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600)
_SECONDS = (
    1,
    5,
    15,
    60,
    300,
    900,
    3600,
    3 * 3600,
    6 * 3600,
    12 * 3600,
    86400,
    2 * 86400,
    7 * 86400,
)

FARTHEST = 1e300  # twice as far is still a number

Tick = tuple[float, str]


class Scale(NamedTuple):
    """An axis from ``low`` to ``high`` with its ticks."""

    low: float
    high: float
    ticks: tuple[Tick, ...]


class How(NamedTuple):
    """How values are written: factor (100 for per cent), decimals, sign on plus, suffix."""

    factor: float = 1.0
    decimals: int = 3
    sign: bool = False
    suffix: str = ""


def finite(*series: Iterable[float | None]) -> list[float]:
    """The numbers of several series, without gaps, and without those whose differences are none."""
    return [v for values in series for v in values if v is not None and abs(v) <= FARTHEST]


def step(span: float, most: int) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that cuts a span in at most ``most``."""
    if not span > 0 or not math.isfinite(span):
        return 1.0
    raw = span / most
    power = 10.0 ** math.floor(math.log10(raw))
    return next((m * power for m in (1.0, 2.0, 2.5, 5.0) if m * power >= raw * 0.9999), 10 * power)


def places(width: float) -> int:
    """Decimals that tell neighbouring ticks apart."""
    text = f"{width:.12f}".rstrip("0")
    return min(len(text.partition(".")[2]), 9)


def scale(
    values: Iterable[float],
    most: int = 5,
    how: str = "number",
    include: Iterable[float] = (),
    pad: float = 0.04,
    limits: tuple[float, float] | None = None,
) -> Scale:
    """An axis that holds the values; ``how`` is number, sign or percent.

    ``include`` are values that must be on it; ``limits`` cuts what padding may add.
    """
    known = finite(values, include)
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        low, high = low - max(abs(low) * 0.1, 0.05), high + max(abs(high) * 0.1, 0.05)
    width = step(high - low, most)
    margin = pad * (high - low)
    low, high = low - margin, high + margin
    if limits is not None:
        low, high = max(low, limits[0]), min(high, limits[1])
    return Scale(low, high, ticks(low, high, width, how))


def ticks(low: float, high: float, width: float, how: str = "number") -> tuple[Tick, ...]:
    """Multiples of ``width`` between low and high, written as number, sign or percent."""
    first, last = math.ceil(low / width - 1e-9), math.floor(high / width + 1e-9)
    values = [i * width for i in range(first, last + 1)]
    if how == "percent":
        digits = max(places(width) - 2, 0)
        return tuple((v, percent(v, digits) if v else "0") for v in values)
    digits = places(width)
    return tuple((v, number(v, digits, how == "sign") if v else "0") for v in values)


def counts(low: float, high: float, most: int = 7) -> tuple[Tick, ...]:
    """Ticks at whole numbers."""
    width = max(round(step(high - low, most)), 1)
    return ticks(low, high, width)


def dates(low: float, high: float, most: int = 8) -> tuple[Tick, ...]:
    """Ticks at round times between two seconds since 1970, the year at the first and in January."""
    span = high - low
    for seconds in _SECONDS:
        if span / seconds < most - 1:
            return _times(low, high, seconds)
    start = _EPOCH + timedelta(seconds=low)
    for months in _STRIDES:
        found: list[Tick] = []
        index = start.year * 12 + start.month - 1
        index -= index % months
        while (at := _month(index)) <= high:
            if at >= low - 0.02 * span:
                found.append((max(at, low), _month_name(index, not found, months)))
            index += months
        if len(found) <= most:
            return tuple(found)
    return ()


def _month(index: int) -> float:
    year = min(max(index // 12, 1), 9999)
    return (datetime(year, index % 12 + 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()


def _month_name(index: int, first: bool, months: int) -> str:
    year, month = divmod(index, 12)
    if months >= 12:
        return str(year)
    short = MONTHS[month][:3]
    return f"{short} {year}" if first or month == 0 else short


def _times(low: float, high: float, seconds: int) -> tuple[Tick, ...]:
    found: list[Tick] = []
    at = math.ceil(low / seconds) * seconds
    while at <= high:
        when = _EPOCH + timedelta(seconds=at)
        day = f"{when.day} {MONTHS[when.month - 1][:3]}"
        # Within an hour the day goes without saying; else it stands at the first mark and at midnight.
        clock = seconds < 3600 or (seconds < 86400 and (when.hour or when.minute) and found)
        shown = f"{when:%H:%M:%S}" if seconds < 60 else f"{when:%H:%M}"
        found.append((float(at), shown if clock else day))
        at += seconds
    return tuple(found)
