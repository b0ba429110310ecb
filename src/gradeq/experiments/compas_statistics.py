"""What the COMPAS stream looks like before anything is done to it (fig:compas-statistics)."""

from __future__ import annotations

import numpy as np

from gradeq.datasets.columns import Texts
from gradeq.datasets.compas import RACES
from gradeq.experiments.averages import Floats, trailing_mean
from gradeq.experiments.compas_data import stream
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import (
    AFTER,
    BEFORE,
    SECOND,
    TRUTH,
    Bars,
    Level,
    Line,
    Mark,
    Panel,
    Sheet,
    Stack,
    thinned,
)
from gradeq.experiments.source import Source

WINDOW = 100
COUNTS = {"African-American": 3696, "Caucasian": 2454, "Hispanic": 637}
BIASES = {"African-American": -0.111742, "Caucasian": -0.122820, "Hispanic": -0.081162}


def run(source: Source) -> Result:
    """Calibration by score and race, the mix of races over time, and the bias over time."""
    data, name, _ = stream(source)
    p, y = data.violent_score, data.is_recid
    last = int(np.flatnonzero(y == 0)[-1]) + 1
    numbers = [
        Number("people", float(len(y)), 6787, 6787),
        Number("mean prediction", float(p.mean()), 0.374230, 0.374230),
        Number("mean label", float(y.mean()), 0.487108, 0.487108),
        Number("bias", float((p - y).mean()), -0.112878, -0.112878),
        Number("row after which all are re-arrested", float(last), 5833, 5833),
    ]
    for race in RACES:
        who = data.race == race
        numbers += [
            Number(f"people, {race}", float(who.sum()), COUNTS[race], COUNTS[race]),
            Number(f"bias, {race}", float((p - y)[who].mean()), BIASES[race], BIASES[race]),
        ]
    rolling = trailing_mean(p - y, WINDOW)
    numbers.append(Number("bias of the last 100", float(rolling[-1]), -0.56, -0.56))
    shares = np.column_stack([trailing_mean(data.race == race, WINDOW) for race in RACES])
    # Values of one day are averaged, as in the published line.
    days, first = np.unique(data.date, return_index=True)
    daily = np.add.reduceat(rolling, first) / np.diff([*first, len(rolling)])
    numbers.append(Number("lowest daily bias", float(daily.min()), -0.6106666667, -0.6106666667))
    numbers += [
        Number(f"bias of the 100 up to {t}", float(rolling[t - 1])) for t in range(500, 6501, 500)
    ]
    places = thinned(len(y))
    when = data.date[places].astype("datetime64[D]")
    left = Panel(
        "Re-arrest rate by score; dashed: calibrated",
        "score / 10",
        "share re-arrested",
        _calibration(p, y, data.race),
        ticks=(tuple(range(1, 11)), tuple(f"{k / 10:g}" for k in range(1, 11))),
        y_limits=(0.0, 1.0),
        cells=(0, 0, 2, 2),
    )
    top = Panel(
        f"Share of each race among the last {WINDOW}",
        "",
        "share",
        [Stack(when, shares[places], RACES)],
        y_limits=(0.0, 1.0),
        legend="lower left",
        cells=(0, 2, 1, 3),
    )
    below = Panel(
        f"Bias of the last {WINDOW}",
        "screening date",
        "mean prediction − mean label",
        [Level(0.0), Line(days, daily, "bias", AFTER)],
        legend="",
        cells=(1, 2, 1, 3),
    )
    found = (
        f"On average the score is {-(p - y).mean():.3f} too low. Until row {last:,} "
        f"({data.date[last - 1]}) its bias is {(p - y)[:last].mean():+.3f}; everyone screened later was re-arrested, "
        f"and there it is {(p - y)[last:].mean():+.3f}: this looks like an artefact of how the file was collected."
    )
    sheet = Sheet([left, top, below], (2, 5), (13.5, 5.6))
    return Result(found, tuple(numbers), {"": sheet}, name)


def _calibration(p: Floats, y: Floats, race: Texts) -> list[Mark]:
    deciles = np.arange(1, 11)
    marks: list[Mark] = []
    for k, (name, look) in enumerate(
        zip(RACES, (AFTER, SECOND, BEFORE._replace(dash=":")), strict=True)
    ):
        cells = [(race == name) & (np.round(10 * p) == d) for d in deciles]
        rates = np.array([y[cell].mean() if cell.any() else np.nan for cell in cells])
        marks.append(Bars(deciles + 0.27 * (k - 1), rates, 0.25, name, look))
    for d in deciles:
        ends = np.array([d - 0.42, d + 0.42])
        marks.append(
            Line(
                ends,
                np.array([d, d]) / 10,
                f"calibrated, {d / 10:g}",
                TRUTH._replace(dash="--"),
                True,
            )
        )
    return marks


EXPERIMENT = Experiment(
    name="compas-statistics",
    title="The COMPAS stream: calibration, mix of races, bias over time",
    figure="Figure 7",
    chapter="paper",
    needs=("compas",),
    shows="Left: how often people of each race and score were arrested again. Top right: the mix of races over time. "
    "Bottom right: the bias of the score over time.",
    corrected="The paper speaks of the COMPAS recidivism score; it is the score of violent recidivism "
    "(v_decile_score), judged against any re-arrest (is_recid). The jump in 2014 is not mentioned: the last "
    "person not re-arrested was screened on 1 April 2014.",
    run=run,
)
