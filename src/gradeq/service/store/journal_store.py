"""A store: layers, journals, exact sums, snapshots and folded rows. One commit is written by one ``StoreWriter``."""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from hashlib import blake2b
from typing import NamedTuple

from gradeq.ledger.exact import NOTHING, Account, Sum, Sums, read, written
from gradeq.service.store.database import (
    TABLES,
    VERSION,
    Connection,
    Driver,
    JsonObject,
    StoreDamaged,
    StoreTaken,
    StoreUnavailable,
    check_version,
)

TICKET, POSTING, REVERSAL, CORRECTION, CONTROL = 1, 2, 3, 4, 5
KINDS = {TICKET: "ticket", POSTING: "posting", REVERSAL: "reversal", CORRECTION: "correction", CONTROL: "control"}
PAGE_SIZE = 5_000  # rows of the journal that are read at once
SNAPSHOTS_LIMIT = 2  # snapshots of each layer
REJECTIONS_LIMIT = 100  # rejected items of each layer
MAX_SEQ = 2**63 - 1
MODULUS = 1 << 128


@dataclass(frozen=True)
class Rejection:
    """A rejected item: when, its id, its status, and the reason."""

    at: float
    id: str
    status: str
    detail: str


class Entry(NamedTuple):
    """One row of a journal. ``id`` is JSON, ``payload`` a hash of what the client sent, ``body`` the entry as JSON.

    ``at`` (seconds since 1970) and ``author`` (the number of the API key) say when and by whom it was sent.
    """

    seq: int
    kind: int
    id: str
    at: float
    author: int
    payload: bytes
    body: bytes


class Head(NamedTuple):
    """Where a journal stands: last number, rows ever written, sum of their hashes."""

    seq: int
    entries: int
    hash: int
    stopped: str = ""
    removed: bool = False


class LayerRow(NamedTuple):
    """A layer of the store; ``spec`` is the body that created it."""

    number: int
    tenant: str
    name: str
    spec: JsonObject
    created: float
    head: Head


class FoldedRows(NamedTuple):
    """All rows folded so far; up to ``seq`` the journal may have gaps."""

    seq: int
    entries: int
    hash: int
    sums: Sums


ENTRY_COLUMNS = ", ".join(f"entry.{name}" for name in Entry._fields)
ENTRY_TYPES = (int, int, str, float, int, bytes, bytes)


def select_entries(connection: Connection, where: str, *params: object, join: str = "") -> list[Entry]:
    """Journal rows, type-checked: a damaged page may contain anything. Their alias in SQL is ``entry``."""
    rows = list(connection.execute(f"SELECT {ENTRY_COLUMNS} FROM {join} journal AS entry {where}", params))
    if any(tuple(map(type, row)) != ENTRY_TYPES for row in rows):
        raise StoreDamaged("a row of the journal is damaged: its columns have wrong types; run gradeq audit")
    return [Entry(*row) for row in rows]


def read_page(connection: Connection, number: int, after: int, until: int | None = None) -> list[Entry]:
    """The next rows of a journal, at most ``PAGE_SIZE``."""
    where = "WHERE layer = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
    return select_entries(connection, where, number, after, MAX_SEQ if until is None else until, PAGE_SIZE)


def number_of(connection: Connection, sql: str, *params: object) -> int | None:
    """The number that a query selects; None if it is NULL or there is no row."""
    value = next((row[0] for row in connection.execute(sql, params)), None)
    return None if value is None else int(value)


def hash_entries(secret: bytes, number: int, entries: Iterable[Entry]) -> int:
    """The sum of the hashes of rows, so in any order; it differs if a row was lost, doubled or changed."""
    total, keyed = 0, blake2b(digest_size=16, key=secret)
    for seq, kind, id, at, author, payload, body in entries:
        text = f"{number} {seq} {kind} {at!r} {author} {id} ".encode()
        digest = keyed.copy()  # quicker than a new one
        digest.update(text + payload + body)
        total += int.from_bytes(digest.digest(), "big")
    return total % MODULUS


def keyed_hash(secret: bytes, text: str) -> int:
    """The hash of a text that only this store can compute."""
    return int.from_bytes(blake2b(text.encode(), digest_size=16, key=secret).digest(), "big")


def read_initial_hash(connection: Connection, secret: bytes, number: int) -> int:
    """The hash that a journal begins with: it covers the settings, so that changing them shows."""
    sql = "SELECT number, tenant, name, spec, created FROM layers WHERE number = ?"
    (row,) = connection.execute(sql, (number,))
    return keyed_hash(secret, json.dumps([*row]))


