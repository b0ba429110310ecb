"""Where a service keeps its journal: one SQLite file, or a PostgreSQL database for several servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradeq.service.store.driver import Driver
    from gradeq.service.store.store import Store

POSTGRES = ("postgresql://", "postgres://")


def open_store(url: str, read_only: bool = False) -> Store:
    """The store at an address: ``sqlite:///path``, a path, or ``postgresql://...``; a new file is made ready."""
    from gradeq.service.store.store import Store

    return Store(driver_of(url, read_only))


def driver_of(url: str, read_only: bool = False) -> Driver:
    """The database at an address, whatever is in it."""
    if url.startswith(POSTGRES):
        from gradeq.service.store.postgres import Postgres

        return Postgres(url, read_only)
    from gradeq.service.store.sqlite import Sqlite

    return Sqlite(url.removeprefix("sqlite:///"), read_only)
