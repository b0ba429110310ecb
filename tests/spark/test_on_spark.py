"""Tables through real Spark: the library's bits, one computation, states that go on, refusals before a job starts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gradeq as gq
from gradeq.errors import BadInput, StateError
from gradeq.spark import adjust, read, refusals
from gradeq.spark.worker import STATE
from spark.local_spark import PANDAS
from spark.many_rows import LAYERS, as_table, by_key, columns_of, library_run, served_of, table_of

pytestmark = pytest.mark.filterwarnings(PANDAS)

GOLDEN = Path(__file__).parent / "golden"


def frame_of(spark: Any, table: pa.Table, seed: int = 0) -> Any:
    """The rows as a Spark DataFrame, in an order of chance."""
    return spark.createDataFrame(table.take(np.random.default_rng(seed).permutation(len(table))))


@pytest.mark.parametrize(
    ("name", "late"), [("debias", True), ("groups", False), ("interval", True), ("quantiles", False)]
)
def test_two_runs_on_spark_are_those_of_the_library_bit_for_bit(
    spark: Any, tmp_path: Path, name: str, late: bool
) -> None:
    """Served values, states, certificates by key and overall; partitions are cut otherwise in the second run."""
    table, whole, state = table_of(11), gq.Keyed(LAYERS[name]()), None
    for k, part in enumerate((table.slice(0, 350), table.slice(350))):
        run = library_run(whole, part, late)
        frame = frame_of(spark, part).repartition(1 + 2 * k)
        made = adjust(frame, LAYERS[name](), state=state, buckets=8, **columns_of(late))
        written = made.write(tmp_path / f"run{k}")
        state = written.state
        assert np.array_equal(served_of(written.rows.toArrow()), as_table(run.served))
        assert by_key(written.layer()) == by_key(whole)
        spark.conf.set("spark.sql.shuffle.partitions", "3")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    own = {key: rest for key, *rest in zip(*whole.table().columns().values(), strict=True)}
    found = written.certificates.toArrow()
    assert found.column_names == list(whole.table().columns())
    found = {row[0]: list(row[1:]) for row in zip(*found.to_pydict().values(), strict=True)}
    assert found.keys() == own.keys()
    assert all(np.array_equal(found[key], own[key], equal_nan=True) for key in own)
    assert written.equilibrium().rows == whole.equilibrium().rows


def test_every_look_at_the_tables_makes_the_same_rows_and_states(spark: Any) -> None:
    made = adjust(frame_of(spark, table_of(12)), gq.Debiaser(eta=0.1), buckets=4, **columns_of(True))
    first = (served_of(made.rows.toArrow()), sorted(row.state for row in made.state.collect()))
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    again = (served_of(made.rows.toArrow()), sorted(row.state for row in made.state.collect()))
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert np.array_equal(first[0], again[0]) and first[1] == again[1]
    kept = made.persist()
    assert sorted(row.state for row in kept.state.collect()) == first[1]
    kept.unpersist()


def test_columns_that_are_not_read_come_through_as_they_were(spark: Any) -> None:
    table = table_of(13, n=50)
    frame = spark.createDataFrame(table).selectExpr(
        "*",
        "array(number, 1L) as several",
        "timestamp_seconds(number) as moment",
        "named_struct('at', array(timestamp_seconds(number))) as nested",
        "shop as `a b`",
    )
    made = adjust(frame, gq.Debiaser(eta=0.1), buckets=2, **columns_of(False)).rows
    assert made.columns == [*frame.columns, "adjusted"]
    assert sorted(made.drop("adjusted").collect()) == sorted(frame.collect())


def test_whole_numbers_and_dates_are_keys_and_times(spark: Any) -> None:
    frame = spark.sql(
        "select id % 5 as shop, timestamp_seconds(id * 7) as time, id as number, cast(id % 3 as float) as forecast,"
        " id % 2 = 0 as sold, timestamp_seconds(id * 7 + id % 50) as known from range(200)"
    )
    made = adjust(frame, gq.Debiaser(eta=0.1), buckets=4, **columns_of(True))
    table = frame.toArrow()
    layer = gq.Keyed(gq.Debiaser(eta=0.1))
    run = library_run(layer, table, True)
    assert np.array_equal(served_of(made.rows.toArrow()), as_table(run.served))
    assert by_key(made.layer()) == by_key(layer)


WRONG: list[tuple[str, Callable[[Any], Any], dict[str, Any], str]] = [
    ("no column", lambda f: f.drop("sold"), {}, "column 'sold' is missing; the frame has shop"),
    ("text", lambda f: f.selectExpr("* except (forecast)", "shop as forecast"), {}, "holds string"),
    (
        "taken",
        lambda f: f.selectExpr("*", "1 as adjusted"),
        {},
        "column 'adjusted' is to be added but exists already",
    ),
    ("twice", lambda f: f.selectExpr("*", "shop"), {}, "column 'shop' occurs more than once"),
    ("no name", lambda f: f, {"key": None}, "key=None: give the name of a column"),
    ("no order", lambda f: f, {"order": []}, "order=.*: give the name of a column"),
    ("levels", lambda f: f, {"prediction": ["low", "high"]}, "2 prediction columns for 1 levels"),
    ("dates", lambda f: f, {"label_time": "size", "order": ["shop"]}, "both as dates or both"),
    ("buckets", lambda f: f, {"buckets": 0}, "buckets=0"),
    ("frame", lambda f: [1], {}, "frame is list; give a DataFrame of Spark"),
    ("state", lambda f: f, {"state": 7}, "state is int; give a DataFrame of Spark"),
]


@pytest.mark.parametrize(("make", "given", "words"), [own[1:] for own in WRONG], ids=[own[0] for own in WRONG])
def test_wrong_columns_are_refused_before_any_job(
    spark: Any, make: Callable[[Any], Any], given: dict[str, Any], words: str
) -> None:
    frame = spark.createDataFrame(table_of(14, n=5))
    with pytest.raises(BadInput, match=words):
        adjust(make(frame), gq.Debiaser(eta=0.1), **columns_of(False) | given)


def test_damaged_and_foreign_states_are_refused_before_the_job(spark: Any) -> None:
    frame, layer, columns = (spark.createDataFrame(table_of(15, n=40)), gq.Debiaser(eta=0.1), columns_of(False))
    good = adjust(frame, layer, buckets=2, **columns).state.collect()

    def state_of(*rows: tuple[int, int, str | None]) -> Any:
        return spark.createDataFrame(rows, "bucket int, buckets int, state string")

    text = good[0].state
    wrong = [
        (state_of((0, 2, text[:-9] + "}")), StateError, "bucket 0: the state is damaged"),
        (state_of((0, 2, None)), StateError, "bucket 0: the state of a bucket is missing"),
        (state_of((0, 2, text), (0, 2, text)), StateError, "a bucket twice, or of several runs"),
        (state_of((0, 2, gq.Keyed(gq.Debiaser(eta=0.3)).to_json())), StateError, "made with settings"),
        (state_of(), BadInput, "the state has no rows"),
        (state_of((0, 2, text)).drop("buckets"), BadInput, "state has the columns"),
    ]
    for state, kind, words in wrong:
        with pytest.raises(kind, match=words):
            adjust(frame, layer, state=state, **columns)
    with pytest.raises(BadInput, match="the state has 2; leave out buckets"):
        adjust(frame, layer, state=state_of((0, 2, text)), buckets=3, **columns)
    with pytest.raises(BadInput, match="leave out ttl"):
        adjust(frame, gq.Debiaser(eta=0.1, ttl=9.0), **columns_of(True))


def test_a_bad_value_in_the_data_is_one_line_after_all(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(table_of(16, n=40)).selectExpr(
        "* except (forecast)", "if(number = 7, null, forecast) as forecast"
    )
    made = adjust(frame, gq.Debiaser(eta=0.1), buckets=2, **columns_of(False))
    for ask in (lambda: made.write(tmp_path / "cut"), made.persist, made.equilibrium):
        with pytest.raises(BadInput, match=r"^key '.*', time=.*, number=7: forecast\[0\] is missing; drop"):
            ask()
    with pytest.raises(BadInput, match="number=7"), refusals():
        made.rows.count()
    with pytest.raises(BadInput, match="or it was cut off; write it again"):
        read(spark, tmp_path / "cut")
    made.unpersist()


def test_a_state_of_an_earlier_version_goes_on(spark: Any) -> None:
    """What 0.2.0 wrote after the first half of the rows, as a table of states.

    It did not add up steps, so where it had learned these are not known.
    """
    table, whole = table_of(17, n=300), gq.Keyed(gq.Debiaser(eta=0.1))
    state = spark.read.schema("bucket int, buckets int, state string").json(str(GOLDEN / "states-0.2.0.json"))
    library_run(whole, table.slice(0, 150), True)
    learned = {name for name, own in by_key(whole).items() if name.startswith("steps") and any(own)}
    run = library_run(whole, table.slice(150), True)
    expected = by_key(whole) | {name: [np.inf, np.inf] for name in learned}
    frame = frame_of(spark, table.slice(150))
    made = adjust(frame, gq.Debiaser(eta=0.1), state=state, **columns_of(True)).persist()
    assert np.array_equal(served_of(made.rows.toArrow()), as_table(run.served))
    assert learned and by_key(made.layer()) == expected
    assert made.whole.where(f"{STATE} is not null").count() == 4
    made.unpersist()
