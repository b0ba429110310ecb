"""Parts of a page: elements whose text is always escaped, figures, warnings, tables, holders of charts.

Only what ``el`` returns passes through unescaped, so a name can be text and nothing else.
"""

import html
import math
import re
from collections.abc import Iterable, Sequence
from functools import partial

from gradeq.certificates.figures import NO_GUARANTEE
from gradeq.report.numerals import MONTHS, count, decimals, gap, limit, number, percent
from gradeq.report.sentences import SHADOWED, Sentence, loss_change, ordered
from gradeq.report.story import Certificate, LossFigures, Notice, Provenance

BOUND_MEANS = (
    "Bound: the largest |{}| that any data in the range seen, with labels as late as these, could have caused over "
    "as many rows at these steps."
)
LONGEST_NAME = 60
"""Names are cut to this many characters on the page, so that its size stays bounded."""

_encodable = partial(re.compile("[\ud800-\udfff]").sub, "?")  # broken surrogates fit in no file
_DAY = re.compile("(?<=\\d) (?=" + "|".join(MONTHS) + ")")


class Markup(str):
    """Text that is already markup, made by :func:`el` and :func:`join` only."""


def el(tag: str, *children: str, **attributes: str | float | bool | None) -> Markup:
    """An element; children that are not Markup are escaped, attributes always are.

    ``class_`` gives ``class``, ``data_read`` gives ``data-read``; None and False leave one out.

    >>> el("b", "<img>", class_="x")
    '<b class="x">&lt;img&gt;</b>'
    """
    start = tag
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        if isinstance(value, float):
            value = f"{value:.2f}".rstrip("0").rstrip(".") if value == value else "0"
        text = "" if value is True else html.escape(_encodable(str(value)))
        start += f' {key.rstrip("_").replace("_", "-")}="{text}"'
    if not children and tag in {"line", "rect", "circle", "path", "polyline", "br", "input"}:
        return Markup(f"<{start}/>")
    return Markup(f"<{start}>{join(*children)}</{tag}>")


def join(*children: str) -> Markup:
    """Several children without an element around them."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else html.escape(_encodable(child), quote=False) for child in children
        )
    )


def clean(text: str, longest: int = LONGEST_NAME) -> str:
    """A name fit to print: cut to size, without control characters or broken surrogates."""
    text = "".join(c if c.isprintable() else "\ufffd" for c in _encodable(text[: longest + 1]))
    return text if len(text) <= longest else text[: longest - 1] + "\u2026"


def name(text: str, class_: str | None = "name") -> Markup:
    """A user's name as an isolated piece of text, whatever its writing direction."""
    return el("bdi", clean(text), class_=class_)


def tidy(text: str) -> str:
    """Our own prose with unbreakable spaces between a number and its unit or power."""
    text = text.replace(" %", "\u00a0%").replace(" \u00d7 10", "\u00a0\u00d7\u00a010")
    text = re.sub(r"(?<=\d) (points?\b)", "\u00a0\\1", text)
    return _DAY.sub("\u00a0", text)


def prose(text: str, longest: int = 600) -> Markup:
    """A sentence in which `backticks` set code."""
    text = clean(text.replace("\n", " "), longest)
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return join(tidy(text))
    return join(*(el("code", piece) if i % 2 else tidy(piece) for i, piece in enumerate(pieces) if piece))


def runs(sentence: Sentence) -> Markup:
    """A sentence with its before and after numbers coloured."""
    parts: list[str] = []
    for part in sentence:
        text, role = (part, "") if isinstance(part, str) else part
        plain = tidy(text)
        parts.append(el("b", plain) if role == "strong" else el("span", plain, class_=role) if role else plain)
    return join(*parts)


# Icons


def icon(path: str, size: int = 16, box: int = 16, class_: str | None = None) -> Markup:
    """A line drawing in the colour of its text."""
    pen = {"stroke": "currentColor", "stroke_width": "1.4", "stroke_linejoin": "round", "stroke_linecap": "round"}
    line = el("path", d=path, fill="none", **pen)
    return el("svg", line, viewBox=f"0 0 {box} {box}", width=size, height=size, class_=class_, aria_hidden="true")


