"""Axes with round ticks, the data of interactive charts, and still charts as SVG."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from gradeq.report.components import Markup, chart_box, clean, el, section, table, tidy
from gradeq.report.numerals import EPOCH, MONTHS, count, number, percent, plain, points
from gradeq.report.rolling import POINTS, thin
from gradeq.report.story import Axis, Bin, Histogram, NamedCurve, Span, Spark, StepPoint, Values

FARTHEST = 1e300  # twice as far is still a number

Tick = tuple[float, str]
Line = tuple[str, str, Values]
"""Name, role (which decides the colour) and values."""


class Scale(NamedTuple):
    """An axis from ``low`` to ``high`` with its ticks."""

    low: float
    high: float
    ticks: tuple[Tick, ...]

    def place(self, value: float, width: float, margin: float = 6.0) -> float:
        """Pixels along an axis of this width; what lies beyond it is put at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / ((self.high - self.low) or 1.0)
        return margin + share * (width - 2 * margin)


class NumberFormat(NamedTuple):
    """How values are written: factor (100 for per cent), decimals, sign on plus, suffix."""

    factor: float = 1.0
    decimals: int = 3
    sign: bool = False
    suffix: str = ""


def finite(*series: Iterable[float | None]) -> list[float]:
    """The numbers of several series, without gaps, and without those whose differences would overflow."""
    return [v for values in series for v in values if v is not None and abs(v) <= FARTHEST]


