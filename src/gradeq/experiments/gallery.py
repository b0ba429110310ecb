"""One HTML page with every figure: what the paper shows, what we get, what was corrected; no outside requests."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from gradeq.datasets import CATALOG
from gradeq.experiments.experiment import CHAPTERS, Experiment, Number, Result
from gradeq.experiments.html_page import html_page
from gradeq.experiments.pages import labelled, linked
from gradeq.experiments.tables import numeral

FORMS = ("png", "svg", "pdf", "csv")  # the files of a figure
MOST = 12  # numbers shown at once; the rest unfold


class Shown(NamedTuple):
    """One experiment for the page: its result and pictures by file name, or why it was skipped."""

    experiment: Experiment
    result: Result | None
    skipped: str
    images: Mapping[str, bytes]


def gallery(shown: Sequence[Shown], texts: Mapping[str, str] | None = None) -> str:
    """The whole page; ``texts`` names figures of the paper that are text, with what they are."""
    made = [item for item in shown if item.result is not None]
    figures = {item.experiment.figure: item.experiment.name for item in made}
    parts = [
        "<h1>Gradient equilibrium in online learning: the figures, reproduced and corrected</h1>",
        f"<p>{len(made)} figure{'' if len(made) == 1 else 's'}. "
        "Steps, bias and loss are those that the paper defines; where the authors' code has "
        "another scale or a slip, the caption says so and the table has their number, that number on the paper's "
        "definitions, and ours. Beside this page lie a PNG, an SVG, a PDF and a CSV of every plotted series, "
        '<a href="bounds.html">the bounds</a> by their labels, and <a href="errata.html">the errata</a>.</p>',
        _contents(shown, texts or {}),
    ]
    for chapter, title in CHAPTERS.items():
        own = [item for item in made if item.experiment.chapter == chapter]
        if own:
            parts.append(f"<h2>{title}</h2>")
            parts += [_figure(item, figures) for item in own]
    return html_page("Gradient equilibrium, reproduced", "\n".join(parts))


def _contents(shown: Sequence[Shown], texts: Mapping[str, str]) -> str:
    lines = [
        f'<li><a href="#{escape(item.experiment.name)}">{escape(item.experiment.title)}</a> '
        f"({linked(item.experiment.figure)})</li>"
        for item in shown
        if item.result is not None
    ]
    lines += [f"<li>{escape(what)} ({escape(figure)})</li>" for figure, what in texts.items()]
    lines += [
        f'<li class="skipped">{escape(item.experiment.title)} ({escape(item.experiment.figure)}), skipped: '
        f"{escape(item.skipped)}</li>"
        for item in shown
        if item.result is None
    ]
    return "<nav><ul>\n" + "\n".join(lines) + "\n</ul></nav>"


def _figure(item: Shown, figures: Mapping[str, str]) -> str:
    experiment, result = item.experiment, item.result
    assert result is not None
    images = "\n".join(
        f'<img alt="{escape(experiment.title)}, {escape(stem)}" '
        f'src="data:image/png;base64,{base64.b64encode(image).decode("ascii")}">'
        for stem, image in item.images.items()
    )
    files = ", ".join(
        f'<a href="{escape(stem)}.{form}">{escape(stem)}.{form}</a>'
        for stem in item.images
        for form in FORMS
    )
    words = {
        "The paper shows" if experiment.chapter == "paper" else "The question": experiment.shows,
        "Here": result.found,
        "Corrected": experiment.corrected,
        "Data": _data(experiment, result),
    }
    caption = "".join(
        f"<dt>{escape(term)}</dt><dd>{linked(text, figures)}</dd>"
        for term, text in words.items()
        if text
    )
    return (
        f'<figure id="{escape(experiment.name)}"><h3>{escape(experiment.title)}</h3>'
        f'<p class="where">{linked(experiment.figure)} · {escape(experiment.name)} · {files}</p>'
        f"{images}<figcaption><dl>{caption}</dl>{_numbers(result.numbers, experiment.labels)}</figcaption></figure>"
    )


def _data(experiment: Experiment, result: Result) -> str:
    used = [CATALOG[name] for name in experiment.needs if name in CATALOG]
    licences = "; ".join(f"{dataset.title}: {dataset.licence}" for dataset in used)
    return ". ".join(part for part in (result.data, licences) if part)


def _numbers(numbers: Sequence[Number], labels: str) -> str:
    if not numbers:
        return ""
    ranked = sorted(numbers, key=lambda number: number.authors is None)
    first, rest = ranked[:MOST], ranked[MOST:]
    table = _table(first, labels)
    if rest:
        table += (
            f"<details><summary>{len(rest)} more numbers</summary>{_table(rest, labels)}</details>"
        )
    return table


def _table(numbers: Sequence[Number], labels: str) -> str:
    compared = any(number.authors is not None for number in numbers)
    heads = ["", "ours", *(["the authors'", "theirs, corrected"] if compared else [])]
    rows = []
    for number in numbers:
        cells = [number.ours, *([number.authors, number.corrected] if compared else [])]
        row = "".join(f"<td>{numeral(value)}</td>" for value in cells)
        rows.append(f'<tr><th scope="row">{labelled(number.name, labels)}</th>{row}</tr>')
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join(rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
