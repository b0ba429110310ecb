"""Daily climate of Delhi, 2013-17."""

from __future__ import annotations

from typing import NamedTuple

from gradeq.datasets.catalog import Dataset, File
from gradeq.datasets.columns import Columns, Days, Floats
from gradeq.datasets.locate import Folder, find

_COLUMNS = ("date", "meantemp", "humidity", "wind_speed", "meanpressure")

DATASET = Dataset(
    name="climate",
    title="Daily climate of Delhi 2013-17",
    source="https://www.kaggle.com/datasets/sumanthvrao/daily-climate-time-series-data",
    licence="CC0-1.0 as far as known",
    files=(
        File(
            "daily-climate.csv",
            ("e98fd20de5e015917c43cb121586913a6d864ff847a1b4a8c20bd109e66248cf",),
            "https://raw.githubusercontent.com/aangelopoulos/conformal-time-series/main/"
            "tests/datasets/daily-climate.csv",
        ),
    ),
    columns=_COLUMNS,
    about="1,575 days: mean temperature (Celsius), humidity, wind speed, pressure.",
)


class Climate(NamedTuple):
    """Columns of equal length, by day."""

    date: Days
    meantemp: Floats
    humidity: Floats
    wind_speed: Floats
    meanpressure: Floats


def load(folder: Folder = None) -> Climate:
    """All days in order."""
    (path,) = find(DATASET, folder)
    columns = Columns(path, _COLUMNS)
    return Climate(columns.moments("date"), *(columns.numbers(name) for name in _COLUMNS[1:]))
