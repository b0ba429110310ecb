"""What an experiment is, and what it gives: numbers beside the authors', and sheets to draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from gradeq.experiments.sheet import Sheet
from gradeq.experiments.source import Source

CHAPTERS = {
    "paper": "The figures of the paper",
    "theory": "The theory as experiments",
    "beyond": "Beyond the paper",
}


class Number(NamedTuple):
    """One figure of ours beside the authors'.

    ``ours`` is computed on the paper's definitions of step, bias and loss. ``authors`` is what their figure or code
    gives, on its own scale. ``corrected`` is what that becomes on the paper's definitions, with its error mended, and
    ours lies ``within`` that distance of it.
    """

    name: str
    ours: float
    authors: float | None = None
    corrected: float | None = None
    within: float = 1e-6


class Result(NamedTuple):
    """What one experiment found.

    ``found`` says it in words, ``data`` names what it ran on (with a stand-in named as one), and ``sheets`` has the
    figures: the main one under "", further ones under the suffix of their file name.
    """

    found: str
    numbers: tuple[Number, ...]
    sheets: Mapping[str, Sheet]
    data: str = ""

    def number(self, name: str) -> Number:
        """The number of this name."""
        return next(number for number in self.numbers if number.name == name)


@dataclass(frozen=True)
class Experiment:
    """One figure: its name on the command line, what the paper shows, what was corrected, and how to run it.

    ``labels`` is the page ("bounds", "errata") whose labels its panels and numbers begin with.
    """

    name: str
    title: str
    figure: str
    chapter: str
    needs: tuple[str, ...]
    shows: str
    corrected: str
    run: Callable[[Source], Result]
    labels: str = ""

    @property
    def line(self) -> str:
        """What ``gradeq reproduce --list`` says of it."""
        needs = f"; needs {', '.join(self.needs)}" if self.needs else ""
        return f"{self.title} ({self.figure}{needs})"
