"""One HTML page with every figure: what the paper shows, what we get, what was corrected; no outside requests."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from gradeq.datasets import CATALOG
from gradeq.experiments.experiment import CHAPTERS, Experiment, Number, Result
from gradeq.experiments.tables import numeral

FORMS = ("png", "svg", "pdf", "csv")  # the files of a figure
MOST = 12  # numbers shown at once; the rest unfold

STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; max-width: 1080px; padding: 24px 20px 80px; background: #fbfbf9; color: #191c20;
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; font-variant-numeric: tabular-nums; }
h1 { font-size: 28px; line-height: 1.28; font-weight: 600; }
h2 { font-size: 20px; margin: 52px 0 8px; }
h3 { font-size: 17px; margin: 0; }
a { color: #0b5cad; }
figure { margin: 0 0 52px; padding-top: 20px; border-top: 1px solid #cfcfc8; }
img { display: block; max-width: 100%; height: auto; margin: 12px 0; background: #fff; }
.where { color: #646b76; font-size: 13px; margin: 2px 0 0; }
dl { display: grid; grid-template-columns: 9.5em 1fr; gap: 6px 14px; margin: 0; }
dt { color: #646b76; } dd { margin: 0; }
table { border-collapse: collapse; font-size: 13px; margin-top: 10px; }
th { text-align: right; font-weight: 500; color: #646b76; vertical-align: bottom; }
th[scope=row], thead th:first-child { text-align: left; color: #191c20; font-weight: 400; }
td { text-align: right; } th, td { padding: 3px 14px 3px 0; border-bottom: 1px solid #e4e4df; }
.skipped { color: #8a5200; }
summary { cursor: pointer; color: #0b5cad; font-size: 13px; margin-top: 10px; }
ul { padding-left: 1.2em; }
@media (max-width: 640px) { dl { grid-template-columns: 1fr; } .scroll { overflow-x: auto; } }
@media print { figure { break-inside: avoid; } }
"""


class Shown(NamedTuple):
    """One experiment for the page: its result and pictures by file name, or why it was skipped."""

    experiment: Experiment
    result: Result | None
    skipped: str
    images: Mapping[str, bytes]


def gallery(shown: Sequence[Shown]) -> str:
    """The whole page."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'"
    made = [item for item in shown if item.result is not None]
    left_out = [item for item in shown if item.result is None]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Gradient equilibrium, reproduced</title><style>{STYLE}</style></head><body>",
        "<h1>Gradient equilibrium in online learning: the figures, reproduced and corrected</h1>",
        f"<p>{len(made)} figures. Steps, bias and loss are those that the paper defines; where the authors' code has "
        "another scale or a slip, the caption says so and the table has their number, that number on the paper's "
        "definitions, and ours. Beside this page lie a PNG, an SVG, a PDF and a CSV of every plotted series.</p>",
        _contents(made, left_out),
    ]
    for chapter, title in CHAPTERS.items():
        own = [item for item in made if item.experiment.chapter == chapter]
        if own:
            parts.append(f"<h2>{title}</h2>")
            parts += [_figure(item) for item in own]
    return "\n".join([*parts, "</body></html>\n"])


def _contents(made: Sequence[Shown], left_out: Sequence[Shown]) -> str:
    lines = [
        f'<li><a href="#{escape(item.experiment.name)}">{escape(item.experiment.title)}</a> '
        f"({escape(item.experiment.figure)})</li>"
        for item in made
    ]
    lines += [
        f'<li class="skipped">{escape(item.experiment.title)} ({escape(item.experiment.figure)}), skipped: '
        f"{escape(item.skipped)}</li>"
        for item in left_out
    ]
    return "<nav><ul>\n" + "\n".join(lines) + "\n</ul></nav>"


def _figure(item: Shown) -> str:
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
        f"<dt>{escape(term)}</dt><dd>{escape(text)}</dd>" for term, text in words.items() if text
    )
    return (
        f'<figure id="{escape(experiment.name)}"><h3>{escape(experiment.title)}</h3>'
        f'<p class="where">{escape(experiment.figure)} · {escape(experiment.name)} · {files}</p>'
        f"{images}<figcaption><dl>{caption}</dl>{_numbers(result.numbers)}</figcaption></figure>"
    )


def _data(experiment: Experiment, result: Result) -> str:
    used = [CATALOG[name] for name in experiment.needs if name in CATALOG]
    licences = "; ".join(f"{dataset.title}: {dataset.licence}" for dataset in used)
    return ". ".join(part for part in (result.data, licences) if part)


def _numbers(numbers: Sequence[Number]) -> str:
    if not numbers:
        return ""
    ranked = sorted(numbers, key=lambda number: number.authors is None)
    first, rest = ranked[:MOST], ranked[MOST:]
    table = _table(first)
    if rest:
        table += f"<details><summary>{len(rest)} more numbers</summary>{_table(rest)}</details>"
    return table


def _table(numbers: Sequence[Number]) -> str:
    compared = any(number.authors is not None for number in numbers)
    heads = ["", "ours", *(["the authors'", "theirs, corrected"] if compared else [])]
    rows = []
    for number in numbers:
        cells = [number.ours, *([number.authors, number.corrected] if compared else [])]
        row = "".join(f"<td>{numeral(value)}</td>" for value in cells)
        rows.append(f'<tr><th scope="row">{escape(number.name)}</th>{row}</tr>')
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join(rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
