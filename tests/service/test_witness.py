"""A witness outside the store sees what was acknowledged and then lost."""

import shutil
from pathlib import Path

import pytest

from gradeq.errors import BadInput
from gradeq.service import witness as own
from gradeq.service.store import open_store
from gradeq.service.witness import Witness, missing_entries
from service.books import SPEC, append, journal


class Grown:
    def __init__(self, number, head):
        self.number, self.head = number, head


@pytest.fixture
def at_work(tmp_path):
    """A store with two layers, a witness, and what writes one batch and tells the witness."""
    store = open_store(str(tmp_path / "store.db"))
    with store.write() as tx:
        numbers = [tx.create("acme", name, SPEC, 0.0).number for name in ("one", "two")]
    path = str(tmp_path / "witness")
    witness = Witness(path, store)
    rows = journal(1, 60)

    def write(number, start, stop):
        witness([Grown(number, append(store, number, rows[start:stop]))])

    yield store, numbers, path, witness, write
    witness.close()
    store.close()


def test_a_store_that_has_all_that_was_acknowledged_is_in_order(at_work):
    store, numbers, path, witness, write = at_work
    for k in range(0, 50, 5):
        write(numbers[k % 2], 0 if k < 10 else (k - k % 10) // 2, (k - k % 10) // 2 + 5)
    assert missing_entries(witness.seen, store) == {} == missing_entries(Witness(path, store).seen, store)
    append(store, numbers[0], journal(1, 60)[25:30])  # committed, and the witness not yet told
    assert missing_entries(Witness(path, store).seen, store) == {}


def test_what_is_missing_is_counted(tmp_path):
    path, seen = tmp_path / "store.db", str(tmp_path / "witness")
    store = open_store(str(path))
    with store.write() as tx:
        number = tx.create("acme", "demand", SPEC, 0.0).number
    witness, rows = Witness(seen, store), journal(2, 30)
    witness([Grown(number, append(store, number, rows[:10]))])
    store.driver.backup(str(tmp_path / "backup.db"))
    witness([Grown(number, append(store, number, rows[10:27]))])
    store.close()
    shutil.copy(tmp_path / "backup.db", path)
    store = open_store(str(path))
    (why,) = missing_entries(Witness(seen, store).seen, store).values()
    assert "17 acknowledged entries are missing (11 to 27)" in why
    # As many others in their place are not the same.
    append(store, number, [(row._replace(author=9), value) for row, value in rows[10:29]])
    (why,) = missing_entries(Witness(seen, store).seen, store).values()
    assert "the first 27 entries are not those that were acknowledged" in why
    again = Witness(seen, store)
    assert again.check(store) == {number: why} and why in store.head(number).stopped
    again.accept(missing_entries(again.seen, store))
    assert missing_entries(again.seen, store) == {} == missing_entries(Witness(seen, store).seen, store)
    again.close()
    witness.close()
    store.close()


def test_a_torn_last_line_is_no_fault_and_the_next_line_is_whole(at_work):
    store, (one, _), path, _, write = at_work
    write(one, 0, 5)
    write(one, 5, 9)
    whole = Path(path).read_bytes()
    for cut in range(len(whole) - whole.splitlines(True)[-1].__len__(), len(whole)):
        with open(path, "wb") as file:
            file.write(whole[:cut])
        again = Witness(path, store)
        assert (again.damaged, again.seen[one].seq) == (0, 5)
        again([Grown(one, store.head(one))])
        again.close()
        assert own.read_witness(path, whole.splitlines()[0].decode())[0][one].seq == 9


def test_no_flipped_bit_of_a_witness_is_believed(at_work):
    _, (one, two), path, _, write = at_work
    write(one, 0, 5)
    write(two, 0, 7)
    write(one, 5, 9)
    whole = Path(path).read_bytes()
    first = whole.splitlines()[0].decode()
    true = own.read_witness(path, first)[0]
    for place in range(len(first) + 1, len(whole)):
        for bit in range(8):
            with open(path, "wb") as file:
                file.write(whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :])
            seen, damaged = own.read_witness(path, first)
            assert damaged or seen == true or whole[place] == 10
            for number, line in seen.items():
                assert line.seq <= true[number].seq


def test_a_witness_of_another_store_is_refused(at_work, tmp_path):
    _, _, path, _, _ = at_work
    other = open_store(str(tmp_path / "other.db"))
    with pytest.raises(BadInput, match="not a witness of this store"):
        Witness(path, other)
    other.close()


def test_a_witness_that_grew_large_is_written_anew_and_one_that_cannot_be_written_says_so(at_work, monkeypatch):
    store, (one, two), path, witness, write = at_work
    write(two, 0, 5)
    monkeypatch.setattr(own, "MAX_WITNESS_BYTES", 500)
    for k in range(40):
        write(one, k, k + 1)
    with open(path) as file:
        assert len(file.read()) < 700
    again = Witness(path, store)
    assert (again.seen[one].seq, again.seen[two].seq, again.failed) == (40, 5, "")
    again.close()
    monkeypatch.setattr(own.os, "write", lambda *own: (_ for _ in ()).throw(OSError("no room")))
    write(one, 40, 41)
    assert witness.failed == "no room"
    monkeypatch.undo()
    write(one, 41, 42)
    assert witness.failed == "" and Witness(path, store).seen[one].seq == 42
