"""A store in a PostgreSQL database, which several servers may share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import RLock
from typing import Any

from gradeq.errors import missing_extra
from gradeq.service.store.driver import Connection, Params
from gradeq.service.store.failures import StoreUnavailable

TYPES: Mapping[str, str] = {
    "int": "BIGINT",
    "real": "DOUBLE PRECISION",
    "blob": "BYTEA",
    "table": "",
}


class Postgres:
    """The driver of a PostgreSQL database."""

    shared = True
    types = TYPES
    lock = " FOR UPDATE"

    def __init__(self, url: str, read_only: bool = False) -> None:
        self._address, self.url, self.read_only = url, named(url), read_only
        self._idle: SimpleQueue[Any] = SimpleQueue()
        self._turn = RLock()
        self._writer: Any = None
        with self.reading() as own:
            for name in () if read_only else ("fsync", "full_page_writes"):
                ((value,),) = own.execute(f"SHOW {name}")
                if value != "on":
                    raise StoreUnavailable(
                        f"the PostgreSQL server runs with {name} = {value} and may lose what it acknowledged; "
                        "set it to on"
                    )

    def _connect(self) -> Any:
        psycopg = library()
        made = psycopg.connect(self._address, autocommit=True, connect_timeout=5)
        made.execute("SET synchronous_commit = on")
        made.execute("SET search_path = public")
        return made

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read from, of a few that are kept; one consistent view until it is given back."""
        with told():
            connection = self._begun()
            try:
                yield Marked(connection)
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
            self._idle.put(connection)

    def _begun(self) -> Any:
        """A connection on which a transaction that reads has begun."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        while not self._idle.empty():
            with suppress(Empty):
                connection = self._idle.get_nowait()
                if begun(connection, begin):
                    return connection
        connection = self._connect()
        connection.execute(begin)
        return connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction, on disk when the block ends."""
        if self.read_only:
            raise StoreUnavailable("the store was opened to be read only")
        with self._turn, told():
            if self._writer is None or not begun(self._writer, "BEGIN"):
                self._writer = self._connect()
                self._writer.execute("BEGIN")
            try:
                yield Marked(self._writer)
                done = self._writer.execute("COMMIT").statusmessage
            except BaseException:
                undone(self._writer)
                raise
            if done != "COMMIT":  # a statement had failed, so nothing was written
                raise StoreUnavailable(f"the PostgreSQL store answered {done} to COMMIT")

    def among(self, values: Sequence[str]) -> tuple[str, Any]:
        """The beginning of a join with these values, and its parameter."""
        return "unnest(?::text[]) AS wanted(value) JOIN", list(values)

    def exists(self) -> bool:
        """Whether there are tables in it."""
        with self.reading() as connection:
            found = connection.execute("SELECT to_regclass('public.meta') IS NOT NULL")
            return bool(next(iter(found))[0])

    def backup(self, path: str) -> None:
        """PostgreSQL has its own tools for this."""
        raise StoreUnavailable("back up a PostgreSQL store with pg_dump or a base backup")

    def check(self) -> list[str]:
        """PostgreSQL checks its own pages, if its data checksums are on."""
        return []

    def hold(self) -> None:
        """Any number of servers may be at work: rows are locked one by one."""

    def close(self) -> None:
        """Let go of all connections."""
        with self._turn:
            while not self._idle.empty():
                self._idle.get_nowait().close()
            if self._writer is not None:
                self._writer.close()
                self._writer = None


class Marked:
    """A connection that takes question marks for parameters."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, sql: str, params: Params = ()) -> Iterable[Any]:
        """Run one statement: its rows."""
        done = self._connection.execute(sql.replace("?", "%s"), params or None, binary=True)
        return done.fetchall() if done.description else ()

    def executemany(self, sql: str, params: Iterable[Params]) -> Any:
        """Run one statement for many rows."""
        with self._connection.cursor() as cursor:
            cursor.executemany(sql.replace("?", "%s"), params)


def library() -> Any:
    """psycopg, or how to get it."""
    try:
        import psycopg
    except ImportError:
        raise missing_extra("postgres", "a store in PostgreSQL") from None
    return psycopg


def named(url: str) -> str:
    """An address without its password."""
    library()
    from psycopg.conninfo import conninfo_to_dict

    with told():
        parts = conninfo_to_dict(url)
    user = f"{parts['user']}@" if parts.get("user") else ""
    return f"postgresql://{user}{parts.get('host', '')}/{parts.get('dbname', '')}"


def begun(connection: Any, begin: str) -> bool:
    """Whether a transaction could begin; a restart of PostgreSQL ends all connections."""
    try:
        connection.execute(begin)
    except library().OperationalError:
        connection.close()
        return False
    return True


def undone(connection: Any) -> None:
    """Take back a transaction; where that cannot be said, let the connection go."""
    try:
        connection.rollback()
    except library().Error:
        connection.close()


@contextmanager
def told() -> Iterator[None]:
    """Say what PostgreSQL cannot do in our words; addresses may hold passwords and are left out."""
    psycopg = library()
    try:
        yield
    except psycopg.Error as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise StoreUnavailable(f"the PostgreSQL store: {reason}") from error
