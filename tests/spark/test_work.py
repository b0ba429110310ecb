"""What a worker does with a bucket, without Spark: the library's bits, the order, refusals in one line."""

from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest

import gradeq as gq
from gradeq.errors import BadInput, GradeqError, StateError
from gradeq.inputs.arguments import name_of
from gradeq.layers.run import served_names
from gradeq.spark.roles import as_keyed, refusal_in, refusals, roles_of
from gradeq.spark.worker import (
    BUCKET,
    LAST,
    STATE,
    Job,
    adjust_bucket,
    check_buckets,
    key_names,
    merge_states,
    state_problem,
)
from spark.many_rows import LAYERS, as_table, by_key, columns_of, library_run, served_of, table_of


def bucket_of(name: str, buckets: int) -> int:
    return crc32(name.encode()) % buckets


def split(table: pa.Table, buckets: int) -> list[pa.Table]:
    """The rows of every bucket, shuffled as Spark leaves them."""
    own = np.array([bucket_of(name_of(key), buckets) for key in table["shop"].to_pylist()])
    rng = np.random.default_rng(5)
    return [table.take(rng.permutation(np.flatnonzero(own == b))) for b in range(buckets)]


def adjusted(
    layer: gq.Keyed, table: pa.Table, columns: dict[str, Any], states: list[str] | None = None
) -> tuple[pa.Table, list[str]]:
    """All buckets one after another, as ``adjust`` has Spark do it: rows and states."""
    single = {name: columns[name] for name in ("weight", "label_time", "id")}
    several = {name: columns[name] for name in ("prediction", "label", "key", "order")}
    roles = roles_of(layer, **several, **single)
    job = Job(layer.to_json(), roles, served_names(layer, layer.internals.rule.width))
    last = table.sort_by([(name, "ascending") for name in (*roles.order, roles.key)])
    last = last.slice(len(last) - 1).select([*roles.order, roles.key]).to_pylist()[0]
    rows, kept = [], []
    for bucket, own in enumerate(split(table, 4)):
        own = own.append_column(BUCKET, pa.array([bucket] * len(own), pa.int32()))
        before = pa.table({"state": [states[bucket]] if states else pa.array([], pa.string())})
        if roles.label_time is not None:
            own = own.append_column(LAST, pa.array([last] * len(own)))
            before = before.append_column(LAST, pa.array([last] * len(before)))
        if len(own) or len(before):
            made = adjust_bucket(job, bucket, own, before)
            rows.append(made.slice(0, len(own)).drop_columns([BUCKET, STATE]))
            kept.append(made[STATE][len(own)].as_py())
    return pa.concat_tables(rows), kept


@pytest.mark.parametrize("late", [False, True], ids=["at once", "late"])
@pytest.mark.parametrize("name", LAYERS)
def test_buckets_together_are_the_librarys_run_and_state_bit_for_bit(name: str, late: bool) -> None:
    """Two runs, the second from the states of the first; also labels that only the frame's last row makes due."""
    table, weights = table_of(3), name in ("debias", "features", "interval")
    whole, states = gq.Keyed(LAYERS[name]()), None
    for part in (table.slice(0, 350), table.slice(350)):
        run = library_run(whole, part, late, weights)
        fresh = gq.Keyed(LAYERS[name]())
        rows, states = adjusted(fresh, part, columns_of(late, weights), states)
        assert np.array_equal(served_of(rows), as_table(run.served))
        assert by_key(merge_states(states)) == by_key(whole)
    one, other = whole.equilibrium(), merge_states(states).equilibrium()
    assert (one.rows, one.bound_from) == (other.rows, other.bound_from)
    assert other.bound == (None if one.bound is None else pytest.approx(one.bound, rel=1e-12))


def test_rows_with_ids_keep_their_tickets_and_close_them() -> None:
    table, whole = table_of(4), gq.Keyed(gq.Debiaser(eta=0.1))
    library_run(whole, table, True, ids=True)
    _, states = adjusted(gq.Keyed(gq.Debiaser(eta=0.1)), table, columns_of(True, ids=True))
    assert by_key(merge_states(states)) == by_key(whole)
    assert by_key(whole)["open"] and by_key(whole)["closed"]


@pytest.mark.filterwarnings("ignore:.*labels? (has|have) a label time before")
def test_a_bucket_without_rows_posts_the_labels_that_are_due_by_now() -> None:
    table, whole = table_of(6, n=200, keys=12), gq.Keyed(gq.Debiaser(eta=0.1))
    columns = columns_of(True)
    _, states = adjusted(gq.Keyed(gq.Debiaser(eta=0.1)), table, columns)
    later = table.slice(0, 1).set_column(table.column_names.index("time"), "time", pa.array([10_000], pa.int64()))
    library_run(whole, table, True)
    library_run(whole, later, True)
    _, states = adjusted(gq.Keyed(gq.Debiaser(eta=0.1)), later, columns, states)
    assert by_key(merge_states(states)) == by_key(whole)
    assert len(whole.internals.tickets.waiting) == 1


