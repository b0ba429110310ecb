"""90 % intervals around a forecast.

Rivals serve forecast +- threshold, where the threshold follows |label - forecast|; gradeq's are interval trackers on
the forecast. After a warm-up of 500 rows: coverage error overall, in the worst window and in the worst group; mean
interval score (Winkler) and mean width. Infinite intervals count as wide as the largest |label - forecast| so far,
and their share is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.online.aci import aci
from benchmarks.online.dtaci import dtaci
from benchmarks.online.pid import pid, tracked
from benchmarks.online.plain import once, rolling
from benchmarks.online.sf_ogd import sf_ogd
from benchmarks.quality_streams import Stream
from benchmarks.real.errors import worst_group, worst_window
from benchmarks.real.kind import Figures, Kind, Measure, Rule
from benchmarks.real.streams import WARM, of_kinds
from gradeq import IntervalTracker

LEVEL = 0.9

Intervals = tuple[Any, Any]  # lower ends, upper ends


def by_gradeq(eta: Any, grouped: bool = False) -> Callable[[Stream], Intervals]:
    """An interval tracker of gradeq."""

    def intervals(stream: Stream) -> Intervals:
        layer = IntervalTracker(LEVEL, eta, groups=["g"] if grouped else ())
        where = {"groups": {"g": stream.group}} if grouped else {}
        served = np.asarray(layer.run(stream.f, stream.y, **where).values)
        return served[:, 0], served[:, 1]

    return intervals


def by_hand(rule: Callable[[Sequence[float], float, int], Any]) -> Callable[[Stream], Intervals]:
    """A rule that tracks a threshold of |label - forecast|."""

    def intervals(stream: Stream) -> Intervals:
        scores = np.abs(stream.y - stream.f)
        q = np.array(rule(scores.tolist(), LEVEL, WARM))
        return stream.f - q, stream.f + q

    return intervals


def covered(stream: Stream, served: Intervals) -> Figures:
    """The measures of one rule on one stream."""
    most = np.maximum.accumulate(np.abs(stream.y - stream.f))[WARM - 1 : -1]
    y, f, group = (column[WARM:] for column in (stream.y, stream.f, stream.group))
    lower, upper = (end[WARM:] for end in served)
    off = ((lower <= y) & (y <= upper)) - LEVEL
    endless = ~np.isfinite(upper - lower)
    below, above = np.where(endless, f - most, lower), np.where(endless, f + most, upper)
    width = np.maximum(0.0, above - below)
    missed = np.maximum(0.0, below - y) + np.maximum(0.0, y - above)
    return {
        "error": abs(float(off.mean())),
        "window": worst_window(off),
        "group": worst_group(group, off),
        "score": float((width + 2.0 / (1.0 - LEVEL) * missed).mean()),
        "width": float(width.mean()),
        "infinite": float(np.mean(endless & (upper > lower))),
    }


def of_forecasts() -> Iterator[tuple[str, Stream]]:
    """Every stream of numbers with a forecast."""
    return of_kinds(("real",), 4 * WARM)


KIND = Kind(
    name="intervals",
    title="90 % intervals",
    explained=(
        "Intervals around a forecast that should hold 90 % of the labels. gradeq follows both ends, the others one "
        "threshold of |label - forecast|, which costs them where errors are lopsided."
    ),
    ours="gradeq auto",
    measures=(
        Measure("error", "coverage error", ".4f", "mean"),
        Measure("window", "worst 500 rows", ".3f", "mean"),
        Measure("group", "worst group", ".3f", "mean"),
        Measure("score", "interval score", ".3f", "ratio"),
        Measure("width", "width", ".3f", "ratio"),
        Measure("infinite", "infinite", ".2%", "mean"),
    ),
    rules={
        "gradeq auto": Rule("IntervalTracker(0.9), the default", by_gradeq("auto")),
        "gradeq auto, groups": Rule("the same with the groups of the stream", by_gradeq("auto", True)),
        "gradeq plain": Rule('IntervalTracker(0.9, eta="plain"): one step of 0.1', by_gradeq("plain")),
        "batch, once": Rule("split conformal: the quantile of the first 500 scores", by_hand(once)),
        "rolling 500": Rule("the quantile of the last 500 scores", by_hand(rolling)),
        "ACI": Rule("adaptive conformal inference, Gibbs and Candès 2021, step 0.005", by_hand(aci)),
        "DtACI": Rule("dynamically tuned ACI, Gibbs and Candès 2022", by_hand(dtaci)),
        "P control": Rule(
            "quantile tracking, Angelopoulos, Candès and Tibshirani 2023, step 0.1 x range of 100 scores",
            by_hand(tracked),
        ),
        "PI control": Rule("the same with its integrator, no scorecaster", by_hand(pid)),
        "SF-OGD": Rule("scale-free gradient descent, Bhatnagar et al. 2023", by_hand(sf_ogd)),
    },
    streams=of_forecasts,
    measured=covered,
)  # fmt: skip
