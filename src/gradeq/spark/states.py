"""The state of many keys as a table of Spark: a row for each bucket, with the library's JSON of its layer.

``bucket``, ``buckets`` (how many there are) and ``state``. However Spark cuts its partitions, a key stays in its
bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradeq.errors import BadInput, StateError
from gradeq.layers.keytable import key_table
from gradeq.layers.registry import from_json
from gradeq.spark.desk import desk_of
from gradeq.spark.refusals import refusals
from gradeq.spark.roles import check_frame
from gradeq.spark.work import problem_of

SCHEMA = "bucket int, buckets int, state string"
BOOK = "book"


def check_states(states: Any, pattern: str, stream: bool = False) -> int:
    """How many buckets a table of states has; one that is damaged or of other settings is refused, by a small job.

    Those of a ``stream`` may have books of tickets, which a table run cannot go on with.
    """
    check_frame(states, "state")
    kinds = {"bucket": "int", "buckets": "int", "state": "string"}
    found = {field.name: field.dataType.simpleString() for field in states.schema.fields}
    if {name: found.get(name) for name in kinds} != kinds:
        raise BadInput(
            f"state has the columns {', '.join(f'{n} {k}' for n, k in found.items())}, not {SCHEMA}; give the "
            "state of an earlier run"
        )
    if not stream and BOOK in found:
        raise BadInput(
            "the state is of a stream, with its open tickets; give it to follow, or drop its column book to go on "
            "without them"
        )

    def looked_at(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        layer = from_json(pattern)
        for batch in batches:
            texts = batch["state"].to_pylist()
            books = batch[BOOK].to_pylist() if BOOK in batch.schema.names else [None] * len(texts)
            whole = desk_of if stream else None
            problems = [
                problem_of(layer, text, book, whole)
                for text, book in zip(texts, books, strict=True)
            ]
            yield pa.record_batch(
                [batch["bucket"], batch["buckets"], pa.array(problems, pa.string())],
                ["bucket", "buckets", "problem"],
            )

    with refusals():
        rows = states.mapInArrow(looked_at, "bucket int, buckets int, problem string").collect()
    if not rows:
        raise BadInput("the state has no rows; leave it out to begin afresh")
    for row in rows:
        if row.problem is not None:
            raise StateError(f"bucket {row.bucket}: {row.problem}")
    counts = {row.buckets for row in rows}
    if len(counts) > 1 or len({row.bucket for row in rows}) < len(rows):
        raise StateError(
            "the state has a bucket twice, or of several runs; give the state of one run, not several together"
        )
    return int(rows[0].buckets)


def merged(texts: list[str]) -> Any:
    """One layer of the library with the keys of all these buckets, joined two by two."""
    layers = [from_json(text) for text in texts]
    while len(layers) > 1:
        for own, other in zip(layers[::2], layers[1::2], strict=False):
            own.merge(other)
        layers = layers[::2]
    return layers[0]


def certificates(states: Any, pattern: str) -> Any:
    """The library's table of keys, of all buckets: a row for each key (and group)."""
    from pyspark.sql import types as T

    kinds = {"key": T.StringType(), "rows": T.LongType()}
    names = list(key_table(from_json(pattern)).columns())
    schema = T.StructType([T.StructField(n, kinds.get(n, T.DoubleType())) for n in names])

    def tables(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for text in batch["state"].to_pylist():
                columns = key_table(from_json(text)).columns()
                yield pa.record_batch([pa.array(own) for own in columns.values()], list(columns))

    return states.mapInArrow(tables, schema)
