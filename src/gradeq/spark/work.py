"""What a worker does with the rows of one bucket: order them, run the library's layer over them, keep its state.

Nothing here knows Spark; tables are arrow's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gradeq import frames
from gradeq.errors import BadInput, StateError
from gradeq.files.codebook import Codebook
from gradeq.layers.doubts import silenced
from gradeq.layers.making import check_same_settings
from gradeq.layers.registry import from_json
from gradeq.layers.settling import settle
from gradeq.spark.roles import OURS, Roles

BUCKET, STATE, LAST = f"{OURS}bucket", f"{OURS}state", f"{OURS}last"


class Job(NamedTuple):
    """What every bucket needs: a fresh layer as JSON, the columns by what they are, those that are added."""

    pattern: str
    roles: Roles
    added: list[str]


def revived(text: str, pattern: Any) -> Any:
    """The layer of a saved bucket; one of another kind or with other settings is refused."""
    layer = from_json(text)
    check_same_settings(pattern, layer)
    return layer


def adjust_bucket(job: Job, bucket: int, rows: pa.Table, states: pa.Table) -> pa.Table:
    """The rows of a bucket with what was served, and after them one row with the bucket's new state."""
    pattern: Any = from_json(job.pattern)
    layer = revived(states["state"][0].as_py(), pattern) if len(states) else pattern
    timed = job.roles.label_time is not None
    if not timed and layer._book.waiting:
        raise BadInput(
            f"the state holds {len(layer._book.waiting):,} labels that were not due yet; give label_time, so that "
            "they can be posted when they are"
        )
    last = last_row(rows, states) if timed else None
    rows = rows.drop_columns([BUCKET, *([LAST] if timed else [])])
    served = np.empty((0, len(job.added)))
    if len(rows):
        rows, series = ordered(rows, job.roles)
        served = run_rows(layer, pattern, rows, series, job.roles)
    if last is not None and not ends_with(rows, last, job.roles):
        settle(layer, moment_of(last[job.roles.order[0]]))
    made = [pa.array(np.ascontiguousarray(column)) for column in served.T]
    whole = pa.table([*rows.columns, *made], [*rows.column_names, *job.added])
    whole = whole.append_column(BUCKET, pa.array(np.full(len(whole), bucket, dtype=np.int32)))
    whole = whole.append_column(STATE, pa.nulls(len(whole), pa.string()))
    ending = pa.table({BUCKET: pa.array([bucket], pa.int32()), STATE: [layer.to_json()]})
    return in_utc(pa.concat_tables([whole, ending], promote_options="default"))