def hash_before(secret: bytes, number: int, head: Head, later: Iterable[Entry]) -> int:
    """The hash of a journal before its last rows."""
    return (head.hash - hash_entries(secret, number, later)) % MODULUS


@contextmanager
def naming_damage(what: str) -> Iterator[None]:
    """Name what is damaged when it cannot be read."""
    try:
        yield
    except (ValueError, TypeError, AttributeError, zlib.error) as error:
        raise StoreDamaged(f"{what} is damaged: {str(error)[:100]}; run gradeq audit") from None


HEAD_COLUMNS = "seq, entries, hash, stopped, removed"


def decode_head(seq: int, entries: int, hash: str, stopped: str, removed: float | None) -> Head:
    return Head(int(seq), int(entries), int(hash, 16), stopped, removed is not None)


def read_head(connection: Connection, number: int, lock: str = "") -> Head:
    for row in connection.execute(f"SELECT {HEAD_COLUMNS} FROM layers WHERE number = ?{lock}", (number,)):
        with naming_damage(f"the head of layer {number}"):
            return decode_head(*row)
    raise StoreDamaged(f"layer {number} is not in the store")


def read_snapshots(connection: Connection, number: int) -> Iterator[tuple[int, str]]:
    """The saved states of a layer, latest first."""
    sql = "SELECT seq, body FROM snapshots WHERE layer = ? ORDER BY seq DESC"
    for seq, body in connection.execute(sql, (number,)):
        with naming_damage(f"the snapshot of layer {number}"):
            yield int(seq), zlib.decompress(body).decode()


def read_sums(connection: Connection, number: int) -> Sums:
    sql = "SELECT account, level, labels, gradient, moved FROM sums WHERE layer = ?"
    sums: dict[Account, Sum] = {}
    for account, level, labels, gradient, moved in connection.execute(sql, (number,)):
        with naming_damage(f"a sum of layer {number}"):
            sums[json.loads(account), int(level)] = Sum(int(labels), read(gradient), read(moved))
    return sums


def write_sums(connection: Connection, number: int, changed: Sums) -> None:
    connection.executemany(
        "INSERT INTO sums (layer, account, level, labels, gradient, moved) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (layer, account, level) DO UPDATE "
        "SET labels = excluded.labels, gradient = excluded.gradient, moved = excluded.moved",
        [(number, json.dumps(name), *values) for name, *values in encode_sums(changed)],
    )


def encode_sums(sums: Sums) -> list[tuple[str, int, int, str, str]]:
    return [(*account, total.rows, written(total.gradient), written(total.moved)) for account, total in sums.items()]


def decode_sums(listed: Iterable[tuple[str, int, int, str, str]]) -> Sums:
    return {(name, level): Sum(rows, read(g), read(m)) for name, level, rows, g, m in listed}


def read_fold(connection: Connection, number: int) -> FoldedRows:
    sql = "SELECT seq, entries, hash, sums FROM folds WHERE layer = ?"
    for seq, entries, hash, sums in connection.execute(sql, (number,)):
        with naming_damage(f"what was folded of layer {number}"):
            return FoldedRows(int(seq), int(entries), int(hash, 16), decode_sums(json.loads(zlib.decompress(sums))))
    return FoldedRows(0, 0, 0, {})


def folded_until(connection: Connection, number: int) -> int:
    """Up to which number a journal may have gaps; 0 if nothing was folded."""
    return number_of(connection, "SELECT seq FROM folds WHERE layer = ?", number) or 0


