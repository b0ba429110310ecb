"""What a state remembers of the runs on it: their numbers, contents and outputs, and the last time seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradeq.errors import BadInput, StateError
from gradeq.spans import comparable

RUNS = 100  # remembered; the content of an older one is not recognised
AGAIN = "give --again if that is meant"


@dataclass
class Desk:
    """The runs on a state; ``again``: rows that were seen before are let through, and the state says so.

    ``runs``: number, content, rows and outputs (path and SHA-256) of the last runs. ``times``: the last time of a
    row and of a label, and what kind of time it is.
    """

    layer: Any
    again: bool = False
    runs: list[tuple[int, str, int, list[tuple[str, str]]]] = field(default_factory=list)
    times: dict[str, Any] = field(default_factory=dict)
    overridden: list[str] = field(default_factory=list)
    looked_ahead: str = ""
    columns: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, layer: Any, again: bool = False) -> Desk:
        """That of a layer, read from its state."""
        desk = layer._book.desk
        try:
            runs = [
                (
                    int(n),
                    str(content),
                    int(rows),
                    [(str(path), str(mark)) for path, mark in outputs],
                )
                for n, content, rows, outputs in desk.get("runs", [])
            ]
            times = dict(desk.get("times", {}))
            known: dict[str, Any] = {"kind": str, "row": (int, float), "label": (int, float)}
            if not all(isinstance(times[name], known[name]) for name in times):
                raise ValueError("a time is none")
            if not isinstance(desk.get("columns", {}), dict):
                raise ValueError("columns have names")
        except (KeyError, TypeError, ValueError):
            raise StateError(
                "the state is damaged: what it says of its runs makes no sense"
            ) from None
        return cls(layer, again, runs, times)

    @property
    def number(self) -> int:
        """The number of the last run."""
        return self.runs[-1][0] if self.runs else 0

    def seen(self, what: str, remedy: str = AGAIN) -> None:
        """Refuse what was seen before, unless that is meant."""
        if not self.again:
            raise BadInput(f"{what}; {remedy}")
        self.overridden.append(what)

    def check_start(self, first: Any, shown: Any) -> None:
        """Refuse rows from before the last one seen; note those from before a label that was learned from."""
        last = self.times.get("row")
        if last is not None and first < last:
            self.seen(
                f"the first time here is {shown(first)}, before {shown(last)}, the last one that the state has seen"
            )
        label = self.times.get("label")
        if label is not None and first < label and (last is None or first >= last):
            self.looked_ahead = f"{shown(first)}, labels known at {shown(label)}"

    def check_kind(self, option: str, kind: str | None) -> None:
        """Refuse times of another kind than before: dates after numbers, or with a zone after dates without."""
        before = self.times.get("kind")
        if not comparable(before, kind):
            raise BadInput(
                f"{option} holds {kind} here, and times were {before} before; "
                "write them in one way, or use another state"
            )

    def check_content(self, content: str) -> None:
        """Refuse rows that one of the last runs had."""
        for number, known, rows, outputs in reversed(self.runs):
            if known == content:
                wrote = f" and wrote {', '.join(path for path, _ in outputs)}" if outputs else ""
                self.seen(
                    f"the state has seen these {rows:,} rows: run {number} served them{wrote}"
                )
                return

    def note_time(self, name: str, value: Any, kind: str | None) -> None:
        """The last time of a row, or of a label."""
        number = value.item() if isinstance(value, np.generic) else value
        self.times = {**self.times, "kind": kind}
        self.times[name] = max(number, self.times.get(name, number))

    def check_columns(self, columns: dict[str, Any], timed: bool) -> None:
        """Refuse other columns than those of the runs before: their rows would be mixed with others."""
        known = self.layer._book.desk.get("columns", {})
        for option, name in columns.items():
            if option in known and known[option] != name:
                self.seen(
                    f"the state was made with {option} {told_columns(known[option])}, this run has "
                    f"{told_columns(name)}",
                    "use the same column or another state file, or give --again if it was renamed",
                )
        if "row" in self.times and not timed:
            self.seen(
                "the rows of this state have times",
                "give --time as before, or --again to go on without",
            )
        self.columns = columns

    def lay_down(self, content: str, rows: int, outputs: list[tuple[str, str]]) -> None:
        """Enter this run into the layer's book, to be saved with the state."""
        served = [
            run for run in self.runs if run[1]
        ]  # labels have no content: twice the same are duplicates
        self.runs = [*served[1 - RUNS :], (self.number + 1, content, rows, outputs)]
        desk = self.layer._book.desk
        desk["runs"] = [list(run) for run in self.runs]
        if self.times:
            desk["times"] = self.times
        if self.columns:
            desk["columns"] = self.columns
        for what in self.overridden:
            self.layer._note(f"again: {what}")


def told_columns(names: Any) -> str:
    """A column, or several."""
    if names is None:
        return "(none)"
    return ", ".join(map(str, names)) if isinstance(names, list) else str(names)