def test_a_key_has_the_bucket_of_its_name_however_it_is_spelled() -> None:
    column = pa.array(["7", "7.0", "true", "", None, "007", "2024-01-01 00:00:00"])
    assert key_names(column).to_pylist() == [name_of(cell) for cell in column.to_pylist()]
    assert key_names(pa.array([7, None])).to_pylist() == ["7", "(missing)"]
    assert bucket_of("7", 256) == 130 and bucket_of("(missing)", 256) == 150


def test_the_order_does_not_depend_on_how_rows_come() -> None:
    table, columns = table_of(7, n=200), columns_of(True)
    found = []
    for seed in (1, 2):
        mixed = table.take(np.random.default_rng(seed).permutation(len(table)))
        found.append(adjusted(gq.Keyed(gq.Debiaser(eta=0.1)), mixed, columns))
    assert found[0][1] == found[1][1]
    assert np.array_equal(served_of(found[0][0]), served_of(found[1][0]))


def changed(table: pa.Table, name: str, row: int, value: Any) -> pa.Table:
    cells = table[name].to_pylist()
    cells[row] = value
    return table.set_column(table.column_names.index(name), name, pa.array(cells))


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("forecast", None, "key 'a', time=2, number=2: forecast[0] is missing; drop or impute it"),
        ("sold", float("inf"), "key 'a', time=2, number=2: label[0] is infinite"),
        ("weight", -1.0, "key 'a', time=2, number=2: row 0: weight -1.0 is negative"),
        ("time", None, "a row has no 'time' to be ordered by; drop it or fill it in"),
        ("number", 1, "key 'a' has two rows with time=2, number=1; name further columns"),
    ],
)
def test_a_bad_value_is_told_by_key_and_place(column: str, value: Any, words: str) -> None:
    n = 6
    table = pa.table(
        {
            "shop": ["a"] * n,
            "forecast": np.zeros(n),
            "sold": np.ones(n),
            "time": [0, 1, 2, 2, 4, 5] if column == "number" else list(range(n)),
            "number": [0, 0, 2, 1, 4, 5] if column == "number" else list(range(n)),
            "weight": np.ones(n),
        }
    )
    table = changed(table, column, 2, value)
    layer = gq.Keyed(gq.Debiaser(eta=0.1))
    with pytest.raises(BadInput) as refusal:
        adjusted(layer, table, columns_of(False, True))
    assert words in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_state_with_labels_that_wait_asks_for_their_times() -> None:
    table = table_of(8, n=60)
    _, states = adjusted(gq.Keyed(gq.Debiaser(eta=0.1)), table, columns_of(True))
    with pytest.raises(BadInput, match=r"labels? that (was|were) not due yet; give label_time"):
        adjusted(gq.Keyed(gq.Debiaser(eta=0.1)), table, columns_of(False), states)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda text: text.replace('"frozen":false', '"frozen":true'), "checksum does not match"),
        (lambda text: "{}", "not a gradeq state"),
        (lambda text: gq.Keyed(gq.Debiaser(eta=0.2)).to_json(), "this run has"),
        (lambda text: gq.Debiaser().to_json(), "of a debias layer, this is keyed"),
        (lambda text: None, "is missing"),
    ],
)
def test_a_damaged_or_other_state_is_refused(spoil: Any, words: str) -> None:
    layer = gq.Keyed(gq.Debiaser(eta=0.1))
    assert state_problem(layer, layer.to_json()) is None
    assert words in str(state_problem(layer, spoil(layer.to_json())))


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (gq.Elo(), "Elo cannot be keyed"),
        ("debias", "give a layer such as"),
        (gq.Keyed(gq.QuantileTracker(0.9), pool=True), "cannot be spread over machines"),
        (gq.Debiaser(eta="auto"), "auto"),
    ],
)
def test_a_layer_that_cannot_be_keyed_is_refused(layer: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        as_keyed(layer)


def test_a_layer_that_has_served_is_refused_as_a_pattern() -> None:
    keyed = gq.Keyed(gq.Debiaser())
    keyed.predict(1.0, key="a")
    with pytest.raises(BadInput, match="give a fresh one"):
        as_keyed(keyed)


@pytest.mark.parametrize("buckets", [0, 1.5, True, "8", 1 << 21])
def test_a_wrong_number_of_buckets_is_refused(buckets: Any) -> None:
    with pytest.raises(BadInput, match="buckets"):
        check_buckets(buckets)


def test_a_refusal_inside_a_job_comes_out_as_itself() -> None:
    wrapped = "Job aborted due to stage failure\ngradeq.errors.StateError: it is damaged\n\tat org.x"
    with pytest.raises(StateError, match=r"^it is damaged$"), refusals():
        raise RuntimeError(wrapped)
    with pytest.raises(RuntimeError, match="of its own"), refusals():
        raise RuntimeError("of its own")
    assert refusal_in("gradeq.errors.GradeqError: x").args == GradeqError("x").args
    assert refusal_in("gradeq.errors.missing_extra: x") is None
