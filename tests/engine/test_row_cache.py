"""Rows and places are remembered from event to event; equal values of other types keep their own names."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum

import pytest

from gradeq import Debiaser, Keyed
from gradeq.engine import names
from gradeq.errors import BadInput, UnknownTicket
from gradeq.layers.key_table import Keys


class Shade(str, Enum):  # noqa: UP042  (equal to its text, but printed otherwise)
    RED = "red"


VALUES = [1, True, 1.0, "1", 0.0, -0.0, "red", Shade.RED, None, "", float("nan")]


@pytest.mark.parametrize("columns", [("g",), ("g", "h")])
def test_a_group_has_the_name_of_its_value_whatever_was_served_before(columns):
    layer = Debiaser(groups=list(columns))
    for value in VALUES * 2:
        ticket = layer.open(0.0, dict.fromkeys(columns, value))
        assert ticket.row.names == tuple(f"{c}={names.name_of(value)}" for c in columns)


def test_a_key_has_the_name_of_its_value_whatever_was_served_before():
    many = Keyed(Debiaser())
    for value in VALUES * 2:
        assert many.open(0.0, key=value).row.key == names.name_of(value)


def test_a_mapping_that_makes_up_values_is_not_asked_for_them():
    layer = Debiaser(groups=["g"])
    given = defaultdict(str, other="x")
    with pytest.raises(BadInput, match="'other' is not one of this layer's"):
        layer.predict(0.0, given)
    assert list(given) == ["other"]


def test_what_is_remembered_may_be_forgotten_at_any_time(monkeypatch):
    def served(limit):
        monkeypatch.setattr(names, "REMEMBERED", limit)
        many, layer = Keyed(Debiaser(eta=0.1, groups=["g"])), Debiaser(eta=0.1, groups=["g"])
        for i in range(60):
            group = {"g": i % 7}
            many.predict(1.0, key=i % 5, groups=group)
            many.update(float(i))
            layer.predict(1.0, group)
            layer.update(float(i))
        return many.to_json(), layer.to_json()

    assert served(1) == served(1_000)


@pytest.mark.parametrize(
    ("known", "event"),
    [(names.Roster(["g"]), ({"g": 1}, None)), (Keys(names.Roster()), (1, None, None))],
    ids=["group", "key"],
)
def test_a_name_that_is_forgotten_is_at_no_place(known, event):
    mark, (row, _) = known.mark(), known.row(*event)
    place = known.place(row)
    assert known.row(*event) == known.row(*event) == (row, place)
    known.forget(mark)
    assert known.row(*event) == (row, None)


def test_before_the_first_event_no_parameter_is_cold():
    layer = Debiaser(groups=["g"])
    assert layer.cold == ()
    layer.predict(1.0, {"g": 1})
    assert layer.cold == ("g=1",) == layer.copy().cold


def test_the_label_of_a_key_goes_to_its_oldest_open_ticket():
    many = Keyed(Debiaser(eta=0.5, queue=True))
    for i, key in enumerate("abcabcabc"):
        many.predict(float(i), key=key, id=i)
    for id in (4, 1):  # one closed before a key was ever asked for, the other after
        many.update(0.0, id=id)
        assert many.update(0.0, key="a") == "applied"
    assert [id for id, what in many.ids.items() if what == "open"] == [2, 5, 6, 7, 8]
    assert many.update(0.0, key="b") == "applied"
    with pytest.raises(UnknownTicket, match="no prediction of key 'b' waits"):
        many.update(0.0, key="b")
    with pytest.raises(BadInput, match="never seen"):
        many.update(0.0, key="d")
