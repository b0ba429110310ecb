"""When labels come: the delays that ``python -m benchmarks.quality`` tries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.quality_streams import Stream

OUTAGE = 30.0  # days
LOST = 0.08


def landing(stream: Stream) -> Any:
    """As soon as the label is known."""
    return stream.known


def three_days(stream: Stream) -> Any:
    """Three days later on average, gamma with shape 2; 8 % never."""
    rng = np.random.default_rng(7)
    n = len(stream.y)
    due = stream.known + rng.gamma(2.0, 1.5, n)
    return np.where(rng.random(n) < LOST, np.nan, due)


def nightly(stream: Stream) -> Any:
    """All of a day in the night after it."""
    return np.floor(stream.known) + 1.0


def weekly(stream: Stream) -> Any:
    """All of a week when it is over."""
    return np.floor(stream.known / 7.0) * 7.0 + 7.0


def outage(stream: Stream) -> Any:
    """As soon as known, but those of 30 days all at once at the end of these days."""
    begin, end = cut_off(stream)
    return np.where((stream.known >= begin) & (stream.known < end), end, stream.known)


def cut_off(stream: Stream) -> tuple[float, float]:
    """The days without labels: they begin after two fifths of the stream."""
    begin = stream.served[0] + 0.4 * (stream.served[-1] - stream.served[0])
    return begin, begin + OUTAGE


AT_ONCE = "at once"  # each label known before the next prediction, as if it could be
DELAYS: dict[str, Callable[[Stream], Any] | None] = {
    AT_ONCE: None,
    "landing / 2 h": landing,
    "3 days, 8 % lost": three_days,
    "nightly": nightly,
    "weekly": weekly,
    "outage of 30 days": outage,
}
