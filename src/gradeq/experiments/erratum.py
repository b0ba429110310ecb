"""One erratum as a panel: what is printed and assumed, what holds, and a run that tells them apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradeq.experiments.averages import Floats
from gradeq.experiments.experiment import Number
from gradeq.experiments.sheet import AFTER, PRINTED, SECOND, Look, Panel, course
from gradeq.experiments.tables import numeral

PRINTED_LOOK = PRINTED
BOUND_LOOK = SECOND
RUN_LOOK = AFTER


class Hypothesis(NamedTuple):
    """A condition of the statement in question, in the words of the page on errata, and whether the run meets it."""

    words: str
    is_met: bool


class Erratum(NamedTuple):
    """A panel and its verdict: ``happens`` exceeds what the print ``allows``; ``holds`` is the corrected value.

    ``place`` is the label of the statement in the paper, or its section. ``limit``: the paper prints no number for
    the run, only that the quantity tends to what it ``allows``.
    """

    panel: Panel
    place: str
    assumes: tuple[Hypothesis, ...]
    happens: float
    allows: float
    holds: float
    limit: bool = False

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The three numbers by name."""
        title = self.panel.title
        return (
            Number(f"{title}: happens", self.happens),
            Number(f"{title}: printed{' limit' if self.limit else ''}", self.allows),
            Number(f"{title}: corrected", self.holds),
        )

    @property
    def is_fair(self) -> bool:
        """Whether the run meets every condition of the statement that it speaks against."""
        return all(hypothesis.is_met for hypothesis in self.assumes)

    @property
    def verdict(self) -> str:
        """The same in one line."""
        allows, happens, holds = map(numeral, (self.allows, self.happens, self.holds))
        printed = f"printed limit {allows}" if self.limit else f"printed {allows}"
        verdict = f"{printed}, happens {happens}, corrected {holds}"
        return verdict if self.is_fair else f"not a counterexample: {verdict}"


def over_rounds(
    title: str,
    unit: str,
    *lines: tuple[Floats, str, Look],
    scale: str = "log",
    floor: float = 0.0,
) -> Panel:
    """Courses over rounds on a logarithmic axis; what is below the floor is drawn there, as the unit says."""
    marks = [
        course(np.maximum(values, floor), name, look, log=True) for values, name, look in lines
    ]
    said = f"{unit}, at least {floor:g}" if floor else unit
    return Panel(title, "rounds T", said, marks, x_scale="log", y_scale=scale)


def flat(value: float, like: Floats) -> Floats:
    """The same value in every round."""
    return np.full(len(like), value)
