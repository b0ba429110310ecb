"""One layer over all partitions of a table or a stream, not one per key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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


SERVED, SUMS = "adjusted", f"{RESERVED_PREFIX}sums"
FILE = "whole.json"


class RoundColumns(NamedTuple):
    """The columns by role: prediction, label, and the layer's group column if it has one."""

    prediction: str
    label: str
    group: str | None

    def read(self, rows: pa.RecordBatch) -> tuple[Floats, Floats, dict[str, list[object]] | None]:
        """Predictions, labels (nan where null) and groups."""
        if rows[self.prediction].null_count:
            raise BadInput(f"column {self.prediction!r} has nulls; leave out rows without a prediction")
        columns = (rows[name].cast(pa.float64()) for name in (self.prediction, self.label))
        base, labels = (column.to_numpy(zero_copy_only=False) for column in columns)
        return base, labels, None if self.group is None else {self.group: rows[self.group].to_pylist()}


class Whole(NamedTuple):
    """The result for a table: rows with served values, the layer after the last round, and every round."""

    rows: DataFrame
    layer: Debiaser
    rounds: tuple[Round, ...]


def adjust_whole(frame: DataFrame, layer: Debiaser, *, prediction: str, label: str, batch: str) -> Whole:
    """A table through one layer, round by round; ``batch`` is the column with the round of a row.

    Rounds are taken in the order of that column. A null label means no label. Each round is a Spark job over its
    rows, so ``frame.persist()`` pays if the frame is expensive to compute. The layer you pass in does not change.
    """
    columns = check_rounds(frame, layer, prediction, label)
    check_fresh(layer)
    check_column(frame, column_or_none(batch, "batch", needed=True), "text, a whole number or a date")
    if batch in columns:
        raise BadInput(f"column {batch!r} cannot also be the column batch; each column has one role")
    with refusals():
        values = [row[0] for row in frame.select(batch).distinct().collect()]
    if None in values:
        raise BadInput(f"column {batch!r} has nulls; every row belongs to a round")
    after, sums, rounds, before = layer.copy(), Part(), list[Round](), {}
    for value in sorted(values):
        before[str(value)] = after.to_json()
        part = sums_of_round(frame.where(frame[batch] == value), after, columns)
        after, sums, done = posted(after, sums, part)
        rounds.append(done)
    return Whole(with_served(frame, before, columns, batch), after, tuple(rounds))


def check_rounds(frame: DataFrame, layer: Debiaser, prediction: str, label: str) -> RoundColumns:
    """The columns by role; raises before any job starts."""
    check_spark()
    check_layer(layer)
    check_frame(frame)
    columns = RoundColumns(prediction, label, next(iter(layer.internals.names.groups), None))
    check_column(frame, column_or_none(prediction, "prediction", needed=True), "a number")
    check_column(frame, column_or_none(label, "label", needed=True), "a number or a truth value")
    check_column(frame, columns.group, "text, a whole number or a truth value")
    if len(set(columns)) < len(columns):
        raise BadInput(f"prediction={prediction!r}, label={label!r}: a column is given twice; each has one role")
    check_free(frame, [SERVED])
    return columns


def check_fresh(layer: Debiaser) -> None:
    """Raise if the layer has served: its sums are floats, no longer exact."""
    if layer.internals.state.facts[fact.SERVED]:
        raise BadInput("the layer has served rows already; give a fresh one")


def sums_of_round(frame: DataFrame, layer: Debiaser, columns: RoundColumns) -> Part:
    """What the labels of a round add, over all partitions."""
    text = layer.to_json()

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        before = from_json(text, Debiaser)
        parts = (part_of(before, *columns.read(batch))[1] for batch in batches if len(batch))
        yield pa.record_batch([pa.array([json.dumps(plain_sums(reduce(together, parts, Part())))])], [SUMS])

    with refusals():
        used = [name for name in columns if name is not None]
        texts = frame.select(*used).mapInArrow(add, f"{SUMS} string").collect()
    return reduce(together, (exact_sums(json.loads(row[0])) for row in texts), Part())


