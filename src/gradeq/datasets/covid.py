"""COVID-19 death forecasts: weekly, by state, at 23 quantile levels, and what came."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.datasets.catalog import Dataset, Days, File, Floats, Folder, Texts, read_csv

LEVELS = (0.01, 0.025, *(round(0.05 * k, 2) for k in range(1, 20)), 0.975, 0.99)

_FORECASTS = tuple(f"forecast_{level:g}" for level in LEVELS)

_DIGEST = "3be3e3bd8f951b5f4affa3003deb306e5a19369264ddf67e7a5ab1c5e5c86447"

DATASET = Dataset(
    name="covid",
    title="Weekly COVID-19 death forecasts of CMU-TimeSeries, 23 quantile levels",
    source="https://github.com/reichlab/covid19-forecast-hub",
    licence="CC-BY-4.0",
    files=(File("covid_quantile_forecasts.csv.gz", (_DIGEST,)),),
    columns=("h", "geo_value", "forecast_date", "target_date", *_FORECASTS, "deaths"),
    about="10,876 forecasts for 50 states and more, one to four weeks ahead, July 2020 to 2021.",
)


class Forecasts(NamedTuple):
    """Rows of equal length; quantiles has one column per level of LEVELS."""

    horizon: npt.NDArray[np.int64]  # weeks ahead
    place: Texts
    forecast_date: Days
    target_date: Days
    quantiles: Floats
    deaths: Floats


def load(folder: Folder = None) -> Forecasts:
    """All forecasts in file order."""
    columns = read_csv(DATASET, folder)
    return Forecasts(
        horizon=columns.integers("h"),
        place=columns.texts("geo_value"),
        forecast_date=columns.moments("forecast_date"),
        target_date=columns.moments("target_date"),
        quantiles=columns.matrix(_FORECASTS),
        deaths=columns.numbers("deaths", missing=True),
    )