def tick_step(span: float, most: int) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that cuts a span in at most ``most``."""
    if not span > 0 or not math.isfinite(span):
        return 1.0
    raw = span / most
    power = 10.0 ** math.floor(math.log10(raw))
    return next((m * power for m in (1.0, 2.0, 2.5, 5.0) if m * power >= raw * 0.9999), 10 * power)


def axis_scale(
    values: Iterable[float],
    most: int = 5,
    how: str = "number",
    include: Iterable[float] = (),
    pad: float = 0.04,
    limits: tuple[float, float] | None = None,
) -> Scale:
    """An axis that holds the values; ``how`` is number, sign or percent.

    ``include`` are values that must be on it; ``limits`` cuts what padding may add.
    """
    known = finite(values, include)
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        low, high = low - max(abs(low) * 0.1, 0.05), high + max(abs(high) * 0.1, 0.05)
    width = tick_step(high - low, most)
    margin = pad * (high - low)
    low, high = low - margin, high + margin
    if limits is not None:
        low, high = max(low, limits[0]), min(high, limits[1])
    return Scale(low, high, ticks(low, high, width, how))


def ticks(low: float, high: float, width: float, how: str = "number") -> tuple[Tick, ...]:
    """Multiples of ``width`` between low and high, written as number, sign or percent."""
    first, last = math.ceil(low / width - 1e-9), math.floor(high / width + 1e-9)
    values = [i * width for i in range(first, last + 1)]
    digits = min(len(f"{width:.12f}".rstrip("0").partition(".")[2]), 9)  # they tell neighbours apart
    if how == "percent":
        return tuple((v, percent(v, max(digits - 2, 0)) if v else "0") for v in values)
    return tuple((v, number(v, digits, how == "sign") if v else "0") for v in values)


def x_ticks(kind: Axis, low: float, high: float) -> tuple[Tick, ...]:
    """Ticks of an x axis by its kind; those of rows are whole numbers."""
    if kind == "date":
        return date_ticks(low, high)
    if kind == "row":
        width = max(round(tick_step(high - low, 7)), 1)
        return tuple(tick for tick in ticks(low, high, width) if tick[0] >= low)
    return axis_scale((low, high), most=7, pad=0.0).ticks


_MONTH_STEPS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600)
_SECONDS = (1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400)


def date_ticks(low: float, high: float, most: int = 8) -> tuple[Tick, ...]:
    """Ticks at round times between two seconds since 1970, the year at the first and in January."""
    marks: list[Tick] = []
    seconds = next((seconds for seconds in _SECONDS if (high - low) / seconds < most - 1), None)
    if seconds is not None:
        for at in range(math.ceil(low / seconds) * seconds, math.floor(high) + 1, seconds):
            when = EPOCH + timedelta(seconds=at)
            day = f"{when.day} {MONTHS[when.month - 1][:3]}"
            # Within an hour the day goes without saying; else it stands at the first mark and at midnight.
            clock = seconds < 3600 or (seconds < 86400 and (when.hour or when.minute) and marks)
            time = f"{when:%H:%M:%S}" if seconds < 60 else f"{when:%H:%M}"
            marks.append((float(at), time if clock else day))
        return tuple(marks)
    start = EPOCH + timedelta(seconds=low)
    for months in _MONTH_STEPS:
        marks = []
        first_month = (start.year * 12 + start.month - 1) // months * months
        for index in itertools.count(first_month, months):
            year, month = divmod(index, 12)
            first = datetime(min(max(year, 1), 9999), month + 1, 1, tzinfo=UTC)
            position = (first - EPOCH).total_seconds()
            if position > high:
                break
            if position >= low - 0.02 * (high - low):
                name = MONTHS[month][:3]
                name = str(year) if months >= 12 else f"{name} {year}" if not marks or month == 0 else name
                marks.append((max(position, low), name))
        if len(marks) <= most:
            return tuple(marks)
    return ()


ROLES = ("s1", "s2", "s3")


def coloured(lines: Sequence[NamedCurve]) -> list[Line]:
    """The first three lines in colours, the rest grey, at most eight in all; grey lies below."""
    named = [(line.name, ROLES[i] if i < len(ROLES) else "other", line.values) for i, line in enumerate(lines[:8])]
    return named[::-1]


@dataclass(frozen=True)
class LineChart:
    """An interactive chart; ``axis`` is its kind, name and unit.

    span    a shaded stretch; show_x   whether the x axis has words; sync   charts of one name move together;
    left    the least pixels for the marks of y; begin   where the x axis begins, if before the first point;
    filled  the area below the lines is coloured.
    """

    id: str
    title: str
    axis: tuple[Axis, str, str]
    x: Sequence[float]
    lines: Iterable[Line]
    y: Scale
    how: NumberFormat
    marks: Sequence[float] = ()
    span: Span | None = None
    height: int = 220
    show_x: bool = True
    sync: str = ""
    left: int = 52
    begin: float | None = None
    filled: bool = False


@dataclass
class ChartSheet:
    """The page's data block, filled as sections are built: x axes once each, then the charts."""

    x: dict[str, list[float]] = field(default_factory=dict)
    charts: list[dict[str, object]] = field(default_factory=list)

    def add(self, chart: LineChart, sub: str = "", heading: str = "") -> Markup:
        """Put one chart on the sheet, with at most 420 points; returns its place on the page."""
        (kind, name, unit), x, span = chart.axis, chart.x, chart.span
        points = thin(len(x), POINTS).tolist()
        xs = [_short(x[i], 13 if kind == "date" else 10) for i in points]  # of times milliseconds
        key = next((key for key, known in self.x.items() if known == xs), f"x{len(self.x)}")
        self.x[key] = xs
        low, high = (xs[0], xs[-1]) if len(xs) > 1 else (xs[0] - 0.5, xs[0] + 0.5)
        # The axis begins where the data does, not at the first full window.
        low = low if chart.begin is None else min(low, chart.begin)
        shaded = None if span is None else [span.start, high if span.end is None else span.end, clean(span.text, 80)]
        lines: list[dict[str, object]] = []
        for line, role, values in chart.lines:
            drawn = [values[i] for i in points]
            short = [None if v is None or not math.isfinite(v) else _short(v, 5) for v in drawn]
            filled = {"filled": True} if chart.filled else {}
            lines.append({"name": clean(line, 40), "role": role, "v": short, **filled})
        x_axis = {"axis": kind, "xname": clean(name), "unit": unit, "x": key, "xmin": low, "xmax": high}
        y_axis = {"ymin": chart.y.low, "ymax": chart.y.high, "yticks": chart.y.ticks, "how": chart.how}
        look = {"height": chart.height, "showx": chart.show_x, "left": chart.left, "sync": chart.sync or chart.id}
        marks = {"xticks": x_ticks(kind, low, high), "marks": list(chart.marks), "span": shaded}
        self.charts.append(
            {"id": chart.id, "title": chart.title, **x_axis, **y_axis, **marks, **look, "lines": lines}
        )
        return chart_box(heading or chart.title, sub, el("div", class_="plot"), chart.id)


