"""Columns of numpy, lists, pandas, polars and pyarrow: one meaning, and the same type back."""

import datetime as dt
import enum
import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradeq as gq
from gradeq.errors import BadInput
from gradeq.files import Codebook
from gradeq.inputs.arguments import name_of
from gradeq.layers import columns

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

WITH_GAP = {
    "list": [1, None, 0],
    "tuple": (1, float("nan"), 0),
    "object array": np.array([1, None, False], dtype=object),
    "masked array": np.ma.array([1, 7, 0], mask=[0, 1, 0]),
    "float array": np.array([1.0, np.nan, 0.0], np.float32),
    "Decimal": [Decimal("1"), None, Fraction(0)],
    "pandas float": pd.Series([1.0, None, 0.0]),
    "pandas Int64": pd.Series([1, None, 0], dtype="Int64"),
    "pandas boolean": pd.Series([True, None, False], dtype="boolean"),
    "pandas object": pd.Series([1, pd.NA, Decimal("0")], dtype=object),
    "pandas arrow": pd.Series([1, None, 0], dtype="int32[pyarrow]"),
    "polars": pl.Series("y", [1, None, 0]),
    "polars bool": pl.Series("y", [True, None, False]),
    "polars nan": pl.Series("y", [1.0, float("nan"), 0.0]),
    "pyarrow": pa.array([1, None, 0], pa.int8()),
    "pyarrow chunked": pa.chunked_array([[1.0, None], [0.0]]),
    "pyarrow decimal": pa.array([Decimal("1"), None, Decimal("0")]),
    "pyarrow dictionary": pa.array([1, None, 0]).dictionary_encode(),
}


@pytest.mark.parametrize("column", WITH_GAP.values(), ids=WITH_GAP.keys())
def test_an_absent_label_is_nan_and_an_absent_prediction_is_refused(column: Any) -> None:
    labels = columns.floats(column, "labels", missing=True)
    assert labels.dtype == np.float64
    np.testing.assert_array_equal(labels, [1.0, np.nan, 0.0])
    with pytest.raises(BadInput, match=r"^predictions\[1\] is missing; drop or impute it first$"):
        columns.floats(column, "predictions")


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.bool_, np.float16, np.float32])
def test_small_types_are_promoted_before_arithmetic(dtype: type) -> None:
    small = np.array([1, 0, 1], dtype)
    for column in (small, pd.Series(small), pa.array(small)):
        values = columns.floats(column, "x")
        assert values.dtype == np.float64
        assert (values - 3).tolist() == [-2.0, -3.0, -2.0]
    assert (columns.floats(np.int8([100, -100]), "x") * 2).tolist() == [200.0, -200.0]


@pytest.mark.parametrize(
    "column",
    [
        ["1", "2"],
        [1, "a"],
        np.array(["1"]),
        np.array([1j]),
        np.array(["2024-01-01"], "datetime64[D]"),
        pd.Series(["1", "2"]),
        pd.Series(["a", "b"], dtype="category"),
        pd.Series([1, "x"], dtype=object),
        pl.Series(["a"]),
        pa.array(["a"]),
        pd.Series(pd.to_datetime(["2024-01-01"])),
        [dt.date(2024, 1, 1)],
        [[1, 2], [3]],
        [[1, 2], [3, 4]],
        np.zeros((2, 1)),
        pd.DataFrame({"a": [1.0]}),
        [10**400],
        [np.inf],
        [-np.inf],
        3.0,
        "abc",
        None,
        {1: 2},
        {1, 2},
    ],
    ids=lambda c: str(c)[:25].replace("\n", " "),
)
def test_what_is_no_column_of_numbers_is_refused_in_one_line(column: Any) -> None:
    with pytest.raises(BadInput) as error:
        columns.floats(column, "labels", missing=True)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("labels")


def test_an_empty_column_is_an_empty_array() -> None:
    for column in ([], np.array([]), pd.Series([], dtype=float), pl.Series([], dtype=pl.Int8)):
        assert columns.floats(column, "x").shape == (0,)
        assert columns.codes(column, "x").names == []


