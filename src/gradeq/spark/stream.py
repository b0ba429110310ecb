"""Streams through one layer per key: joined by id, served and learned exactly once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from gradeq.engine.scalars import as_number
from gradeq.errors import BadInput
from gradeq.inputs.arguments import name_of
from gradeq.layers.key_table import key_table
from gradeq.layers.keyed import Keyed
from gradeq.layers.registry import from_json
from gradeq.spark.bucket import REMEMBER, Bucket, BucketEvent, EventOutcome, restore_bucket
from gradeq.spark.roles import RESERVED_PREFIX, ROCKSDB, STORE, Roles, check_frame, keyed_columns
from gradeq.spark.worker import BUCKET, bucket_column, check_buckets, count_buckets, restore_layer

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession
    from pyspark.sql.streaming import StatefulProcessor
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

    from gradeq.layers.layer import Layer


STATE_NAME = "desk"  # the name of the state in Spark's store
STATE_SCHEMA = "state string, book string"
TIME, PLACE = f"{RESERVED_PREFIX}time", f"{RESERVED_PREFIX}place"
NANOSECONDS = 1_000_000  # in a millisecond


class BucketTask(NamedTuple):
    """What every bucket needs: a fresh layer as JSON, the columns by role, the added columns."""

    pattern: str
    roles: Roles
    added: list[str]
    certificates: tuple[str, ...]  # the columns of a certificate; empty: no certificates
    remember: int
    clock: str  # "events", "micro-batches", or "" where nothing expires


def event_of(row: Row, roles: Roles, time: float | None) -> BucketEvent:
    def number(name: str) -> float:
        return math.nan if row[name] is None else row[name]

    prediction = None
    if any(row[name] is not None for name in roles.predictions):
        levels = tuple(map(number, roles.predictions))
        prediction = levels[0] if len(levels) == 1 else levels
    place = tuple(row[f"{PLACE}{k}"] for k in range(len(roles.order)))
    groups, features = ({name: row[name] for name in names} or None for names in (roles.groups, roles.features))
    weight, now = None if roles.weight is None else number(roles.weight), row[TIME] if time is None else time
    label = row[roles.label]
    return BucketEvent(place, row[roles.key], row[roles.id], prediction, label, groups, features, weight, now)


def stored_bucket(task: BucketTask, known: tuple[str, str] | None) -> Bucket:
    pattern = from_json(task.pattern, Keyed)
    if known is None:
        return Bucket(pattern, task.remember)
    return restore_bucket(restore_layer(known[0], pattern), known[1], task.remember)


def batch_time(task: BucketTask, timers: TimerValues) -> float | None:
    """The time of a micro-batch; None if events have their own."""
    if task.clock == "micro-batches":
        return float(timers.getCurrentProcessingTimeInMs() * NANOSECONDS)
    return None if task.clock == "events" else 0.0


def processor(task: BucketTask) -> StatefulProcessor:
    """The stateful processor of the buckets; defined here because PySpark is optional."""
    from pyspark.sql import Row
    from pyspark.sql.streaming import StatefulProcessor

    columns = Row("key", "id", "event", "outcome", *task.added, "reason", "certificate")
    numbers = Row(*task.certificates)
    blank = (None,) * len(task.added)

    class Buckets(StatefulProcessor):  # type: ignore[misc]  # mypy skips PySpark
        """One state per bucket: its layer and its ticket book."""

        def init(self, handle: StatefulProcessorHandle) -> None:
            self.handle = handle
            self.state = handle.getValueState(STATE_NAME, STATE_SCHEMA)

        def handleInputRows(self, key: tuple[int], rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
            bucket, time = stored_bucket(task, self.state.get()), batch_time(task, timerValues)
            yield from self.output(bucket, bucket.handle(event_of(row, task.roles, time) for row in rows))

        def handleExpiredTimer(
            self, key: tuple[int], timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
        ) -> Iterator[Row]:
            bucket = stored_bucket(task, self.state.get())
            yield from self.output(bucket, bucket.expire(batch_time(task, timerValues)))

        def handleInitialState(self, key: tuple[int], initialState: Row, timerValues: TimerValues) -> None:
            self.save(stored_bucket(task, (initialState["state"], initialState["book"])))

        def output(self, bucket: Bucket, outcomes: Iterable[EventOutcome]) -> Iterator[Row]:
            for event, what, outcome, served, reason in outcomes:
                cells = blank if served is None else served
                yield columns(name_of(event.key), event.id, what or None, outcome, *cells, reason, None)
            if task.certificates:
                for name, figures in bucket.certificates():
                    certificate = numbers(*(figures[column] for column in task.certificates))
                    yield columns(name, None, "certificate", None, *blank, None, certificate)
            self.save(bucket)

        def save(self, bucket: Bucket) -> None:
            self.state.update(bucket.dump())
            due = bucket.next_expiry
            if task.clock == "micro-batches" and due is not None:
                # The first moment after the ticket's life; a superfluous timer does nothing.
                self.handle.registerTimer(int(due // NANOSECONDS) + 1)

        def close(self) -> None:
            pass

    return Buckets()


BUCKETS = 64


class Followed(NamedTuple):
    """A stream with a row per event, and a certificate for each key that a micro-batch changed.

    Write ``whole`` with one query: ``events`` and ``certificates`` are parts of it, and separate queries would keep
    separate states.
    """

    whole: DataFrame

    @property
    def events(self) -> DataFrame:
        """A row per event: key, id, event, outcome, served value, reason for a rejection."""
        return events_of(self.whole)

    @property
    def certificates(self) -> DataFrame:
        """A row per key and micro-batch that changed it: the library's table of keys."""
        return certificates_of(self.whole)


