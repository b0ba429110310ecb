"""Streams through real Spark: the bits and outcomes of the library, states that move on, timers, refusals."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

import gradeq as gq
from gradeq.errors import BadInput, StateError
from gradeq.spark import adjust, certificates_of, events_of, follow, refusals, states_in, together
from gradeq.spark.roles import STORE
from gradeq.spark.worker import merge_states
from spark.local_spark import PANDAS
from spark.many_events import COLUMNS, SCHEMA, events_table, library_outcomes, write_batches
from spark.many_rows import by_key, columns_of, library_run, table_of

pytestmark = pytest.mark.filterwarnings(PANDAS)


def stream_of(spark: Any, folder: Path, schema: str = SCHEMA) -> Any:
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def written(spark: Any, followed: Any, folder: Path) -> Any:
    """Everything that is there to be read, through one query into a folder, and what it wrote."""
    query = (
        followed.whole.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    with refusals():
        query.awaitTermination()
    return spark.read.parquet(str(folder / "out"))


def told(whole: Any) -> list[tuple[Any, ...]]:
    names = ("key", "id", "event", "outcome", "adjusted")
    rows = [tuple(row[name] for name in names) for row in events_of(whole).collect()]
    return sorted(rows, key=repr)


def learned(layer: Any) -> dict[str, Any]:
    return {name: own for name, own in by_key(layer).items() if " of " in name}


def test_a_stream_is_the_library_event_by_event_and_moves_to_other_partitions(spark: Any, tmp_path: Path) -> None:
    """Predictions and labels as two streams; then a new query from the state of the first, cut otherwise."""
    table, whole = events_table(21), gq.Keyed(gq.Debiaser(eta=0.1))
    half = int(np.searchsorted(np.asarray(table["at"]), 150.0))
    halves = (table.slice(0, half), table.slice(half))
    state, found = None, []
    for k, part in enumerate(halves):
        folder = tmp_path / f"part{k}"
        folder.mkdir()
        is_label = pc.is_valid(part["sold"])
        write_batches(part.filter(pc.invert(is_label)).drop_columns(["sold"]), folder / "p", 1)
        write_batches(part.filter(is_label).drop_columns(["forecast"]), folder / "l", 1)
        spark.conf.set("spark.sql.shuffle.partitions", str(2 + k))
        both = together(
            stream_of(spark, folder / "p", SCHEMA.replace(", sold double", "")),
            stream_of(spark, folder / "l", SCHEMA.replace(", forecast double", "")),
        )
        followed = follow(both, gq.Debiaser(eta=0.1), state=state, buckets=8, **COLUMNS)
        out = written(spark, followed, folder)
        found += told(out)
        state = states_in(spark, folder / "checkpoint", 8)
        library_outcomes(whole, part)
        texts = [row.state for row in state.collect()]
        assert learned(merge_states(texts)) == learned(whole)
        last = {row.key: row for row in certificates_of(out).collect()}
        own = whole.table().columns()
        assert {key: last[key].theta for key in last} == {
            key: theta for key, theta in zip(own["key"], own["theta"], strict=True) if key in last
        }
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    again = gq.Keyed(gq.Debiaser(eta=0.1))
    assert sorted(found, key=repr) == library_outcomes(again, table)


def test_a_stream_goes_on_from_the_state_of_a_table(spark: Any, tmp_path: Path) -> None:
    table, whole = table_of(22, n=120), gq.Keyed(gq.IntervalTracker(0.8))
    library_run(whole, table, False)
    frame = spark.createDataFrame(table)
    state = adjust(frame, gq.IntervalTracker(0.8), buckets=4, **columns_of(False)).persist().state
    later = events_table(23, n=40)
    write_batches(later, tmp_path / "in", 2)
    followed = follow(stream_of(spark, tmp_path / "in"), gq.IntervalTracker(0.8), state=state, **COLUMNS)
    out = events_of(written(spark, followed, tmp_path))
    expected = library_outcomes(whole, later)
    served = {row.id: (row.lower, row.upper) for row in out.where("outcome = 'served'").collect()}
    assert served == {id: own for _, id, _, outcome, own in expected if outcome == "served"}


def test_tickets_expire_by_a_timer_on_the_clock_of_the_micro_batches(spark: Any, tmp_path: Path) -> None:
    """Nothing but the timer comes after the predictions."""
    table = events_table(24, n=30)
    write_batches(table.filter(pc.is_valid(table["forecast"])), tmp_path / "in", 1)
    layer = gq.Debiaser(eta=0.1, ttl="1s")
    followed = follow(stream_of(spark, tmp_path / "in"), layer, buckets=4, **COLUMNS)
    query = (
        followed.events.writeStream.format("memory")
        .queryName("expiring")
        .trigger(processingTime="300 milliseconds")
        .start()
    )

    def ids(outcome: str) -> list[int]:
        return sorted(row.id for row in spark.table("expiring").where(f"outcome = '{outcome}'").collect())

    try:
        late = time.monotonic() + 240.0
        while time.monotonic() < late and not (ids("served") and ids("served") == ids("expired")):
            time.sleep(0.5)
        assert ids("served") and ids("served") == ids("expired")
    finally:
        query.stop()


WRONG: list[tuple[str, Callable[[Any], Any], dict[str, Any], str]] = [
    ("a table", lambda f: f.sparkSession.createDataFrame([], SCHEMA), {}, "is a table, not a stream"),
    ("no id", lambda f: f, {"id": None}, "joins labels to predictions by id"),
    ("no column", lambda f: f, {"id": "number"}, "column 'number' is missing"),
    ("real ids", lambda f: f, {"id": "at"}, "column 'at' holds double, not text or a whole number"),
    ("no time", lambda f: f, {"time": "when"}, "column 'when' is missing"),
    ("text time", lambda f: f, {"time": "shop"}, "column 'shop' holds string, not a number or a time"),
    ("remember", lambda f: f, {"remember": -1}, "remember=-1"),
    ("levels", lambda f: f, {"prediction": ["forecast", "sold"]}, "2 prediction columns for 1"),
]


@pytest.mark.parametrize(("make", "given", "words"), [own[1:] for own in WRONG], ids=[own[0] for own in WRONG])
def test_wrong_streams_are_refused_before_the_start(
    spark: Any, tmp_path: Path, make: Callable[[Any], Any], given: dict[str, Any], words: str
) -> None:
    (tmp_path / "in").mkdir()
    frame = stream_of(spark, tmp_path / "in")
    with pytest.raises(BadInput, match=words):
        follow(make(frame), gq.Debiaser(eta=0.1), **COLUMNS | given)


def test_another_store_and_damaged_states_are_refused_before_the_start(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    frame, layer = stream_of(spark, tmp_path / "in"), gq.Debiaser(eta=0.1)
    fresh = gq.Keyed(layer).to_json()
    schema = "bucket int, buckets int, state string, book string"
    with pytest.raises(StateError, match="bucket 0: the state is damaged"):
        state = spark.createDataFrame([(0, 4, fresh, '{"format": 2, "sha256": "0"}')], schema)
        follow(frame, layer, state=state, **COLUMNS)
    with pytest.raises(BadInput, match="the state is of a stream, with its open tickets"):
        adjust(spark.createDataFrame(table_of(1, n=5)), layer, state=state, **columns_of(False))
    known = spark.conf.get(f"{STORE}.providerClass")
    spark.conf.set(f"{STORE}.providerClass", "another")
    with pytest.raises(BadInput, match="streams need the RocksDB state store"):
        follow(frame, layer, **COLUMNS)
    spark.conf.set(f"{STORE}.providerClass", known)
