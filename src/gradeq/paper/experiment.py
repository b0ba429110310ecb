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
    """Up to six significant digits, commas in thousands, a real minus sign; empty for None.

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
        """The loader's data, read once; an error is cached and raised again."""

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
        """The result of ``compute``, cached under ``key`` for other figures."""
        if key not in self._cache:
            self._cache[key] = compute()
        return cast(T, self._cache[key])

    def has(self, dataset: Dataset) -> bool:
        """Whether any file of the data set exists, valid or not; downloads nothing."""
        folders = [folder / inner for folder in search_folders(self.folder) for inner in ("", "hosp", "mimic")]
        names = [file.name + suffix for file in dataset.files for suffix in ("", ".gz")]
        return any((folder / name).is_file() for folder in folders for name in names)

    def compas_order(self) -> Path | None:
        """The file with the authors' order of the COMPAS rows, in the data folder or in ``reference`` next to it."""
        folders = [place for data in search_folders(self.folder) for place in (data, data.parent / "reference")]
        return next((folder / ORDER for folder in folders if (folder / ORDER).is_file()), None)


CHAPTERS = {"paper": "The figures of the paper", "theory": "The theory as experiments", "beyond": "Beyond the paper"}


class Number(NamedTuple):
    """One of our numbers next to the authors'.

    ``ours`` follows the paper's definitions of step, bias and loss. ``authors`` is the number in their figure or
    code, on its own scale. ``corrected`` is that number on the paper's definitions, with its error fixed; ours
    differs from it by at most ``within``.
    """

    name: str
    ours: float
    authors: float | None = None
    corrected: float | None = None
    within: float = 1e-6


class Result(NamedTuple):
    """The result of one experiment.

    ``data`` names the data, and says if they replace the paper's. ``sheets`` holds the figures: the main one under
    "", others under the suffix of their file name.
    """

    summary: str
    numbers: tuple[Number, ...]
    sheets: Mapping[str, Sheet]
    data: str = ""

    def number(self, name: str) -> Number:
        return next(number for number in self.numbers if number.name == name)


@dataclass(frozen=True)
class Experiment:
    """One figure: its name on the command line, what the paper shows, what was corrected, and how to run it.

    ``labels`` names the page ("bounds", "errata") whose labels its panels and numbers begin with.
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
        needs = f"; needs {', '.join(self.needs)}" if self.needs else ""
        return f"{self.title} ({self.figure}{needs})"


@dataclass(frozen=True)
class ExperimentOutcome:
    """One experiment's result, files and pictures for the page, or why it was skipped."""

    experiment: Experiment
    result: Result | None = None
    skipped: str = ""
    files: tuple[Path, ...] = ()
    images: Mapping[str, bytes] = field(default_factory=dict)
