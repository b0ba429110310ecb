"""The gallery: one HTML page with every figure, and pages on the bounds and the errata."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path

from gradeq.datasets import CATALOG
from gradeq.paper.experiment import CHAPTERS, Experiment, ExperimentOutcome, Number, Result, numeral

Words = Callable[[str], str]  # plain text to HTML
LABEL = r"(?:[A-DG]\d[ab]?′?|[A-D](?= )|\d+(?:\.\d+)?)"  # of a result or an erratum
_INLINE = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*|\*(\S.*?)\*|\[([^\]]+)\]\(([^)\s]+)\)")
_LABELS = re.compile(rf"{LABEL}(?:(?:, ){LABEL})*(?= |\.|$)")


def to_html(text: str, link: Callable[[str], str], words: Words = escape) -> str:
    """Markdown as HTML: ``link`` maps the target of a link to its href, if any; ``words`` converts plain text."""
    known: set[str] = set()  # labels that have an anchor

    def names(text: str) -> list[str]:
        """The labels at the beginning of the text that have no anchor yet."""
        match = _LABELS.match(text)
        new = [name for name in re.findall(LABEL, match[0] if match else "") if name not in known]
        known.update(new)
        return new

    def anchored(text: str) -> str:
        return "".join(f'<a id="{escape(name)}"></a>' for name in names(text))

    def block(lines: list[str]) -> str:
        first = lines[0]
        if first.startswith("```"):
            code = "\n".join(lines[1:]).removesuffix("```").rstrip()
            return f"<pre>{escape(code)}</pre>"
        if first.startswith("#"):
            level, title = len(first) - len(first.lstrip("#")), first.lstrip("# ")
            name = (names(title) or [re.sub(r"[^\w]+", "-", title.lower()).strip("-")])[0]
            return f'<h{level} id="{escape(name)}">{_inline(title, link, words)}</h{level}>'
        if first.startswith("|"):
            head, _, *rows = map(_cells, lines)
            body = [
                (anchored(first) + _inline(first, link, words), *(_inline(cell, link, words) for cell in rest))
                for first, *rest in rows
            ]
            return html_table([_inline(cell, link, words) for cell in head], body, "text")
        text = " ".join(lines)
        mark = anchored(text.removeprefix("**")) if text.startswith("**") else ""
        return f"<p>{mark}{_inline(text, link, words)}</p>"

    return "\n".join(map(block, _blocks(text)))


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A table of HTML cells that scrolls; the first cell of each row is its heading."""
    heads = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    opening = f'<table class="{kind}">' if kind else "<table>"
    return f'<div class="scroll">{opening}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def _blocks(text: str) -> Iterator[list[str]]:
    """Paragraphs, tables, headings and fenced blocks, each as its lines."""
    block: list[str] = []
    fenced = False
    for line in [*text.splitlines(), ""]:
        if line.startswith("```"):
            fenced = not fenced
        alone = line.startswith("#") and not fenced
        if (not line.strip() or alone) and block and not fenced:
            yield block
            block = []
        if alone:
            yield [line]
        elif line.strip() or fenced:
            block.append(line)


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [cell.strip().replace(r"\|", "|") for cell in cells]


def _inline(text: str, link: Callable[[str], str], words: Words) -> str:
    parts, at = [], 0
    for match in _INLINE.finditer(text):
        parts.append(words(text[at : match.start()]))
        code, strong, slanted, label, target = match.groups()
        if code is not None:
            parts.append(f"<code>{escape(code)}</code>")
        elif label is not None:
            where, name = link(target), escape(label)
            parts.append(f'<a href="{escape(where)}">{name}</a>' if where else name)
        else:
            tag, inner = ("strong", strong) if strong is not None else ("em", slanted)
            parts.append(f"<{tag}>{_inline(inner, link, words)}</{tag}>")
        at = match.end()
    return "".join([*parts, words(text[at:])])


