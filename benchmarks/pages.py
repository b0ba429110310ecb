"""Pages of benchmarks, each self-contained: dots on a logarithmic axis, and tables that scroll by themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from importlib.resources import files
from typing import NamedTuple

from gradeq.report.components import Markup, el

ROW = 26
STYLE = """
h2{margin-top:28px}
svg{display:block;width:100%;max-width:660px;height:auto;margin-top:10px}svg text{font-size:12px;fill:var(--ink-2)}
.axis{stroke:var(--line)}.one{stroke:var(--ink-3)}.dot{fill:var(--before)}.dot.ours{fill:var(--after)}
.met{color:var(--ok)}.missed{color:var(--bad)}ul{padding-left:18px}
.scroll{overflow-x:auto}table{border-collapse:collapse;margin-top:12px;font-size:13px}
th,td{padding:3px 9px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}td.win{background:var(--ok-soft)}td.lose{background:var(--bad-soft)}
td.harm{outline:2px solid var(--bad);outline-offset:-2px}td.words,th.words{text-align:left}
tr.ours td{font-weight:600}details{margin-top:16px}summary{cursor:pointer}
"""


class Axis(NamedTuple):
    """A logarithmic axis: values beyond its ends are drawn at its edge."""

    low: float
    high: float
    ticks: Sequence[float]
    tick: Callable[[float], str] = "{:g}".format
    value: Callable[[float], str] = "{:.2f}".format
    left: int = 110
    width: int = 620

    def place(self, value: float) -> float:
        """Where a value stands."""
        inside = min(max(value, self.low), self.high)
        share = math.log(inside / self.low) / math.log(self.high / self.low)
        return round(self.left + (self.width - self.left) * share, 1)


RATIO = Axis(0.1, 10.0, (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0))


def page(title: str, *parts: Markup) -> str:
    """The whole page, in the colours of the reports."""
    css = (files("gradeq.report") / "report.css").read_text(encoding="utf-8")
    head = el(
        "head", el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", title), el("style", Markup(css + STYLE)),
    )  # fmt: skip
    body = el("body", el("main", el("h1", title), *parts))
    return f"<!doctype html>{el('html', head, body, lang='en')}\n"


def marked(held: Sequence[tuple[bool, str]]) -> Markup:
    """Goals as a list, each met or missed."""
    return el("ul", *(
        el("li", el("b", "met" if ok else "missed", class_="met" if ok else "missed"), f": {text}")
        for ok, text in held
    ))  # fmt: skip


def dots(title: str, values: dict[str, float], ours: Collection[str] = (), axis: Axis = RATIO) -> Markup:
    """One measure: a dot for each name; nan, which means none, leaves its line empty."""
    height = ROW * (len(values) + 1) + 22
    marks: list[Markup] = [el("text", title, x=0, y=14, font_weight="600")]
    for tick in axis.ticks:
        x = axis.place(tick)
        line = {"x1": x, "x2": x, "y1": 22, "y2": height - 18}
        marks.append(el("line", class_="one" if tick == 1.0 else "axis", **line))
        marks.append(el("text", axis.tick(tick), x=x, y=height - 4, text_anchor="middle"))
    for k, (name, value) in enumerate(values.items()):
        y = 22 + ROW * (k + 0.5)
        marks.append(el("text", name, x=0, y=y + 4))
        if value == value:
            x, far = axis.place(value), value > math.sqrt(axis.high / axis.low) * axis.low * 2.0
            marks.append(el("circle", cx=x, cy=y, r=5, class_="dot ours" if name in ours else "dot"))
            side = {"x": x - 10 if far else x + 10, "text_anchor": "end" if far else "start"}
            marks.append(el("text", axis.value(value), y=y + 4, **side))
    label = f"{title}: " + ", ".join(f"{name} {axis.value(v)}" for name, v in values.items())
    box = f"0 0 {axis.width + 40} {height}"
    return el("svg", *marks, viewBox=box, role="img", aria_label=label)


def table(head: Sequence[str], rows: Sequence[Markup], words: Collection[str] = ()) -> Markup:
    """A table that scrolls by itself where the page is narrow; columns of ``words`` begin at the left."""
    names = (el("th", name, class_="words" if name in words else None) for name in head)
    top = el("thead", el("tr", *names))
    return el("div", el("table", top, el("tbody", *rows)), class_="scroll")
