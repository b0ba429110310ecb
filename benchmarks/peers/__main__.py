"""``python -m benchmarks.peers [PART ...]``: gradeq beside what a user would pick instead, in one run.

Parts: columns, events, files, growth, quality; all without a name. ``--only WORD`` runs the tasks of columns with
that word in their title. Prints tables, and writes bench-out/peers.json, peers.html and peers.md (the tables for the
documentation). ``make bench-peers`` installs the peers first.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.peers import said
from benchmarks.peers.goals import goals
from benchmarks.peers.growth import growths
from benchmarks.peers.latency import latencies
from benchmarks.peers.page import whole
from benchmarks.peers.program import TASKS
from benchmarks.peers.race import Result, race
from benchmarks.peers.systems import SYSTEMS, missing, versions
from benchmarks.peers.tables import filed

PARTS = "columns", "events", "files", "growth", "quality"
OUT = Path("bench-out")


def main() -> None:
    reader = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    reader.add_argument("part", nargs="*", choices=[*PARTS, []], help="all without a name")
    reader.add_argument("--only", default="", help="tasks of columns whose title has this word")
    given = reader.parse_args()
    parts = given.part or PARTS
    able = [name for name in SYSTEMS if not said_missing(name)]
    kept: dict[str, list[Any]] = {part: [] for part in PARTS}
    tables = []
    jobs: dict[str, tuple[Any, ...]] = {
        "columns": (lambda: raced(able, given.only), said.of_tasks, said.of_columns),
        "events": (lambda: latencies(able), said.of_events),
        "files": (lambda: filed(able), said.of_files),
        "growth": (lambda: growths(able), said.of_growth),
    }
    for part, (job, *makers) in jobs.items():
        if part in parts:
            kept[part] = list(told(part, job()))
            tables += [make(kept[part]) for make in makers]
            print(*(said.text(own) for own in tables[-len(makers) :]), sep="\n", flush=True)
    held = list(goals(kept["columns"], kept["events"], kept["files"]))
    print("\nGoals", *(f"  {'met   ' if goal.met else 'missed'}  {goal}" for goal in held), sep="\n")
    real = quality() if "quality" in parts else {}
    write(kept, tables, held, real)


def said_missing(system: str) -> bool:
    """Whether a system cannot run here; says so in one line."""
    why = missing(system)
    if why:
        print(f"{system} is left out: {why}", flush=True)
    return bool(why)


def raced(able: list[str], word: str) -> Iterator[Result]:
    """The tasks of columns, one after the other."""
    for title, task in TASKS.items():
        if word in title:
            print(f"  columns: {title}", file=sys.stderr, flush=True)
            yield from race(title, task.name, [s for s in able if s not in task.without], **task.sizes)


def told(part: str, found: Iterable[Any]) -> Iterator[Any]:
    """What is found; a line on the terminal for each, so that one sees how far it is."""
    for own in found:
        if part != "columns":
            print(f"  {part}: {own[0]}, {own[1]}", file=sys.stderr, flush=True)
        yield own


def quality() -> dict[str, Any]:
    """The real streams, where their data are."""
    if "GRADEQ_DATA" not in os.environ:
        print("\nquality is left out: GRADEQ_DATA names no folder with the data sets")
        return {}
    from benchmarks.real.run import found

    return found(())


def write(kept: dict[str, list[Any]], tables: list[Any], held: list[Any], real: dict[str, Any]) -> None:
    """The figures, the page, and the tables for the documentation."""
    OUT.mkdir(exist_ok=True)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    figures = {part: [own._asdict() for own in found] for part, found in kept.items() if found}
    goals_kept = [{"goal": str(goal), "met": goal.met} for goal in held]
    everything = {"machine": machine, "versions": versions(), **figures, "goals": goals_kept, "quality": real}
    (OUT / "peers.json").write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
    (OUT / "peers.html").write_text(whole(kept["columns"], tables, held, real, machine), encoding="utf-8")
    pages = [f"## {table.title}\n\n{said.markdown(table)}\n" for table in tables]
    (OUT / "peers.md").write_text("\n".join(pages), encoding="utf-8")
    print(f"\nWritten: {OUT}/peers.json, peers.html, peers.md")


if __name__ == "__main__":
    main()
