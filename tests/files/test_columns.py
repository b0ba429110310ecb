"""Columns out of cells: numbers, times and codes, each exact or refused with its row."""

import datetime as dt
import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.errors import BadInput
from gradeq.files import Clock, Codebook, codebook, is_missing, numeric
from gradeq.kernels.compile import compiled
from gradeq.kernels.texts import code_texts

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite, min_size=1, max_size=30))
def test_a_float_survives_its_text_bit_for_bit(values: list[float]) -> None:
    exact = np.array(values)
    assert numeric(pa.array([repr(v) for v in values]), "x").tobytes() == exact.tobytes()
    assert numeric(pa.array([f" {v!r}" for v in values]), "x").tobytes() == exact.tobytes()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 1, 100], pa.int8()),
        pa.array([0, 1, 100], pa.uint8()),
        pa.array([0, 1, 100], pa.int64()),
        pa.array([0, 1, 100], pa.float32()),
        pa.array([Decimal("0"), Decimal("1.0"), Decimal("100")]),
        pa.array(["0", "+1", "1e2"]),
        pa.array([" 0", "1.", "100\t"]),
        pa.array(["0", "1", "100"]).dictionary_encode(),
        pa.array(["0", "1", "100"], pa.large_string()),
        pa.chunked_array([[0.0], [1.0, 100.0]]),
    ],
    ids=lambda c: str(c.type),
)
def test_numbers_of_any_type_become_float64(column: pa.Array) -> None:
    values = numeric(column, "x")
    assert values.dtype == np.float64
    assert values.tolist() == [0.0, 1.0, 100.0]


def test_booleans_are_zero_and_one() -> None:
    assert numeric(pa.array([True, False]), "x").tolist() == [1.0, 0.0]


@pytest.mark.parametrize("word", ["", " ", "NA", "na", "NaN", "nan", "NULL", "null", "None", "none"])
def test_a_missing_word_is_a_missing_label_and_no_prediction(word: str) -> None:
    assert is_missing(word)
    column = pa.array(["1", word, "2"])
    labels = numeric(column, "y", missing=True)
    assert np.isnan(labels).tolist() == [False, True, False]
    assert labels[[0, 2]].tolist() == [1.0, 2.0]
    with pytest.raises(BadInput, match=r"^row 12: column 'f' has .*a number is needed here"):
        numeric(column, "f", 11)


def test_absent_values_of_typed_columns_are_missing_labels() -> None:
    for column in (pa.array([1, None]), pa.array([1.0, None]), pa.array([1.0, float("nan")])):
        assert np.isnan(numeric(column, "y", missing=True)).tolist() == [False, True]
        with pytest.raises(BadInput, match=r"^row 2: column 'y'"):
            numeric(column, "y")
    assert np.isnan(numeric(pa.nulls(2), "y", missing=True)).all()


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e400"])
def test_an_infinite_value_is_refused_even_as_a_label(cell: str) -> None:
    for missing in (False, True):
        with pytest.raises(BadInput, match=r"^row 2: .*infinite"):
            numeric(pa.array(["1", cell]), "y", missing=missing)
        with pytest.raises(BadInput, match=r"^row 2: .*infinite"):
            numeric(pa.array([1.0, float(cell)]), "y", missing=missing)


@pytest.mark.parametrize("cell", ["abc", "1,5", "0x10", "1_000", "١", "12:30", "true"])
def test_text_that_is_no_number_is_refused_with_row_and_value(cell: str) -> None:
    column = pa.array(["1", "NA", cell, "other"])
    with pytest.raises(BadInput) as error:
        numeric(column, "y", 5, file="b.csv", missing=True)
    assert str(error.value).startswith(f"b.csv row 7: column 'y' has {cell!r}, which is not")


def test_a_date_column_is_no_number() -> None:
    with pytest.raises(BadInput, match="numbers are needed"):
        numeric(pa.array([dt.date(2024, 1, 1)]), "y")


