"""The report's story of a debias or quantile run, and its page."""

from __future__ import annotations

import math
import os
import platform
import time
from dataclasses import replace
from typing import Any

import numpy as np

from gradeq._version import __version__
from gradeq.cli.follow import Follow
from gradeq.cli.identity import method
from gradeq.cli.keys_story import many_series
from gradeq.cli.learned import over
from gradeq.cli.measure import WEIGHT
from gradeq.cli.notes import loss_of
from gradeq.cli.options import command_line
from gradeq.cli.outcome import GroupLine, Outcome, bound_beside
from gradeq.cli.summary import coverages, error_of
from gradeq.cli.task import Task
from gradeq.cli.trend import axis_of, weighted
from gradeq.report import of_layer
from gradeq.report import story as told
from gradeq.report.change import label_change
from gradeq.report.identity import EVERY
from gradeq.report.late_notices import waiting_rows
from gradeq.report.numerals import count, date, decimals, number, plain, some
from gradeq.report.page import html
from gradeq.report.thin import POINTS, group_window, numbers, thin, window

ALIKE = 1e-3  # relative: two steps that did the same


def page_of(outcome: Outcome, follow: Follow, pass_: Any, files: list[str]) -> str:
    """The page as text."""
    return html(story_of(outcome, follow, pass_, files))


def story_of(outcome: Outcome, follow: Follow, pass_: Any, files: list[str]) -> told.Story:
    """Everything the page says, as data."""
    task = outcome.task
    if not outcome.labelled and outcome.equilibrium.rows and of_layer.has_page(outcome.layer):
        return since_the_state_began(outcome, follow, pass_, files)
    groups = group_rows(outcome, follow)
    return told.Story(
        kind="debias" if task.command == "debias" else "quantile",
        made=made(files, task.common.state),
        prediction=task.prediction,
        label=task.label or "label",
        by=task.by,
        outcome="binary" if task.outcome == "binary" else "real",
        rows=outcome.rows,
        labelled=outcome.counted,
        weight=task.common.weight or "",
        verdict=verdict(outcome, groups),
        method=method(outcome),
        features=task.features,
        key=task.key or "",
        notices=outcome.notices,
        rolling=rolling(outcome, follow, pass_),
        groups=groups,
        groups_total=len(outcome.groups),
        levels=levels(outcome),
        frontier=frontier(outcome, follow),
        theta=panels(outcome, follow),
        theta_scale=theta_scale("linear" if follow.auto and task.link == "sinh" else task.link),
        histogram=follow.tally.histogram(),
        data=facts(outcome, follow, pass_),
        width=mean_width(outcome, pass_),
        reliability=reliability(outcome, follow),
        heat=heat(outcome, follow),
        steps=steps(follow),
        series=many_series(outcome),
    )


def since_the_state_began(
    outcome: Outcome, follow: Follow, pass_: Any, files: list[str]
) -> told.Story:
    """The page of a file without labels: what the state says of those that came before."""
    task, reached = outcome.task, outcome.equilibrium
    whole = of_layer.story_of(outcome.layer)
    morning = waiting_rows(outcome.rows, reached.rows)
    return replace(
        whole,
        made=made(files, task.common.state),
        prediction=task.prediction,
        label=task.label or "label",
        key=task.key or "",
        notices=(*outcome.notices, morning, *whole.notices),
        data=(*facts(outcome, follow, pass_)[1:], *whole.data),
    )


def made(files: list[str], state: str | None) -> told.Made:
    """Where the page comes from."""
    source = os.path.basename(files[0]) + (f" and {len(files) - 1} more" if files[1:] else "")
    versions = f"gradeq {__version__}, Python {platform.python_version()}, numpy {np.__version__}"
    return told.Made(source, time.time(), __version__, versions, command_line(), state)


def verdict(outcome: Outcome, groups: tuple[told.Group, ...]) -> told.Verdict:
    """The headline's numbers."""
    reached = outcome.equilibrium
    bias = told.Pair(*outcome.pair("bias")) if outcome.task.command == "debias" else None
    measure, target = error_of(outcome)
    before = outcome.pair(measure.removesuffix("_clipped"))[0]  # as the bound, before limits
    bound = reached.bound
    worst = None
    if groups:
        was = max(groups, key=lambda g: abs(g.before - target))
        now = max(groups, key=lambda g: abs(g.after - target))
        worst = told.Worst(was.name, was.before - target, now.name, now.after - target)
    return told.Verdict(
        loss_of(outcome),
        told.Certificate(
            abs(reached.largest), bound, reached.gap, reached.exact, bool(reached.vacuous),
            bound is not None and bound > abs(before - target), reached.rounding, over(outcome),
        ),
        bias,
        () if bias is not None else tuple(coverages(outcome)),
        worst,
        not reached.rows,
    )  # fmt: skip


