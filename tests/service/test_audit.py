"""The audit finds whatever journal, sums, head, snapshots and state do not agree on."""

import io
import threading
import time
import zlib

import numpy as np
import pytest

from gradeq.service.audit import Auditor, JournalTally, audit_store
from gradeq.service.desk import Desk
from gradeq.service.maintenance import AuditWatch, fold_layer
from gradeq.service.problems import LayerStopped
from gradeq.service.schemas import Label, encode_entry
from gradeq.service.store import open_store
from gradeq.service.store.journal_store import TICKET, Entry
from gradeq.service.telemetry import Log
from service.desks import working_desk
from service.test_desk import SPECS, item_of, label_of

NOT_GIVEN = "the {} differs from the replayed journal"


def fill(desk, name, spec, rng, rows=60, first=0):
    """Predictions, late labels and corrections."""
    ids = list(range(first, first + rows))
    for k in range(0, rows, 10):
        items = [item_of(spec, rng, id) for id in ids[k : k + 10]]
        desk.predict("t", name, items).result()
        late = [id for id in ids[: k + 10] if rng.random() < 0.5]
        labels = [Label(id=id, label=label_of(spec, rng), correct=rng.random() < 0.3) for id in late]
        desk.label("t", name, labels).result()


@pytest.fixture
def desk(address):
    with working_desk(address) as desk:
        yield desk


def in_order(desk):
    found = audit_store(desk.store)
    assert [own.faults for own in found] == [[] for _ in found]
    return found


@pytest.mark.parametrize("name", SPECS)
def test_a_store_of_every_kind_of_layer_is_in_order_with_and_without_snapshots(name, tmp_path):
    store = open_store(str(tmp_path / "store.db"))
    rng = np.random.default_rng(5)
    for turn in range(3):
        desk = Desk(store)
        desk.start()
        desk.create("t", "own", SPECS[name])
        fill(desk, "own", SPECS[name], rng, 40, first=100 * turn)
        (found,) = in_order(desk)
        assert found.entries == found.read == store.head(1).seq and found.labels > 10
        assert desk.runtime("t", "own").layer.equilibrium().balance == "even"
        desk.stop()
    store.close()


def changed(desk, sql, *params):
    with desk.store.driver.writing() as own:
        own.execute(sql, params)


