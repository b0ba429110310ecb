"""One event at a time: predict, then update, beside river and beside a class written by hand for just this."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from benchmarks.by_hand import HANDS
from benchmarks.cases import EVENTS, SEVERAL, TEN, Data, columns, happened
from benchmarks.rivals import INSTALLED, intercept, linear, quantile, served
from benchmarks.timing import Row, best, compare

N = 20_000


def main() -> Iterator[Row]:
    if not INSTALLED:
        print("  river is not installed: the ratios to it are left out")
    if find_spec("elote") is None:
        print("  elote is not installed (make bench-peers): the ratio to it is left out")
    data = columns(N)
    for name in EVENTS:
        yield measured(name, data)


def measured(name: str, data: Data) -> Row:
    """One kind of event; outputs are compared, except with a peer that does something simpler."""
    kind = EVENTS[name]
    ours = happened(kind, data)
    expected, gap, remark = ours(), None, ""
    jobs: dict[str, Callable[[], Any]] = {"gradeq": ours}
    if name in HANDS:
        jobs["by hand"] = happened(kind._replace(make=HANDS[name]), data)
        gap = compare(f"{name}, by hand", expected, jobs["by hand"]())
    peer = by_river(name, data)
    if peer is not None:
        jobs["river"] = peer
        if name == "quantile, sinh":
            remark = "river's link is linear"
        else:
            gap = max(gap or 0.0, compare(f"{name}, river", expected, peer()))
    if name == "Elo" and find_spec("elote") is not None:
        jobs["elote"] = by_elote(data)
        gap = max(gap or 0.0, compare(f"{name}, elote", expected, jobs["elote"]()))
    times = best(jobs, N, 5)
    mine = times.pop("gradeq")
    ratios = {other: mine.cpu / took.cpu for other, took in times.items()}
    return Row(name, mine, ratios, kind.goal, remark, gap)


def by_river(name: str, data: Data) -> Callable[[], list[float]] | None:
    """The same events through river, where it has the algorithm."""
    if not INSTALLED or name in ("interval", "auto", "Elo"):
        return None
    f, y = data["f"].tolist(), data["y"].tolist()
    own: Callable[[int], Any] = {
        "ten disjoint groups": lambda i: dict.fromkeys(TEN[i % 10].items(), 1.0),
        "three overlapping groups": lambda i: dict.fromkeys(SEVERAL[i % 210].items(), 1.0),
        "keyed": lambda i: {i % 1_000: 1.0},
    }.get(name, lambda i: {})
    rows = [own(i) for i in range(N)]
    make = quantile if name.startswith("quantile") else linear if rows[0] else intercept
    return lambda: served(make(), rows, f, y)


def by_elote(data: Data) -> Callable[[], list[float]]:
    """The same games through elote; its K is the step in points of Elo."""
    from elote import EloCompetitor

    games = list(zip(data["a"].tolist(), data["b"].tolist(), data["score"].tolist(), strict=True))

    def play() -> list[float]:
        players = {k: EloCompetitor(1500, 0.1 * 400.0 / math.log(10.0)) for k in range(150)}
        out = []
        for a, b, score in games:
            out.append(players[a].expected_score(players[b]))
            if score == 0.5:
                players[a].tied(players[b])
            else:
                players[a if score else b].beat(players[b if score else a])
        return out

    return play
