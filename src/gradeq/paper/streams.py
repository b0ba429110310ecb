"""Real streams: reward models, flights with late labels, COVID-19 quantiles, electricity intervals."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from gradeq.datasets import covid, elec2, flights, helpsteer
from gradeq.errors import Diverging
from gradeq.layers.debiaser import Debiaser
from gradeq.layers.options import LateCap
from gradeq.layers.quantile import IntervalTracker, MultiQuantileTracker
from gradeq.losses import Quantile
from gradeq.paper import plot
from gradeq.paper.experiment import Number, Result, Source
from gradeq.paper.panels import debias_reals, published_numbers, running_mean, three_panels, values
from gradeq.paper.plot import Floats, Ints

# Their learning rate L steps along 2 (theta - (y - f)), so it is the paper's eta = 2 L.
THEIRS = (0.0, 0.001, 0.01, 0.05)
# For each L: theta, bias, squared error, and the last values of the two published curves.
PUBLISHED = {
    0.0: (0.0, -0.44976590, 1.53857207, 0.89841956, 1.53825104),
    0.001: (0.4242973, -0.20438218, 1.38142277, 0.40846914, 1.38140023),
    0.01: (0.6029618, -0.02904444, 1.35481789, 0.05813952, 1.35481727),
    0.05: (0.8248969, -0.00794699, 1.41662227, 0.01642428, 1.41654932),
}


def helpsteer_debias(source: Source) -> Result:
    data = source.load(helpsteer.load)
    runs = [debias_reals(data.reward, data.helpfulness, 2 * rate or None) for rate in THEIRS]
    labels = ["base model", *(f"η = {2 * rate:g} (their {rate:g})" for rate in THEIRS[1:])]
    numbers = []
    for rate, run in zip(THEIRS, runs, strict=True):
        numbers += published_numbers(f"η = {2 * rate:g}", run, PUBLISHED[rate], 2.0)
    axes = ("helpfulness, 0 to 4", "prompts", "half the squared error")
    sheet = three_panels(zip(labels, runs, plot.RATES, strict=True), data.helpfulness, axes)
    text = (
        f"The bias of {runs[0].bias:+.3f} shrinks to {runs[2].bias:+.3f} at η = 0.02, and the loss from "
        f"{runs[0].loss:.3f} to {runs[2].loss:.3f}; at η = 0.1 the bias is {runs[3].bias:+.3f} and the loss "
        f"{runs[3].loss:.3f}: a larger step trades accuracy for less bias."
    )
    return Result(text, tuple(numbers), {"": sheet}, "HelpSteer2 validation, 1,038 prompts")


ETA = 0.01
PIECE = 2000
LARGEST_THETA = 1e9  # minutes; the run stops here


class FlightRun(NamedTuple):
    """The served predictions (up to a divergence), and theta after each piece of rows."""

    served: Floats
    rows: list[int]
    thetas: list[float]


def debias_flights(data: flights.Flights, late_cap: LateCap) -> FlightRun:
    """Debias the delay with labels at landing, piece by piece, to the end or until it diverges."""
    layer = Debiaser(ETA, late_cap=late_cap)
    parts, rows, thetas = [np.empty(0)], [0], [0.0]
    for start in range(0, len(data.delay), PIECE):
        cut = slice(start, start + PIECE)
        f, y, served, landed = (c[cut] for c in (data.prediction, data.delay, data.served, data.landed))
        try:
            parts.append(np.asarray(layer.run(f, y, times=served, label_times=landed).served))
        except Diverging:
            break
        rows.append(start + len(parts[-1]))
        thetas.append(layer.theta["(all)"])
        if abs(thetas[-1]) > LARGEST_THETA:
            break
    return FlightRun(np.concatenate(parts), rows, thetas)


def flights_delayed(source: Source) -> Result:
    data = source.load(flights.load)
    capped, free = debias_flights(data, "auto"), debias_flights(data, None)
    y, when = data.delay, data.served.astype("datetime64[m]")
    # Flights that wait for their label when each row is served.
    waiting = np.arange(1.0, len(y) + 1.0) - np.searchsorted(np.sort(data.landed), data.served, side="right")
    base, error = data.prediction - y, capped.served - y
    ends = {
        "most labels in flight": waiting.max(),
        "bias before, minutes": base.mean(),
        "bias after, capped, minutes": error.mean(),
        "root mean squared error before, minutes": np.sqrt((base**2).mean()),
        "root mean squared error after, capped, minutes": np.sqrt((error**2).mean()),
        "largest |θ|, capped, minutes": np.abs(capped.thetas).max(),
        "largest |θ|, not capped, minutes": np.abs(free.thetas).max(),
        "flights until it diverged, not capped": free.rows[-1],
    }
    numbers = tuple(Number(name, float(value)) for name, value in ends.items())
    text = (
        f"Up to {waiting.max():.0f} labels are in flight. Without a cap a step of {ETA:g} diverges: |θ| is "
        f"{abs(free.thetas[-1]):,.0f} minutes after {free.rows[-1]:,} flights, where the layer stops. With the cap, "
        f"0.1 over the number of flights served until a label came, the bias falls from {base.mean():+.2f} to "
        f"{error.mean():+.3f} minutes and the root mean squared error from {numbers[3].ours:.2f} to "
        f"{numbers[4].ours:.2f}."
    )
    days, first = np.unique(data.served.astype("datetime64[D]"), return_index=True)
    most = plot.Line(days, np.maximum.reduceat(waiting, first), "in flight", plot.AFTER)
    thetas = [
        plot.Line(when[np.minimum(np.array(run.rows), len(y) - 1)], np.maximum(np.abs(run.thetas), 1e-2), label, look)
        for run, label, look in ((free, "no cap", plot.SECOND), (capped, "capped", plot.AFTER))
    ]
    month, names = data.served.astype("datetime64[M]"), ("base model", "served, capped")
    months = np.unique(month)
    middles = months.astype("datetime64[D]") + 14
    monthly = [np.array([e[month == m].mean() for m in months]) for e in (base, error)]
    some = plot.thinned(len(y))
    so_far = [np.abs(running_mean(e))[some] for e in (base, error)]
    bias = plot.before_after(when[some], so_far, names)
    panels = [
        plot.Panel("Most labels in flight, by day", "date", "flights", [most], legend="", y_limits=(0.0, None)),
        plot.Panel(f"Correction θ, η = {ETA:g}", "date", "minutes, absolute", thetas, y_scale="log"),
        plot.Panel("Bias by month", "date", "minutes", plot.before_after(middles, monthly, names, marked=True)),
        plot.Panel("Absolute bias so far", "date", "minutes", bias, y_limits=(0.0, None)),
    ]
    data_name = f"{len(y):,} flights out of New York from April to December 2013, label known at landing"
    return Result(text, numbers, {"": plot.Sheet(panels, (1, 4), (15.5, 3.4))}, data_name)


HORIZONS = (1, 2, 3, 4)
LEVELS = covid.LEVELS


def covid_quantiles(source: Source) -> Result:
    """Forecasts for all states are one stream per horizon; a label is known from its target date on."""
    data = source.load(covid.load)
    levels = np.array(LEVELS)
    above, below, numbers, texts, crossed = [], [], [], [], 0
    for horizon in HORIZONS:
        rows = np.flatnonzero((data.horizon == horizon) & np.isfinite(data.deaths))
        rows = rows[np.argsort(data.forecast_date[rows], kind="stable")]
        raw, y = np.sort(data.quantiles[rows], axis=1), data.deaths[rows]
        tracker, dates, due = MultiQuantileTracker(LEVELS, "plain"), data.forecast_date[rows], data.target_date[rows]
        served = np.asarray(tracker.run(raw, y, times=dates, label_times=due).served)
        covered = [np.asarray((y[:, None] <= quantiles).mean(axis=0)) for quantiles in (raw, served)]
        losses = [
            np.array([values(Quantile(u), column, y).mean() for u, column in zip(LEVELS, quantiles.T, strict=True)])
            for quantiles in (raw, served)
        ]
        gaps = [float(np.abs(coverage - levels).mean()) for coverage in covered]
        means = [float(loss.mean()) for loss in losses]
        ahead = f"{horizon} week" if horizon == 1 else f"{horizon} weeks"
        crossing = int((np.diff(served) < 0.0).any(axis=1).sum())
        crossed += crossing
        numbers += [
            Number(f"mean coverage error, {ahead}, raw", gaps[0]),
            Number(f"mean coverage error, {ahead}, tracked", gaps[1]),
            Number(f"mean pinball loss, {ahead}, raw", means[0]),
            Number(f"mean pinball loss, {ahead}, tracked", means[1]),
            Number(f"rows where levels cross, {ahead}", float(crossing)),
        ]
        texts.append(f"{ahead}: {gaps[0]:.3f} to {gaps[1]:.3f} (pinball loss {means[0]:.2f} to {means[1]:.2f})")
        lines, loss_lines = (
            plot.before_after(levels, pair, ("raw", "tracked"), marked=True) for pair in (covered, losses)
        )
        target, title = plot.Line(levels, levels, "target", plot.TRUTH), f"{ahead} ahead, {len(y):,} forecasts"
        above.append(plot.Panel(title, "level", "coverage", [target, *lines], square=True))
        below.append(plot.Panel("Loss by level", "level", "pinball loss, deaths", loss_lines))
    text = (
        f"Mean coverage error over the 23 levels, raw to tracked: {'; '.join(texts)}. "
        f"Rows in which levels cross: {crossed}."
    )
    name = "Forecasts of CMU-TimeSeries for the states, July 2020 on, labels at the target date"
    return Result(text, tuple(numbers), {"": plot.Sheet([*above, *below], (2, 4), (14.5, 6.8))}, name)


WEEK = 336  # half-hours
EARLY = 20  # gaps are drawn after 1/EARLY of all half-hours
COVERAGE = 0.9
DAYS = tuple("1234567")  # as the file numbers them


class Intervals(NamedTuple):
    """Whether each label was covered, the width of its interval, and the pinball loss of both ends."""

    covered: Floats
    width: Floats
    loss: Floats


def elec2_groups(source: Source) -> Result:
    """The forecast of a half-hour is the demand a week before."""
    data = source.load(elec2.load)
    f, y, day = data.nswdemand[:-WEEK], data.nswdemand[WEEK:], data.day[WEEK:]
    names = ("marginal", "by weekday")
    runs = (
        track(IntervalTracker(COVERAGE, "plain"), f, y, None),
        track(IntervalTracker(COVERAGE, "plain", groups=["day"]), f, y, {"day": day}),
    )
    numbers, covered = [], []
    for name, run in zip(names, runs, strict=True):
        covered.append(np.array([run.covered[day == d].mean() for d in range(1, 8)]))
        numbers += [
            Number(f"coverage, {name}", float(run.covered.mean())),
            Number(f"worst weekday's gap, {name}", float(np.abs(covered[-1] - COVERAGE).max())),
            Number(f"mean width, {name}", float(run.width.mean())),
            Number(f"mean pinball loss, {name}", float(run.loss.mean())),
        ]
    x, start = np.arange(7), len(y) // EARLY
    later = np.arange(start + 1, len(y) + 1)
    widths = [np.array([run.width[day == d].mean() for d in range(1, 8)]) for run in runs]
    coverage = [
        plot.Dots(x, covered[0], names[0], replace(plot.BEFORE, marker="s")),
        plot.Dots(x, covered[1], names[1], plot.AFTER),
        plot.Level(COVERAGE, "target"),
    ]
    gaps = [
        plot.course(worst(run, day)[start:], name, look, later)
        for run, name, look in zip(runs, names, (plot.BEFORE, plot.AFTER), strict=True)
    ]
    bars = [
        plot.Bars(x - 0.2, widths[0], names[0], replace(plot.BEFORE, dash="--"), 0.36),
        plot.Bars(x + 0.2, widths[1], names[1], plot.AFTER, 0.36),
    ]
    since = f"Worst weekday so far, from half-hour {start + 1:,} on"
    days = partial(plot.Panel, x="day, as the file numbers it", ticks=(tuple(range(7)), DAYS))
    panels = [
        days("Coverage by weekday", y="coverage", marks=coverage, y_limits=(0.8, 0.96), legend="upper right"),
        plot.Panel(since, "half-hours", "|coverage − 0.9|", gaps, y_limits=(0.0, None)),
        days("Mean width by weekday", y="demand, scaled to [0, 1]", marks=bars, legend=""),
    ]
    marginal, grouped = runs
    text = (
        f"Tracked as a whole, the interval covers {100 * marginal.covered.mean():.1f} %, but the worst weekday is "
        f"off by {numbers[1].ours:.3f}; tracked by weekday none is off by more than {numbers[5].ours:.4f}, at "
        f"a pinball loss of {grouped.loss.mean():.5f} against {marginal.loss.mean():.5f}."
    )
    name = f"elec2, demand of New South Wales, {len(y):,} half-hours"
    return Result(text, tuple(numbers), {"": plot.Sheet(panels, (1, 3), (13.5, 3.5))}, name)


def track(layer: IntervalTracker, f: Floats, y: Floats, groups: dict[str, Ints] | None) -> Intervals:
    """Run the layer with labels known before the next prediction; covered means lower < y <= upper."""
    lower, upper = np.asarray(layer.run(f, y, groups).served).T
    ends = [values(Quantile(level), end, y) for level, end in zip(layer.levels, (lower, upper), strict=True)]
    return Intervals(((lower < y) & (y <= upper)).astype(float), upper - lower, ends[0] + ends[1])


def worst(run: Intervals, day: Ints) -> Floats:
    """The largest coverage gap of a weekday so far, at every step."""
    gaps = np.zeros(len(day))
    for d in range(1, 8):
        rows = np.flatnonzero(day == d)
        average = np.abs(running_mean(run.covered[rows]) - COVERAGE)
        seen = np.searchsorted(rows, np.arange(len(day)), side="right")
        gaps = np.maximum(gaps, np.where(seen > 0, average[np.maximum(seen - 1, 0)], 0.0))
    return gaps
