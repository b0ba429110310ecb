"""Streams of predictions and labels through a layer for each key: joined by id, served and learned exactly once."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradeq.engine.checks import number
from gradeq.errors import BadInput
from gradeq.layers.keytable import key_table
from gradeq.layers.many import served_names
from gradeq.spark import states as table
from gradeq.spark.buckets import bucket_column, checked_buckets, name_column
from gradeq.spark.desk import REMEMBER
from gradeq.spark.processor import PLACE, TIME, VARIABLE, Task, processor
from gradeq.spark.roles import as_keyed, check_columns, check_frame, roles_of
from gradeq.spark.session import ROCKSDB, STORE, check_spark
from gradeq.spark.work import BUCKET

BUCKETS = 64


class Followed(NamedTuple):
    """A stream with a row for each event, and one with the certificate of each key that a micro-batch touched.

    Write ``whole`` by one query: ``events`` and ``certificates`` are parts of it, and a query on each would keep a
    state of its own.
    """

    whole: Any

    @property
    def events(self) -> Any:
        """A row for each event: key, id, event, outcome, what was served, the reason of a refusal."""
        return events_of(self.whole)

    @property
    def certificates(self) -> Any:
        """A row for each key and micro-batch that touched it: the library's table of keys."""
        return certificates_of(self.whole)


def events_of(whole: Any) -> Any:
    """The events of what a query on ``Followed.whole`` wrote."""
    return whole.where("event is null or event <> 'certificate'").drop("certificate")


def certificates_of(whole: Any) -> Any:
    """The certificates of what a query on ``Followed.whole`` wrote."""
    return whole.where("event = 'certificate'").select("key", "certificate.*")


def together(predictions: Any, labels: Any) -> Any:
    """A stream of predictions and a stream of labels as one: a column that one of them lacks is null there."""
    check_frame(predictions, "predictions")
    check_frame(labels, "labels")
    return predictions.unionByName(labels, allowMissingColumns=True)


def follow(
    frame: Any,
    layer: Any,
    *,
    prediction: str | list[str],
    label: str,
    key: str,
    id: str,
    order: str | list[str],
    time: str | None = None,
    weight: str | None = None,
    state: Any = None,
    buckets: int | None = None,
    remember: int = REMEMBER,
    certificates: bool = True,
) -> Followed:
    """A streaming DataFrame of events through one layer for each key: an outcome for each event, certificates.

    A row with a prediction is served; a row with a label is joined to the prediction of its ``id`` and learned from;
    a row with both is served first. Events of a micro-batch are taken in the order of ``order``, ties as predictions
    before labels, then by id; labels need the key of their prediction. Outcomes: served, applied, duplicate,
    conflict, unknown, expired, rejected (with a reason); none of them ends the stream.

    With a layer that has a ``ttl`` tickets expire: by the times in column ``time``, or, without one, by the clock of
    the micro-batches, with a timer. ``state``: of an earlier table run, or of a stream (``states_in``).
    ``remember``: how many closed ids each bucket keeps to know duplicates.
    """
    check_spark()
    check_frame(frame)
    keyed = as_keyed(layer)
    if not frame.isStreaming:
        raise BadInput("the frame is a table, not a stream; use adjust for it, or readStream")
    roles = roles_of(keyed, prediction, label, key, order, weight=weight, label_time=None, id=id)
    if roles.id is None or roles.label is None:
        raise BadInput("a stream joins labels to predictions by id; name the columns id and label")
    width = keyed._rule.width
    if len(roles.predictions) not in (1, width):
        raise BadInput(
            f"{len(roles.predictions)} prediction columns for {width} levels; give one, or one for each level"
        )
    added = tuple(served_names(keyed, width))
    check_columns(frame, roles, added)
    check_time(frame, time)
    check_store(frame.sparkSession)
    kept = number(remember, "remember")
    if kept != int(kept) or kept < 0:
        raise BadInput(f"remember={remember!r}: give how many closed ids to keep, a whole number")
    pattern = keyed.to_json()
    if state is not None:
        known = table.check_states(state, pattern, stream=True)
        if buckets not in (None, known):
            raise BadInput(f"buckets={buckets!r}: the state has {known}; leave out buckets")
        buckets = known
    count = checked_buckets(BUCKETS if buckets is None else buckets)
    clock = "events" if time is not None else "micro-batches" if keyed._book.ttl else ""
    names = tuple(name for name in key_table(keyed).columns() if name != "key")
    task = Task(pattern, roles, added, names if certificates else (), int(kept), clock)
    return Followed(transformed(frame, state, task, time, count))