class Store:
    """What all servers of one store share."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.read_only = driver, driver.read_only
        self.url, self.shared = driver.url, driver.shared
        self._token = ""
        try:
            self.secret = self._open()
        except BaseException:
            driver.close()
            raise

    def _open(self) -> bytes:
        """Initialize a new store or check an existing one; return its secret."""
        if not self.driver.exists() and not self.read_only:
            try:
                with self.driver.writing() as connection:
                    for table in TABLES:
                        connection.execute(table.format(**self.driver.types))
                    for key, value in (("version", str(VERSION)), ("secret", secrets.token_hex(32))):
                        connection.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (key, value))
            except StoreUnavailable:
                if not self.driver.exists():  # otherwise another server was quicker
                    raise
        if not self.driver.exists():
            raise StoreDamaged(f"{self.url} is not a gradeq store; name one that a server created")
        with self.driver.reading() as connection:
            meta = {key: value for key, value in connection.execute("SELECT key, value FROM meta")}
        check_version(self.url, meta.get("version"))
        return bytes.fromhex(meta["secret"])

    def close(self) -> None:
        self.driver.close()

    def serve(self, now: float) -> None:
        """Become the only server that writes, unless servers may share the database.

        An older server is refused at its next commit; where files can be locked, this one is refused instead.
        """
        if self.shared:
            return
        self.driver.lock_server()
        token = secrets.token_hex(16)
        with self.driver.writing() as connection:
            connection.execute("DELETE FROM server")
            connection.execute("INSERT INTO server (number, token, started) VALUES (1, ?, ?)", (token, now))
        self._token = token

    # Reading

    def layers(self, tenant: str | None = None, name: str | None = None) -> list[LayerRow]:
        """The layers in use: of a tenant, of a name, or all."""
        wanted = {column: value for column, value in (("tenant", tenant), ("name", name)) if value is not None}
        where = "".join(f" AND {column} = ?" for column in wanted)
        columns = f"number, tenant, name, spec, created, {HEAD_COLUMNS}"
        rows = []
        with self.driver.reading() as connection:
            sql = f"SELECT {columns} FROM layers WHERE removed IS NULL{where} ORDER BY number"
            for number, owner, called, spec, created, *head in connection.execute(sql, [*wanted.values()]):
                with naming_damage(f"layer {number}"):
                    rows.append(LayerRow(int(number), owner, called, json.loads(spec), created, decode_head(*head)))
        return rows

    def layer(self, tenant: str, name: str) -> LayerRow | None:
        return next(iter(self.layers(tenant, name)), None)

    def head(self, number: int) -> Head:
        with self.driver.reading() as connection:
            return read_head(connection, number)

    def entries(self, number: int, after: int = 0, until: int | None = None) -> Iterator[Entry]:
        """The journal of a layer after a number, read page by page."""
        while True:
            with self.driver.reading() as connection:
                page = read_page(connection, number, after, until)
            yield from page
            if len(page) < PAGE_SIZE:
                return
            after = page[-1].seq

    def latest(self, number: int, kinds: Sequence[int], count: int) -> list[Entry]:
        """The last rows of these kinds, oldest first."""
        where = f"WHERE layer = ? AND kind IN ({', '.join('?' * len(kinds))}) ORDER BY seq DESC LIMIT ?"
        with self.driver.reading() as connection:
            return select_entries(connection, where, number, *kinds, count)[::-1]

    def sums(self, number: int) -> Sums:
        return self.balance(number)[1]

    def balance(self, number: int) -> tuple[Head, Sums]:
        """The head of a journal and its sums, read together."""
        with self.driver.reading() as connection:
            return read_head(connection, number), read_sums(connection, number)

    def snapshot(self, number: int) -> tuple[int, str | None]:
        """The last saved state of a layer and its journal number; 0 and None without one."""
        with self.driver.reading() as connection:
            return next(read_snapshots(connection, number), (0, None))

    def rejections(self, number: int) -> list[Rejection]:
        sql = "SELECT at, id, status, detail FROM rejections WHERE layer = ? ORDER BY number DESC"
        with self.driver.reading() as connection:
            return [Rejection(*row) for row in connection.execute(sql, (number,))]

    @contextmanager
    def write(self) -> Iterator[StoreWriter]:
        """One transaction: on disk when the block ends, or nothing is."""
        with self.driver.writing() as connection:
            if self._token:
                tokens = [row[0] for row in connection.execute("SELECT token FROM server")]
                if tokens != [self._token]:
                    raise StoreTaken(f"another server has taken over {self.url}; this one stops writing")
            yield StoreWriter(self.driver, connection, self.secret)


@dataclass
class StoreWriter:
    """What can be written in one transaction."""

    driver: Driver
    connection: Connection
    secret: bytes

    def create(self, tenant: str, name: str, spec: JsonObject, now: float) -> LayerRow:
        number = (number_of(self.connection, "SELECT MAX(number) FROM layers") or 0) + 1
        row = (number, tenant, name, json.dumps(spec), now)
        head = Head(0, 0, keyed_hash(self.secret, json.dumps(row)))
        self.connection.execute(
            "INSERT INTO layers (number, tenant, name, spec, created, stopped, seq, entries, hash) "
            "VALUES (?, ?, ?, ?, ?, '', 0, 0, ?)",
            (*row, f"{head.hash:x}"),
        )
        return LayerRow(number, tenant, name, spec, now, head)

    def remove(self, number: int, now: float) -> None:
        """Take a layer out of use; its name is free again, its journal stays."""
        self.connection.execute("UPDATE layers SET removed = ? WHERE number = ?", (now, number))

    def stop(self, number: int, why: str) -> None:
        """Note why a layer no longer learns; "" when it learns again."""
        self.connection.execute("UPDATE layers SET stopped = ? WHERE number = ?", (why, number))

    def head(self, number: int) -> Head:
        return read_head(self.connection, number, self.driver.lock)

    def entries(self, number: int, after: int) -> list[Entry]:
        return select_entries(self.connection, "WHERE layer = ? AND seq > ? ORDER BY seq", number, after)

    def find(self, number: int, ids: Sequence[str]) -> dict[tuple[str, int], Entry]:
        """The tickets and first labels of these ids, by id and kind."""
        if not ids:
            return {}
        wanted, param = self.driver.among(ids)
        same = "ON entry.layer = ? AND entry.id = wanted.value AND entry.kind <= 2"
        entries = select_entries(self.connection, same, param, number, join=wanted)
        return {(entry.id, entry.kind): entry for entry in entries}

    def changes(self, number: int, id: str) -> list[Entry]:
        """The corrections and reversals of a label, oldest first."""
        where = "WHERE layer = ? AND kind > 2 AND id = ? ORDER BY seq"
        return select_entries(self.connection, where, number, id)

    def fold(self, number: int, until: int, rows: Sequence[Entry], sums: Sums) -> None:
        """Remove rows from a journal; ``sums`` is what they added to the sums."""
        old = read_fold(self.connection, number)
        hash = (old.hash + hash_entries(self.secret, number, rows)) % MODULUS
        total = {account: amount.plus(old.sums.get(account, NOTHING)) for account, amount in sums.items()}
        body = zlib.compress(json.dumps(encode_sums({**old.sums, **total})).encode())
        self.connection.executemany(
            "DELETE FROM journal WHERE layer = ? AND seq = ?", [(number, entry.seq) for entry in rows]
        )
        self.connection.execute("DELETE FROM folds WHERE layer = ?", (number,))
        self.connection.execute(
            "INSERT INTO folds (layer, seq, entries, hash, sums) VALUES (?, ?, ?, ?, ?)",
            (number, max(old.seq, until), old.entries + len(rows), f"{hash:x}", body),
        )

    def append(self, number: int, head: Head, entries: Sequence[Entry], changed: Sums) -> Head:
        """Append rows and write the sums they changed; the new head."""
        if [entry.seq for entry in entries] != [*range(head.seq + 1, head.seq + 1 + len(entries))]:
            raise StoreDamaged("the numbers of a journal must follow one another")
        self.connection.executemany(
            "INSERT INTO journal (layer, seq, kind, id, at, author, payload, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(number, *entry) for entry in entries],
        )
        write_sums(self.connection, number, changed)
        added = hash_entries(self.secret, number, entries)
        new = Head(head.seq + len(entries), head.entries + len(entries), (head.hash + added) % MODULUS, head.stopped)
        self.connection.execute(
            "UPDATE layers SET seq = ?, entries = ?, hash = ? WHERE number = ?",
            (new.seq, new.entries, f"{new.hash:x}", number),
        )
        return new

    def save_snapshot(self, number: int, seq: int, text: str, now: float) -> None:
        """Save a state as of a journal number; keep one older snapshot."""
        self.connection.execute("DELETE FROM snapshots WHERE layer = ? AND seq >= ?", (number, seq))
        self.connection.execute(
            "INSERT INTO snapshots (layer, seq, at, body) VALUES (?, ?, ?, ?)",
            (number, seq, now, zlib.compress(text.encode(), 1)),
        )
        latest = "SELECT seq FROM snapshots WHERE layer = ? ORDER BY seq DESC LIMIT ?"
        self.connection.execute(
            f"DELETE FROM snapshots WHERE layer = ? AND seq NOT IN (SELECT seq FROM ({latest}) AS latest)",
            (number, number, SNAPSHOTS_LIMIT),
        )

    def reject(self, number: int, rejections: Sequence[Rejection]) -> None:
        last = number_of(self.connection, "SELECT MAX(number) FROM rejections WHERE layer = ?", number) or 0
        self.connection.executemany(
            "INSERT INTO rejections (layer, number, at, id, status, detail) VALUES (?, ?, ?, ?, ?, ?)",
            [(number, last + 1 + k, *astuple(item)) for k, item in enumerate(rejections[-REJECTIONS_LIMIT:])],
        )
        oldest = last + min(len(rejections), REJECTIONS_LIMIT) - REJECTIONS_LIMIT
        self.connection.execute("DELETE FROM rejections WHERE layer = ? AND number <= ?", (number, oldest))
