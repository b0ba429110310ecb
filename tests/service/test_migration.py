"""Stores of every version can be read, or are brought to this one on a copy."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gradeq.errors import BadInput
from gradeq.service.audit import audit_store
from gradeq.service.maintenance import export_state
from gradeq.service.store import driver_of, open_store
from gradeq.service.store.database import StoreDamaged
from gradeq.service.store.migrate import migrate, version_of
from service.books import SPEC, append, journal

GOLDEN = Path(__file__).parent / "golden"

# An invented version 0: journals without authors, and without the index of corrections.
BACK = ("DROP INDEX journal_changes", "ALTER TABLE journal RENAME COLUMN author TO writer")
STEPS = {
    1: (
        "ALTER TABLE journal RENAME COLUMN writer TO author",
        "CREATE INDEX journal_changes ON journal (layer, id, seq) WHERE kind > 2",
        "CREATE TABLE extra (number {int} PRIMARY KEY, note {blob}){table}",
    )
}


def test_a_store_of_version_1_is_read_to_the_last_bit(tmp_path):
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as own:
        own.executescript((GOLDEN / "store-1.sql").read_text("utf-8"))
    store = open_store(str(path))
    found = audit_store(store)
    assert [(own.name, own.faults, own.entries) for own in found] == [
        ("groups", [], 35), ("moved", [], 22), ("quantile", [], 34),
    ]  # fmt: skip
    states = "".join(export_state(store, row).partition('"state"')[2] for row in store.layers())
    assert hashlib.sha256(states.encode()).hexdigest() == (GOLDEN / "store-1.sha256").read_text().strip()
    store.close()


@pytest.fixture
def old(address):
    """The address of a store of version 0."""
    store = open_store(address)
    with store.write() as tx:
        number = tx.create("acme", "demand", SPEC, 0.0).number
    append(store, number, journal(1, 20))
    with store.driver.writing() as own:
        for statement in BACK:
            own.execute(statement)
        own.execute("UPDATE meta SET value = '0' WHERE key = 'version'")
    store.close()
    return address


def test_an_older_store_is_refused_by_name_and_migrated_on_a_copy(old):
    with pytest.raises(StoreDamaged, match=r"version '0'.*gradeq store migrate"):
        open_store(old)
    driver = driver_of(old)
    kept = migrate(driver, STEPS)
    driver.close()
    store = open_store(old)
    assert [own.faults for own in audit_store(store)] == [[]]
    assert list(store.entries(1)) == [entry for entry, _ in journal(1, 20)]
    with store.driver.reading() as own:
        assert list(own.execute("SELECT * FROM extra")) == []
        if store.shared:
            rows = list(own.execute("SELECT seq, writer FROM gradeq_v0.journal"))
            assert len(rows) == len(journal(1, 20))
    if not store.shared:
        before = driver_of(kept, read_only=True)
        assert version_of(before) == "0"
        before.close()
    store.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(old):
    for steps in ({}, {1: (*STEPS[1], "SELECT nonsense FROM nowhere")}):
        driver = driver_of(old)
        with pytest.raises(ValueError, match=r"cannot migrate from 0 to 1|nowhere"):
            migrate(driver, steps)
        assert version_of(driver) == "0"
        driver.close()
    driver = driver_of(old)
    assert migrate(driver, STEPS)
    driver.close()


def test_newer_stores_and_those_of_this_version_are_not_migrated(address):
    open_store(address).close()
    driver = driver_of(address)
    with pytest.raises(BadInput, match="nothing to migrate"):
        migrate(driver)
    with driver.writing() as own:
        own.execute("UPDATE meta SET value = '7' WHERE key = 'version'")
    with pytest.raises(StoreDamaged, match=r"version '7'.*newer"):
        migrate(driver)
    driver.close()
