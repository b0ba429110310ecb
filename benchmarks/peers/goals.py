"""What was aimed at, and whether it is met in this run; where it is not, why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.peers.latency import Latency
from benchmarks.peers.race import Result
from benchmarks.peers.said import figure
from benchmarks.peers.systems import OURS
from benchmarks.peers.tables import ALONE, Filed

ACCOUNTS = (
    "the loop in C only serves; a layer also checks its input and keeps sums of gradients, losses and ranges, "
    "without which there is no certificate"
)
NAMES = "looking series up and keeping their accounts costs more than the arithmetic"
FIXED = "at so few rows the fixed cost of a run, up to a millisecond, is most of what is measured"
GAMES = "names are looked up, and the accounts of bias, bounds and drift cost more than the ratings"
OBJECTS = "Python objects for ticket, posting and accounts of each event"
COLUMNS = "numbers and text of a million series are looked up, and the run compiles"


class Goal(NamedTuple):
    """A line: what, the figure, whether it is met, and why not."""

    what: str
    figure: float
    met: bool
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {figure(self.figure)}" + ("" if self.met else f" ({self.why})")


def at_least(what: str, figure: float, least: float, why: str) -> Goal:
    return Goal(f"{what} >= {least:,.10g}", figure, figure >= least, why)


def at_most(what: str, figure: float, most: float, why: str) -> Goal:
    return Goal(f"{what} <= {most:,.10g}", figure, figure <= most, why)


def goals(columns: Sequence[Result], events: Sequence[Latency], files: Sequence[Filed]) -> Iterator[Goal]:
    """Those that this run can tell."""
    for own in columns:
        if own.cpu is None:
            continue
        if own.system == OURS:
            yield from of_ours(own, max(x.rows for x in columns if x.task == own.task))
        elif own.ours is not None:
            yield from of_peers(own, own.cpu / own.ours)
    for event in events:
        if event.system == OURS and event.kind == "scalar":
            rate = 1e6 / event.cpu
            yield at_least("events of one parameter in a second", rate, 1_000_000, OBJECTS)
    alone = {(own.task, own.rows): own for own in files if own.system == ALONE}
    for own_file in files:
        if own_file.system.startswith("gradeq"):
            times = own_file.cpu / alone[own_file.task, own_file.rows].cpu
            yield at_most(f"{own_file.task}, {own_file.rows:,} rows, over reading and writing", times, 2.0, COLUMNS)
            yield at_most(f"{own_file.task}, {own_file.rows:,} rows, MB", own_file.megabytes, 600, COLUMNS)


def of_ours(own: Result, most: int) -> Iterator[Goal]:
    """Against the C loop and the pass over memory, at the full number of rows."""
    if own.rows != most or own.cpu is None:
        return
    if "series" in own.task:
        if own.memory is not None and own.rows >= 10_000_000:
            yield at_least(f"{own.task}: speed over a pass over memory", own.memory / own.cpu, 0.35, NAMES)
    elif own.loop is not None and "names" not in own.task and "leaderboard" not in own.task:
        least = 0.6 if own.task.startswith(("quantile", "Elo")) else 0.9
        yield at_least(f"{own.task}: speed over the C loop", own.loop / own.cpu, least, ACCOUNTS)


def of_peers(own: Result, times: float) -> Iterator[Goal]:
    """How many times faster than another system on the same rows."""
    if own.system == "torch loop":
        yield at_least(f"{own.task}: times as fast as the torch loop", times, 5_000, FIXED)
    elif own.system in ("river", "riix", "evalica") and own.gap is not None:
        why = GAMES if "players" in own.task else NAMES if "series" in own.task else ACCOUNTS
        yield at_least(f"{own.task}: times as fast as {own.system}", times, 100, why)
    elif own.task.startswith("23 levels") and own.system == "scikit-learn":
        yield at_least(f"{own.task}: times as fast as isotonic regression row by row", times, 1_000, ACCOUNTS)
