"""A store in one SQLite file: write-ahead log, every commit on disk before it is acknowledged."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import RLock
from typing import ClassVar
from urllib.parse import quote

from gradeq.errors import BadInput
from gradeq.files.paths import lock, sibling_path, writing
from gradeq.service.store.database import Connection, StoreDamaged, StoreStopped, StoreTaken, StoreUnavailable

# A schema that came with a file from elsewhere must not run code, and damaged pages must not be believed.
SAFETY_PRAGMAS = ("trusted_schema=OFF", "cell_size_check=ON", "busy_timeout=5000", "temp_store=MEMORY")
# Where a sync leaves data in the cache of the disk (macOS), the full one does not.
DURABILITY_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "fullfsync=ON", "checkpoint_fullfsync=ON")


class Sqlite:
    """The driver of an SQLite file."""

    shared = False
    types: ClassVar[Mapping[str, str]] = {
        "int": "INTEGER",
        "real": "REAL",
        "blob": "BLOB",
        "table": " STRICT, WITHOUT ROWID",
    }
    lock = ""

    def __init__(self, path: str, read_only: bool = False) -> None:
        self.path, self.read_only = Path(path), read_only
        self.url = f"sqlite:///{path}"
        if read_only and not self.path.exists():
            raise StoreUnavailable(f"{path} does not exist; name a store that a server created")
        self._idle: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._turn = RLock()  # of the one connection that writes
        self._writer: sqlite3.Connection | None = None
        self._lock_file: int | None = None
        if self.path.exists() and self.path.stat().st_size:
            self.exists()  # raises before a setting changes a file of another program
        if not read_only:
            with suppress(OSError):  # SQLite explains better what is wrong with the path
                # Only its owner may read it: it contains the secret that signs tickets.
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            with self._turn, sqlite_errors(path):
                self._writer = self._connect("rwc", DURABILITY_PRAGMAS)

    def _connect(self, mode: str, settings: Sequence[str] = ()) -> sqlite3.Connection:
        address = f"file:{quote(str(self.path))}?mode={mode}"
        if mode == "ro" and not os.access(self.path.parent, os.W_OK) and not Path(f"{self.path}-shm").exists():
            log = Path(f"{self.path}-wal")
            if log.exists() and log.stat().st_size:
                why = f"{log} has changes that are not yet in the store, and the disk is read-only"
                raise StoreUnavailable(f"{why}; copy both to another disk")
            address += "&immutable=1"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        for setting in (*SAFETY_PRAGMAS, *settings):
            connection.execute(f"PRAGMA {setting}")
        return connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with sqlite_errors(self.path):
            try:
                connection = self._idle.get_nowait()
            except Empty:
                connection = self._connect("ro")
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")
                self._idle.put(connection)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        if self._writer is None:
            raise StoreUnavailable(f"{self.path} was {'opened read-only' if self.read_only else 'closed'}")
        with self._turn, sqlite_errors(self.path):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    def among(self, values: Sequence[str]) -> tuple[str, object]:
        return "json_each(?) AS wanted CROSS JOIN", json.dumps(values)

    def exists(self) -> bool:
        with self.reading() as connection:
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
        if tables and not {"meta", "journal"} <= tables:
            raise StoreDamaged(f"{self.path} is an SQLite file of another program; name another file")
        return bool(tables)

    def backup(self, path: str) -> None:
        """Copy to a new file while in use; it contains secrets, so only its owner may read it."""
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise BadInput(f"{path} already exists; name a new file") from None
        except OSError as error:
            raise BadInput(f"{path} cannot be written: {error.strerror}; name another place") from None
        with self.reading() as source:
            assert isinstance(source, sqlite3.Connection)
            source.execute("ROLLBACK")  # the copy begins its own transaction
            try:
                with closing(sqlite3.connect(path)) as target:
                    source.backup(target)
            finally:
                source.execute("BEGIN")

    def check(self) -> list[str]:
        with self.reading() as connection:
            return [text for (text,) in connection.execute("PRAGMA integrity_check(5)") if text != "ok"]

    def lock_server(self) -> None:
        if self._lock_file is None:
            path = sibling_path(os.path.realpath(self.path), ".server")
            with writing(path):
                self._lock_file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if lock(self._lock_file) is False:
            self._unlock()
            why = f"another server is using {self.path}"
            raise StoreTaken(f"{why}; stop it first, or use PostgreSQL, which several servers can share")

    def close(self) -> None:
        self.close_connections()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def close_connections(self) -> None:
        """Close all connections; the last writer moves the log into the file."""
        with self._turn:
            while not self._idle.empty():
                self._idle.get_nowait().close()
            if self._writer is not None:
                self._writer.close()
                self._writer = None


@contextmanager
def sqlite_errors(path: Path | str) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if "decode to UTF-8" in str(error):
            raise StoreDamaged(f"{path} is damaged: {error}; restore a backup") from error
        if "disk I/O error" in str(error):  # what is on the disk after a failed sync is unknown
            raise StoreStopped(f"{path}: {error}; restart the server, which audits the store") from error
        remedy = "check the folder, its permissions and the free space on the disk"
        raise StoreUnavailable(f"{path}: {error}; {remedy}") from error
    except sqlite3.IntegrityError as error:
        raise StoreUnavailable(f"{path}: {error}; another server wrote to it") from error
    except sqlite3.DatabaseError as error:
        raise StoreDamaged(f"{path} is damaged: {error}; restore a backup") from error
