"""Whole columns end to end: a layer's ``run`` from arrays, accounts and checks included, beside C and river."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.c_loops import in_c, library
from benchmarks.cases import COLUMNS, ran
from benchmarks.inputs import Data
from benchmarks.peers.by_river import DOES
from benchmarks.peers.systems import missing
from benchmarks.timing import Row, Took, best, compare, once

SHORT = 4_000
SAME = {  # text is looked up by us alone; river is given the numbers
    "groups, text": "groups, integers",
    "groups, arrow dictionary": "groups, integers",
    "keyed, text": "keyed, integers",
}
WITH_RIVER = set() if missing("river") else {name for name, own in DOES.items() if own.close is not None}


def main() -> Iterator[Row]:
    os.environ["GRADEQ_COMPILE"] = "1"  # in memory, as in a process that serves for long
    c = library()
    if c is None:
        print("  no C compiler: the ratios to C are left out")
    if not WITH_RIVER:
        print("  river is not installed: the ratios to it are left out")
    made: dict[int, Data] = {}
    rivals: dict[str, Any] = {}
    for name in COLUMNS:
        yield measured(name, c, made, rivals)
    del os.environ["GRADEQ_COMPILE"]


def measured(name: str, c: Any, made: dict[int, Data], rivals: dict[str, Any]) -> Row:
    """One case: outputs compared in every row, then timed; river once for each recurrence, since it takes seconds."""
    case = COLUMNS[name]
    for n in (case.rows, SHORT):
        made.setdefault(n, Data(n))
    data, few = made[case.rows], made[SHORT]
    jobs, ratios, gap = {"gradeq": ran(case, data)}, {}, None
    expected = jobs["gradeq"]()
    yard = None if c is None else in_c(c, name, data)
    if yard is not None:
        jobs["C"] = yard
        gap = compare(f"{name}, C", expected, yard())
    times = best(jobs, case.rows, 3 if case.rows < 1_000_000 else 5)
    ours = times["gradeq"]
    if yard is not None:
        ratios["C"] = times["C"].cpu / ours.cpu
    same = SAME.get(name, name)
    if same not in rivals:
        rivals[same] = timed_river(same, data)
    theirs = rivals[same]
    if theirs is not None:
        gap = max(gap or 0.0, compare(f"{name}, river", expected, theirs[1]))
        ratios["river"] = theirs[0].cpu / ours.cpu
    short = best(at_short(name, case, few), SHORT, 3)
    if "river" in short:
        ratios["river at 4e3"] = short["river"].cpu / short["gradeq"].cpu
    told = f"{short['gradeq'].cpu:,.0f} ns at 4e3"
    size = "" if case.rows == 1_000_000 else f", {case.rows:,} rows"
    return Row(name + size, ours, ratios, goal(case.goal, ours, ratios), told, gap)


def timed_river(name: str, data: Data) -> tuple[Took, Any] | None:
    """What river takes for a row, and what it served."""
    if name not in WITH_RIVER:
        return None
    rival = DOES[name].job(data)
    kept: list[float] = []
    return once(lambda: kept.extend(rival()), data["n"]), np.array(kept)


def at_short(name: str, case: Any, few: Data) -> dict[str, Any]:
    """The same jobs at 4,000 rows."""
    jobs = {"gradeq": ran(case, few)}
    same = SAME.get(name, name)
    return jobs | {"river": DOES[same].job(few)} if same in WITH_RIVER else jobs


def goal(told: str, ours: Took, ratios: dict[str, float]) -> str:
    """The goal, and whether it is met."""
    if not told:
        return ""
    met = ours.cpu <= float(told.split()[1]) and ratios.get("river", 100.0) >= 100.0
    river = ", >= 100x river" if "river" in ratios else ""
    return f"{told}{river}: {'met' if met else 'missed'}"
