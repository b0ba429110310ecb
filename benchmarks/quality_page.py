"""The page of ``python -m benchmarks.quality``, self-contained: targets, plots, a map of all cells, every figure."""

from __future__ import annotations

import math
from importlib.resources import files
from typing import Any

from benchmarks.quality import SETS, Cell, typical
from benchmarks.quality_delays import DELAYS
from benchmarks.quality_measures import Measured
from benchmarks.quality_rules import RULES
from gradeq.report.markup import Markup, el

MEASURES = dict(
    zip(Measured._fields, ("bias overall", "worst group", "group by month", "loss"), strict=True)
)
LOW, HIGH = 0.1, 10.0  # the ends of a plot: ratios beyond them are drawn at its edge
WIDTH, LEFT, ROW = 620, 110, 26
STYLE = """
h2{margin-top:28px}
svg{display:block;width:100%;max-width:660px;height:auto;margin-top:10px}svg text{font-size:12px;fill:var(--ink-2)}
.axis{stroke:var(--line)}.one{stroke:var(--ink-3)}.dot{fill:var(--before)}.dot.auto{fill:var(--after)}
.met{color:var(--ok)}.missed{color:var(--bad)}ul{padding-left:18px}
.scroll{overflow-x:auto}table{border-collapse:collapse;margin-top:12px;font-size:13px}
th,td{padding:3px 9px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}td.win{background:var(--ok-soft)}td.lose{background:var(--bad-soft)}
td.harm{outline:2px solid var(--bad);outline-offset:-2px}details{margin-top:16px}summary{cursor:pointer}
"""


def page(found: list[Cell], held: list[tuple[bool, str]]) -> str:
    """The whole page."""
    css = (files("gradeq.report") / "report.css").read_text(encoding="utf-8")
    marks = [
        el("li", el("b", "met" if ok else "missed", class_="met" if ok else "missed"), f": {text}")
        for ok, text in held
    ]
    parts = [
        el("h1", "Late labels: gradeq's default beside rolling means and other rules"),
        el("p", "Lower is better everywhere. A ratio of 1 is the 14-day rolling rule."),
        el("section", el("h2", "Targets"), el("ul", *marks)),
    ]
    for title, kinds in SETS.items():
        late = [cell for cell in found if cell.late and cell.kind in kinds]
        if late:
            own = [cell for cell in found if cell.kind in kinds]
            parts.append(section(title, late, own))
    parts.append(every_figure(found))
    style = Markup(css + STYLE)
    head = el("head", el("meta", charset="utf-8"), el("title", "Late labels"), el("style", style))
    return f"<!doctype html>{el('html', head, el('body', el('main', *parts)), lang='en')}\n"


def section(title: str, late: list[Cell], own: list[Cell]) -> Markup:
    """One set of streams: every rule, auto by delay, the map of its cells."""
    by_rule = {
        rule: {name: typical(cell.ratio(rule, name) for cell in late) for name in MEASURES}
        for rule in RULES
    }
    by_delay = {
        delay: {
            name: typical(cell.ratio("auto", name) for cell in own if shown(cell, delay))
            for name in MEASURES
        }
        for delay in DELAYS
    }
    return el(
        "section",
        el("h2", f"{title[0].upper()}{title[1:]}: {len(late)} late cells"),
        el("p", "Every rule over the 14-day rolling rule, geometric means over late cells."),
        *(dots(MEASURES[name], {rule: by_rule[rule][name] for rule in RULES}) for name in MEASURES),
        el("h2", "auto by delay"),
        el("p", "auto over the 14-day rolling rule, for each way in which labels come."),
        *(dots(MEASURES[name], {d: by_delay[d][name] for d in DELAYS}) for name in MEASURES),
        el("h2", "auto, cell by cell"),
        el("p", "Worst group / loss, each over the 14-day rolling rule. Framed: the loss is above raw by 2 %."),
        map_of(own),
    )  # fmt: skip


def shown(cell: Cell, delay: str) -> bool:
    """Whether a cell belongs to a delay of the real streams."""
    return cell.delay == delay and cell.role != "shuffled"


def dots(title: str, values: dict[str, float]) -> Markup:
    """One measure: a dot for each name on a logarithmic axis around 1."""
    height = ROW * (len(values) + 1) + 22
    marks: list[Markup] = [el("text", title, x=0, y=14, font_weight="600")]
    for tick in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0):
        x = place(tick)
        line = {"x1": x, "x2": x, "y1": 22, "y2": height - 18}
        marks.append(el("line", class_="one" if tick == 1.0 else "axis", **line))
        marks.append(el("text", f"{tick:g}", x=x, y=height - 4, text_anchor="middle"))
    for k, (name, value) in enumerate(values.items()):
        y = 22 + ROW * (k + 0.5)
        marks.append(el("text", name, x=0, y=y + 4))
        if value == value:
            kind = "dot auto" if name == "auto" or len(values) == len(DELAYS) else "dot"
            marks.append(el("circle", cx=place(value), cy=y, r=5, class_=kind))
            edge = place(value) + (-10 if value > 5.0 else 10)
            side = "end" if value > 5.0 else "start"
            marks.append(el("text", f"{value:.2f}", x=edge, y=y + 4, text_anchor=side))
    label = f"{title}: " + ", ".join(f"{name} {value:.2f}" for name, value in values.items())
    return el("svg", *marks, viewBox=f"0 0 {WIDTH + 40} {height}", role="img", aria_label=label)


def place(ratio: float) -> float:
    """Where a ratio stands on the axis."""
    inside = min(max(ratio, LOW), HIGH)
    return round(LEFT + (WIDTH - LEFT) * math.log(inside / LOW) / math.log(HIGH / LOW), 1)


def map_of(found: list[Cell]) -> Markup:
    """Streams by delays: worst group and loss of auto over the yardstick."""
    at = {(cell.kind, cell.stream, cell.delay): cell for cell in found}
    rows = []
    for kind, stream in dict.fromkeys((cell.kind, cell.stream) for cell in found):
        line = [el("td", f"{stream} ({kind})")]
        line += [entry(at[kind, stream, delay]) for delay in DELAYS]
        rows.append(el("tr", *line))
    return table(["", *DELAYS], rows)


def entry(cell: Cell) -> Markup:
    """One cell of the map: green where both are better, red where the loss is worse."""
    worst, loss = cell.ratio("auto", "worst_group"), cell.ratio("auto", "loss")
    kind = "lose" if loss > 1.0 else "win" if worst < 1.0 else ""
    if cell.ratio("auto", "loss", "raw") > 1.02:
        kind += " harm"
    return el("td", f"{worst:.2f} / {loss:.3f}", class_=kind.strip() or None, title=cell.learning)


def every_figure(found: list[Cell]) -> Markup:
    """All that was measured, folded away."""
    rows = [
        el("tr", *(el("td", text) for text in (
            f"{cell.stream} ({cell.kind})", cell.delay, rule, *(f"{x:.5g}" for x in own),
            f"{cell.ratio(rule, 'loss', 'raw'):.3f}",
        )))
        for cell in found
        for rule, own in cell.rules.items()
    ]  # fmt: skip
    head = ["stream", "labels come", "rule", *MEASURES.values(), "loss / raw"]
    return el("details", el("summary", f"All {len(rows):,} figures"), table(head, rows))


def table(head: list[Any], rows: list[Markup]) -> Markup:
    """A table that scrolls by itself where the page is narrow."""
    top = el("thead", el("tr", *(el("th", name) for name in head)))
    return el("div", el("table", top, el("tbody", *rows)), class_="scroll")
