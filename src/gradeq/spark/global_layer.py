"""One layer over all partitions of a table or a stream, not one per key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from gradeq.errors import BadInput, StateError
from gradeq.files.paths import write_text
from gradeq.layers.debiaser import Debiaser
from gradeq.layers.registry import from_json
from gradeq.layers.rounds import Part, Round, RoundSums, check_layer, part_of, posted, served, together
from gradeq.layers.serialization import check_same_settings
from gradeq.ledger import facts as fact
from gradeq.ledger.batch import Floats
from gradeq.spark.roles import (
    RESERVED_PREFIX,
    check_column,
    check_frame,
    check_free,
    check_spark,
    column_or_none,
    refusals,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


SERVED, PART = "adjusted", f"{RESERVED_PREFIX}part"


class RoundColumns(NamedTuple):
    """The columns by role: prediction, label, and the layer's group column if it has one."""

    prediction: str
    label: str
    group: str | None


class Whole(NamedTuple):
    """The result for a table: rows with served values, the layer after the last round, and every round."""

    rows: DataFrame
    layer: Debiaser
    rounds: tuple[Round, ...]


def adjust_whole(frame: DataFrame, layer: Debiaser, *, prediction: str, label: str, batch: str) -> Whole:
    """A table through one layer, round by round; ``batch`` is the column with the round of a row.

    Rounds are taken in the order of that column. A null label is one that never came. Each round is a Spark job over
    its rows, so ``frame.persist()`` pays if it is expensive to compute; the given layer stays as it was.
    """
    columns = check_rounds(frame, layer, prediction, label, batch)
    with refusals():
        values = [row[0] for row in frame.select(batch).distinct().collect()]
    if None in values:
        raise BadInput(f"column {batch!r} has nulls; every row belongs to a round")
    now, sums, rounds, before = layer.copy(), dict[str, RoundSums](), list[Round](), {}
    for value in sorted(values):
        before[str(value)] = now.to_json()
        part = parts_of(frame.where(frame[batch] == value), now, columns)
        now, sums, done = posted(now, sums, part)
        rounds.append(done)
    return Whole(with_served(frame, before, columns, batch), now, tuple(rounds))


def check_rounds(
    frame: DataFrame, layer: Debiaser, prediction: str, label: str, batch: str | None = None
) -> RoundColumns:
    """The columns by role; raises before any job starts."""
    from pyspark.sql import types as T

    check_spark()
    check_layer(layer)
    check_frame(frame)
    spoken = (T.StringType, T.IntegralType, T.BooleanType)
    wanted = [
        (column_or_none(prediction, "prediction", True), (T.NumericType,), "a number"),
        (column_or_none(label, "label", True), (T.NumericType, T.BooleanType), "a number"),
        (next(iter(layer.internals.names.groups), None), spoken, "text, a whole number or a truth value"),
    ]
    if batch is not None:
        check_fresh(layer)
        kinds = (T.StringType, T.IntegralType, T.DateType)
        wanted.append((column_or_none(batch, "batch", True), kinds, "text, a whole number or a date"))
    names = [name for name, _, _ in wanted if name is not None]
    for name, kinds, words in wanted:
        if name is not None:
            check_column(frame, name, kinds, words)
    if len(set(names)) < len(names):
        raise BadInput(f"a column is given twice in {', '.join(names)}; each is one thing alone")
    check_free(frame, [SERVED])
    return RoundColumns(names[0], names[1], wanted[2][0])


def check_fresh(layer: Debiaser) -> None:
    """Raise if the layer has served: its sums are floats, no longer exact."""
    if layer.internals.state.facts[fact.SERVED]:
        raise BadInput("the layer has served rows already; give a fresh one")


def parts_of(frame: DataFrame, layer: Debiaser, columns: RoundColumns) -> Part:
    """What the labels of a round add, over all partitions."""
    text = layer.to_json()

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        own, part = from_json(text, Debiaser), Part()
        for batch in batches:
            if len(batch):
                part = together(part, part_of(own, *row_columns(batch, columns))[1])
        encoded = json.dumps({name: sums.state() for name, sums in part.items()})
        yield pa.record_batch([pa.array([encoded])], [PART])

    with refusals():
        used = [name for name in columns if name is not None]
        texts = frame.select(*used).mapInArrow(add, f"{PART} string").collect()
    total = Part()
    for row in texts:
        total = together(total, sums_from(json.loads(row[0])))
    return total


def sums_from(states: Mapping[str, object]) -> Part:
    """Exact sums by parameter, from what JSON has of them."""
    return {name: RoundSums.of(state) for name, state in states.items()}


