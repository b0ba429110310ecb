"""Many series: the worst, the widest, and how errors spread, in text, JSON and report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

import numpy as np

from gradeq.cli.outcome import WEIGHT, GroupSums, RunOutcome, weigh, weighted_means
from gradeq.cli.task import ParsedRows, RunTask
from gradeq.files.cells import Floats, Ints
from gradeq.layers.key_table import key_table
from gradeq.report.components import clean
from gradeq.report.numerals import points, short
from gradeq.report.rolling import Blocks, numbers
from gradeq.report.state_facts import (
    ENOUGH,
    TOO_FEW_COMPARED,
    RankedSeries,
    label_requirement,
    rank_series,
    series_story,
)
from gradeq.report.story import ManySeries, Spark
from gradeq.tables import aligned_table

if TYPE_CHECKING:
    from gradeq.certificates.contracts import KeyedLayer, SeriesTable
    from gradeq.layers.layer import Layer

FOLLOWED = 2000  # series that are drawn over time, the first to appear
LISTED = 5  # of the ten that the report and --json have
WINDOW = 10  # labels: the least that a small chart averages over


class SeriesSums:
    """Mean label and width by series, which the layer's own table lacks."""

    def __init__(self, task: RunTask, drawn: tuple[str, ...] = ()) -> None:
        self.task = task
        # A parameter is a series only where series have no groups or features of their own.
        self.alone = not (task.by or task.features)
        names = ["label"] if drawn else []  # only the report shows it
        names += ["width_before", "width_after"] if task.several else []
        self.weighted = self.alone and bool(names) and task.common.weight is not None
        self.sums = GroupSums(names if self.alone else [], self.weighted)
        self.blocks = Blocks(drawn, FOLLOWED, 128) if drawn and self.alone else None

    def add(self, layer: Layer, rows: ParsedRows, served: Floats, x: Floats, judged: dict[str, Floats]) -> None:
        from gradeq.layers.columns import coded

        if not self.sums.names:
            return
        book = layer.internals.names.book
        counted = rows.counted
        codes = coded(rows.piece.cells(self.task.key or ""), "key", book)[counted]
        columns = {"label": rows.y[counted]}
        if self.task.several:
            for name, ends in (("width_before", rows.base), ("width_after", served)):
                columns[name] = (ends[:, -1] - ends[:, 0])[counted]
        columns = judged | columns
        if rows.weights is not None:
            columns = weigh(columns, rows.weights[counted])
        self.sums.add(codes, columns, len(book))
        if self.blocks is not None:
            self.blocks.add({name: columns[name] for name in self.blocks.names}, x, codes)

    def means(self, name: str, keys: int) -> Floats:
        result: Floats = np.full(keys, np.nan)
        total = self.sums.totals(name)[:keys]
        weight = (self.sums.totals(WEIGHT) if self.weighted else self.sums.rows)[:keys]
        np.divide(total, weight, out=result[: len(total)], where=weight > 0)
        return result

    def ranked(self, layer: Layer) -> RankedSeries:
        table = key_table(layer)
        widths = self.means("width_after", len(table.rows)) if self.task.several and self.alone else None
        return rank_series(table, widths=widths, decimals=10)


def key_columns(table: SeriesTable, sums: SeriesSums) -> dict[str, Floats | Ints | list[str]]:
    columns = table.columns()
    # ``rows`` of the library are labels learned from, not all that were served: a file has them under that name too.
    result = {"key": columns.pop("key"), "rows": columns["rows"], "labels": columns.pop("rows"), **columns}
    if sums.task.several and sums.alone:
        for name in ("width_before", "width_after"):
            result[name] = sums.means(name, len(table.rows))
    return result


def measures(task: RunTask) -> tuple[str, str]:
    """Names of error and loss; with link exp both are relative to the prediction."""
    if task.command == "quantile":
        return "coverage", "loss"
    return ("relative_bias", "relative_loss") if task.link == "exp" else ("bias", "loss")