def in_utc(table: pa.Table) -> pa.Table:
    """The same moments, said to be in UTC: Spark gives them in the zone of its session and takes UTC alone."""
    fields = [field.with_type(type_in_utc(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


def type_in_utc(kind: Any) -> Any:
    """The type of an arrow column with UTC for every zone, inside of lists and records too."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(type_in_utc(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(type_in_utc(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(type_in_utc(kind.key_type), type_in_utc(kind.item_type))
    return kind


def ordered(rows: pa.Table, roles: Roles) -> tuple[pa.Table, Any]:
    """The rows in their order, ties between keys in the order of the keys (none last), and the keys as codes.

    Two rows of one key that tie are refused: their order would be left to chance.
    """
    for name in roles.order:
        column = rows[name]
        bad = column.null_count or (
            pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py()
        )
        if bad:
            raise BadInput(f"a row has no {name!r} to be ordered by; drop it or fill it in")
    by = [(name, "ascending") for name in (*roles.order, roles.key)]
    rows = rows.take(pc.sort_indices(rows, sort_keys=by))
    book = Codebook()
    codes = book.codes(rows[roles.key])
    tied = np.ones(len(rows) - 1, dtype=bool)
    for name in roles.order:
        column = rows[name].combine_chunks()
        same = pc.equal(column[1:], column[:-1])
        tied &= same.to_numpy(zero_copy_only=False)
    if tied.any():
        refuse_ties(rows, codes, book, tied, roles)
    names = pa.array(book.names, pa.string())
    return rows, pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names)


def refuse_ties(rows: pa.Table, codes: Any, book: Codebook, tied: Any, roles: Roles) -> None:
    """Refuse two rows of one key at one place in the order."""
    places = np.concatenate([[0], np.cumsum(~tied)])
    by_key = np.lexsort((places, codes))
    same = (np.diff(codes[by_key]) == 0) & (np.diff(places[by_key]) == 0)
    if same.any():
        row = int(by_key[int(np.argmax(same))])
        raise BadInput(
            f"key {book.name(int(codes[row]))!r} has two rows with {where(rows, row, roles)}; "
            'name further columns that tell them apart: order=["time", "number"]'
        )


def where(rows: pa.Table, row: int, roles: Roles) -> str:
    """The place of a row in the order, in words."""
    return ", ".join(f"{name}={rows[name][row].as_py()}" for name in roles.order)


def run_rows(layer: Any, pattern: Any, rows: pa.Table, series: Any, roles: Roles) -> Any:
    """One pass of the layer over ordered rows: what it served, a column for each that is added."""
    try:
        served = run_columns(layer, rows, series, roles)
    except BadInput as refusal:
        raise told_by_key(pattern, rows, series, roles, refusal) from None
    return served[:, None] if served.ndim == 1 else served


def run_columns(layer: Any, rows: pa.Table, series: Any, roles: Roles) -> Any:
    """The same, refused with the number of a row inside the bucket."""

    def column(name: str | None) -> Any:
        return None if name is None else rows[name]

    predictions = [frames.floats(rows[name], name) for name in roles.predictions]
    timed = roles.label_time is not None
    silenced(layer)  # a worker of Spark has nobody to warn
    run = layer.run(
        predictions[0] if len(predictions) == 1 else np.stack(predictions, axis=1),
        column(roles.label),
        key=series,
        groups={name: rows[name] for name in roles.groups} or None,
        features={name: rows[name] for name in roles.features} or None,
        times=column(roles.order[0]) if timed else None,
        label_times=column(roles.label_time),
        weights=column(roles.weight),
        ids=column(roles.id),
    )
    return np.asarray(run.served)


def told_by_key(
    pattern: Any, rows: pa.Table, series: Any, roles: Roles, refusal: BadInput
) -> BadInput:
    """A refusal with the key and the place of the first row that is refused by itself, found by halving."""
    first, last = 0, len(rows)
    while last - first > 1:
        middle = (first + last) // 2
        part = slice(first, middle)
        try:
            run_columns(pattern.copy(), rows[part], series[part], roles)
        except BadInput:
            last = middle
        else:
            first = middle
    try:
        run_columns(pattern.copy(), rows[first:last], series[first:last], roles)
    except BadInput as own:
        return BadInput(f"key {series[first].as_py()!r}, {where(rows, first, roles)}: {own}")
    return refusal  # of what the state knows already


def last_row(rows: pa.Table, states: pa.Table) -> dict[str, Any] | None:
    """Order and key of the last row of the whole frame, as every row has it; None where there is no row at all."""
    own = rows if len(rows) else states
    scalar = own[LAST][0]
    return {name: scalar[name] for name in scalar} if scalar.is_valid else None


def ends_with(rows: pa.Table, last: dict[str, Any], roles: Roles) -> bool:
    """Whether the last row of the whole frame is the last one here."""
    at = len(rows) - 1
    return at >= 0 and all(rows[name][at].equals(last[name]) for name in (*roles.order, roles.key))


def moment_of(scalar: Any) -> Any:
    """One time as the library has it: a number, or nanoseconds."""
    return frames.moments(pa.chunked_array([pa.array([scalar])]), "time").values[0].item()


def problem_of(
    pattern: Any, text: str | None, book: str | None = None, desk: Any = None
) -> str | None:
    """What is wrong with a saved bucket, or None; ``desk`` puts a layer and its book of tickets together."""
    try:
        if text is None:
            raise StateError(
                "the state of a bucket is missing; take the whole table of an earlier run"
            )
        layer = revived(text, pattern)
        if desk is not None:
            desk(layer, book)
    except StateError as refusal:
        return str(refusal)
    return None
