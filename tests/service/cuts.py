"""Power cuts: everything that SQLite writes is recorded, and the files are made as a cut may leave them.

What was synced is there. Of what was written since, each write is there, or torn, or not. The names of files are not
lost, and a sync keeps its word; that a disk may break either promise is not tried here.
"""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from gradeq.service.store.journal_store import Store
from gradeq.service.store.sqlite import SAFETY_PRAGMAS, Sqlite, sqlite_errors
from service.books import SPEC, append, journal

SECTOR = 512
Log = list[tuple[Any, ...]]


class Recorder(apsw.VFS):
    """The usual file system, every change of which is written down.

    ``room``: bytes that a file may have; ``broken``: syncs fail.
    """

    made = 0

    def __init__(self, room: int | None = None) -> None:
        Recorder.made += 1
        self.name = f"recorder{Recorder.made}"
        self.log: Log = []
        self.room, self.broken = room, False
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        return Recorded(self, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:
        self.log.append(("delete", Path(name).name))
        super().xDelete(name, sync)


class Recorded(apsw.VFSFile):
    """A file whose changes are written down."""

    def __init__(self, recorder: Recorder, name: Any, flags: list[int]) -> None:
        self._recorder = recorder
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._name = Path(path).name if path else None
        super().__init__("", name, flags)

    def _note(self, *what: Any) -> None:
        if self._name is not None:
            self._recorder.log.append((what[0], self._name, *what[1:]))

    def xWrite(self, data: bytes, offset: int) -> None:
        room = self._recorder.room
        if room is not None and offset + len(data) > room:
            raise apsw.FullError("no room")
        super().xWrite(data, offset)
        self._note("write", offset, bytes(data))

    def xTruncate(self, size: int) -> None:
        super().xTruncate(size)
        self._note("truncate", size)

    def xSync(self, flags: int) -> None:
        if self._recorder.broken:
            raise apsw.IOError("the disk does not answer")
        super().xSync(flags)
        self._note("sync")


SAID = {
    apsw.FullError: (sqlite3.OperationalError, "database or disk is full"),
    apsw.IOError: (sqlite3.OperationalError, "disk I/O error"),
}


class Plain:
    """A connection of apsw that fails as one of Python's own does."""

    def __init__(self, own: apsw.Connection) -> None:
        self._own = own

    def _done(self, do: Any, *args: Any) -> list[Any]:
        try:
            return list(do(*args))
        except tuple(SAID) as error:
            kind, text = SAID[type(error)]
            raise kind(text) from error

    def execute(self, sql: str, params: Any = ()) -> list[Any]:
        return self._done(self._own.execute, sql, tuple(params))

    def executemany(self, sql: str, params: Any) -> None:
        self._done(self._own.executemany, sql, [tuple(row) for row in params])

    @property
    def in_transaction(self) -> bool:
        return self._own.in_transaction

    def close(self) -> None:
        self._own.close(True)


class Traced(Sqlite):
    """The driver on a recorder, with one connection for everything and the durability that is asked for."""

    def __init__(self, path: str, recorder: Recorder, durable: tuple[str, ...]) -> None:
        self._recorder, self._durable = recorder, durable
        super().__init__(path)

    def _connect(self, mode: str, settings: Any = ()) -> Any:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        made = apsw.Connection(str(self.path), flags=flags, vfs=self._recorder.name)
        exclusive = "locking_mode=EXCLUSIVE"
        for setting in (*SAFETY_PRAGMAS, exclusive, *(self._durable if settings else ())):
            list(made.execute(f"PRAGMA {setting}"))
        return Plain(made)

    @contextmanager
    def reading(self) -> Iterator[Any]:
        with self._turn, sqlite_errors(self.path):
            yield self._writer


DURABLE = ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=60")


class Run(NamedTuple):
    """What was recorded, with the number of the journal that was acknowledged at each ("ack", number)."""

    name: str
    log: Log


def recorded(folder: Path, synchronous: str, commits: int, seed: int = 0) -> Run:
    """Commits of a few events each, a checkpoint now and then."""
    recorder = Recorder()
    settings = tuple(own.replace("FULL", synchronous) for own in DURABLE)
    path = folder / f"{synchronous.lower()}.db"
    store = Store(Traced(str(path), recorder, settings))
    with store.write() as tx:
        number = tx.create("acme", "demand", SPEC, 0.0).number
    rows, rng, at = journal(seed, 4 * commits), random.Random(seed), 0
    for _ in range(commits):
        size = rng.randint(1, 6)
        head = append(store, number, rows[at : at + size])
        recorder.log.append(("ack", head.seq))
        at += size
    store.close()
    recorder.unregister()
    return Run(path.name, recorder.log)


def after_cut(log: Log, until: int, kept: float, torn: float, rng: random.Random) -> tuple[dict[str, bytearray], int]:
    """The files as a cut before entry ``until`` of the log may leave them, and what was acknowledged by then."""
    safe: dict[str, bytearray] = {}
    pending: dict[str, list[tuple[Any, ...]]] = {}
    acknowledged = 0
    for what, name, *own in log[:until]:
        if what == "ack":
            acknowledged = name
        elif what == "sync":
            for change in pending.pop(name, ()):
                _apply(safe.setdefault(name, bytearray()), change)
        elif what == "delete":
            safe.pop(name, None)
            pending.pop(name, None)
        else:
            safe.setdefault(name, bytearray())
            pending.setdefault(name, []).append((what, *own))
    for name, changes in pending.items():
        for change in changes:
            if rng.random() < kept:
                if change[0] == "write" and rng.random() < torn and len(change[2]) > 1:
                    change = ("write", change[1], change[2][: rng.randrange(1, len(change[2]))])
                _apply(safe[name], change)
    return safe, acknowledged


def _apply(file: bytearray, change: tuple[Any, ...]) -> None:
    what, *own = change
    if what == "truncate":
        del file[own[0] :]
        return
    offset, data = own
    if len(file) < offset:
        file.extend(bytes(offset - len(file)))
    file[offset : offset + len(data)] = data


class Outcome(NamedTuple):
    """What cuts did: how many lost something acknowledged, the most that was lost, and what the audit said."""

    cuts: int
    losing: int
    most: int
    refused: int
    faults: list[str]


def try_cuts(run: Run, folder: Path, cuts: int, seed: int = 0) -> Outcome:
    """Cut at random instants after the store was made, in every way, and look at what is left."""
    from gradeq.service.audit import Auditor
    from gradeq.service.store import open_store
    from gradeq.service.store.database import StoreDamaged

    rng = random.Random(seed)
    first = next(k for k, entry in enumerate(run.log) if entry[0] == "ack")
    losing = most = refused = 0
    faults: list[str] = []
    place = folder / "cut"
    place.mkdir(exist_ok=True)
    for k in range(cuts):
        until = rng.randrange(first, len(run.log) + 1)
        files, acknowledged = after_cut(run.log, until, (0.0, 0.5, 1.0)[k % 3], 0.3, rng)
        for old in place.iterdir():
            old.unlink()
        for name, content in files.items():
            (place / name).write_bytes(content)
        try:
            store = open_store(str(place / run.name), read_only=True)
        except StoreDamaged:
            refused += 1
            continue
        (row,) = store.layers()
        found = Auditor(store).tail(row)
        store.close()
        faults += found.faults
        lost = acknowledged - row.head.seq
        losing, most = losing + (lost > 0), max(most, lost)
    return Outcome(cuts, losing, most, refused, faults)