def group_rows(outcome: Outcome, follow: Follow) -> tuple[told.Group, ...]:
    """The groups that have labels, each with its own small chart."""
    target = error_of(outcome)[1]
    column = {by: k for k, by in enumerate(outcome.task.by)}
    place = dict.fromkeys(outcome.task.by, 0)
    rows = []
    for line in outcome.groups:
        code = place[line.by]
        place[line.by] += 1
        if not line.counted:
            continue
        rows.append(group_row(outcome.task, line, target, follow.parts[column[line.by]], code))
    return tuple(rows)


def group_row(task: Task, line: GroupLine, target: float, parts: Any, code: int) -> told.Group:
    """One group's row of the table: errors and loss of the values in use."""
    measure, loss, bound = task.errors[0], task.used("loss"), bound_beside(task, line)
    small = parts.trailing(code, group_window(line.counted))
    spark = None
    if len(small.x) > 1:
        means = weighted(small.means)
        before, after = (numbers(means[f"{measure}_{w}"]) for w in ("before", "after"))
        spark = told.Spark(tuple(small.x.tolist()), before, after)
    return told.Group(
        line.by, line.value, line.counted, line.label_mean,
        line.means[f"{measure}_before"], line.means[f"{measure}_after"],
        told.Pair(line.means[f"{loss}_before"], line.means[f"{loss}_after"]),
        bound, bool(line.vacuous) and bound is not None, None if measure == "bias" else target, spark,
        line.weight,
    )  # fmt: skip


def rolling(outcome: Outcome, follow: Follow, pass_: Any) -> told.Rolling | None:
    """Trailing means of values, labels and errors."""
    series = pass_.trend.blocks.trailing(window(outcome.counted))
    if len(series.x) < 2:
        return None
    mean = weighted(series.means)
    task = outcome.task
    if task.command == "debias":
        pairs = [("", 0.0, mean["before"] - mean["label"], mean["after"] - mean["label"])]
    else:
        shown = coverages(outcome)[:3]
        stems = task.errors
        pairs = [
            (c.name, c.target, mean[f"{stem}_before"], mean[f"{stem}_after"])
            for c, stem in zip(shown, stems, strict=False)
        ]
    wide = task.interval is not None or len(task.levels) > 1
    widths = []
    if task.interval is not None:
        widths = [numbers(mean[f"upper_{when}"] - mean[when]) for when in ("before", "after")]
    axis, name = axis_of(follow.reading)
    return told.Rolling(
        axis, name, series.window, tuple(series.x.tolist()),
        numbers(mean["before"]), numbers(mean["after"]), numbers(mean["label"]),
        tuple(told.Tracked(n, t, numbers(b), numbers(a)) for n, t, b, a in pairs),
        numbers(mean["upper_before"]) if wide else (),
        numbers(mean["upper_after"]) if wide else (),
        pass_.trend.begin, span(outcome, pass_, axis), *widths,
    )  # fmt: skip


def mean_width(outcome: Outcome, pass_: Any) -> told.Pair | None:
    """The mean width of an interval, raw and served."""
    if outcome.task.interval is None or not outcome.counted:
        return None
    counts, _, sums = pass_.trend.blocks.blocks()
    whole = sums[WEIGHT].sum() if WEIGHT in sums else counts.sum()
    ends = [(sums[f"upper_{when}"] - sums[when]).sum() for when in ("before", "after")]
    return told.Pair(*(float(end / whole) for end in ends))


def reliability(outcome: Outcome, follow: Follow) -> told.Reliability | None:
    """Predicted against actual frequency, for probabilities."""
    if follow.calibration is None or not outcome.counted:
        return None
    before, after = (bins.bins() for bins in follow.calibration)
    return told.Reliability(before, after, outcome.pair("loss"), outcome.pair("log"))


def heat(outcome: Outcome, follow: Follow) -> told.HeatMap | None:
    """Groups by month, where rows have dates."""
    if follow.months is None:
        return None
    return follow.months.heat(outcome.groups, outcome.task.by, error_of(outcome)[1])


def steps(follow: Follow) -> told.Panel | None:
    """The step in force over the run, where it changed."""
    if len(follow.steps) < 2 or len({round(step, 12) for _, step in follow.steps}) < 2:
        return None
    kept = [follow.steps[i] for i in thin(len(follow.steps)).tolist()]
    x, values = zip(*kept, strict=True)
    return told.Panel("", axis_of(follow.reading)[0], x, (told.Line("step", values),))


