"""The events of a bucket, without Spark: the library's bits and outcomes, expiry, states that are read again."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradeq as gq
from gradeq.errors import StateError
from gradeq.layers import serialization
from gradeq.spark.bucket import Bucket, BucketEvent, EventOutcome, restore_bucket
from gradeq.spark.worker import merge_states
from spark.many_events import events_table, library_outcomes
from spark.many_rows import by_key

GOLDEN = Path(__file__).parent / "golden"


def event(at: float, key: Any, id: Any, prediction: Any = None, label: Any = None, **rest: Any) -> BucketEvent:
    given = {"groups": None, "features": None, "weight": None, "time": at} | rest
    return BucketEvent((at,), key, id, prediction, label, **given)


def events_of(table: Any) -> list[BucketEvent]:
    return [event(own["at"], own["shop"], own["row"], own["forecast"], own["sold"]) for own in table.to_pylist()]


def told(found: list[EventOutcome]) -> list[tuple[Any, ...]]:
    rows = [(o.event.key, o.event.id, o.what, o.outcome, o.served and o.served[0]) for o in found]
    return sorted(rows, key=repr)


@pytest.mark.parametrize("cuts", [1, 7, 60])
def test_outcomes_and_state_are_the_librarys_however_the_stream_is_cut(cuts: int) -> None:
    """Between two micro-batches all that is known is what was saved."""
    table, whole = events_table(1), gq.Keyed(gq.Debiaser(eta=0.1))
    desk, found = Bucket(gq.Keyed(gq.Debiaser(eta=0.1))), []
    rng = np.random.default_rng(3)
    size = -(-len(table) // cuts)
    for k in range(cuts):
        batch = events_of(table.slice(k * size, size))
        found += desk.handle([batch[j] for j in rng.permutation(len(batch))])
        layer, book = desk.dump()
        desk = restore_bucket(gq.from_json(layer), book)
        assert desk.dump() == (layer, book)
    expected = library_outcomes(whole, table)
    assert told(found) == expected
    assert {own[3] for own in expected} == {"served", "applied", "duplicate", "conflict", "unknown", "rejected"}
    learned, wanted = by_key(desk.layer), by_key(whole)
    assert {name: own for name, own in learned.items() if " of " in name} == {
        name: own for name, own in wanted.items() if " of " in name
    }
    assert sorted(desk.opened) == wanted["open"]


@pytest.mark.parametrize(
    ("layer", "base"),
    [
        (gq.QuantileTracker(0.8), 1.0),
        (gq.MultiQuantileTracker([0.1, 0.9]), (0.0, 2.0)),
        (gq.IntervalTracker(0.8), 1.0),
        (gq.Debiaser(eta=0.1, groups=["region"], features=["size"]), 1.0),
    ],
    ids=["quantile", "quantiles", "interval", "grouped"],
)
def test_every_kind_is_served_and_certified_as_by_the_library(layer: Any, base: Any) -> None:
    whole, rng = gq.Keyed(layer), np.random.default_rng(4)
    desk, served, wanted = Bucket(gq.Keyed(layer)), [], []
    named = bool(whole.internals.names.groups)
    for k in range(60):
        own = {"groups": {"region": "ns"[k % 2]}, "features": {"size": k / 60.0}} if named else {}
        key, y = k % 3, float(rng.normal())
        wanted.append(whole.predict(base, key=key, id=k, weight=0.5, **own))
        whole.update(y, id=k)
        made = event(float(k), key, k, base, y, weight=0.5, **own)
        served.append(next(iter(list(desk.handle([made])))).served)
        desk = restore_bucket(gq.from_json(desk.dump()[0]), desk.dump()[1])
    assert served == [own if isinstance(own, tuple) else (own,) for own in wanted]
    desk.touched = {"0", "1", "2"}
    columns = whole.table().columns()
    assert dict(desk.certificates()) == {
        key: {name: column[k] for name, column in columns.items() if name != "key"}
        for k, key in enumerate(columns["key"])
    }


def test_ties_are_broken_the_same_way_whatever_comes_first() -> None:
    events = [event(1.0, "a", k, 1.0) for k in range(4)]
    events += [event(1.0, "a", k, None, float(k)) for k in range(4)]
    found = []
    for order in ([0, 1, 2, 3, 4, 5, 6, 7], [7, 3, 5, 1, 0, 6, 2, 4]):
        desk = Bucket(gq.Keyed(gq.Debiaser(eta=0.1)))
        found.append([*desk.handle([events[k] for k in order]), desk.dump()])
    assert found[0] == found[1]
    assert [own.outcome for own in found[0][:8]] == ["served"] * 4 + ["applied"] * 4


def test_tickets_expire_by_the_time_of_their_label_and_of_the_micro_batch() -> None:
    desk = Bucket(gq.Keyed(gq.Debiaser(eta=0.1, ttl=10.0)))
    opened = [event(0.0, "a", 1, 1.0), event(5.0, "b", 2, 1.0), event(6.0, "b", 3, 1.0)]
    assert [own.outcome for own in desk.handle(opened)] == ["served"] * 3
    assert desk.next_expiry == 10.0
    found = list(desk.handle([event(10.5, "a", 1, None, 2.0), event(15.0, "b", 2, None, 2.0)]))
    assert [(own.event.id, own.outcome) for own in found] == [(1, "expired"), (2, "applied")]
    found = list(desk.handle([event(40.0, "c", 4, 1.0)]))
    assert [(own.event.id, own.what, own.outcome) for own in found] == [
        (4, "prediction", "served"),
        (3, "expiry", "expired"),
    ]
    late = list(desk.handle([event(41.0, "b", 3, None, 1.0), event(42.0, "b", 3, 1.0)]))
    assert [own.outcome for own in late] == ["expired", "expired"]
    assert desk.layer.internals.state.facts[1] == 1.0


@pytest.mark.parametrize(
    ("made", "outcome", "reason"),
    [
        (event(1.0, "a", None, 1.0), "rejected", "it has no id"),
        (event(1.0, "a", 9), "rejected", "neither a prediction nor a label"),
        (event(1.0, "a", 9, float("nan")), "rejected", "prediction"),
        (event(1.0, "a", 9, 1.0, weight=-1.0), "rejected", "weight"),
        (event(1.0, "a", 1, None, float("nan")), "rejected", "label"),
        (event(1.0, "b", 1, None, 1.0), "conflict", "was served for the key 'a'"),
        (event(1.0, "a", 1, 2.0), "conflict", "was served for the prediction 1.0"),
        (event(1.0, "a", 9, 1.0, time=None), "rejected", "no place in the order"),
    ],
)
def test_a_bad_event_is_refused_with_its_reason_and_changes_nothing(
    made: BucketEvent, outcome: str, reason: str
) -> None:
    desk = Bucket(gq.Keyed(gq.Debiaser(eta=0.1)))
    list(desk.handle([event(0.0, "a", 1, 1.0)]))
    before = desk.dump()
    [found] = desk.handle([made])
    assert (found.outcome, reason in str(found.reason)) == (outcome, True)
    after = desk.dump()
    assert after[0] == before[0]
    assert serialization.load(after[1])[2]["opened"] == serialization.load(before[1])[2]["opened"]


def test_closed_ids_are_forgotten_beyond_what_is_remembered() -> None:
    desk = Bucket(gq.Keyed(gq.Debiaser(eta=0.1)), remember=3)
    list(desk.handle([event(float(k), "a", k, 1.0, 2.0) for k in range(5)]))
    assert list(desk.closed) == [2, 3, 4]
    assert [own.outcome for own in desk.handle([event(9.0, "a", 0, None, 2.0)])] == ["unknown"]


def test_a_layer_of_the_library_brings_its_tickets_along() -> None:
    whole = gq.Keyed(gq.Debiaser(eta=0.1))
    for k in range(4):
        whole.predict(1.0, key="a", id=k)
    whole.update(2.0, id=0)
    twin, desk = whole.copy(), restore_bucket(whole)
    assert sorted(desk.opened) == [1, 2, 3] and list(desk.closed) == [0]
    [found] = desk.handle([event(9.0, "a", 2, None, 3.0)])
    twin.update(3.0, id=2)
    assert found.outcome == "applied" and desk.layer.theta == twin.theta


def test_labels_that_wait_and_damaged_books_are_refused() -> None:
    whole = gq.Keyed(gq.Debiaser(eta=0.1))
    whole.run([1.0, 1.0], [2.0, 2.0], key=["a", "a"], times=[0, 1], label_times=[9, 9])
    with pytest.raises(StateError, match="2 labels that were not due yet"):
        restore_bucket(whole)
    desk = Bucket(gq.Keyed(gq.Debiaser(eta=0.1)))
    with pytest.raises(StateError, match="a ticket book is needed"):
        desk.restore(whole.to_json())
    with pytest.raises(StateError, match="checksum does not match"):
        desk.restore(desk.dump()[1].replace('"now":null', '"now":1.0'))


def test_a_book_of_an_earlier_version_goes_on() -> None:
    """What 0.2.0 saved after the first half of the events."""
    table, whole = events_table(5, n=60), gq.Keyed(gq.Debiaser(eta=0.1))
    layer, book = (GOLDEN / "desk-0.2.0.json").read_text(encoding="utf-8").splitlines()
    desk = restore_bucket(gq.from_json(layer), book)
    half = len(table) // 2
    found = told(list(desk.handle(events_of(table.slice(half)))))
    expected = library_outcomes(whole, table)
    assert set(found) <= set(expected) and len(found) == len(table) - half
    assert by_key(merge_states([desk.dump()[0]]))["u of shop 1"] == by_key(whole)["u of shop 1"]
