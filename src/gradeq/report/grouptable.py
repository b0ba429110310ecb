"""The table of groups: error before and after with its bound, loss beside it, rolling sparkline."""

import math
from collections.abc import Sequence
from itertools import groupby

from gradeq.report import marks
from gradeq.report.markup import Markup, el, join, name, prose, tidy
from gradeq.report.numerals import count, decimals, month, number, percent, points, target
from gradeq.report.parts import bound_means, bound_text, section, show_all
from gradeq.report.story import Group, LevelRow, Pair, Story
from gradeq.report.ticks import Scale, finite, scale, step, ticks
from gradeq.report.words import limits_changed

FIRST = 20
"""Rows shown before "Show all"."""

_SPARKS = 60
BEFORE_LIMITS = (
    "Coverage and loss are as served; a bound is on the coverage before --min and --max, and stands here only "
    "where these changed nothing."
)


def places_of(pairs: Sequence[Pair]) -> int:
    """Decimals of a column of before-after pairs: one more when a pair would print alike."""
    places = decimals(*(v for pair in pairs for v in (pair.before, pair.after)), 0.0)
    alike = any(
        p.before != p.after and number(p.before, places) == number(p.after, places) for p in pairs
    )
    return places + alike


def losses(pair: Pair, places: int) -> Markup:
    """Loss before → after in one cell."""
    return join(
        el("span", number(pair.before, places), class_="was"),
        el("span", " → ", class_="arrow"),
        el("span", number(pair.after, places), class_="now"),
    )


def groups(story: Story, most: int) -> Markup:
    """The section on groups; empty without any."""
    if not story.groups:
        return join()
    most = min(most, 100)
    total = max(story.groups_total, len(story.groups))
    kept = set(sorted(range(len(story.groups)), key=lambda i: -story.groups[i].rows)[:most])
    rows = [group for i, group in enumerate(story.groups) if i in kept]
    look = _Look(story, rows)
    body: list[Markup] = []
    shown = 0
    for by, members in groupby(rows, key=lambda group: group.by):
        more = "by more" if shown >= FIRST and len(rows) > FIRST + 5 else "by"
        head = el("th", "by ", name(by, None), colspan=look.columns, scope="colgroup")
        body.append(el("tr", head, class_=more))
        for group in members:
            hidden = shown >= FIRST and len(rows) > FIRST + 5
            body.append(look.row(group, hidden, shown < _SPARKS))
            shown += 1
    body.append(look.all_rows(story))
    intro = _intro(story)
    if len(rows) < total:
        intro += f" The {count(len(rows))} groups with most rows, of {count(total)}."
    loose = any(is_loose(group) and not group.vacuous for group in rows)
    star = "* loose: the bound is larger than the error before. " if loose else ""
    over = story.verdict.certificate.over
    about = f" It is on averages {over}, not over the rows of this table." if over else ""
    about += f" {BEFORE_LIMITS}" if limits_changed(story.verdict.coverage) else ""
    foot = el(
        "p",
        f"{star}{bound_means(look.word)}{about}",
        class_="foot",
    )
    button = (
        [show_all("groups", f"all {count(len(rows))} groups", FIRST)]
        if len(rows) > FIRST + 5
        else []
    )
    made = el("table", look.head(), el("tbody", *body), class_="groups", id="groups")
    under = el("div", *button, foot, class_="under") if button else foot
    long = "long" if len(rows) > 12 else None
    return section("Groups", intro, _key(), made, under, class_=long)


def levels(rows: Sequence[LevelRow], loss: str, over: str = "", used: bool = False) -> Markup:
    """Coverage and loss of each level of a several-level run; ``over``: what the bounds are about, if not
    these; ``used``: the values are held inside limits."""
    if not rows:
        return join()
    places = places_of([row.loss for row in rows])
    head = el(
        "tr",
        *(
            el("th", text, scope="col", class_="same" if text == "Target" else None)
            for text in (
                *("Level", "Target", "Coverage before", "Coverage after", "Off by, points"),
                *("Bound, points", f"{_capital(loss)} before → after"),
            )
        ),
    )
    body = [
        el(
            "tr",
            el("th", row.name, scope="row"),
            el("td", tidy(target(row.target)), class_="same"),  # a phone has the level alone
            el("td", tidy(percent(row.coverage.before)), class_="was"),
            el("td", tidy(percent(row.coverage.after)), class_="now"),
            el("td", points(row.coverage.after - row.target)),
            el("td", bound_cell(row.bound, row.vacuous, False, 100.0, 1)),
            el("td", losses(row.loss, places), class_="nowrap"),
        )
        for row in rows[:100]
    ]
    intro = "A level covers a label that lies at or below its served value."
    intro += f" Bounds are on averages {over}, not over the rows of this table." if over else ""
    intro += f" {BEFORE_LIMITS}" if used else ""
    return section(
        "Levels", intro, el("table", el("thead", head), el("tbody", *body), class_="losses")
    )


