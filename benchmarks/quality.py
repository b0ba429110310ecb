"""``python -m benchmarks.quality [--rows N] [STREAM ...]``: how good the defaults are where labels come late.

Streams x delays x rules: bias overall, in the worst group, by group and month, and loss. What ``auto`` serves is held
against the plain program of its specification over the first N rows of every cell (2,000 unless told, 0: all).
Prints a table, and writes bench-out/quality.json and bench-out/quality.html.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality_delays import AT_ONCE, DELAYS
from benchmarks.quality_exact import gap
from benchmarks.quality_measures import Measured, measured
from benchmarks.quality_rules import RULES, YARDSTICK
from benchmarks.quality_streams import SHUFFLED, Stream, streams
from gradeq.equilibrium import HARM

OUT = Path("bench-out")
CLOSE = 1e-9
SETS = {"means and probabilities": ("real", "binary"), "quantiles at 0.9": ("quantile",)}


class Cell(NamedTuple):
    """One stream under one delay: what each rule reached, and what ``auto`` says of itself."""

    stream: str
    role: str
    kind: str
    delay: str
    rows: int
    rules: dict[str, Measured]
    gap: float  # from the plain program
    harmed: bool  # the loss over posted labels is above raw by more than 2 %
    says_harmed: bool
    verdict: str
    learning: str

    @property
    def late(self) -> bool:
        """Whether it is one of the cells that the targets speak of."""
        return self.delay != AT_ONCE and self.role != SHUFFLED

    def ratio(self, rule: str, measure: str, to: str = YARDSTICK) -> float:
        """A measure of one rule over that of another; nan where either is 0 (no group had enough rows)."""
        own, other = getattr(self.rules[rule], measure), getattr(self.rules[to], measure)
        return own / other if own > 0.0 and other > 0.0 else np.nan


def cells(wanted: list[str], rows: int) -> Iterator[Cell]:
    """Every stream under every delay, or those streams whose names contain one of ``wanted``."""
    for stream in streams():
        if not wanted or any(part in stream.name for part in wanted):
            for delay in DELAYS:
                yield one(stream, delay, rows)


def one(stream: Stream, delay: str, rows: int) -> Cell:
    """All rules over one cell."""
    comes = DELAYS[delay]
    due = None if comes is None else comes(stream)
    served = {name: rule(stream, due) for name, rule in RULES.items()}
    reached = served["auto"].layer.equilibrium()
    harmed = reached.loss_after > (1.0 + HARM) * reached.loss_before
    verdict = reached.verdict()
    return Cell(
        stream.name, stream.role, stream.kind, delay, len(stream.y),
        {name: measured(stream, own.values) for name, own in served.items()},
        gap(stream, due, served["auto"].values, rows or len(stream.y)),
        bool(harmed), "worse than raw by" in verdict, verdict, str(reached.learning),
    )  # fmt: skip


def typical(ratios: Iterable[float]) -> float:
    """The geometric mean of those that are known."""
    known = [ratio for ratio in ratios if ratio == ratio]
    return float(np.exp(np.mean(np.log(known)))) if known else np.nan


def lines(found: list[Cell]) -> Iterator[str]:
    """The rules of some cells: each measure over that of the yardstick, and the worst loss over raw."""
    head = ("overall", "worst group", "group-month", "loss", "better than it in loss", "worst / raw")
    yield (f"  {'':<14}" + "".join(f"{name:>14}" for name in head[:4]) + f"{head[4]:>24}{head[5]:>13}")
    for rule in RULES:
        each = [typical(cell.ratio(rule, name) for cell in found) for name in Measured._fields]
        won = sum(cell.ratio(rule, "loss") < 1.0 for cell in found)
        worst = max(cell.ratio(rule, "loss", "raw") for cell in found)
        numbers = "".join(f"{ratio:>14.3f}" for ratio in each)
        yield f"  {rule:<14}{numbers}{f'{won}/{len(found)}':>24}{worst:>13.3f}"


def targets(found: list[Cell]) -> Iterator[tuple[bool, str]]:
    """What must hold, and whether it does."""
    widest = max(cell.gap for cell in found)
    yield (widest <= CLOSE, f"auto is the plain program of its specification: differs by {widest:.1e}")
    for title, kinds in SETS.items():
        late = [cell for cell in found if cell.late and cell.kind in kinds]
        if late:
            each = {
                name.replace("_", " "): typical(cell.ratio("auto", name) for cell in late)
                for name in ("worst_group", "group_month", "loss")
            }
            said = ", ".join(f"{name} {ratio:.3f}" for name, ratio in each.items())
            better = all(not ratio >= 1.0 for ratio in each.values())
            yield better, f"{title}, {len(late)} late cells: auto over {YARDSTICK}: {said}"
    harmed = [cell for cell in found if cell.harmed]
    quiet = [cell for cell in found if cell.harmed != cell.says_harmed]
    yield (not quiet, f"{len(harmed)} cells cost more than 2 % of the raw loss; auto says so in all but {len(quiet)}")
    outages = [cell for cell in found if "outage" in cell.delay]
    mute = [cell for cell in outages if "labels: " not in cell.verdict]
    names = f" ({', '.join(sorted({cell.stream for cell in mute}))})" if mute else ""
    yield not mute, f"{len(outages)} outages; auto's verdict tells of all but {len(mute)}{names}"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("streams", nargs="*")
    given = parser.parse_args()
    found = []
    for cell in cells(given.streams, given.rows):
        found.append(cell)
        own = ", ".join(f"{name} {cell.ratio('auto', name):.3f}" for name in Measured._fields)
        print(f"{cell.kind:<8} {cell.stream:<34} {cell.delay:<18} {own}", flush=True)
    print(f"\nEach measure over that of {YARDSTICK}, geometric means; late cells")
    for title, kinds in SETS.items():
        late = [cell for cell in found if cell.late and cell.kind in kinds]
        if late:
            print(f"\n{title}, {len(late)} cells", *lines(late), sep="\n")
    held = list(targets(found))
    print("", *(f"{'met   ' if ok else 'MISSED'}  {text}" for ok, text in held), sep="\n")
    write(found, held)


def write(found: list[Cell], held: list[tuple[bool, str]]) -> None:
    """The figures as JSON and the page."""
    from benchmarks.quality_page import late_page

    OUT.mkdir(exist_ok=True)
    rows: list[Any] = [
        cell._asdict() | {"rules": {name: own._asdict() for name, own in cell.rules.items()}} for cell in found
    ]
    told = [{"met": ok, "target": text} for ok, text in held]
    text = json.dumps({"targets": told, "cells": rows}, indent=1)
    (OUT / "quality.json").write_text(text + "\n", encoding="utf-8")
    (OUT / "quality.html").write_text(late_page(found, held), encoding="utf-8")
    print(f"\nWritten: {OUT / 'quality.json'}, {OUT / 'quality.html'}")


if __name__ == "__main__":
    main()
