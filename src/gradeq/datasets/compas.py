"""COMPAS: risk scores of Broward County, Florida, 2013-14, and who was arrested again."""

from __future__ import annotations

import csv
import io
import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.datasets.catalog import Dataset, Days, File, Floats, Folder, Texts, read_csv
from gradeq.errors import BadInput

_USED = ("row", "compas_screening_date", "sex", "race", "decile_score", "v_decile_score", "is_recid")


def _reduced(data: bytes) -> bytes:
    """The columns that are used, without names, birth dates and the like."""
    rows = csv.reader(io.StringIO(data.decode("utf-8"), newline=""))
    header = next(rows)
    places = [header.index(name) for name in _USED[1:]]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_USED)
    writer.writerows([i, *(row[k] for k in places)] for i, row in enumerate(rows))
    return out.getvalue().encode("utf-8")


DATASET = Dataset(
    name="compas",
    title="COMPAS recidivism scores, Broward County 2013-14",
    source="https://github.com/propublica/compas-analysis",
    licence="public record published by ProPublica; real people, so no more columns than needed",
    files=(
        File(
            "compas.csv.gz",
            (
                "869a8386ab5b0d796863193272bef4fc7cec9782a1435ca957364b0b59359352",
                "dede8408ab371dce3e23afcb3206acef13e9a370fa70d44723dccf342ca69a1d",
            ),
            "https://raw.githubusercontent.com/propublica/compas-analysis/master/compas-scores-two-years.csv",
            _reduced,
        ),
    ),
    columns=_USED,
    about="7,214 people, one row each; scores from 1 to 10. Fig. 7, 11, 12, 14, 15 of the paper.",
)

RACES = ("African-American", "Caucasian", "Hispanic")


class Compas(NamedTuple):
    """Columns of equal length; ``row`` is the row number in the original file, from 0."""

    row: npt.NDArray[np.int64]
    date: Days
    sex: Texts
    race: Texts
    score: Floats  # decile_score / 10
    violent_score: Floats  # v_decile_score / 10, the paper's prediction
    is_recid: Floats  # the paper's label

    def take(self, places: npt.NDArray[np.int64]) -> Compas:
        """These rows, in this order."""
        columns: list[Any] = [column[places] for column in self]
        return Compas(*columns)


def load(folder: Folder = None) -> Compas:
    """All rows in the order of the file."""
    columns = read_csv(DATASET, folder)
    return Compas(
        row=columns.integers("row"),
        date=columns.moments("compas_screening_date"),
        sex=columns.texts("sex"),
        race=columns.texts("race"),
        score=columns.numbers("decile_score") / 10,
        violent_score=columns.numbers("v_decile_score") / 10,
        is_recid=columns.numbers("is_recid"),
    )


def load_paper(folder: Folder = None, order: str | os.PathLike[str] | None = None) -> Compas:
    """The paper's 6,787 rows: three races, by screening date.

    In the authors' sort the order of equal dates depends on the machine. ``order`` is a file with their order of row
    numbers. Without it equal dates stay in file order, which changes the last theta by less than 1e-3 at a constant
    step.
    """
    every = load(folder)
    if order is None:
        rows = np.flatnonzero(np.isin(every.race, RACES))
        return every.take(rows[np.argsort(every.date[rows], kind="stable")])
    try:
        rows = np.loadtxt(order, dtype=np.int64)
    except (OSError, ValueError) as error:
        raise BadInput(f"{os.fspath(order)} cannot be read as row numbers: {error}") from None
    place = np.full(int(max(rows.max(), every.row.max())) + 1, -1)
    place[every.row] = np.arange(len(every.row))
    if rows.min() < 0 or (place[rows] < 0).any():
        raise BadInput(f"{os.fspath(order)} names rows that the COMPAS file does not have")
    return every.take(place[rows])
