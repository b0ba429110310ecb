"""Migrates stores of older versions, on a copy; the original stays.

Each step is SQL with the placeholders of ``database.TABLES`` and leads to the next version. A file is copied, the
copy migrated, and then the two are swapped; in PostgreSQL all tables are first copied into another schema.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from gradeq.errors import BadInput
from gradeq.service.store.database import VERSION, Driver, StoreDamaged, check_version
from gradeq.service.store.postgres import Postgres
from gradeq.service.store.sqlite import Sqlite

# The statements that lead to each version from the one before.
STEPS: Mapping[int, Sequence[str]] = {}


def migrate(driver: Driver, steps: Mapping[int, Sequence[str]] = STEPS, to: int = VERSION) -> str:
    """Bring a store to a version; where the original is now. Raises if it already has it."""
    version = version_of(driver)
    if version == str(to):
        raise BadInput(f"{driver.url} already has version {to}; there is nothing to migrate")
    if not version.isdecimal() or int(version) > to:
        check_version(driver.url, version)
    missing = [number for number in range(int(version) + 1, to + 1) if number not in steps]
    if missing:
        raise BadInput(
            f"{driver.url} has version {version}, and this gradeq cannot migrate from {missing[0] - 1} "
            f"to {missing[0]}; use an older gradeq first"
        )
    driver.lock_server()
    statements = [text.format(**driver.types) for number in range(int(version) + 1, to + 1) for text in steps[number]]
    statements.append(f"UPDATE meta SET value = '{to}' WHERE key = 'version'")
    if isinstance(driver, Postgres):
        return _migrate_schema(driver, version, statements)
    assert isinstance(driver, Sqlite)
    return _migrate_file(driver, version, statements)


def version_of(driver: Driver) -> str:
    if not driver.exists():
        raise StoreDamaged(f"{driver.url} is not a gradeq store; name one that a server created")
    with driver.reading() as connection:
        for (version,) in connection.execute("SELECT value FROM meta WHERE key = 'version'"):
            return str(version)
    return ""


def _migrate_file(driver: Sqlite, version: str, statements: Sequence[str]) -> str:
    """Replace the file by a migrated copy; the original stays under another name."""
    path = Path(os.path.realpath(driver.path))
    original, copy = path.with_name(f"{path.name}.v{version}"), path.with_name(f"{path.name}.migrating.tmp")
    if original.exists():
        raise BadInput(f"{original} already exists; move it away first")
    copy.unlink(missing_ok=True)
    driver.backup(str(copy))
    with closing(Sqlite(str(copy))) as migrated:
        with migrated.writing() as connection:
            for statement in statements:
                connection.execute(statement)
        if migrated.check():
            raise StoreDamaged(f"the copy of {path} is damaged; run gradeq audit with an older gradeq")
    driver.close_connections()  # its log is in the file now, and must not meet the new one
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise BadInput(f"another program has {path} open; close it first")
    os.link(path, original)
    os.replace(copy, path)
    return str(original)


def _migrate_schema(driver: Postgres, version: str, statements: Sequence[str]) -> str:
    """Migrate in one transaction; the original tables stay in another schema."""
    schema = f"gradeq_v{version}"
    with driver.writing() as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        connection.execute(f"CREATE SCHEMA {schema}")
        for (table,) in tables:
            connection.execute(f'CREATE TABLE {schema}."{table}" AS TABLE public."{table}"')
        for statement in statements:
            connection.execute(statement)
    return f"schema {schema}"