_SCALES = "M8 2v11.5M4.5 13.5h7M2 4.5h12M3.5 4.5l-2.2 4.8a2.2 2.2 0 0 0 4.4 0zM12.5 4.5l-2.2 4.8a2.2 2.2 0 0 0 4.4 0z"
BRAND = el("span", icon(_SCALES, 18), "gradeq", class_="brand")
TICK = icon("M2.5 6.5l2.5 2.5 4.5-5.5", 11, 12)
NOTICE_ICONS = {  # by level, each with its word for screen readers
    level: join(icon(path, 18, 18, level), el("span", spoken, class_="hide"))
    for level, path, spoken in (
        ("red", "M6 1.5h6L16.5 6v6L12 16.5H6L1.5 12V6zM9 5v5M9 12.2v1", "Stop"),
        ("amber", "M9 2L17 16H1zM9 7v4.4M9 13v1", "Caution"),
        ("note", "M9 1.5a7.5 7.5 0 1 0 .01 0zM9 8v5M9 5v1.1", "Note"),
    )
}


# Figures


def figure(term: str, value: Markup, gloss: str, tag: str = "") -> Markup:
    length = len(re.sub("<[^>]*>", "", value.replace("&nbsp;", " ")))
    size = " long" if length > 17 else " longish" if length > 12 else ""
    size += " huge" if "×10" in value else ""  # wider than any place for a figure
    return el(
        "div",
        el("div", term, tag, class_="term"),
        el("div", value, class_="value"),
        el("div", prose(gloss), class_="gloss"),
        class_=f"figure{size}",
    )


def arrow(before: str | float, after: str | float, unit: str = "", sign: bool = False) -> Markup:
    """Before → after, always in that order; numbers are written with the decimals that they need together."""
    if not isinstance(before, str) and not isinstance(after, str):
        places = decimals(before, after)
        before, after = number(before, places, sign), number(after, places, sign)
    return join(
        el("span", tidy(str(before)), class_="before"),
        el("span", "→", class_="mid"),
        el("span", tidy(str(after)), class_="after"),
        el("span", f"\u00a0{clean(unit, 16)}", class_="after unit") if unit else "",
    )


def loss_figure(loss: LossFigures, shadow: bool = False) -> Markup:
    """A loss before and after, and by how much it changed."""
    change = loss_change(loss)
    if change in ("same", "rounding"):
        gloss = "did not change" if change == "same" else "changed by rounding alone"
    elif not math.isfinite(loss.before + loss.after):
        gloss = "too large for a number"
    elif not loss.before:
        gloss = "rose from 0"
    else:
        share = percent(abs(loss.after / loss.before - 1.0), 0 if change == "fell" else 1)
        gloss = f"{share} {'lower' if change == 'fell' else 'higher'}"
    gloss += SHADOWED if shadow else ""
    return figure(loss.name.capitalize(), arrow(loss.before, loss.after), gloss)


def certificate_figure(certificate: Certificate, praise: bool) -> Markup:
    """Average gradient ≤ its worst case, and how it was checked; green where there is ``praise``."""
    average, bound = certificate.value, certificate.bound
    places = decimals(average, average if bound is None or certificate.vacuous else bound)
    trusted = certificate.gap <= max(1e-6 * max(1.0, abs(average)), 2.0 * certificate.rounding)
    within = bound is None or average <= bound * (1 + 1e-9) + 1e-9
    parts = [el("span", number(average, places), class_="after")]
    gloss = f"average gradient {certificate.over}".rstrip()
    if certificate.vacuous and bound is not None:  # nothing is compared with it
        parts += [el("span", "", class_="mid"), el("span", NO_GUARANTEE, class_="tag grey")]
    elif bound is not None:
        parts += [el("span", "≤" if within else ">", class_="mid"), el("span", bound_text(bound, places))]
        gloss += " and its worst case"
    if certificate.coverage_bound is not None:
        gloss += f"; coverage at most {bound_text(100.0 * certificate.coverage_bound, 1)} points off its target"
    agree = "rows and state agree" if certificate.exact else "stored sums and the move of θ agree"
    close = "exactly" if certificate.gap == 0 else f"to {gap(certificate.gap)}"
    if not trusted:
        agree, close = "rows and state differ", f"by {gap(certificate.gap)}"
    if trusted and within:
        tag = el("span", TICK if praise else "", "exact", class_=f"tag {'ok' if praise else 'grey'}")
    else:
        tag = el("span", "broken" if within else "exceeded", class_="tag bad")
    return figure("Certificate", join(*parts), f"{gloss}; {agree} {close}", tag)


