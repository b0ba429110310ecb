"""What both pages share: head line, figures, warnings, chart holders, command, method, foot."""

import math
from collections.abc import Iterable, Sequence

from gradeq.report.markup import Markup, clean, el, join, prose, tidy
from gradeq.report.numerals import count, gap, limit, moment
from gradeq.report.story import Certificate, Made, Notice
from gradeq.report.words import Run

_SCALES = (
    "M8 2v11.5M4.5 13.5h7M2 4.5h12M3.5 4.5l-2.2 4.8a2.2 2.2 0 0 0 4.4 0z"
    "M12.5 4.5l-2.2 4.8a2.2 2.2 0 0 0 4.4 0z"
)
_ICONS = {
    "red": ("M6 1.5h6L16.5 6v6L12 16.5H6L1.5 12V6z", "Stop"),
    "amber": ("M9 2L17 16H1z", "Caution"),
    "note": ("M9 1.5a7.5 7.5 0 1 0 .01 0z", "Note"),
}
_SIGNS = {"red": "M9 5v5M9 12.2v1", "amber": "M9 7v4.4M9 13v1", "note": "M9 8v5M9 5v1.1"}
_MOST_NOTICES = 12


def icon(path: str, size: int = 16, box: int = 16, class_: str | None = None) -> Markup:
    """A line drawing in the colour of its text."""
    return el(
        "svg",
        el(
            "path",
            d=path,
            fill="none",
            stroke="currentColor",
            stroke_width="1.4",
            stroke_linejoin="round",
            stroke_linecap="round",
        ),
        viewBox=f"0 0 {box} {box}",
        width=size,
        height=size,
        class_=class_,
        aria_hidden="true",
    )


def brand() -> Markup:
    """The name and its sign."""
    return el("span", icon(_SCALES, 18), "gradeq", class_="brand")


def header(kind: str, made: Made) -> Markup:
    """The line at the top: what page, of which file, made when; theme and print buttons."""
    return el(
        "div",
        el(
            "header",
            brand(),
            el("span", kind),
            el("bdi", clean(made.source, 80), class_="source"),
            el("span", moment(made.at), class_="made"),
            el("button", "Light / dark", type="button", id="theme"),
            el("button", "Print", type="button", id="print"),
        ),
        class_="bar",
    )


def footer(made: Made) -> Markup:
    """The line at the bottom."""
    return el(
        "footer",
        el(
            "div",
            el("span", f"gradeq {clean(made.version)}"),
            el("span", "This page is one file and loads nothing from outside."),
        ),
    )


def runs(sentence: Iterable[Run]) -> Markup:
    """A sentence with its before and after numbers coloured."""
    return join(
        *(
            el("b", tidy(run.text))
            if run.role == "strong"
            else el("span", tidy(run.text), class_=run.role)
            if run.role
            else tidy(run.text)
            for run in sentence
        )
    )


def figure(term: str, value: Markup, gloss: str, tag: Markup | None = None) -> Markup:
    """One of the four figures under the verdict."""
    shown = value.replace("&nbsp;", " ")
    length = sum(not inside for inside in _inside_tags(shown))
    size = " long" if length > 17 else " longish" if length > 12 else ""
    size += " huge" if "×10" in value else ""  # wider than any place for a figure
    return el(
        "div",
        el("div", join(term, *([tag] if tag else [])), class_="term"),
        el("div", value, class_="value"),
        el("div", prose(gloss), class_="gloss"),
        class_=f"figure{size}",
    )


def arrow(before: str, after: str, unit: str = "") -> Markup:
    """Before → after, always in that order."""
    return join(
        el("span", tidy(before), class_="before"),
        el("span", "→", class_="mid"),
        el("span", tidy(after), class_="after"),
        *([el("span", f"\u00a0{clean(unit, 16)}", class_="after unit")] if unit else []),
    )


def certificate(
    held: Certificate, value: str, bound: str, gloss: str, praise: bool = True
) -> Markup:
    """The certificate's figure: average ≤ bound, how it was checked; green where there is ``praise``."""
    trusted = held.gap <= max(1e-6 * max(1.0, abs(held.value)), 2.0 * held.rounding)
    kept = held.bound is None or held.value <= held.bound * (1 + 1e-9) + 1e-9
    check = icon("M2.5 6.5l2.5 2.5 4.5-5.5", 11, 12)
    sound = el(
        "span", *([check] if praise else []), "exact", class_=f"tag {'ok' if praise else 'grey'}"
    )
    tag = sound if trusted else el("span", "broken", class_="tag bad")
    if not kept:
        tag = el("span", "exceeded", class_="tag bad")
    shown: Markup
    if held.bound is None:
        shown = el("span", value, class_="after")
    else:
        sign = el("span", "≤" if kept else ">", class_="mid")
        limit = (sign, el("span", bound))
        if held.vacuous:  # nothing is compared with it
            limit = (
                el("span", "", class_="mid"),
                el("span", "no guarantee yet", class_="tag grey"),
            )
        shown = join(el("span", value, class_="after"), *limit)
    agree = "rows and state agree" if held.exact else "stored sums and the move of θ agree"
    close = "exactly" if held.gap == 0 else f"to {gap(held.gap)}"
    if not trusted:
        agree, close = "rows and state differ", f"by {gap(held.gap)}"
    return figure("Certificate", shown, f"{gloss}; {agree} {close}", tag)


