"""One layer over all partitions of a Spark table, not one for each key.

Rows come in rounds, the micro-batches. Workers serve a round from the state that the rounds before it left, and add
up what their labels say as exact sums (``layers.rounds``); the driver adds the sums of all partitions, decides the
step by how many rows were in flight, and posts them. So it does not show how rows are partitioned, to the last bit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gradeq.errors import BadInput
from gradeq.layers.debiaser import Debiaser
from gradeq.layers.registry import from_json
from gradeq.layers.rounds import Part, Round, Sums, check_layer, part_of, posted, served, together
from gradeq.ledger import facts as fact
from gradeq.spark.refusals import refusals
from gradeq.spark.roles import OURS, check_frame, one
from gradeq.spark.session import check_spark

SERVED, PART = "adjusted", f"{OURS}part"


class Columns(NamedTuple):
    """Which column is what: the prediction, the label, and the group column of the layer if it has one."""

    prediction: str
    label: str
    group: str | None

    @property
    def names(self) -> list[str]:
        """All of them."""
        return [self.prediction, self.label, *([self.group] if self.group else [])]


class Whole(NamedTuple):
    """What came of a table: its rows with what was served, the layer after the last round, and every round."""

    rows: Any
    layer: Debiaser
    rounds: tuple[Round, ...]


def adjust_whole(frame: Any, layer: Debiaser, *, prediction: str, label: str, batch: str) -> Whole:
    """A table through one layer, round by round: ``batch`` is the column that says which round a row belongs to.

    Rounds are taken in the order of that column. A label that is null is one that never came. Each round is a Spark
    job over its rows, so ``frame.persist()`` pays where it is dear to make; the layer that is given stays as it was.
    """
    columns = checked(frame, layer, prediction, label, batch)
    with refusals():
        found = [row[0] for row in frame.select(batch).distinct().collect()]
    if any(value is None for value in found):
        raise BadInput(f"column {batch!r} has nulls; every row belongs to a round")
    now, sums, told, before = layer.copy(), dict[str, Sums](), list[Round](), {}
    for value in sorted(found):
        before[str(value)] = now.to_json()
        part = parts_of(frame.where(frame[batch] == value), now, columns)
        now, sums, done = posted(now, sums, part)
        told.append(done)
    rows = with_served(frame, before, columns, batch)
    return Whole(rows, now, tuple(told))


def checked(
    frame: Any, layer: Any, prediction: str, label: str, batch: str | None = None
) -> Columns:
    """The columns by what they are; a layer or a frame that does not fit is refused before any job starts."""
    from pyspark.sql import types as T

    check_spark()
    check_layer(layer)
    check_frame(frame)
    if batch is not None:
        check_fresh(layer)
    group = next(iter(layer._names.groups), None)
    columns = Columns(
        str(one(prediction, "prediction", True)), str(one(label, "label", True)), group
    )
    spoken = (T.StringType, T.IntegralType, T.BooleanType)
    wanted: list[tuple[str, tuple[Any, ...], str]] = [
        (columns.prediction, (T.NumericType,), "a number"),
        (columns.label, (T.NumericType, T.BooleanType), "a number"),
    ]
    if group is not None:
        wanted.append((group, spoken, "text, a whole number or a truth value"))
    if batch is not None:
        kinds = (T.StringType, T.IntegralType, T.DateType)
        wanted.append((str(one(batch, "batch", True)), kinds, "text, a whole number or a date"))
    for name, own, words in wanted:
        if frame.columns.count(name) != 1:
            reason = "is there more than once" if name in frame.columns else "is missing"
            raise BadInput(f"column {name!r} {reason}; the frame has {', '.join(frame.columns)}")
        if not isinstance(frame.schema[name].dataType, own):
            found = frame.schema[name].dataType.simpleString()
            raise BadInput(f"column {name!r} holds {found}, not {words}; cast it first")
    names = [name for name, _, _ in wanted]
    if len(set(names)) < len(names):
        raise BadInput(f"a column is given twice in {', '.join(names)}; each is one thing alone")
    for name in frame.columns:
        if name == SERVED or name.startswith(OURS):
            raise BadInput(
                f"the frame has a column {name!r} already, which is to be added; rename it"
            )
    return columns


def check_fresh(layer: Any) -> None:
    """Refuse a layer that has served: its sums are floats, and not exact any more."""
    if layer._state.facts[fact.SERVED]:
        raise BadInput("the layer has served rows already; give a fresh one")


def parts_of(frame: Any, layer: Debiaser, columns: Columns) -> Part:
    """What the labels of a round add, all partitions together."""
    text = layer.to_json()

    def added(batches: Iterator[Any]) -> Iterator[Any]:
        own: Any = from_json(text)
        part: Part = {}
        for batch in batches:
            if len(batch):
                part = together(part, part_of(own, *taken(batch, columns))[1])
        yield pa.record_batch([pa.array([written(part)])], [PART])

    with refusals():
        texts = frame.select(*columns.names).mapInArrow(added, f"{PART} string").collect()
    found: Part = {}
    for row in texts:
        found = together(found, {n: Sums.of(own) for n, own in json.loads(row[0]).items()})
    return found


def written(part: Part) -> str:
    """A part as JSON."""
    return json.dumps({name: own.state() for name, own in part.items()})


def with_served(
    frame: Any, before: Mapping[str, str], columns: Columns, batch: str | None = None
) -> Any:
    """The rows with what was served: each round from the state before it; without rounds, all from one."""
    from pyspark.sql import types as T

    schema = T.StructType([*frame.schema.fields, T.StructField(SERVED, T.DoubleType())])

    def shown(batches: Iterator[Any]) -> Iterator[Any]:
        layers: dict[str, Any] = {}
        for rows in batches:
            values = np.empty(len(rows))
            rounds = np.array(
                [""] * len(rows) if batch is None else rows[batch].to_pylist(), dtype=object
            )
            for value in dict.fromkeys(rounds.tolist()):
                text = str(value)
                if text not in layers:
                    layers[text] = from_json(before[text])
                own = np.flatnonzero(rounds == value)
                base, _, groups = taken(rows.take(pa.array(own)), columns)
                values[own] = served(layers[text], base, groups)
            yield pa.record_batch([*rows.columns, pa.array(values)], [*rows.schema.names, SERVED])

    return frame.mapInArrow(shown, schema)


def taken(batch: Any, columns: Columns) -> tuple[Any, Any, dict[str, Any] | None]:
    """Predictions, labels (nan where they are null) and groups of arrow's rows."""
    base, labels = (
        batch[name].cast(pa.float64()).to_numpy(zero_copy_only=False)
        for name in (columns.prediction, columns.label)
    )
    if batch[columns.prediction].null_count:
        raise BadInput(
            f"column {columns.prediction!r} has nulls; leave out rows without a prediction"
        )
    groups = None if columns.group is None else {columns.group: batch[columns.group].to_pylist()}
    return base, labels, groups
