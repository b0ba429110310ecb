"""The page of `make bench-peers`: tasks as dots on one axis of rows a second, all tables, real streams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from benchmarks.pages import Axis, dots, marked, page, table
from benchmarks.peers.said import WORDS, Table, quiet, rate, shown
from benchmarks.peers.systems import OURS
from gradeq.report.components import Markup, el

SPEED = Axis(100.0, 2e9, (1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9), rate, lambda v: f"{rate(v)}/s", 130, 640)
HOW = (
    "Rows a second of CPU time, best of several, systems in turn, each in a process of its own; whatever has the "
    "same algorithm was compared row by row. Ratios are over gradeq on as many rows as the system did."
)
GOOD = {OURS, "gradeq debias --key"}


def whole(
    columns: Sequence[Any], tables: Sequence[Table], goals: Sequence[Any], real: dict[str, Any], machine: str
) -> str:  # fmt: skip
    """The page."""
    parts = [
        el("p", f"Measured in one run on {machine}. {HOW}"),
        el("section", el("h2", "Rows a second"), *pictures(list(columns))),
        *(el("section", el("h2", own.title), drawn(own)) for own in tables),
    ]  # fmt: skip
    if goals:
        held = [(goal.met, str(goal)) for goal in goals]
        parts.append(el("section", el("h2", "What was aimed at"), marked(held)))
    parts += [quality(kind) for kind in real.get("kinds", [])]
    return page("gradeq beside what else there is", *parts)


def pictures(found: list[Any]) -> list[Markup]:
    """A plot for each task."""
    drawn = []
    lines = [own for own in shown(found) if own.cpu]
    for task in dict.fromkeys(own.task for own in lines):
        speeds = {own.system: 1.0 / own.cpu for own in lines if own.task == task}
        ordered = dict(sorted(speeds.items(), key=lambda item: -item[1]))
        drawn.append(dots(task, ordered, GOOD, SPEED))
    return drawn


def drawn(own: Table) -> Markup:
    """A table; lines of gradeq stand out."""
    rows = []
    for cells in quiet(own.rows):
        marks = [
            el("td", cell, class_="words" if name in WORDS else None)
            for name, cell in zip(own.head, cells, strict=True)
        ]
        rows.append(el("tr", *marks, class_="ours" if GOOD & set(cells) else None))
    return table(own.head, rows, WORDS)


def quality(kind: dict[str, Any]) -> Markup:
    """One kind of stream: a plot, all rules over all streams, then the rules and every stream folded away."""
    told = [el("li", el("b", rule), f": {meaning}") for rule, meaning in kind["rules"].items() if meaning]
    streams = [
        part for stream, rules in kind["streams"].items()
        for part in (el("h3", stream), figures(kind, rules))
    ]  # fmt: skip
    return el(
        "section", el("h2", f"Real streams: {kind['title']}"), el("p", kind["explained"]),
        plotted(kind), figures(kind, kind["all"]),
        el("details", el("summary", "The rules"), el("ul", *told)),
        el("details", el("summary", f"All {len(kind['streams'])} streams, one by one"), *streams),
    )  # fmt: skip


def plotted(kind: dict[str, Any]) -> Markup:
    """The first measure of all rules."""
    measure = kind["measures"][0]
    known = {rule: own.get(measure["key"]) for rule, own in kind["all"].items()}
    values = {rule: math.nan if value is None else value for rule, value in known.items()}
    sizes = [math.log10(value) for value in values.values() if value > 0.0]
    ends = range(math.floor(min(sizes, default=-1.0)), math.ceil(max(sizes, default=0.0)) + 1)
    ticks = [10.0**k for k in ends]
    shown = Axis(ticks[0], ticks[-1], ticks, value=lambda v: format(v, measure["format"]), left=190, width=640)
    return dots(measure["title"], values, {rule for rule in values if rule.startswith(OURS)}, shown)


def figures(kind: dict[str, Any], rules: dict[str, Any]) -> Markup:
    """Rules by measures; the least of each is marked, but for widths, of which less is not better by itself."""
    keys = [measure["key"] for measure in kind["measures"]]
    least = {
        key: min((own[key] for own in rules.values() if own.get(key) is not None), default=None)
        for key in keys
        if key != "width"
    }
    rows = []
    for rule, own in rules.items():
        cells = [el("td", rule)]
        for measure in kind["measures"]:
            value = own.get(measure["key"])
            told = "" if value is None else format(value, measure["format"])
            best = value is not None and value == least.get(measure["key"])
            cells.append(el("td", told, class_="win" if best else None))
        rows.append(el("tr", *cells, class_="ours" if rule.startswith(OURS) else None))
    return table(["", *(measure["title"] for measure in kind["measures"])], rows)
