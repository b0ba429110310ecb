"""The page before there is any layer: three calls to paste, ticked off as they arrive, and the number they give."""

from __future__ import annotations

from typing import NamedTuple

from gradeq.report.markup import Markup, el, join, prose
from gradeq.report.parts import icon
from gradeq.service.dashboard.view import CHECK

LAYER, RAW, LABEL, ETA = "demand", 42.0, 45.5, 0.05
SERVED = RAW + ETA * (LABEL - RAW)  # one step from nothing towards the first label


class Progress(NamedTuple):
    """How far a newcomer is: layers there, predictions served, labels learned from."""

    layers: int = 0
    served: int = 0
    labels: int = 0


class Step(NamedTuple):
    """One call: what it is for, a hint, what to paste, and what it answers."""

    title: str
    hint: str
    command: str
    answer: str


def steps(address: str) -> tuple[Step, ...]:
    """The three calls."""
    key = '-H "Authorization: Bearer $GRADEQ_KEY"'
    at = f"{address.removeprefix('http://')}/v1/layers/{LAYER}"
    return (
        Step(
            "Create a layer", "Your key was printed when the server started; `gradeq keys create` makes another.",
            f"export GRADEQ_KEY=paste-the-key-here\n"
            f"curl -X PUT {at} {key} \\\n"
            f"  --json '{{\"kind\": \"debias\", \"eta\": {ETA}, \"groups\": [\"region\"]}}'",
            f'{{"layer": "{LAYER}", "created": true}}',
        ),
        Step(
            "Ask what to serve", "Give each prediction an id of your own.",
            f"curl {at}/predictions {key} \\\n"
            f"  --json '{{\"id\": \"order-17\", \"prediction\": {RAW}, \"groups\": {{\"region\": \"north\"}}}}'",
            f'{{"id": "order-17", "status": "served", "adjusted": {RAW}, …}}',
        ),
        Step(
            "Send the label when you have it", "Seconds or weeks later, in any order, twice by mistake: all fine.",
            f"curl {at}/labels {key} \\\n"
            f"  --json '{{\"id\": \"order-17\", \"label\": {LABEL}}}'",
            '{"id": "order-17", "status": "applied", …}',
        ),
    )  # fmt: skip


def first_page(address: str, done: Progress | None) -> Markup:
    """The three calls; ``done``: how far they have come, None where layers are there already."""
    so_far = 0 if done is None else sum((done.layers > 0, done.served > 0, done.labels > 0))
    listed = [
        _step(number, step, number <= so_far) for number, step in enumerate(steps(address), 1)
    ]
    outcome = el(
        "p", f"Your model was {LABEL - RAW:g} too low, so the next prediction of {RAW} for ",
        el("code", "region=north"), " is served as ", el("b", f"{SERVED:.3f}", class_="after"), ".", class_="outcome",
    )  # fmt: skip
    return el(
        "div",
        el("p", "No layers yet" if done is not None else "Another layer", class_="about"),
        el("h1", "Put a layer on top of any model in three calls."),
        el(
            "p",
            "You send what your model predicted and get back what to serve. When the truth is known, you send the "
            "label. The average error goes to zero, group by group, and this page shows it happening.",
            class_="lead",
        ),
        el("ol", *listed, class_="steps"),
        outcome,
        _waiting(done, so_far),
        class_="first",
    )


def _step(number: int, step: Step, ticked: bool) -> Markup:
    mark = icon(CHECK, 26, 16, "green") if ticked else join(str(number))
    return el(
        "li",
        el("div", mark, class_="mark done" if ticked else "mark"),
        el(
            "div",
            el("h2", step.title, *([el("span", " done", class_="hide")] if ticked else [])),
            el("p", prose(step.hint), class_="hint"),
            el(
                "div", el("pre", el("code", step.command), tabindex=0),
                el("button", "Copy", type="button", data_copy="pre code"), class_="command",
            ),
            el("p", "answer ", el("code", step.answer), class_="answer"),
        ),
    )  # fmt: skip


def _waiting(done: Progress | None, so_far: int) -> Markup:
    if done is None:
        return el("p", el("a", "Back to the layers", href="/"), class_="foot")
    now = (
        ("Waiting for the first call", "This page changes by itself. Nothing to reload."),
        ("The layer is there. Waiting for a prediction", "This page changes by itself."),
        ("The prediction was served. Waiting for its label", "It can come at any time."),
        ("It works", "The layer has learned from its first label."),
    )[so_far]
    reference = el("a", "API reference", href="/openapi.json")
    beside = el("span", "No model at hand? ", el("code", "gradeq serve --demo"), " · ", reference)
    if so_far == 3:
        beside = el("a", f"Open {LAYER}", href=f"/layers/{LAYER}", class_="button")
    return el(
        "div", el("span", "", class_="beat wait" if so_far < 3 else "beat"),
        el("div", el("b", now[0]), el("p", now[1])), beside, class_="waiting", role="status",
    )  # fmt: skip