def bound_cell(
    bound: float | None,
    vacuous: bool,
    loose: bool,
    factor: float = 1.0,
    places: int | None = None,
) -> Markup:
    """A bound, the grey word when it says nothing, an asterisk when it is loose."""
    if vacuous:
        return el("span", "none yet", class_="tag grey")
    shown = bound_text(None if bound is None else factor * bound, places)
    star = el("span", "*", class_="star", title="loose: larger than the error before")
    return el("span", shown, star, class_="loose") if loose else join(shown)


def worst_table(story: Story, rows: Sequence[Group], relative: bool = False) -> Markup:
    """A table of some series as that of groups has them; ``relative`` errors have no row of all beside them."""
    look = _Look(story, rows, "Series", relative)
    body = [look.row(group, False, True) for group in rows]
    body += [] if relative else [look.all_rows(story)]
    return el("table", look.head(), el("tbody", *body), class_="groups", id="series")


class _Look:
    """The shared scales, decimals and words of one table of groups, or of the series of a key."""

    def __init__(
        self, story: Story, rows: Sequence[Group], noun: str = "Group", relative: bool = False
    ) -> None:
        self.noun = noun
        self.bias = "Relative bias" if relative else "Bias"
        self.covers = story.kind == "quantile"
        self.binary = story.outcome == "binary"
        self.loss = "Relative squared error" if relative else _capital(story.verdict.loss.name)
        self.word = "coverage − target" if self.covers else "bias"
        self.error_places = places_of([Pair(g.before, g.after) for g in rows])
        self.loss_places = places_of(
            [*(g.loss for g in rows), Pair(story.verdict.loss.before, story.verdict.loss.after)]
        )
        self.mean_places = decimals(*(g.label_mean for g in rows), 0.0)
        largest = max((abs(v) for g in rows for v in _errors(g)), default=0.0) or 0.01
        reach = 1.2 * largest
        unit = 100.0 if self.covers else 1.0
        width = step(reach * unit, 2) / unit
        inner = [t for t in (ticks(-reach * unit, reach * unit, width * unit, "sign"))]
        self.axis = Scale(-reach, reach, tuple((v / unit, label) for v, label in inner))
        sparks = [g.spark for g in rows if g.spark is not None]
        lines = finite(*(s.before for s in sparks), *(s.after for s in sparks))
        centre = [g.target for g in rows if g.target is not None] if self.covers else [0.0]
        self.spark = scale(lines, include=centre, pad=0.0) if sparks else None
        ends = [x for s in sparks for x in (s.x[:1] + s.x[-1:])]
        begin = [story.rolling.begin] if story.rolling else []
        ends += [x for x in begin if x is not None]
        self.span = (min(ends), max(ends)) if ends else (0.0, 1.0)
        self.dated = story.rolling is not None and story.rolling.axis == "date"
        self.meant = any(math.isfinite(g.label_mean) for g in rows)  # a state keeps no mean label
        self.columns = 7 + bool(self.spark) + self.meant

    def head(self) -> Markup:
        """Column heads; the shared scales are written in them."""
        what = "Coverage" if self.covers else self.bias
        heads = [
            (self.noun, "left"),
            ("Rows", ""),
            *([("Label|rate" if self.binary else "Mean|label", "")] if self.meant else []),
            (f"{what}|before", ""),
            (f"{what}|after", ""),
            (
                "Off target and bound,|points" if self.covers else f"{self.bias} and bound",
                "left bars",
            ),
            ("Bound,|points" if self.covers else "Bound", ""),
            (f"{self.loss}|before → after", "left"),
        ]
        if self.spark:
            low, high = (self._rolled(v) for v in (self.spark.low, self.spark.high))
            heads.append((f"Rolling {what.lower()},|{low} to {high}", "left spark"))
        cells = (el("th", *two_lines(text), scope="col", class_=c or None) for text, c in heads)
        return el("thead", el("tr", *cells))

    def row(self, group: Group, hidden: bool, with_spark: bool) -> Markup:
        """One group's row."""
        before, after = _errors(group)
        loose = is_loose(group)
        words = f"{self._error(group.before)} before, {self._error(group.after)} after"
        cells = [
            el("th", name(group.name), scope="row"),
            cell(count(group.rows), "Rows"),
            *self._mean_cell(self._mean(group.label_mean)),
            cell(self._error(group.before), "Before", "was"),
            cell(self._error(group.after), "After", "now"),
            cell(
                marks.bars(before, after, None if group.vacuous else group.bound, self.axis, words),
                "",
                "bars",
            ),
            cell(
                bound_cell(group.bound, group.vacuous, loose, *((100.0, 1) if self.covers else ())),
                "Bound",
                "limit",
            ),
            cell(losses(group.loss, self.loss_places), self.loss, "left nowrap cost"),
        ]
        if self.spark:
            drawn = (
                marks.spark(group.spark, self.spark.low, self.spark.high, self.span,
                            group.target or 0.0)
                if group.spark is not None and with_spark
                else join()
            )  # fmt: skip
            cells.append(cell(drawn, "", "spark"))
        return el("tr", *cells, class_="more" if hidden else None)

    def all_rows(self, story: Story) -> Markup:
        """The last row: all labelled rows, and the axes of the drawings above."""
        verdict = story.verdict
        only = verdict.coverage[0] if len(verdict.coverage) == 1 else None
        whole = verdict.bias or (None if only is None else only.held or only)
        same = [g for g in story.groups if g.by == story.groups[0].by]
        rows = sum(g.rows for g in same)
        shares = [g.rows if g.weight is None else g.weight for g in same]
        mean = sum(s * g.label_mean for s, g in zip(shares, same, strict=True))
        mean = mean / sum(shares) if rows else 0.0
        whole_mean = self._mean(mean) if rows == story.labelled else ""
        loss = Pair(verdict.loss.before, verdict.loss.after)
        cells = [
            el("th", "All rows", scope="row"),
            cell(count(story.labelled), "Rows"),
            *self._mean_cell(whole_mean),
            cell(self._error(whole.before) if whole else "", "Before", "was"),
            cell(self._error(whole.after) if whole else "", "After", "now"),
            cell(marks.axis(self.axis), "", "bars"),
            cell("", ""),
            cell(losses(loss, self.loss_places), self.loss, "left nowrap cost"),
        ]
        if self.spark:
            ends = tuple(month(x) if self.dated else count(int(x)) for x in self.span)
            texts = [
                el("text", ends[0], x=0, y=13), el("text", ends[1], x=132, y=13, text_anchor="end")
            ]  # fmt: skip
            cells.append(
                cell(el("svg", *texts, viewBox="0 0 132 18", width=132, height=18), "", "spark")
            )
        return el("tr", *cells, class_="all")

    def _error(self, value: float) -> str:
        return percent(value) if self.covers else number(value, self.error_places, sign=True)

    def _mean_cell(self, shown: str) -> list[Markup]:
        head = "Label rate" if self.binary else "Mean label"
        return [cell(shown, head)] if self.meant else []

    def _mean(self, value: float) -> str:
        return percent(value) if self.binary else number(value, self.mean_places)

    def _rolled(self, value: float) -> str:
        if self.covers:
            return percent(value, 0)
        return number(value, 2 if abs(value) < 10 else 0, sign=True)


