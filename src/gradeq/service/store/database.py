"""What a store needs from a database: connections, transactions, dialect, tables; and its errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

from gradeq.errors import GradeqError, StateError


class StoreUnavailable(GradeqError):
    """The store cannot be read or written now; nothing was changed."""


class StoreStopped(StoreUnavailable):
    """A disk write failed: the store must not be trusted before a restart and an audit."""


class StoreDamaged(StateError):
    """The store contains data that gradeq did not write."""


class StoreTaken(GradeqError):
    """Another server is using this store."""


JsonObject = dict[str, Any]
DatabaseRow = Sequence[Any]
Params = Sequence[object]


class Connection(Protocol):
    """The part of a database connection that is used; parameters are question marks."""

    def execute(self, sql: str, params: Params = ()) -> Iterable[DatabaseRow]: ...
    def executemany(self, sql: str, params: Iterable[Params]) -> object: ...


class Driver(Protocol):
    """A database."""

    url: str
    read_only: bool
    shared: bool  # whether several servers may write to it at once
    types: ClassVar[Mapping[str, str]]
    lock: str  # what a SELECT ends with that locks its row until the transaction ends

    # A connection with one consistent view; one transaction, on disk when the block ends, rolled back if it raises.
    def reading(self) -> AbstractContextManager[Connection]: ...
    def writing(self) -> AbstractContextManager[Connection]: ...
    # The beginning of a join with these values (``wanted.value``), and its parameter.
    def among(self, values: Sequence[str]) -> tuple[str, object]: ...
    # Whether it has tables; a copy while it is in use; the faults that the database finds itself.
    def exists(self) -> bool: ...
    def backup(self, path: str) -> None: ...
    def check(self) -> list[str]: ...
    # Lock the store for this server where only one may write; raises if another server has it.
    def lock_server(self) -> None: ...
    def close(self) -> None: ...


VERSION = 1

# {int}, {real}, {blob} and {table} are the dialect's. Sums and hashes are text: they have more than 64 bits.
TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL){table}",
    """CREATE TABLE api_keys (
    number {int} PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, prefix TEXT NOT NULL UNIQUE,
    hash TEXT NOT NULL, scopes TEXT NOT NULL, created {real} NOT NULL, revoked {real}
){table}""",
    # seq, entries, hash: the head of the journal; ``stopped``: why learning was stopped, "" while it goes on.
    """CREATE TABLE layers (
    number {int} PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, spec TEXT NOT NULL,
    created {real} NOT NULL, removed {real}, stopped TEXT NOT NULL,
    seq {int} NOT NULL, entries {int} NOT NULL, hash TEXT NOT NULL
){table}""",
    "CREATE UNIQUE INDEX layer_names ON layers (tenant, name) WHERE removed IS NULL",
    """CREATE TABLE journal (
    layer {int} NOT NULL, seq {int} NOT NULL, kind {int} NOT NULL, id TEXT NOT NULL, at {real} NOT NULL,
    author {int} NOT NULL, payload {blob} NOT NULL, body {blob} NOT NULL, PRIMARY KEY (layer, seq)
){table}""",
    # One ticket and one first label for each id: a second one cannot be written, whatever a server believes.
    "CREATE UNIQUE INDEX journal_ids ON journal (layer, id, kind) WHERE kind <= 2",
    # The corrections of a label.
    "CREATE INDEX journal_changes ON journal (layer, id, seq) WHERE kind > 2",
    """CREATE TABLE sums (
    layer {int} NOT NULL, account TEXT NOT NULL, level {int} NOT NULL,
    labels {int} NOT NULL, gradient TEXT NOT NULL, moved TEXT NOT NULL, PRIMARY KEY (layer, account, level)
){table}""",
    # What retention took out of the journal: up to which number, how much, and the sums of it.
    """CREATE TABLE folds (
    layer {int} PRIMARY KEY, seq {int} NOT NULL, entries {int} NOT NULL, hash TEXT NOT NULL, sums {blob} NOT NULL
){table}""",
    """CREATE TABLE snapshots (
    layer {int} NOT NULL, seq {int} NOT NULL, at {real} NOT NULL, body {blob} NOT NULL, PRIMARY KEY (layer, seq)
){table}""",
    """CREATE TABLE rejections (
    layer {int} NOT NULL, number {int} NOT NULL, at {real} NOT NULL, id TEXT NOT NULL, status TEXT NOT NULL,
    detail TEXT NOT NULL, PRIMARY KEY (layer, number)
){table}""",
    "CREATE TABLE server (number {int} PRIMARY KEY, token TEXT NOT NULL, started {real} NOT NULL){table}",
)


def check_version(url: str, version: str | None) -> None:
    """Raise unless the store has the current version; older ones can be migrated."""
    if version == str(VERSION):
        return
    older = version is not None and version.isdecimal() and int(version) < VERSION
    remedy = (
        "run gradeq store migrate, which works on a copy" if older else "use the gradeq that wrote it, or a newer one"
    )
    raise StoreDamaged(f"{url} is a store of version {version!r}, this gradeq has {VERSION}; {remedy}")