def notice_icon(level: str) -> Markup:
    """The sign of a notice, and its word for those who do not see it."""
    path, spoken = _ICONS[level]
    return join(icon(path + _SIGNS[level], 18, 18, level), el("span", spoken, class_="hide"))


def notices(given: Sequence[Notice], title: str = "Read this first") -> Markup:
    """Every warning before any chart: icon and word, claim, evidence, what to do."""
    if not given:
        return join()
    order = {"red": 0, "amber": 1, "note": 2}
    shown = sorted(given, key=lambda notice: order[notice.level])[:_MOST_NOTICES]
    rows = []
    for notice in shown:
        remedy = (
            el("div", el("b", "What to do"), prose(notice.remedy), class_="remedy")
            if notice.remedy
            else join()
        )
        rows.append(
            el(
                "li",
                el("div", notice_icon(notice.level), class_="icon"),
                el(
                    "div",
                    el("div", prose(notice.claim, 200), class_="claim"),
                    el("div", prose(notice.evidence), class_="evidence"),
                ),
                remedy,
            )
        )
    return section(title, "", el("ul", *rows, class_="notices"))


def section(title: str, intro: str | Markup, *inside: Markup, class_: str | None = None) -> Markup:
    """A headed part of the page."""
    first = intro if isinstance(intro, Markup) else prose(intro)
    return el(
        "section", el("h2", title), *([el("p", first)] if intro else []), *inside, class_=class_
    )


def folded(title: str, *inside: Markup) -> Markup:
    """A headed part of the page that opens on demand."""
    summary = el("summary", el("h2", title))
    return el("section", el("details", summary, *inside), class_="method")


def chart(id_: str, title: str, sub: str = "") -> Markup:
    """The place of a drawn series: its title, its read-out, and the plot that the script fills."""
    return el(
        "div",
        _top(title, sub),
        el("div", class_="plot"),
        id=id_,
        class_="chart",
        tabindex=0,
        role="group",
        aria_label=f"{title} {clean(sub)}: chart. Arrow keys move the read-out.",
    )


def still(title: str, sub: str, drawing: Markup) -> Markup:
    """The place of a still chart: its marks carry their own words."""
    return el(
        "div",
        _top(title, sub),
        drawing,
        class_="chart still",
        tabindex=0,
        role="group",
        aria_label=f"{title or 'Served values'}: chart. Arrow keys move the read-out.",
    )


def heading(title: str, sub: str = "") -> Markup:
    """A chart's title with its unit in lighter type."""
    return el("h3", title, *([" ", el("span", prose(sub))] if sub else []))


def _top(title: str, sub: str) -> Markup:
    read = el("div", "\u00a0", class_="read live", aria_live="polite")
    return el("div", heading(title, sub) if title else join(), read, class_="top")


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """A still chart's numbers, folded away."""
    columns = el("tr", *(el("th", tidy(cell), scope="col") for cell in head))
    body = [
        el("tr", el("th", tidy(row[0]), scope="row"), *(el("td", tidy(cell)) for cell in row[1:]))
        for row in rows
    ]
    inside = el("table", el("thead", columns), el("tbody", *body))
    return el(
        "details",
        el("summary", caption),
        el("div", inside, class_="scroll", tabindex=0, role="region", aria_label=caption),
    )


def series_table(caption: str, charts: Sequence[str]) -> Markup:
    """The numbers of drawn series, filled in by the script when opened."""
    return el("details", el("summary", caption), data_charts=" ".join(charts), class_="live")


def command(made: Made) -> Markup:
    """The command to copy, the audit of its state, and the versions it ran with."""
    facts = []
    if made.state:
        facts += [
            el("dt", "Repeat the check"),
            el("dd", el("code", f"gradeq audit {clean(made.state, 200)}")),
        ]
    facts += [el("dt", "Made with"), el("dd", clean(made.versions, 200))]
    lines = "\n".join(clean(line, 400) for line in made.command.splitlines()[:40])
    return join(
        el(
            "div",
            el("pre", el("code", lines, id="command")),
            el("button", "Copy", type="button", id="copy"),
            class_="command",
        ),
        el("dl", *facts),
    )


def bound_text(bound: float | None, places: int | None = None) -> str:
    """A bound, rounded up: 2 decimals, none from 100 on, two digits where it is small; a dash for none."""
    if bound is None:
        return "\u2013"
    if places is None:
        small = 0.0 < bound < 0.1
        places = min(1 - math.floor(math.log10(bound)), 12) if small else 2
    return limit(bound, places if bound < 100 else 0)


def bound_means(what: str) -> str:
    """What a bound claims: the ranges and delays that a theorem needs are those seen, the rest was settled before."""
    return (
        f"Bound: the largest |{what}| that any data in the range seen, with labels as late as these, could have "
        "caused over as many rows at these steps."
    )


def show_all(table_id: str, which: str, shown: int) -> Markup:
    """The button that opens and closes the rest of a table."""
    return el(
        "button",
        f"Show {which}",
        type="button",
        id="all",
        aria_controls=table_id,
        aria_expanded="false",
        data_other=f"Show the first {count(shown)}",
    )


def _inside_tags(text: str) -> Iterable[bool]:
    inside = False
    for character in text:
        inside = inside or character == "<"
        yield inside
        inside = inside and character != ">"
