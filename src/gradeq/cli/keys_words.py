"""Many series on the terminal and in JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradeq.cli.keys import ENOUGH, Series
from gradeq.cli.task import Task
from gradeq.equilibrium import aligned
from gradeq.report.markup import clean

LISTED = 5  # of the ten that the report and --json have


def as_dict(task: Task, series: Series) -> dict[str, Any]:
    """The series as JSON has them: how errors spread, the ten worst and the ten widest."""
    return {
        "count": len(series.table.rows),
        "judged": len(series.judged),
        "off": series.spread() or None,
        "worst": [entry(task, series, j) for j in series.worst.tolist()],
        "widest" if series.wide is not None else "largest_loss": [
            entry(task, series, j) for j in series.widest.tolist()
        ],
    }


def entry(task: Task, series: Series, j: int) -> dict[str, Any]:
    """One series: labels, bias or coverage, loss, width."""
    table = series.table
    before, after = aims(task, series, j)
    what = "bias" if task.command == "debias" else "coverage"
    found = {
        "key": table.keys[j],
        "labels": int(table.rows[j]),
        what: {"before": before, "after": after},
        "loss": {
            "before": float(np.mean(table.loss_before[j])),
            "after": float(np.mean(table.loss_after[j])),
        },
    }
    if series.wide is not None:
        found["width"] = float(series.wide[j])
    return found


def aims(task: Task, series: Series, j: int) -> tuple[float, float]:
    """Bias or coverage of a series before and after; of several levels that of the first."""
    table = series.table
    if table.target is not None:
        return tuple(float(e[j]) + table.target for e in (table.error_before, table.error))  # type: ignore[return-value]
    level = table.levels[0] if table.levels else 0.0
    before, after = (
        float(np.ravel(bias[j])[0]) + level for bias in (table.bias_before, table.bias_after)
    )
    return before, after


def lines(task: Task, series: Series, short: Any) -> str:
    """The terminal's part about series: how errors spread, then the worst and the widest; "" with fewer than two."""
    count = len(series.table.rows)
    if count < 2 or not len(series.judged):
        return ""
    covers = task.command == "quantile"
    spread, scale = series.spread(), 100.0 if covers else 1.0
    few = (
        ""
        if len(series.judged) == count
        else f", {len(series.judged):,} with enough labels to judge"
    )
    if len(series.judged) < count and int(series.table.rows[series.judged].min()) >= ENOUGH:
        few = f", {len(series.judged):,} with {ENOUGH} labels or more"
    mean, far = (short(scale * spread[name]) for name in ("mean", "farthest_tenth"))
    said = f"Series: {count:,} of {clean(task.key or '', 40)}{few}. "
    if covers:
        said += f"Coverage is off target by {mean} points on average, by {far} or more in a tenth."
    else:
        said += f"Their bias is {mean} in size on average, {far} or more in a tenth of them."
    second = "widest series" if series.wide is not None else "largest loss"
    parts = [said, *block(task, series, "worst series", series.worst, short)]
    parts += ["", *block(task, series, second, series.widest, short)]
    if task.keys_out is None and count > LISTED:
        parts.append("(--keys-out FILE writes all of them)")
    return "\n".join([parts[0], "", *parts[1:]])


def block(task: Task, series: Series, title: str, places: Any, short: Any) -> list[str]:
    """One small table."""
    what = "bias" if task.command == "debias" else "coverage"
    heads = [title, "labels", f"{what} before", "after", "loss before", "after"]
    heads += ["width"] if series.wide is not None else []
    rows = [heads]
    for j in places[:LISTED].tolist():
        own = entry(task, series, j)
        cells = [clean(own["key"], 40), f"{own['labels']:,}"]
        cells += [
            short(own[measure][when]) for measure in (what, "loss") for when in ("before", "after")
        ]
        rows.append(cells + ([short(own["width"])] if series.wide is not None else []))
    widths = [max(len(row[k]) for row in rows) for k in range(len(heads))]
    return [aligned(row, widths) for row in rows]
