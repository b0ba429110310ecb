"""Stores of an older version become stores of this one: on a copy, and the original stays.

Each step is SQL in the words of ``schema.TABLES`` and leads from one version to the next. A file is copied, the copy
changed, and then the two change places; in PostgreSQL all tables are copied into a schema of their own first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from gradeq.errors import BadInput
from gradeq.service.store.driver import Connection, Driver, first
from gradeq.service.store.failures import StoreDamaged
from gradeq.service.store.postgres import Postgres
from gradeq.service.store.schema import VERSION, check_version
from gradeq.service.store.sqlite import Sqlite

# The statements that lead to each version from the one before.
STEPS: Mapping[int, Sequence[str]] = {}


def migrate(driver: Driver, steps: Mapping[int, Sequence[str]] = STEPS, to: int = VERSION) -> str:
    """Bring a store to a version; where the original is now. A store that has it already is refused."""
    found = version_of(driver)
    if found == str(to):
        raise BadInput(f"{driver.url} is of version {to} already; there is nothing to migrate")
    if not found.isdecimal() or int(found) > to:
        check_version(driver.url, found)
    missing = [number for number in range(int(found) + 1, to + 1) if number not in steps]
    if missing:
        raise BadInput(
            f"{driver.url} is of version {found}, and this gradeq knows no way from {missing[0] - 1} "
            f"to {missing[0]}; go through an older gradeq"
        )
    driver.hold()
    if isinstance(driver, Postgres):
        return _within(driver, int(found), to, steps)
    assert isinstance(driver, Sqlite)
    return _on_a_copy(driver, int(found), to, steps)


def version_of(driver: Driver) -> str:
    """The version of a store, as it is written."""
    if not driver.exists():
        raise StoreDamaged(f"{driver.url} holds no store; name one that a server has made")
    with driver.reading() as own:
        row = first(own.execute("SELECT value FROM meta WHERE key = 'version'"))
    return "" if row is None else str(row[0])


def _changed(
    own: Connection, driver: Driver, old: int, to: int, steps: Mapping[int, Sequence[str]]
) -> None:
    for number in range(old + 1, to + 1):
        for statement in steps[number]:
            own.execute(statement.format(**driver.types))
    own.execute("UPDATE meta SET value = ? WHERE key = 'version'", (str(to),))


def _on_a_copy(driver: Sqlite, old: int, to: int, steps: Mapping[int, Sequence[str]]) -> str:
    """A copy takes the place of the file, which is kept under another name."""
    path = Path(os.path.realpath(driver.path))
    kept, copy = path.with_name(f"{path.name}.v{old}"), path.with_name(f"{path.name}.v{to}.tmp")
    if kept.exists():
        raise BadInput(f"{kept} is there already; move it away first")
    copy.unlink(missing_ok=True)
    driver.backup(str(copy))
    made = Sqlite(str(copy))
    try:
        with made.writing() as own:
            _changed(own, made, old, to, steps)
        if made.check():
            raise StoreDamaged(
                f"the copy of {path} is damaged; run gradeq audit with an older gradeq"
            )
    finally:
        made.close()
    driver.let_go()  # its log is in the file now, and must not meet the new one
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise BadInput(f"another program has {path} open; end it first")
    os.link(path, kept)
    os.replace(copy, path)
    return str(kept)


def _within(driver: Postgres, old: int, to: int, steps: Mapping[int, Sequence[str]]) -> str:
    """All in one transaction; the tables as they were are in a schema of their own."""
    kept = f"gradeq_v{old}"
    with driver.writing() as own:
        tables = own.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        own.execute(f"CREATE SCHEMA {kept}")
        for (table,) in tables:
            own.execute(f'CREATE TABLE {kept}."{table}" AS TABLE public."{table}"')
        _changed(own, driver, old, to, steps)
    return f"schema {kept}"
