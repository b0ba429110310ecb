"""A store keeps its promises, whichever database it is in."""

import random
import sqlite3
import threading
from contextlib import closing

import pytest

from gradeq.errors import GradeqError
from gradeq.ledger.exact import Sum, add, amounts
from gradeq.service.store import open_store
from gradeq.service.store.database import StoreDamaged, StoreTaken, StoreUnavailable
from gradeq.service.store.journal_store import (
    CORRECTION,
    MODULUS,
    POSTING,
    REJECTIONS_LIMIT,
    SNAPSHOTS_LIMIT,
    TICKET,
    Head,
    Rejection,
    hash_entries,
)
from service.books import SPEC, append, journal


@pytest.fixture
def store(address):
    own = open_store(address)
    yield own
    own.close()


@pytest.fixture
def number(store):
    with store.write() as tx:
        return tx.create("acme", "demand", SPEC, 1.5).number


def test_what_was_written_is_read_back_to_the_last_bit_after_the_store_is_opened_again(address, store, number):
    rows = journal(1, 60)
    for k in range(0, len(rows), 7):
        append(store, number, rows[k : k + 7])
    sums = store.sums(number)
    store.close()
    again = open_store(address)
    assert list(again.entries(number)) == [entry for entry, _ in rows]
    assert list(again.entries(number, 5, 9)) == [entry for entry, _ in rows[5:9]]
    assert again.sums(number) == sums and len(sums) == 3
    assert again.layers() == again.layers("acme") == [again.layer("acme", "demand")]
    assert again.layer("acme", "demand").spec == SPEC and again.layers("other") == []
    assert again.secret == store.secret
    again.close()


def test_head_is_the_number_the_count_and_the_hash_of_all_rows_in_any_order(store, number):
    rows, born = journal(2, 50), store.head(number).hash
    append(store, number, rows[:20])
    head = append(store, number, rows[20:])
    own = [entry for entry, _ in rows]
    random.Random(0).shuffle(own)
    assert head == store.head(number)
    total = (born + hash_entries(store.secret, number, own)) % MODULUS
    assert head == Head(len(rows), len(rows), total)
    for changed in (
        own[1:],
        [*own, own[0]],
        [own[0]._replace(at=own[0].at + 1e-9), *own[1:]],
        [own[0]._replace(author=8), *own[1:]],
        [own[0]._replace(id=own[1].id), own[1]._replace(id=own[0].id), *own[2:]],
        [own[0]._replace(body=own[0].body[:-2] + b"1}"), *own[1:]],
    ):
        assert (born + hash_entries(store.secret, number, changed)) % MODULUS != total
    for secret, other in ((store.secret, number + 1), (b"other", number)):
        assert (born + hash_entries(secret, other, own)) % MODULUS != total
    assert 0 <= head.hash < MODULUS


def test_sums_are_the_same_for_every_order_of_the_postings(store, number):
    rows = journal(3, 80)
    append(store, number, rows)
    postings = [own for entry, own in rows if entry.kind != TICKET]
    found = store.sums(number)
    for seed in range(5):
        random.Random(seed).shuffle(postings)
        sums = {}
        for posting in postings:
            add(sums, posting)
        assert sums == found
    first = next(amounts(postings[0]))
    sums[first[0]] = sums[first[0]].plus(Sum(0, 1, 0))  # one unit in 2^-1074
    assert sums != found


def test_a_transaction_that_fails_at_any_statement_leaves_nothing(store, number):
    rows = journal(4, 30)
    append(store, number, rows[:10])
    before = store.head(number), store.sums(number), list(store.entries(number))
    for k in range(6):
        left = k
        with pytest.raises(ZeroDivisionError), store.write() as tx:
            for do in (
                lambda tx=tx: tx.append(number, tx.head(number), [entry for entry, _ in rows[10:]], {}),
                lambda tx=tx: tx.save_snapshot(number, 10, "{}", 0.0),
                lambda tx=tx: tx.reject(number, [Rejection(0.0, '"x"', "unknown", "never served")]),
                lambda tx=tx: tx.create("acme", "other", {}, 0.0),
                lambda tx=tx: tx.stop(number, "because"),
                lambda tx=tx: tx.remove(number, 1.0),
            ):
                if left == 0:
                    raise ZeroDivisionError
                do()
                left -= 1
            raise ZeroDivisionError
        assert before == (store.head(number), store.sums(number), list(store.entries(number)))
        assert store.snapshot(number) == (0, None) and store.rejections(number) == []
        assert [row.name for row in store.layers()] == ["demand"]


