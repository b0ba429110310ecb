"""Spans of time with a unit: 90s, 15m, 36h, 7d."""

from __future__ import annotations

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


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