def _short(value: float, digits: int) -> float:
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


# Still charts.

WIDTH = 494.0  # pixels
Box = tuple[float, float, float, float]
Point = tuple[float, float]


def svg_element(
    width: float, height: float, parts: Iterable[Markup], words: str | None = None, class_: str | None = None
) -> Markup:
    """A drawing of these parts; ``words`` are for screen readers, which skip it without."""
    spoken = {"role": "img", "aria_label": words} if words else {"aria_hidden": "true"}
    box = f"0 0 {width:.0f} {height:.0f}"
    return el("svg", *parts, viewBox=box, width=width, height=height, class_=class_, **spoken)


@dataclass(frozen=True)
class Frame:
    """A plotting area with a scale on each side; its edges are pixels."""

    x: Scale
    y: Scale
    left: float
    bottom: float
    top: float = 12.0
    right: float = WIDTH - 8.0

    def px(self, value: float) -> float:
        return self.left + (value - self.x.low) / (self.x.high - self.x.low) * (self.right - self.left)

    def py(self, value: float) -> float:
        return self.bottom - (value - self.y.low) / (self.y.high - self.y.low) * (self.bottom - self.top)

    def axes(self, x_title: str) -> list[Markup]:
        parts = []
        for value, label in self.y.ticks:
            y = self.py(value)
            parts.append(el("line", x1=self.left, x2=self.right, y1=y, y2=y, class_="grid"))
            parts.append(el("text", tidy(label), x=self.left - 8, y=y + 4, text_anchor="end"))
        parts.append(el("line", x1=self.left, x2=self.right, y1=self.bottom, y2=self.bottom, class_="axis"))
        for value, label in self.x.ticks:
            x = self.px(value)
            parts.append(el("line", x1=x, x2=x, y1=self.bottom, y2=self.bottom + 4, class_="axis"))
            parts.append(el("text", tidy(label), x=x, y=self.bottom + 18, text_anchor="middle"))
        if x_title:
            parts.append(el("text", x_title, x=self.right, y=self.bottom + 38, text_anchor="end", class_="mark"))
        return parts


class SweepWords(NamedTuple):
    """How a sweep of steps is described: the letter of the step, the error and the loss with their decimals."""

    letter: str
    error: str
    loss: str
    places: int
    error_places: int | None  # None: errors are percentage points

    def error_text(self, value: float) -> str:
        return points(value, False) if self.error_places is None else number(value, self.error_places)


def sweep_section(
    title: str, intro: str, sweep: Sequence[StepPoint], words: SweepWords, x_title: str, sub: str = ""
) -> Markup:
    in_points = words.error_places is None
    best = min(sweep, key=lambda point: point.loss)
    chosen, reads, rows = ("", ""), [], []
    for point in sweep:
        step, cost, off = plain(point.step), number(point.loss, words.places), words.error_text(point.worst)
        distance = f"{off} points" if in_points else off
        reads.append(f"{words.letter} = {step}: worst {words.error} {distance}, {words.loss} {cost}")
        rows.append([step + (" (chosen)" if point.chosen else ""), off, cost])
        if point.chosen and not chosen[0]:
            lowest = f"{'lowest ' if point is best else ''}{words.loss.split()[-1]}"
            chosen = (f"chosen: {words.letter} = {step}", f"off by {distance}, {lowest} {cost}")
    worst = f"Worst {words.error}{', points' if in_points else ''}"
    drawing = frontier(sweep, words, chosen, x_title, reads)
    heads = (words.letter, worst, f"{words.loss[:1].upper()}{words.loss[1:]}")
    return section(title, intro, chart_box(worst, sub, drawing), table("Show as a table", heads, rows))


