"""The paper's figures on hospital stays: groups, series, and quantile ensembling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gradeq.datasets import flights, mimic
from gradeq.engine.learner import Learner
from gradeq.geometries import EntropicSimplex
from gradeq.losses import Quantile
from gradeq.paper import plot
from gradeq.paper.experiment import Number, Result, Source
from gradeq.paper.panels import (
    DescentRun,
    bias_norm,
    centred_mean,
    debias_reals,
    group_panels,
    indicators,
    running_mean,
    three_panels,
    values,
)
from gradeq.paper.plot import Floats, Values

STEPS = (0.0, 0.001, 0.01, 0.05)
LAST = 10_000
DRAWN = 4  # the largest groups of each kind


class StayStream(NamedTuple):
    """Predictions and labels in order, groups of two kinds that overlap, and the unit."""

    data: str
    prediction: Floats
    label: Floats
    when: Values
    kinds: Mapping[str, Values]
    unit: str
    is_paper: bool

    @property
    def members(self) -> dict[str, dict[str, Values]]:
        """For each kind the largest groups, largest first, with their members."""

        def largest(column: Values) -> dict[str, Values]:
            names, counts = np.unique(column, return_counts=True)
            return {str(name): column == name for name in names[np.argsort(-counts, kind="stable")][:DRAWN]}

        return {kind: largest(column) for kind, column in self.kinds.items()}


def stays(source: Source) -> StayStream:
    """The last 10,000 stays of MIMIC-IV, or all flights of 2013 from April on, without label delay."""
    if source.has(mimic.DATASET):
        data = source.load(mimic.load)
        kinds = {"ethnicity": data.ethnicity, "marital status": data.marital_status}
        name = f"MIMIC-IV, the last {len(data.days):,} stays"
        return StayStream(name, data.prediction, data.days, data.admitted, kinds, "days", True)
    flown = source.load(flights.load)
    name = (
        f"{len(flown.delay):,} flights out of New York from April to December 2013, in place of MIMIC, whose files "
        "are not there: delay at arrival in minutes, each label known before the next row, carriers (UA United, B6 "
        "JetBlue, EV ExpressJet, DL Delta) and airports (EWR Newark, JFK Kennedy, LGA LaGuardia) by their codes"
    )
    kinds = {"carrier": flown.carrier, "origin": flown.origin}
    when = flown.served.astype("datetime64[D]")
    return StayStream(name, flown.prediction, flown.delay, when, kinds, "minutes", False)


def debiased(source: Source) -> tuple[StayStream, Floats, list[DescentRun]]:
    """The stream, its indicators, and a run of alg:multigroup-debias-squared for every step."""

    def compute() -> tuple[StayStream, Floats, list[DescentRun]]:
        stream = stays(source)
        rows, _ = indicators(*stream.kinds.values())
        f, y = stream.prediction, stream.label
        return stream, rows, [debias_reals(f, y, step or None, rows) for step in STEPS]

    return source.once("stays by group", compute)


# |bias| at the end of the published curves, for each step.
PUBLISHED_BIAS = {
    "BLACK/AFRICAN AMERICAN": (0.353667, 0.145763, 0.009122, 0.010929),
    "WHITE": (0.475228, 0.029848, 0.002489, 0.001982),
    "ASIAN": (0.313195, 0.231009, 0.221261, 0.098823),
    "SINGLE": (0.355043, 0.049671, 0.025063, 0.015150),
    "MARRIED": (0.414230, 0.002711, 0.002956, 0.001915),
    "WIDOWED": (0.609303, 0.121971, 0.068857, 0.039111),
    "DIVORCED": (0.751242, 0.352243, 0.074219, 0.000541),
}


def mimic_groups(source: Source) -> Result:
    stream, _, runs = debiased(source)
    members = {name: who for groups in stream.members.values() for name, who in groups.items()}
    numbers = []
    for k, (step, run) in enumerate(zip(STEPS, runs, strict=True)):
        for name, who in members.items():
            theirs = PUBLISHED_BIAS.get(name, (None,) * 4)[k]
            ours = abs(float(run.errors[who].mean()))
            numbers.append(Number(f"|bias| of {name}, η = {step:g}", ours, theirs, theirs, math.inf))
    titles = ["Base model", *(f"η = {step:g}" for step in STEPS[1:])]
    worst = [max(abs(float(run.errors[who].mean())) for who in members.values()) for run in runs]
    panels = group_panels(titles, runs, stream.members, stream.unit, 2.0 if stream.is_paper else 1.4 * worst[0])
    text = (
        f"The worst of the groups drawn is off by {worst[0]:.2f} {stream.unit} in the base model and by "
        f"{worst[1]:.3f}, {worst[2]:.4f} and {worst[3]:.4f} at η = 0.001, 0.01 and 0.05; half the squared error is "
        f"{', '.join(f'{run.loss:.1f}' for run in runs)}."
    )
    return Result(text, tuple(numbers), {"": plot.Sheet(panels, (2, 4), (14.5, 6.2))}, stream.data)


PUBLISHED_SERIES = ((0.354841, 28.918642), (0.032598, 28.856606), (0.008619, 29.137444), (0.005210, 30.445985))


def mimic_series(source: Source) -> Result:
    stream, rows, runs = debiased(source)
    numbers = []
    other = "" if stream.is_paper else " (theirs: MIMIC, days)"
    for step, run, (norm, loss) in zip(STEPS, runs, PUBLISHED_SERIES, strict=True):
        ours, at = float(bias_norm(run, rows)[-1]), f"η = {step:g}{other}"
        numbers.append(Number(f"largest coordinate of the average gradient, {at}", ours, norm, norm, math.inf))
        numbers.append(Number(f"average loss, {at}", run.loss, loss, loss, math.inf))
    labels = ["base model", *(f"η = {step:g}" for step in STEPS[1:])]
    curves = zip(labels, runs, plot.RATES, strict=True)
    window = 100 if stream.is_paper else 10_000
    axes = (stream.unit, "date", "half the squared error")
    sheet = three_panels(curves, stream.label, axes, rows, window, stream.when)
    best = min(range(4), key=lambda k: runs[k].loss)
    norms = ", ".join(f"{bias_norm(run, rows)[-1]:.4f}" for run in runs)
    text = (
        f"Largest coordinate of the average gradient {norms} {stream.unit} and loss "
        f"{', '.join(f'{run.loss:.1f}' for run in runs)} for the base model and the three steps. "
        f"The loss is lowest at η = {STEPS[best]:g}."
    )
    if not stream.is_paper:
        text += " Neighbouring flights share their delay, so a large step also predicts; on stays it costs loss."
    return Result(text, tuple(numbers), {"": sheet}, stream.data)


LEVEL = 0.9
ENSEMBLE_STEPS = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
RATES_OF_WEIGHTS = (0.001, 0.01, 0.1, 1.0)
SHOWN = 2
WINDOW = 500
SKIPPED = 199  # first rows, whose average losses are too noisy to draw
FLOOR = 1e-4  # smaller coverage gaps are drawn here: a logarithmic axis has no zero
TENTH_OF_AN_HOUR = 6.0  # minutes: flights then have residuals as wide as those of stays in days
MIXED = ((0.0088, 1.455689), (0.0075, 1.450884), (0.0047, 1.453510), (0.0051, 1.457585))
SINGLE = (
    (0.1530, 1.695882), (0.0471, 1.499185), (0.0122, 1.455817), (0.0066, 1.450204),
    (0.0014, 1.452331), (0.0005, 1.462532), (0.0000, 1.557862), (0.0000, 1.668582),
)  # fmt: skip


class TrackedQuantiles(NamedTuple):
    """Served quantiles, whether they covered, their pinball loss."""

    served: Floats
    covered: Floats
    losses: Floats


def track(f: Floats, y: Floats, eta: float) -> tuple[TrackedQuantiles, Floats]:
    """One quantile tracker, and its theta before every row."""
    learner = Learner(Quantile(LEVEL), eta)
    run = learner.run(learner.start(), None, y, offsets=f)
    return tracked_quantiles(run.served, y), run.served - f


def mix(f: Floats, y: Floats, thetas: Floats, eta: float) -> tuple[TrackedQuantiles, Floats]:
    """alg:quantile-ensembling, corrected: weights by the ensemble's own miss; also the weights before every row.

    Descent on the pinball loss of f + w'theta over the simplex, with the trackers' thetas as features of the row.
    """
    learner = Learner(Quantile(LEVEL), eta, geometry=EntropicSimplex())
    run = learner.run(learner.start(thetas.shape[1]), thetas, y, offsets=f, trace=1)
    assert run.trace is not None
    return tracked_quantiles(run.served, y), run.trace


def tracked_quantiles(served: Floats, y: Floats) -> TrackedQuantiles:
    """A tie counts as covered, as in the update."""
    return TrackedQuantiles(served, (y <= served).astype(float), values(Quantile(LEVEL), served, y))


def mimic_ensemble(source: Source) -> Result:
    """Eight independent trackers; their thetas are mixed at four rates of the weights."""
    stream = stays(source)
    scale, unit = (1.0, "days") if stream.is_paper else (TENTH_OF_AN_HOUR, "tenths of an hour")
    f, y = stream.prediction[-LAST:] / scale, stream.label[-LAST:] / scale
    single, paths = zip(*(track(f, y, eta) for eta in ENSEMBLE_STEPS), strict=True)
    thetas = np.column_stack(paths)
    mixed, weights = zip(*(mix(f, y, thetas, eta) for eta in RATES_OF_WEIGHTS), strict=True)
    last = weights[SHOWN][-1]
    numbers = [
        *_ends("ensemble", RATES_OF_WEIGHTS, mixed, MIXED),
        *_ends("tracker", ENSEMBLE_STEPS, single, SINGLE),
        *(Number(f"final weight of tracker {eta:g}", float(w)) for eta, w in zip(ENSEMBLE_STEPS, last, strict=True)),
    ]
    ensembles = {f"ensemble, ν = {eta:g}": run for eta, run in zip(RATES_OF_WEIGHTS, mixed, strict=True)}
    trackers = {f"tracker, η = {eta:g}": run for eta, run in zip(ENSEMBLE_STEPS, single, strict=True)}
    # The weights learn from the error of the ensemble times each tracker's theta.
    gradients = (mixed[SHOWN].covered - LEVEL)[:, None] * thetas
    panels = [
        *_rows(0, "Ensembles", ensembles, y, unit),
        *_rows(2, "Single trackers", trackers, y, unit),
        *_weights(weights[SHOWN], gradients),
    ]
    gaps, means = [abs(t.covered.mean() - LEVEL) for t in mixed], [t.losses.mean() for t in mixed]
    loss, step = min((t.losses.mean(), eta) for t, eta in zip(single, ENSEMBLE_STEPS, strict=True))
    text = (
        f"The ensembles miss the level by {min(gaps):.4f} to {max(gaps):.4f} with a pinball loss of "
        f"{min(means):.4f} to {max(means):.4f}; the best single tracker in hindsight (η = {step:g}) has {loss:.4f}."
    )
    data = f"{stream.data}; the last {LAST:,}"
    if not stream.is_paper:
        data += f", in {unit}, in which errors are about as wide as those of stays in days"
    return Result(text, tuple(numbers), {"": plot.Sheet(panels, (7, 4), (14.0, 20.0))}, data)


def _ends(
    kind: str, etas: tuple[float, ...], runs: tuple[TrackedQuantiles, ...], authors: tuple[tuple[float, float], ...]
) -> list[Number]:
    numbers = []
    for eta, tracked, (gap, loss) in zip(etas, runs, authors, strict=True):
        ours, which = abs(float(tracked.covered.mean()) - LEVEL), f"{kind} {eta:g} (theirs: MIMIC)"
        numbers += [
            Number(f"coverage gap, {which}", ours, gap, gap, math.inf),
            Number(f"pinball loss, {which}", float(tracked.losses.mean()), loss, loss, math.inf),
        ]
    return numbers


def _rows(row: int, title: str, runs: Mapping[str, TrackedQuantiles], y: Floats, unit: str) -> list[plot.Panel]:
    """Two rows of panels: above, the served quantiles; below, coverage gap and loss so far."""
    count = len(y)
    width = min(WINDOW, count)
    starts = np.unique(np.linspace(0, count - width, 400).astype(int))  # of the windows, at most 400
    truth = np.array([float(np.quantile(y[i : i + width], LEVEL)) for i in starts])
    rows, some = np.arange(SKIPPED + 1, count + 1), plot.thinned(count, log=True, most=150)
    served = [plot.Line(starts + 1 + width // 2, truth, f"{LEVEL:g} quantile of labels", plot.UNDER)]
    gaps, losses = [], []
    for (label, tracked), look in zip(runs.items(), plot.SERIES, strict=False):
        x, means = centred_mean(tracked.served, WINDOW)
        served.append(plot.course(means, label, look, x))
        gap = np.abs(running_mean(tracked.covered) - LEVEL)
        gaps.append(plot.Line(some + 1, np.maximum(gap, FLOOR)[some], label, look))
        losses.append(plot.course(running_mean(tracked.losses)[SKIPPED:], label, look, rows))
    gap_title = f"Coverage gap so far (below {FLOOR:g}: drawn there)"
    gap_panel = plot.Panel(gap_title, "rows", "|coverage − 0.9|", gaps, x_scale="log", y_scale="log", legend="")
    loss_panel = plot.Panel(f"Pinball loss so far, from row {SKIPPED + 1} on", "rows", unit, losses, legend="")
    return [
        plot.Panel(f"{title}: mean of {WINDOW} rows", "rows", unit, served, legend="outside", cells=(row, 0, 1, 4)),
        replace(gap_panel, cells=(row + 1, 0, 1, 2)),
        replace(loss_panel, cells=(row + 1, 2, 1, 2)),
    ]


def _weights(weights: Floats, gradients: Floats) -> list[plot.Panel]:
    """Weights and their gradients as tables with a row per tracker and a column per window or horizon."""
    stops = np.arange(WINDOW, len(weights) + 1, WINDOW)
    ends = tuple(f"{stop / 1000:g}k" for stop in stops)
    trackers = tuple(f"η = {eta:g}" for eta in ENSEMBLE_STEPS)
    means = [np.array([v[stop - WINDOW : stop].mean(axis=0) for stop in stops]).T for v in (weights, gradients)]
    tables = (
        (f"Weights, ν = {RATES_OF_WEIGHTS[SHOWN]:g}: mean of {WINDOW} rows", means[0], 2),
        (f"Gradient of the weights: mean of {WINDOW} rows", means[1], 2),
        ("Gradient of the weights: mean of all rows so far", running_mean(gradients)[stops - 1].T, 3),
    )
    panels = []
    for row, (title, table, digits) in enumerate(tables, 4):
        heat = plot.Heat(trackers, ends, table, digits, float(np.abs(table).max()))
        panels.append(plot.Panel(title, "rows up to", "tracker", [heat], cells=(row, 0, 1, 4)))
    return panels
