"""The parameters of an equilibrium as a table: the same cells as lines of text and in a notebook."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gradeq.equilibrium import Coordinate, Coordinates, figure, limit
from gradeq.tables import aligned

SHOWN = 20  # rows of a printed table


class Cells(NamedTuple):
    """The head of a table, its rows, and what is said of those left out."""

    head: list[str]
    rows: list[list[str]]
    rest: str


def cells_of(coordinates: Sequence[Coordinate]) -> Cells:
    """The coordinates that are farthest off, largest first, without the columns that nobody filled."""
    known = coordinates if isinstance(coordinates, Coordinates) else None
    left = [remaining(c) for c in coordinates] if known is None else known.column("bias_after")
    order = heapq.nsmallest(SHOWN, range(len(left)), key=lambda i: -abs(left[i]))
    worst = [coordinates[i] for i in order]
    columns: list[tuple[str, Callable[[Coordinate], str], str]] = [
        ("", lambda c: c.name[:32], "name"),
        ("rows", lambda c: f"{c.rows:,}", ""),
        ("average gradient", lambda c: figure(c.average_gradient), ""),
        ("penalty", lambda c: figure(c.average_penalty or None), "average_penalty"),
        ("normal", lambda c: figure(c.average_normal or None), "average_normal"),
        ("bias before", lambda c: figure(c.bias_before), ""),
        ("after", lambda c: figure(c.bias_after), ""),
        ("loss before", lambda c: figure(c.loss_before), ""),
        ("after", lambda c: figure(c.loss_after), ""),
        ("bound", _bound, ""),
    ]
    filled = []
    for head, shown, name in columns:
        cells = [shown(c) for c in worst]
        others = known.column(name) if known and name else map(shown, () if known else coordinates)
        if any(cells) or any(others):
            filled.append((head, cells))
    rows = [[cells[i] for _, cells in filled] for i in range(len(worst))]
    more = len(left) - SHOWN
    return Cells(
        [head for head, _ in filled], rows, f"... and {more:,} with less" if more > 0 else ""
    )


def _bound(c: Coordinate) -> str:
    if c.bound is None:
        return ""
    return "none yet" if c.vacuous else limit(c.bound)


def table_lines(coordinates: Sequence[Coordinate]) -> list[str]:
    """The same as lines of text."""
    head, rows, rest = cells_of(coordinates)
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [aligned(cells, widths) for cells in (head, *rows)]
    return [*lines, rest] if rest else lines


def remaining(c: Coordinate) -> float:
    """What is left of the error: its bias if known, else its residual."""
    return c.bias_after if c.bias_after is not None else c.residual