def bound_text(bound: float | None, places: int | None = None) -> str:
    """A bound, rounded up: 2 decimals, none from 100 on, two digits where it is small; a dash for none."""
    if bound is None:
        return "\u2013"
    if places is None:
        small = 0.0 < bound < 0.1
        places = min(1 - math.floor(math.log10(bound)), 12) if small else 2
    return limit(bound, places if bound < 100 else 0)


# Sections

_MOST_NOTICES = 12


def section(title: str, intro: str, *inside: Markup, class_: str | None = None) -> Markup:
    first = [el("p", intro if isinstance(intro, Markup) else prose(intro))] if intro else []
    return el("section", el("h2", title), *first, *inside, class_=class_)


def notices(notices: Sequence[Notice], title: str = "Read this first") -> Markup:
    """Every warning before any chart: icon and word, claim, evidence, what to do."""
    rows = []
    for notice in ordered(notices)[:_MOST_NOTICES]:
        claim = el("div", prose(notice.claim, 200), class_="claim")
        evidence = el("div", prose(notice.evidence), class_="evidence")
        remedy = el("div", el("b", "What to do"), prose(notice.remedy), class_="remedy") if notice.remedy else ""
        rows.append(
            el("li", el("div", NOTICE_ICONS[notice.level], class_="icon"), el("div", claim, evidence), remedy)
        )
    return section(title, "", el("ul", *rows, class_="notices")) if rows else join()


def lede(about: Sequence[str], headline: Sentence, qualification: Sentence, figures: Iterable[Markup]) -> Markup:
    return el(
        "div",
        el("p", *about, class_="about"),
        el("h1", runs(headline)),
        el("p", runs(qualification), class_="second"),
        el("div", *figures, class_="figures"),
        class_="lede",
    )


def pair(left: Markup, right: Markup) -> Markup:
    """Two parts side by side; one alone where the other is empty."""
    if left and right:
        return el("div", el("div", left), el("div", right), class_="pair")
    return left or right


def command_section(made: Provenance) -> Markup:
    """The command to copy, the audit of its state, and the versions it ran with."""
    facts = []
    if made.state:
        facts += [el("dt", "Repeat the check"), el("dd", el("code", f"gradeq audit {clean(made.state, 200)}"))]
    facts += [el("dt", "Made with"), el("dd", clean(made.versions, 200))]
    lines = "\n".join(clean(line, 400) for line in made.command.splitlines()[:40])
    copy = el("button", "Copy", type="button", id="copy")
    box = el("div", el("pre", el("code", lines, id="command")), copy, class_="command")
    return section("How it was computed", "", box, el("dl", *facts))


# Charts and tables


def chart_box(title: str, sub: str, drawing: Markup, id: str | None = None) -> Markup:
    """The holder of a chart: title with its unit in lighter type, read-out, and the drawing.

    With an ``id`` the script draws it; without, its marks carry their own text.
    """
    heading = el("h3", title, *([" ", el("span", prose(sub))] if sub else [])) if title else ""
    read = el("div", "\u00a0", class_="read live", aria_live="polite")
    spoken = f"{title} {clean(sub)}" if id else title or "Served values"
    return el(
        "div",
        el("div", heading, read, class_="top"),
        drawing,
        id=id,
        class_="chart" if id else "chart still",
        tabindex=0,
        role="group",
        aria_label=f"{spoken}: chart. Arrow keys move the read-out.",
    )


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """A still chart's numbers, folded away."""
    columns = el("tr", *(el("th", tidy(cell), scope="col") for cell in head))
    body = [
        el("tr", el("th", tidy(row[0]), scope="row"), *(el("td", tidy(cell)) for cell in row[1:])) for row in rows
    ]
    inside = el("table", el("thead", columns), el("tbody", *body))
    scroll = el("div", inside, class_="scroll", tabindex=0, role="region", aria_label=caption)
    return el("details", el("summary", caption), scroll)


def series_table(caption: str, charts: Sequence[str]) -> Markup:
    """The numbers of drawn series, filled in by the script when opened."""
    return el("details", el("summary", caption), data_charts=" ".join(charts), class_="live")


def show_all(table_id: str, which: str, first: int) -> Markup:
    """The button that opens and closes the rest of a table."""
    return el(
        "button",
        f"Show {which}",
        type="button",
        id="all",
        aria_controls=table_id,
        aria_expanded="false",
        data_other=f"Show the first {count(first)}",
    )
