"""Elec2: half-hourly electricity demand and price in two Australian states, 1996-98."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.datasets.catalog import Dataset, File
from gradeq.datasets.columns import Columns, Floats, Texts
from gradeq.datasets.locate import Folder, find

_COLUMNS = (
    "date",
    "day",
    "period",
    "nswprice",
    "nswdemand",
    "vicprice",
    "vicdemand",
    "transfer",
    "class",
)

DATASET = Dataset(
    name="elec2",
    title="Electricity demand and price, New South Wales and Victoria 1996-98",
    source="https://www.openml.org/d/151",
    licence="public",
    files=(
        File(
            "elec2.csv.gz",
            ("2edcdbafd4e402b8d5c59294f6c37c14bac534ac55a18810fb9aa2ca737d8e9f",),
            "https://www.openml.org/data/get_csv/2419/electricity-normalized.arff",
        ),
    ),
    columns=_COLUMNS,
    about="45,312 half-hours; all numbers scaled to [0, 1]; day is the weekday, 1 to 7.",
)


class Elec2(NamedTuple):
    """Columns of equal length, in order of time."""

    date: Floats
    day: npt.NDArray[np.int64]
    period: Floats
    nswprice: Floats
    nswdemand: Floats
    vicprice: Floats
    vicdemand: Floats
    transfer: Floats
    trend: Texts  # the file's class: price UP or DOWN against the last day


def load(folder: Folder = None) -> Elec2:
    """All half-hours in order of time."""
    (path,) = find(DATASET, folder)
    columns = Columns(path, _COLUMNS)
    numbers = [columns.numbers(name) for name in _COLUMNS[2:-1]]
    return Elec2._make(
        [columns.numbers("date"), columns.integers("day"), *numbers, columns.texts("class")]
    )