def transformed(frame: Any, state: Any, task: Task, time: Any, count: int) -> Any:
    """The stream of outcomes: a desk for each bucket, kept by Spark's state store."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    roles = task.roles
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    name = name_column(frame[roles.key], kinds[roles.key])
    own = {f"{PLACE}{k}": sortable(frame[n], kinds[n]) for k, n in enumerate(roles.order)}
    if time is not None:
        own[TIME] = moments(frame[time], kinds[time])
    narrow = frame.select(
        bucket_column(name, count).alias(BUCKET),
        *(frame[n] for n in dict.fromkeys(roles.needed)),
        *(column.alias(n) for n, column in own.items()),
    )
    numbers = [
        T.StructField(n, T.LongType() if n == "rows" else T.DoubleType()) for n in task.certificates
    ]
    schema = T.StructType(
        [
            T.StructField("key", T.StringType()),
            T.StructField("id", kinds[str(roles.id)]),
            T.StructField("event", T.StringType()),
            T.StructField("outcome", T.StringType()),
            *(T.StructField(n, T.DoubleType()) for n in task.added),
            T.StructField("reason", T.StringType()),
            T.StructField(
                "certificate", T.StructType(numbers or [T.StructField("rows", T.LongType())])
            ),
        ]
    )
    learned = None
    if state is not None:
        book = F.col("book") if "book" in state.columns else F.lit(None).cast("string")
        learned = state.select(F.col("bucket").alias(BUCKET), "state", book.alias("book")).groupBy(
            BUCKET
        )
    mode = "ProcessingTime" if task.clock == "micro-batches" else "None"
    return narrow.groupBy(BUCKET).transformWithState(
        processor(task), schema, "append", mode, learned
    )


def sortable(column: Any, kind: Any) -> Any:
    """A column by which rows are ordered, without the zones and folds of clocks."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    timed = isinstance(kind, (T.TimestampType, T.TimestampNTZType))
    return F.unix_micros(column.cast("timestamp")) if timed else column


def moments(column: Any, kind: Any) -> Any:
    """A column of times as the library has them: numbers as they are, dates in nanoseconds."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(kind, T.NumericType):
        return column.cast("double")
    return (F.unix_micros(column.cast("timestamp")) * 1000).cast("double")


def check_time(frame: Any, time: Any) -> None:
    """Refuse a column of times that is none."""
    from pyspark.sql import types as T

    if time is None:
        return
    if frame.columns.count(time) != 1:
        raise BadInput(f"column {time!r} is missing; the frame has {', '.join(frame.columns)}")
    kind = frame.schema[time].dataType
    if not isinstance(kind, (T.NumericType, T.DateType, T.TimestampType, T.TimestampNTZType)):
        raise BadInput(
            f"column {time!r} holds {kind.simpleString()}, not a number or a date; cast it first"
        )


def check_store(spark: Any) -> None:
    """Refuse a session whose state store cannot keep what a stream needs."""
    if spark.conf.get(f"{STORE}.providerClass", "") != ROCKSDB:
        raise BadInput(
            f"streams need the RocksDB state store; set {STORE}.providerClass to {ROCKSDB}, "
            "or use gradeq.spark.session()"
        )


def states_in(spark: Any, checkpoint: str, buckets: int = BUCKETS) -> Any:
    """The states of a stream that has stopped, out of its checkpoint: a table for ``adjust`` or for a new stream."""
    from pyspark.sql import functions as F

    own = spark.read.format("statestore").option("stateVarName", VARIABLE).load(str(checkpoint))
    return own.select(
        F.col(f"key.{BUCKET}").alias("bucket"),
        F.lit(checked_buckets(buckets)).alias("buckets"),
        F.col("value.state").alias("state"),
        F.col("value.book").alias("book"),
    )
