"""The paper's COMPAS stream, in the authors' row order where that is known."""

from __future__ import annotations

from typing import NamedTuple

from gradeq.datasets import compas
from gradeq.experiments.sheet import SERIES
from gradeq.experiments.source import Source

STABLE = 1.5e-2  # most that the order of equal dates moves a final theta (authors' note: 1.4e-2, decaying)

# One look for each race and each sex, in every figure.
RACE_LOOKS = dict(zip(compas.RACES, (SERIES[0], SERIES[1], SERIES[3]), strict=True))
SEX_LOOKS = {"Female": SERIES[4], "Male": SERIES[6]}


class Stream(NamedTuple):
    """The rows, what to call them, and how near the authors' numbers ours must be."""

    data: compas.Compas
    name: str
    within: float


def stream(source: Source) -> Stream:
    """6,787 people of three races by screening date; equal dates as the authors' sort left them, if at hand."""
    order = source.compas_order()
    data = source.load(compas.load_paper, order=order)
    if order is None:
        return Stream(data, "COMPAS, 6,787 people, equal dates in file order", STABLE)
    return Stream(data, "COMPAS, 6,787 people, in the authors' row order", 1e-6)