DAMAGE = {
    "an entry is gone": ("DELETE FROM journal WHERE layer = 1 AND seq = 30", "30 to 30 are missing"),
    "the last entry is gone": (
        "DELETE FROM journal WHERE layer = 1 AND seq = (SELECT MAX(seq) FROM journal)",
        "the head says",
    ),
    "a time": ("UPDATE journal SET at = at + 1 WHERE layer = 1 AND seq = 30", "hash"),
    "an author": ("UPDATE journal SET author = 9 WHERE layer = 1 AND seq = 30", "hash"),
    "an id": ("UPDATE journal SET id = '\"x\"' WHERE layer = 1 AND seq = 30", "hash"),
    "a payload": ("UPDATE journal SET payload = body WHERE layer = 1 AND seq = 3", "hash"),
    "a kind": ("UPDATE journal SET kind = 4 WHERE layer = 1 AND kind = 2 AND seq < 20", "hash"),
    "settings": ("UPDATE layers SET spec = replace(spec, '0.05', '0.06')", "hash"),
    "a name": ("UPDATE layers SET name = 'owm'", "hash"),
    "a hash": ("UPDATE layers SET hash = '1' || hash", "hash"),
    "a count": ("UPDATE layers SET entries = entries + 1", "entries"),
    "labels of a sum": ("UPDATE sums SET labels = labels + 1", "sums of"),
    "a sum": ("UPDATE sums SET gradient = '1p-1074' WHERE level = 0", "sums of"),
    "a moved sum": ("UPDATE sums SET moved = gradient", "sums of"),
    "a sum too few": ("DELETE FROM sums", "sums of"),
    "a sum too many": ("INSERT INTO sums VALUES (1, '\"z\"', 0, 1, '1p0', '0')", "sums of"),
    "a sum that is none": ("UPDATE sums SET gradient = 'zzz'", "damaged"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_whatever_is_changed_in_the_store_is_found_by_both_levels(name, desk):
    spec = SPECS["groups"]
    desk.create("t", "own", spec)
    fill(desk, "own", spec, np.random.default_rng(6))
    in_order(desk)
    sql, said = DAMAGE[name]
    changed(desk, sql)
    (found,) = audit_store(desk.store)
    assert any(said in fault for fault in found.faults), found.faults
    try:
        found = Auditor(desk.store).tail(desk.store.layers()[0])
    except ValueError as error:
        assert "damaged" in str(error)
    else:
        assert any(said in fault for fault in found.faults), found.faults


def test_a_snapshot_that_the_journal_does_not_give_is_found(desk):
    spec = SPECS["groups"]
    desk.create("t", "own", spec)
    fill(desk, "own", spec, np.random.default_rng(7))
    text, seq = desk.runtime("t", "own").layer.to_json(), desk.store.head(1).seq
    with desk.store.write() as tx:
        tx.save_snapshot(1, seq, text, 0.0)
    in_order(desk)
    with desk.store.write() as tx:  # a whole state, of another moment
        tx.save_snapshot(1, seq - 1, text, 0.0)
    (found,) = audit_store(desk.store)
    assert found.faults == [NOT_GIVEN.format(f"snapshot at {seq - 1}")]


def test_a_damaged_snapshot_is_found(desk):
    spec = SPECS["debias"]
    desk.create("t", "own", spec)
    fill(desk, "own", spec, np.random.default_rng(9))
    with desk.store.write() as tx:
        tx.save_snapshot(1, desk.store.head(1).seq, desk.runtime("t", "own").layer.to_json(), 0.0)
    with desk.store.driver.reading() as own:
        ((body,),) = own.execute("SELECT body FROM snapshots")
    for wrong in (body[:-3], zlib.compress(zlib.decompress(body).replace(b'"log"', b'"lug"'))):
        changed(desk, "UPDATE snapshots SET body = ?", wrong)
        (found,) = audit_store(desk.store)
        assert any("damaged" in fault for fault in found.faults)


def test_the_tail_reads_only_what_is_new_and_sees_what_is_wrong_in_it(desk):
    spec = SPECS["groups"]
    desk.create("t", "own", spec)
    auditor, rng = Auditor(desk.store), np.random.default_rng(10)
    for turn in range(4):
        before = desk.store.head(1).seq
        fill(desk, "own", spec, rng, 20, first=100 * turn)
        (row,) = desk.store.layers()
        found = auditor.tail(row)
        assert (found.faults, found.read) == ([], row.head.seq - before)
        assert found.entries == row.head.seq
    assert auditor.tail(desk.store.layers()[0]).read == 0
    changed(desk, "UPDATE sums SET labels = labels + 1 WHERE account = (SELECT MIN(account) FROM sums)")
    for _ in range(2):
        assert "sums of 1 parameters" in auditor.tail(desk.store.layers()[0]).faults[0]


def test_a_layer_at_work_that_is_not_what_the_journal_gives_is_found(desk):
    spec = SPECS["groups"]
    desk.create("t", "own", spec)
    fill(desk, "own", spec, np.random.default_rng(11))
    live = desk.runtime("t", "own")
    auditor, (row,) = Auditor(desk.store), desk.store.layers()
    copy = live.head.seq, live.layer.to_json()
    assert auditor.full(row, copy).faults == []
    live.layer.internals.state.u[0] = np.nextafter(live.layer.internals.state.u[0], 1.0)
    found = auditor.full(row, (live.head.seq, live.layer.to_json()))
    assert found.faults == [NOT_GIVEN.format("running layer")]


def test_a_layer_whose_books_do_not_balance_stops_learning_and_the_others_go_on(desk):
    spec, rng = SPECS["groups"], np.random.default_rng(12)
    for name in ("good", "bad"):
        desk.create("t", name, spec)
        fill(desk, name, spec, rng, 20)
    watch = AuditWatch(desk, Log(io.StringIO()))
    watch.start()
    watch.stop()
    assert len(watch.results) == 2 and not any(own.faults for _, own in watch.results.values())
    number = desk.runtime("t", "bad").number
    changed(desk, "UPDATE sums SET labels = labels + 1 WHERE layer = ?", number)
    rows = desk.store.layers()
    assert [bool(watch.audit_layer(row).faults) for row in rows] == [False, True]
    assert watch.results["t", "bad"][1].faults and not watch.results["t", "good"][1].faults
    for name, learning in (("good", True), ("bad", False)):
        item = item_of(spec, rng, 500)
        (answer,) = desk.predict("t", name, [item]).result()
        assert (answer.status, answer.stored, answer.learning) == ("served", learning, learning)
        label = desk.label("t", name, [Label(id=500, label=1.0)])
        if learning:
            assert label.result()[0].status == "applied"
        else:
            with pytest.raises(LayerStopped, match="sums of"):
                label.result()
    assert not watch.audit_layer(desk.store.layers()[0], full=True).faults
    assert watch.audit_layer(desk.store.layers()[1], full=True).faults


def test_audits_beside_a_desk_at_work_find_nothing(desk):
    spec, rng = SPECS["groups"], np.random.default_rng(13)
    desk.create("t", "own", spec)
    found, watch = [], AuditWatch(desk)
    done = threading.Event()

    def look():
        while not done.is_set():
            found.append(watch.audit_layer(desk.store.layers()[0], full=len(found) % 2 == 1))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for turn in range(6):
            fill(desk, "own", spec, rng, 30, first=100 * turn)
    finally:
        done.set()
        thread.join()
    assert len(found) > 2 and not any(own.faults for own in found)


def test_a_ticket_of_a_server_that_did_not_look_at_what_others_wrote_is_found(desk):
    spec = {"kind": "debias", "eta": 0.1}
    desk.create("t", "own", spec)
    fill(desk, "own", spec, np.random.default_rng(6), 20)
    in_order(desk)
    live = desk.runtime("t", "own")
    ticket = live.layer.open(1.0)._replace(number=3)
    entry = Entry(live.head.seq + 1, TICKET, '"late"', 1.0, 0, b"", encode_entry(ticket))
    with desk.store.write() as tx:
        live.head = tx.append(live.number, tx.head(live.number), [entry], {})
    (found,) = audit_store(desk.store)
    assert found.faults == [f"entry {entry.seq}: its ticket was served from a state without those before it"]


@pytest.mark.parametrize("whole", [False, True])
def test_what_is_written_and_taken_out_during_an_audit_neither_waits_nor_spoils_it(desk, monkeypatch, whole):
    """Between pages nothing is held: others write, SQLite's log is moved into the file, retention takes rows out."""
    monkeypatch.setattr("gradeq.service.store.journal_store.PAGE_SIZE", 20)
    rng = np.random.default_rng(9)
    desk.create("t", "own", SPECS["groups"])
    fill(desk, "own", SPECS["groups"], rng, 60)
    with desk.store.write() as tx:
        desk._save(tx, desk.runtime("t", "own"))
    row, turns = desk.store.layers()[0], []
    take = JournalTally.take

    def meanwhile(tally, page, found):
        turns.append(len(page))
        if len(turns) == 2:
            fill(desk, "own", SPECS["groups"], rng, 30, first=1000)
            if not desk.store.shared:
                with desk.store.driver.writing() as own:
                    own.execute("COMMIT")
                    assert own.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
                    own.execute("BEGIN")
        if len(turns) == 4:
            assert fold_layer(desk.store, row, 1.0, time.time() + 9e9)
        take(tally, page, found)

    monkeypatch.setattr(JournalTally, "take", meanwhile)
    auditor = Auditor(desk.store)
    found = (auditor.full if whole else auditor.tail)(row)
    assert not found.faults and found.entries == desk.store.head(row.number).entries
    assert len(turns) > 5
