"""The store of a service: an SQLite file, or a PostgreSQL database for several servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradeq.service.store.database import Driver
    from gradeq.service.store.journal_store import Store

POSTGRES = ("postgresql://", "postgres://")


def open_store(url: str, read_only: bool = False) -> Store:
    """The store at ``sqlite:///path``, a path, or ``postgresql://...``; a new file is initialized."""
    from gradeq.service.store.journal_store import Store

    return Store(driver_of(url, read_only))


def driver_of(url: str, read_only: bool = False) -> Driver:
    """The database at an address, whatever it contains."""
    if url.startswith(POSTGRES):
        from gradeq.service.store.postgres import Postgres

        return Postgres(url, read_only)
    from gradeq.service.store.sqlite import Sqlite

    return Sqlite(url.removeprefix("sqlite:///"), read_only)
