"""A store in a PostgreSQL database, which several servers may share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

from gradeq.errors import missing_extra
from gradeq.service.store.database import Connection, DatabaseRow, Params, StoreUnavailable

if TYPE_CHECKING:
    import psycopg

    PsycopgConnection = psycopg.Connection[tuple[object, ...]]


class Postgres:
    """The driver of a PostgreSQL database."""

    shared = True
    types: ClassVar[Mapping[str, str]] = {"int": "BIGINT", "real": "DOUBLE PRECISION", "blob": "BYTEA", "table": ""}
    lock = " FOR UPDATE"

    def __init__(self, url: str, read_only: bool = False) -> None:
        self._address, self.url, self.read_only = url, without_password(url), read_only
        self._idle: SimpleQueue[PsycopgConnection] = SimpleQueue()
        self._turn = RLock()
        self._writer: PsycopgConnection | None = None
        with self.reading() as connection:
            for name in () if read_only else ("fsync", "full_page_writes"):
                ((value,),) = connection.execute(f"SHOW {name}")
                if value != "on":
                    why = f"the PostgreSQL server runs with {name} = {value} and may lose acknowledged data"
                    raise StoreUnavailable(f"{why}; set it to on")

    def _begin(self, connection: PsycopgConnection | None, begin: str) -> PsycopgConnection:
        """A connection with an open transaction: this one, or a new one if PostgreSQL has ended it."""
        psycopg = import_psycopg()
        if connection is not None:
            try:
                connection.execute(begin.encode())
                return connection
            except psycopg.OperationalError:
                connection.close()
        fresh: PsycopgConnection = psycopg.connect(self._address, autocommit=True, connect_timeout=5)
        for statement in (b"SET synchronous_commit = on", b"SET search_path = public", begin.encode()):
            fresh.execute(statement)
        return fresh

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with postgres_errors():
            pooled = None
            with suppress(Empty):
                pooled = self._idle.get_nowait()
            connection = self._begin(pooled, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield QmarkConnection(connection)
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
            self._idle.put(connection)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        if self.read_only:
            raise StoreUnavailable("the store was opened read-only")
        with self._turn, postgres_errors():
            writer = self._writer = self._begin(self._writer, "BEGIN")
            try:
                yield QmarkConnection(writer)
                done = writer.execute("COMMIT").statusmessage
            except BaseException:
                try:
                    writer.rollback()
                except import_psycopg().Error:
                    writer.close()
                raise
            if done != "COMMIT":  # a statement had failed, so nothing was written
                raise StoreUnavailable(f"the PostgreSQL store answered {done} to COMMIT")

    def among(self, values: Sequence[str]) -> tuple[str, object]:
        return "unnest(?::text[]) AS wanted(value) JOIN", list(values)

    def exists(self) -> bool:
        with self.reading() as connection:
            return bool([*connection.execute("SELECT 1 WHERE to_regclass('public.meta') IS NOT NULL")])

    def backup(self, path: str) -> None:
        raise StoreUnavailable("back up a PostgreSQL store with pg_dump or a base backup")

    def check(self) -> list[str]:
        """PostgreSQL checks its own pages, if its data checksums are on."""
        return []

    def lock_server(self) -> None:
        """Several servers may share it: rows are locked one by one."""

    def close(self) -> None:
        with self._turn:
            while not self._idle.empty():
                self._idle.get_nowait().close()
            if self._writer is not None:
                self._writer.close()
                self._writer = None


class QmarkConnection:
    """A connection that takes question marks for parameters."""

    def __init__(self, connection: PsycopgConnection) -> None:
        self._connection = connection

    def execute(self, sql: str, params: Params = ()) -> Iterable[DatabaseRow]:
        done = self._connection.execute(sql.replace("?", "%s").encode(), params or None, binary=True)
        return done.fetchall() if done.description else ()

    def executemany(self, sql: str, params: Iterable[Params]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(sql.replace("?", "%s").encode(), params)


def import_psycopg() -> ModuleType:
    try:
        import psycopg
    except ImportError:
        raise missing_extra("postgres", "a store in PostgreSQL") from None
    return psycopg


def without_password(url: str) -> str:
    import_psycopg()
    from psycopg.conninfo import conninfo_to_dict

    with postgres_errors():
        parts = conninfo_to_dict(url)
    user = f"{parts['user']}@" if parts.get("user") else ""
    return f"postgresql://{user}{parts.get('host', '')}/{parts.get('dbname', '')}"


@contextmanager
def postgres_errors() -> Iterator[None]:
    """Translate errors of PostgreSQL; addresses may hold passwords and are left out."""
    psycopg = import_psycopg()
    try:
        yield
    except psycopg.Error as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise StoreUnavailable(f"the PostgreSQL store: {reason}") from error