def span(outcome: Outcome, pass_: Any, axis: str) -> told.Span | None:
    """The stretch after the labels changed, shaded and named."""
    change = label_change(pass_.trend.blocks)
    if change is None:
        return None
    rate = change.after["label"]
    text = f"mean label {number(rate, decimals(rate, change.before['label']))}"
    if outcome.task.outcome == "binary" and rate in (0.0, 1.0):
        text = f"every label is {number(rate, 0)}"
    since = date(change.x) if axis == "date" else plain(change.x)
    return told.Span(change.x, None, f"from {since} {text}")


def levels(outcome: Outcome) -> tuple[told.LevelRow, ...]:
    """Several levels, one row each."""
    task = outcome.task
    if len(task.levels) < 2 or task.interval is not None:
        return ()
    cells = list(outcome.equilibrium.coordinates)
    rows = []
    for k, name in enumerate(task.levels):
        cell = cells[k] if k < len(cells) else None
        same = outcome.used(f"cover{k}")[1] == outcome.pair(f"cover{k}")[1]
        bound = cell.bound if cell and same else None  # it is on coverage before --min and --max
        rows.append(
            told.LevelRow(
                name, float(name), told.Pair(*outcome.used(f"cover{k}")),
                told.Pair(*outcome.used(f"loss{k}")),
                bound, bound is not None and bool(cell and cell.vacuous),
            )
        )  # fmt: skip
    return tuple(rows)


def frontier(outcome: Outcome, follow: Follow) -> tuple[told.StepPoint, ...]:
    """Loss and worst remaining error of each step, had it been used on these same rows."""
    eta = outcome.eta
    if not isinstance(eta, float) or not follow.others or not outcome.counted:
        return ()
    measure, target = error_of(outcome)
    cost = outcome.task.used("loss")

    def worst(sums: Any, groups: list[Any], when: str) -> float:
        name = f"{measure}_{when}"
        cells = [s.mean(c, name) for s in groups for c in range(len(s.rows)) if s.rows[c]]
        return float(max(abs(v - target) for v in (cells or [sums.mean(name)])))

    first = follow.others[0]
    points = [
        told.StepPoint(
            0.0, first.sums.mean(f"{cost}_before"), worst(first.sums, first.groups, "before")
        )
    ]
    own = None
    for other in sorted(follow.others, key=lambda other: other.factor != 1.0):
        step = float(f"{eta * other.factor:.3g}") if other.factor != 1.0 else eta
        loss, left = other.sums.mean(f"{cost}_after"), worst(other.sums, other.groups, "after")
        if own is None:
            own = (loss, left)
        elif math.isclose(loss, own[0], rel_tol=ALIKE) and math.isclose(
            left, own[1], rel_tol=ALIKE
        ):
            continue  # late labels hold both steps down to the same
        points.append(told.StepPoint(step, loss, left, other.factor == 1.0))
    known = [p for p in points if math.isfinite(p.loss) and math.isfinite(p.worst)]
    return tuple(sorted(known, key=lambda point: point.step)) if len(known) == len(points) else ()


def panels(outcome: Outcome, follow: Follow) -> tuple[told.Panel, ...]:
    """Theta over time, a panel for each --by column (groups with most rows first)."""
    if follow.auto:
        return panels_as_served(outcome, follow)
    path = follow.path
    if len(path.x) < 2:
        return ()
    picked = thin(len(path.x)).tolist()
    x = tuple(path.x[i] for i in picked)
    axis = axis_of(follow.reading)[0]

    def line(name: str, shown: str) -> told.Line:
        values = np.array([path.thetas[i].get(name, 0.0) for i in picked])
        return told.Line(shown, numbers(values))

    found = []
    for by in outcome.task.by:
        groups = sorted((g for g in outcome.groups if g.by == by), key=lambda g: -g.labelled)
        names = [(n, g.value) for g in groups[:8] for n in path.thetas[-1] if stem(n) == g.name]
        if names:
            lines = tuple(line(n, spoken(outcome, n, value)) for n, value in names[:8])
            found.append(told.Panel(by, axis, x, lines))
    rest = [n for n in path.thetas[-1] if "=" not in n or not outcome.task.by]
    if rest:
        lines = tuple(line(n, spoken(outcome, n, stem(n))) for n in rest[:8])
        found.append(told.Panel("", axis, x, lines))
    return tuple(found)


