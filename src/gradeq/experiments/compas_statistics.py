"""What the COMPAS stream looks like before anything is done to it (fig:compas-statistics)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradeq.datasets.columns import Texts
from gradeq.datasets.compas import RACES
from gradeq.experiments.averages import Floats, trailing_mean
from gradeq.experiments.compas_data import RACE_LOOKS, stream
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import (
    AFTER,
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
DECILES = np.arange(1, 11)
HIGH = 6  # the decile from which scores are called high
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
    panels: list[Panel] = []
    over: dict[str, list[float]] = {}
    for place, (kind, score) in enumerate((("violent", p), ("general", data.score))):
        rates = re_arrested(score, y, data.race)
        numbers += [
            Number(f"re-arrested, {race}, {kind} score {decile / 10:g}", float(rate))
            for race, row in zip(RACES, rates, strict=True)
            for decile, rate in zip(DECILES, row, strict=True)
        ]
        high = np.round(10 * score) >= HIGH
        high_hispanic = int((high & (data.race == RACES[-1])).sum())
        over[kind] = [float((score - y)[high & (data.race == race)].mean()) for race in RACES]
        numbers += [
            Number(f"overprediction at {kind} scores of {HIGH / 10:g} or more, {race}", value)
            for race, value in zip(RACES, over[kind], strict=True)
        ]
        panels.append(
            Panel(
                f"Re-arrest rate by {kind} score; dashed: calibrated",
                f"{kind} score / 10",
                "share re-arrested",
                _calibration(rates),
                ticks=(tuple(range(1, 11)), tuple(f"{k / 10:g}" for k in range(1, 11))),
                y_limits=(0.0, 1.04),
                legend="" if place else "best",
                cells=(place, 0, 1, 2),
            )
        )
    # Of the general score, the last: a lower rate at the same score is a larger overprediction.
    larger = [k for k in DECILES[HIGH - 1 :].tolist() if rates[0, k - 1] < rates[1, k - 1]]
    where = " and ".join(f"{k / 10:g}" for k in larger)
    places = thinned(len(y))
    when = data.date[places].astype("datetime64[D]")
    top = Panel(
        f"Share of each race among the last {WINDOW}",
        "",
        "share",
        [Stack(when, shares[places], RACES, tuple(RACE_LOOKS[race] for race in RACES))],
        y_limits=(0.0, 1.0),
        legend="outside",
        cells=(0, 2, 1, 3),
    )
    below = Panel(
        f"Bias of the last {WINDOW}, violent score",
        "screening date",
        "mean prediction − mean label",
        [Level(0.0), Line(days, daily, "bias", AFTER)],
        legend="",
        cells=(1, 2, 1, 3),
    )
    found = (
        f"At scores of {HIGH / 10:g} or more the general score exceeds the re-arrest rate by "
        f"{_by_race(over['general'])} defendants: on average the caption holds against Caucasian and not against "
        f"Hispanic defendants ({high_hispanic} people there); score by score it holds against Caucasian defendants "
        f"at {where}. The score of violent recidivism, which the authors' code "
        f"has, exceeds it by {_by_race(over['violent'])}. "
        f"On average over all that score is {-(p - y).mean():.3f} too low. Until row {last:,} "
        f"({_day(data.date[last - 1])}) its bias is {(p - y)[:last].mean():+.3f}; everyone screened later was "
        f"re-arrested, and there it is {(p - y)[last:].mean():+.3f}: this looks like an artefact of how the "
        f"file was collected."
    )
    sheet = Sheet([*panels, top, below], (2, 5), (13.5, 5.6))
    return Result(found, tuple(numbers), {"": sheet}, name)


def re_arrested(p: Floats, y: Floats, race: Texts) -> Floats:
    """The share of people arrested again: one row for each race, one column for each score."""
    scores = np.round(10 * p)
    cells = [[(race == name) & (scores == decile) for decile in DECILES] for name in RACES]
    return np.array([[y[cell].mean() if cell.any() else np.nan for cell in row] for row in cells])


def _day(date: Any) -> str:
    """A date in words."""
    return f"{date.item():%-d %B %Y}"


def _by_race(values: list[float]) -> str:
    first, second, third = (f"{v:.3f} for {race}" for v, race in zip(values, RACES, strict=True))
    return f"{first}, {second} and {third}"


def _calibration(rates: Floats) -> list[Mark]:
    marks: list[Mark] = [
        Bars(DECILES + 0.27 * (k - 1), rates[k], 0.25, name, RACE_LOOKS[name])
        for k, name in enumerate(RACES)
    ]
    for d in DECILES:
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
    corrected="The paper names no columns. Its caption, that the score tends to overpredict for African-Americans "
    "as it grows, as compared to Caucasians and Hispanics, is checked with both scores. The authors' code takes "
    "v_decile_score, of violent recidivism, against is_recid, any re-arrest. In the published picture the bars "
    "labelled African-American carry the Caucasians' rates and the reverse: bars are coloured in the order in which "
    "races appear in the file, the legend beside them is alphabetical. The paper calls the drop in 2014 an "
    "artefact, where almost all are re-arrested; it is all of them: the last person not re-arrested was screened on "
    "1 April 2014.",
    run=run,
)