def two_lines(text: str) -> list[str]:
    """A column head of two lines, cut at the bar."""
    first, bar, second = text.partition("|")
    return [tidy(first), el("br"), tidy(second)] if bar else [tidy(first)]


def cell(inside: str, head: str, class_: str | None = None) -> Markup:
    """A cell; ``head`` stands above it where the table is too narrow for columns."""
    text = inside if isinstance(inside, Markup) else tidy(inside)
    children = [text] if inside else []
    class_ = f"{class_ or ''} huge".strip() if "×10" in inside else class_
    return el("td", *children, class_=class_, data_head=head or None)


def _errors(group: Group) -> tuple[float, float]:
    middle = group.target or 0.0
    return group.before - middle, group.after - middle


def is_loose(group: Group) -> bool:
    """Whether the bound is larger than the error before, so that it says little."""
    return group.bound is not None and group.bound > abs(_errors(group)[0]) and not group.vacuous


def _intro(story: Story) -> str:
    columns = [f"one `{by}`" for by in story.by]
    first = ""
    if story.levels:
        first = f" Coverage is that of the first level, {story.levels[0].name}; the loss is over all levels."
    if len(columns) > 1:
        listed = ", ".join(columns[:-1]) + " and " + columns[-1]
        verb = "debiased" if story.kind == "debias" else "corrected"
        together = "both are" if len(columns) == 2 else "all are"
        return f"Each row of the file counts in {listed}; {together} {verb} together.{first}"
    return f"Each row of the file counts in {columns[0]}.{first}" if columns else ""


def _key() -> Markup:
    def sample(*parts: Markup) -> Markup:
        return el("svg", *parts, viewBox="0 0 22 10", width=22, height=10, aria_hidden="true")

    box = {"x": 2, "y": 1, "width": 18, "height": 8}
    entries = (
        (sample(el("rect", class_="b", **box)), "before"),
        (sample(el("rect", class_="a", **box)), "after"),
        (sample(el("path", d="M1 5h20M1 2v6M21 2v6", class_="whisker")), "worst-case bound"),
        (
            sample(el("path", d="M1 5h20M5 1L1 5l4 4M17 1l4 4l-4 4", class_="whisker")),
            "bound beyond the axis",
        ),
    )
    return el("div", *(el("span", mark, prose(text)) for mark, text in entries), class_="key")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
