"""Bias by race and by sex on COMPAS (fig:multigroup-debiasing-compas-bias)."""

from __future__ import annotations

from gradeq.experiments.averages import Floats
from gradeq.experiments.compas_data import RACE_LOOKS, SEX_LOOKS, stream
from gradeq.experiments.descent import Descent, debias_probabilities, indicators
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.group_panels import group_panels
from gradeq.experiments.sheet import Sheet
from gradeq.experiments.source import Source

STEPS = (0.0, 0.0005, 0.005, 0.025)  # the paper's eta, half the authors' learning rates
RACES = 3


def grouped(source: Source) -> tuple[Floats, list[str], list[Descent]]:
    """Indicators of race and sex, their names, and a run for each step."""

    def compute() -> tuple[Floats, list[str], list[Descent]]:
        data = stream(source).data
        rows, groups = indicators(data.race, data.sex)
        p, y = data.violent_score, data.is_recid
        return rows, groups, [debias_probabilities(p, y, step or None, rows) for step in STEPS]

    return source.once("compas by race and sex", compute)


def run(source: Source) -> Result:
    """The runs of Figure 14, seen from within each group."""
    name = stream(source).name
    rows, groups, runs = grouped(source)
    members = {group: rows[:, j] > 0 for j, group in enumerate(groups)}
    # The published lower row has the sexes' members with the first two races' gradients.
    mistaken = {groups[RACES + k]: rows[:, k] > 0 for k in range(2)}
    numbers = []
    for step, done in zip(STEPS, runs, strict=True):
        for group, who in members.items():
            numbers.append(Number(f"bias of {group}, η = {step:g}", float(done.errors[who].mean())))
        for group, whose in mistaken.items():
            wrong = (done.errors * whose)[members[group]].mean()
            numbers.append(
                Number(f"what Figure 15 shows for {group}, η = {step:g}", abs(float(wrong)) / 2)
            )
    kinds = {
        "race": {group: members[group] for group in groups[:RACES]},
        "sex": {group: members[group] for group in groups[RACES:]},
    }
    titles = ["Base model", *(f"η = {step:g} (their {2 * step:g})" for step in STEPS[1:])]
    panels = group_panels(titles, runs, kinds, "probability", 0.2, RACE_LOOKS | SEX_LOOKS)
    worst = [max(abs(done.errors[who].mean()) for who in members.values()) for done in runs]
    found = (
        f"The worst of the five groups is off by {worst[0]:.3f} in the base model, {worst[1]:.3f}, {worst[2]:.3f} "
        f"and {worst[3]:.4f} as the step grows. Female: {runs[0].errors[members['Female']].mean():+.3f} to "
        f"{runs[3].errors[members['Female']].mean():+.4f}; Male: {runs[0].errors[members['Male']].mean():+.3f} to "
        f"{runs[3].errors[members['Male']].mean():+.4f}."
    )
    return Result(found, tuple(numbers), {"": Sheet(panels, (2, 4), (14.5, 6.2))}, name)


EXPERIMENT = Experiment(
    name="compas-groups",
    title="Bias of a recidivism score by race and by sex",
    figure="Figure 15",
    chapter="paper",
    needs=("compas",),
    shows="The absolute bias within each race (above) and each sex (below) as members of the group come in, for the "
    "base model and three learning rates.",
    corrected="The published lower row plots, for Female and Male, the gradient coordinates of African-American and "
    "Caucasian; here it has the right ones. Values are the bias itself, twice the gradient that was plotted, so the "
    "axis ends at 0.2 in place of 0.1.",
    run=run,
)
