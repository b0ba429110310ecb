"""The table of groups of a layer at work: error and loss before and after, how late labels come, the step now."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby

from gradeq.report import marks
from gradeq.report.grouptable import bound_cell, cell, is_loose, losses, places_of, two_lines
from gradeq.report.markup import Markup, el, join, name, tidy
from gradeq.report.numerals import count, number, percent
from gradeq.report.parts import bound_means, section, show_all
from gradeq.report.story import EloStory, Group, Pair, Spark
from gradeq.report.ticks import Scale, finite, scale
from gradeq.service.dashboard.overview import GroupFlight, Overview

FIRST = 20
"""Rows that are shown before the rest is asked for."""

DIVERGES = (
    "Diverges above: the constant step at which corrections would grow without end if every label of the group came "
    "as late as its latest. Steps are held far below it."
)


def groups(view: Overview) -> Markup:
    """The section on groups; empty without any."""
    story = view.story
    if isinstance(story, EloStory) or not story.groups:
        return join()
    flights, sparks = view.groups, view.sparks
    table = Table(story.groups, flights, sparks, story.verdict.loss.name)
    rows = list(zip(story.groups, flights, (*sparks, *[None] * len(story.groups)), strict=False))
    body: list[Markup] = []
    shown = 0
    several = len({group.by for group in story.groups}) > 1
    for by, members in groupby(rows, key=lambda row: row[0].by):
        if several:
            hidden = "by more" if shown >= FIRST else "by"
            head = el("th", "by ", name(by, None), colspan=table.columns, scope="colgroup")
            body.append(el("tr", head, class_=hidden))
        for group, flight, spark in members:
            body.append(table.row(group, flight, spark, shown >= FIRST))
            shown += 1
    if not several:
        table.first = story.groups[0].by
    intro = ""
    if story.groups_total > len(story.groups):
        intro = f"The {count(len(story.groups))} of {count(story.groups_total)} with most labels."
    made = el("table", table.head(), el("tbody", *body), class_="groups live", id="groups")
    feet = [DIVERGES] if table.diverges else []
    feet += [bound_means("error")] if table.bound else []
    under = [show_all("groups", f"all {count(shown)} groups", FIRST)] if shown > FIRST else []
    foot = el("div", *under, el("p", tidy(" ".join(feet)), class_="foot"), class_="under")
    return section("Groups", intro, el("div", made, class_="wide"), foot)


class Table:
    """The scales, decimals and columns that the rows share."""

    def __init__(
        self,
        rows: Sequence[Group],
        flights: Sequence[GroupFlight | None],
        sparks: Sequence[Spark | None],
        loss: str,
    ) -> None:
        self.first = "Group"
        self.loss = loss[:1].upper() + loss[1:]
        self.covers = rows[0].target is not None
        self.places = places_of([Pair(g.before, g.after) for g in rows])
        self.loss_places = places_of([g.loss for g in rows])
        drawn = [s for s in sparks if s is not None]
        lines = finite(*(s.before for s in drawn), *(s.after for s in drawn))
        self.target = rows[0].target or 0.0
        self.spark = (
            scale(lines, include=(self.target,), pad=0.0) if drawn and not self.covers else None
        )
        ends = [x for s in drawn for x in (s.x[0], s.x[-1])]
        self.span = (min(ends), max(ends)) if ends else (0.0, 1.0)
        values = finite([g.before for g in rows], [g.after for g in rows], [self.target])
        self.axis = (
            scale(values, 3, "percent", (), 0.06, (0.0, 1.0)) if self.covers else Scale(0, 1, ())
        )
        self.late = any(f is not None and f.peak > 1 for f in flights)
        self.steps = self.late and any(f is not None and f.step is not None for f in flights)
        self.diverges = self.late and any(f is not None and f.diverges is not None for f in flights)
        self.step_places = _places(f.step for f in flights if f is not None)
        self.limit_places = _places(f.diverges for f in flights if f is not None)
        self.bound = not self.diverges and any(g.bound is not None for g in rows)
        extra = 2 * self.late + self.steps + self.diverges + self.bound
        self.columns = 5 + (self.spark is not None or self.covers) + extra

    def head(self) -> Markup:
        """The names of the columns."""
        what = "Coverage" if self.covers else "Bias"
        heads = [
            (name(self.first, None), "left"), ("Labels", ""), (f"{what}|before", ""), (f"{what}|served", ""),
            (f"{self.loss}|before → served", "left"),
        ]  # fmt: skip
        if self.spark is not None:
            low, high = (
                number(v, 2 if abs(v) < 10 else 0, True) for v in (self.spark.low, self.spark.high)
            )
            heads.append((f"Rolling bias,|{low} to {high}", "left spark"))
        if self.covers:
            heads.append((marks.axis(self.axis, 230.0), "left dots"))
        heads += [("In|flight", ""), ("Most late|in rows", "")] if self.late else []
        heads += [("Step|now", "")] if self.steps else []
        heads += [("Diverges|above", "")] if self.diverges else []
        heads += [("Bound", "")] if self.bound else []
        cells = (
            el(
                "th",
                *([text] if isinstance(text, Markup) else two_lines(text)),
                scope="col",
                class_=c or None,
            )
            for text, c in heads
        )
        return el("thead", el("tr", *cells))

    def row(
        self, group: Group, flight: GroupFlight | None, spark: Spark | None, hidden: bool
    ) -> Markup:
        """One group, or one key."""
        before, after = self._error(group.before), self._error(group.after)
        cells = [
            el("th", name(group.name), scope="row"),
            cell(count(group.rows), "Labels"),
            cell(before, "Before", "was"),
            cell(after, "Served", "now"),
            cell(losses(group.loss, self.loss_places), self.loss, "left nowrap cost"),
        ]
        if self.spark is not None:
            drawn = join()
            if spark is not None:
                drawn = marks.spark(spark, self.spark.low, self.spark.high, self.span, self.target)
            cells.append(cell(drawn, "", "spark"))
        if self.covers:
            words = f"{before} before, {after} served"
            dots = marks.dumbbell(group.before, group.after, self.target, self.axis, words)
            cells.append(cell(dots, "", "dots"))
        if self.late:
            cells.append(cell(count(flight.open) if flight else "–", "In flight"))
            cells.append(cell(count(flight.peak) if flight else "–", "Most late"))
        if self.steps:
            cells.append(cell(_step(flight.step if flight else None, self.step_places), "Step now"))
        if self.diverges:
            cells.append(
                cell(
                    _step(flight.diverges if flight else None, self.limit_places),
                    "Diverges above",
                    "was",
                )
            )
        if self.bound:
            limit = bound_cell(
                group.bound, group.vacuous, is_loose(group), *((100.0, 1) if self.covers else ())
            )  # fmt: skip
            cells.append(cell(limit, "Bound", "limit"))
        return el("tr", *cells, class_="more" if hidden else None)

    def _error(self, value: float) -> str:
        return percent(value) if self.covers else number(value, self.places, sign=True)


def _places(values: Iterable[float | None]) -> int:
    """Decimals that give the smallest step of a column two digits."""
    least = min((v for v in values if v), default=1.0)
    return max(1 - math.floor(math.log10(least)), 0)


def _step(value: float | None, places: int) -> str:
    return "–" if value is None else number(value, places)
