"""Bodies are read in two ways, a quick and a careful one: they give the same items."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradeq.service.problems import Problem
from gradeq.service.requests import ItemReader, parse_json
from gradeq.service.schemas import ItemAnswer, Label, Prediction

READERS = {"predictions": ItemReader(Prediction), "labels": ItemReader(Label)}
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
    for text in (json.dumps(given_items, indent=spaces), json.dumps(given_items, ensure_ascii=False)):
        body = text.encode()
        found, alone = reader.read(body, 100)
        assert alone == isinstance(given_items, dict)
        each = [given_items] if alone else given_items
        careful = [reader._convert(one) for one in parse_json(body if not alone else b"[" + body + b"]")]
        assert list(found) == careful and len(found) == len(each)
        for one, sent in zip(found, each, strict=True):
            if isinstance(one, ItemAnswer):
                assert one.status == "rejected" and one.detail and one.remedy
            else:
                assert all(getattr(one, name) == value for name, value in sent.items())


plain = {
    "id": st.text('a:\\"', min_size=1, max_size=6),
    "prediction": st.floats(-9, 9),
    "groups": st.dictionaries(st.text("g:\\", max_size=2), st.text("v:", max_size=3), max_size=3),
    "weight": st.sampled_from([1.0, 2.0]),
}


def written(pairs: Any) -> str:
    """An object with these names in this order, some of them perhaps twice."""
    return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in pairs) + "}"


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.lists(st.fixed_dictionaries({}, optional=plain), min_size=1, max_size=4), st.data())
def test_a_name_that_stands_twice_is_never_missed(given_items: Any, data: Any) -> None:
    """Whatever else is in the body: colons in texts, escapes, defaults that are spelled out."""
    escaped = data.draw(st.booleans())
    objects = [[(name, json.dumps(value)) for name, value in item.items()] for item in given_items]
    for item, pairs in zip(given_items, objects, strict=True):
        if item.get("groups") and data.draw(st.booleans()):
            inner = [(name, json.dumps(value)) for name, value in item["groups"].items()]
            inner.append(data.draw(st.sampled_from(inner)))
            pairs[[name for name, _ in pairs].index("groups")] = ("groups", written(inner))
        elif pairs:
            name, _ = data.draw(st.sampled_from(pairs))
            pairs.append((name, json.dumps(data.draw(plain[name]))))
    body = "[" + ",".join(map(written, objects)) + "]"
    if escaped:
        body = body.replace("a:", "a\\u003a").replace("v:", "v\\u003a")
    if any(objects):
        with pytest.raises(Problem, match="twice"):
            READERS["predictions"].read(body.encode(), 100)
