"""What was found, as lines of text: one table for all tasks, one for events, one for files, one for growth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.peers.growth import Growth
from benchmarks.peers.latency import Latency
from benchmarks.peers.race import Result
from benchmarks.peers.systems import LOOP, OURS, PASS
from benchmarks.peers.tables import ALONE, Filed

WORDS = {"task", "system", "remark", "event", "command", "what grows"}  # columns of text


class Table(NamedTuple):
    """A title, the names of the columns, and the cells of each line as text."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]


def of_columns(found: Iterable[Result]) -> Table:
    """Every task and system; ours, the C loop and the memory pass only at their full number of rows."""
    head = ("task", "system", "rows", "rows/s CPU", "rows/s clock", "x gradeq", "x C loop", "x memory pass",
            "MB", "differs by", "remark")  # fmt: skip
    return Table("Columns", head, [line(own) for own in shown(list(found))])


def of_tasks(found: Sequence[Result]) -> Table:
    """Every task in one line: rows a second by gradeq, and how many times as long others take for the same rows."""
    ours = {own.task: own for own in shown(list(found)) if own.system == OURS and own.cpu}
    others = list(dict.fromkeys(own.system for own in found if own.system not in (OURS, PASS)))
    times = {
        (own.task, own.system): own.cpu / own.ours
        for own in shown(list(found))
        if own.cpu is not None and own.ours is not None
    }
    rows = [
        (task, rate(1.0 / own.cpu), *(figure(times[task, system]) if (task, system) in times else ""
                                      for system in others))
        for task, own in ours.items()
        if own.cpu is not None
    ]  # fmt: skip
    return Table("Times as long as gradeq", ("task", "gradeq, rows/s", *others), rows)


def shown(found: list[Result]) -> Iterator[Result]:
    """The lines worth reading: the yardsticks at other systems' sizes only serve their ratios."""
    most = {
        (own.task, own.system): max(
            other.rows for other in found if (other.task, other.system) == (own.task, own.system)
        )
        for own in found
    }
    return (
        own for own in found
        if own.system not in (OURS, LOOP, PASS) or own.rows == most[own.task, own.system]
    )  # fmt: skip


def line(own: Result) -> tuple[str, ...]:
    """One line; a ratio says how many times as long the system takes for the same rows."""
    if own.cpu is None or own.wall is None:
        return own.task, own.system, f"{own.rows:,}", *[""] * 7, f"failed: {own.error}"
    ratios = ("" if other is None else figure(own.cpu / other) for other in (own.ours, own.loop, own.memory))
    return (
        own.task, own.system, f"{own.rows:,}", rate(1.0 / own.cpu), rate(1.0 / own.wall), *ratios,
        "" if own.extra is None else f"{max(own.extra, 0.0):,.0f}",
        "" if own.gap is None else f"{own.gap:.1g}", own.remark,
    )  # fmt: skip


def of_events(found: Sequence[Latency]) -> Table:
    """One event at a time."""
    ours = {own.kind: own for own in found if own.system == OURS}
    head = "event", "system", "median us", "99 % us", "CPU us", "x gradeq"
    rows = [
        (own.kind, own.system, f"{own.median:.1f}", f"{own.p99:.1f}", f"{own.cpu:.1f}",
         figure(own.cpu / ours[own.kind].cpu) if own.kind in ours else "")
        for own in found
    ]  # fmt: skip
    return Table("One event at a time", head, rows)


def of_files(found: Sequence[Filed]) -> Table:
    """Whole commands."""
    alone = {(own.task, own.rows): own for own in found if own.system == ALONE}
    head = "task", "command", "rows", "rows/s CPU", "rows/s clock", "x reading and writing", "MB"
    rows = [
        (own.task, own.system, f"{own.rows:,}", rate(own.rows / own.cpu), rate(own.rows / own.wall),
         figure(own.cpu / alone[own.task, own.rows].cpu), f"{own.megabytes:,.0f}")
        for own in found
    ]  # fmt: skip
    return Table("File to file", head, rows)


def of_growth(found: Sequence[Growth]) -> Table:
    """Slopes."""
    head = "what grows", "system", "slope", "from", "to", "ns a row, least", "ns a row, most"
    rows = []
    for own in found:
        sizes, times = list(own.times), list(own.times.values())
        rows.append((own.axis, own.system, f"{own.slope:.2f}", f"{sizes[0]:,}", f"{sizes[-1]:,}",
                     figure(times[0]), figure(times[-1])))  # fmt: skip
    return Table("Growth of the time of one row", head, rows)


def text(table: Table) -> str:
    """The table for a terminal; a first cell that says the same as the one above is left empty."""
    lines = [table.head, *quiet(table.rows)]
    widths = [max(len(row[k]) for row in lines) for k in range(len(table.head))]
    words = {k for k in range(len(table.head)) if table.head[k] in WORDS}
    drawn = (
        "  ".join(
            cell.ljust(width) if k in words else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in lines
    )
    return "\n".join([f"\n{table.title}", *drawn])


def markdown(table: Table) -> str:
    """The table for a page of the documentation."""
    rule = tuple("---" if name in WORDS else "---:" for name in table.head)
    lines = [table.head, rule, *quiet(table.rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def quiet(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Rows without the first cell where it repeats the one above."""
    above = [("",), *rows]
    return [("" if row[0] == before[0] else row[0], *row[1:]) for before, row in zip(above, rows, strict=False)]


def rate(value: float) -> str:
    """Rows in a second, to three digits."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def figure(value: float) -> str:
    """A number to two or three digits, whole from a hundred on."""
    if value >= 99.5:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 9.95 else f"{value:.2f}" if value >= 0.0995 else f"{value:.2g}"