def html_page(title: str, body: str) -> str:
    style = Path(__file__).with_name("gallery.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><style>{style}</style></head><body>
{body}
</body></html>
"""


TITLES = {"bounds": "The bounds and their labels", "errata": "Errata of the paper"}
_RESULTS = re.compile(rf"\b(results? )({LABEL}(?:(?:, | and | to ){LABEL})*)")
_FIGURE = re.compile(r"\bFigure \d+\b")
_MINUS = re.compile(r"(?<![\w.])-(?=\d)")


@cache
def source_of(name: str) -> str:
    """The Markdown of a page of the documentation, from the installed package or from a checkout."""
    here = Path(__file__)
    for folder in (here.parent / "documents", here.parents[3] / "docs"):
        if (folder / f"{name}.md").is_file():
            return (folder / f"{name}.md").read_text(encoding="utf-8")
    raise FileNotFoundError(f"{name}.md is missing from this installation of gradeq")


@cache
def anchors(name: str) -> frozenset[str]:
    """The anchors of a page: its labels and headings."""
    return frozenset(re.findall(r'\bid="([^"]+)"', to_html(source_of(name), lambda target: "")))


def page(name: str) -> str:
    body = to_html(source_of(name), _href, linked)
    return html_page(TITLES[name], f'<p><a href="index.html">All figures</a></p>\n{body}')


def linked(text: str, figures: Mapping[str, str] | None = None) -> str:
    """Plain text as HTML, with links to results, to severity A and to ``figures`` of the page."""

    def label(match: re.Match[str]) -> str:
        known = match[0] in anchors("bounds")
        return f'<a href="bounds.html#{match[0]}">{match[0]}</a>' if known else match[0]

    def figure(match: re.Match[str]) -> str:
        name = (figures or {}).get(match[0], "")
        return f'<a href="#{escape(name)}">{match[0]}</a>' if name else match[0]

    html = escape(_MINUS.sub("−", text))
    html = _RESULTS.sub(lambda match: match[1] + re.sub(LABEL, label, match[2]), html)
    html = re.sub(r"\bseverity A\b", '<a href="errata.html#severity-a">severity A</a>', html)
    return _FIGURE.sub(figure, html)


def labelled(text: str, which: str) -> str:
    """Text such as "3.1 quantile" as HTML, with a link if it begins with a label of the page ``which``."""
    match = re.match(rf"{LABEL}(?= )", text)
    if not which or not match or match[0] not in anchors(which):
        return escape(text)
    return f'<a href="{which}.html#{match[0]}">{match[0]}</a>{escape(text[match.end() :])}'


def _href(target: str) -> str:
    """The href of a link on a page next to the gallery; none to pages that are not there."""
    name, _, anchor = target.removesuffix(".md").partition("#")
    if "://" in target or target.startswith("#"):
        return target
    return f"{name.removesuffix('.md')}.html{'#' + anchor if anchor else ''}" if name in TITLES else ""


FORMS = ("png", "svg", "pdf", "csv")  # the files of a figure
MOST = 12  # numbers shown at first; the rest unfolds


def gallery(outcomes: Sequence[ExperimentOutcome], texts: Mapping[str, str] | None = None) -> str:
    """The page of all figures; ``texts`` describes the figures of the paper that are only text."""
    drawn = [item.experiment for item in outcomes if item.result is not None]
    figures = {experiment.figure: experiment.name for experiment in drawn}
    contents = [
        f'<li><a href="#{escape(experiment.name)}">{escape(experiment.title)}</a> ({linked(experiment.figure)})</li>'
        for experiment in drawn
    ]
    contents += [f"<li>{escape(what)} ({escape(figure)})</li>" for figure, what in (texts or {}).items()]
    contents += [
        f'<li class="skipped">{escape(item.experiment.title)} ({escape(item.experiment.figure)}), skipped: '
        f"{escape(item.skipped)}</li>"
        for item in outcomes
        if item.result is None
    ]
    count = len(drawn)
    parts = [
        "<h1>Gradient equilibrium in online learning: the figures, reproduced and corrected</h1>",
        f"<p>{count} figure{'' if count == 1 else 's'}. Steps, bias and loss follow the definitions of the paper. If "
        "the authors' code has another scale or an error, the caption says so, and the table has their number, that "
        "number on the paper's definitions, and ours. Next to this page are a PNG, an SVG, a PDF and a CSV of every "
        "plotted series, "
        '<a href="bounds.html">the bounds</a> by their labels, and <a href="errata.html">the errata</a>.</p>',
        "<nav><ul>\n" + "\n".join(contents) + "\n</ul></nav>",
    ]
    for chapter, title in CHAPTERS.items():
        bodies = [
            _figure(item.experiment, item.result, item.images, figures)
            for item in outcomes
            if item.result is not None and item.experiment.chapter == chapter
        ]
        if bodies:
            parts += [f"<h2>{title}</h2>", *bodies]
    return html_page("Gradient equilibrium, reproduced", "\n".join(parts))


def _figure(experiment: Experiment, result: Result, pictures: Mapping[str, bytes], figures: Mapping[str, str]) -> str:
    images = "\n".join(
        f'<img alt="{escape(experiment.title)}, {escape(stem)}" '
        f'src="data:image/png;base64,{base64.b64encode(image).decode("ascii")}">'
        for stem, image in pictures.items()
    )
    files = ", ".join(
        f'<a href="{escape(stem)}.{form}">{escape(stem)}.{form}</a>' for stem in pictures for form in FORMS
    )
    licences = [f"{CATALOG[n].title}: {CATALOG[n].licence}" for n in experiment.needs if n in CATALOG]
    words = {
        "The paper shows" if experiment.chapter == "paper" else "The question": experiment.shows,
        "Here": result.summary,
        "Corrected": experiment.corrected,
        "Data": ". ".join(part for part in (result.data, "; ".join(licences)) if part),
    }
    caption = "".join(
        f"<dt>{escape(term)}</dt><dd>{linked(text, figures)}</dd>" for term, text in words.items() if text
    )
    ranked = sorted(result.numbers, key=lambda number: number.authors is None)
    first, rest = ranked[:MOST], ranked[MOST:]
    table = _table(first, experiment.labels) if first else ""
    if rest:
        more = _table(rest, experiment.labels)
        table += f"<details><summary>{len(rest)} more numbers</summary>{more}</details>"
    return (
        f'<figure id="{escape(experiment.name)}"><h3>{escape(experiment.title)}</h3>'
        f'<p class="where">{linked(experiment.figure)} · {escape(experiment.name)} · {files}</p>'
        f"{images}<figcaption><dl>{caption}</dl>{table}</figcaption></figure>"
    )


def _table(numbers: Sequence[Number], labels: str) -> str:
    compared = any(number.authors is not None for number in numbers)
    columns = 3 if compared else 1
    head = ("ours", "the authors&#x27;", "theirs, corrected")[:columns]
    rows = []
    for number in numbers:
        cells = (number.ours, number.authors, number.corrected)[:columns]
        rows.append((labelled(number.name, labels), *map(numeral, cells)))
    return html_table(("", *head), rows)
