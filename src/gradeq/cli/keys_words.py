"""Many series on the terminal and in JSON."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradeq.cli.keys import Series
from gradeq.cli.task import Task
from gradeq.layers.keytable import shares
from gradeq.report.markup import clean
from gradeq.report.numerals import points, some
from gradeq.report.of_keys import ENOUGH, YOUNG, having
from gradeq.report.story import Notice
from gradeq.tables import aligned

LISTED = 5  # of the ten that the report and --json have
SEVERAL, SHORT, FAR = (
    5,
    500,
    0.03,
)  # series; labels of the middle one; coverage off target: then pooling may help


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
    aim = aim_of(task, series, j)
    what, loss = measures(task)
    found: dict[str, Any] = {
        "key": table.keys[j],
        "labels": int(table.rows[j]),
        what: {"before": aim.before, "after": aim.after},
        loss: {
            "before": float(np.mean(table.loss_before[j])),
            "after": float(np.mean(table.loss_after[j])),
        },
    }
    if (
        task.limited
    ):  # as served, inside --min and --max; the state knows that of the served values alone
        found[loss]["clipped"] = {"after": float(table.loss[j])}
    if aim.level is not None:
        found["level"] = aim.target
    if series.wide is not None:
        found["width"] = float(series.wide[j])
    return found


def measures(task: Task) -> tuple[str, str]:
    """What series are compared by: with link exp, like the certificate, in units of the prediction."""
    if task.command == "quantile":
        return "coverage", "loss"
    return ("relative_bias", "relative_loss") if task.link == "exp" else ("bias", "loss")


class Aim(NamedTuple):
    """Bias or coverage of a series before and after; of several levels the one that is farthest off, ``level``."""

    before: float
    after: float
    target: float | None = None
    level: int | None = None


def aim_of(task: Task, series: Series, j: int) -> Aim:
    """What a series is judged by."""
    table = series.table
    before, after = float(table.error_before[j]), float(table.error[j])
    if task.command == "debias":
        return Aim(before, after)
    level = int(table.farthest[j]) if len(table.levels) > 1 and table.target is None else None
    target = table.levels[level or 0] if table.target is None else table.target
    return Aim(float(shares(before, target)), float(shares(after, target)), target, level)


def pool_hint(outcome: Any) -> Notice | None:
    """Short series that are far off, and would gain by sharing."""
    task, series = outcome.task, outcome.series
    if series is None or task.command != "quantile" or outcome.layer.pool or not task.poolable:
        return None
    labels = float(np.median(series.table.rows)) if len(series.table.rows) >= SEVERAL else np.inf
    off = series.spread().get("mean", 0.0)
    if labels >= SHORT or off < FAR:
        return None
    return Notice(
        "note",
        f"The {len(series.table.rows):,} series are short: {some(round(labels), 'label')} in the median.",
        f"Alone they are off target by {points(off, False)} points on average.",
        "Try `--pool` and no `--eta`: series then share an overall correction beside their own.",
    )


def lines(task: Task, series: Series, short: Any) -> str:
    """The terminal's part about series: how errors spread, then the worst and the widest; "" with fewer than two."""
    count = len(series.table.rows)
    if count < 2 or not len(series.judged):
        return ""
    covers = task.command == "quantile"
    spread = series.spread()
    few = "" if len(series.judged) == count else f", {len(series.judged):,} {having(series.fewest)}"
    mean, far = (
        points(spread[name], False) if covers else short(spread[name])
        for name in ("mean", "farthest_tenth")
    )
    said = f"Series: {count:,} of {clean(task.key or '', 40)}{few}. "
    if covers:
        said += f"Coverage is off target by {mean} points on average, by {far} or more in a tenth."
    else:
        what = measures(task)[0].replace("_", " ")
        said += f"Their {what} is {mean} in size on average, {far} or more in a tenth of them."
    second = f"largest {measures(task)[1].replace('_', ' ')}"
    second = second if series.wide is None else "widest series"
    parts = [said, *block(task, series, "worst series", series.worst, short)]
    parts += ["", *block(task, series, second, series.widest, short)]
    if series.table.relative:
        parts.append(
            "(of (served - label) / prediction and its square: --link exp learns from these)"
        )
    if series.wide is not None and not series.same_rows:
        parts.append("(width: labelled rows of this run; the rest: labels learned from so far)")
    if task.limited:
        parts.append(
            "(coverage is judged before --min and --max, the loss is that of what was served)"
        )
    if series.fewest < ENOUGH:
        parts.append(f"({YOUNG})")
    if task.keys_out is None and count > LISTED:
        parts.append("(--keys-out FILE writes all of them)")
    return "\n".join([parts[0], "", *parts[1:]])


def block(task: Task, series: Series, title: str, places: Any, short: Any) -> list[str]:
    """One small table."""
    what, loss = measures(task)
    several = task.several and task.interval is None
    heads = [
        title,
        "labels",
        *(["level"] if several else []),
        f"{what.replace('_', ' ')} before",
        "after",
        f"{loss.replace('_', ' ')} before",
        "after",
    ]
    heads += ["width"] if series.wide is not None else []
    rows = [heads]
    for j in places[:LISTED].tolist():
        own = entry(task, series, j)
        cells = [clean(own["key"], 40), f"{own['labels']:,}"]
        cells += [f"{own['level']:g}"] if several else []
        cells += [short(own[what][when]) for when in ("before", "after")]
        cells += [short(own[loss]["before"]), short(float(series.table.loss[j]))]
        rows.append(cells + ([short(own["width"])] if series.wide is not None else []))
    widths = [max(len(row[k]) for row in rows) for k in range(len(heads))]
    return [aligned(row, widths) for row in rows]
