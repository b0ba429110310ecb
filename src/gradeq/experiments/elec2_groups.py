"""Coverage of every weekday: intervals for electricity demand, tracked by weekday and as a whole."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradeq.datasets import elec2
from gradeq.experiments.averages import Floats, running_mean
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import AFTER, BEFORE, Bars, Dots, Level, Panel, Sheet, course
from gradeq.experiments.source import Source
from gradeq.layers.quantile import IntervalTracker
from gradeq.losses import pinball

WEEK = 336  # half-hours
EARLY = 20  # one part in so many of all half-hours comes before the first gap that is drawn
COVERAGE = 0.9
DAYS = tuple("1234567")  # as the file numbers them


class Intervals(NamedTuple):
    """Whether each label was covered, how wide the interval was, and its pinball loss, both ends together."""

    covered: Floats
    width: Floats
    loss: Floats


def run(source: Source) -> Result:
    """The forecast of a half-hour is the demand a week before; intervals learn from every half-hour."""
    data = source.load(elec2.load)
    f, y, day = data.nswdemand[:-WEEK], data.nswdemand[WEEK:], data.day[WEEK:]
    marginal = track(IntervalTracker(COVERAGE, "plain"), f, y, None)
    grouped = track(IntervalTracker(COVERAGE, "plain", groups=["day"]), f, y, day)
    numbers, by_day = [], {}
    for name, held in (("marginal", marginal), ("by weekday", grouped)):
        by_day[name] = np.array([held.covered[day == d].mean() for d in range(1, 8)])
        numbers += [
            Number(f"coverage, {name}", float(held.covered.mean())),
            Number(f"worst weekday's gap, {name}", float(np.abs(by_day[name] - COVERAGE).max())),
            Number(f"mean width, {name}", float(held.width.mean())),
            Number(f"mean pinball loss, {name}", float(held.loss.mean())),
        ]
    x, start = np.arange(7), len(y) // EARLY
    later = np.arange(start + 1, len(y) + 1)
    widths = [
        np.array([v.width[day == d].mean() for d in range(1, 8)]) for v in (marginal, grouped)
    ]
    panels = [
        Panel(
            "Coverage by weekday", "day, as the file numbers it", "coverage",
            [
                Dots(x, by_day["marginal"], "marginal", BEFORE._replace(marker="s")),
                Dots(x, by_day["by weekday"], "by weekday", AFTER),
                Level(COVERAGE, "target"),
            ],
            y_limits=(0.8, 0.96), ticks=(tuple(range(7)), DAYS), legend="upper right",
        ),
        Panel(
            f"Worst weekday so far, from half-hour {start + 1:,} on", "half-hours", "|coverage − 0.9|",
            [
                course(worst(marginal, day)[start:], "marginal", BEFORE, later),
                course(worst(grouped, day)[start:], "by weekday", AFTER, later),
            ],
            y_limits=(0.0, None),
        ),
        Panel(
            "Mean width by weekday", "day, as the file numbers it", "demand, scaled to [0, 1]",
            [
                Bars(x - 0.2, widths[0], 0.36, "marginal", BEFORE._replace(dash="--")),
                Bars(x + 0.2, widths[1], 0.36, "by weekday", AFTER),
            ],
            ticks=(tuple(range(7)), DAYS), legend="",
        ),
    ]  # fmt: skip
    found = (
        f"Tracked as a whole, the interval covers {100 * marginal.covered.mean():.1f} %, but the worst weekday is "
        f"off by {numbers[1].ours:.3f}; tracked by weekday none is off by more than {numbers[5].ours:.4f}, at "
        f"a pinball loss of {grouped.loss.mean():.5f} against {marginal.loss.mean():.5f}."
    )
    name = f"elec2, demand of New South Wales, {len(y):,} half-hours"
    return Result(found, tuple(numbers), {"": Sheet(panels, (1, 3), (13.5, 3.5))}, name)


def track(layer: IntervalTracker, f: Floats, y: Floats, day: Any) -> Intervals:
    """Run the layer with labels known before the next prediction; covered means lower < y <= upper."""
    groups = None if day is None else {"day": day}
    lower, upper = np.asarray(layer.run(f, y, groups).served).T
    ends = [
        np.array([pinball(level, u, v) for u, v in zip(end.tolist(), y.tolist(), strict=True)])
        for level, end in zip(layer.levels, (lower, upper), strict=True)
    ]
    return Intervals(((lower < y) & (y <= upper)).astype(float), upper - lower, ends[0] + ends[1])


def worst(found: Intervals, day: Any) -> Floats:
    """The largest coverage gap of a weekday so far, at every step."""
    gaps = np.zeros(len(day))
    for d in range(1, 8):
        own = np.flatnonzero(day == d)
        average = np.abs(running_mean(found.covered[own]) - COVERAGE)
        seen = np.searchsorted(own, np.arange(len(day)), side="right")
        gaps = np.maximum(gaps, np.where(seen > 0, average[np.maximum(seen - 1, 0)], 0.0))
    return gaps


EXPERIMENT = Experiment(
    name="elec2-groups",
    title="Coverage of every weekday on electricity demand",
    figure="beyond the paper",
    chapter="beyond",
    needs=("elec2",),
    shows="Does an interval that covers 90 % overall cover 90 % of Mondays, and what does it cost to make it so?",
    corrected="",
    run=run,
)
