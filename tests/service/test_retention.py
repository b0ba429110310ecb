"""Folding old rows keeps every identity, refuses known ids, and never takes what may still be needed."""

import numpy as np
import pytest

from gradeq.errors import BadInput
from gradeq.service.audit import Auditor, audit_store
from gradeq.service.desk import Desk
from gradeq.service.maintenance import export_state, fold_layer
from gradeq.service.runtime import LayerRuntime
from gradeq.service.schemas import Label, Prediction
from gradeq.service.store import open_store
from service.test_desk import SPECS, item_of, label_of
from service.test_import_export import used


class Clock:
    now = 1e9

    def __call__(self):
        return self.now


@pytest.fixture
def at_work(address):
    clock, store = Clock(), open_store(address)
    desk = Desk(store, clock=clock)
    desk.start()
    yield desk, clock
    desk.stop()
    store.close()


def run(desk, clock, spec, rng, rows, first=0):
    """A row a second, late labels, corrections; snapshots now and then."""
    for k in range(first, first + rows):
        clock.now += 1.0
        desk.predict("t", "own", [item_of(spec, rng, k)]).result()
        id = int(rng.integers(max(0, k - 10), k + 1))
        label = Label(id=id, label=label_of(spec, rng), correct=bool(rng.random() < 0.5))
        desk.label("t", "own", [label]).result()
        if k % 10 == 9:
            with desk.store.write() as tx:
                live = desk.runtime("t", "own")
                tx.save_snapshot(1, live.head.seq, live.layer.to_json(), clock.now)


def kept(desk):
    return list(desk.store.entries(1))


@pytest.mark.parametrize("name", ["groups", "quantiles", "keyed", "elo drop"])
def test_sums_hashes_and_states_are_in_order_after_every_fold(name, at_work):
    desk, clock = at_work
    spec, rng = SPECS[name], np.random.default_rng(1)
    desk.create("t", "own", spec)
    auditor, gone = Auditor(desk.store), 0
    for turn in range(4):
        run(desk, clock, spec, rng, 25, 25 * turn)
        (row,) = desk.store.layers()
        before = desk.store.sums(1), desk.store.head(1), len(kept(desk))
        went = fold_layer(desk.store, row, 20.0, clock.now)
        gone += went
        assert (desk.store.sums(1), desk.store.head(1), len(kept(desk)) + went) == before
        assert auditor.tail(row).faults == [] and Auditor(desk.store).tail(row).faults == []
        (found,) = audit_store(desk.store)
        assert (found.faults, found.entries) == ([], before[1].entries)
        assert Auditor(desk.store).full(row, desk.copy("t", "own").result()).faults == []
    assert gone > 50
    assert LayerRuntime.load(desk.store, row).layer.to_json() == desk.runtime("t", "own").layer.to_json()
    export_state(desk.store, row)


def test_open_tickets_stay_until_their_time_has_passed_and_ids_are_refused_until_twice_that(at_work):
    desk, clock = at_work
    for ttl, open_then in ((None, True), (30, False)):
        name = f"ttl {ttl}"
        spec = {"kind": "debias", "eta": 0.1, **({} if ttl is None else {"ttl": ttl})}
        desk.create("t", name, spec)
        rng = np.random.default_rng(2)
        desk.predict("t", name, [item_of(spec, rng, k) for k in range(4)]).result()
        desk.label("t", name, [Label(id=k, label=0.5) for k in (0, 1)]).result()
        live, start = desk.runtime("t", name), clock.now
        row = live.row
        for wait in (10.0, 50.0, 59.0, 61.0, 200.0):
            clock.now = start + wait
            with desk.store.write() as tx:
                tx.save_snapshot(live.number, live.head.seq, live.layer.to_json(), clock.now)
            fold_layer(desk.store, row, 60.0, clock.now)
            ids = {entry.id for entry in desk.store.entries(live.number)}
            assert ids == ({"0", "1", "2", "3"} if wait < 60.0 else {"2", "3"} if open_then else set())
            if wait < 60.0:
                told = desk.predict("t", name, [item_of(spec, rng, 0)]).result()
                assert told[0].status == "conflict"
        status = desk.label("t", name, [Label(id=2, label=0.5)]).result()[0].status
        assert status in (("applied",) if open_then else ("unknown", "expired"))
        assert Auditor(desk.store).full(row).faults == []


