"""Rows known by their content: equal rows alike, other rows not, first in first out."""

from copy import deepcopy
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradeq.adapters.river import OpenIds, content

VALUES = st.one_of(
    st.integers(), st.floats(), st.booleans(), st.text(max_size=5), st.none(),
    st.lists(st.integers(), max_size=3), st.datetimes(),
)  # fmt: skip
ROWS = st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), VALUES, max_size=5)


@given(ROWS)
def test_a_copy_in_another_order_has_the_same_content(row: dict[Any, Any]) -> None:
    assert content(deepcopy(dict(reversed(row.items())))) == content(row)


@given(ROWS, ROWS)
def test_rows_of_other_content_differ(one: dict[Any, Any], other: dict[Any, Any]) -> None:
    if one != other and "nan" not in repr((one, other)):
        assert content(one) != content(other)


def test_equal_numbers_are_alike_and_arrays_are_read_in_full() -> None:
    assert content({"a": np.float32(0.5)}) == content({"a": 0.5})
    assert content({"a": 3.0}) == content({"a": 3})
    assert content({"a": np.int64(2**60 + 1)}) != content({"a": 2**60})
    assert content({"a": float("nan")}) == content({"a": np.nan})
    long = np.zeros(5000)
    other = long.copy()
    other[2500] = 1.0
    assert content({"a": long}) != content({"a": other})
    assert content("some text") == content("some " + "text")


def test_equal_rows_are_answered_first_in_first_out_and_leave_nothing_behind() -> None:
    pairs = OpenIds()
    ids = [f"row r f {number}" for number in range(3)]
    for id in ids:
        pairs.add(id)
    assert OpenIds(dict.fromkeys(ids, "open")).waiting == pairs.waiting
    for id in ids:
        assert pairs.oldest("r") == pairs.oldest("f") == id
        pairs.close(id)
    assert pairs.waiting == {}
    assert pairs.oldest("r") is None


def test_ids_that_a_user_chose_are_left_alone() -> None:
    pairs = OpenIds({7: "open", "order 17": "open", "row of mine": "closed", "x": "expired"})
    assert pairs.waiting == {} and not pairs.expired


def test_rows_that_are_too_old_lapse_in_order_and_are_recognised_later():
    pairs = OpenIds()
    for number, row in enumerate("abc"):
        pairs.add(f"row {row} f {number}")
    pairs.expire(2)
    assert list(pairs.expired) == ["a", "b"] and pairs.oldest("f") == "row c f 2"
    saved = OpenIds({"row a f 0": "expired", "row b f 1": "expired", "row c f 2": "open"})
    assert (saved.waiting, saved.expired) == (pairs.waiting, pairs.expired)
