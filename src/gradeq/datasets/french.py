"""French electricity spot prices by the hour, 2016-19, with lagged prices and demand."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.datasets.catalog import Dataset, File
from gradeq.datasets.columns import Columns, Days, Floats
from gradeq.datasets.locate import Folder, find

_WEEKDAYS = tuple(f"dow_{k}" for k in range(7))
_DAY_BEFORE = tuple(f"lag_24_{k}" for k in range(24))
_WEEK_BEFORE = tuple(f"lag_168_{k}" for k in range(24))

DATASET = Dataset(
    name="french_prices",
    title="French hourly electricity spot prices 2016-19",
    source="https://github.com/mzaffran/AdaptiveConformalPredictionsTimeSeries",
    licence="published with Zaffran et al. 2022; prices and demand from eco2mix",
    files=(
        File(
            "french_prices.csv.gz",
            ("860ec42d2b3c2174b1cc76b475d5c351c52ba6562b60d0bd8c4ec6f3eeba0430",),
            "https://raw.githubusercontent.com/mzaffran/AdaptiveConformalPredictionsTimeSeries/"
            "131656fe4c25251bad745f52db3c2d7cb1c24bbb/data_prices/Prices_2016_2019_extract.csv",
        ),
    ),
    columns=("Date", "Spot", "hour", *_WEEKDAYS, *_DAY_BEFORE, *_WEEK_BEFORE, "conso"),
    about="34,896 hours: the price, the 24 prices of the day before and of the week before, demand.",
)


class Prices(NamedTuple):
    """Rows of equal length, by hour."""

    time: Days
    spot: Floats
    hour: npt.NDArray[np.int64]
    weekday: npt.NDArray[np.int64]  # 0 is Monday
    day_before: Floats  # one column per hour of the day
    week_before: Floats
    demand: Floats


def load(folder: Folder = None) -> Prices:
    """All hours in order."""
    (path,) = find(DATASET, folder)
    columns = Columns(path, DATASET.columns)

    def matrix(names: tuple[str, ...]) -> Floats:
        return np.column_stack([columns.numbers(name) for name in names])

    return Prices(
        time=columns.moments("Date", "s"),
        spot=columns.numbers("Spot"),
        hour=columns.integers("hour"),
        weekday=np.argmax(matrix(_WEEKDAYS), axis=1),
        day_before=matrix(_DAY_BEFORE),
        week_before=matrix(_WEEK_BEFORE),
        demand=columns.numbers("conso"),
    )