def test_nothing_goes_that_no_snapshot_holds_or_that_may_still_be_needed(at_work):
    desk, clock = at_work
    spec, rng = SPECS["groups"], np.random.default_rng(3)
    desk.create("t", "own", spec)
    (row,) = desk.store.layers()
    desk.predict("t", "own", [item_of(spec, rng, k) for k in range(5)]).result()
    desk.label("t", "own", [Label(id=0, label=1.0)]).result()
    clock.now += 1000.0
    assert fold_layer(desk.store, row, 10.0, clock.now) == 0
    run(desk, clock, spec, rng, 20, 100)
    clock.now += 1000.0
    desk.label("t", "own", [Label(id=0, label=2.0, correct=True)]).result()  # its label is needed
    fold_layer(desk.store, row, 10.0, clock.now)
    assert {entry.kind for entry in kept(desk) if entry.id == "0"} == {1, 2, 3, 4}
    assert audit_store(desk.store)[0].faults == []
    for spec, keep in (({"ttl": 60}, 100.0), ({"tickets": "signed"}, 1e9), ({}, 0.0)):
        with pytest.raises(BadInput, match=r"twice|never expire|too little"):
            fold_layer(desk.store, row._replace(spec={**row.spec, **spec}), keep, clock.now)


def test_the_ticket_of_a_label_that_still_waits_stays(at_work):
    """A server that was down for long learns from it when it starts again."""
    desk, clock = at_work
    desk.create("t", "own", {"kind": "debias", "eta": 0.1, "ttl": 20, "maturity": 5})
    desk.predict("t", "own", [Prediction(id=k, prediction=1.0) for k in range(3)]).result()
    assert desk.label("t", "own", [Label(id=0, label=3.0)]).result()[0].status == "waiting"
    live = desk.runtime("t", "own")
    with desk.store.write() as tx:
        tx.save_snapshot(1, live.head.seq, live.layer.to_json(), clock.now)
    assert fold_layer(desk.store, desk.store.layer("t", "own"), 40.0, clock.now + 1000.0) == 2
    clock.now += 1000.0
    desk.predict("t", "own", [Prediction(id=9, prediction=1.0)]).result()
    assert [heard.posting.y for heard in live.recent_labels] == [3.0]
    assert [found.faults for found in audit_store(desk.store)] == [[]]


def test_a_clock_that_ran_ahead_keeps_more_and_never_less(at_work):
    desk, clock = at_work
    spec, rng = SPECS["groups"], np.random.default_rng(4)
    desk.create("t", "own", spec)
    clock.now += 1e6
    desk.predict("t", "own", [item_of(spec, rng, 999)]).result()
    clock.now -= 1e6
    run(desk, clock, spec, rng, 20)
    (row,) = desk.store.layers()
    assert fold_layer(desk.store, row, 5.0, clock.now + 1000.0) == 0


def test_an_imported_layer_can_be_folded(at_work):
    desk, clock = at_work
    layer = used(SPECS["groups"])
    desk.create("t", "own", {}, layer.to_json())
    run(desk, clock, SPECS["groups"], np.random.default_rng(5), 30, 1000)
    (row,) = desk.store.layers()
    assert fold_layer(desk.store, row, 5.0, clock.now) > 50
    assert audit_store(desk.store)[0].faults == []
    assert kept(desk)[0].seq == 1


def test_damage_to_what_was_folded_is_found(at_work):
    desk, clock = at_work
    spec = SPECS["groups"]
    desk.create("t", "own", spec)
    run(desk, clock, spec, np.random.default_rng(6), 40)
    (row,) = desk.store.layers()
    assert fold_layer(desk.store, row, 5.0, clock.now)
    for sql in (
        "UPDATE folds SET hash = '1'",
        "UPDATE folds SET entries = entries + 1",
        "UPDATE folds SET sums = hash" if not desk.store.shared else "UPDATE folds SET sums = '\\x00'",
        "DELETE FROM folds",
    ):
        try:
            with desk.store.write() as tx:
                tx.connection.execute(sql.replace("sums = hash", "sums = CAST(hash AS BLOB)"))
                found = Auditor(InTransaction(desk.store, tx)).tail(row).faults
                raise ZeroDivisionError
        except ZeroDivisionError:
            assert found
        except ValueError as error:
            assert "damaged" in str(error)
    assert audit_store(desk.store)[0].faults == []


class InTransaction:
    """A store as one transaction sees it."""

    def __init__(self, store, tx):
        from contextlib import nullcontext

        self.secret = store.secret
        self.driver = type("Driver", (), {"reading": staticmethod(lambda: nullcontext(tx.connection))})