def plain_sums(part: Part) -> dict[str, object]:
    return {name: sums.state() for name, sums in part.items()}


def exact_sums(plain: Mapping[str, object]) -> Part:
    return {name: RoundSums.of(state) for name, state in plain.items()}


def with_served(
    frame: DataFrame, before: Mapping[str, str], columns: RoundColumns, batch: str | None = None
) -> DataFrame:
    """The rows with served values: each round from the state before it; without rounds, all from one."""
    from pyspark.sql import types as T

    schema = T.StructType([*frame.schema.fields, T.StructField(SERVED, T.DoubleType())])

    def serve(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        layers: dict[str, Debiaser] = {}
        for rows in batches:
            adjusted = np.empty(len(rows))
            rounds = np.array([""] * len(rows) if batch is None else list(map(str, rows[batch].to_pylist())))
            for value in np.unique(rounds).tolist():
                if value not in layers:
                    layers[value] = from_json(before[value], Debiaser)
                places = np.flatnonzero(rounds == value)
                base, _, groups = columns.read(rows.take(pa.array(places)))
                adjusted[places] = served(layers[value], base, groups)
            yield pa.record_batch([*rows.columns, pa.array(adjusted)], [*rows.schema.names, SERVED])

    return frame.mapInArrow(serve, schema)


@dataclass(frozen=True)
class RoundCheckpoint:
    """The saved result of a round of a stream: number, layer before and after, exact sums, the round."""

    batch: int
    before: str
    after: str
    sums: dict[str, object]
    round: Round


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
    crash Spark repeats the last micro-batch: if it was already written nothing changes, and its rows are served from
    the same state. ``write`` may get a micro-batch twice, with the same rows; let it overwrite by number.
    """
    check_spark()
    check_layer(layer)
    check_fresh(layer)
    path = Path(folder) / FILE
    read_checkpoint(path, layer)

    def post(frame: DataFrame, batch: int) -> None:
        columns = check_rounds(frame, layer, prediction, label)
        last = read_checkpoint(path, layer)
        if last is not None and batch < last.batch:
            raise BadInput(
                f"micro-batch {batch} comes after {last.batch} was written to {path}; "
                "use the checkpoint that belongs to this folder, or a new folder for both"
            )
        frame = frame.persist()
        try:
            if last is None or batch > last.batch:
                before = layer.copy() if last is None else from_json(last.after, Debiaser)
                sums = Part() if last is None else exact_sums(last.sums)
                after, sums, done = posted(before, sums, sums_of_round(frame, before, columns))
                last = RoundCheckpoint(batch, before.to_json(), after.to_json(), plain_sums(sums), done)
                path.parent.mkdir(parents=True, exist_ok=True)
                write_text(path, [json.dumps(asdict(last))])
            if write is not None:
                with refusals():
                    write(with_served(frame, {"": last.before}, columns), batch)
        finally:
            frame.unpersist()

    return post


def layer_in(folder: str | PathLike[str]) -> tuple[Debiaser, Round]:
    """The layer that a stream left in a folder, and its last round."""
    last = read_checkpoint(Path(folder) / FILE)
    if last is None:
        raise BadInput(f"{folder} has no {FILE}; no micro-batch has ended yet")
    return from_json(last.after, Debiaser), last.round


def read_checkpoint(path: Path, layer: Debiaser | None = None) -> RoundCheckpoint | None:
    """The last checkpoint, None without one; raises if it is damaged or has other settings."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        last = RoundCheckpoint(**fields | {"round": Round(*fields["round"])})
        after = from_json(last.after)
    except FileNotFoundError:
        return None
    except StateError:
        raise
    except (ValueError, TypeError, KeyError):
        raise StateError(f"{path} is damaged: it is not what a stream of rounds writes") from None
    if layer is not None:
        check_same_settings(layer, after)
    return last