def test_dates_timestamps_and_their_texts_give_the_same_nanoseconds() -> None:
    moments = [dt.datetime(2024, 1, 31, 17, 5), dt.datetime(1969, 12, 31, 23, 59, 59, 1)]
    exact = np.array(moments, "datetime64[ns]").astype(np.int64)
    zoned = pa.array(moments, pa.timestamp("us", "UTC"))
    texts = pa.array([m.isoformat() for m in moments])
    blank = pa.array([f" {m} " for m in moments])
    with_zone = pa.array(["2024-01-31T19:05+02:00", "1969-12-31T23:59:59.000001Z"])
    for column in (pa.array(moments), pa.array(moments, pa.timestamp("us")), zoned, texts, blank, with_zone):
        times = Clock("t").read(column)
        assert times.values.tolist() == exact.tolist()
        assert not times.missing.any()
    day = Clock("t").read(pa.array([dt.date(2024, 1, 31)])).values
    assert day.tolist() == Clock("t").read(pa.array(["2024-01-31"])).values.tolist()


def test_numbers_are_times_too_and_large_integers_stay_exact() -> None:
    assert Clock("t").read(pa.array(["1", "2.5"])).values.tolist() == [1.0, 2.5]
    large = [2**60, 2**60 + 1]
    for column in (pa.array(large), pa.array([str(v) for v in large])):
        clock = Clock("t")
        assert clock.read(column).values.tolist() == large
        assert clock.kind == "integer"


def test_the_kind_of_time_is_kept_from_batch_to_batch() -> None:
    clock = Clock("t")
    clock.read(pa.array(["NA", "1"]), missing=True)
    assert clock.read(pa.array(["2.5"])).values.tolist() == [2.5]
    with pytest.raises(BadInput, match=r"^row 7: column 't' has '2024-01-01', which is not a num"):
        clock.read(pa.array(["2024-01-01"]), 7)
    dates = Clock("t")
    dates.read(pa.array(["2024-01-01"]))
    with pytest.raises(BadInput, match=r"^row 8: column 't' has '17', which is not a time"):
        dates.read(pa.array(["2024-01-01", "17"]), 7)
    with pytest.raises(BadInput, match=r"^row 7: .* a time with a zone among others"):
        dates.read(pa.array(["2024-01-01T00:00Z"]), 7)
    with pytest.raises(BadInput, match="cannot be compared"):
        clock.check_comparable(dates)
    clock.check_comparable(Clock("u", "integer"))


@pytest.mark.parametrize("cell", ["31/01/2024", "2024-13-01", "yesterday", "1066-10-14"])
def test_what_is_no_time_is_refused_with_its_row(cell: str) -> None:
    with pytest.raises(BadInput, match=r"^row 2: column 't' has .*which is not a time"):
        Clock("t").read(pa.array(["2024-01-01", cell]))


def test_an_absent_time_is_refused_unless_it_may_be_missing() -> None:
    for column in (pa.array(["2024-01-01", ""]), pa.array([1, None]), pa.array([1.5, None])):
        with pytest.raises(BadInput, match=r"^row 2: column 't' has no time"):
            Clock("t").read(column)
        assert Clock("t").read(column, missing=True).missing.tolist() == [False, True]
    assert Clock("t").read(pa.array(["", "NA"]), missing=True).missing.all()


def cut(column: pa.Array, cuts: list[int]) -> list[pa.Array]:
    edges = sorted({0, len(column), *(c % (len(column) + 1) for c in cuts)})
    return [column.slice(a, b - a) for a, b in itertools.pairwise(edges)]


values = st.one_of(
    st.lists(st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))),
    st.lists(st.one_of(st.none(), st.text(max_size=2))),
    st.lists(st.one_of(st.none(), st.booleans())),
    st.lists(st.one_of(st.none(), st.sampled_from([0.5, 1.0, float("nan")]))),
)


@given(values, st.lists(st.integers(0, 100), max_size=4))
def test_codes_of_batches_are_the_codes_of_the_whole_column(cells: list[Any], cuts: list[int]) -> None:
    column = pa.array(cells)
    whole, parts = Codebook(), Codebook()
    codes = whole.codes(column)
    pieces = [parts.codes(piece) for piece in cut(column, cuts)]
    assert np.concatenate([*pieces, np.empty(0, np.int64)]).tolist() == codes.tolist()
    assert parts.names == whole.names
    spelled = [
        "(missing)"
        if c is None or c == "" or c != c
        else str(int(c))
        if isinstance(c, float) and c.is_integer() and abs(c) < 2**53
        else str(c)
        for c in cells
    ]
    assert [whole.names[code] for code in codes] == spelled
    assert whole.names == list(dict.fromkeys(spelled))


