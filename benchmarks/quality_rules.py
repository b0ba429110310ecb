"""What is compared: the raw predictions, gradeq plain and auto, and what people write by hand.

By hand, group by group: the mean (for quantiles: the quantile, renewed every day) of the residuals that became known
in the last 7, 14 or 30 days is added to the prediction; or once a month that of the residuals of the month before.
Fewer than 5 of them: no correction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality_streams import LEVEL, Stream
from gradeq import Debiaser, QuantileTracker

FEWEST = 5
MONTH = 30.4375


class Served(NamedTuple):
    """What a rule served, and the layer that did, if it was one of gradeq's."""

    values: Any
    layer: Any = None


def layer_of(stream: Stream, eta: Any) -> Any:
    """A layer of gradeq for this kind of stream, with its groups."""
    if stream.kind == "quantile":
        return QuantileTracker(LEVEL, eta, groups=["g"])
    return Debiaser(eta, outcome=stream.kind, groups=["g"])


def by_gradeq(eta: Any) -> Callable[[Stream, Any], Served]:
    """A layer of gradeq over the stream; ``due`` None: labels at once."""

    def serve(stream: Stream, due: Any) -> Served:
        layer = layer_of(stream, eta)
        when = {} if due is None else {"times": stream.served, "label_times": due}
        return Served(layer.run(stream.f, stream.y, {"g": stream.group}, **when).served, layer)

    return serve


def raw(stream: Stream, due: Any) -> Served:
    """The predictions as they are."""
    return Served(stream.f)


def rolling(days: float) -> Callable[[Stream, Any], Served]:
    """The residuals of the last days."""

    def serve(stream: Stream, due: Any) -> Served:
        if stream.kind == "quantile":
            return corrected(stream, due, np.floor(stream.served), lambda now: (now - days, now))
        return Served(in_range(stream, stream.f + each_group(stream, due, days)))

    return serve


def monthly(stream: Stream, due: Any) -> Served:
    """The residuals of the month before, from each turn of the month on."""
    turn = np.floor(stream.served / MONTH) * MONTH
    return corrected(stream, due, turn, lambda now: (now - MONTH, now))


def corrected(stream: Stream, due: Any, renewed: Any, window: Callable[[float], Any]) -> Served:
    """One correction for each group and moment of renewal, from the labels that came within a window before it."""
    middle = np.mean if stream.kind != "quantile" else lambda x: np.quantile(x, LEVEL)
    offset = np.zeros(len(stream.y))
    for rows, came, residuals in by_group(stream, due):
        for now in np.unique(renewed[rows]):
            a, b = np.searchsorted(came, window(now), side="right")
            if b - a >= FEWEST:
                offset[rows[renewed[rows] == now]] = middle(residuals[a:b])
    return Served(in_range(stream, stream.f + offset))


def each_group(stream: Stream, due: Any, days: float) -> Any:
    """For each row the mean residual of its group over the labels of the last days; at once: up to the row before."""
    offset = np.zeros(len(stream.y))
    for rows, came, residuals in by_group(stream, due):
        now, sums = stream.served[rows], np.concatenate([[0.0], np.cumsum(residuals)])
        b = np.arange(len(rows)) if due is None else np.searchsorted(came, now, side="right")
        a = np.minimum(b, np.searchsorted(came, now - days, side="right"))
        enough = b - a >= FEWEST
        offset[rows[enough]] = ((sums[b] - sums[a]) / np.maximum(1, b - a))[enough]
    return offset


def by_group(stream: Stream, due: Any) -> Any:
    """The rows of each group; when their labels came, sorted, and the residuals in that order."""
    came = stream.served if due is None else due
    for name in np.unique(stream.group):
        rows = np.flatnonzero(stream.group == name)
        order = rows[np.isfinite(came[rows])]
        order = order[np.argsort(came[order], kind="stable")]
        yield rows, came[order], (stream.y - stream.f)[order]


def in_range(stream: Stream, values: Any) -> Any:
    """Probabilities stay in [0, 1]."""
    return np.clip(values, 0.0, 1.0) if stream.kind == "binary" else values


RULES: dict[str, Callable[[Stream, Any], Served]] = {
    "raw": raw,
    "plain": by_gradeq("plain"),
    "auto": by_gradeq("auto"),
    "rolling 7 d": rolling(7.0),
    "rolling 14 d": rolling(14.0),
    "rolling 30 d": rolling(30.0),
    "monthly": monthly,
}
YARDSTICK = "rolling 14 d"
