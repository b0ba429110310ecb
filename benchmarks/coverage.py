"""``python -m benchmarks.coverage [STREAM ...]``: 90 % intervals on real streams, gradeq beside what else there is.

Rivals serve forecast +- threshold, where the threshold follows |label - forecast|; gradeq's are interval trackers on
the forecast. Labels come at once. After a warm-up of 500 rows: coverage error overall, in the worst window of 500
rows and in the worst group; mean interval score (Winkler) and mean width, both over those of gradeq's default. Prints
a table for each stream and one for all, and writes bench-out/coverage.json. Infinite intervals count as wide as the
largest |label - forecast| so far, and their share is told.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.online.aci import aci
from benchmarks.online.dtaci import dtaci
from benchmarks.online.pid import pid, tracked
from benchmarks.online.plain import once, rolling
from benchmarks.online.sf_ogd import sf_ogd
from benchmarks.quality import typical
from benchmarks.quality_streams import DESIGN, SHUFFLED, Stream, streams
from gradeq import IntervalTracker

LEVEL, WARM, WINDOW, ROWS, GROUP = 0.9, 500, 500, 60_000, 200
OUT = Path("bench-out")
OURS = "gradeq auto"


class Covered(NamedTuple):
    """How good intervals were; lower is better everywhere."""

    error: float
    worst_window: float
    worst_group: float
    score: float
    width: float
    infinite: float


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


RULES: dict[str, Callable[[Stream], Intervals]] = {
    OURS: by_gradeq("auto"),
    "gradeq auto, groups": by_gradeq("auto", True),
    "gradeq plain": by_gradeq("plain"),
    "batch, once": by_hand(once),
    "rolling 500": by_hand(rolling),
    "ACI": by_hand(aci),
    "DtACI": by_hand(dtaci),
    "P control": by_hand(tracked),
    "PI control": by_hand(pid),
    "SF-OGD": by_hand(sf_ogd),
}


def covered(stream: Stream, lower: Any, upper: Any) -> Covered:
    """The measures of one rule on one stream."""
    most = np.maximum.accumulate(np.abs(stream.y - stream.f))[WARM - 1 : -1]
    y, f, group = (column[WARM:] for column in (stream.y, stream.f, stream.group))
    lower, upper = lower[WARM:], upper[WARM:]
    off = ((lower <= y) & (y <= upper)) - LEVEL
    sums = np.concatenate([[0.0], np.cumsum(off)])
    windows = np.abs(sums[WINDOW:] - sums[:-WINDOW]) / WINDOW
    _, codes = np.unique(group, return_inverse=True)
    rows, own = np.bincount(codes), np.bincount(codes, off)
    groups = np.abs(own[rows >= GROUP] / rows[rows >= GROUP])
    endless = ~np.isfinite(upper - lower)
    below, above = np.where(endless, f - most, lower), np.where(endless, f + most, upper)
    width = np.maximum(0.0, above - below)
    missed = np.maximum(0.0, below - y) + np.maximum(0.0, y - above)
    return Covered(
        abs(float(off.mean())), float(windows.max()), float(groups.max(initial=0.0)),
        float((width + 2.0 / (1.0 - LEVEL) * missed).mean()), float(width.mean()),
        float(np.mean(endless & (upper > lower))),
    )  # fmt: skip


def of_streams(wanted: Sequence[str]) -> Iterator[tuple[str, dict[str, Covered]]]:
    """Every stream of numbers with a forecast, under all rules."""
    for stream in streams():
        if stream.kind != "real" or stream.role == SHUFFLED or len(stream.y) < 4 * WARM:
            continue
        if wanted and not any(part in stream.name for part in wanted):
            continue
        own = Stream(*stream[:3], *(column[:ROWS] for column in stream[3:]))
        found = {name: covered(own, *rule(own)) for name, rule in RULES.items()}
        yield f"{stream.name}{' *' if stream.role == DESIGN else ''}", found


def table(found: dict[str, dict[str, Covered]]) -> Iterator[str]:
    """Every rule: means over streams of the errors, geometric means of score and width over the default's."""
    yield f"{'':<22}{'error':>8}{'window':>9}{'group':>8}{'score':>8}{'width':>8}{'infinite':>10}"
    for rule in RULES:
        own = [each[rule] for each in found.values()]
        ours = [each[OURS] for each in found.values()]
        means = [float(np.mean([getattr(x, name) for x in own])) for name in Covered._fields]
        score, width = (
            typical(
                over(getattr(a, name), getattr(b, name)) for a, b in zip(own, ours, strict=True)
            )
            for name in ("score", "width")
        )
        errors = f"{means[0]:>8.4f}{means[1]:>9.3f}{means[2]:>8.3f}"
        yield f"{rule:<22}{errors}{score:>8.3f}{width:>8.3f}{means[5]:>9.2%}"


def over(one: float, other: float) -> float:
    """Their ratio; nan, which means leave out, where either is 0."""
    return one / other if one > 0.0 and other > 0.0 else np.nan


def main() -> None:
    """Measure, print, write."""
    found = {}
    for name, own in of_streams(sys.argv[1:]):
        found[name] = own
        print(f"\n{name}", *table({name: own}), sep="\n", flush=True)
    print(
        f"\nAll {len(found)} streams (* the defaults were chosen on these)", *table(found), sep="\n"
    )
    OUT.mkdir(exist_ok=True)
    rows = {
        name: {rule: each._asdict() for rule, each in own.items()} for name, own in found.items()
    }
    (OUT / "coverage.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(f"\nWritten: {OUT / 'coverage.json'}")


if __name__ == "__main__":
    main()