def panels_as_served(outcome: Outcome, follow: Follow) -> tuple[told.Panel, ...]:
    """The corrections as they were served, trailing means: over all rows, or a panel for each --by column."""
    whole = follow.corrections[0].trailing(0, window(outcome.counted), POINTS)
    if len(whole.x) < 2:
        return ()
    axis, x = axis_of(follow.reading)[0], tuple(whole.x.tolist())
    levels = outcome.task.levels if len(follow.levels) > 1 else ("",)

    def lines(parts: Any, code: int, rows: int, group: str, value: str) -> list[told.Line]:
        own = parts.trailing(code, group_window(rows), POINTS)
        if len(own.x) < 2:
            return []
        return [
            told.Line(
                spoken(outcome, f"{group} @ {level}" if level else group, value),
                numbers(np.interp(whole.x, own.x, own.means[name], left=np.nan)),
            )
            for name, level in zip(follow.levels, levels, strict=True)
        ]

    if not outcome.task.by:
        drawn = lines(follow.corrections[0], 0, outcome.counted, EVERY, EVERY)
        return (told.Panel("", axis, x, tuple(drawn)),) if drawn else ()
    found = []
    for by, parts in zip(outcome.task.by, follow.corrections[1:], strict=True):
        groups = [g for g in outcome.groups if g.by == by]
        largest = sorted(range(len(groups)), key=lambda code: -groups[code].counted)
        drawn = [
            line
            for code in largest[: max(1, 8 // len(levels))]
            for line in lines(
                parts, code, groups[code].counted, groups[code].name, groups[code].value
            )
        ]
        if drawn:
            found.append(told.Panel(by, axis, x, tuple(drawn)))
    return tuple(found)


def stem(name: str) -> str:
    """A parameter's name without its level."""
    return name.partition(" @ ")[0]


def spoken(outcome: Outcome, name: str, value: str) -> str:
    """What a line of theta is called: its group, and its level or end of the interval."""
    level = name.partition(" @ ")[2]
    if not level:
        return value
    if outcome.task.interval is not None:
        level = "lower end" if float(level) < 0.5 else "upper end"
    return level if value == EVERY else f"{value}, {level}"


def theta_scale(link: str) -> str:
    """The unit of theta."""
    return {
        "identity": "in the label's units",
        "linear": "in the label's units",
        "logit": "in log-odds",
        "shift": "in log-odds of the shift",
        "exp": "as a log factor",
        "sinh": "in asinh units of the scale",
    }.get(link, "")


def facts(outcome: Outcome, follow: Follow, pass_: Any) -> tuple[told.Fact, ...]:
    """The Data section."""
    task, reading = outcome.task, follow.reading
    missing = outcome.rows - outcome.labelled
    rows = "all labelled" if not missing else f"{count(missing)} without a label"
    wait = len(outcome.layer._book.waiting)
    rows += f"; {some(wait, 'label')} not due by the last row" if wait else ""
    found = [told.Fact("Rows", f"{count(outcome.rows)}, {rows}")]
    order = "that of the file"
    if reading.time is not None:
        order = f"`{reading.time.name}`, ties in file order"
    found.append(told.Fact("Order", order))
    trend = pass_.trend
    if axis_of(reading)[0] == "date" and trend.begin is not None:
        found.append(told.Fact("Time span", f"{date(trend.begin)} to {date(trend.end)}"))
    names = ", ".join(f"`{name}`" for name in task.prediction)
    found.append(told.Fact("Prediction", f"{names}, {extent(follow.bases)}"))
    if task.label is not None:
        found.append(told.Fact("Label", f"`{task.label}`, {extent(follow.labels)}"))
    if task.common.weight is not None:
        none = outcome.labelled - outcome.counted
        zero = f"; {some(none, 'label')} of weight 0 left out" if none else ""
        weighted = "averages on this page are weighted by it, relative to its mean so far"
        found.append(told.Fact("Weight", f"`{task.common.weight}`: {weighted}{zero}"))
    if outcome.eta is not None:
        found.append(told.Fact("Learning", str(outcome.equilibrium.learning)))
    if task.by:
        each = [f"{count(sum(g.by == by for g in outcome.groups))} of `{by}`" for by in task.by]
        found.append(told.Fact("Groups", ", ".join(each)))
    if task.key is not None:
        found.append(told.Fact("Keys", f"{count(outcome.layer._names.keys)} of `{task.key}`"))
    return tuple(found)


def extent(ends: list[float]) -> str:
    """From the smallest to the largest value."""
    low, high = (float(end) for end in ends)
    if low > high:
        return "none"
    places = decimals(low, high)
    return f"{number(low, places)} to {number(high, places)}"