def series_json(outcome: RunOutcome, series: RankedSeries) -> dict[str, object]:
    """Spread of errors, the ten worst and the ten widest."""
    table, (what, loss) = series.table, measures(outcome.task)

    def entry(j: int) -> dict[str, object]:
        ranked = series.entry(j)
        losses: dict[str, object] = {
            "before": float(np.mean(table.loss_before[j])),
            "after": float(np.mean(table.loss_after[j])),
        }
        if outcome.task.limited:  # as served, inside --min and --max; the state knows that of the served values alone
            losses["clipped"] = {"after": float(table.loss[j])}
        return {
            "key": table.keys[j],
            "labels": ranked.rows,
            what: asdict(ranked.error),
            loss: losses,
            **({} if ranked.level is None else {"level": ranked.target}),
            **({} if series.widths is None else {"width": float(series.widths[j])}),
        }

    weights = outcome.equilibrium.weights
    return {
        **({"weights": weights} if weights else {}),
        "count": len(table.rows),
        "judged": len(series.judged),
        "off": series.spread or None,
        "worst": list(map(entry, series.worst)),
        "largest_loss" if series.widths is None else "widest": list(map(entry, series.widest)),
    }


def series_text(outcome: RunOutcome, series: RankedSeries, sums: SeriesSums) -> str:
    """Spread of errors, the worst and the widest; empty with fewer than two series."""
    task, table, spread, count = outcome.task, series.table, series.spread, len(series.table.rows)
    if count < 2 or not spread:
        return ""
    what, loss = (name.replace("_", " ") for name in measures(task))
    few = "" if len(series.judged) == count else f", {len(series.judged):,} {label_requirement(series.fewest)}"
    first = f"Series: {count:,} of {clean(task.key or '', 40)}{few}. "
    if task.command == "quantile":
        mean, far = (points(spread[name], False) for name in ("mean", "farthest_tenth"))
        first += f"Coverage is off target by {mean} points on average, by {far} or more in a tenth."
    else:
        mean, far = (short(spread[name]) for name in ("mean", "farthest_tenth"))
        first += f"Their {what} is {mean} in size on average, {far} or more in a tenth of them."
    second = f"largest {loss}" if series.widths is None else "widest series"
    parts = [first, "", *series_table(task, series, "worst series", series.worst)]
    parts += ["", *series_table(task, series, second, series.widest)]
    if table.relative:
        parts.append("(of (served - label) / prediction and its square: --link exp learns from these)")
    if series.widths is not None and not np.array_equal(sums.sums.rows, table.rows):
        parts.append("(width: labelled rows of this run; the rest: labels learned from so far)")
    if outcome.equilibrium.weights:
        parts.append("(averages of a series: by relative weight)")
    if task.limited:
        parts.append("(coverage is judged before --min and --max, the loss is that of what was served)")
    if series.fewest < ENOUGH:
        parts.append(f"({TOO_FEW_COMPARED})")
    if task.table_file is None and count > LISTED:
        parts.append("(--keys-out FILE writes all of them)")
    return "\n".join(parts)


def series_table(task: RunTask, series: RankedSeries, title: str, places: Sequence[int]) -> list[str]:
    what, loss = (name.replace("_", " ") for name in measures(task))
    levels = task.several and task.interval is None
    heads = [title, "labels", *(["level"] if levels else []), f"{what} before", "after", f"{loss} before", "after"]
    rows = [heads if series.widths is None else [*heads, "width"]]
    for j in places[:LISTED]:
        entry = series.entry(j)
        cells = [clean(str(series.table.keys[j]), 40), f"{entry.rows:,}"]
        cells += [f"{entry.target:g}"] if levels else []
        cells += map(short, (entry.error.before, entry.error.after, entry.loss.before, entry.loss.after))
        rows.append(cells if series.widths is None else [*cells, short(float(series.widths[j]))])
    return aligned_table(rows)


def run_series_story(outcome: RunOutcome) -> ManySeries | None:
    """The series of the report; None with fewer than two."""
    series, sums = outcome.series, outcome.totals.series
    if series is None or sums is None:
        return None
    labels, blocks = series.table.rows, sums.blocks

    def spark(j: int) -> Spark | None:
        """Trailing error of a series, over a fifth of its labels; None with link exp."""
        if blocks is None or series.table.relative:
            return None
        small = blocks.group_trailing(j, max(WINDOW, int(labels[j]) // 5))
        if len(small.x) < 3:
            return None
        before, after = (numbers(mean) for mean in list(weighted_means(small.means).values())[:2])
        return Spark(tuple(small.x.tolist()), before, after)

    means = sums.means("label", len(labels)) if sums.alone else None
    layer = cast("KeyedLayer", outcome.layer)
    return series_story(layer, series, outcome.task.key or "key", means, spark)