def test_results_come_back_in_the_type_of_the_column() -> None:
    values = np.array([0.25, 0.5])
    series = pd.Series([1, 2], index=["b", "a"], name="f")
    back = columns.like(series, values)
    pd.testing.assert_series_equal(back, pd.Series(values, index=["b", "a"], name="f"))
    assert columns.like(pl.Series("f", [1, 2]), values).equals(pl.Series("f", values))
    assert columns.like(pl.Series("f", [1, 2]), values).name == "f"
    assert columns.like(pa.array([1, 2]), values).equals(pa.array(values))
    assert columns.like(pa.chunked_array([[1], [2]]), values).equals(pa.chunked_array([values]))
    assert columns.like([1, 2], values) == [0.25, 0.5]
    assert isinstance(columns.like([1, 2], values), list)
    assert columns.like((1, 2), values) == (0.25, 0.5)
    assert columns.like(np.array([1, 2]), values) is values


def test_columns_of_other_lengths_are_refused_and_never_broadcast() -> None:
    layer = gq.Debiaser()
    assert len(layer.run([1, 2], pd.Series([1, 2])).served) == 2
    with pytest.raises(BadInput, match="labels has 1 rows, predictions have 2"):
        layer.run([1, 2], [1])


NAMED = ["b", "a", None, "b", ""]
GROUPS = {
    "list": NAMED,
    "object array": np.array(NAMED, dtype=object),
    "pandas": pd.Series(NAMED),
    "pandas object": pd.Series(NAMED, dtype=object),
    "pandas categorical": pd.Series(pd.Categorical(NAMED, categories=["a", "b", "", "unused"])),
    "polars": pl.Series(NAMED),
    "polars categorical": pl.Series(NAMED, dtype=pl.Categorical),
    "pyarrow": pa.array(NAMED),
    "pyarrow dictionary": pa.array(NAMED).dictionary_encode(),
}


@pytest.mark.parametrize("column", GROUPS.values(), ids=GROUPS.keys())
def test_groups_are_coded_by_first_appearance_in_every_library(column: Any) -> None:
    found = columns.codes(column, "race")
    assert found.codes.tolist() == [0, 1, 2, 0, 2]
    assert found.names == ["b", "a", "(missing)"]


@given(st.lists(st.one_of(st.integers(-5, 5), st.booleans(), st.none(), st.text(max_size=1))))
def test_mixed_values_have_the_names_python_prints(cells: list[Any]) -> None:
    expected = ["(missing)" if c is None or c == "" else str(c) for c in cells]
    for column in (cells, np.array([*cells, None], dtype=object)[:-1], pd.Series(cells, dtype=object)):
        found = columns.codes(column, "g")
        assert [found.names[code] for code in found.codes] == expected


class Colour(str, enum.Enum):  # noqa: UP042 (the kind that prints itself as Colour.RED)
    RED = "red"


@pytest.mark.parametrize(
    "few",
    [
        ["b", "a", "", "b"],
        ["b", None, "a\0", "b"],
        ["b", "\ud800", "b", "é"],
        ["b", 1, True, "1"],
        ["b", float("nan"), "", None],
        [Colour.RED, "red", np.str_("red"), "a"],
    ],
)
def test_long_columns_have_the_names_of_short_ones(few: list[Any]) -> None:
    short, cells = columns.codes(few, "g"), few * 500
    for column in (cells, tuple(cells), np.array([*cells, None], dtype=object)[:-1]):
        long = columns.codes(column, "g")
        assert long.names == short.names
        assert long.codes.tolist() == short.codes.tolist() * 500


@pytest.mark.parametrize(
    "few", [["b", "", "é", "b"], [True, False], [0.0, -0.0, math.nan, 0.5], [b"a", b""], [2**63, 1]]
)
def test_long_arrays_have_the_names_of_their_cells(few: list[Any]) -> None:
    array = np.array(few * 600, dtype=np.uint64 if 2**63 in few else None)
    for column in (array, array[::-1]):
        found = columns.codes(column, "g")
        spelled = [name_of(cell) for cell in column.tolist()]
        assert [found.names[code] for code in found.codes] == spelled
        assert found.names == list(dict.fromkeys(spelled))