def test_one_id_has_one_ticket_and_one_first_label(store, number):
    rows = journal(5, 30)
    append(store, number, rows)
    head = store.head(number)
    for kind in (TICKET, POSTING):
        entry, own = next(row for row in rows if row[0].kind == kind)
        with pytest.raises(StoreUnavailable):
            append(store, number, [(entry._replace(seq=head.seq + 1), own)])
    corrected = next(row for row in rows if row[0].kind == CORRECTION)
    append(store, number, [(corrected[0]._replace(seq=head.seq + 1), corrected[1])])
    with store.write() as tx:
        found = tx.find(number, [entry.id for entry, _ in rows])
        firsts = [entry for entry, _ in rows if entry.kind in (TICKET, POSTING)]
        assert sorted(found.values()) == sorted(firsts)
        assert tx.find(number, []) == {} == tx.find(number + 1, [firsts[0].id])
        assert tx.changes(number, corrected[0].id)[-1].seq == head.seq + 1
        assert tx.changes(number, '"nobody"') == []


def test_numbers_of_a_journal_have_no_gap(store, number):
    rows = journal(6, 10)
    for wrong in (rows[1:], [rows[0], rows[2]], [rows[1], rows[0]]):
        with pytest.raises(StoreDamaged, match="follow one another"):
            append(store, number, wrong)
    assert store.head(number)[:2] == (0, 0)


def test_names_are_free_again_when_a_layer_is_removed_and_its_journal_stays(store, number):
    append(store, number, journal(7, 5))
    with pytest.raises(StoreUnavailable), store.write() as tx:
        tx.create("acme", "demand", SPEC, 2.0)
    with store.write() as tx:
        tx.remove(number, 3.0)
        second = tx.create("acme", "demand", SPEC, 3.0)
        third = tx.create("other", "demand", SPEC, 3.0)
    assert len({number, second.number, third.number}) == 3
    assert store.layer("acme", "demand") == second and store.layer("other", "demand") == third
    assert store.head(second.number)[:2] == (0, 0) and store.head(number).seq > 0


def test_last_snapshots_and_rejections_are_kept(store, number):
    with store.write() as tx:
        for seq in (3, 1, 8, 8, 9):
            tx.save_snapshot(number, seq, f"text {seq}", 0.0)
    assert store.snapshot(number) == (9, "text 9")
    with store.driver.reading() as own:
        kept = [row[0] for row in own.execute("SELECT seq FROM snapshots ORDER BY seq")]
    assert kept == [8, 9] and len(kept) == SNAPSHOTS_LIMIT
    for start in (0, 60, 100):
        with store.write() as tx:
            tx.reject(number, [Rejection(float(k), f'"{k}"', "unknown", "") for k in range(start, start + 70)])
    found = store.rejections(number)
    assert len(found) == REJECTIONS_LIMIT
    assert [item.id for item in found] == [f'"{k}"' for k in [*range(169, 99, -1), *range(129, 99, -1)]]


def test_latest_entries_of_some_kinds_come_oldest_first(store, number):
    rows = journal(8, 40)
    append(store, number, rows)
    wanted = [entry for entry, _ in rows if entry.kind in (POSTING, CORRECTION)]
    assert store.latest(number, (POSTING, CORRECTION), 9) == wanted[-9:]
    assert store.latest(number, (POSTING, CORRECTION), 999) == wanted


def test_reasons_for_a_stop_are_kept_until_they_are_taken_back(store, number):
    with store.write() as tx:
        tx.stop(number, "the books do not balance")
    append(store, number, journal(9, 5))
    assert store.head(number).stopped == "the books do not balance"
    with store.write() as tx:
        tx.stop(number, "")
    assert store.head(number).stopped == ""


def test_readers_see_whole_transactions_while_others_are_written(store, number):
    rows = journal(10, 400)
    faults, done = [], threading.Event()

    def read():
        while not done.is_set():
            with store.driver.reading() as own:
                ((seq, entries),) = own.execute("SELECT seq, entries FROM layers")
                ((count,),) = own.execute("SELECT COUNT(*) FROM journal")
            if not seq == entries == count:
                faults.append((seq, entries, count))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for k in range(0, len(rows), 9):
            append(store, number, rows[k : k + 9])
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert not faults


