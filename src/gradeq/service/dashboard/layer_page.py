"""The page of one layer: verdict, warnings, figures, charts, checks and refused events."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from gradeq.certificates.figures import NO_GUARANTEE
from gradeq.report import charts
from gradeq.report.charts import ChartSheet, LineChart, NumberFormat, Scale, axis_scale, coloured, finite
from gradeq.report.components import (
    BOUND_MEANS,
    NOTICE_ICONS,
    Markup,
    arrow,
    bound_text,
    certificate_figure,
    chart_box,
    clean,
    el,
    figure,
    icon,
    join,
    loss_figure,
    name,
    prose,
    runs,
    section,
    series_table,
    show_all,
    table,
    tidy,
)
from gradeq.report.group_tables import bound_cell, is_loose, loss_change_cell, places_of, table_cell, table_head
from gradeq.report.numerals import count, decimals, moment, number, percent, plain, points, target
from gradeq.report.page import certificate_section, elo_figures, leaderboard
from gradeq.report.sentences import (
    FEW,
    SHADOWED,
    Sentence,
    elo_headline,
    elo_qualification,
    headline,
    improved,
    not_counted,
)
from gradeq.report.state_facts import ENOUGH, TOO_FEW_COMPARED, label_requirement
from gradeq.report.story import Axis, BeforeAfter, EloStory, Group, NamedCurve, Notice, Spark, Story
from gradeq.service.dashboard.overview import Check, GroupFlight, InFlight, Overview
from gradeq.service.dashboard.trends import UNITS, Delays, RollingCurves, duration_words
from gradeq.service.transaction import REMEDIES
from gradeq.tables import agreeing, some

NO_LABEL = "No label to learn from: nothing to judge."
CHECK = "M8 1a7 7 0 1 0 .01 0zM4.8 8.3l2.2 2.2 4.2-4.8"
ROWS_SHOWN = 20  # rows of a table before "Show all"
DIVERGES = (
    "Diverges above: the constant step at which corrections would grow without end if every label of the group came "
    "as late as its latest. Steps stay far below it."
)


def layer_page(view: Overview, sheet: ChartSheet, admin: bool) -> Markup:
    """The main column; charts put their numbers on the sheet."""
    board = []
    if isinstance(view.story, EloStory):
        board = [leaderboard(view.story, 200), certificate_section(view.story)]
    return join(
        _title(view, admin),
        el("p", runs(verdict_sentence(view)), class_="verdict"),
        *(_warning_bar(notice) for notice in view.notices),
        el("div", *_figures(view), class_="figures"),
        _rolling_section(view, sheet),
        *board,
        el("div", _waiting_section(view, sheet), _delay_section(view.flight.delays), class_="pair"),
        _key_section(view),
        _group_section(view),
        el("div", _checks(view.checks), _refused(view), class_="pair"),
        _learning(view),
    )


def _title(view: Overview, admin: bool) -> Markup:
    buttons = [
        el("button", "Resume learning" if view.frozen else "Pause learning", type="button",
           data_do="resume" if view.frozen else "freeze"),
        el("a", "Download state", href=f"/layers/{view.name}/state", class_="button", download=True),
    ] if admin else []  # fmt: skip
    last = ["no label yet"]
    if view.last_label is not None:
        last = ["last label ", el("time", "", data_since=f"{view.last_label:.3f}")]
    return el(
        "div",
        el("div", el("h1", name(view.name, None)), el("p", prose(view.about), class_="about")),
        el("div", el("span", el("span", "", class_="beat"), *last, class_="heard"), *buttons, class_="controls"),
        class_="title",
    )


def verdict_sentence(view: Overview) -> Sentence:
    """What the layer has achieved, and which labels are not part of it."""
    story, excluded = view.story, not_counted(view.paused, view.taken_back)
    sentence: Sentence
    if excluded and not view.labels:
        sentence = (NO_LABEL,)
    elif isinstance(story, EloStory):
        first = (story.lines[0],) if story.lines else elo_headline(story)
        sentence = (*first, " ", *elo_qualification(replace(story, lines=())))
    elif view.labels >= FEW and story.verdict.bias is None and not story.verdict.coverage:
        sentence = (f"{some(view.labels, 'label')} in series with groups of their own.",)
    else:
        sentence = headline(story)
    return (*sentence, f" {excluded}.") if excluded else sentence


def _warning_bar(notice: Notice) -> Markup:
    text = [el("b", prose(notice.claim, 240)), " ", prose(notice.evidence)]
    text += [" ", el("span", prose(notice.remedy), class_="remedy")] if notice.remedy else []
    return el(
        "div", el("div", NOTICE_ICONS[notice.level], class_="icon"), el("div", *text),
        class_=f"notice {notice.level}", role="status",
    )  # fmt: skip


def _figures(view: Overview) -> list[Markup]:
    story, flight = view.story, _in_flight(view.flight)
    if isinstance(story, EloStory):
        return [*elo_figures(story), *_recent_figures(view), flight]
    if not view.labels:
        gloss = f"{some(view.served, 'prediction')} served"
        gloss += f", {some(view.paused, 'label')} received" if view.paused else ""
        gloss += f", {some(view.taken_back, 'label')} taken back" if view.taken_back else ""
        return [figure("Labels learned from", el("span", "0"), gloss), flight]
    verdict, coverages, figures = story.verdict, story.verdict.coverage, []
    over, sides = some(view.labels, "label"), _sides_gloss(view)
    if verdict.bias is not None:
        value = arrow(verdict.bias.before, verdict.bias.after, sign=True)
        figures = [figure("Bias since start", value, f"{sides}; {over}")]
    elif len(coverages) == 1:
        value = arrow(percent(coverages[0].before), percent(coverages[0].after))
        figures = [figure(f"Coverage, target {target(coverages[0].target)}", value, f"{sides}; {over}")]
    elif coverages:
        was, now = (max((getattr(c, w) - c.target for c in coverages), key=abs) for w in ("before", "after"))
        value = arrow(points(was), points(now), "points")
        gloss = f"{sides}; {count(len(coverages))} levels, {over}"
        figures = [figure("Farthest from its level", value, gloss)]
    return [
        *figures,
        *_recent_figures(view),
        loss_figure(verdict.loss, verdict.shadow),
        flight,
        certificate_figure(verdict.certificate, improved(story)),
    ]


def _recent_figures(view: Overview) -> list[Markup]:
    last, story = view.last, view.story
    if last is None or last.labels < FEW:
        return []
    many, error = count(last.labels), last.error
    places = decimals(last.loss.before, last.loss.after)
    losses = number(last.loss.before, places), number(last.loss.after, places)
    if isinstance(story, EloStory) or len(story.verdict.coverage) > 1:
        return [figure(f"Loss, last {many}", arrow(*losses), _sides_gloss(view))]
    gloss = f"loss {losses[0]} → {losses[1]}{SHADOWED if view.shadow else ''}"
    if story.verdict.coverage:
        return [figure(f"Last {many} labels", arrow(percent(error.before), percent(error.after)), gloss)]
    value = arrow(error.before, error.after, sign=True)
    return [figure(f"Bias, last {many}", value, gloss)]


def _sides_gloss(view: Overview) -> str:
    return "as served, then as it would be" if view.shadow else "before, then served"


def _in_flight(flight: InFlight) -> Markup:
    facts = []
    if flight.oldest is not None and flight.open:
        facts.append(f"oldest {duration_words(flight.oldest)}")
    if flight.waiting is not None:
        facts.append(f"peak {count(flight.waiting.peak)}")
    if flight.expired:
        facts.append(f"{count(flight.expired)} never came")
    facts = facts or ["no prediction waits for its label" if not flight.open else "wait for their labels"]
    return figure("Labels in flight", el("span", count(flight.open)), ", ".join(facts))


def _rolling_section(view: Overview, sheet: ChartSheet) -> Markup:
    series, story = view.moving, view.story
    if series is None:
        return section("The last labels", "Charts appear after a few dozen labels.")
    noun = "game" if isinstance(story, EloStory) else "label"
    x = (series.axis, "Time" if series.axis == "date" else noun.capitalize(), noun)
    sub = f"mean of {'' if series.axis == 'date' else 'the '}last {count(series.window)} {noun}s"
    if isinstance(story, EloStory):
        parts, words, loss, ids = [], ("coin flip", "forecast"), story.loss, ["loss"]
    else:
        words = ("before", "would be served" if view.shadow else "served")
        parts, loss, ids = [_error_chart(story, series, sheet, x, words, sub)], story.verdict.loss, ["error", "loss"]
        sub = ""
    lines = [(words[0], "before", series.loss_before), (words[1], "after", series.loss_after)]
    y = axis_scale(finite(series.loss_before, series.loss_after), 4, "number", (), 0.06)
    title = f"Rolling {loss.name if loss else 'loss'}"
    line_chart = LineChart(
        "loss", title, x, series.x, lines, y, NumberFormat(1.0, decimals(y.low, y.high, 0.0)),
        sync="last", begin=series.begin, height=150,
    )  # fmt: skip
    return el("section", *parts, sheet.add(line_chart, sub), series_table("Show these numbers as a table", ids))


def _error_chart(
    story: Story, series: RollingCurves, sheet: ChartSheet, x: tuple[Axis, str, str], words: tuple[str, str], sub: str
) -> Markup:
    coverages = story.verdict.coverage
    targets = [c.target for c in coverages] or [0.0]
    lines = [(words[0], "before", series.before), (words[1], "after", series.after)]
    if series.more:
        first = NamedCurve(coverages[0].name, series.after)
        lines = coloured([first, *(NamedCurve(name, values) for name, values in series.more[:2])])
        targets = targets[:3]
    values = finite(*(values for _, _, values in lines))
    if coverages:
        title, unit = "Rolling coverage", f", target {', '.join(target(t) for t in targets)}"
        y = axis_scale(values, 5, "percent", targets, 0.05, (0.0, 1.0))
        how = NumberFormat(100.0, 1, False, "\u00a0%")
    else:
        title, unit = "Rolling bias", f", {words[1]} − label"
        y = axis_scale(values, 5, "sign", targets, 0.05)
        how = NumberFormat(1.0, decimals(y.low, y.high, 0.0), True)
    line_chart = LineChart(
        "error", title, x, series.x, lines, y, how, marks=targets, sync="last", begin=series.begin, height=200,
        show_x=False,
    )  # fmt: skip
    return sheet.add(line_chart, sub + unit)


def _waiting_section(view: Overview, sheet: ChartSheet) -> Markup:
    """How many labels were in flight over time; in words if there is nothing to draw."""
    flight, series = view.flight, view.flight.waiting
    facts = [f"{count(flight.open) if flight.open else 'None'} {agreeing(flight.open or 1, 'waits', 'wait')} now"]
    if flight.overdue:
        facts.append(f"{count(flight.overdue)} for more than twice the 99 % delay")
    if flight.expired:
        facts.append(f"{count(flight.expired)} never came and {agreeing(flight.expired, 'was', 'were')} dropped")
    foot = el("p", tidy("; ".join(facts) + "."), class_="foot")
    if series is None:
        return section("Labels in flight", "", foot)
    y = axis_scale([0.0, float(series.peak)], 4, "number", (), 0.05)
    line_chart = LineChart(
        "waiting", "Labels in flight", ("date", "Time", ""), series.x, [("", "after", series.open)],
        Scale(0.0, y.high, y.ticks), NumberFormat(1.0, 0), height=170, left=44, filled=True,
    )  # fmt: skip
    sub = f"over {duration_words(series.x[-1] - series.x[0])}, at most {count(series.peak)}"
    return el("section", sheet.add(line_chart, sub), foot)


def _delay_section(delays: Delays | None) -> Markup:
    if delays is None:
        return section("Label delay", "", el("p", "Labels came with their predictions.", class_="foot"))
    unit, total, last = UNITS[delays.unit], max(sum(delays.counts), 1), delays.edges[-1]
    x = axis_scale((0.0, last), most=7, pad=0.0)
    frame = charts.Frame(x, Scale(0.0, 1.3 * max(delays.counts) / total, ()), 8.0, 190.0)
    parts = frame.axes("")
    rows = []
    for low, high, n in zip(delays.edges[:-1], delays.edges[1:], delays.counts, strict=True):
        x0, x1, y = frame.px(low), frame.px(high), frame.py(n / total)
        where = f"{_edge(low)} {'or more' if high == last else f'to {_edge(high)}'} {unit}"
        rows.append([where, percent(n / total), count(n)])
        parts.append(
            el("rect", x=x0 + 0.5, y=y, width=max(x1 - x0 - 1.0, 0.8), height=frame.bottom - y,
               class_="a", data_read=f"{where}: {percent(n / total)} of labels")
        )  # fmt: skip
    for seconds, share, down in ((delays.median, "half", 0), (delays.most, "99 %", 17)):
        words = f"{share} within {duration_words(seconds)}"
        at = min(frame.px(seconds / delays.unit), frame.right)
        left = at - frame.left > 8.0 * len(words)  # on its left if there is room
        parts += [
            el("line", x1=at, x2=at, y1=frame.top - 8, y2=frame.bottom, class_="limit"),
            el("text", tidy(words), x=at - 5 if left else at + 5, y=frame.top + 2 + down,
               text_anchor="end" if left else "start", class_="mark"),
        ]  # fmt: skip
    drawing = charts.svg_element(charts.WIDTH, 220.0, parts, class_="plotsvg")
    return el(
        "section",
        chart_box("Label delay", f"last {some(total, 'label')}, by {unit} waited", drawing),
        table("Show as a table", (f"Delay, {unit}", "Share", "Labels"), rows),
    )


def _edge(value: float) -> str:
    return number(value, 0 if value == int(value) else 1 if 10 * value == int(10 * value) else 2)


def _checks(checks: Sequence[Check]) -> Markup:
    rows = []
    for check in checks:
        sign = icon(CHECK, 16, 16, "green") if check.good else NOTICE_ICONS["red"]
        spoken = el("span", "Holds" if check.good else "Fails", class_="hide")
        when = el("time", "", data_since=f"{check.at:.0f}") if check.at is not None else join(check.often)
        text = el("div", el("b", check.name), el("p", prose(check.text)))
        rows.append(el("li", el("div", sign, spoken, class_="icon"), text, el("span", when, class_="when")))
    return section("Certificate and audit", "", el("ul", *rows, class_="checks"))


def _refused(view: Overview) -> Markup:
    if not view.refused:
        none = el("p", "None. Conflicts, unknown ids and invalid labels would be listed here.", class_="foot")
        return section("Refused events", "", none)
    rows = []
    for event in view.refused[::-1][:12]:
        at = datetime.fromtimestamp(event.at, UTC)
        clock = f"{at:%H:%M}" if view.now - event.at < 86_400 else f"{at.day} {at:%b}"
        detail, _, remedy = clean(event.detail, 300).partition("; ")
        remedy = remedy or REMEDIES.get(event.status, "")
        text = [
            el("p", el("code", clean(event.id, 60)), " ", el("span", event.status, class_="tag grey")),
            el("p", detail),
            *([el("p", prose(remedy), class_="do")] if remedy else []),
        ]
        rows.append(el("li", el("time", clock, title=moment(event.at)), el("div", *text)))
    intro = [" ", el("small", f"the last {count(len(rows))}")] if len(view.refused) > len(rows) else []
    return el("section", el("h2", "Refused events", *intro), el("ul", *rows, class_="refused"))


def _learning(view: Overview) -> Markup:
    story = view.story
    certificate = story.certificate if isinstance(story, EloStory) else story.verdict.certificate
    bound = "no theorem covers these settings"
    if certificate.bound is not None:
        bound = f"{bound_text(certificate.bound)} on the largest average gradient"
        bound = f"{NO_GUARANTEE}: no smaller than the raw error" if certificate.vacuous else bound
    behind = ""
    if view.behind is not None:
        behind = f"{count(view.behind[0])} of their entries not read here yet, at most {count(view.behind[1])} so far"
    step = plain(float(f"{view.step:.2g}"))
    if view.method != "auto" and view.step < view.asked * (1.0 - 1e-9):
        step += f", the layer's step is {plain(float(f'{view.asked:.4g}'))}"
    facts = {
        "Step in force": step,
        "Learning": view.learning,
        "Served": f"{some(view.served, 'prediction')}, {some(view.labels, 'label')} learned from",
        "Proven bound": bound,
        "Other servers": behind,
    }
    parts = [part for term, text in facts.items() if text for part in (el("dt", term), el("dd", tidy(text)))]
    return section("How it learns", "", el("dl", *parts))


def _group_section(view: Overview) -> Markup:
    story = view.story
    if isinstance(story, EloStory) or not story.groups:
        return join()
    style = GroupTableStyle(story.groups, view.groups, view.sparks, story.verdict.loss.name)
    sparks = (*view.sparks, *[None] * (len(story.groups) - len(view.sparks)))
    several = len({group.by for group in story.groups}) > 1
    body: list[Markup] = []
    by = None
    for k, (group, flight, spark) in enumerate(zip(story.groups, view.groups, sparks, strict=True)):
        hidden = k >= ROWS_SHOWN
        if several and group.by != by:
            by = group.by
            head = el("th", "by ", name(by, None), colspan=style.columns, scope="colgroup")
            body.append(el("tr", head, class_="by more" if hidden else "by"))
        body.append(style.row(group, flight, spark, hidden))
    heads = style.head("Group" if several else story.groups[0].by)
    groups = el("table", heads, el("tbody", *body), class_="groups live", id="groups")
    shown, intro = len(story.groups), ""
    if story.groups_total > shown:
        intro = f"The {count(shown)} of {count(story.groups_total)} with most labels."
    under = [show_all("groups", f"all {count(shown)} groups", ROWS_SHOWN)] if shown > ROWS_SHOWN else []
    foot = el("div", *under, el("p", tidy(" ".join(style.feet)), class_="foot"), class_="under")
    return section("Groups", intro, el("div", groups, class_="wide"), foot)


def _key_section(view: Overview) -> Markup:
    """The section on keys; empty for other layers, and until two keys have labels."""
    story = view.story
    if isinstance(story, EloStory) or story.series is None or not story.series.worst:
        return join()
    many = story.series
    style = GroupTableStyle(many.worst, [None] * len(many.worst), [], story.verdict.loss.name)
    body = [style.row(one, None, None, False) for one in many.worst]
    keys = el("table", style.head(clean(story.key, 40)), el("tbody", *body), class_="groups live", id="keys")
    feet = [*([TOO_FEW_COMPARED] if many.fewest < ENOUGH else []), *style.feet]
    foot = el("p", tidy(" ".join(feet)), class_="foot") if feet else join()
    rest = "" if many.judged == many.total else f", {count(many.judged)} of them {label_requirement(many.fewest)}"
    off = f"{'relative ' * many.relative}bias {number(many.mean, decimals(many.mean))} in size"
    off = f"{points(many.mean, False)} points off" if style.covers else off
    shown = f"the {count(len(many.worst))} farthest off" if len(many.worst) < many.total else "all"
    intro = f"{some(many.total, 'key')}{rest}, {off} on average; {shown}, the worst first."
    return section("Keys", intro, el("div", keys, class_="wide"), foot)


class GroupTableStyle:
    """The scales, decimals and columns that the rows of a table of groups share."""

    def __init__(
        self, rows: Sequence[Group], flights: Sequence[GroupFlight | None], sparks: Sequence[Spark | None], loss: str
    ) -> None:
        self.loss = loss[:1].upper() + loss[1:]
        self.covers, self.target = rows[0].target is not None, rows[0].target or 0.0
        self.places = places_of([BeforeAfter(g.before, g.after) for g in rows])
        self.loss_places = places_of([g.loss for g in rows])
        drawn = [s for s in sparks if s is not None]
        lines = finite(*(s.before for s in drawn), *(s.after for s in drawn))
        self.spark = axis_scale(lines, include=(self.target,), pad=0.0) if drawn and not self.covers else None
        ends = [x for s in drawn for x in (s.x[0], s.x[-1])]
        self.span = (min(ends), max(ends)) if ends else (0.0, 1.0)
        values = finite([g.before for g in rows], [g.after for g in rows], [self.target])
        self.axis = axis_scale(values, 3, "percent", (), 0.06, (0.0, 1.0)) if self.covers else Scale(0, 1, ())
        counted = [f for f in flights if f is not None]
        self.late = any(f.peak > 1 for f in counted)
        self.steps = self.late and any(f.step is not None for f in counted)
        self.diverges = self.late and any(f.diverges is not None for f in counted)
        self.step_places = _places(f.step for f in counted)
        self.limit_places = _places(f.diverges for f in counted)
        self.bound = not self.diverges and any(g.bound is not None for g in rows)
        self.feet = [DIVERGES] if self.diverges else [BOUND_MEANS.format("error")] if self.bound else []
        extra = 2 * self.late + self.steps + self.diverges + self.bound
        self.columns = 5 + (self.spark is not None or self.covers) + extra

    def head(self, first: str) -> Markup:
        what = "Coverage" if self.covers else "Bias"
        heads = [
            (name(first, None), "left"), ("Labels", ""), (f"{what}|before", ""), (f"{what}|served", ""),
            (f"{self.loss}|before → served", "left"),
        ]  # fmt: skip
        if self.spark is not None:
            low, high = (number(v, 2 if abs(v) < 10 else 0, True) for v in (self.spark.low, self.spark.high))
            heads.append((f"Rolling bias,|{low} to {high}", "left spark"))
        if self.covers:
            heads.append((charts.axis(self.axis, 230.0), "left dots"))
        heads += [("In|flight", ""), ("Most late|in rows", "")] if self.late else []
        heads += [("Step|now", "")] if self.steps else []
        heads += [("Diverges|above", "")] if self.diverges else []
        heads += [("Bound", "")] if self.bound else []
        return table_head(heads)

    def row(self, group: Group, flight: GroupFlight | None, spark: Spark | None, hidden: bool) -> Markup:
        before, after = (
            percent(value) if self.covers else number(value, self.places, sign=True)
            for value in (group.before, group.after)
        )
        cells = [
            el("th", name(group.name), scope="row"),
            table_cell(count(group.rows), "Labels"),
            table_cell(before, "Before", "was"),
            table_cell(after, "Served", "now"),
            table_cell(loss_change_cell(group.loss, self.loss_places), self.loss, "left nowrap cost"),
        ]
        if self.spark is not None:
            drawn = join() if spark is None else charts.spark(spark, self.spark, self.span, self.target)
            cells.append(table_cell(drawn, "", "spark"))
        if self.covers:
            words = f"{before} before, {after} served"
            dots = charts.dumbbell(group.before, group.after, self.target, self.axis, words)
            cells.append(table_cell(dots, "", "dots"))
        step, limit = (flight.step, flight.diverges) if flight else (None, None)
        if self.late:
            cells.append(table_cell(count(flight.open) if flight else "–", "In flight"))
            cells.append(table_cell(count(flight.peak) if flight else "–", "Most late"))
        if self.steps:
            cells.append(table_cell("–" if step is None else number(step, self.step_places), "Step now"))
        if self.diverges:
            text = "–" if limit is None else number(limit, self.limit_places)
            cells.append(table_cell(text, "Diverges above", "was"))
        if self.bound:
            bound = bound_cell(group.bound, group.vacuous, is_loose(group), self.covers)
            cells.append(table_cell(bound, "Bound", "limit"))
        return el("tr", *cells, class_="more" if hidden else None)


def _places(values: Iterable[float | None]) -> int:
    """Decimals that give the smallest step of a column two digits."""
    least = min((v for v in values if v), default=1.0)
    return max(1 - math.floor(math.log10(least)), 0)
