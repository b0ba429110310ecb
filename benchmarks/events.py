"""One event at a time: predict, then update, beside river and beside a class written by hand for just this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.by_hand import HANDS
from benchmarks.cases import EVENTS, happened
from benchmarks.inputs import Data
from benchmarks.peers.systems import entries, missing
from benchmarks.timing import Row, best, compare

N = 20_000
PEERS = "river", "elote"
SIMPLER = {"quantile, sinh": "river's link is linear"}  # the peer does less: nothing to compare


def main() -> Iterator[Row]:
    for peer in PEERS:
        if missing(peer):
            print(f"  {peer} is not installed: the ratios to it are left out")
    data = Data(N, keys=1_000)
    for name in EVENTS:
        yield measured(name, data)


def measured(name: str, data: Data) -> Row:
    """One kind of event; outputs are compared, except with a peer that does something simpler."""
    kind = EVENTS[name]
    ours = happened(kind, data)
    expected, gap = ours(), None
    jobs: dict[str, Callable[[], Any]] = {"gradeq": ours}
    if name in HANDS:
        jobs["by hand"] = happened(kind._replace(make=lambda data: HANDS[name]()), data)
        gap = compare(f"{name}, by hand", expected, jobs["by hand"]())
    for peer in PEERS:
        entry = None if missing(peer) else entries(peer).get(kind.same)
        if entry is not None and entry.close is not None:
            jobs[peer] = entry.job(data)
            if name not in SIMPLER:
                gap = max(gap or 0.0, compare(f"{name}, {peer}", expected, jobs[peer]()))
    times = best(jobs, N, 5)
    mine = times.pop("gradeq")
    ratios = {other: mine.cpu / took.cpu for other, took in times.items()}
    return Row(name, mine, ratios, kind.goal, SIMPLER.get(name, ""), gap)
