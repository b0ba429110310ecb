"""The layers of a tenant: the list at the left of every page, and the page that shows them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gradeq.report import marks
from gradeq.report.markup import Markup, el, join, name, tidy
from gradeq.report.numerals import count, decimals, number, percent, points
from gradeq.report.parts import icon, notice_icon
from gradeq.report.story import EloStory, Pair, Spark
from gradeq.service.dashboard.lights import WORDS, Level, Light
from gradeq.service.dashboard.overview import Overview, error_now
from gradeq.service.dashboard.view import CHECK

_ORDER = {"red": 0, "amber": 1, "green": 2}


class Brief(NamedTuple):
    """A layer in one line."""

    name: str
    light: Light
    what: str
    figure: str
    unit: str
    before: str
    loss: str
    labels: int
    open: int
    last_label: float | None
    spark: Spark | None
    target: float

    @classmethod
    def stopped(cls, name: str) -> Brief:
        """A layer that cannot be read."""
        return cls(name, Light("red", "Cannot be read"), "", "–", "", "", "", 0, 0, None, None, 0.0)


def brief_of(view: Overview) -> Brief:
    """A layer in one line, from all that is known of it."""
    story, found = view.story, error_now(view)
    before, now, unit, at = "", "–", "no labels", 0.0
    if isinstance(story, EloStory):
        unit = "log loss"
        loss = None if story.loss is None else Pair(story.loss.before, story.loss.after)
        now = "–" if loss is None else number(loss.after, 3)
    else:
        loss = Pair(story.verdict.loss.before, story.verdict.loss.after) if view.labels else None
        if not view.labels:
            pass
        elif found is not None and story.verdict.bias is not None:
            places = decimals(found.before, found.after)
            before, now = (number(v, places, True) for v in (found.before, found.after))
            unit = "bias"
        elif found is not None:
            at = story.verdict.coverage[0].target
            before, now, unit = percent(found.before), percent(found.after), "coverage"
        elif story.verdict.coverage:
            worst = max((c.after - c.target for c in story.verdict.coverage), key=abs)
            now, unit = points(worst), "points off"
    told = ""
    if loss is not None:
        places = decimals(loss.before, loss.after)
        told = f"{number(loss.before, places)} → {number(loss.after, places)}"
    return Brief(
        view.name, view.light, view.brief, now, unit, before, told, view.labels, view.flight.open,
        view.last_label, None if isinstance(story, EloStory) else view.spark, at,
    )  # fmt: skip


def light(level: Level) -> Markup:
    """The sign of a light, and its word for those who do not see it."""
    if level == "green":
        return join(icon(CHECK, 18, 16, "green"), el("span", WORDS[level], class_="hide"))
    return notice_icon(level)


def side(briefs: Sequence[Brief], current: str | None) -> Markup:
    """The list of layers, in the order of their names."""
    rows = [_entry(one, one.name == current) for one in sorted(briefs, key=lambda one: one.name)]
    legend = el("p", *(el("span", light(level), WORDS[level]) for level in WORDS), class_="legend")
    return join(
        el(
            "div",
            el("h2", "Layers"),
            el("a", "New layer", href="/new", class_="button"),
            class_="head",
        ),
        el("ul", *rows, class_="layers"),
        legend,
    )


def _entry(one: Brief, current: bool) -> Markup:
    drawn = marks.tiny(one.spark, one.target, one.light.level == "red") if one.spark else join()
    return el(
        "li",
        el(
            "a",
            el("span", light(one.light.level), class_="icon"),
            el(
                "span",
                el("b", name(one.name)),
                el("small", one.light.reason or one.what),
                class_="who",
            ),
            el("span", drawn, class_="trace"),
            el("span", el("b", tidy(one.figure)), el("small", one.unit), class_="fig"),
            href=f"/layers/{one.name}",
            aria_current="page" if current else None,
        ),
    )


def all_layers(briefs: Sequence[Brief]) -> Markup:
    """Every layer in a table, those that need a look first."""
    order = sorted(briefs, key=lambda one: (_ORDER[one.light.level], one.name))
    amiss = sum(one.light.level != "green" for one in briefs)
    said = (
        "All layers are healthy."
        if not amiss
        else f"{count(amiss)} of {count(len(briefs))} need a look."
    )
    heads = (
        "Layer",
        "",
        "Labels",
        "Before",
        "Served",
        "Loss before → served",
        "In flight",
        "Last label",
    )
    left = {"Layer", ""}
    head = el(
        "tr",
        *(el("th", text, scope="col", class_="left" if text in left else None) for text in heads),
    )
    body = [_line(one) for one in order]
    return join(
        el("div", el("div", el("h1", "Layers"), el("p", said, class_="about")), class_="title"),
        el("table", el("thead", head), el("tbody", *body), class_="groups all"),
    )


def _line(one: Brief) -> Markup:
    link = el("a", name(one.name), href=f"/layers/{one.name}")
    since = el("time", "", data_since=f"{one.last_label:.3f}") if one.last_label else join("–")
    told = f"{one.figure} {one.unit if one.unit in ('log loss', 'points off') else ''}".strip()
    return el(
        "tr",
        el("th", el("span", light(one.light.level), class_="icon"), link, scope="row"),
        el("td", one.light.reason or one.what, class_="left", data_head=""),
        el("td", count(one.labels), data_head="Labels"),
        el("td", tidy(one.before or "–"), class_="was", data_head="Before"),
        el("td", tidy(told), class_="now", data_head="Served"),
        el("td", one.loss or "–", class_="nowrap cost", data_head="Loss"),
        el("td", count(one.open), data_head="In flight"),
        el("td", since, data_head="Last label"),
    )
