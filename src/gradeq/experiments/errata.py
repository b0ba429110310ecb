"""Every claim of the paper that a number refutes, as printed and as corrected, beside a run."""

from __future__ import annotations

from gradeq.experiments import errata_sets, errata_steps
from gradeq.experiments.erratum import Erratum
from gradeq.experiments.experiment import Experiment, Result
from gradeq.experiments.sheet import Sheet
from gradeq.experiments.source import Source

COLUMNS = 3


def errata() -> list[Erratum]:
    """In the order of the list of errata."""
    return [
        errata_steps.introduction(),
        errata_steps.bounded_iterates(),
        errata_steps.converging_iterates(),
        errata_steps.ties(),
        errata_steps.logistic_range(),
        errata_steps.classifier(),
        errata_steps.strong_monotonicity(),
        errata_steps.vanishing_steps(),
        errata_steps.root_term(),
        errata_steps.squared_step(),
        errata_sets.unsigned_elo(),
        errata_sets.algorithm_5(),
        errata_sets.simplex_cone(),
        errata_sets.simplex_support(),
        errata_sets.cone_test(),
    ]


def run(source: Source) -> Result:
    """One panel each; the number in a title is that of the erratum."""
    found = errata()
    rows = -(-len(found) // COLUMNS)
    sheet = Sheet([item.panel for item in found], (rows, COLUMNS), (12.5, 3.1 * rows))
    numbers = tuple(number for item in found for number in item.numbers)
    left = sum(item.happens > item.allows for item in found)
    which = "all" if left == len(found) else f"{left}"
    said = (
        f"{len(found)} panels. Grey is what is printed, or a run of it; blue is a run of the method; orange and "
        f"dashed is what holds. In {which} of them a run leaves what the print allows, and "
        f"{sum(item.is_fair for item in found)} of the {len(found)} runs meet every condition of the statement that "
        "they speak against."
    )
    return Result(said, numbers, {"": sheet})


EXPERIMENT = Experiment(
    name="errata",
    title="Claims as printed and as corrected",
    figure="errata of severity A",
    chapter="theory",
    needs=(),
    shows="Which formulas of the paper, as printed, does a run refute, and what holds in their place?",
    corrected="All of them, most by a sign, an index or a constant; the library uses the corrected forms throughout.",
    run=run,
    labels="errata",
)
