"""The sidebar, the list of all layers, and onboarding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gradeq.report import charts
from gradeq.report.components import NOTICE_ICONS, Markup, el, icon, join, name, prose, tidy
from gradeq.report.numerals import count, decimals, number, percent, points
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


LAYER, RAW, LABEL, ETA = "demand", 42.0, 45.5, 0.05
SERVED = RAW + ETA * (LABEL - RAW)  # one step from nothing towards the first label


def onboarding_page(address: str, steps: int | None) -> Markup:
    """The three calls; ``steps``: how many of them are done, None if there are other layers."""
    key = '-H "Authorization: Bearer $GRADEQ_KEY"'
    at = f"{address.removeprefix('http://')}/v1/layers/{LAYER}"
    calls = (  # title, hint, command to paste, answer
        (
            "Create a layer", "Your key was printed when the server started; `gradeq keys create` makes another.",
            f"export GRADEQ_KEY=paste-the-key-here\n"
            f"curl -X PUT {at} {key} \\\n"
            f"  --json '{{\"kind\": \"debias\", \"eta\": {ETA}, \"groups\": [\"region\"]}}'",
            f'{{"layer": "{LAYER}", "created": true}}',
        ),
        (
            "Ask what to serve", "Give each prediction an id of your own.",
            f"curl {at}/predictions {key} \\\n"
            f"  --json '{{\"id\": \"order-17\", \"prediction\": {RAW}, \"groups\": {{\"region\": \"north\"}}}}'",
            f'{{"id": "order-17", "status": "served", "adjusted": {RAW}, …}}',
        ),
        (
            "Send the label when you have it", "Seconds or weeks later, in any order, twice by mistake: all fine.",
            f"curl {at}/labels {key} \\\n"
            f"  --json '{{\"id\": \"order-17\", \"label\": {LABEL}}}'",
            '{"id": "order-17", "status": "applied", …}',
        ),
    )  # fmt: skip
    back = el("p", el("a", "Back to the layers", href="/"), class_="foot")
    return el(
        "div",
        el("p", "No layers yet" if steps is not None else "Another layer", class_="about"),
        el("h1", "Put a layer on top of any model in three calls."),
        el(
            "p",
            "You send what your model predicted and get back what to serve. When the truth is known, you send the "
            "label. The average error goes to zero, group by group, and this page shows it happening.",
            class_="lead",
        ),
        el("ol", *(_step(k, *call, ticked=k <= (steps or 0)) for k, call in enumerate(calls, 1)), class_="steps"),
        el(
            "p", f"Your model was {LABEL - RAW:g} too low, so the next prediction of {RAW} for ",
            el("code", "region=north"), " is served as ", el("b", f"{SERVED:.3f}", class_="after"), ".",
            class_="outcome",
        ),
        back if steps is None else _progress_note(steps),
        class_="first",
    )  # fmt: skip


def _step(number: int, title: str, hint: str, command: str, answer: str, ticked: bool) -> Markup:
    mark = icon(CHECK, 26, 16, "green") if ticked else join(str(number))
    return el(
        "li",
        el("div", mark, class_="mark done" if ticked else "mark"),
        el(
            "div",
            el("h2", title, *([el("span", " done", class_="hide")] if ticked else [])),
            el("p", prose(hint), class_="hint"),
            el(
                "div", el("pre", el("code", command), tabindex=0),
                el("button", "Copy", type="button", data_copy="pre code"), class_="command",
            ),
            el("p", "answer ", el("code", answer), class_="answer"),
        ),
    )  # fmt: skip


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
