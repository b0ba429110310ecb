"""The still charts, drawn as SVG: loss against bias, the histogram, and calibration."""

import math
from collections.abc import Sequence

from gradeq.report.labels import Labels
from gradeq.report.markup import Markup, el, join, tidy
from gradeq.report.numerals import count, number, percent
from gradeq.report.story import Bin, Histogram, StepPoint
from gradeq.report.ticks import Scale, scale, step, ticks

_WIDTH = 494.0


class Frame:
    """A plotting area with a scale on each side."""

    def __init__(self, x: Scale, y: Scale, width: float, height: float, left: float) -> None:
        self.x, self.y = x, y
        self.left, self.right = left, width - 8.0
        self.top, self.bottom = 12.0, height - 42.0

    def px(self, value: float) -> float:
        """Pixels from the left."""
        return self.left + (value - self.x.low) / (self.x.high - self.x.low) * (
            self.right - self.left
        )

    def py(self, value: float) -> float:
        """Pixels from the top."""
        return self.bottom - (value - self.y.low) / (self.y.high - self.y.low) * (
            self.bottom - self.top
        )

    def axes(self, x_title: str) -> list[Markup]:
        """Horizontal grid, x axis with ticks, both axes' words; no rotated text."""
        parts = []
        for value, label in self.y.ticks:
            y = self.py(value)
            parts.append(el("line", x1=self.left, x2=self.right, y1=y, y2=y, class_="grid"))
            parts.append(el("text", tidy(label), x=self.left - 8, y=y + 4, text_anchor="end"))
        parts.append(
            el("line", x1=self.left, x2=self.right, y1=self.bottom, y2=self.bottom, class_="axis")
        )
        for value, label in self.x.ticks:
            x = self.px(value)
            parts.append(el("line", x1=x, x2=x, y1=self.bottom, y2=self.bottom + 4, class_="axis"))
            parts.append(el("text", tidy(label), x=x, y=self.bottom + 18, text_anchor="middle"))
        if x_title:
            parts.append(
                el(
                    "text",
                    x_title,
                    x=self.right,
                    y=self.bottom + 38,
                    text_anchor="end",
                    class_="mark",
                )
            )
        return parts


