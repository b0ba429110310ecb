"""Figures as data: sheets of panels with marks, and their points as CSV."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

POINTS = 700  # most points per line: more cannot be seen and make large files
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Values = npt.NDArray[Any]  # numbers, dates or texts


@dataclass(frozen=True)
class Look:
    """Colour, dashes and marker of a series; series differ in grey as well."""

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
UNDER = Look("#c3c8d0", "-", "", 4.5)  # wide and pale, below the lines that should follow it
RATES = (BEFORE, Look("#1b7f79", "-."), SECOND, AFTER)  # no step, then growing steps
DECAYS = (Look("#7a3e9d", "-", "v", 1.2), *RATES[1:])  # a constant step, then decaying steps
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


class PlottedSeries(NamedTuple):
    """One plotted series of the CSV."""

    name: str
    x: Values
    y: Values


class Mark(ABC):
    """Something drawn on a panel."""

    label: str = ""
    look: Look = AFTER

    @abstractmethod
    def series(self) -> Iterator[PlottedSeries]: ...


@dataclass(frozen=True, eq=False)
class _Points(Mark):
    x: Values
    y: Values
    label: str = ""
    look: Look = AFTER
    kind: ClassVar[str] = "line"

    def series(self) -> Iterator[PlottedSeries]:
        yield PlottedSeries(self.label or self.kind, self.x, self.y)


@dataclass(frozen=True, eq=False)
class Line(_Points):
    """A line through points; the legend omits it if ``quiet``."""

    quiet: bool = False


@dataclass(frozen=True, eq=False)
class Dots(_Points):
    """Single points, optionally with a name next to each."""

    names: tuple[str, ...] = ()
    kind: ClassVar[str] = "points"


@dataclass(frozen=True, eq=False)
class Bars(_Points):
    """Vertical bars centred on x."""

    width: float = 1.0
    kind: ClassVar[str] = "bars"


@dataclass(frozen=True, eq=False)
class Band(Mark):
    """The area between two lines."""

    x: Values
    low: Values
    high: Values
    label: str = ""
    look: Look = AFTER

    def series(self) -> Iterator[PlottedSeries]:
        yield PlottedSeries(f"{self.label}, least".lstrip(", "), self.x, self.low)
        yield PlottedSeries(f"{self.label}, most".lstrip(", "), self.x, self.high)


@dataclass(frozen=True, eq=False)
class Stack(Mark):
    """Stacked areas; one column of ``table`` per label."""

    x: Values
    table: Values
    labels: tuple[str, ...]
    looks: tuple[Look, ...]

    def series(self) -> Iterator[PlottedSeries]:
        for label, column in zip(self.labels, self.table.T, strict=True):
            yield PlottedSeries(label, self.x, column)


@dataclass(frozen=True, eq=False)
class Arrows(Mark):
    """Arrows from (x, y) along (dx, dy)."""

    x: Values
    y: Values
    dx: Values
    dy: Values
    label: str = ""
    look: Look = SECOND

    def series(self) -> Iterator[PlottedSeries]:
        yield PlottedSeries(f"{self.label} from".strip(), self.x, self.y)
        yield PlottedSeries(f"{self.label} to".strip(), self.x + self.dx, self.y + self.dy)


@dataclass(frozen=True, eq=False)
class Heat(Mark):
    """A table of coloured cells, each with its number unless it is nan."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    table: Values
    digits: int = 2
    top: float = 1.0  # of the darkest colour

    def series(self) -> Iterator[PlottedSeries]:
        for name, values in zip(self.rows, self.table, strict=True):
            yield PlottedSeries(name, np.array(self.columns), values)


@dataclass(frozen=True, eq=False)
class Level(Mark):
    """A horizontal line across the panel: zero, a target."""

    y: float
    label: str = ""
    look: Look = Look("#9aa0a8", "-", "", 0.9)

    def series(self) -> Iterator[PlottedSeries]:
        yield PlottedSeries(self.label or "level", np.array([np.nan]), np.array([self.y]))


Limits = tuple[float | None, float | None]


@dataclass(frozen=True, eq=False)
class Panel:
    """Axes with marks; ``cells`` = (row, column, rows, columns) on the sheet's grid, by default the next cell."""

    title: str
    x: str
    y: str
    marks: Sequence[Mark]
    x_scale: str = "linear"
    y_scale: str = "linear"
    x_limits: Limits | None = None
    y_limits: Limits | None = None
    legend: str = "best"
    ticks: tuple[tuple[float, ...], tuple[str, ...]] | None = None
    square: bool = False
    cells: tuple[int, int, int, int] | None = None


@dataclass(frozen=True, eq=False)
class Sheet:
    """Panels on a grid; ``size`` is width and height in inches."""

    panels: Sequence[Panel]
    grid: tuple[int, int]
    size: tuple[float, float]
    title: str = ""


def course(y: Values, label: str, look: Look, x: Values | None = None, log: bool = False) -> Line:
    """A thinned line over x (by default 1, 2, ...); ``log``: points are evenly spaced on a logarithmic axis."""
    places = thinned(len(y), log)
    steps = np.arange(1, len(y) + 1) if x is None else x
    return Line(steps[places], y[places], label, look)


def before_after(x: Values, pair: Sequence[Values], labels: tuple[str, str], marked: bool = False) -> list[Mark]:
    """A line for before and one for after, with markers if ``marked``."""
    looks = replace(BEFORE, marker="s" if marked else ""), replace(AFTER, marker="o" if marked else "")
    return [Line(x, y, label, look) for y, label, look in zip(pair, labels, looks, strict=True)]


def thinned(count: int, log: bool = False, most: int = POINTS) -> Values:
    """Up to ``most`` indices below ``count``, with the first and the last."""
    if count <= most:
        return np.arange(count)
    places = np.geomspace(1, count, most).round() - 1 if log else np.linspace(0, count - 1, most).round()
    return np.unique(places.astype(int))


def csv_of(sheet: Sheet) -> str:
    """One row per plotted point: panel, series, x, y; floats with all digits, nan as an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("panel", "series", "x", "y"))
    for panel in sheet.panels:
        for series in (series for mark in panel.marks for series in mark.series()):
            x = series.x.astype(str) if series.x.dtype.kind == "M" else series.x
            for point in zip(x.tolist(), series.y.tolist(), strict=True):
                writer.writerow((panel.title, series.name, *("" if value != value else value for value in point)))
    return out.getvalue()
