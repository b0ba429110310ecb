"""Twenty-three quantile levels at once: COVID-19 death forecasts, labels one to four weeks late."""

from __future__ import annotations

import numpy as np

from gradeq.datasets import covid
from gradeq.experiments.averages import Floats
from gradeq.experiments.descent import values
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import AFTER, BEFORE, TRUTH, Line, Panel, Sheet
from gradeq.experiments.source import Source
from gradeq.layers.quantile import MultiQuantileTracker
from gradeq.losses import Quantile

HORIZONS = (1, 2, 3, 4)
LEVELS = covid.LEVELS


def run(source: Source) -> Result:
    """Forecasts for all states are one stream per horizon; a label counts from its target date on."""
    data = source.load(covid.load)
    above, below, numbers, worst = [], [], [], []
    for horizon in HORIZONS:
        rows = np.flatnonzero((data.horizon == horizon) & np.isfinite(data.deaths))
        rows = rows[np.argsort(data.forecast_date[rows], kind="stable")]
        raw, y = np.sort(data.quantiles[rows], axis=1), data.deaths[rows]
        tracker = MultiQuantileTracker(LEVELS, "plain")
        served = np.asarray(
            tracker.run(raw, y, times=data.forecast_date[rows], label_times=data.target_date[rows]).served
        )  # fmt: skip
        coverages = [coverage(raw, y), coverage(served, y)]
        losses = [pinball(raw, y), pinball(served, y)]
        gaps = [float(np.abs(c - np.array(LEVELS)).mean()) for c in coverages]
        worst.append((*gaps, float(losses[0].mean()), float(losses[1].mean())))
        week = "week" if horizon == 1 else "weeks"
        numbers += [
            Number(f"mean coverage error, {horizon} {week}, raw", gaps[0]),
            Number(f"mean coverage error, {horizon} {week}, tracked", gaps[1]),
            Number(f"mean pinball loss, {horizon} {week}, raw", float(losses[0].mean())),
            Number(f"mean pinball loss, {horizon} {week}, tracked", float(losses[1].mean())),
            Number(f"rows where levels cross, {horizon} {week}", float((np.diff(served) < 0.0).any(axis=1).sum())),
        ]  # fmt: skip
        levels = np.array(LEVELS)
        above.append(
            Panel(
                f"{horizon} {week} ahead, {len(y):,} forecasts", "level", "coverage",
                [
                    Line(levels, levels, "target", TRUTH),
                    Line(levels, coverages[0], "raw", BEFORE._replace(marker="s")),
                    Line(levels, coverages[1], "tracked", AFTER._replace(marker="o")),
                ],
                square=True,
            )
        )  # fmt: skip
        below.append(
            Panel(
                "Loss by level", "level", "pinball loss, deaths",
                [
                    Line(levels, losses[0], "raw", BEFORE._replace(marker="s")),
                    Line(levels, losses[1], "tracked", AFTER._replace(marker="o")),
                ],
            )
        )  # fmt: skip
    found = "Mean coverage error over the 23 levels, raw to tracked: " + "; ".join(
        f"{h} week{'s' if h > 1 else ''}: {before:.3f} to {after:.3f} (pinball loss {loss:.2f} to {new:.2f})"
        for h, (before, after, loss, new) in zip(HORIZONS, worst, strict=True)
    )
    sheet = Sheet([*above, *below], (2, 4), (14.5, 6.8))
    name = "Forecasts of CMU-TimeSeries for the states, July 2020 on, labels at the target date"
    crossed = sum(number.ours for number in numbers if number.name.startswith("rows where"))
    return Result(
        f"{found}. Rows in which levels cross: {crossed:.0f}.", tuple(numbers), {"": sheet}, name
    )


def coverage(quantiles: Floats, y: Floats) -> Floats:
    """How often y <= the quantile, for each level."""
    return np.asarray((y[:, None] <= quantiles).mean(axis=0))


def pinball(quantiles: Floats, y: Floats) -> Floats:
    """The mean pinball loss of each level."""
    parts = zip(LEVELS, quantiles.T, strict=True)
    return np.array([values(Quantile(level), column, y).mean() for level, column in parts])


EXPERIMENT = Experiment(
    name="covid-quantiles",
    title="Multi-level quantiles of COVID-19 forecasts",
    figure="beyond the paper",
    chapter="beyond",
    needs=("covid",),
    shows="Can 23 quantile levels be kept covered at once, never crossing, when labels are weeks late?",
    corrected="The paper tracks one level with no label delay; sorting several trackers afterwards has no guarantee, "
    "lazy isotonic projection has (result 8.6).",
    run=run,
)
