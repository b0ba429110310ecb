"""A layer moves between the library and a store with all its bits, tickets and ids."""

import json

import numpy as np
import pytest

import gradeq as gq
from gradeq.errors import BadInput
from gradeq.schedules import Piecewise, Power
from gradeq.service.audit import Auditor, audit_store
from gradeq.service.layer_spec import layer_of, spec_of
from gradeq.service.maintenance import export_state
from gradeq.service.problems import LayerExists
from gradeq.service.schemas import Label
from service.test_desk import SPECS, item_of, label_of


def predict(layer, spec, item):
    given = {"groups": item.groups, "features": item.features, "key": item.key}
    given = {name: own for name, own in given.items() if own is not None}
    args = (item.a, item.b) if spec["kind"] == "elo" else (item.prediction,)
    return layer.predict(*args, id=item.id, **given)


def update(layer, y, id):
    return layer.update(y, id=id)


def used(spec, seed=1, rows=60):
    """A layer of the library after some events: open, closed, corrected, frozen for a while."""
    layer, rng = layer_of(spec), np.random.default_rng(seed)
    for k in range(rows):
        predict(layer, spec, item_of(spec, rng, k if k % 2 else f"row {k}"))
        if k % 3:
            update(layer, label_of(spec, rng), k if k % 2 else f"row {k}")
        if k % 10 == 7 and k % 3:
            layer.correct(k, label_of(spec, rng))
        if k in (20, 25):
            (layer.freeze if k == 20 else layer.resume)()
    return layer


def state(text):
    return json.loads(text)["state"]


@pytest.mark.parametrize("name", SPECS)
def test_library_to_store_to_library_gives_the_same_text(name, desk):
    layer = used(SPECS[name])
    text = layer.to_json()
    assert desk.create("t", "own", {}, text)
    assert not desk.create("t", "own", {}, text)
    (row,) = desk.store.layers()
    assert export_state(desk.store, row) == text
    (found,) = audit_store(desk.store)
    assert found.faults == [] and found.labels == len(state(text)["tickets"]["closed"])


@pytest.mark.parametrize("name", SPECS)
def test_an_imported_layer_goes_on_as_the_library_does(name, desk):
    spec = SPECS[name]
    layer = used(spec)
    desk.create("t", "own", {}, layer.to_json())
    rng = np.random.default_rng(2)
    for k in range(100, 140):
        item = item_of(spec, rng, k)
        predict(layer, spec, item)
        assert desk.predict("t", "own", [item]).result()[0].status == "served"
        if k % 4:
            y = label_of(spec, rng)
            update(layer, y, k)
            assert desk.label("t", "own", [Label(id=k, label=y)]).result()[0].status == "applied"
    y = label_of(spec, rng)
    update(layer, y, 3)  # open when it was imported
    assert desk.label("t", "own", [Label(id=3, label=y)]).result()[0].status == "applied"
    y = 1.0 - layer.internals.tickets.closed[7].y  # closed and corrected by then
    layer.correct(7, y)
    told = desk.label("t", "own", [Label(id=7, label=y), Label(id=7, label=y, correct=True)]).result()
    assert [answer.status for answer in told] == ["conflict", "corrected"]
    (row,) = desk.store.layers()
    (found,) = audit_store(desk.store)
    assert found.faults == []
    copy = desk.copy("t", "own").result()
    assert Auditor(desk.store).full(row, copy).faults == []
    mine, theirs = state(layer.to_json()), state(export_state(desk.store, row))
    assert mine["columns"] == theirs["columns"]
    assert mine["tickets"]["closed"] == theirs["tickets"]["closed"]
    assert [own[:2] for own in mine["tickets"]["open"]] == [own[:2] for own in theirs["tickets"]["open"]]
    again = gq.from_json(export_state(desk.store, row))
    assert [update(again, 1.0, 100) for _ in range(2)] == ["applied", "duplicate"]


def test_a_layer_made_by_the_service_goes_on_in_the_library(desk):
    spec, rng = {**SPECS["groups"], "ttl": "10m"}, np.random.default_rng(3)
    clock = [1e9]
    desk.clock = lambda: clock[0]
    desk.create("t", "own", spec)
    for k in range(30):
        clock[0] += 100.0
        desk.predict("t", "own", [item_of(spec, rng, k)]).result()
        if k % 3 == 0:
            desk.label("t", "own", [Label(id=k, label=0.5)]).result()
    (row,) = desk.store.layers()
    text = export_state(desk.store, row)
    layer = gq.from_json(text)
    assert set(layer.ids.values()) == {"open", "closed", "expired"}
    with pytest.raises(gq.errors.ExpiredTicket):
        layer.update(0.5, id=1)
    assert layer.update(0.5, id=29) == "applied"
    assert desk.create("t", "again", {"tickets": "stored"}, text)
    assert desk.store.layer("t", "again").spec["ttl"] == "600.0s"
    assert export_state(desk.store, desk.store.layer("t", "again")) == text
    assert desk.runtime("t", "again").ttl == 600.0


def test_imported_predictions_are_not_served_twice(desk):
    layer = used(SPECS["groups"])
    served = layer.internals.tickets.find(3)[0][3]
    desk.create("t", "own", {}, layer.to_json())
    rng, before = np.random.default_rng(4), desk.store.head(1).seq
    for id in (3, 7):
        (answer,) = desk.predict("t", "own", [item_of(SPECS["groups"], rng, id)]).result()
        assert answer.status == "duplicate"
        assert id != 3 or answer.adjusted == served
    assert desk.store.head(1).seq == before


def test_what_cannot_be_moved_is_refused_in_words_and_nothing_is_created(desk):
    text = used(SPECS["debias"]).to_json()
    for spec, state, said in (
        ({"eta": 0.9}, text, "eta=0.05, not 0.9"),
        ({"kind": "quantile"}, text, "kind='debias'"),
        ({}, text[:-9], "damaged"),
        ({}, "{}", "not a gradeq state"),
        ({}, gq.Debiaser(schedule=Piecewise((0.1, 0.2), (5,))).to_json(), "does not offer"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            desk.create("t", "own", spec, state)
    assert desk.store.layers() == []
    desk.create("t", "own", SPECS["debias"])
    with pytest.raises(LayerExists):
        desk.create("t", "own", {}, text)


def test_settings_of_a_layer_make_the_same_layer():
    for layer in (
        gq.Debiaser(schedule=Power(0.5, 0.4), groups=["g"]),
        gq.Debiaser(outcome="binary", shadow=True, late_cap=None),
        gq.Keyed(gq.QuantileTracker(0.9, eta=0.1)),
        gq.Elo(home_advantage=True, ties="drop"),
    ):
        assert layer_of(spec_of(layer)).to_json() == layer.to_json()
    with pytest.raises(BadInput):
        spec_of(gq.Debiaser(schedule=Piecewise((0.1, 0.2), (5,))))