def test_integer_groups_have_one_name_in_every_library() -> None:
    for column in ([7, 8, 7], np.uint8([7, 8, 7]), pd.Series([7, 8, 7]), pl.Series([7, 8, 7]), pd.Index([7, 8, 7])):
        assert columns.codes(column, "g").names == ["7", "8"]
    masked = np.ma.array([7, 0, 7], mask=[0, 1, 0])
    assert columns.codes(masked, "g").names == ["7", "(missing)"]
    book = Codebook(["8"])
    assert columns.coded([7, 8], "g", book).tolist() == [1, 0]


def test_times_of_every_library_are_the_same_nanoseconds() -> None:
    moment = dt.datetime(2024, 1, 31, 17, 5)
    exact = int(np.datetime64(moment, "ns").astype(np.int64))
    zoned = moment.replace(tzinfo=dt.UTC).astimezone(dt.timezone(dt.timedelta(hours=2)))
    for column in (
        [moment, None],
        [zoned, None],
        np.array([moment, "NaT"], "datetime64[s]"),
        pd.Series([moment, None]),
        pd.Series([zoned, None]),
        pl.Series([moment, None]),
        pa.array([moment, None]),
        pa.array([zoned, None], pa.timestamp("us", "Europe/Paris")),
    ):
        times = columns.moments(column, "times", missing=True)
        assert times.missing.tolist() == [False, True]
        assert times.values[0] == exact
        with pytest.raises(BadInput, match=r"times\[1\] has no time"):
            columns.moments(column, "times")
    assert columns.moments([2**60 + 1], "times").values.tolist() == [2**60 + 1]
    assert columns.moments([1.5, 2], "times").values.tolist() == [1.5, 2.0]
    assert columns.moments([dt.date(2024, 1, 31)], "t").values[0] == exact - (17 * 60 + 5) * 60 * 10**9
    with pytest.raises(BadInput, match=r"t\[1\] is int \(3\) among dates"):
        columns.moments([moment, 3], "t")


def test_arrays_and_lists_need_no_dataframe_library() -> None:
    code = (
        "import sys, numpy as np\nfrom gradeq.layers import columns\n"
        "columns.floats([1, None], 'y', missing=True), columns.codes(['a'], 'g')\n"
        "columns.codes(np.arange(3), 'g'), columns.like(np.zeros(1), np.ones(1))\n"
        "print([m for m in ('pandas', 'polars', 'pyarrow', 'narwhals') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_columns_of_pandas_with_different_indexes_are_refused_by_every_verb():
    one = pd.Series([1.0, 2.0, 3.0])
    other = pd.Series([1.0, 2.0, 3.0], index=[2, 1, 0])
    ids = pd.Series(["a", "b", "c"], index=[2, 1, 0])
    plain, grouped, elo = gq.Debiaser(eta=0.1), gq.Debiaser(eta=0.1, groups="g"), gq.Elo(0.1)
    keyed = gq.Keyed(gq.Debiaser(eta=0.1))
    refusals = [
        lambda: plain.run(one, other),
        lambda: plain.predict_many(one, ids=ids),
        lambda: plain.update_many(one, ids=ids),
        lambda: grouped.run(one, one, groups={"g": ids}),
        lambda: grouped.predict_many(one, groups={"g": ids}),
        lambda: keyed.predict_many(one, key=ids),
        lambda: elo.run(pd.Series(list("xyz")), ids, one),
        lambda: elo.predict_many(pd.Series(list("xyz")), ids),
    ]
    kept = [layer.to_json() for layer in (plain, grouped, elo, keyed)]
    for refused in refusals:
        with pytest.raises(BadInput, match="different indexes"):
            refused()
    assert [layer.to_json() for layer in (plain, grouped, elo, keyed)] == kept
    plain.predict_many(one, ids=ids.reset_index(drop=True))
    assert plain.traffic["open"] == 3
