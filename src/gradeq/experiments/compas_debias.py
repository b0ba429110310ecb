"""Simple debiasing of a risk score on COMPAS (fig:simple-debiasing-compas)."""

from __future__ import annotations

from gradeq.datasets.compas import RACES
from gradeq.experiments.averages import plotted_mean
from gradeq.experiments.compas_data import stream
from gradeq.experiments.descent import debias_probabilities
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.series_panels import curves, three_panels
from gradeq.experiments.source import Source

# Their loss is half the paper's, so their learning rate L is the paper's eta = L/2.
THEIRS = (0.0, 0.001, 0.01, 0.05)
# For each L: theta, bias, cross-entropy, the ends of the published curves, bias by race.
AUTHORS = {
    0.0: (0.0, -0.11287755, 0.69314718, 0.05640931, 0.69304514, -0.111742, -0.122820, -0.081162),
    0.001: (
        0.2796825, -0.08241707, 0.68660732, 0.04118930, 0.68651199, -0.080971, -0.092429, -0.052240,
    ),
    0.01: (
        1.0784549, -0.03178003, 0.67396359, 0.01589684, 0.67387271, -0.027255, -0.044411, -0.009378,
    ),
    0.05: (
        1.2664011, -0.00746368, 0.67039467, 0.00374375, 0.67030203, -0.000653, -0.022040, 0.009171,
    ),
}  # fmt: skip


def run(source: Source) -> Result:
    """The violent-recidivism score over ten predicts re-arrest; one parameter learns from every outcome."""
    data, name, within = stream(source)
    p, y = data.violent_score, data.is_recid
    runs = [debias_probabilities(p, y, rate / 2 or None) for rate in THEIRS]
    numbers = []
    for rate, done in zip(THEIRS, runs, strict=True):
        theta, bias, loss, norm, plotted, *by_race = AUTHORS[rate]
        at = f"η = {rate / 2:g}"
        numbers += [
            Number(f"θ, {at}", float(done.theta[0]), theta, theta, within),
            Number(f"bias, {at}", float(done.errors.mean()), bias, bias, within),
            Number(f"average loss, {at}", float(done.losses.mean()), loss, 2 * loss, within),
            Number(f"end of their bias curve, {at}", abs(plotted_mean(done.errors)) / 2, norm, norm, within),
            Number(f"end of their loss curve, {at}", plotted_mean(done.losses) / 2, plotted, plotted, within),
        ]  # fmt: skip
        for race, group in zip(RACES, by_race, strict=True):
            ours = float(done.errors[data.race == race].mean())
            numbers.append(Number(f"bias of {race}, {at}", ours, group, group, within))
    labels = ["base model", *(f"η = {rate / 2:g} (their {rate:g})" for rate in THEIRS[1:])]
    sheet = three_panels(
        curves(labels, runs), y, "probability", "people", "logistic loss on [−1, 1]"
    )
    tail = int(y[::-1].argmin())  # people after the last one who was not arrested again
    outside = int(((runs[3].served < 0) | (runs[3].served > 1)).sum())
    found = (
        f"The score is {-runs[0].errors.mean():.3f} too low on average; at η = 0.025 what is served is "
        f"{-runs[3].errors.mean():.4f} too low, and the loss falls from {runs[0].losses.mean():.4f} to "
        f"{runs[3].losses.mean():.4f}. Nearly all of that gain comes from the last {tail} people, all re-arrested "
        f"({runs[0].losses[-tail:].mean():.4f} to {runs[3].losses[-tail:].mean():.4f}; before them "
        f"{runs[0].losses[:-tail].mean():.4f} to {runs[3].losses[:-tail].mean():.4f}). {outside} of the "
        f"served values lie outside [0, 1], up to {runs[3].served.max():.2f}: "
        "the paper's link does not keep probabilities."
    )
    return Result(found, tuple(numbers), {"": sheet}, name)


EXPERIMENT = Experiment(
    name="compas-debias",
    title="Simple debiasing of a recidivism score",
    figure="Figure 11",
    chapter="paper",
    needs=("compas",),
    shows="Mean prediction, bias and loss of the COMPAS score under four constant learning rates.",
    corrected="The authors' loss is half the paper's: their learning rate is twice the paper's η, their plotted "
    "bias half the bias, their loss half the paper's (0.6931 for the base model is 1.3863). The paper names no "
    "columns; the authors' code has v_decile_score, of violent recidivism, against is_recid, any re-arrest. "
    "Averages without the dummy zero.",
    run=run,
)
