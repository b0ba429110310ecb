"""The page of ``python -m benchmarks.quality``, self-contained: targets, plots, a map of all cells, every figure."""

from __future__ import annotations

from benchmarks.pages import dots, marked, page, table
from benchmarks.quality import SETS, Cell, typical
from benchmarks.quality_delays import DELAYS
from benchmarks.quality_measures import Measured
from benchmarks.quality_rules import RULES
from gradeq.report.components import Markup, el

MEASURES = dict(zip(Measured._fields, ("bias overall", "worst group", "group by month", "loss"), strict=True))


def late_page(found: list[Cell], held: list[tuple[bool, str]]) -> str:
    """The whole page."""
    parts = [
        el("p", "Lower is better everywhere. A ratio of 1 is the 14-day rolling rule."),
        el("section", el("h2", "Targets"), marked(held)),
    ]
    for title, kinds in SETS.items():
        late = [cell for cell in found if cell.late and cell.kind in kinds]
        if late:
            own = [cell for cell in found if cell.kind in kinds]
            parts.append(section(title, late, own))
    parts.append(every_figure(found))
    return page("Late labels: gradeq's default beside rolling means and other rules", *parts)


def section(title: str, late: list[Cell], own: list[Cell]) -> Markup:
    """One set of streams: every rule, auto by delay, the map of its cells."""
    by_rule = {rule: {name: typical(cell.ratio(rule, name) for cell in late) for name in MEASURES} for rule in RULES}
    by_delay = {
        delay: {name: typical(cell.ratio("auto", name) for cell in own if shown(cell, delay)) for name in MEASURES}
        for delay in DELAYS
    }
    return el(
        "section",
        el("h2", f"{title[0].upper()}{title[1:]}: {len(late)} late cells"),
        el("p", "Every rule over the 14-day rolling rule, geometric means over late cells."),
        *(
            dots(MEASURES[name], {rule: by_rule[rule][name] for rule in RULES}, {"auto"})
            for name in MEASURES
        ),
        el("h2", "auto by delay"),
        el("p", "auto over the 14-day rolling rule, for each way in which labels come."),
        *(
            dots(MEASURES[name], {d: by_delay[d][name] for d in DELAYS}, DELAYS)
            for name in MEASURES
        ),
        el("h2", "auto, cell by cell"),
        el("p", "Worst group / loss, each over the 14-day rolling rule. Framed: the loss is above raw by 2 %."),
        map_of(own),
    )  # fmt: skip


def shown(cell: Cell, delay: str) -> bool:
    """Whether a cell belongs to a delay of the real streams."""
    return cell.delay == delay and cell.role != "shuffled"


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
