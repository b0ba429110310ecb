"""Errors of groups month by month, for the heat map of a run with dates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradeq.cli.measure import WEIGHT, GroupSums
from gradeq.cli.outcome import GroupLine
from gradeq.files.numbers import Floats
from gradeq.report.charts import HeatMap, HeatRow
from gradeq.report.numerals import MONTHS

MOST_MONTHS = 1200  # followed; a longer span of dates has no heat map
MOST_PERIODS = 24
MOST_GROUPS = 12
LEAST = 10  # labels of a cell that is drawn
SPANS = (1, 3, 12, 60, 120)  # months in a period


class Months:
    """Sums of a measure before and after, by group and month, for the columns of groups."""

    def __init__(self, names: tuple[str, ...], columns: int, weighted: bool) -> None:
        self.names = tuple(name for name in names if name != WEIGHT)
        self.weighted = weighted
        self.columns: list[dict[int, GroupSums]] = [{} for _ in range(columns)]

    def add(
        self, codes: Sequence[Any], columns: Mapping[str, Floats], x: Floats, w: Floats | None
    ) -> None:
        """Take rows: seconds since 1970, group codes of each column, measures, weights."""
        months = x.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
        for month in np.unique(months).tolist():
            mine = months == month
            own = {name: columns[name][mine] for name in self.names}
            weights = None if w is None else w[mine]
            for sums, code in zip(self.columns, codes, strict=True):
                if month not in sums and len(sums) >= MOST_MONTHS:
                    continue
                cell = sums.setdefault(month, GroupSums(self.names, self.weighted))
                part = code[mine]
                cell.add(part, own, int(part.max(initial=-1)) + 1, weights)

    def heat(self, lines: Sequence[GroupLine], by: Sequence[str], target: float) -> HeatMap | None:
        """The map of the groups with most rows; months are joined until there are at most 24 periods."""
        months = sorted({month for sums in self.columns for month in sums})
        if len(months) < 2 or len(months) >= MOST_MONTHS:
            return None
        span = next((s for s in SPANS if _periods(months, s) <= MOST_PERIODS), None)
        if span is None:
            return None
        first = months[0] // span
        periods = _periods(months, span)
        kept = sorted(lines, key=lambda line: -line.counted)[:MOST_GROUPS]
        rows = []
        for column, name in enumerate(by):
            own = [line for line in lines if line.by == name]
            for code, line in enumerate(own):
                if line in kept and line.counted:
                    cells = [_Cell() for _ in range(periods)]
                    for month, sums in self.columns[column].items():
                        cells[month // span - first].add(sums, code, self.names)
                    rows.append(
                        HeatRow(
                            name, line.value, tuple(cell.rows for cell in cells),
                            tuple(cell.mean(0, target) for cell in cells),
                            tuple(cell.mean(1, target) for cell in cells),
                        )
                    )  # fmt: skip
        names = tuple(_named((first + i) * span, span) for i in range(periods))
        return HeatMap(names, tuple(rows)) if rows and periods > 1 else None


class _Cell:
    """One group in one period."""

    def __init__(self) -> None:
        self.rows, self.whole, self.sums = 0, 0.0, [0.0, 0.0]

    def add(self, sums: GroupSums, code: int, names: Sequence[str]) -> None:
        if code >= len(sums.rows):
            return
        self.rows += int(sums.rows[code])
        self.whole += sums.total(code, WEIGHT) if sums.weighted else float(sums.rows[code])
        for i, name in enumerate(names):
            self.sums[i] += sums.total(code, name)

    def mean(self, i: int, target: float) -> float | None:
        enough = self.rows >= LEAST and self.whole > 0.0
        return self.sums[i] / self.whole - target if enough else None


def _periods(months: Sequence[int], span: int) -> int:
    return months[-1] // span - months[0] // span + 1


def _named(month: int, span: int) -> str:
    """The name of a period that begins with a month counted from January 1970."""
    year, index = 1970 + month // 12, month % 12
    if span == 1:
        return f"{MONTHS[index][:3]} {year}"
    if span == 3:
        return f"Q{index // 3 + 1} {year}"
    return str(year) if span == 12 else f"{year} to {year + span // 12 - 1}"
