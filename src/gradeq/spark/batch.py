"""Tables of Spark through a layer with many keys, or games into a leaderboard, bit for bit as the library.

Keys are hashed into buckets; each bucket is one ``Keyed.run`` of the library over its rows in order. Rows and states
come out of one computation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from gradeq.errors import BadInput
from gradeq.layers.elo import Elo
from gradeq.layers.registry import from_json
from gradeq.ledger import facts as fact
from gradeq.spark import worker
from gradeq.spark.roles import (
    KeyedLayer,
    check_column,
    check_frame,
    check_spark,
    column_or_none,
    keyed_columns,
    refusals,
)
from gradeq.spark.worker import BUCKET, BUCKETS, LAST, STATE, Job, adjust_bucket, bucket_column, count_buckets

if TYPE_CHECKING:
    import numpy.typing as npt
    from pyspark.sql import DataFrame, SparkSession

    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.layer import Layer


@dataclass(frozen=True)
class Adjusted:
    """Rows with served values, the state, and certificates, from one table that Spark computes lazily.

    ``whole`` has the rows, and after those of each bucket a row with its state. Each use of a table computes
    it again, with the same result; ``persist()`` keeps it, ``write(folder)`` writes it once.
    """

    whole: DataFrame
    buckets: int
    pattern: str

    @property
    def rows(self) -> DataFrame:
        """The input rows with the adjusted columns."""
        return self.whole.where(self.whole[STATE].isNull()).drop(BUCKET, STATE)

    @property
    def state(self) -> DataFrame:
        """What was learned, one row per bucket: pass it to the next run."""
        from pyspark.sql import functions as F

        bucket, buckets, state = F.col(BUCKET), F.lit(self.buckets), F.col(STATE)
        states = self.whole.where(self.whole[STATE].isNotNull())
        return states.select(bucket.alias("bucket"), buckets.alias("buckets"), state.alias("state"))

    @property
    def certificates(self) -> DataFrame:
        """Bias or coverage, loss, parameter and certificate of each key: the library's table of keys."""
        return worker.certificates(self.state, self.pattern)

    def layer(self) -> KeyedLayer:
        """The library's layer with all keys, on the driver."""
        with refusals():
            texts = [row.state for row in self.state.orderBy("bucket").collect()]
        return worker.merge_states(texts or [self.pattern])

    def equilibrium(self) -> Equilibrium:
        """The overall certificate of all keys."""
        return self.layer().equilibrium()

    def persist(self) -> Adjusted:
        """The same, computed once and kept by Spark until ``unpersist()``."""
        whole = self.whole.persist()
        with refusals():
            whole.count()
        return replace(self, whole=whole)

    def unpersist(self) -> None:
        """Release what ``persist`` kept."""
        self.whole.unpersist()

    def write(self, folder: str | PathLike[str]) -> Adjusted:
        """Compute everything once and write it to a folder as Parquet; the result reads from there.

        Spark marks a complete folder with ``_SUCCESS``; ``read`` refuses one without it.
        """
        from pyspark.sql import functions as F

        table = self.whole.withColumn(PATTERN, F.lit(self.pattern)).withColumn(COUNT, F.lit(self.buckets))
        with refusals():
            table.write.parquet(str(folder))
        return read(self.whole.sparkSession, folder)


PATTERN, COUNT = "_gradeq_pattern", "_gradeq_buckets"


def read(spark: SparkSession, folder: str | PathLike[str]) -> Adjusted:
    """What ``Adjusted.write`` wrote to this folder."""
    from pyspark.errors import AnalysisException

    try:
        whole = spark.read.parquet(str(folder))
        first = whole.select(PATTERN, COUNT).head()
        # Of a run that was cut off some files may be there, but never this one.
        spark.read.text(f"{folder}/_SUCCESS").count()
    except AnalysisException:
        raise BadInput(
            f"{folder} is not what adjust(...).write(folder) wrote, or it was cut off; write it again"
        ) from None
    return Adjusted(whole.drop(PATTERN, COUNT), int(first[COUNT]), str(first[PATTERN]))


def adjust(
    frame: DataFrame,
    layer: Layer,
    *,
    prediction: str | list[str],
    label: str | None = None,
    key: str,
    order: str | list[str],
    weight: str | None = None,
    label_time: str | None = None,
    id: str | None = None,
    state: DataFrame | None = None,
    buckets: int | None = None,
) -> Adjusted:
    """A Spark DataFrame through one layer for each key: rows with what was served, the state, certificates.

    The same bits as ``gradeq.Keyed(layer).run(...)`` over all rows in the order of ``order``, ties between keys in
    the order of their keys; two rows of one key that tie are refused. Groups and features are columns with the names
    that the layer gave them. With ``label_time`` labels are learned from when they are due, by the time in the first
    column of ``order``; those not due by the last row of the frame wait in the state. ``state``: that of an earlier
    run. ``buckets``: into how many parts keys are put, 256 if left out; a later run keeps to that of its state.

    Nothing runs until a result is asked for, but for a look at the state; ``Adjusted.write`` runs everything once.
    """
    single = {"weight": weight, "label_time": label_time, "id": id}
    keyed, roles, added = keyed_columns(frame, layer, prediction, label, key, order, **single)
    if label_time is not None and keyed.internals.tickets.ttl is not None:
        raise BadInput(
            "label_time and a layer with ttl do not go together on Spark: tickets would expire by rows of other "
            "keys; leave out ttl"
        )
    pattern = keyed.to_json()
    count = count_buckets(buckets, BUCKETS, state, pattern)
    return Adjusted(bucket_table(frame, state, Job(pattern, roles, added), count), count, pattern)


