"""The charts of a layer's page: error and loss of the last labels, labels in flight, how long they take."""

from __future__ import annotations

from gradeq.report.markup import Markup, el, tidy
from gradeq.report.numerals import count, decimals, number, percent, target
from gradeq.report.parts import chart, section, series_table, still, table
from gradeq.report.plots import Frame, svg
from gradeq.report.series import Sheet, coloured
from gradeq.report.story import EloStory, Line, Values
from gradeq.report.ticks import How, Scale, finite, scale
from gradeq.service.dashboard.overview import Overview
from gradeq.service.dashboard.recent import Delays, Moving
from gradeq.service.dashboard.warnings import UNITS, span

_WIDTH = 494.0


def moving(view: Overview, sheet: Sheet) -> Markup:
    """The bias or the coverage over the last labels, and the loss below it."""
    series = view.moving
    if series is None:
        return section(
            "The last labels", "The charts begin when some dozens of labels have come.",
        )  # fmt: skip
    games = isinstance(view.story, EloStory)
    noun = "game" if games else "label"
    x = ("Time" if series.axis == "date" else noun.capitalize(), noun)
    sub = f"mean of {'' if series.axis == 'date' else 'the '}last {count(series.window)} {noun}s"
    parts, ids = [], []
    if not games:
        parts.append(_error(view, series, sheet, x, sub))
        ids.append("error")
    parts.append(_loss(view, series, sheet, x, sub if games else ""))
    ids.append("loss")
    return el("section", *parts, series_table("Show these numbers as a table", ids))


def _error(view: Overview, series: Moving, sheet: Sheet, x: tuple[str, str], sub: str) -> Markup:
    assert not isinstance(view.story, EloStory)
    covered = view.story.verdict.coverage
    targets = [c.target for c in covered] or [0.0]
    lines: list[tuple[str, str, Values]] = [
        ("before", "before", series.before),
        (_served(view), "after", series.after),
    ]
    if series.more:
        first = Line(covered[0].name, series.after)
        lines = coloured([first, *(Line(name, values) for name, values in series.more[:2])])
        targets = targets[:3]
    values = finite(*(own for _, _, own in lines))
    limits = (0.0, 1.0) if covered else None
    y = scale(values, 5, "percent" if covered else "sign", targets, 0.05, limits)
    how = (
        How(100.0, 1, False, "\u00a0%") if covered else How(1.0, decimals(y.low, y.high, 0.0), True)
    )
    title = "Rolling coverage" if covered else "Rolling bias"
    sheet.add(
        "error", title, (series.axis, *x), series.x, lines, y, how, marks=targets, sync="last",
        begin=series.begin, height=200, show_x=False,
    )  # fmt: skip
    sub += (
        f", target {', '.join(target(t) for t in targets)}"
        if covered
        else f", {_served(view)} − label"
    )
    return chart("error", title, sub)


def _loss(view: Overview, series: Moving, sheet: Sheet, x: tuple[str, str], sub: str) -> Markup:
    games = isinstance(view.story, EloStory)
    loss = view.story.loss if isinstance(view.story, EloStory) else view.story.verdict.loss
    name = loss.name if loss else "loss"
    lines: list[tuple[str, str, Values]] = [
        ("coin flip" if games else "before", "before", series.loss_before),
        ("forecast" if games else _served(view), "after", series.loss_after),
    ]
    y = scale(finite(*(own for _, _, own in lines)), 4, "number", (), 0.06)
    title = f"Rolling {name}"
    sheet.add(
        "loss", title, (series.axis, *x), series.x, lines, y, How(1.0, decimals(y.low, y.high, 0.0)),
        sync="last", begin=series.begin, height=150,
    )  # fmt: skip
    return chart("loss", title, sub)


def _served(view: Overview) -> str:
    """What the line of the layer shows."""
    return "would be served" if view.shadow else "served"


def waiting(view: Overview, sheet: Sheet) -> Markup:
    """How many labels were waited for, over time; in words where there is nothing to draw."""
    flight, series = view.flight, view.flight.waiting
    waits = "waits" if flight.open <= 1 else "wait"
    facts = [f"{count(flight.open) if flight.open else 'None'} {waits} now"]
    if flight.overdue:
        facts.append(f"{count(flight.overdue)} for more than twice the 99 % delay")
    if flight.expired:
        facts.append(
            f"{count(flight.expired)} never came and {'was' if flight.expired == 1 else 'were'} given up"
        )
    said = el("p", tidy("; ".join(facts) + "."), class_="foot")
    if series is None:
        return section("Labels in flight", "", said)
    y = scale([0.0, float(series.peak)], 4, "number", (), 0.05)
    y = Scale(0.0, y.high, y.ticks)
    sheet.add(
        "waiting", "Labels in flight", ("date", "Time", ""), series.x,
        [("", "after", series.open)], y, How(1.0, 0), height=170, left=44, filled=True,
    )  # fmt: skip
    sub = f"over {span(series.x[-1] - series.x[0])}, at most {count(series.peak)}"
    return el("section", chart("waiting", "Labels in flight", sub), said)


def delays(found: Delays | None) -> Markup:
    """How long the last labels were waited for."""
    if found is None:
        return section(
            "Label delay", "", el("p", "Labels came with their predictions.", class_="foot")
        )
    unit = UNITS[found.unit]
    total = max(sum(found.counts), 1)
    top = max(found.counts) / total
    x = scale((0.0, found.edges[-1]), most=7, pad=0.0)
    frame = Frame(x, Scale(0.0, 1.3 * top, ()), _WIDTH, 232.0, 8.0)
    parts = frame.axes("")
    rows = []
    for low, high, n in zip(found.edges[:-1], found.edges[1:], found.counts, strict=True):
        x0, x1, y = frame.px(low), frame.px(high), frame.py(n / total)
        last = high == found.edges[-1]
        where = f"{_short(low)} {'or more' if last else f'to {_short(high)}'} {unit}"
        rows.append([where, percent(n / total), count(n)])
        parts.append(
            el("rect", x=x0 + 0.5, y=y, width=max(x1 - x0 - 1.0, 0.8), height=frame.bottom - y,
               class_="a", data_read=f"{where}: {percent(n / total)} of labels")
        )  # fmt: skip
    for at, words, down in ((found.median, "half", 0), (found.most, "99 %", 17)):
        parts += _marked(frame, at / found.unit, f"{words} within {span(at)}", down)
    return el(
        "section",
        still(
            "Label delay",
            f"last {count(total)} labels, by {unit} waited",
            svg(_WIDTH, 220.0, parts),
        ),
        table("Show as a table", (f"Delay, {unit}", "Share", "Labels"), rows),
    )


def _marked(frame: Frame, at: float, words: str, down: int) -> list[Markup]:
    """A dotted line with its words, at its left where there is room."""
    x = min(frame.px(at), frame.right)
    left = x - frame.left > 8.0 * len(words)
    return [
        el("line", x1=x, x2=x, y1=frame.top - 8, y2=frame.bottom, class_="limit"),
        el("text", tidy(words), x=x - 5 if left else x + 5, y=frame.top + 2 + down,
           text_anchor="end" if left else "start", class_="mark"),
    ]  # fmt: skip


def _short(value: float) -> str:
    return number(value, 0 if value == int(value) else 1 if 10 * value == int(10 * value) else 2)