def frontier(
    points: Sequence[StepPoint], names: Sequence[str], chosen: tuple[str, str], x_title: str,
    reads: Sequence[str], percent_points: bool = False,
) -> Markup:  # fmt: skip
    """Loss (x) against worst |error| (y), one mark per step in order, the chosen one filled."""
    factor = 100.0 if percent_points else 1.0
    worst = [factor * point.worst for point in points]
    losses = [point.loss for point in points]
    xs = scale(losses, most=5, pad=0.08)
    ys = scale(worst, most=4, include=(0.0,), pad=0.06)
    ys = Scale(0.0, ys.high, ticks(0.0, ys.high, step(max(worst) or 1.0, 4)))
    frame = Frame(xs, ys, _WIDTH, 320.0, 46.0)
    parts = frame.axes(x_title)
    at = [(frame.px(loss), frame.py(y)) for loss, y in zip(losses, worst, strict=True)]
    parts.append(el("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in at), class_="route"))
    labels = Labels((frame.left - 20, frame.top - 8, frame.right + 8, frame.bottom))
    labels.keep_clear(at)
    # The chosen one goes last: its two lines may stand far off, with a leader.
    order = sorted(range(len(points)), key=lambda i: points[i].chosen)
    for i in order:
        lines = chosen if points[i].chosen else (names[i],)
        parts.append(labels.place(at[i], lines, "a" if points[i].chosen else "mark"))
    for point, (x, y), said in zip(points, at, reads, strict=True):
        size = 6 if point.chosen else 4.5
        kind = "point chosen" if point.chosen else "point"
        parts.append(el("circle", cx=x, cy=y, r=size, class_=kind, data_read=said))
    return svg(_WIDTH, 320.0, parts)


def histogram(data: Histogram, noun: str = "served values") -> Markup:
    """Bars of served values; those outside the allowed range in the warning colour, and counted."""
    height = 216.0
    edges, top = data.edges, float(max(data.counts))
    x = scale((edges[0], edges[-1]), most=6, pad=0.0)
    room = 1.28 if data.below or data.above else 1.05
    frame = Frame(x, Scale(0.0, top * room, ()), _WIDTH, height, 8.0)
    parts = frame.axes("")
    digits = max(len(f"{e:.6g}".partition(".")[2]) for e in edges[:3]) if len(edges) > 2 else 3
    for low, high, n in zip(edges[:-1], edges[1:], data.counts, strict=True):
        outside = (data.low is not None and high <= data.low) or (
            data.high is not None and low >= data.high
        )
        x0, x1, y = frame.px(low), frame.px(high), frame.py(n)
        said = f"{number(low, digits)} to {number(high, digits)}: {count(n)} {noun}"
        parts.append(
            el(
                "rect",
                x=x0 + 0.5,
                y=y,
                width=max(x1 - x0 - 1.0, 0.8),
                height=frame.bottom - y,
                class_="w" if outside else "a",
                data_read=said,
            )
        )
    places = 2 if max(abs(data.minimum), abs(data.maximum)) < 100 else 0
    for limit, n, side, extreme in (
        (data.low, data.below, "below", data.minimum),
        (data.high, data.above, "above", data.maximum),
    ):
        if limit is None or not n:
            continue
        at = frame.px(limit)
        near = at - 6 if side == "below" else at + 6
        # Text that would run off the left edge goes to the other side of the line.
        flip = side == "below" and at < 96
        near, anchor = (at + 6, "start") if flip or side == "above" else (near, "end")
        reach = "down to" if side == "below" else "up to"
        parts += [
            el("line", x1=at, x2=at, y1=frame.top - 8, y2=frame.bottom, class_="limit"),
            el("text", f"{count(n)} {side} {number(limit, 0)}", x=near, y=frame.top + 2,
               text_anchor=anchor, class_="w strong"),
            el("text", f"{reach} {number(extreme, places)}", x=near, y=frame.top + 17,
               text_anchor=anchor, class_="w"),
        ]  # fmt: skip
    return svg(_WIDTH, height - 12, parts)


def calibration(bins: Sequence[Bin], x_title: str, noun: str, before: Sequence[Bin] = ()) -> Markup:
    """Actual against predicted frequency; area is the number of ``noun``, bars the intervals.

    ``before`` is drawn in grey, below.
    """
    values = [v for b in (*bins, *before) for v in (b.predicted, b.actual)]
    low = max(math.floor((min(values) - 0.02) * 10) / 10, 0.0)
    high = min(math.ceil((max(values) + 0.02) * 10) / 10, 1.0)
    side = Scale(low, high, ticks(low, high, 0.1 if high - low <= 0.8 else 0.2, "percent"))
    frame = Frame(side, side, _WIDTH, 420.0, 46.0)
    parts = frame.axes(x_title)
    x0, x1, y0, y1 = frame.px(low), frame.px(high), frame.py(low), frame.py(high)
    parts.append(el("line", x1=x0, x2=x1, y1=y0, y2=y1, class_="ideal"))
    most = max(b.games for b in (*bins, *before))
    for b, role in (*((b, "b") for b in before), *((b, "a") for b in bins)):
        x, y = frame.px(min(max(b.predicted, low), high)), frame.py(b.actual)
        ends = [frame.py(min(max(v, low), high)) for v in (b.low, b.high)]
        parts.append(el("line", x1=x, x2=x, y1=ends[0], y2=ends[1], class_=f"ci {role}i"))
        when = "" if not before else "before: " if role == "b" else "after: "
        said = (
            f"{when}predicted {percent(b.predicted)}, actual {percent(b.actual)} "
            f"({percent(b.low)} to {percent(b.high)}), {count(b.games)} {noun}"
        )
        radius = max(9.5 * math.sqrt(b.games / most), 2.0)
        parts.append(el("circle", cx=x, cy=y, r=radius, class_=role, data_read=said))
    return svg(_WIDTH, 420.0, parts)


def svg(width: float, height: float, parts: list[Markup]) -> Markup:
    """A still chart of these parts."""
    return el(
        "svg",
        join(*parts),
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=width,
        height=height,
        class_="plotsvg",
        aria_hidden="true",
    )
