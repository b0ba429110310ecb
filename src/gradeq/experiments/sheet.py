"""A figure as data: panels of marks. It is drawn in one place and written as CSV in another, so both say the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

POINTS = 700  # of a line; more cannot be seen, and make the files heavy


class Look(NamedTuple):
    """How a series is told from the others, also in grey: colour, dashes and marker."""

    colour: str
    dash: str = "-"
    marker: str = ""
    width: float = 1.6


BEFORE = Look("#848992", "-", "", 1.8)
AFTER = Look("#0b5cad")
SECOND = Look("#b85200", "--")
THIRD = Look("#2b2f36", "-.")
TRUTH = Look("#191c20", ":", "", 1.8)
BOUND = Look("#b85200", "--")
PRINTED = Look("#848992", ":", "", 2.2)
UNDER = Look("#c3c8d0", "-", "", 4.5)  # what other lines are to follow: wide and pale, below them
RATES = (BEFORE, Look("#1b7f79", "-."), SECOND, AFTER)  # no step, then growing ones
DECAYS = (Look("#7a3e9d", "-", "v", 1.2), *RATES[1:])  # a constant step, then decaying ones
SERIES = (
    Look("#0b5cad", "-", "o"),
    Look("#b85200", "--", "s"),
    Look("#2b2f36", ":", "^"),
    Look("#1b7f79", "-.", "D"),
    Look("#7a3e9d", "-", "v"),
    Look("#848992", "--", "P"),
    Look("#a61e4d", ":", "X"),
    Look("#5a6b00", "-.", "*"),
)


class Series(NamedTuple):
    """One plotted series as it goes into the CSV."""

    name: str
    x: Any
    y: Any


class Line(NamedTuple):
    """A line through points; a quiet one is named in the CSV and not in the legend."""

    x: Any
    y: Any
    label: str = ""
    look: Look = AFTER
    quiet: bool = False

    def series(self) -> Iterator[Series]:
        """Its points."""
        yield Series(self.label or "line", self.x, self.y)


class Band(NamedTuple):
    """The room between two lines: what a series can be."""

    x: Any
    low: Any
    high: Any
    label: str = ""
    look: Look = AFTER

    def series(self) -> Iterator[Series]:
        """Its lower and its upper edge."""
        yield Series(f"{self.label}, least".lstrip(", "), self.x, self.low)
        yield Series(f"{self.label}, most".lstrip(", "), self.x, self.high)


class Dots(NamedTuple):
    """Points by themselves."""

    x: Any
    y: Any
    label: str = ""
    look: Look = AFTER
    names: tuple[str, ...] = ()

    def series(self) -> Iterator[Series]:
        """Its points."""
        yield Series(self.label or "points", self.x, self.y)


class Bars(NamedTuple):
    """Upright bars of a width, centred on x."""

    x: Any
    y: Any
    width: float
    label: str = ""
    look: Look = AFTER

    def series(self) -> Iterator[Series]:
        """Position and height."""
        yield Series(self.label or "bars", self.x, self.y)


class Stack(NamedTuple):
    """Areas on top of each other; one column of ``table`` per label."""

    x: Any
    table: Any
    labels: tuple[str, ...]
    looks: tuple[Look, ...]

    def series(self) -> Iterator[Series]:
        """Each area's own height."""
        for j, label in enumerate(self.labels):
            yield Series(label, self.x, self.table[:, j])


class Arrows(NamedTuple):
    """Arrows from (x, y) along (dx, dy)."""

    x: Any
    y: Any
    dx: Any
    dy: Any
    label: str = ""
    look: Look = SECOND

    def series(self) -> Iterator[Series]:
        """Where arrows begin and where they end."""
        yield Series(f"{self.label} from".strip(), self.x, self.y)
        yield Series(f"{self.label} to".strip(), self.x + self.dx, self.y + self.dy)


class Heat(NamedTuple):
    """A table of cells with a number in each; nan is left empty, and negative numbers have a colour of their own."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    table: Any
    digits: int = 2
    top: float = 1.0  # the number of the darkest cell

    def series(self) -> Iterator[Series]:
        """One series per row."""
        for name, values in zip(self.rows, self.table, strict=True):
            yield Series(name, np.array(self.columns), values)


class Level(NamedTuple):
    """A horizontal line across the panel: zero, a target."""

    y: float
    label: str = ""
    look: Look = Look("#9aa0a8", "-", "", 0.9)

    def series(self) -> Iterator[Series]:
        """Its height."""
        yield Series(self.label or "level", np.array([np.nan]), np.array([self.y]))


Mark = Line | Band | Dots | Bars | Stack | Arrows | Heat | Level


class Panel(NamedTuple):
    """Axes with marks; ``cells`` = (row, column, rows, columns) on the sheet's grid, else the next free cell."""

    title: str
    x: str
    y: str
    marks: Sequence[Mark]
    x_scale: str = "linear"
    y_scale: str = "linear"
    x_limits: tuple[Any, Any] | None = None
    y_limits: tuple[float | None, float | None] | None = None
    legend: str = "best"
    ticks: tuple[tuple[float, ...], tuple[str, ...]] | None = None
    square: bool = False
    cells: tuple[int, int, int, int] | None = None


class Sheet(NamedTuple):
    """Panels on a grid; ``size`` is width and height in inches."""

    panels: Sequence[Panel]
    grid: tuple[int, int]
    size: tuple[float, float]
    title: str = ""

    def series(self) -> Iterator[tuple[str, Series]]:
        """Every plotted series with the title of its panel."""
        for panel in self.panels:
            for mark in panel.marks:
                for series in mark.series():
                    yield panel.title, series


def course(y: Any, label: str, look: Look, x: Any = None, log: bool = False) -> Line:
    """A series over steps 1, 2, ... (or x) as a line, thinned evenly, or evenly on a logarithmic axis."""
    values = np.asarray(y)
    places = thinned(len(values), log)
    steps = np.arange(1, len(values) + 1) if x is None else np.asarray(x)
    return Line(steps[places], values[places], label, look)


def thinned(count: int, log: bool = False, most: int = POINTS) -> Any:
    """Up to ``most`` places among ``count``, the first and the last among them."""
    if count <= most:
        return np.arange(count)
    spaced = (
        np.geomspace(1, count, most).round().astype(int) - 1
        if log
        else np.linspace(0, count - 1, most).round().astype(int)
    )
    return np.unique(spaced)
