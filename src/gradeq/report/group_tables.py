"""Tables of groups and series: error before and after with its bound, loss, sparkline; groups by month."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby

from gradeq.certificates.figures import NO_GUARANTEE
from gradeq.report import charts
from gradeq.report.charts import Scale, axis_scale, finite, tick_step, ticks
from gradeq.report.components import (
    BOUND_MEANS,
    Markup,
    bound_text,
    chart_box,
    clean,
    el,
    join,
    name,
    section,
    show_all,
    table,
    tidy,
)
from gradeq.report.numerals import count, decimals, month, number, percent, points, target, word
from gradeq.report.sentences import limits_changed
from gradeq.report.state_facts import ENOUGH, TOO_FEW_COMPARED, label_requirement
from gradeq.report.story import BeforeAfter, Group, HeatMap, ManySeries, Story, Verdict
from gradeq.tables import some

FIRST = 20
"""Rows shown before "Show all"."""

_SPARKS = 60
BEFORE_LIMITS = (
    "Coverage and loss are as served; a bound is on the coverage before --min and --max, and stands here only "
    "where these changed nothing."
)


# Cells


def places_of(pairs: Sequence[BeforeAfter]) -> int:
    """Decimals of a column of before-after pairs: one more when a pair would print alike."""
    places = decimals(*(v for pair in pairs for v in (pair.before, pair.after)), 0.0)
    alike = any(p.before != p.after and number(p.before, places) == number(p.after, places) for p in pairs)
    return places + alike


def loss_change_cell(pair: BeforeAfter, places: int) -> Markup:
    return join(
        el("span", number(pair.before, places), class_="was"),
        el("span", " → ", class_="arrow"),
        el("span", number(pair.after, places), class_="now"),
    )


def is_loose(group: Group) -> bool:
    """Whether the bound is larger than the error before, so that it says little."""
    error = group.before - (group.target or 0.0)
    return group.bound is not None and group.bound > abs(error) and not group.vacuous


def bound_cell(bound: float | None, vacuous: bool, loose: bool, in_points: bool) -> Markup:
    """A bound, the grey word when it says nothing, an asterisk when it is loose."""
    if vacuous:
        return el("span", NO_GUARANTEE, class_="tag grey")
    text = bound_text(100.0 * bound, 1) if in_points and bound is not None else bound_text(bound)
    star = el("span", "*", class_="star", title="loose: larger than the error before")
    return el("span", text, star, class_="loose") if loose else join(text)


def table_head(heads: Iterable[tuple[str, str]]) -> Markup:
    """Column heads with their classes; a bar starts the second line of a head."""
    cells = []
    for text, class_ in heads:
        first, bar, second = text.partition("|")
        lines = [tidy(first), el("br"), tidy(second)] if bar else [tidy(first)]
        cells.append(el("th", *([text] if isinstance(text, Markup) else lines), scope="col", class_=class_ or None))
    return el("thead", el("tr", *cells))


def table_cell(inside: str, head: str, class_: str | None = None) -> Markup:
    """A cell; ``head`` stands above it where the table is too narrow for columns."""
    text = inside if isinstance(inside, Markup) else tidy(inside)
    class_ = f"{class_ or ''} huge".strip() if "×10" in inside else class_
    return el("td", *([text] if inside else []), class_=class_, data_head=head or None)


def bound_notes(verdict: Verdict) -> str:
    """Which averages the bounds of a table are on, if not those that it shows."""
    over = verdict.certificate.over
    note = f" Bounds are on averages {over}, not on those of this table." if over else ""
    return note + (f" {BEFORE_LIMITS}" if limits_changed(verdict.coverage) else "")


# Groups


class GroupTable:
    """The shared scales, decimals and words of one table of groups, or of the series of a key."""

    def __init__(self, story: Story, rows: Sequence[Group], noun: str = "Group", relative: bool = False) -> None:
        verdict, rolling = story.verdict, story.rolling
        self.covers, self.binary = story.kind == "quantile", story.outcome == "binary"
        self.loss = "Relative squared error" if relative else verdict.loss.name.capitalize()
        places = places_of([BeforeAfter(g.before, g.after) for g in rows])
        self.error: Callable[[float], str] = percent if self.covers else partial(number, decimals=places, sign=True)
        whole = BeforeAfter(verdict.loss.before, verdict.loss.after)
        self.loss_places = places_of([*(g.loss for g in rows), whole])
        places = decimals(*(g.label_mean for g in rows), 0.0)
        self.mean: Callable[[float], str] = percent if self.binary else partial(number, decimals=places)
        self.mean_head = "Label rate" if self.binary else "Mean label"
        errors = finite(abs(v - (g.target or 0.0)) for g in rows for v in (g.before, g.after))
        reach = 1.2 * (max(errors, default=0.0) or 0.01)
        unit = 100.0 if self.covers else 1.0
        width = tick_step(reach * unit, 2) / unit
        inner = ticks(-reach * unit, reach * unit, width * unit, "sign")
        self.axis = Scale(-reach, reach, tuple((v / unit, label) for v, label in inner))
        sparks = [g.spark for g in rows if g.spark is not None]
        lines = finite(*(s.before for s in sparks), *(s.after for s in sparks))
        centre = [g.target for g in rows if g.target is not None] if self.covers else [0.0]
        self.spark = axis_scale(lines, include=centre, pad=0.0) if sparks else None
        ends = [x for s in sparks for x in (s.x[:1] + s.x[-1:])]
        ends += [rolling.begin] if rolling is not None and rolling.begin is not None else []
        self.span = (min(ends), max(ends)) if ends else (0.0, 1.0)
        self.dated = rolling is not None and rolling.axis == "date"
        self.has_mean = any(math.isfinite(g.label_mean) for g in rows)  # a state stores no mean label
        bias = "Relative bias" if relative else "Bias"
        what = "Coverage" if self.covers else bias
        heads = [
            (noun, "left"),
            ("Rows", ""),
            *([("Label|rate" if self.binary else "Mean|label", "")] if self.has_mean else []),
            (f"{what}|before", ""),
            (f"{what}|after", ""),
            ("Off target and bound,|points" if self.covers else f"{bias} and bound", "left bars"),
            ("Bound,|points" if self.covers else "Bound", ""),
            (f"{self.loss}|before → after", "left"),
        ]
        if self.spark:
            low, high = (
                percent(v, 0) if self.covers else number(v, 2 if abs(v) < 10 else 0, sign=True)
                for v in (self.spark.low, self.spark.high)
            )
            heads.append((f"Rolling {what.lower()},|{low} to {high}", "left spark"))
        self.columns, self.head = len(heads), table_head(heads)  # the shared scales are written in the head

    def row(self, group: Group, hidden: bool = False, with_spark: bool = True) -> Markup:
        before, after, middle = self.error(group.before), self.error(group.after), group.target or 0.0
        bound = None if group.vacuous else group.bound
        words = f"{before} before, {after} after"
        drawing = charts.bars(group.before - middle, group.after - middle, bound, self.axis, words)
        limit = bound_cell(group.bound, group.vacuous, is_loose(group), self.covers)
        spark = join()
        if self.spark and group.spark and with_spark:
            spark = charts.spark(group.spark, self.spark, self.span, middle)
        figures = [count(group.rows), self.mean(group.label_mean), before, after]
        cells = self._cells(figures, drawing, limit, group.loss, spark)
        return el("tr", el("th", name(group.name), scope="row"), *cells, class_="more" if hidden else None)

    def _cells(
        self, figures: list[str], drawing: Markup, limit: Markup, loss: BeforeAfter, spark: Markup
    ) -> list[Markup]:
        """The cells of a row after its name. ``figures``: rows, mean label, error before and after."""
        heads = (("Rows", None), (self.mean_head, None), ("Before", "was"), ("After", "now"))
        cells = [table_cell(text, *head) for text, head in zip(figures, heads, strict=True)]
        if not self.has_mean:
            del cells[1]
        cells += [table_cell(drawing, "", "bars"), table_cell(limit, "Bound" if limit else "", "limit")]
        cells.append(table_cell(loss_change_cell(loss, self.loss_places), self.loss, "left nowrap cost"))
        return [*cells, table_cell(spark, "", "spark")] if self.spark else cells

    def all_rows(self, story: Story) -> Markup:
        """The last row: all labelled rows, and the axes of the drawings above."""
        verdict = story.verdict
        only = verdict.coverage[0] if len(verdict.coverage) == 1 else None
        whole = verdict.bias or (None if only is None else only.held or only)
        errors = [self.error(whole.before), self.error(whole.after)] if whole else ["", ""]
        same = [g for g in story.groups if g.by == story.groups[0].by]
        mean = ""
        if sum(g.rows for g in same) == story.labelled:
            shares = [g.rows if g.weight is None else g.weight for g in same]
            total = sum(s * g.label_mean for s, g in zip(shares, same, strict=True))
            mean = self.mean(total / sum(shares) if story.labelled else 0.0)
        loss = BeforeAfter(verdict.loss.before, verdict.loss.after)
        first, last = (month(x) if self.dated else count(int(x)) for x in self.span)
        texts = (el("text", first, x=0, y=13), el("text", last, x=132, y=13, text_anchor="end"))
        span = el("svg", *texts, viewBox="0 0 132 18", width=132, height=18)
        cells = self._cells([count(story.labelled), mean, *errors], charts.axis(self.axis), join(), loss, span)
        return el("tr", el("th", "All rows", scope="row"), *cells, class_="all")


_BOX = {"x": 2, "y": 1, "width": 18, "height": 8}
_KEY = (
    (el("rect", class_="b", **_BOX), "before"),
    (el("rect", class_="a", **_BOX), "after"),
    (el("path", d="M1 5h20M1 2v6M21 2v6", class_="whisker"), "worst-case bound"),
    (el("path", d="M1 5h20M5 1L1 5l4 4M17 1l4 4l-4 4", class_="whisker"), "bound beyond the axis"),
)


def group_section(story: Story, most: int) -> Markup:
    """The section on groups: those with most rows, in their order."""
    largest = set(sorted(range(len(story.groups)), key=lambda i: -story.groups[i].rows)[: min(most, 100)])
    rows = [group for i, group in enumerate(story.groups) if i in largest]
    look = GroupTable(story, rows)
    folded = len(rows) > FIRST + 5
    body: list[Markup] = []
    shown = 0
    for by, members in groupby(rows, key=lambda group: group.by):
        head = el("th", "by ", name(by, None), colspan=look.columns, scope="colgroup")
        body.append(el("tr", head, class_="by more" if shown >= FIRST and folded else "by"))
        for group in members:
            body.append(look.row(group, shown >= FIRST and folded, shown < _SPARKS))
            shown += 1
    body.append(look.all_rows(story))
    columns, intro, first = [f"one `{by}`" for by in story.by], "", ""
    if story.levels:
        first = f" Coverage is that of the first level, {story.levels[0].name}; the loss is over all levels."
    if len(columns) > 1:
        listed = ", ".join(columns[:-1]) + " and " + columns[-1]
        together = "both are" if len(columns) == 2 else "all are"
        verb = "debiased" if story.kind == "debias" else "corrected"
        intro = f"Each row of the file counts in {listed}; {together} {verb} together.{first}"
    elif columns:
        intro = f"Each row of the file counts in {columns[0]}.{first}"
    total = max(story.groups_total, len(story.groups))
    if len(rows) < total:
        intro += f" The {count(len(rows))} groups with most rows, of {count(total)}."
    foot = "* loose: the bound is larger than the error before. " if any(map(is_loose, rows)) else ""
    foot += BOUND_MEANS.format("coverage − target" if look.covers else "bias")
    foot += bound_notes(story.verdict)
    under = el("p", foot, class_="foot")
    if folded:
        under = el("div", show_all("groups", f"all {count(len(rows))} groups", FIRST), under, class_="under")
    key = el("div", *(el("span", charts.svg_element(22, 10, [mark]), text) for mark, text in _KEY), class_="key")
    groups = el("table", look.head, el("tbody", *body), class_="groups", id="groups")
    return section("Groups", intro, key, groups, under, class_="long" if len(rows) > 12 else None)


def level_section(story: Story) -> Markup:
    rows, verdict = story.levels, story.verdict
    places = places_of([row.loss for row in rows])
    loss = f"{verdict.loss.name.capitalize()} before → after"
    heads = ("Level", "Target", "Coverage before", "Coverage after", "Off by, points", "Bound, points", loss)
    head = table_head((text, "same" if text == "Target" else "") for text in heads)
    body = [
        el(
            "tr",
            el("th", row.name, scope="row"),
            el("td", tidy(target(row.target)), class_="same"),  # a phone has the level alone
            el("td", tidy(percent(row.coverage.before)), class_="was"),
            el("td", tidy(percent(row.coverage.after)), class_="now"),
            el("td", points(row.coverage.after - row.target)),
            el("td", bound_cell(row.bound, row.vacuous, loose=False, in_points=True)),
            el("td", loss_change_cell(row.loss, places), class_="nowrap"),
        )
        for row in rows[:100]
    ]
    intro = f"A level covers a label that lies at or below its served value.{bound_notes(verdict)}"
    return section("Levels", intro, el("table", head, el("tbody", *body), class_="losses"))


# Groups over time

_LEFT, _ROW = 116.0, 24.0


def heat_map_section(story: Story, heat: HeatMap) -> Markup:
    covers = story.kind == "quantile"
    sizes = sorted(abs(v) for row in heat.rows for v in finite(row.before, row.after))
    if not sizes:
        return join()
    # Full colour is reached by one cell in twenty, so that a few extremes do not bleach the rest.
    reach = sizes[int(0.95 * (len(sizes) - 1))] or 1.0
    places = None if covers else decimals(reach, 0.0)
    full = _error_words(reach, places).replace("+", "±") + (" points" if covers else "")
    intro = f"Blue is too low, orange too high; full colour from {full} on. Blank: fewer than 10 labels."
    if story.levels:
        intro += f" Coverage at level {story.levels[0].name}."
    what = "coverage − target, points" if covers else "served − label"
    panels = [
        chart_box(title, what, _heat_map(heat, after, reach, places))
        for title, after in (("Before", False), ("After", True))
    ]
    rows = [
        [row.name, period, count(n), _error_words(before, places), _error_words(after, places)]
        for row in heat.rows
        for period, n, before, after in zip(heat.periods, row.rows, row.before, row.after, strict=True)
        if n
    ]
    return section(
        "Groups over time",
        intro,
        el("div", *panels, class_="pair tight"),
        table("Show as a table", ("Group", "Period", "Labels", "Before", "After"), rows),
    )


def _error_words(value: float | None, places: int | None) -> str:
    """An error, in points where there are no ``places``."""
    if value is None:
        return "–"
    return points(value) if places is None else number(value, places, sign=True)


def _heat_map(heat: HeatMap, after: bool, reach: float, places: int | None) -> Markup:
    width = (charts.WIDTH - _LEFT) / len(heat.periods)
    parts = []
    for i, row in enumerate(heat.rows):
        y = i * _ROW
        parts.append(el("text", clean(row.name, 17), x=_LEFT - 8, y=y + 16, text_anchor="end", class_="mark"))
        for j, error in enumerate(row.after if after else row.before):
            if error is None:
                continue
            strength = 0.06 + 0.94 * min(abs(error) / reach, 1.0)
            words = f"{clean(row.name, 30)}, {heat.periods[j]}: {_error_words(error, places)}, "
            words += some(row.rows[j], "label")
            box = {"x": _LEFT + j * width, "y": y + 1, "width": max(width - 1.0, 0.8), "height": _ROW - 2}
            side = "high" if error > 0 else "low"
            parts.append(el("rect", **box, fill_opacity=round(strength, 2), class_=side, data_read=words))
    height = len(heat.rows) * _ROW
    for j in range(0, len(heat.periods), -(-len(heat.periods) // 5)):
        parts.append(el("text", tidy(heat.periods[j]), x=_LEFT + j * width, y=height + 15))
    return charts.svg_element(charts.WIDTH, height + 20, parts, class_="plotsvg")


# The series of a key


def series_section(story: Story, many: ManySeries) -> Markup:
    """How far the series are off: in words, as a histogram, the widest and the worst."""
    share = "sharing an overall correction" if many.pooled else "each with its own layer"
    intro = f"{count(many.total)} series of `{clean(story.key)}`, {share}."
    if many.judged < many.total:
        intro += f" {count(many.judged)} of them {label_requirement(many.fewest)} are compared."
    if story.kind == "quantile":
        intro += (
            f" Coverage is off target by {points(many.mean, False)} points on average, by "
            f"{points(many.far, False)} or more in a tenth of them."
        )
    else:
        places = decimals(many.mean, many.far)
        intro += (
            f" Their {'relative ' if many.relative else ''}bias is {number(many.mean, places)} in size on average, "
            f"{number(many.far, places)} or more in a tenth of them."
        )
    look = GroupTable(story, many.worst, "Series", many.relative)
    body = [look.row(group) for group in many.worst]
    body += [] if many.relative else [look.all_rows(story)]  # relative errors have no row of all beside them
    foot = "Over the labels that each series has learned from, since its state began."
    foot += f" {TOO_FEW_COMPARED}" if many.fewest < ENOUGH else ""
    if limits_changed(story.verdict.coverage):
        foot += " Coverage of series is judged before --min and --max, as are the bounds; the loss is as served."
    if many.widest and many.widest[0].width is not None:
        foot += " Widths are of the labelled rows of this run."
    if many.relative:
        foot += " Bias and loss are of (served − label) / prediction and its square."
    else:
        foot += " * loose: the bound is larger than the error before." if any(map(is_loose, many.worst)) else ""
        drawn = {group.spark is not None for group in many.worst}
        if len(drawn) == 2:
            foot += " Series with few labels, and those that appear after many others, are not drawn."
    return section(
        "Series",
        intro,
        el("div", _series_histogram(story, many), _widest(many), class_="pair"),
        el("h3", f"The {word(len(many.worst)).lower()} farthest off"),
        el("table", look.head, el("tbody", *body), class_="groups", id="series"),
        el("p", foot, class_="foot"),
        class_="long",
    )


def _series_histogram(story: Story, many: ManySeries) -> Markup:
    data = many.histogram
    if data is None or len(data.edges) < 2:
        return join()
    title, places = ("Relative bias" if many.relative else "Bias") + " as served", 3
    if story.kind == "quantile":
        title, places = "Coverage less target, points", 1
    rows = charts.bin_rows(data, partial(number, decimals=places))
    drawing = chart_box(title, "how many series", charts.histogram(data, "series"))
    return el("div", drawing, table("Show as a table", (title, "Series"), rows))


def _widest(many: ManySeries) -> Markup:
    if not many.widest:
        return join()
    wide = many.widest[0].width is not None
    places = places_of([row.loss for row in many.widest])
    loss = f"{'Relative loss' if many.relative else 'Loss'} before → after"
    heads = ("Series", "Labels", "Coverage", loss, "Mean width") if wide else ("Series", "Labels", loss)
    body = []
    for row in many.widest:
        cells = [el("th", name(clean(row.name, 24)), scope="row"), el("td", count(row.rows))]
        cells += [el("td", percent(row.after))] if wide else []
        cells.append(el("td", loss_change_cell(row.loss, places), class_="nowrap"))
        if row.width is not None:
            cells.append(el("td", number(row.width, decimals(row.width)), class_="now"))
        body.append(el("tr", *cells))
    title = "The widest" if wide else f"The largest {'relative ' if many.relative else ''}losses"
    widest = el("table", table_head((text, "") for text in heads), el("tbody", *body), class_="losses")
    return el("div", el("h3", title), el("div", widest, class_="wide", tabindex=0, role="region", aria_label=title))