def frontier(
    sweep: Sequence[StepPoint], words: SweepWords, chosen: tuple[str, str], x_title: str, reads: Sequence[str]
) -> Markup:
    """Loss (x) against worst |error| (y), one mark per step in order, the chosen one filled."""
    worst = [(100.0 if words.error_places is None else 1.0) * point.worst for point in sweep]
    xs = axis_scale([point.loss for point in sweep], most=5, pad=0.08)
    ys = axis_scale(worst, most=4, include=(0.0,), pad=0.06)
    ys = Scale(0.0, ys.high, ticks(0.0, ys.high, tick_step(max(worst) or 1.0, 4)))
    frame = Frame(xs, ys, 46.0, 278.0)
    parts = frame.axes(x_title)
    at = [(frame.px(point.loss), frame.py(y)) for point, y in zip(sweep, worst, strict=True)]
    parts.append(el("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in at), class_="route"))
    labels: list[tuple[Point, Sequence[str]]] = []
    for i, point in enumerate(sweep):
        name = f"{words.letter} = {plain(point.step)}" if i == 0 else plain(point.step)
        name = name if point.step else f"{words.letter} = 0, no layer"
        labels.append((at[i], chosen if point.chosen else (name,)))
    # The chosen one goes last: its two lines may stand far off, with a leader.
    labels.sort(key=lambda label: len(label[1]))
    parts += _labels((frame.left - 20, frame.top - 8, frame.right + 8, frame.bottom), at, labels)
    for point, (x, y), read in zip(sweep, at, reads, strict=True):
        kind, size = ("point chosen", 6) if point.chosen else ("point", 4.5)
        parts.append(el("circle", cx=x, cy=y, r=size, class_=kind, data_read=read))
    return svg_element(WIDTH, 320.0, parts, class_="plotsvg")


_CHARACTER, _LINE = 6.6, 15.0
# Near: right, left, the corners, above, below. Far, with a leader: the last ones.
_NEAR = ((10, 0), (-10, 0), (8, -5), (8, 5), (-8, -5), (-8, 5), (0, -9), (0, 9), (14, -12), (-14, 12))
_FAR = ((60, 0), (110, 0), (160, 0), (60, -24), (60, 24), (-60, 0))
_OFFSETS = (*((x, y, 0) for x, y in _NEAR), *((x, y, 1) for x, y in _FAR))


def _labels(frame: Box, marks: Sequence[Point], labels: Iterable[tuple[Point, Sequence[str]]]) -> list[Markup]:
    """Words beside their marks, where they cover least; two lines (in blue) may go far, with a leader.

    Labels are placed one after the other and keep off the marks and the lines between neighbours.
    """
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in marks]
    route: list[Point] = []
    for (x0, y0), (x1, y1) in itertools.pairwise(marks):
        pieces = max(int(max(abs(x1 - x0), abs(y1 - y0)) / 3), 1)
        route += [(x0 + (x1 - x0) * i / pieces, y0 + (y1 - y0) * i / pieces) for i in range(pieces + 1)]
    parts = []
    for mark, lines in labels:
        two = len(lines) > 1
        width = _CHARACTER * max(len(line) for line in lines)
        height = _LINE * len(lines) - 3
        options = []
        for dx, dy, far in _OFFSETS:
            if two or not far:
                x = mark[0] + dx if dx > 0 else mark[0] + dx - width if dx < 0 else mark[0] - width / 2
                y = mark[1] + dy - height / 2 + (height / 2 if dy > 0 else -height / 2 if dy < 0 else 0)
                box = (x, y, x + width, y + height)
                options.append((_cost(box, frame, taken, route) + 0.2 * far, box, far))
        _, box, far = min(options, key=lambda option: option[0])
        taken.append(box)
        right = box[2] <= mark[0]
        if far and two:
            edge = box[2] + 4 if right else box[0] - 4
            middle = min(max(mark[1], box[1] + 4), box[3] - 4)
            parts.append(el("line", x1=mark[0], x2=edge, y1=mark[1], y2=middle, class_="lead"))
        role, anchor = "a" if two else "mark", "end" if right else "start"
        for i, line in enumerate(lines):
            class_ = f"{role} strong" if two and i == 0 else role
            x, y = box[2] if right else box[0], box[1] + _LINE * (i + 1) - 5
            parts.append(el("text", line, x=x, y=y, text_anchor=anchor, class_=class_))
    return parts


def _cost(box: Box, frame: Box, taken: Sequence[Box], route: Sequence[Point]) -> float:
    """How bad a place is: pixels outside the frame, boxes covered, points of the route crossed."""
    left, top, right, bottom = box
    outside = max(frame[0] - left, 0) + max(frame[1] - top, 0)
    outside += max(right - frame[2], 0) + max(bottom - frame[3], 0)
    covered = sum(left < b[2] and b[0] < right and top < b[3] and b[1] < bottom for b in taken)
    crossed = sum(left - 3 <= x <= right + 3 and top - 2 <= y <= bottom + 2 for x, y in route)
    return 3.0 * outside + 10.0 * covered + 2.0 * crossed


def bin_rows(data: Histogram, write: Callable[[float], str]) -> list[list[str]]:
    bins = zip(data.edges[:-1], data.edges[1:], data.counts, strict=True)
    return [[f"{write(low)} to {write(high)}", count(n)] for low, high, n in bins]


def histogram(data: Histogram, noun: str = "served values") -> Markup:
    """Bars of served values; those outside the allowed range in the warning colour, and counted."""
    edges, top = data.edges, float(max(data.counts))
    x = axis_scale((edges[0], edges[-1]), most=6, pad=0.0)
    room = 1.28 if data.below or data.above else 1.05
    frame = Frame(x, Scale(0.0, top * room, ()), 8.0, 174.0)
    parts = frame.axes("")
    digits = max(len(f"{e:.6g}".partition(".")[2]) for e in edges[:3]) if len(edges) > 2 else 3
    for low, high, n in zip(edges[:-1], edges[1:], data.counts, strict=True):
        outside = (data.low is not None and high <= data.low) or (data.high is not None and low >= data.high)
        x0, x1, y = frame.px(low), frame.px(high), frame.py(n)
        bar = {"x": x0 + 0.5, "y": y, "width": max(x1 - x0 - 1.0, 0.8), "height": frame.bottom - y}
        read = f"{number(low, digits)} to {number(high, digits)}: {count(n)} {noun}"
        parts.append(el("rect", **bar, class_="w" if outside else "a", data_read=read))
    places = 2 if max(abs(data.minimum), abs(data.maximum)) < 100 else 0
    for limit, n, side, extreme in (
        (data.low, data.below, "below", f"down to {number(data.minimum, places)}"),
        (data.high, data.above, "above", f"up to {number(data.maximum, places)}"),
    ):
        if limit is None or not n:
            continue
        at = frame.px(limit)
        # Text that would run off the left edge goes to the other side of the line.
        near, anchor = (at - 6, "end") if side == "below" and at >= 96 else (at + 6, "start")
        beyond = f"{count(n)} {side} {number(limit, 0)}"
        parts += [
            el("line", x1=at, x2=at, y1=frame.top - 8, y2=frame.bottom, class_="limit"),
            el("text", beyond, x=near, y=frame.top + 2, text_anchor=anchor, class_="w strong"),
            el("text", extreme, x=near, y=frame.top + 17, text_anchor=anchor, class_="w"),
        ]
    return svg_element(WIDTH, 204.0, parts, class_="plotsvg")


def calibration_section(
    intro: str, head: tuple[str, str], x_title: str, noun: str, bins: Sequence[Bin], before: Sequence[Bin] = ()
) -> Markup:
    """Actual against predicted frequency as a chart and a table. ``head``: title of the chart, and its unit."""
    rows = [
        [when, percent(b.predicted), percent(b.actual), f"{percent(b.low)} to {percent(b.high)}", count(b.games)]
        for when, side in (("before", before), ("after", bins))
        for b in side
    ]
    heads, skip = ["", "Predicted", "Actual", "95 % interval", noun.capitalize()], 0 if before else 1
    numbers = table("Show as a table", heads[skip:], [row[skip:] for row in rows])
    return section("Calibration", intro, chart_box(*head, calibration(bins, x_title, noun, before)), numbers)


def calibration(bins: Sequence[Bin], x_title: str, noun: str, before: Sequence[Bin] = ()) -> Markup:
    """Actual against predicted frequency; area is the number of ``noun``, bars the intervals.

    ``before`` is drawn in grey, below.
    """
    values = [v for b in (*bins, *before) for v in (b.predicted, b.actual)]
    low = max(math.floor((min(values) - 0.02) * 10) / 10, 0.0)
    high = min(math.ceil((max(values) + 0.02) * 10) / 10, 1.0)
    side = Scale(low, high, ticks(low, high, 0.1 if high - low <= 0.8 else 0.2, "percent"))
    frame = Frame(side, side, 46.0, 378.0)
    parts = frame.axes(x_title)
    x0, x1, y0, y1 = frame.px(low), frame.px(high), frame.py(low), frame.py(high)
    parts.append(el("line", x1=x0, x2=x1, y1=y0, y2=y1, class_="ideal"))
    most = max(b.games for b in (*bins, *before))
    for b, role in (*((b, "b") for b in before), *((b, "a") for b in bins)):
        x, y = frame.px(min(max(b.predicted, low), high)), frame.py(b.actual)
        ends = [frame.py(min(max(v, low), high)) for v in (b.low, b.high)]
        parts.append(el("line", x1=x, x2=x, y1=ends[0], y2=ends[1], class_=f"ci {role}i"))
        when = "" if not before else "before: " if role == "b" else "after: "
        read = (
            f"{when}predicted {percent(b.predicted)}, actual {percent(b.actual)} "
            f"({percent(b.low)} to {percent(b.high)}), {count(b.games)} {noun}"
        )
        radius = max(9.5 * math.sqrt(b.games / most), 2.0)
        parts.append(el("circle", cx=x, cy=y, r=radius, class_=role, data_read=read))
    return svg_element(WIDTH, 420.0, parts, class_="plotsvg")


# Drawings inside tables.


def bars(before: float, after: float, bound: float | None, scale: Scale, words: str) -> Markup:
    """Bias before (grey, above) and after (blue, below) with the bound as whiskers.

    A whisker beyond the axis ends in an arrow.
    """
    width, height = 200.0, 36.0
    zero = scale.place(0.0, width)
    lines = [scale.place(value, width) for value, _ in scale.ticks if value]
    parts = [el("line", x1=x, x2=x, y1=2, y2=height - 2, class_="grid") for x in lines]
    parts.append(el("line", x1=zero, x2=zero, y1=1, y2=height - 1, class_="zero"))
    parts.append(_bar(zero, scale.place(before, width), 7.0, "b"))
    if bound is not None and not math.isnan(bound):
        y = 22.5
        left, right = scale.place(-bound, width), scale.place(bound, width)
        parts.append(el("path", d=f"M{left:.1f} {y}H{right:.1f}", class_="whisker"))
        for x, inward in ((left, 4), (right, -4)):
            end = f"M{x:.1f} {y - 3}v6"
            if bound > scale.high * 1.0001:
                end = f"M{x + inward:.1f} {y - 4}L{x:.1f} {y}L{x + inward:.1f} {y + 4}"
            parts.append(el("path", d=end, class_="whisker"))
    parts.append(_bar(zero, scale.place(after, width), 19.0, "a"))
    return svg_element(width, height, parts, words)


def bar(value: float, scale: Scale) -> Markup:
    """A signed value as a bar from zero; beyond the axis it ends in an arrow head."""
    width, height = 94.0, 22.0
    zero, end = scale.place(0.0, width), scale.place(value, width)
    parts = [_bar(zero, end, 7.5, "a")]
    if value > scale.high or value < scale.low:
        d = -5 if value < 0 else 5
        parts.append(el("path", d=f"M{end:.1f} 4l{d} 7l{-d} 7z", class_="a"))
    parts.append(el("line", x1=zero, x2=zero, y1=2, y2=height - 2, class_="zero"))
    return svg_element(width, height, parts)


def _bar(zero: float, end: float, y: float, class_: str) -> Markup:
    # Never thinner than a pixel: a bias of zero still shows that there is a bar.
    width = max(abs(end - zero), 1.5)
    left = min(zero, zero + (width if end > zero else -width))
    return el("rect", x=left, y=y, width=width, height=7, class_=class_)


def axis(scale: Scale, width: float = 200.0) -> Markup:
    """The tick words of :func:`bars`, as one row under a column of them."""
    texts = [
        el("text", label, x=scale.place(value, width), y=13.0, text_anchor="middle") for value, label in scale.ticks
    ]
    return svg_element(width, 18.0, texts, "axis")


def spark(line: Spark, scale: Scale, span: tuple[float, float], target: float) -> Markup:
    """A rolling error before and after on a shared scale, with the target as a thin line."""
    width, height = 132.0, 34.0
    y = height - scale.place(target, height, 1.5)
    parts = [
        el("line", x1=0, x2=width, y1=y, y2=y, class_="grid"),
        _line(line.x, line.before, scale, span, (width, height), "bl"),
        _line(line.x, line.after, scale, span, (width, height), "al"),
    ]
    return svg_element(width, height, parts)


def tiny(line: Spark, target: float, quiet: bool = False) -> Markup:
    """The error after, no larger than a word; ``quiet``: in grey."""
    size = (56.0, 20.0)
    known = [v for v in (*line.after, target) if v is not None]
    scale = Scale(min(known), max(known), ())
    return svg_element(
        *size, [_line(line.x, line.after, scale, (line.x[0], line.x[-1]), size, "bl" if quiet else "al")]
    )


def _line(
    x: tuple[float, ...], y: Values, scale: Scale, span: tuple[float, float], size: tuple[float, float], class_: str
) -> Markup:
    across, pen, path = Scale(*span, ()), "M", []
    for at, value in zip(x, y, strict=True):
        if value is None:
            pen = "M"
            continue
        left, up = across.place(at, size[0], 0.0), scale.place(value, size[1], 1.5)
        path.append(f"{pen}{left:.0f} {size[1] - up:.1f}")
        pen = "L"
    return el("path", d="".join(path), class_=class_)


def dumbbell(before: float, after: float, target: float, scale: Scale, words: str) -> Markup:
    """A coverage before and after on one axis, with a mark at the target."""
    width, height = 230.0, 22.0
    was, now, wanted = (scale.place(value, width) for value in (before, after, target))
    parts = [
        el("line", x1=wanted, x2=wanted, y1=0, y2=height, class_="zero"),
        el("line", x1=was, x2=now, y1=11, y2=11, class_="route"),
        el("circle", cx=was, cy=11, r=3.5, class_="b"),
        el("circle", cx=now, cy=11, r=4.5, class_="a"),
    ]
    return svg_element(width, height, parts, words)


def dot(value: float, low: float, high: float, scale: Scale) -> Markup:
    width, height = 164.0, 22.0
    left, middle, right = (scale.place(v, width) for v in (low, value, high))
    lines = [scale.place(v, width) for v, _ in scale.ticks]
    parts = [el("line", x1=x, x2=x, y1=0, y2=height, class_="grid") for x in lines]
    parts.append(el("line", x1=left, x2=right, y1=11, y2=11, class_="soft"))
    parts.append(el("circle", cx=middle, cy=11, r=4, class_="a"))
    return svg_element(width, height, parts)
