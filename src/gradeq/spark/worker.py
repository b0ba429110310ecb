"""What a worker does with one bucket of keys: sort its rows, run the library's layer, keep its state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gradeq.engine.scalars import as_number
from gradeq.errors import BadInput, StateError
from gradeq.files.codebook import Codebook
from gradeq.inputs.arguments import MISSING_NAME
from gradeq.layers import columns as layer_columns
from gradeq.layers.internals import silenced
from gradeq.layers.key_table import key_table
from gradeq.layers.keyed import Keyed
from gradeq.layers.layer import Layer
from gradeq.layers.registry import from_json
from gradeq.layers.serialization import check_same_settings
from gradeq.layers.waiting import settle
from gradeq.spark.bucket import restore_bucket
from gradeq.spark.roles import RESERVED_PREFIX, KeyedLayer, Roles, check_frame, refusals
from gradeq.tables import agreeing, some

if TYPE_CHECKING:
    import numpy.typing as npt
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    Floats = npt.NDArray[np.float64]


BUCKETS = 256
MAX_BUCKETS = 1 << 20
SCHEMA = "bucket int, buckets int, state string"
BOOK = "book"
BUCKET, STATE, LAST = (f"{RESERVED_PREFIX}bucket", f"{RESERVED_PREFIX}state", f"{RESERVED_PREFIX}last")


def check_buckets(buckets: object) -> int:
    count = as_number(buckets, "buckets")
    if isinstance(buckets, bool) or count != int(count) or not 1 <= count <= MAX_BUCKETS:
        raise BadInput(f"buckets={buckets!r}: give a whole number from 1 to {MAX_BUCKETS:,}")
    return int(count)


def key_names(column: pa.Array) -> pa.Array:
    """The name of every key of an Arrow column, as text: 7 and "7.0" are one."""
    book = Codebook()
    codes = book.codes(column)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(book.names, pa.string())).cast(pa.string())


def bucket_column(column: Column, kind: DataType, buckets: int) -> Column:
    """The bucket of each key: the CRC-32 of its name; whole numbers need no Python for it."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(kind, T.IntegralType):
        name = F.coalesce(column.cast("string"), F.lit(MISSING_NAME))
    else:
        name = F.arrow_udf(key_names, "string")(column)
    return (F.crc32(name.cast("binary")) % F.lit(buckets)).cast("int")


def check_states(states: DataFrame, pattern: str, stream: bool = False) -> int:
    """How many buckets a table of states has; raises if it is damaged or has other settings (a small job).

    States of a ``stream`` may have ticket books, which a table run cannot continue.
    """
    from pyspark.sql import functions as F

    check_frame(states, "state")
    columns = [f"{field.name} {field.dataType.simpleString()}" for field in states.schema.fields]
    if not set(SCHEMA.split(", ")) <= set(columns):
        raise BadInput(f"state has the columns {', '.join(columns)}, not {SCHEMA}; give the state of an earlier run")
    if not stream and BOOK in states.columns:
        raise BadInput(
            "the state is of a stream, with its open tickets; give it to follow, or drop its column book to go on "
            "without them"
        )

    problem = F.udf(lambda text, book: state_problem(from_json(pattern), text, book, stream), "string")
    book = F.col(BOOK) if BOOK in states.columns else F.lit(None).cast("string")
    with refusals():
        rows = states.select("bucket", "buckets", problem("state", book).alias("problem")).collect()
    if not rows:
        raise BadInput("the state has no rows; leave it out to start fresh")
    for row in rows:
        if row.problem is not None:
            raise StateError(f"bucket {row.bucket}: {row.problem}")
    if len({row.buckets for row in rows}) > 1 or len({row.bucket for row in rows}) < len(rows):
        raise StateError("the state has a bucket twice, or of several runs; give the state of one run")
    return int(rows[0].buckets)


