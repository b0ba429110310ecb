"""The section on many series: how errors spread over them, the ten worst with their paths, the widest."""

from gradeq.report import plots
from gradeq.report.grouptable import is_loose, losses, places_of, worst_table
from gradeq.report.markup import Markup, clean, el, join, name
from gradeq.report.numerals import count, decimals, number, percent, points, word
from gradeq.report.of_keys import ENOUGH, YOUNG, having
from gradeq.report.parts import section, still, table
from gradeq.report.story import ManySeries, Story, WideSeries
from gradeq.report.words import limits_changed


def series(story: Story) -> Markup:
    """The section; empty without series to compare."""
    many = story.series
    if many is None or not many.worst:
        return join()
    share = "sharing an overall correction" if many.pooled else "each with its own layer"
    intro = f"{count(many.total)} series of `{clean(story.key)}`, {share}."
    if many.judged < many.total:
        intro += f" {count(many.judged)} of them {having(many.fewest)} are compared."
    intro += f" {_spread(story, many)}"
    return section(
        "Series",
        intro,
        el("div", _histogram(story, many), _widest(many), class_="pair"),
        el("h3", f"The {word(len(many.worst)).lower()} farthest off"),
        worst_table(story, many.worst, many.relative),
        el("p", _followed(story, many), class_="foot"),
        class_="long",
    )


def _spread(story: Story, many: ManySeries) -> str:
    if story.kind == "quantile":
        return (
            f"Coverage is off target by {points(many.mean, False)} points on average, by "
            f"{points(many.far, False)} or more in a tenth of them."
        )
    places = decimals(many.mean, many.far)
    return (
        f"Their {_bias(many)} is {number(many.mean, places)} in size on average, {number(many.far, places)} "
        "or more in a tenth of them."
    )


def _bias(many: ManySeries) -> str:
    return "relative bias" if many.relative else "bias"


def _followed(story: Story, many: ManySeries) -> str:
    text = "Over the labels that each series has learned from, since its state began."
    if many.fewest < ENOUGH:
        text += f" {YOUNG}"
    if limits_changed(story.verdict.coverage):
        text += " Coverage of series is judged before --min and --max, as are the bounds; the loss is as served."
    if many.widest and many.widest[0].width is not None:
        text += " Widths are of the labelled rows of this run."
    if many.relative:
        return f"{text} Bias and loss are of (served − label) / prediction and its square."
    if any(is_loose(group) for group in many.worst):
        text += " * loose: the bound is larger than the error before."
    drawn = [group.spark is not None for group in many.worst]
    if any(drawn) and not all(drawn):
        text += " Series with few labels, and those that appear after many others, are not drawn."
    return text


def _histogram(story: Story, many: ManySeries) -> Markup:
    covers = story.kind == "quantile"
    title = "Coverage less target, points" if covers else f"{_bias(many).capitalize()} as served"
    if many.histogram is None or len(many.histogram.edges) < 2:
        return join()
    data = many.histogram
    rows = [
        [f"{number(low, 1 if covers else 3)} to {number(high, 1 if covers else 3)}", count(n)]
        for low, high, n in zip(data.edges[:-1], data.edges[1:], data.counts, strict=True)
    ]
    return el(
        "div",
        still(title, "how many series", plots.histogram(data, "series")),
        table("Show as a table", (title, "Series"), rows),
    )


def _widest(many: ManySeries) -> Markup:
    if not many.widest:
        return join()
    wide = many.widest[0].width is not None
    places = places_of([row.loss for row in many.widest])
    loss = "Relative loss" if many.relative else "Loss"
    heads = ["Series", "Labels", *(["Coverage"] if wide else []), f"{loss} before → after"]
    heads += ["Mean width"] if wide else []
    body = [el("tr", *_wide_cells(row, places, wide)) for row in many.widest]
    head = el("thead", el("tr", *(el("th", text, scope="col") for text in heads)))
    title = "The widest" if wide else f"The largest {'relative ' if many.relative else ''}losses"
    made = el("table", head, el("tbody", *body), class_="losses")
    return el(
        "div",
        el("h3", title),
        el("div", made, class_="wide", tabindex=0, role="region", aria_label=title),
    )


def _wide_cells(row: WideSeries, places: int, wide: bool) -> list[Markup]:
    cells = [el("th", name(clean(row.name, 24)), scope="row"), el("td", count(row.rows))]
    if wide:
        cells.append(el("td", percent(row.after)))
    cells.append(el("td", losses(row.loss, places), class_="nowrap"))
    if row.width is not None:
        cells.append(el("td", number(row.width, decimals(row.width)), class_="now"))
    return cells
