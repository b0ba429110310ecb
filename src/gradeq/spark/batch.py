"""Whole tables of Spark through a layer of many keys, bit for bit what the library serves.

Keys go into buckets; each bucket is one ``Keyed.run`` of the library over its rows in their order. Rows and states
come out of one computation.
"""

from __future__ import annotations

from os import PathLike
from typing import Any, NamedTuple

from gradeq.errors import BadInput
from gradeq.layers.keyed import Keyed
from gradeq.layers.many import served_names
from gradeq.spark import states as table
from gradeq.spark.buckets import BUCKETS, bucket_column, checked_buckets, name_column
from gradeq.spark.refusals import refusals
from gradeq.spark.roles import (
    as_keyed,
    check_columns,
    check_frame,
    roles_of,
)
from gradeq.spark.session import check_spark
from gradeq.spark.work import BUCKET, LAST, STATE, Job, adjust_bucket


class Adjusted(NamedTuple):
    """Rows with what was served, the state, and certificates, all out of one table that Spark makes when it is asked.

    ``whole`` has the rows, and after those of each bucket a row with its state. Every look at one of the tables makes
    it again, with the same result; ``persist()`` keeps it, ``write(folder)`` writes it once.
    """

    whole: Any
    buckets: int
    pattern: str

    @property
    def rows(self) -> Any:
        """The rows that were given, with the adjusted columns."""
        return self.whole.where(self.whole[STATE].isNull()).drop(BUCKET, STATE)

    @property
    def state(self) -> Any:
        """What was learned, a row for each bucket: give it to the next run."""
        from pyspark.sql import functions as F

        own = self.whole.where(self.whole[STATE].isNotNull())
        return own.select(
            F.col(BUCKET).alias("bucket"),
            F.lit(self.buckets).alias("buckets"),
            F.col(STATE).alias("state"),
        )

    @property
    def certificates(self) -> Any:
        """Bias or coverage, loss, parameter and certificate of each key: the library's table of keys."""
        return table.certificates(self.state, self.pattern)

    def layer(self) -> Keyed:
        """The library's layer of all keys, here on the driver, for whatever the library can tell of it."""
        with refusals():
            texts = [row.state for row in self.state.orderBy("bucket").collect()]
        found = table.merged(texts or [self.pattern])
        assert isinstance(found, Keyed)
        return found

    def equilibrium(self) -> Any:
        """The overall certificate: all keys together, as the library's layer has it."""
        return self.layer().equilibrium()

    def persist(self) -> Adjusted:
        """The same, made once and kept by Spark until ``unpersist()``."""
        kept = self.whole.persist()
        with refusals():
            kept.count()
        return self._replace(whole=kept)

    def unpersist(self) -> None:
        """Let go of what ``persist`` kept."""
        self.whole.unpersist()

    def write(self, folder: str | PathLike[str]) -> Adjusted:
        """Make everything once and write it to a folder as Parquet; what comes back reads from there.

        Spark marks a folder that is whole with ``_SUCCESS``; ``read`` refuses one that is not.
        """
        from pyspark.sql import functions as F

        own = self.whole.withColumn(PATTERN, F.lit(self.pattern)).withColumn(
            COUNT, F.lit(self.buckets)
        )
        with refusals():
            own.write.parquet(str(folder))
        return read(self.whole.sparkSession, folder)


PATTERN, COUNT = "_gradeq_pattern", "_gradeq_buckets"


def read(spark: Any, folder: str | PathLike[str]) -> Adjusted:
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
    frame: Any,
    layer: Any,
    *,
    prediction: str | list[str],
    label: str | None = None,
    key: str,
    order: str | list[str],
    weight: str | None = None,
    label_time: str | None = None,
    id: str | None = None,
    state: Any = None,
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
    check_spark()
    check_frame(frame)
    keyed = as_keyed(layer)
    single = {"weight": weight, "label_time": label_time, "id": id}
    roles = roles_of(keyed, prediction, label, key, order, **single)
    width = keyed._rule.width
    if len(roles.predictions) not in (1, width):
        raise BadInput(
            f"{len(roles.predictions)} prediction columns for {width} levels; give one, or one for each level"
        )
    if label_time is not None and keyed._book.ttl is not None:
        raise BadInput(
            "label_time and a layer with ttl do not go together on Spark: tickets would expire by rows of other "
            "keys; leave out ttl"
        )
    added = served_names(keyed, width)
    check_columns(frame, roles, added)
    pattern = keyed.to_json()
    if state is not None:
        known = table.check_states(state, pattern)
        if buckets not in (None, known):
            raise BadInput(f"buckets={buckets!r}: the state has {known}; leave out buckets")
        buckets = known
    count = checked_buckets(BUCKETS if buckets is None else buckets)
    whole = bucketed(frame, state, Job(pattern, roles, added), count)
    return Adjusted(whole, count, pattern)


def bucketed(frame: Any, state: Any, job: Job, count: int) -> Any:
    """The table of rows and states, one library run for each bucket."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    roles = job.roles
    key = frame[roles.key]
    own = frame.withColumn(
        BUCKET, bucket_column(name_column(key, frame.schema[roles.key].dataType), count)
    )
    if state is None:
        state = frame.sparkSession.createDataFrame([], table.SCHEMA)
    learned = state.select("bucket", "state")
    if roles.label_time is not None:
        # The last row in the order of ``work.ordered``, where a key that is none comes last.
        place = F.struct(*roles.order, key.isNull().alias(f"{LAST}_none"), roles.key)
        last = frame.agg(F.max(place).alias(LAST))
        own = own.crossJoin(F.broadcast(last))
        learned = learned.crossJoin(F.broadcast(last.select(F.col(LAST).alias(LAST))))
    fields = [T.StructField(f.name, f.dataType) for f in frame.schema.fields]
    fields += [T.StructField(name, T.DoubleType()) for name in job.added]
    fields += [T.StructField(BUCKET, T.IntegerType()), T.StructField(STATE, T.StringType())]

    def each(group: Any, rows: Any, states: Any) -> Any:
        return adjust_bucket(job, int(group[0].as_py()), rows, states)

    return (
        own.groupBy(BUCKET)
        .cogroup(learned.groupBy("bucket"))
        .applyInArrow(each, T.StructType(fields))
    )
