"""Many series: which are worst and which are widest, how errors spread over them, and a table of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gradeq.cli.measure import WEIGHT, GroupSums, scaled
from gradeq.cli.outcome import bound_of
from gradeq.cli.task import Parsed, Task
from gradeq.files.codebook import Names
from gradeq.files.numbers import Floats
from gradeq.layers.keytable import KeyTable, key_table
from gradeq.report.of_keys import WORST, compared
from gradeq.report.thin import GroupBlocks

FOLLOWED = 2000  # series that are drawn over time, the first to appear


class SeriesSums:
    """What the layer's own table does not know of a run: mean label and mean width, series by series."""

    def __init__(self, task: Task, drawn: tuple[str, ...] = ()) -> None:
        self.task = task
        # A parameter is a series only where series have no groups or features of their own.
        self.alone = not (task.by or task.features)
        told = ["label"] if drawn else []  # by the report alone
        wide = ["width_before", "width_after"] if task.several else []
        names = [*told, *wide] if self.alone else []
        self.weighted = bool(names) and task.common.weight is not None
        self.sums = GroupSums(names, self.weighted)
        self.blocks = GroupBlocks(drawn, FOLLOWED, 128) if drawn and self.alone else None

    def add(
        self, layer: Any, rows: Parsed, served: Floats, x: Floats, judged: dict[str, Floats]
    ) -> None:
        """Take a piece that was served: its labelled rows, with their x and measures."""
        from gradeq.frames import coded

        if not self.sums.names:
            return
        book = layer._names.book
        counted = rows.counted
        codes = coded(rows.piece.cells(self.task.key or ""), "key", book)[counted]
        columns = {"label": rows.y[counted]}
        if self.task.several:
            for name, ends in (("width_before", rows.base), ("width_after", served)):
                columns[name] = (ends[:, -1] - ends[:, 0])[counted]
        weights = None if rows.weights is None else rows.weights[counted]
        self.sums.add(codes, columns, len(book), weights)
        if self.blocks is not None:
            drawn = {name: scaled(judged, name, weights) for name in self.blocks.names}
            self.blocks.add(codes, drawn, x)

    def means(self, name: str, keys: int) -> Floats:
        """The mean of a column for each of so many series, nan where there were no rows."""
        found: Floats = np.full(keys, np.nan)
        total = self.sums.totals(name)[:keys]
        weight = (self.sums.totals(WEIGHT) if self.weighted else self.sums.rows)[:keys]
        np.divide(total, weight, out=found[: len(total)], where=weight > 0)
        return found


@dataclass(frozen=True)
class Series:
    """The series of a run: their table since the state began, the order of the worst and of the widest, the spread.

    ``judged``: how many have enough labels (or any, where none has); errors are spread over these.
    """

    table: KeyTable
    sums: SeriesSums
    judged: Any
    worst: Any
    widest: Any
    wide: Floats | None

    @property
    def same_rows(self) -> bool:
        """Whether widths, of the labelled rows of this run, are of the labels that the rest of the table is about."""
        return np.array_equal(self.sums.sums.rows, self.table.rows)

    @property
    def fewest(self) -> int:
        """Labels that each judged series has at least."""
        return int(self.table.rows[self.judged].min(initial=np.iinfo(np.int64).max))

    @property
    def sizes(self) -> Floats:
        """How far each judged series is off, without sign."""
        found: Floats = np.abs(self.table.error[self.judged])
        return found

    def spread(self) -> dict[str, float]:
        """Mean, median and the tenth that is farthest off."""
        sizes = self.sizes
        if not len(sizes):
            return {}
        middle, far = np.quantile(sizes, (0.5, 0.9)).tolist()
        return {"mean": float(sizes.mean()), "median": middle, "farthest_tenth": far}


def series_of(task: Task, layer: Any, sums: SeriesSums) -> Series:
    """Rank the series of a layer of many keys."""
    table = key_table(layer, Names(layer._names.book) if sums.alone else None)
    judged = compared(table.rows)
    error = np.abs(table.error[judged])
    wide = None
    by = np.nan_to_num(table.loss[judged])
    if task.several and sums.alone:
        widths = sums.means("width_after", len(table.rows))
        if np.isfinite(widths[judged]).any():  # none has one where all labels come later
            wide, by = widths, np.nan_to_num(widths[judged])
    return Series(table, sums, judged, judged[top(error)], judged[top(by)], wide)


def top(sizes: Floats) -> Any:
    """The places of the ten largest, largest first, ties in order of appearance."""
    first = (
        np.argpartition(-sizes, WORST - 1)[:WORST] if len(sizes) > WORST else np.arange(len(sizes))
    )
    return first[np.lexsort((first, -sizes[first]))]


def columns_of(task: Task, table: KeyTable, sums: SeriesSums) -> dict[str, Any]:
    """The columns of --keys-out; those of ``Keyed.table().to_frame()``, then the widths of an interval."""
    found = table.columns()
    if task.several and sums.alone:
        keys = len(table.rows)
        found["width_before"] = sums.means("width_before", keys)
        found["width_after"] = sums.means("width_after", keys)
    return found


def bound_of_key(
    task: Task, layer: Any, series: Series, j: int
) -> tuple[float | None, bool | None]:
    """The bound of one series and whether it is vacuous; none where a series has parameters of its own."""
    if not series.sums.alone:
        return None, None
    return bound_of(task, layer.equilibrium(series.table.keys[j]).coordinates)
