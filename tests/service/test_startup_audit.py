"""A start looks at what came since the last audit, sees every fault in that, and the whole is audited soon after."""

import json
from contextlib import closing

import numpy as np
import pytest

from gradeq.service import maintenance
from gradeq.service.audit import Auditor
from gradeq.service.desk import Desk
from gradeq.service.maintenance import fold_layer
from gradeq.service.schemas import Label
from gradeq.service.store import open_store
from service.test_desk import SPECS, item_of, label_of


def feed(path, spec, first, last):
    """Rows of a journal, with a correction now and then."""
    rng, store = np.random.default_rng(first), open_store(path)
    desk = Desk(store)
    desk.start()
    desk.create("t", "demand", spec)
    for k in range(first, last):
        desk.predict("t", "demand", [item_of(spec, rng, k)]).result()
        desk.label("t", "demand", [Label(id=k, label=label_of(spec, rng))]).result()
        if k % 9 == 0:
            again = Label(id=k, label=label_of(spec, rng), correct=True)
            desk.label("t", "demand", [again]).result()
    desk.stop()
    return store


def change(store, sql, *params):
    """Somebody else writes to the database."""
    with store.driver.writing() as own:
        own.execute(sql, params)


def looked(store, marked=False):
    (row,) = store.layers()
    return Auditor(store).tail(row) if marked else Auditor(store).since_checkpoint(row)


@pytest.mark.parametrize("name", ["groups", "quantiles", "keyed", "elo drop", "auto"])
def test_what_came_since_the_mark_is_compared_and_nothing_else_is_read(name, address):
    with closing(feed(address, SPECS[name], 0, 30)) as store:
        assert looked(store) is None
        whole = looked(store, marked=True)
        assert not whole.faults and looked(store).read == 0 and not looked(store).faults
    with closing(feed(address, SPECS[name], 30, 45)) as store:
        found = looked(store)
        assert not found.faults and found.read == store.layers()[0].head.seq - whole.read


DAMAGE = {
    "a row since the mark": "UPDATE journal SET at = at + 1 WHERE seq = 90",
    "a row is gone": "DELETE FROM journal WHERE seq = 90",
    "a sum": "UPDATE sums SET labels = labels + 1",
    "a sum of old rows": "UPDATE sums SET gradient = '3p-4' WHERE account = (SELECT MIN(account) FROM sums)",
    "the head": "UPDATE layers SET entries = entries + 1",
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_behind_the_mark_is_seen_and_stops_the_layer(what, address, monkeypatch):
    monkeypatch.setattr(maintenance, "SHORT_JOURNAL", 0)
    with closing(feed(address, SPECS["groups"], 0, 30)) as store:
        looked(store, marked=True)
    feed(address, SPECS["groups"], 30, 60).close()
    with closing(open_store(address)) as store:
        change(store, DAMAGE[what])
    with closing(open_store(address)) as store:
        assert looked(store).faults
        watching = maintenance.AuditWatch(Desk(store))
        monkeypatch.setattr(watching._thread, "start", lambda: None)
        watching.start()
        assert store.layers()[0].head.stopped


def test_a_forged_mark_is_none_and_rows_before_a_mark_are_audited_in_the_background(address, monkeypatch):
    monkeypatch.setattr(maintenance, "SHORT_JOURNAL", 0)
    with closing(feed(address, SPECS["groups"], 0, 30)) as store:
        looked(store, marked=True)
    with closing(open_store(address)) as store:
        with store.driver.reading() as own:
            ((text,),) = own.execute("SELECT value FROM meta WHERE key = 'audited 1'")
        forged = json.loads(text)
        forged[0] -= 1
        for value in (json.dumps(forged), "nonsense", "[]", "{}"):
            change(store, "UPDATE meta SET value = ? WHERE key = 'audited 1'", value)
            assert looked(store) is None
        change(store, "UPDATE meta SET value = ? WHERE key = 'audited 1'", text)
        change(store, "UPDATE journal SET at = at + 1 WHERE seq = 3")
        assert looked(store).faults == []
        watching = maintenance.AuditWatch(Desk(store))
        watching.start()
        for _ in range(400):
            if store.layers()[0].head.stopped:
                break
            watching._end.wait(0.02)
        watching.stop()
        assert "hash" in store.layers()[0].head.stopped


def test_a_fold_behind_the_mark_makes_it_useless_and_the_next_audit_makes_another(address):
    with closing(feed(address, SPECS["groups"], 0, 30)) as store:
        looked(store, marked=True)
    # The snapshot of its end is the oldest that is kept.
    feed(address, SPECS["groups"], 30, 40).close()
    with closing(feed(address, SPECS["groups"], 40, 60)) as store:
        (row,) = store.layers()
        assert fold_layer(store, row, 1e-9, row.created + 1e6) > 60
        assert looked(store) is None
        assert not looked(store, marked=True).faults and not looked(store).faults
