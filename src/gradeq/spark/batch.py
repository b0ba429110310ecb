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

    ``whole`` has the rows of each bucket, then one row with its state. Spark computes it again for each use, with the
    same result, unless you call ``persist()`` or ``write(folder)``.
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

        states = self.whole.where(self.whole[STATE].isNotNull()).withColumn("buckets", F.lit(self.buckets))
        return states.select(F.col(BUCKET).alias("bucket"), "buckets", F.col(STATE).alias("state"))

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
        """Free the memory and disk that ``persist`` uses."""
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
    """A Spark DataFrame through one layer per key: rows with served values, the state, certificates.

    Results are equal, bit for bit, to ``gradeq.Keyed(layer).run(...)`` over all rows sorted by ``order``, then by
    key; two rows of one key with equal ``order`` are an error. Groups and features are columns with the names that
    the layer has for them. With ``label_time`` a label is learned from when it is due, by the first column of
    ``order``; labels not due by the last row of the frame wait in the state. ``state`` is that of an earlier run.
    ``buckets`` is the number of parts that keys are hashed into (default 256, or that of the state).

    Only a check of the state runs at once; the rest runs when a result is used. ``Adjusted.write`` runs it once.
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
    schema = T.StructType([T.StructField(field.name, field.dataType) for field in frame.schema.fields])
    for name in job.added:
        schema.add(name, "double")
    schema.add(BUCKET, "integer").add(STATE, "string")

    def each(group: tuple[pa.Scalar, ...], rows: pa.Table, states: pa.Table) -> pa.Table:
        return adjust_bucket(job, int(group[0].as_py()), rows, states)

    return rows.groupBy(BUCKET).cogroup(learned.groupBy("bucket")).applyInArrow(each, schema)


MERGE_FANOUT = 8  # layers that one worker merges


def elo(
    frame: DataFrame, layer: Elo, *, a: str, b: str, score: str, weight: str | None = None, home: str | None = None
) -> Elo:  # fmt: skip
    """The layer after all games of a table; ``leaderboard("all-time")`` equals that of one machine, bit for bit.

    Each partition has its own layer, and the layers are merged in a tree. Ratings learned game by game depend on the
    order of games and mean little after a merge. The table of pairs and results does not depend on it, and the
    all-time leaderboard is computed from that table alone. Null scores are an error, as in the library.
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