def state_problem(pattern: Layer, text: str | None, book: str | None = None, stream: bool = False) -> str | None:
    """What is wrong with a saved bucket, or None; only a bucket of a stream may have a ticket book."""
    try:
        if text is None:
            raise StateError("the state of a bucket is missing; take the whole table of an earlier run")
        layer = restore_layer(text, pattern)
        if stream:
            restore_bucket(layer, book)
    except StateError as refusal:
        return str(refusal)
    return None


def count_buckets(
    buckets: int | None, default: int, state: DataFrame | None, pattern: str, stream: bool = False
) -> int:
    """The number of buckets: of the state if there is one, else ``buckets`` or the default."""
    if state is None:
        return check_buckets(default if buckets is None else buckets)
    known = check_states(state, pattern, stream)
    if buckets not in (None, known):
        raise BadInput(f"buckets={buckets!r}: the state has {known}; leave out buckets")
    return check_buckets(known)


def merge_states(texts: list[str]) -> KeyedLayer:
    """One layer with the keys of all these buckets, merged in pairs."""
    layers = [from_json(text, Keyed) for text in texts]
    while len(layers) > 1:
        for layer, other in zip(layers[::2], layers[1::2], strict=False):
            layer.merge(other)
        layers = layers[::2]
    return layers[0]


def restore_layer(text: str, pattern: Layer) -> KeyedLayer:
    """The layer of a saved bucket; raises if its kind or settings differ from the pattern's."""
    layer = from_json(text)
    check_same_settings(pattern, layer)
    assert isinstance(layer, Keyed)
    return layer


