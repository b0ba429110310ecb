"""The sidebar, the list of all layers, and onboarding."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template
from typing import NamedTuple

from gradeq.report import charts
from gradeq.report.components import NOTICE_ICONS, Markup, el, icon, join, name, tidy
from gradeq.report.numerals import count, decimals, number, percent, points
from gradeq.report.page import resource
from gradeq.report.story import EloStory, Spark
from gradeq.service.dashboard.layer_page import CHECK
from gradeq.service.dashboard.overview import STATUS_WORDS, Overview, Status, StatusLevel


class LayerSummary(NamedTuple):
    """A layer in one line."""

    name: str
    status: Status
    what: str = ""
    figure: str = "–"
    unit: str = ""
    before: str = ""
    loss: str = ""
    labels: int = 0
    open: int = 0
    last_label: float | None = None
    spark: Spark | None = None
    target: float = 0.0


def summarize(view: Overview) -> LayerSummary:
    story, before, now, unit, target = view.story, "", "–", "no labels", 0.0
    loss = story.loss if isinstance(story, EloStory) else story.verdict.loss if view.labels else None
    if isinstance(story, EloStory):
        now, unit = "–" if loss is None else number(loss.after, 3), "log loss"
    elif view.labels:
        bias, coverages = story.verdict.bias, story.verdict.coverage
        if bias is not None:
            places = decimals(bias.before, bias.after)
            before, now, unit = number(bias.before, places, True), number(bias.after, places, True), "bias"
        elif len(coverages) == 1:
            before, now, unit = percent(coverages[0].before), percent(coverages[0].after), "coverage"
            target = coverages[0].target
        elif coverages:
            now, unit = points(max((c.after - c.target for c in coverages), key=abs)), "points off"
    losses = ""
    if loss is not None:
        places = decimals(loss.before, loss.after)
        losses = f"{number(loss.before, places)} → {number(loss.after, places)}"
    return LayerSummary(
        view.name, view.light, view.brief, now, unit, before, losses, view.labels, view.flight.open,
        view.last_label, None if isinstance(story, EloStory) else view.spark, target,
    )  # fmt: skip


def status_icon(level: StatusLevel) -> Markup:
    """The icon of a status, and its word for screen readers."""
    if level == "green":
        return join(icon(CHECK, 18, 16, "green"), el("span", STATUS_WORDS[level], class_="hide"))
    return NOTICE_ICONS[level]


def sidebar(summaries: Sequence[LayerSummary], current: str | None) -> Markup:
    rows = []
    for one in sorted(summaries, key=lambda one: one.name):
        drawn = charts.tiny(one.spark, one.target, one.status.level == "red") if one.spark else join()
        link = el(
            "a",
            el("span", status_icon(one.status.level), class_="icon"),
            el("span", el("b", name(one.name)), el("small", one.status.reason or one.what), class_="who"),
            el("span", drawn, class_="trace"),
            el("span", el("b", tidy(one.figure)), el("small", one.unit), class_="fig"),
            href=f"/layers/{one.name}",
            aria_current="page" if one.name == current else None,
        )
        rows.append(el("li", link))
    legend = [el("span", status_icon(level), word) for level, word in STATUS_WORDS.items()]
    return join(
        el("div", el("h2", "Layers"), el("a", "New layer", href="/new", class_="button"), class_="head"),
        el("ul", *rows, class_="layers"),
        el("p", *legend, class_="legend"),
    )


def layer_list(summaries: Sequence[LayerSummary]) -> Markup:
    order = {"red": 0, "amber": 1, "green": 2}
    heads = ("Layer", "", "Labels", "Before", "Served", "Loss before → served", "In flight", "Last label")
    head = [el("th", text, scope="col", class_="left" if text in ("Layer", "") else None) for text in heads]
    rows = []
    for one in sorted(summaries, key=lambda one: (order[one.status.level], one.name)):
        link = el("a", name(one.name), href=f"/layers/{one.name}")
        since = el("time", "", data_since=f"{one.last_label:.3f}") if one.last_label else join("–")
        unit = f" {one.unit}" if one.unit in ("log loss", "points off") else ""
        cells = (
            el("th", el("span", status_icon(one.status.level), class_="icon"), link, scope="row"),
            el("td", one.status.reason or one.what, class_="left", data_head=""),
            el("td", count(one.labels), data_head="Labels"),
            el("td", tidy(one.before or "–"), class_="was", data_head="Before"),
            el("td", tidy(one.figure + unit), class_="now", data_head="Served"),
            el("td", one.loss or "–", class_="nowrap cost", data_head="Loss"),
            el("td", count(one.open), data_head="In flight"),
            el("td", since, data_head="Last label"),
        )
        rows.append(el("tr", *cells))
    amiss = sum(one.status.level != "green" for one in summaries)
    about = f"{count(amiss)} of {count(len(summaries))} need a look." if amiss else "All layers are healthy."
    return join(
        el("div", el("div", el("h1", "Layers"), el("p", about, class_="about")), class_="title"),
        el("table", el("thead", el("tr", *head)), el("tbody", *rows), class_="groups all"),
    )


LAYER = "demand"  # as in onboarding.html


def onboarding_page(address: str, steps: int | None) -> Markup:
    """The three calls; ``steps``: how many of them are done, None if there are other layers."""
    values = {
        "about": "Another layer" if steps is None else "No layers yet",
        "layer": join(f"{address.removeprefix('http://')}/v1/layers/{LAYER}"),
        "end": _progress_note(steps or 0),
    }
    if steps is None:
        values["end"] = el("p", el("a", "Back to the layers", href="/"), class_="foot")
    for k in (1, 2, 3):
        done = k <= (steps or 0)
        mark = icon(CHECK, 26, 16, "green") if done else str(k)
        values[f"mark{k}"] = el("div", mark, class_="mark done" if done else "mark")
        values[f"done{k}"] = el("span", " done", class_="hide") if done else ""
    return Markup(Template(resource("static/onboarding.html", __package__)).substitute(values))


def _progress_note(steps: int) -> Markup:
    title, text = (
        ("Waiting for the first call", "This page updates automatically."),
        ("The layer is there. Waiting for a prediction", "This page updates automatically."),
        ("The prediction was served. Waiting for its label", "It can come at any time."),
        ("It works", "The layer has learned from its first label."),
    )[steps]
    reference = el("a", "API reference", href="/openapi.json")
    beside = el("span", "No model at hand? ", el("code", "gradeq serve --demo"), " · ", reference)
    if steps == 3:
        beside = el("a", f"Open {LAYER}", href=f"/layers/{LAYER}", class_="button")
    return el(
        "div", el("span", "", class_="beat wait" if steps < 3 else "beat"),
        el("div", el("b", title), el("p", text)), beside, class_="waiting", role="status",
    )  # fmt: skip
