"""Migrates stores of older versions, on a copy; the original stays.

Each step is SQL with the placeholders of ``database.TABLES`` and leads to the next version. A file is copied, the
copy migrated, and then the two are swapped; in PostgreSQL all tables are first copied into another schema.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from gradeq.errors import BadInput
from gradeq.service.store.database import VERSION, Connection, Driver, StoreDamaged, check_version
from gradeq.service.store.postgres import Postgres
from gradeq.service.store.sqlite import Sqlite

# The statements that lead to each version from the one before.
STEPS: Mapping[int, Sequence[str]] = {}


def migrate(driver: Driver, steps: Mapping[int, Sequence[str]] = STEPS, to: int = VERSION) -> str:
    """Bring a store to a version; where the original is now. Raises if it already has it."""
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
        return _migrate_schema(driver, int(found), to, steps)
    assert isinstance(driver, Sqlite)
    return _migrate_file(driver, int(found), to, steps)


def version_of(driver: Driver) -> str:
    if not driver.exists():
        raise StoreDamaged(f"{driver.url} holds no store; name one that a server has made")
    with driver.reading() as connection:
        for (version,) in connection.execute("SELECT value FROM meta WHERE key = 'version'"):
            return str(version)
    return ""


def _apply_steps(
    connection: Connection, driver: Driver, old: int, to: int, steps: Mapping[int, Sequence[str]]
) -> None:
    for number in range(old + 1, to + 1):
        for statement in steps[number]:
            connection.execute(statement.format(**driver.types))
    connection.execute("UPDATE meta SET value = ? WHERE key = 'version'", (str(to),))


def _migrate_file(driver: Sqlite, old: int, to: int, steps: Mapping[int, Sequence[str]]) -> str:
    """Replace the file by a migrated copy; the original is kept under another name."""
    path = Path(os.path.realpath(driver.path))
    original, copy = path.with_name(f"{path.name}.v{old}"), path.with_name(f"{path.name}.v{to}.tmp")
    if original.exists():
        raise BadInput(f"{original} is there already; move it away first")
    copy.unlink(missing_ok=True)
    driver.backup(str(copy))
    made = Sqlite(str(copy))
    try:
        with made.writing() as connection:
            _apply_steps(connection, made, old, to, steps)
        if made.check():
            raise StoreDamaged(f"the copy of {path} is damaged; run gradeq audit with an older gradeq")
    finally:
        made.close()
    driver.let_go()  # its log is in the file now, and must not meet the new one
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise BadInput(f"another program has {path} open; end it first")
    os.link(path, original)
    os.replace(copy, path)
    return str(original)


def _migrate_schema(driver: Postgres, old: int, to: int, steps: Mapping[int, Sequence[str]]) -> str:
    """Migrate in one transaction; the original tables are kept in another schema."""
    schema = f"gradeq_v{old}"
    with driver.writing() as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        connection.execute(f"CREATE SCHEMA {schema}")
        for (table,) in tables:
            connection.execute(f'CREATE TABLE {schema}."{table}" AS TABLE public."{table}"')
        _apply_steps(connection, driver, old, to, steps)
    return f"schema {schema}"
