"""Data sets of one CSV file: climate, electricity demand, electricity prices, ratings of answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from gradeq.datasets.catalog import CsvColumns, Dataset, Days, File, Floats, Folder, Texts, read_csv

T = TypeVar("T")
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CsvTable(Generic[T]):
    """A data set and how its columns are read."""

    DATASET: Dataset
    read: Callable[[CsvColumns], T]

    def load(self, folder: Folder = None) -> T:
        """All rows in file order."""
        return self.read(read_csv(self.DATASET, folder))


class Climate(NamedTuple):
    """Columns of equal length, by day."""

    date: Days
    meantemp: Floats
    humidity: Floats
    wind_speed: Floats
    meanpressure: Floats


_WEATHER = ("meantemp", "humidity", "wind_speed", "meanpressure")
climate = CsvTable(
    Dataset(
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
        columns=("date", *_WEATHER),
        about="1,575 days: mean temperature (Celsius), humidity, wind speed, pressure.",
    ),
    lambda columns: Climate(columns.moments("date"), *map(columns.numbers, _WEATHER)),
)


class Elec2(NamedTuple):
    """Columns of equal length, in order of time."""

    date: Floats
    day: Ints
    period: Floats
    nswprice: Floats
    nswdemand: Floats
    vicprice: Floats
    vicdemand: Floats
    transfer: Floats
    trend: Texts  # the file's class: price UP or DOWN against the last day


_SCALED = ("period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer")


elec2 = CsvTable(
    Dataset(
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
        columns=("date", "day", *_SCALED, "class"),
        about="45,312 half-hours; all numbers scaled to [0, 1]; day is the weekday, 1 to 7.",
    ),
    lambda columns: Elec2(
        columns.numbers("date"),
        columns.integers("day"),
        **{name: columns.numbers(name) for name in _SCALED},
        trend=columns.texts("class"),
    ),
)


class Prices(NamedTuple):
    """Rows of equal length, by hour."""

    time: Days
    spot: Floats
    hour: Ints
    weekday: Ints  # 0 is Monday
    day_before: Floats  # one column per hour of the day
    week_before: Floats
    demand: Floats


_WEEKDAYS = tuple(f"dow_{k}" for k in range(7))
_DAY_BEFORE = tuple(f"lag_24_{k}" for k in range(24))
_WEEK_BEFORE = tuple(f"lag_168_{k}" for k in range(24))


french = CsvTable(
    Dataset(
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
    ),
    lambda columns: Prices(
        time=columns.moments("Date", "s"),
        spot=columns.numbers("Spot"),
        hour=columns.integers("hour"),
        weekday=np.argmax(columns.matrix(_WEEKDAYS), axis=1),
        day_before=columns.matrix(_DAY_BEFORE),
        week_before=columns.matrix(_WEEK_BEFORE),
        demand=columns.numbers("conso"),
    ),
)


class HelpSteer(NamedTuple):
    """Columns of equal length; the paper predicts helpfulness by reward."""

    reward: Floats
    helpfulness: Floats
    correctness: Floats
    coherence: Floats
    complexity: Floats
    verbosity: Floats


_RATINGS = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")


def _without_text(data: bytes) -> bytes:
    """The ratings and the score of each answer, without prompts and answers."""
    lines = [",".join((*_RATINGS, "rm_reward"))]
    for record in json.loads(data, parse_float=str):
        reward = record.get("rm_reward", record.get("rm_rewards"))
        lines.append(",".join([*(str(record[name]) for name in _RATINGS), str(reward)]))
    return ("\n".join(lines) + "\n").encode("utf-8")


helpsteer = CsvTable(
    Dataset(
        name="helpsteer",
        title="HelpSteer2 validation ratings with reward-model scores",
        source="https://huggingface.co/datasets/nvidia/HelpSteer2 and "
        "https://github.com/aangelopoulos/gradient-equilibrium",
        licence="CC-BY-4.0",
        files=(
            File(
                "helpsteer2_rewards.csv",
                ("f5f5a9eaf5b859a05cee4b5c45b52b3bd27e78c634b3f5db1d4838c2c8996672",),
                "https://raw.githubusercontent.com/aangelopoulos/gradient-equilibrium/main/helpsteer/rewards.json",
                _without_text,
            ),
        ),
        columns=(*_RATINGS, "rm_reward"),
        about="1,038 answers in file order, ratings from 0 to 4. Fig. 10 of the paper.",
    ),
    lambda columns: HelpSteer(columns.numbers("rm_reward"), *map(columns.numbers, _RATINGS)),
)
