"""An experiment: its data, its numbers beside the authors', and its figure."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

from gradeq.datasets import Dataset
from gradeq.datasets.catalog import search_folders
from gradeq.errors import GradeqError
from gradeq.paper.plot import Sheet

RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def numeral(value: float | None) -> str:
    """Up to six significant digits, thousands with commas, a real minus sign, nothing for a number that there is not.

    >>> numeral(-0.112877555), numeral(6787.0), numeral(None), numeral(3.5e-5)
    ('\u22120.112878', '6,787', '', '3.5 × 10⁻⁵')
    """
    if value is None:
        return ""
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "not a number"
    if value != 0.0 and not 1e-4 <= float(f"{abs(value):.6g}") < 1e6:
        digits, power = f"{value:.3e}".split("e")
        raised = str(int(power)).translate(RAISED)
        return f"{digits.rstrip('0').rstrip('.')} × 10{raised}".replace("-", "−")
    return f"{value:,.6g}".replace("-", "−")


T = TypeVar("T")
ORDER = "compas_row_order.txt"


class Source:
    """The data folder of the user (None: GRADEQ_DATA, the cache, or a download)."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = None if folder is None else os.fspath(folder)
        self._cache: dict[object, object] = {}

    def load(self, loader: Callable[..., T], **settings: object) -> T:
        """The loader's data, read once; a failure is cached as well."""

        def read() -> T | GradeqError:
            try:
                return loader(self.folder, **settings)
            except GradeqError as error:
                return error

        data = self.once((loader, *sorted(settings.items())), read)
        if isinstance(data, GradeqError):
            raise data
        return data

    def once(self, key: object, compute: Callable[[], T]) -> T:
        """A cached result that several figures share."""
        if key not in self._cache:
            self._cache[key] = compute()
        return cast(T, self._cache[key])

    def has(self, dataset: Dataset) -> bool:
        """Whether any file of the data set is there, good or bad; nothing is downloaded."""
        names = [name for file in dataset.files for name in (file.name, f"{file.name}.gz")]
        places = [place / inner for place in search_folders(self.folder) for inner in ("", "hosp", "mimic")]
        return any((place / name).is_file() for place in places for name in names)

    def compas_order(self) -> Path | None:
        """The file with the authors' order of the COMPAS rows, in the data folder or in reference beside it."""
        for place in search_folders(self.folder):
            for path in (place / ORDER, place.parent / "reference" / ORDER):
                if path.is_file():
                    return path
        return None


CHAPTERS = {"paper": "The figures of the paper", "theory": "The theory as experiments", "beyond": "Beyond the paper"}


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
    """The result of one experiment.

    ``summary`` is the text. ``data`` names the data, and whether they are a stand-in. ``sheets`` has the figures: the
    main one under "", others under the suffix of their file name.
    """

    summary: str
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
    shows: str
    run: Callable[[Source], Result]
    corrected: str = ""
    chapter: str = "paper"
    needs: tuple[str, ...] = ()
    labels: str = ""

    @property
    def line(self) -> str:
        """The line of ``gradeq reproduce --list``."""
        needs = f"; needs {', '.join(self.needs)}" if self.needs else ""
        return f"{self.title} ({self.figure}{needs})"


@dataclass(frozen=True)
class ExperimentOutcome:
    """What became of one experiment: its result, files and pictures for the page, or why it was skipped."""

    experiment: Experiment
    result: Result | None = None
    skipped: str = ""
    files: tuple[Path, ...] = ()
    images: Mapping[str, bytes] = field(default_factory=dict)
    seconds: float = 0.0