def with_served(
    frame: DataFrame, before: Mapping[str, str], columns: RoundColumns, batch: str | None = None
) -> DataFrame:
    """The rows with served values: each round from the state before it; without rounds, all from one."""
    from pyspark.sql import types as T

    schema = T.StructType([*frame.schema.fields, T.StructField(SERVED, T.DoubleType())])

    def serve(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        layers: dict[str, Debiaser] = {}
        for rows in batches:
            values = np.empty(len(rows))
            rounds = np.array([""] * len(rows) if batch is None else rows[batch].to_pylist(), dtype=object)
            for value in dict.fromkeys(rounds.tolist()):
                text = str(value)
                if text not in layers:
                    layers[text] = from_json(before[text], Debiaser)
                places = np.flatnonzero(rounds == value)
                base, _, groups = row_columns(rows.take(pa.array(places)), columns)
                values[places] = served(layers[text], base, groups)
            yield pa.record_batch([*rows.columns, pa.array(values)], [*rows.schema.names, SERVED])

    return frame.mapInArrow(serve, schema)


def row_columns(
    batch: pa.RecordBatch, columns: RoundColumns
) -> tuple[Floats, Floats, dict[str, list[object]] | None]:
    """Predictions, labels (nan where null) and groups of Arrow rows."""
    base, labels = (
        batch[name].cast(pa.float64()).to_numpy(zero_copy_only=False) for name in (columns.prediction, columns.label)
    )
    if batch[columns.prediction].null_count:
        raise BadInput(f"column {columns.prediction!r} has nulls; leave out rows without a prediction")
    groups = None if columns.group is None else {columns.group: batch[columns.group].to_pylist()}
    return base, labels, groups


FILE = "whole.json"


@dataclass(frozen=True)
class RoundCheckpoint:
    """The saved result of a round of a stream: number, layer before and after, exact sums, the round."""

    batch: int
    before: str
    after: str
    sums: dict[str, object]
    round: Sequence[Any]


def whole_stream(
    folder: str | PathLike[str],
    layer: Debiaser,
    *,
    prediction: str,
    label: str,
    write: Callable[[DataFrame, int], None] | None = None,
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch``: each micro-batch is a round; ``folder`` holds the state between runs.

    State and micro-batch number are written atomically, before ``write`` gets the rows with served values. After a
    crash Spark repeats the last micro-batch: one already written changes nothing, and its rows are served from the
    same state. ``write`` may see a micro-batch twice, with the same rows; let it overwrite by number.
    """
    check_spark()
    check_layer(layer)
    check_fresh(layer)
    path = Path(folder) / FILE
    read_checkpoint(path, layer)

    def post(frame: DataFrame, batch: int) -> None:
        columns = check_rounds(frame, layer, prediction, label)
        known = read_checkpoint(path, layer)
        if known is not None and batch < known.batch:
            raise BadInput(
                f"micro-batch {batch} comes after {known.batch} was written to {path}; "
                "use the checkpoint that belongs to this folder, or a new folder for both"
            )
        frame = frame.persist()
        try:
            if known is None or batch > known.batch:
                now = layer.copy() if known is None else from_json(known.after, Debiaser)
                sums = {} if known is None else sums_from(known.sums)
                new, sums, done = posted(now, sums, parts_of(frame, now, columns))
                plain: dict[str, object] = {name: own.state() for name, own in sums.items()}
                known = RoundCheckpoint(batch, now.to_json(), new.to_json(), plain, done)
                Path(folder).mkdir(parents=True, exist_ok=True)
                write_text(path, [json.dumps(asdict(known))])
            if write is not None:
                with refusals():
                    write(with_served(frame, {"": known.before}, columns), batch)
        finally:
            frame.unpersist()

    return post


def layer_in(folder: str | PathLike[str]) -> tuple[Debiaser, Round]:
    """The layer that a stream left in a folder, and its last round."""
    known = read_checkpoint(Path(folder) / FILE)
    if known is None:
        raise BadInput(f"{folder} has no {FILE}; no micro-batch has ended yet")
    return from_json(known.after, Debiaser), Round(*known.round)


def read_checkpoint(path: Path, layer: Debiaser | None = None) -> RoundCheckpoint | None:
    """The last checkpoint, None without one; raises if it is damaged or has other settings."""
    try:
        known = RoundCheckpoint(**json.loads(path.read_text(encoding="utf-8")))
        after = from_json(known.after)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        if isinstance(error, StateError):
            raise
        raise StateError(f"{path} is damaged: it is not what a stream of rounds writes") from None
    if layer is not None:
        check_same_settings(layer, after)
    return known
