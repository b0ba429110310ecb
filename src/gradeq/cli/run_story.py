"""The report of a debias or quantile run as data, collected during the run."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, cast

import click
import numpy as np

from gradeq.certificates.figures import learning_of
from gradeq.cli.options import LateOptions
from gradeq.cli.outcome import (
    WEIGHT,
    CalibrationBins,
    ColumnSums,
    GroupSums,
    MonthlySums,
    RunOutcome,
    relative_weights,
    weigh,
    weighted_means,
)
from gradeq.cli.row_reader import RowReader
from gradeq.cli.series import run_series_story
from gradeq.cli.task import ParsedRows, RunTask, learn, step_of
from gradeq.equilibrium import Coordinate
from gradeq.errors import GradeqError
from gradeq.files.cells import Floats, Ints, Mask
from gradeq.inputs.arguments import column_name
from gradeq.report import layer_story, story
from gradeq.report.method import EVERY, identity_line
from gradeq.report.numerals import count, date, decimals, number, percent, plain, target
from gradeq.report.rolling import (
    POINTS,
    Blocks,
    RollingMeans,
    StreamHistogram,
    corrections,
    label_change,
    numbers,
    rolling_chart,
    thin,
    window,
)
from gradeq.report.story import BeforeAfter, Fact, NamedCurve, Notice, Story, ThetaPanel
from gradeq.tables import some

if TYPE_CHECKING:
    from gradeq.inputs.column_types import ColumnLike
    from gradeq.layers.layer import Layer
    from gradeq.layers.run import Run

STEPS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_SWEPT = 2_000_000  # rows; a longer file is not run again with other steps
TRACED = 20  # pieces whose path is read finely; later ones are read at their ends
MOST_PARAMETERS = 200
GROUPS = 200  # of a column that get a line of their own
STEP = "\0step"  # no parameter has this name


def parameters_and_step(layer: Layer) -> dict[str, float]:
    return {**cast("dict[str, float]", layer.theta), STEP: learning_of(layer).step}


class AlternativeStep:
    """The same run with another step, in hindsight."""

    def __init__(self, task: RunTask, layer: Layer, factor: float) -> None:
        self.task, self.layer, self.factor = task, layer, factor
        weighted = task.common.weight is not None
        self.sums = ColumnSums(task.measures, weighted)
        self.groups = [GroupSums(task.measures, weighted) for _ in task.by]

    def add(self, rows: ParsedRows, counted: Mask, codes: list[Ints], weights: Floats | None) -> None:
        served = np.asarray(learn(self.task, self.layer, rows).values)
        served = served if served.ndim == 2 else served[:, None]
        judged = self.task.judge.columns(rows.base[counted], served[counted], rows.y[counted])
        judged = judged if weights is None else weigh(judged, weights)
        self.sums.add(judged, int(counted.sum()))
        for sums, code in zip(self.groups, codes, strict=True):
            sums.add(code, judged, int(code.max(initial=-1)) + 1)


@dataclass
class ParameterPath:
    """Parameters over the run, at a bounded number of moments; only the first ``most`` of them."""

    most: int | None = MOST_PARAMETERS
    x: list[float] = field(default_factory=list)
    thetas: list[dict[str, float]] = field(default_factory=list)

    def add(self, x: float, theta: Mapping[str, float]) -> None:
        self.x.append(x)
        self.thetas.append(dict(islice(theta.items(), self.most)))
        if len(self.x) > 4000:
            chosen = thin(len(self.x), 2000).tolist()
            self.x = [self.x[i] for i in chosen]
            self.thetas = [self.thetas[i] for i in chosen]


class ReportCollector:
    def __init__(self, task: RunTask, reading: RowReader, layer: Layer, late: LateOptions) -> None:
        self.task, self.reading, self.layer = task, reading, layer
        bounded = task.outcome == "binary"
        self.tally = StreamHistogram(0.0, 1.0) if bounded else StreamHistogram()
        pair = (f"{task.errors[0]}_before", f"{task.errors[0]}_after")
        weighted = task.common.weight is not None
        self.drawn = (*pair, WEIGHT) if weighted else pair
        self.parts = [Blocks(self.drawn, GROUPS, 1024) for _ in task.by]
        self.path = ParameterPath()
        # With auto, the parameters are those of the final step, not of the served correction.
        self.auto = task.key is None and getattr(layer, "eta", None) == "auto"
        self.levels = tuple(f"correction{k}" for k in range(max(1, len(task.levels))))
        self.corrections = [Blocks(self.levels, GROUPS, 1024) for _ in (None, *task.by)]
        self.rows = 0
        self.pieces = 0
        self.labels = [np.inf, -np.inf]
        self.bases = [np.inf, -np.inf]
        self.others: list[AlternativeStep] = []
        eta = step_of(layer)
        # Not with auto, with keys, or after earlier rows.
        if isinstance(eta, float) and task.key is None and not layer.traffic["served"]:
            for factor in STEPS:
                try:
                    self.others.append(AlternativeStep(task, task.fresh(eta * factor, late), factor))
                except GradeqError:  # beyond the steps that are stable
                    continue
        self.calibration = (CalibrationBins(), CalibrationBins()) if bounded else None  # raw, served
        dated = bool(task.by) and reading.dated
        self.months = MonthlySums(pair, len(task.by), weighted) if dated else None
        self.steps: list[tuple[float, float]] = []

    def add(
        self,
        rows: ParsedRows,
        run: Run[ColumnLike],
        served: Floats,
        x: Floats,
        codes: list[Ints],
        judged: Mapping[str, Floats],
        weights: Floats | None,
    ) -> None:
        """Add a piece; ``x`` and the arguments after it are those of its counted rows, measures times weights."""
        counted = rows.counted
        self.tally.add(served.ravel())
        for part, code in zip(self.parts, codes, strict=True):
            part.add({name: judged[name] for name in part.names}, x, code)
        if self.months is not None and len(x):
            self.months.add(codes, judged, x)
        if self.calibration is not None:
            for bins, p in zip(self.calibration, (rows.base, served), strict=True):
                bins.add(p[counted, 0], rows.y[counted], weights)
        if self.auto and len(x):
            added = corrections(self.layer, rows.base[counted], served[counted])
            columns = dict(zip(self.levels, added.T, strict=True))
            for part, code in zip(self.corrections, [np.zeros(len(x), int), *codes], strict=True):
                part.add(columns, x, code)
        for ends, values in ((self.bases, rows.base), (self.labels, rows.y[~np.isnan(rows.y)])):
            if values.size:
                ends[:] = min(ends[0], values.min()), max(ends[1], values.max())
        if len(x) and self.task.key is None:  # there may be a million series
            self._trace(rows, run, float(x[-1]))
        self.rows += len(served)
        self.pieces += 1
        if self.rows > MOST_SWEPT:
            self.others = []
        for other in list(self.others):
            try:
                other.add(rows, counted, codes, weights)
            except GradeqError:  # this step diverges on these rows
                self.others.remove(other)

    def _trace(self, rows: ParsedRows, run: Run[ColumnLike], last: float) -> None:
        theta = getattr(self.layer, "theta", None)
        if not isinstance(theta, dict):
            return
        if self.pieces < TRACED and len(theta) <= MOST_PARAMETERS:
            trace = run.path(parameters_and_step)
            moments = [
                (float(rows.piece.x[int(at) - 1]), dict(zip(trace.names, values.tolist(), strict=True)))
                for at, values in zip(trace.rows, trace.theta, strict=True)
                if at
            ]
        else:
            moments = [(last, parameters_and_step(self.layer))]
        for x, read in moments:
            self.steps.append((x, read.pop(STEP)))
            self.path.add(x, read)
            if len(self.steps) > 4000:
                self.steps = self.steps[::2]


ALIKE = 1e-3  # relative: two steps that did the same
CURVES = 8  # parameters of one panel
THETA_SCALES = {
    "identity": "in the label's units",
    "linear": "in the label's units",
    "logit": "in log-odds",
    "shift": "in log-odds of the shift",
    "exp": "as a log factor",
    "sinh": "in asinh units of the scale",
}


def run_story(outcome: RunOutcome, collector: ReportCollector) -> Story:
    task, months, calibration = outcome.task, collector.months, collector.calibration
    if not outcome.totals.labelled and outcome.equilibrium.rows and layer_story.has_page(outcome.layer):
        return since_the_state_began(outcome, collector)
    step = None
    if len({round(value, 12) for _, value in collector.steps}) > 1:
        moments = [collector.steps[i] for i in thin(len(collector.steps)).tolist()]
        x, values = zip(*moments, strict=True)
        step = ThetaPanel("", collector.reading.axis, x, (NamedCurve("step", values),))
    reliability = None
    if calibration is not None and outcome.totals.counted:
        before, after = (bins.bins() for bins in calibration)
        reliability = story.Reliability(before, after, outcome.pair("loss"), outcome.pair("log"))
    link = "linear" if collector.auto and task.link == "sinh" else task.link
    return Story(
        kind="debias" if task.command == "debias" else "quantile",
        made=provenance(collector.reading.table.paths, task.common.state),
        prediction=task.prediction,
        label=task.label or "label",
        by=task.by,
        outcome="binary" if task.outcome == "binary" else "real",
        rows=outcome.totals.rows,
        labelled=outcome.totals.counted,
        open=outcome.open_rows,
        weight=task.common.weight or "",
        verdict=outcome.verdict,
        method=method(outcome),
        features=task.features,
        key=task.key or "",
        notices=outcome.notices,
        rolling=rolling(outcome, collector),
        groups=groups(outcome, collector),
        groups_total=len(outcome.groups),
        levels=levels(outcome) if len(task.levels) > 1 and task.interval is None else (),
        frontier=frontier(outcome, collector) if collector.others and outcome.totals.counted else (),
        theta=panels_as_served(outcome, collector) if collector.auto else panels(outcome, collector),
        theta_scale=THETA_SCALES[link],
        histogram=collector.tally.histogram(),
        data=facts(outcome, collector),
        width=mean_width(outcome) if task.interval is not None and outcome.totals.counted else None,
        reliability=reliability,
        heat=None if months is None else months.heat(outcome.groups, task.by, task.target),
        steps=step,
        series=None if outcome.series is None else run_series_story(outcome),
    )


def since_the_state_began(outcome: RunOutcome, collector: ReportCollector) -> Story:
    """The report of a file without labels: what the state knows."""
    task, whole, rows = outcome.task, layer_story.story_of(outcome.layer), outcome.totals.rows
    which = "The one row of this file has" if rows == 1 else f"The {count(rows)} rows of this file have"
    learned = some(outcome.equilibrium.rows, "label")
    evidence = f"Figures on this page are over the {learned} learned from since the state began."
    return replace(
        whole,
        made=provenance(collector.reading.table.paths, task.common.state),
        prediction=task.prediction,
        label=task.label or "label",
        key=task.key or "",
        notices=(*outcome.notices, Notice("note", f"{which} no label yet.", evidence), *whole.notices),
        data=(*facts(outcome, collector)[1:], *whole.data),
    )


def provenance(files: list[str], state: str | None) -> story.Provenance:
    source = os.path.basename(files[0]) + (f" and {len(files) - 1} more" if files[1:] else "")
    context = click.get_current_context(silent=True)
    settings = None if context is None else context.find_root().obj
    line = shlex.join(["gradeq", *sys.argv[1:]])
    if isinstance(settings, dict) and "line" in settings:  # of a command that the demo runs
        line = str(settings["line"])
    return story.Provenance(source, line, state)


def method(outcome: RunOutcome) -> story.Method:
    """How values were served, and the identity worked out for one group (for an interval, both ends)."""
    task, reached = outcome.task, outcome.equilibrium
    auto = outcome.eta == "auto"
    if not reached.coordinates or not outcome.totals.counted:
        return story.Method(task.link, exact=reached.exact, auto=auto)
    first = max(reached.coordinates, key=lambda c: c.rows)
    cells = [first]
    if task.interval is not None:
        stem = first.name.rpartition(" @ ")[0]
        cells = [c for c in reached.coordinates if c.name.rpartition(" @ ")[0] == stem]
    notes = []
    if reached.weights:
        notes.append(
            "Rows have weights: the error of a row is multiplied by its relative weight, and n is the sum "
            f"of those learned from. {relative_weights(task)}"
        )
    if outcome.continued:
        notes.append("Figures and tables are of this run; the certificate is since the state began.")
    elif reached.rows < outcome.totals.counted:
        waiting = some(outcome.totals.counted - reached.rows, "label")
        notes.append(
            f"Figures and tables count {some(outcome.totals.counted, 'label')}; {waiting} of them had not "
            "been learned from by the end of the run."
        )
    eta, every = outcome.layer.steps["largest"], "all keys" if task.key is not None else "all rows"
    lines = tuple(identity_line(reached, c, eta, meaning(outcome, c), every) for c in cells)
    ends = None if task.interval is None else (float(task.levels[0]), float(task.levels[-1]))
    return story.Method(task.link, lines, reached.exact, auto, ends, " ".join(notes))


def meaning(outcome: RunOutcome, cell: Coordinate) -> str:
    """What the average of a parameter is, and whether a table shows it."""
    task, reached = outcome.task, outcome.equilibrium
    if cell.name in map(column_name, task.features):
        return f"the mean of error × {cell.name}, which is driven to zero"
    if task.link == "exp":
        return "the relative bias, mean of (served − label) / forecast; tables show the plain bias"
    stem, _, level = cell.name.partition(" @ ") if task.several else (cell.name, "", "")
    group = next((g for g in outcome.groups if g.name == stem), None)
    counted = outcome.totals.counted if group is None else group.counted
    same = not (outcome.continued or reached.weights) and cell.rows == counted
    since = " since the state began" if outcome.continued else ""
    which = f"the {some(cell.rows, 'row')} learned from{since}{reached.by_weight}"
    if task.command == "debias":
        if same:
            return "the bias in the table" if group is not None else "the bias above"
        return f"the bias over {which}"
    wanted = float(level or task.levels[0])
    share = percent(wanted + (cell.bias_after or 0.0), 2)
    rows = "" if same else f" of {which}"
    return f"coverage minus level: {share} covered{rows}, level {target(wanted)}"


def groups(outcome: RunOutcome, collector: ReportCollector) -> tuple[story.Group, ...]:
    task = outcome.task
    measure, loss, rows = task.errors[0], f"loss{task.as_served}", []
    places = {by: iter(range(len(outcome.groups))) for by in task.by}
    parts = dict(zip(task.by, collector.parts, strict=True))
    for line in outcome.groups:
        code = next(places[line.by])
        if not line.counted:
            continue
        small, spark = parts[line.by].group_trailing(code), None
        if len(small.x) > 1:
            means = weighted_means(small.means)
            curves = (numbers(means[f"{measure}_{when}"]) for when in ("before", "after"))
            spark = story.Spark(tuple(small.x.tolist()), *curves)
        error, bound, aim = line.pair(measure), line.served_bound, None if measure == "bias" else task.target
        rows.append(
            story.Group(
                line.by, line.value, line.counted, line.label_mean, error.before, error.after, line.pair(loss),
                bound, bool(line.vacuous) and bound is not None, aim, spark, line.weight,
            )
        )  # fmt: skip
    return tuple(rows)


def rolling(outcome: RunOutcome, collector: ReportCollector) -> story.Rolling | None:
    """Trailing means of values, labels and errors; the stretch after the labels changed is shaded."""
    task, blocks = outcome.task, outcome.totals.trend.blocks
    series = blocks.trailing(window(outcome.totals.counted))
    series = RollingMeans(series.x, series.window, weighted_means(series.means))
    if len(series.x) < 2:
        return None
    mean, axis, name = series.means, collector.reading.axis, collector.reading.axis_title
    levels = [("", 0.0)] if task.command == "debias" else [(c.name, c.target) for c in outcome.verdict.coverage[:3]]
    tracked = [
        (level, aim, mean[f"{stem}_before"], mean[f"{stem}_after"])
        for (level, aim), stem in zip(levels, task.errors, strict=False)
    ]
    change, span = label_change(blocks), None
    if change is not None:
        rate = change.after["label"]
        text = f"mean label {number(rate, decimals(rate, change.before['label']))}"
        if task.outcome == "binary" and rate in (0.0, 1.0):
            text = f"every label is {number(rate, 0)}"
        since = date(change.x) if axis == "date" else plain(change.x)
        span = story.Span(change.x, None, f"from {since} {text}")
    ends = "interval" if task.interval is not None else "levels" if len(task.levels) > 1 else ""
    return rolling_chart(series, tracked, ends, (axis, name), outcome.totals.trend.begin, span)


def mean_width(outcome: RunOutcome) -> BeforeAfter:
    """Of the intervals before and after."""
    counts, _, sums = outcome.totals.trend.blocks.blocks()
    whole = sums[WEIGHT].sum() if WEIGHT in sums else counts.sum()
    ends = [(sums[f"upper_{when}"] - sums[when]).sum() for when in ("before", "after")]
    return BeforeAfter(*(float(end / whole) for end in ends))


def levels(outcome: RunOutcome) -> tuple[story.LevelRow, ...]:
    task = outcome.task
    cells, rows = list(outcome.equilibrium.coordinates), []
    for k, c in enumerate(outcome.verdict.coverage):
        cell, served = cells[k] if k < len(cells) else None, c.held or BeforeAfter(c.before, c.after)
        bound = cell.bound if cell and served.after == c.after else None  # it is on coverage before --min and --max
        loss = BeforeAfter(*outcome.pair(f"loss{k}{task.as_served}"))
        vacuous = bound is not None and bool(cell and cell.vacuous)
        rows.append(story.LevelRow(c.name, c.target, served, loss, bound, vacuous))
    return tuple(rows)


def frontier(outcome: RunOutcome, collector: ReportCollector) -> tuple[story.StepPoint, ...]:
    """Loss and worst error of each step on the same rows."""
    eta, task = cast(float, outcome.eta), outcome.task
    measure, cost = task.errors[0], f"loss{task.as_served}"

    def figures(sums: ColumnSums, groups: list[GroupSums], when: str) -> tuple[float, float]:
        name = f"{measure}_{when}"
        cells = [s.mean(c, name) for s in groups for c in range(len(s.rows)) if s.rows[c]]
        worst = max(abs(value - task.target) for value in (cells or [sums.mean(name)]))
        return sums.mean(f"{cost}_{when}"), worst

    first = collector.others[0]
    points = [story.StepPoint(0.0, *figures(first.sums, first.groups, "before"))]
    chosen = None
    for other in sorted(collector.others, key=lambda other: other.factor != 1.0):
        step = float(f"{eta * other.factor:.3g}") if other.factor != 1.0 else eta
        loss, left = figures(other.sums, other.groups, "after")
        if chosen is None:
            chosen = (loss, left)
        elif math.isclose(loss, chosen[0], rel_tol=ALIKE) and math.isclose(left, chosen[1], rel_tol=ALIKE):
            continue  # late labels cap both steps at the same size
        points.append(story.StepPoint(step, loss, left, other.factor == 1.0))
    known = all(math.isfinite(p.loss) and math.isfinite(p.worst) for p in points)
    return tuple(sorted(points, key=lambda point: point.step)) if known else ()


def panels(outcome: RunOutcome, collector: ReportCollector) -> tuple[ThetaPanel, ...]:
    """Parameters over time, a panel per --by column."""
    path, task = collector.path, outcome.task
    if len(path.x) < 2:
        return ()
    picked, last = thin(len(path.x)).tolist(), path.thetas[-1]
    stems = {name: name.partition(" @ ")[0] for name in last}
    shown: dict[str, list[tuple[str, str]]] = {}
    for by in task.by:
        largest = sorted((g for g in outcome.groups if g.by == by), key=lambda g: -g.labelled)[:CURVES]
        shown[by] = [(n, g.value) for g in largest for n in last if stems[n] == g.name]
    shown[""] = [(n, stems[n]) for n in last if "=" not in n or not task.by]
    x, axis = tuple(path.x[i] for i in picked), collector.reading.axis
    found = []
    for by, names in shown.items():
        curves = []
        for name, value in names[:CURVES]:
            values = np.array([path.thetas[i].get(name, 0.0) for i in picked])
            curves.append(NamedCurve(curve_name(outcome, name, value), numbers(values)))
        if curves:
            found.append(ThetaPanel(by, axis, x, tuple(curves)))
    return tuple(found)


def panels_as_served(outcome: RunOutcome, collector: ReportCollector) -> tuple[ThetaPanel, ...]:
    """Served corrections as trailing means, a panel per --by column."""
    whole = collector.corrections[0].group_trailing(0, window(outcome.totals.counted), POINTS)
    if len(whole.x) < 2:
        return ()
    axis, x = collector.reading.axis, tuple(whole.x.tolist())
    levels = outcome.task.levels if len(collector.levels) > 1 else ("",)
    panels: list[tuple[str, Blocks, list[tuple[int, int, str, str]]]] = []  # code, rows, name and value of groups
    if not outcome.task.by:
        panels.append(("", collector.corrections[0], [(0, outcome.totals.counted, EVERY, EVERY)]))
    for by, parts in zip(outcome.task.by, collector.corrections[1:], strict=True):
        lines = [g for g in outcome.groups if g.by == by]
        groups = [(code, line.counted, line.name, line.value) for code, line in enumerate(lines)]
        panels.append((by, parts, sorted(groups, key=lambda group: -group[1])[: max(1, CURVES // len(levels))]))
    found = []
    for by, parts, groups in panels:
        curves = []
        for code, _, name, value in groups:
            means = parts.group_trailing(code, points=POINTS)
            for column, level in zip(collector.levels, levels, strict=True) if len(means.x) > 1 else ():
                title = curve_name(outcome, f"{name} @ {level}" if level else name, value)
                drawn = np.interp(whole.x, means.x, means.means[column], left=np.nan)
                curves.append(NamedCurve(title, numbers(drawn)))
        if curves:
            found.append(ThetaPanel(by, axis, x, tuple(curves)))
    return tuple(found)


def curve_name(outcome: RunOutcome, name: str, value: str) -> str:
    level = name.partition(" @ ")[2]
    if not level:
        return value
    if outcome.task.interval is not None:
        level = "lower end" if float(level) < 0.5 else "upper end"
    return level if value == EVERY else f"{value}, {level}"


def facts(outcome: RunOutcome, collector: ReportCollector) -> tuple[Fact, ...]:
    task, reading, trend = outcome.task, collector.reading, outcome.totals.trend
    missing, waiting = outcome.totals.rows - outcome.totals.labelled, len(outcome.layer.internals.tickets.waiting)
    missing -= outcome.open_rows
    rows = (
        f"{count(outcome.open_rows)} waiting for a label" if outcome.open_rows else "" if missing else "all labelled"
    )
    rows += f"{', ' if rows else ''}{count(missing)} without a label" if missing else ""
    rows += f"; {some(waiting, 'label')} not due by the last row" if waiting else ""
    order = "that of the file" if reading.time is None else f"`{reading.time.name}`, ties in file order"
    found = [Fact("Rows", f"{count(outcome.totals.rows)}, {rows}"), Fact("Order", order)]
    if reading.dated and trend.begin is not None and trend.end is not None:
        found.append(Fact("Time span", f"{date(trend.begin)} to {date(trend.end)}"))
    columns = [("Prediction", task.prediction, collector.bases)]
    columns += [("Label", (task.label,), collector.labels)] if task.label is not None else []
    for title, names, (low, high) in columns:
        places = decimals(float(low), float(high))
        span = "none" if low > high else f"{number(float(low), places)} to {number(float(high), places)}"
        found.append(Fact(title, f"{', '.join(f'`{name}`' for name in names)}, {span}"))
    if task.common.weight is not None:
        light = outcome.totals.labelled - outcome.totals.counted
        zero = f"; {some(light, 'label')} of weight 0 left out" if light else ""
        found.append(Fact("Weight", f"`{task.common.weight}`: averages on this page are weighted by it{zero}"))
    if outcome.equilibrium.weights:
        found.append(Fact("Relative weights", relative_weights(task)))
    if outcome.eta is not None:
        found.append(Fact("Learning", str(outcome.equilibrium.learning)))
    if task.by:
        each = [f"{count(sum(g.by == by for g in outcome.groups))} of `{by}`" for by in task.by]
        found.append(Fact("Groups", ", ".join(each)))
    if task.key is not None:
        found.append(Fact("Keys", f"{count(outcome.layer.internals.names.keys)} of `{task.key}`"))
    return tuple(found)
