"""Full, broken and read-only disks: refused in words, nothing acknowledged is lost, and learning goes on after."""

import os
import random
import subprocess

import numpy as np
import pytest

from gradeq.service.audit import Auditor, audit_store
from gradeq.service.desk import Desk
from gradeq.service.schemas import Label
from gradeq.service.store import open_store
from gradeq.service.store.database import StoreStopped, StoreUnavailable
from gradeq.service.store.journal_store import Store
from service.books import SPEC, append, journal
from service.cuts import DURABLE, Recorder, Traced
from service.test_desk import SPECS, item_of, label_of

ROWS = journal(3, 400)


def filled(store, number, at):
    """Append until the store refuses: the number of the last row that was acknowledged."""
    while at < len(ROWS):
        append(store, number, ROWS[at : at + 5])
        at += 5
    return at


@pytest.fixture
def recorder():
    own = Recorder()
    yield own
    own.unregister()


@pytest.mark.parametrize("seed", range(5))
def test_a_full_disk_loses_nothing_and_learning_goes_on_when_there_is_room(seed, recorder, tmp_path):
    recorder.room = random.Random(seed).randrange(110_000, 220_000)
    store = Store(Traced(str(tmp_path / "store.db"), recorder, DURABLE))
    with store.write() as tx:
        number = tx.create("acme", "demand", SPEC, 0.0).number
    with pytest.raises(StoreUnavailable, match="full"):
        filled(store, number, 0)
    acknowledged = store.head(number).seq
    assert 0 < acknowledged < len(ROWS)
    assert not Auditor(store).tail(store.layers()[0]).faults
    recorder.room = None
    filled(store, number, acknowledged)
    store.close()
    again = open_store(str(tmp_path / "store.db"))
    (found,) = audit_store(again)
    assert (found.faults, found.entries) == ([], len(ROWS))
    again.close()


def test_a_disk_that_cannot_sync_is_not_trusted_again(recorder, tmp_path):
    store = Store(Traced(str(tmp_path / "store.db"), recorder, DURABLE))
    with store.write() as tx:
        number = tx.create("acme", "demand", SPEC, 0.0).number
    append(store, number, ROWS[:5])
    recorder.broken = True
    with pytest.raises(StoreStopped, match="restart the server"):
        append(store, number, ROWS[5:10])
    recorder.broken = False
    store.close()
    again = open_store(str(tmp_path / "store.db"))
    assert again.head(number).seq in (5, 10) and not audit_store(again)[0].faults
    again.close()


@pytest.fixture
def disk(tmp_path):
    """A disk of 2 MB of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    try:
        made = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        made = False
    if not made:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_server_on_a_full_disk_serves_and_says_so_and_learns_again_when_there_is_room(disk):
    spec, rng = SPECS["groups"], np.random.default_rng(1)
    store = open_store(str(disk / "store.db"))
    desk = Desk(store)
    desk.start()
    desk.create("t", "own", spec)
    desk.predict("t", "own", [item_of(spec, rng, k) for k in range(50)]).result()
    (disk / "ballast").write_bytes(bytes(1 << 20))
    k, stored = 50, True
    while stored:
        (answer,) = desk.predict("t", "own", [item_of(spec, rng, k)]).result()
        stored, k = answer.stored, k + 1
        assert answer.status == "served" and answer.adjusted is not None
    assert "full" in answer.detail and not desk.health.writable
    with pytest.raises(StoreUnavailable, match="full"):
        desk.label("t", "own", [Label(id=id, label=0.5) for id in range(50)]).result()
    (disk / "ballast").unlink()
    told = desk.label("t", "own", [Label(id=id, label=label_of(spec, rng)) for id in range(k)]).result()
    assert [own.status for own in told] == ["applied"] * (k - 1) + ["unknown"]
    assert desk.health.writable
    desk.stop()
    (found,) = audit_store(store)
    assert (found.faults, found.labels) == ([], k - 1)
    store.close()


def test_a_read_only_disk_can_be_read_and_is_refused_otherwise(disk):
    path = str(disk / "store.db")
    store = open_store(path)
    with store.write() as tx:
        number = tx.create("acme", "demand", SPEC, 0.0).number
    append(store, number, ROWS[:50])
    (disk / "copy.db").write_bytes((disk / "store.db").read_bytes())
    (disk / "copy.db-wal").write_bytes((disk / "store.db-wal").read_bytes())
    store.close()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert not os.access(disk, os.W_OK)
    with pytest.raises(StoreUnavailable, match="store"):
        open_store(path)
    own = open_store(path, read_only=True)
    assert list(own.entries(number)) == [entry for entry, _ in ROWS[:50]]
    assert not audit_store(own)[0].faults
    own.close()
    with pytest.raises(StoreUnavailable, match="copy both to another disk"):
        open_store(str(disk / "copy.db"), read_only=True)
