"""Bodies are read in two ways, a quick and a careful one: they give the same items."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradeq.service.items import Answer, Label, Prediction
from gradeq.service.problems import Problem
from gradeq.service.reading import Reader, _names_once, parsed

READERS = {"predictions": Reader(Prediction), "labels": Reader(Label)}
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70)
names = st.text(max_size=8) | st.integers(-(2**40), 2**40) | st.booleans() | st.none()
ids = st.text(max_size=300) | st.integers(-(2**64), 2**64) | st.none() | st.booleans() | numbers
values: Any = {
    "id": ids,
    "prediction": numbers | st.lists(numbers, max_size=3) | st.none() | st.text(max_size=3),
    "groups": st.dictionaries(st.text(max_size=4), names, max_size=3) | st.none() | st.just([]),
    "features": st.dictionaries(st.text(max_size=4), numbers, max_size=3),
    "key": names,
    "weight": numbers,
    "label": numbers | st.text(max_size=3),
    "correct": st.booleans() | st.none(),
    "other": names,
}
items = st.fixed_dictionaries({}, optional=values)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(given_items=items | st.lists(items, max_size=5), spaces=st.sampled_from([None, 1]))
@pytest.mark.parametrize("kind", READERS)
def test_the_quick_and_the_careful_way_agree(kind: str, given_items: Any, spaces: Any) -> None:
    reader = READERS[kind]
    for text in (
        json.dumps(given_items, indent=spaces),
        json.dumps(given_items, ensure_ascii=False),
    ):
        body = text.encode()
        found, alone = reader.read(body, 100)
        assert alone == isinstance(given_items, dict)
        each = [given_items] if alone else given_items
        careful = [reader._taken(one) for one in parsed(body if not alone else b"[" + body + b"]")]
        assert list(found) == careful and len(found) == len(each)
        for one, sent in zip(found, each, strict=True):
            if isinstance(one, Answer):
                assert one.status == "rejected" and one.detail and one.remedy
            else:
                assert all(getattr(one, name) == value for name, value in sent.items())


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(
    st.recursive(
        names | numbers, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=3), x)
    )
)
def test_names_that_may_stand_twice_are_never_missed(value: Any) -> None:
    """What the count of colons lets through holds every name once."""
    body = json.dumps(value).encode()
    if _names_once(body):
        assert parsed(body) == value
    for twice in (b'{"a":1,"a":1}', b'[{"b":{"a":1,"a":1}}]', b'{"groups":{"x":1,"x":1,"y":2}}'):
        assert not _names_once(twice)
        with pytest.raises(Problem, match="twice"):
            parsed(twice)
