"""The small drawings inside tables: bars with a bound, sparklines, a dot on its interval."""

import math

from gradeq.report.markup import Markup, el, join
from gradeq.report.story import Spark, Values
from gradeq.report.ticks import Scale


def bars(before: float, after: float, bound: float | None, scale: Scale, words: str) -> Markup:
    """Bias before (grey, above) and after (blue, below) with the bound as whiskers.

    A whisker beyond the axis ends in an arrow.
    """
    width, height = 200.0, 36.0
    at = _Place(scale, width)
    zero = at(0.0)
    parts = [
        el("line", x1=x, x2=x, y1=2, y2=height - 2, class_="grid")
        for x in (at(value) for value, _ in scale.ticks if value)
    ]
    parts.append(el("line", x1=zero, x2=zero, y1=1, y2=height - 1, class_="zero"))
    parts.append(_bar(zero, at(before), 7.0, "b"))
    if bound is not None and not math.isnan(bound):
        y = 22.5
        left, right = at(-bound), at(bound)
        parts.append(el("path", d=f"M{left:.1f} {y}H{right:.1f}", class_="whisker"))
        for x, direction in ((left, 1), (right, -1)):
            beyond = bound > scale.high * 1.0001
            end = (
                f"M{x + 4 * direction:.1f} {y - 4}L{x:.1f} {y}L{x + 4 * direction:.1f} {y + 4}"
                if beyond
                else f"M{x:.1f} {y - 3}v6"
            )
            parts.append(el("path", d=end, class_="whisker"))
    parts.append(_bar(zero, at(after), 19.0, "a"))
    return _svg(width, height, words, parts)


def axis(scale: Scale, width: float = 200.0) -> Markup:
    """The tick words of :func:`bars`, as one row under a column of them."""
    at = _Place(scale, width)
    texts = [
        el("text", label, x=at(value), y=13.0, text_anchor="middle") for value, label in scale.ticks
    ]
    return _svg(width, 18.0, "axis", texts)


def spark(line: Spark, low: float, high: float, span: tuple[float, float], target: float) -> Markup:
    """A rolling error before and after on a shared scale, with the target as a thin line."""
    width, height = 132.0, 34.0
    y0 = _y(target, low, high, height)
    parts = [
        el("line", x1=0, x2=width, y1=y0, y2=y0, class_="grid"),
        _line(line.x, line.before, (low, high), span, (width, height), "bl"),
        _line(line.x, line.after, (low, high), span, (width, height), "al"),
    ]
    return _svg(width, height, None, parts)


def tiny(line: Spark, target: float, quiet: bool = False) -> Markup:
    """The error after, no larger than a word; ``quiet``: in grey."""
    width, height = 56.0, 20.0
    known = [v for v in (*line.after, target) if v is not None]
    limits = (min(known), max(known))
    drawn = _line(
        line.x,
        line.after,
        limits,
        (line.x[0], line.x[-1]),
        (width, height),
        "bl" if quiet else "al",
    )
    return _svg(width, height, None, [drawn])


def dumbbell(before: float, after: float, target: float, scale: Scale, words: str) -> Markup:
    """A coverage before and after on one axis, with a mark at the target."""
    width, height = 230.0, 22.0
    at = _Place(scale, width)
    parts = [
        el("line", x1=at(target), x2=at(target), y1=0, y2=height, class_="zero"),
        el("line", x1=at(before), x2=at(after), y1=11, y2=11, class_="route"),
        el("circle", cx=at(before), cy=11, r=3.5, class_="b"),
        el("circle", cx=at(after), cy=11, r=4.5, class_="a"),
    ]
    return _svg(width, height, words, parts)


def dot(value: float, low: float | None, high: float | None, scale: Scale) -> Markup:
    """A rating with its interval on the shared axis."""
    width, height = 164.0, 22.0
    at = _Place(scale, width)
    parts = [el("line", x1=at(v), x2=at(v), y1=0, y2=height, class_="grid") for v, _ in scale.ticks]
    if low is not None and high is not None:
        parts.append(el("line", x1=at(low), x2=at(high), y1=11, y2=11, class_="soft"))
    parts.append(el("circle", cx=at(value), cy=11, r=4, class_="a"))
    return _svg(width, height, None, parts)


def bar(value: float, scale: Scale) -> Markup:
    """A signed value as a bar from zero; beyond the axis it ends in an arrow head."""
    width, height = 94.0, 22.0
    at = _Place(scale, width)
    zero, end = at(0.0), at(value)
    parts = [_bar(zero, end, 7.5, "a")]
    if value > scale.high or value < scale.low:
        d = -5 if value < 0 else 5
        parts.append(el("path", d=f"M{end:.1f} 4l{d} 7l{-d} 7z", class_="a"))
    parts.append(el("line", x1=zero, x2=zero, y1=2, y2=height - 2, class_="zero"))
    return _svg(width, height, None, parts)


class _Place:
    """Values to pixels; what lies beyond the axis is put at its end."""

    def __init__(self, scale: Scale, width: float, margin: float = 6.0) -> None:
        self._scale, self._width, self._margin = scale, width, margin

    def __call__(self, value: float) -> float:
        low, high = self._scale.low, self._scale.high
        share = (min(max(value, low), high) - low) / (high - low)
        return self._margin + share * (self._width - 2 * self._margin)


def _bar(zero: float, end: float, y: float, class_: str) -> Markup:
    # Never thinner than a pixel: a bias of zero still shows that there is a bar.
    width = max(abs(end - zero), 1.5)
    return el("rect", x=min(zero, zero + (width if end > zero else -width)), y=y, width=width,
              height=7, class_=class_)  # fmt: skip


def _line(
    x: tuple[float, ...],
    y: Values,
    limits: tuple[float, float],
    span: tuple[float, float],
    size: tuple[float, float],
    class_: str,
) -> Markup:
    length = (span[1] - span[0]) or 1.0
    pen, path = "M", []
    for at, value in zip(x, y, strict=True):
        if value is None:
            pen = "M"
            continue
        place = min(max((at - span[0]) / length, 0.0), 1.0) * size[0]
        path.append(f"{pen}{place:.0f} {_y(value, *limits, size[1]):.1f}")
        pen = "L"
    return el("path", d="".join(path), class_=class_)


def _y(value: float, low: float, high: float, height: float) -> float:
    share = (min(max(value, low), high) - low) / ((high - low) or 1.0)
    return 1.5 + (1.0 - share) * (height - 3.0)


def _svg(width: float, height: float, words: str | None, parts: list[Markup]) -> Markup:
    said = {"role": "img", "aria_label": words} if words else {"aria_hidden": "true"}
    return el(
        "svg",
        join(*parts),
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=width,
        height=height,
        **said,
    )
