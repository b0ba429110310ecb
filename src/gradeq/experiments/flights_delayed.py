"""Late labels in earnest: a flight's delay is known when it lands, and hundreds are in the air."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from gradeq.datasets import flights
from gradeq.errors import Diverging
from gradeq.experiments.averages import Floats, running_mean
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import AFTER, BEFORE, SECOND, Line, Panel, Sheet, thinned
from gradeq.experiments.source import Source
from gradeq.layers.debiaser import Debiaser

ETA = 0.01
PIECE = 2000
ENOUGH = 1e9  # minutes; beyond this the picture says no more


class Flown(NamedTuple):
    """What was served (up to a divergence), and theta after each piece of rows."""

    served: Floats
    rows: list[int]
    thetas: list[float]


def fly(data: flights.Flights, late_cap: Literal["auto"] | None) -> Flown:
    """Debias the delay with labels at landing, piece by piece, until the end or until it diverges."""
    layer = Debiaser(ETA, late_cap=late_cap)
    parts, rows, thetas = [], [0], [0.0]
    for start in range(0, len(data.delay), PIECE):
        cut = slice(start, start + PIECE)
        try:
            done = layer.run(
                data.prediction[cut], data.delay[cut], times=data.served[cut], label_times=data.landed[cut]
            )  # fmt: skip
        except Diverging:
            break
        parts.append(np.asarray(done.served))
        rows.append(start + len(parts[-1]))
        thetas.append(layer.theta["(all)"])
        if abs(thetas[-1]) > ENOUGH:
            break
    return Flown(np.concatenate(parts) if parts else np.empty(0), rows, thetas)


def in_flight(data: flights.Flights) -> Floats:
    """How many flights wait for their label at the moment of each row."""
    landed = np.sort(data.landed)
    before = np.searchsorted(landed, data.served, side="right")
    return np.arange(1.0, len(data.served) + 1.0) - before


def run(source: Source) -> Result:
    """The same step with and without the late-label cap."""
    data = source.load(flights.load)
    capped, free = fly(data, "auto"), fly(data, None)
    waiting = in_flight(data)
    y = data.delay
    base, error = data.prediction - y, capped.served - y
    month = data.served.astype("datetime64[M]")
    months = np.unique(month)
    middles = months.astype("datetime64[D]") + 14
    biases = [np.array([e[month == m].mean() for m in months]) for e in (base, error)]
    numbers = [
        Number("most labels in flight", float(waiting.max())),
        Number("bias before, minutes", float(base.mean())),
        Number("bias after, capped, minutes", float(error.mean())),
        Number("root mean squared error before, minutes", float(np.sqrt((base**2).mean()))),
        Number("root mean squared error after, capped, minutes", float(np.sqrt((error**2).mean()))),
        Number("largest |θ|, capped, minutes", float(np.abs(capped.thetas).max())),
        Number("largest |θ|, not capped, minutes", float(np.abs(free.thetas).max())),
        Number("flights until it diverged, not capped", float(free.rows[-1])),
    ]
    days, first = np.unique(data.served.astype("datetime64[D]"), return_index=True)
    most = np.maximum.reduceat(waiting, first)
    some = thinned(len(waiting))
    when = data.served.astype("datetime64[m]")
    ends = [when[np.minimum(np.array(flown.rows), len(y) - 1)] for flown in (capped, free)]
    panels = [
        Panel(
            "Most labels in flight, by day", "date", "flights",
            [Line(days, most, "in flight", AFTER)], legend="", y_limits=(0.0, None),
        ),
        Panel(
            f"Correction θ, η = {ETA:g}", "date", "minutes, absolute",
            [
                Line(ends[1], np.maximum(np.abs(free.thetas), 1e-2), "no cap", SECOND),
                Line(ends[0], np.maximum(np.abs(capped.thetas), 1e-2), "capped", AFTER),
            ],
            y_scale="log",
        ),
        Panel(
            "Bias by month", "date", "minutes",
            [
                Line(middles, biases[0], "base model", BEFORE._replace(marker="s")),
                Line(middles, biases[1], "served, capped", AFTER._replace(marker="o")),
            ],
        ),
        Panel(
            "Absolute bias so far", "date", "minutes",
            [
                Line(when[some], np.abs(running_mean(base))[some], "base model", BEFORE),
                Line(when[some], np.abs(running_mean(error))[some], "served, capped", AFTER),
            ],
            y_limits=(0.0, None),
        ),
    ]  # fmt: skip
    found = (
        f"Up to {waiting.max():.0f} labels are in flight. Without a cap a step of {ETA:g} diverges: |θ| is "
        f"{abs(free.thetas[-1]):,.0f} minutes after {free.rows[-1]:,} flights, and there the layer stops itself; "
        f"with the cap, 0.1 over the flights served until a label came, the bias falls from {base.mean():+.2f} to "
        f"{error.mean():+.3f} minutes and the root mean squared error from {numbers[3].ours:.2f} to "
        f"{numbers[4].ours:.2f}."
    )
    data_name = (
        f"{len(y):,} flights out of New York from April to December 2013, label known at landing"
    )
    return Result(found, tuple(numbers), {"": Sheet(panels, (1, 4), (15.5, 3.4))}, data_name)


EXPERIMENT = Experiment(
    name="flights-delayed",
    title="Late labels: flights that have not landed yet",
    figure="beyond the paper",
    chapter="beyond",
    needs=("flights",),
    shows="What happens to debiasing when labels come hours late, with a step that is harmless when they come at "
    "once?",
    corrected="The paper has every label before the next prediction.",
    run=run,
)