def events_of(whole: DataFrame) -> DataFrame:
    """The events in the output of a query on ``Followed.whole``."""
    return whole.where("event is null or event <> 'certificate'").drop("certificate")


def certificates_of(whole: DataFrame) -> DataFrame:
    """The certificates in the output of a query on ``Followed.whole``."""
    return whole.where("event = 'certificate'").select("key", "certificate.*")


def together(predictions: DataFrame, labels: DataFrame) -> DataFrame:
    """A stream of predictions and a stream of labels as one stream; missing columns are null."""
    check_frame(predictions, "predictions")
    check_frame(labels, "labels")
    return predictions.unionByName(labels, allowMissingColumns=True)


def follow(
    frame: DataFrame,
    layer: Layer,
    *,
    prediction: str | list[str],
    label: str,
    key: str,
    id: str,
    order: str | list[str],
    time: str | None = None,
    weight: str | None = None,
    state: DataFrame | None = None,
    buckets: int | None = None,
    remember: int = REMEMBER,
    certificates: bool = True,
) -> Followed:
    """A stream of events through one layer per key: an outcome per event, and certificates.

    A row with a prediction is served. A row with a label is joined to the prediction with its ``id``, and the layer
    learns from it; both need the same key. A row with both is served first. A micro-batch is sorted by ``order``,
    then predictions before labels, then by id. Outcomes: served, applied, duplicate, conflict, unknown, expired,
    rejected (with a reason); none of them ends the stream.

    If the layer has a ``ttl``, tickets expire by the times in column ``time``, or without one by the clock of the
    micro-batches. ``state`` comes from an earlier table run or from a stream (``states_in``). ``remember`` is the
    number of closed ids that each bucket keeps to recognize duplicates.
    """
    single = {"weight": weight, "id": id, "time": time}
    keyed, roles, added = keyed_columns(frame, layer, prediction, label, key, order, **single)
    if not frame.isStreaming:
        raise BadInput("the frame is a table, not a stream; use adjust for it, or readStream")
    if roles.id is None or roles.label is None:
        raise BadInput("a stream joins labels to predictions by id; name the columns id and label")
    if frame.sparkSession.conf.get(f"{STORE}.providerClass", "") != ROCKSDB:
        raise BadInput(
            f"streams need the RocksDB state store; set {STORE}.providerClass to {ROCKSDB}, "
            "or use gradeq.spark.session()"
        )
    most = as_number(remember, "remember")
    if most != int(most) or most < 0:
        raise BadInput(f"remember={remember!r}: give how many closed ids to keep, a whole number")
    pattern = keyed.to_json()
    count = count_buckets(buckets, BUCKETS, state, pattern, stream=True)
    clock = "events" if time is not None else "micro-batches" if keyed.internals.tickets.ttl else ""
    names = tuple(name for name in key_table(keyed).columns() if name != "key")
    task = BucketTask(pattern, roles, added, names if certificates else (), int(most), clock)
    return Followed(bucket_stream(frame, state, task, count))


def bucket_stream(frame: DataFrame, state: DataFrame | None, task: BucketTask, count: int) -> DataFrame:
    """The stream of outcomes: a bucket per group, kept by Spark's state store."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    roles = task.roles
    kinds = {field.name: field.dataType for field in frame.schema.fields}

    def micros(name: str) -> Column:
        return F.unix_micros(frame[name].cast("timestamp"))

    # Times as the library has them, and an order that does not depend on time zones.
    order = [
        micros(n) if isinstance(kinds[n], (T.TimestampType, T.TimestampNTZType)) else frame[n] for n in roles.order
    ]
    added = [column.alias(f"{PLACE}{k}") for k, column in enumerate(order)]
    if roles.time is not None:
        numeric = isinstance(kinds[roles.time], T.NumericType)
        added.append((frame[roles.time] if numeric else micros(roles.time) * 1000).cast("double").alias(TIME))
    narrow = frame.select(
        bucket_column(frame[roles.key], kinds[roles.key], count).alias(BUCKET),
        *(frame[n] for n in dict.fromkeys(roles.needed)),
        *added,
    )
    certificate = T.StructType()
    for name in task.certificates or ("rows",):
        certificate.add(name, "long" if name == "rows" else "double")
    schema = T.StructType().add("key", "string").add("id", kinds[str(roles.id)])
    schema.add("event", "string").add("outcome", "string")
    for name in task.added:
        schema.add(name, "double")
    schema.add("reason", "string").add("certificate", certificate)
    learned = None
    if state is not None:
        book = F.col("book") if "book" in state.columns else F.lit(None).cast("string")
        learned = state.select(F.col("bucket").alias(BUCKET), "state", book.alias("book")).groupBy(BUCKET)
    mode = "ProcessingTime" if task.clock == "micro-batches" else "None"
    return narrow.groupBy(BUCKET).transformWithState(processor(task), schema, "append", mode, learned)


def states_in(spark: SparkSession, checkpoint: str, buckets: int = BUCKETS) -> DataFrame:
    """The states of a stopped stream from its checkpoint: a table for ``adjust`` or for a new stream."""
    from pyspark.sql import functions as F

    states = spark.read.format("statestore").option("stateVarName", STATE_NAME).load(str(checkpoint))
    return states.select(
        F.col(f"key.{BUCKET}").alias("bucket"),
        F.lit(check_buckets(buckets)).alias("buckets"),
        F.col("value.state").alias("state"),
        F.col("value.book").alias("book"),
    )