def test_integers_and_their_texts_are_one_name() -> None:
    book = Codebook()
    assert book.codes(pa.array([7, 8])).tolist() == [0, 1]
    assert book.codes(pa.array(["8", "07", "9"])).tolist() == [1, 2, 3]
    assert book.codes(pa.array([9, 7, 10], pa.int32())).tolist() == [3, 0, 4]
    assert book.codes(pa.array(["10", "7"])).tolist() == [4, 0]
    assert book.names == ["7", "8", "07", "9", "10"]
    assert book.codes(pa.array([7.0, 9.0, 0.5, None])).tolist() == [0, 3, 5, 6]
    assert book.names[5:] == ["0.5", "(missing)"]


def test_a_kept_codebook_goes_on_where_it_was() -> None:
    first = Codebook()
    first.codes(pa.array([5, None, -3]))
    again = Codebook(first.names)
    assert again.codes(pa.array([-3, 5, 6])).tolist() == [2, 0, 3]
    assert again.codes(pa.array([None, 6], pa.int64())).tolist() == [1, 3]
    assert len(again) == 4
    with pytest.raises(BadInput, match="distinct"):
        Codebook(["a", "a"])


def test_a_dictionary_of_the_data_gets_codes_by_first_use() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([2, None, 0, 2]), pa.array(["a", "b", "c"]))
    book = Codebook()
    assert book.codes(column).tolist() == [0, 1, 2, 0]
    assert book.names == ["c", "(missing)", "a"]


def test_many_integer_keys_keep_their_codes_as_the_table_grows() -> None:
    rng = np.random.default_rng(7)
    keys = np.concatenate([rng.integers(-(2**62), 2**62, 3000), np.arange(3000) << 32])
    stream = rng.permutation(np.tile(keys, 3))
    book = Codebook()
    codes = np.concatenate([book.codes(pa.array(part)) for part in np.array_split(stream, 17)])
    index: dict[int, int] = {}
    assert codes.tolist() == [index.setdefault(key, len(index)) for key in stream.tolist()]


def looked_up(cells: list[Any], cuts: list[int], loop: Any) -> tuple[list[int], list[str]]:
    """Codes and names of a column in parts, every text looked up by this loop (None: arrow's way)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codebook, "SAMPLE", 0)
        patch.setattr(codebook, "kernel", lambda *_: loop)
        book = Codebook()
        parts = [book.codes(part).tolist() for part in cut(pa.array(cells, pa.string()), cuts)]
    return [code for part in parts for code in part], book.names


@given(st.lists(st.one_of(st.none(), st.text("aé€\0", max_size=9))), st.lists(st.integers(0, 100), max_size=4))
def test_a_table_of_texts_gives_the_codes_of_a_dictionary(cells: list[Any], cuts: list[int]) -> None:
    assert looked_up(cells, cuts, code_texts) == looked_up(cells, cuts, None)


def test_many_texts_have_the_same_codes_compiled_and_interpreted() -> None:
    pytest.importorskip("numba")
    rng = np.random.default_rng(7)
    cells = [f"{'series' * (k % 5)} {k}" for k in rng.integers(0, 20_000, 30_000).tolist()]
    index: dict[str, int] = {}
    codes = [index.setdefault(cell, len(index)) for cell in cells]
    for loop in (code_texts, compiled(code_texts, ())):
        assert looked_up(cells, [9_000], loop) == (codes, list(index))


def test_tables_of_integers_texts_and_single_names_are_one_book() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codebook, "SAMPLE", 0)
        patch.setattr(codebook, "kernel", lambda *_: code_texts)
        book = Codebook(["a"])
        assert book.code("\ud800") == 1
        assert book.codes(pa.array([7, 8])).tolist() == [2, 3]
        assert book.codes(pa.array(["8", "b", "a", "9"])).tolist() == [3, 4, 0, 5]
        assert book.codes(pa.array([9, None, 10])).tolist() == [5, 6, 7]
        assert book.codes(pa.array(["10", "", "c"])).tolist() == [7, 6, 8]
        assert [book.code("c"), book.code("d")] == [8, 9]
    assert book.names == ["a", "\ud800", "7", "8", "b", "9", "(missing)", "10", "c", "d"]


def test_a_nested_column_names_no_group() -> None:
    with pytest.raises(BadInput, match="cannot name groups"):
        Codebook().codes(pa.array([[1], [2]]))
