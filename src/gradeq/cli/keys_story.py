"""Many series as the report tells them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradeq.cli.keys import bound_of_key
from gradeq.cli.keys_words import Aim, aim_of
from gradeq.cli.outcome import Outcome
from gradeq.cli.task import Task
from gradeq.cli.trend import weighted
from gradeq.report import story as told
from gradeq.report.tally import Tally
from gradeq.report.thin import numbers

WINDOW = 10  # labels: the least that a small chart averages over


def many_series(outcome: Outcome) -> told.ManySeries | None:
    """The series of a run, None where there are not two to compare."""
    series, task = outcome.series, outcome.task
    if series is None or len(series.table.rows) < 2 or not len(series.judged):
        return None
    tally = Tally()
    scale = 100.0 if task.command == "quantile" else 1.0
    tally.add(scale * series.table.error[series.judged])
    spread = series.spread()
    return told.ManySeries(
        len(series.table.rows), len(series.judged), spread["mean"], spread["farthest_tenth"],
        tally.histogram(),
        tuple(worst(outcome, series, j) for j in series.worst.tolist()),
        tuple(wide(outcome, series, j) for j in series.widest.tolist()),
        outcome.layer.pool,
        series.table.relative,
        series.fewest,
    )  # fmt: skip


def losses(series: Any, j: int) -> told.Pair:
    """The loss of a series before and as served, over its levels."""
    table = series.table
    return told.Pair(float(np.mean(table.loss_before[j])), float(table.loss[j]))


def worst(outcome: Outcome, series: Any, j: int) -> told.Group:
    """One of the worst as a row of the table, with its path where it was followed."""
    task, table = outcome.task, series.table
    name, aim = named(task, series, j)
    bound, vacuous = bound_of_key(task, outcome.layer, series, j)
    label = float(series.sums.means("label", len(table.rows))[j]) if series.sums.alone else np.nan
    return told.Group(
        task.key or "", name, int(table.rows[j]), label, aim.before, aim.after, losses(series, j),
        bound, bool(vacuous), aim.target, None if aim.level else path(series, j),
    )  # fmt: skip


def path(series: Any, j: int) -> told.Spark | None:
    """The trailing error of a series, over a fifth of its labels; in the label's unit, so none with link exp."""
    if series.sums.blocks is None or series.table.relative:
        return None
    small = series.sums.blocks.trailing(j, max(WINDOW, int(series.table.rows[j]) // 5))
    if len(small.x) < 3:
        return None
    first, second = (numbers(mean) for mean in list(weighted(small.means).values())[:2])
    return told.Spark(tuple(small.x.tolist()), first, second)


def wide(outcome: Outcome, series: Any, j: int) -> told.WideSeries:
    """One of the widest."""
    width = None if series.wide is None else float(series.wide[j])
    name, aim = named(outcome.task, series, j)
    return told.WideSeries(name, int(series.table.rows[j]), aim.after, losses(series, j), width)


def named(task: Task, series: Any, j: int) -> tuple[str, Aim]:
    """The name of a series, with the level that is told of it where there are several, and what it is judged by."""
    aim, key = aim_of(task, series, j), series.table.keys[j]
    return key if aim.level is None else f"{key} at {aim.target:g}", aim
