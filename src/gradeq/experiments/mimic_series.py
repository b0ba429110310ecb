"""Multigroup debiasing over time (fig:multigroup-debiasing-mimic-series)."""

from __future__ import annotations

import math

from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.series_panels import bias_norm, curves, three_panels
from gradeq.experiments.source import Source
from gradeq.experiments.stays import STEPS, debiased

AUTHORS = (
    (0.354841, 28.918642),
    (0.032598, 28.856606),
    (0.008619, 29.137444),
    (0.005210, 30.445985),
)


def run(source: Source) -> Result:
    """The runs of Figure 1, all groups at once."""
    stream, rows, runs = debiased(source)
    numbers = []
    other = "" if stream.is_paper else " (theirs: MIMIC, days)"
    for step, done, (norm, loss) in zip(STEPS, runs, AUTHORS, strict=True):
        ours = float(bias_norm(done, rows)[-1])
        numbers += [
            Number(
                f"largest coordinate of the average gradient, η = {step:g}{other}",
                ours,
                norm,
                norm,
                math.inf,
            ),
            Number(
                f"average loss, η = {step:g}{other}",
                float(done.losses.mean()),
                loss,
                loss,
                math.inf,
            ),
        ]
    labels = ["base model", *(f"η = {step:g}" for step in STEPS[1:])]
    window = 100 if stream.is_paper else 10_000
    sheet = three_panels(
        curves(labels, runs), stream.label, stream.unit, "date", "half the squared error", rows,
        window, stream.when,
    )  # fmt: skip
    found = "Largest coordinate of the average gradient " + ", ".join(
        f"{bias_norm(done, rows)[-1]:.4f}" for done in runs
    )
    found += f" {stream.unit} and loss " + ", ".join(f"{done.losses.mean():.1f}" for done in runs)
    best = min(range(4), key=lambda k: float(runs[k].losses.mean()))
    found += f" for the base model and the three steps. The loss is lowest at η = {STEPS[best]:g}."
    if not stream.is_paper:
        found += " Neighbouring flights share their delay, so a quick step also predicts; on stays it costs loss."
    return Result(found, tuple(numbers), {"": sheet}, stream.data)


EXPERIMENT = Experiment(
    name="mimic-series",
    title="Multigroup debiasing, over time",
    figure="Figure 13",
    chapter="paper",
    needs=("flights",),
    shows="Mean predicted length of stay, norm of bias, and loss over admission dates.",
    corrected="The norm of bias is the largest coordinate of the average gradient: the sum of errors within a group "
    "over the number of all rows, and is named so here; Figure 1 has the bias within each group. Averages without "
    "the authors' dummy zero; otherwise as in Figure 1.",
    run=run,
)