def test_two_writers_of_one_journal_never_lose_or_double_a_row(address, store, number):
    """Each reads the head under the lock; the numbers then are one sequence, whoever wrote."""
    bodies, born = journal(11, 60), store.head(number).hash
    other, failed = open_store(address), []

    def write(own, rows):
        try:
            for entry, value in rows:
                with own.write() as tx:
                    head = tx.head(number)
                    row = entry._replace(seq=head.seq + 1)
                    changed = {}
                    if entry.kind != TICKET:
                        sums = {}
                        tx_sums = own_sums(tx, number)
                        for account in add(sums, value):
                            changed[account] = tx_sums.get(account, Sum()).plus(sums[account])
                    tx.append(number, head, [row], changed)
        except GradeqError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(own, bodies[k::2])) for k, own in enumerate((store, other))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert not failed
    rows = list(store.entries(number))
    assert [entry.seq for entry in rows] == [*range(1, len(bodies) + 1)]
    assert store.head(number).hash == (born + hash_entries(store.secret, number, rows)) % MODULUS
    sums = {}
    for entry, value in bodies:
        if entry.kind != TICKET:
            add(sums, value)
    assert store.sums(number) == sums


def own_sums(tx, number):
    from gradeq.service.store.journal_store import read_sums

    return read_sums(tx.connection, number)


def test_many_servers_may_make_the_same_new_store_at_once(new_store):
    address, made, failed = new_store(), [], []

    def make():
        try:
            made.append(open_store(address))
        except GradeqError as error:
            failed.append(error)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len({own.secret for own in made}) == 1
    for own in made:
        own.close()


def test_one_server_at_a_time_writes_to_a_file_and_any_number_to_postgresql(address, store, number):
    store.serve(1.0)
    append(store, number, journal(12, 3))
    second = open_store(address)
    if store.shared:
        second.serve(2.0)
        append(store, number, [])
    else:
        with pytest.raises(StoreTaken, match="another server is using"):
            second.serve(2.0)
        append(store, number, [])
        store.close()
        second.serve(2.0)
    assert append(second, number, []).seq == len(journal(12, 3))
    second.close()


def test_where_no_lock_holds_the_server_that_came_later_writes_and_the_other_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("gradeq.service.store.sqlite.lock", lambda descriptor: None)
    first, second = (open_store(str(tmp_path / "store.db")) for _ in range(2))
    with first.write() as tx:
        number = tx.create("acme", "demand", SPEC, 1.5).number
    first.serve(1.0)
    append(first, number, journal(12, 3))
    second.serve(2.0)
    with pytest.raises(StoreTaken, match="taken over"):
        append(first, number, [])
    assert append(second, number, []) == first.head(number)
    first.close()
    second.close()


def test_a_store_that_is_read_only_refuses_to_be_written(address, store, number):
    rows = journal(13, 5)
    append(store, number, rows)
    look = open_store(address, read_only=True)
    assert list(look.entries(number)) == [entry for entry, _ in rows]
    with pytest.raises(StoreUnavailable, match="read-only"), look.write():
        pass
    look.close()


def test_a_store_of_another_version_is_refused_by_name(address, store):
    with store.driver.writing() as own:
        own.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    with pytest.raises(StoreDamaged, match="version '99'"):
        open_store(address)


def test_files_that_are_no_store_are_refused_and_left_as_they_are(tmp_path):
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as own:
        own.execute("CREATE TABLE theirs (x)")
    text, empty = tmp_path / "notes.txt", tmp_path / "empty.db"
    text.write_text("no database at all, " * 100)
    empty.touch()
    for path in (other, text):
        before = path.read_bytes()
        for read_only in (False, True):
            with pytest.raises(StoreDamaged, match=path.name):
                open_store(str(path), read_only)
        assert path.read_bytes() == before
    with pytest.raises(StoreDamaged, match="is not a gradeq store"):
        open_store(str(empty), read_only=True)
    with pytest.raises(StoreUnavailable, match="does not exist"):
        open_store(str(tmp_path / "none.db"), read_only=True)
    with pytest.raises(StoreUnavailable, match="unable to open"):
        open_store(str(tmp_path / "no" / "folder.db"))


def test_passwords_are_in_no_message_of_a_store(postgres):
    for address in (
        "postgresql://me:hush@127.0.0.1:1/none",
        "postgresql://me@127.0.0.1:1/none?password=hush",
        "postgresql://me:hush@/none?password=hush&nonsense=1",
    ):
        with pytest.raises(StoreUnavailable) as refused:
            open_store(address)
        assert "hush" not in str(refused.value)
    own = open_store(postgres.address().replace("gradeq@", "gradeq:hush@"))
    assert "hush" not in own.url and own.url.startswith("postgresql://gradeq@")
    own.close()