def certificates(states: DataFrame, pattern: str) -> DataFrame:
    """The library's table of keys over all buckets: a row per key (and group)."""
    from pyspark.sql import types as T

    kinds = {"key": T.StringType(), "rows": T.LongType()}
    names = list(key_table(from_json(pattern)).columns())
    schema = T.StructType([T.StructField(n, kinds.get(n, T.DoubleType())) for n in names])

    def tables(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch["state"].to_pylist():
                columns = key_table(from_json(text)).columns()
                yield pa.record_batch([pa.array(column) for column in columns.values()], list(columns))

    return states.mapInArrow(tables, schema)


class Job(NamedTuple):
    """What every bucket needs: a fresh layer as JSON, the columns by role, the added columns."""

    pattern: str
    roles: Roles
    added: list[str]


def adjust_bucket(job: Job, bucket: int, rows: pa.Table, states: pa.Table) -> pa.Table:
    """The rows of a bucket with served values, and after them one row with the bucket's new state."""
    roles, pattern = job.roles, from_json(job.pattern, Keyed)
    layer = restore_layer(states["state"][0].as_py(), pattern) if len(states) else pattern
    timed, waiting = roles.label_time is not None, len(layer.internals.tickets.waiting)
    if not timed and waiting:
        raise BadInput(
            f"the state holds {some(waiting, 'label')} that {agreeing(waiting, 'was', 'were')} not due yet; "
            "give label_time, so that they can be posted when they are"
        )
    # Order and key of the last row of the whole frame, which may lie in another bucket.
    last = (rows if len(rows) else states)[LAST][0] if timed else None
    rows = rows.drop_columns([BUCKET, *([LAST] if timed else [])])
    served = np.empty((0, len(job.added)))
    if len(rows):
        rows, keys = sort_rows(rows, roles)
        try:
            served = run_columns(layer, rows, keys, roles)
        except BadInput as refusal:
            raise locate_refusal(pattern, rows, keys, roles, refusal) from None
    if last is not None and last.is_valid:
        names = (*roles.order, roles.key)
        if not len(rows) or not all(rows[name][len(rows) - 1].equals(last[name]) for name in names):
            time = pa.chunked_array([pa.array([last[roles.order[0]]])])
            settle(layer, layer_columns.moments(time, "time").values[0].item())
    added = [pa.array(np.ascontiguousarray(column)) for column in served.T]
    out = pa.table([*rows.columns, *added], [*rows.column_names, *job.added])
    ending = pa.table({BUCKET: pa.array([bucket], pa.int32()), STATE: [layer.to_json()]})
    out = pa.concat_tables([out, ending], promote_options="default")
    # Spark gives times in the zone of its session and takes only UTC.
    return out.cast(pa.schema([field.with_type(type_in_utc(field.type)) for field in out.schema]))


def type_in_utc(kind: pa.DataType) -> pa.DataType:
    """An Arrow type with UTC as its time zone, also inside lists and structs."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(type_in_utc(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(type_in_utc(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(type_in_utc(kind.key_type), type_in_utc(kind.item_type))
    return kind


def sort_rows(rows: pa.Table, roles: Roles) -> tuple[pa.Table, pa.Array]:
    """The rows in order, ties by key (null last), and the keys as codes; two tied rows of one key are an error."""
    for name in roles.order:
        column = rows[name]
        if column.null_count or (pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py()):
            raise BadInput(f"a row has no {name!r} to be ordered by; drop it or fill it in")
    by = [(name, "ascending") for name in (*roles.order, roles.key)]
    rows = rows.take(pc.sort_indices(rows, sort_keys=by))
    book = Codebook()
    codes = book.codes(rows[roles.key])
    names = pa.array(book.names, pa.string())
    tied = np.ones(len(rows) - 1, dtype=bool)
    for name in roles.order:
        column = rows[name].combine_chunks()
        tied &= pc.equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    if tied.any():
        places = np.concatenate([[0], np.cumsum(~tied)])
        by_key = np.lexsort((places, codes))
        same = (np.diff(codes[by_key]) == 0) & (np.diff(places[by_key]) == 0)
        if same.any():
            row = int(by_key[int(np.argmax(same))])
            raise BadInput(
                f"key {book.names[codes[row]]!r} has two rows with {describe_place(rows, row, roles)}; "
                'name further columns that tell them apart: order=["time", "number"]'
            )
    return rows, pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names)


def describe_place(rows: pa.Table, row: int, roles: Roles) -> str:
    return ", ".join(f"{name}={rows[name][row].as_py()}" for name in roles.order)


def run_columns(layer: KeyedLayer, rows: pa.Table, keys: pa.Array, roles: Roles) -> Floats:
    """Run the layer over sorted rows: a served value per added column; errors name the row inside the bucket."""

    def column(name: str | None) -> pa.ChunkedArray | None:
        return None if name is None else rows[name]

    predictions = [layer_columns.floats(rows[name], name) for name in roles.predictions]
    silenced(layer)  # nobody reads the warnings of a Spark worker
    run = layer.run(
        predictions[0] if len(predictions) == 1 else np.stack(predictions, axis=1),
        column(roles.label),
        key=keys,
        groups={name: rows[name] for name in roles.groups} or None,
        features={name: rows[name] for name in roles.features} or None,
        times=None if roles.label_time is None else rows[roles.order[0]],
        label_times=column(roles.label_time),
        weights=column(roles.weight),
        ids=column(roles.id),
    )
    served = np.asarray(run.served)
    return served[:, None] if served.ndim == 1 else served


def locate_refusal(pattern: KeyedLayer, rows: pa.Table, keys: pa.Array, roles: Roles, refusal: BadInput) -> BadInput:
    """The error with the key and place of the first row that a fresh layer rejects, by bisection."""

    def error_in(first: int, last: int) -> BadInput | None:
        try:
            run_columns(pattern.copy(), rows[first:last], keys[first:last], roles)
        except BadInput as error:
            return error
        return None

    first, last = 0, len(rows)
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if error_in(first, middle) is None else (first, middle)
    error = error_in(first, last)
    if error is None:
        return refusal  # it depends on the state
    return BadInput(f"key {keys[first].as_py()!r}, {describe_place(rows, first, roles)}: {error}")