def bucket_table(frame: DataFrame, state: DataFrame | None, job: Job, count: int) -> DataFrame:
    """The table of rows and states, one library run per bucket."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    roles, key = job.roles, frame[job.roles.key]
    rows = frame.withColumn(BUCKET, bucket_column(key, frame.schema[roles.key].dataType, count))
    if state is None:
        state = frame.sparkSession.createDataFrame([], worker.SCHEMA)
    learned = state.select("bucket", "state")
    if roles.label_time is not None:
        # The last row in the order of ``worker.sort_rows``, where a null key comes last.
        place = F.struct(*roles.order, key.isNull().alias(f"{LAST}_none"), roles.key)
        last = frame.agg(F.max(place).alias(LAST))
        rows = rows.crossJoin(F.broadcast(last))
        learned = learned.crossJoin(F.broadcast(last.select(F.col(LAST).alias(LAST))))
    fields = [T.StructField(f.name, f.dataType) for f in frame.schema.fields]
    fields += [T.StructField(name, T.DoubleType()) for name in job.added]
    fields += [T.StructField(BUCKET, T.IntegerType()), T.StructField(STATE, T.StringType())]

    def each(group: tuple[pa.Scalar, ...], rows: pa.Table, states: pa.Table) -> pa.Table:
        return adjust_bucket(job, int(group[0].as_py()), rows, states)

    return rows.groupBy(BUCKET).cogroup(learned.groupBy("bucket")).applyInArrow(each, T.StructType(fields))


MERGE_FANOUT = 8  # layers that one worker merges


def elo(
    frame: DataFrame, layer: Elo, *, a: str, b: str, score: str, weight: str | None = None, home: str | None = None
) -> Elo:  # fmt: skip
    """The layer after all games of a table; ``leaderboard("all-time")`` is that of one machine, bit for bit.

    Each partition is played by a layer of its own, and the layers are merged in a tree. What is learned game by game
    depends on the order of games and means little after a merge; the table of who met whom, and how it went, does
    not, and the all-time leaderboard is made from that alone. Null scores are refused, as in the library.
    """
    names = _game_columns(frame, layer, {"a": a, "b": b, "score": score, "weight": weight, "home": home})
    pattern = layer.to_json()

    def play(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        part = from_json(pattern, Elo)
        for batch in batches:
            if len(batch):
                first, second = (batch[names[side]].to_pylist() for side in ("a", "b"))
                scores, weights, homes = (_numbers(batch, names.get(role)) for role in ("score", "weight", "home"))
                part.run(first, second, scores, weights=weights, home=homes)
        yield pa.record_batch([pa.array([part.to_json()])], [STATE])

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        merged = from_json(pattern, Elo)
        for batch in batches:
            for text in batch[STATE].to_pylist():
                merged.merge(from_json(text, Elo))
        yield pa.record_batch([pa.array([merged.to_json()])], [STATE])

    parts = frame.rdd.getNumPartitions()
    states = frame.select(*names.values()).mapInArrow(play, f"{STATE} string")
    while parts > MERGE_FANOUT:
        parts = -(-parts // MERGE_FANOUT)
        states = states.repartition(parts).mapInArrow(merge, f"{STATE} string")
    with refusals():
        texts = [row[0] for row in states.collect()]
    merged = layer.copy()
    for text in texts:
        merged.merge(from_json(text, Elo))
    return merged


def _numbers(batch: pa.RecordBatch, name: str | None) -> npt.NDArray[np.float64] | None:
    if name is None:
        return None
    if batch[name].null_count:
        raise BadInput(f"column {name!r} has nulls; leave out games without it")
    return np.asarray(batch[name].cast(pa.float64()).to_numpy(zero_copy_only=False))


def _game_columns(frame: DataFrame, layer: Elo, roles: dict[str, str | None]) -> dict[str, str]:
    """The columns by role; raises before any job starts."""
    check_spark()
    check_frame(frame)
    if not isinstance(layer, Elo):
        raise BadInput(f"layer is {layer!r}; give an Elo layer such as gradeq.Elo(eta=0.1)")
    if layer.internals.state.facts[fact.SERVED]:
        raise BadInput("the layer has served games already; give a fresh one, and merge it afterwards")
    if layer.dates:
        raise BadInput("partitions know no order of dates; give an Elo layer without dates")
    names = {role: column_or_none(name, role, needed=role in ("a", "b", "score")) for role, name in roles.items()}
    for role, name in names.items():
        check_column(frame, name, "text or a whole number" if role in ("a", "b") else "a number or a truth value")
    return {role: name for role, name in names.items() if name is not None}
