"""A store: layers, their journals of tickets and postings, exact sums, snapshots and keys, over one driver.

Everything that one commit of the desk means is written by one ``Write``: rows of the journal, sums, heads.
"""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, NamedTuple

from gradeq.service.store.driver import Connection, Driver, first
from gradeq.service.store.exact import Account, Sum, Sums, read, written
from gradeq.service.store.failures import StoreDamaged, StoreTaken, StoreUnavailable
from gradeq.service.store.schema import TABLES, VERSION, check_version

PAGE = 5_000  # rows of the journal that are read at once
MODULUS = 1 << 128
KEPT = 2  # snapshots of each layer
REJECTIONS = 100  # of each layer that are kept


class Entry(NamedTuple):
    """One row of a journal. ``id`` is JSON, ``payload`` a hash of what the client sent, ``body`` the entry as JSON.

    ``at`` (seconds since 1970) and ``author`` (the number of the API key) say when and by whom it was sent; nothing
    is learned from them.
    """

    seq: int
    kind: int
    id: str
    at: float
    author: int
    payload: bytes
    body: bytes


class Head(NamedTuple):
    """Where a journal stands: its last number, how many rows it ever had, the sum of their hashes."""

    seq: int
    entries: int
    hash: int
    stopped: str = ""
    removed: bool = False


class LayerRow(NamedTuple):
    """A layer of the store: ``spec`` is the body that made it."""

    number: int
    tenant: str
    name: str
    spec: dict[str, Any]
    created: float
    head: Head


class Store:
    """All that servers of one store share."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.read_only = driver, driver.read_only
        self.url, self.shared = driver.url, driver.shared
        self._token = ""
        try:
            self.secret = self._opened()
        except BaseException:
            driver.close()
            raise

    def _opened(self) -> bytes:
        """Make a new store ready, or see that this is one of ours: its secret."""
        if not self.driver.exists() and not self.read_only:
            try:
                self._create()
            except StoreUnavailable:
                if not self.driver.exists():  # else another server was quicker
                    raise
        if not self.driver.exists():
            raise StoreDamaged(f"{self.url} holds no store; name one that a server has made")
        with self.driver.reading() as own:
            meta = dict(own.execute("SELECT key, value FROM meta"))
        check_version(self.url, meta.get("version"))
        return bytes.fromhex(meta["secret"])

    def _create(self) -> None:
        with self.driver.writing() as own:
            for table in TABLES:
                own.execute(table.format(**self.driver.types))
            for key, value in (("version", str(VERSION)), ("secret", secrets.token_hex(32))):
                own.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (key, value))

    def close(self) -> None:
        """Let go of the database."""
        self.driver.close()

    # One server at a time, where the database cannot be shared

    def serve(self, now: float) -> None:
        """From now on only this server may write; one that is still at work is refused at its next commit.

        Where files can be locked it is this one that is refused.
        """
        if self.shared:
            return
        self.driver.hold()
        token = secrets.token_hex(16)
        with self.driver.writing() as own:
            own.execute("DELETE FROM server")
            own.execute(
                "INSERT INTO server (number, token, started) VALUES (1, ?, ?)", (token, now)
            )
        self._token = token

    # Reading

    def layers(self, tenant: str | None = None) -> list[LayerRow]:
        """The layers of a tenant, or of all."""
        where, params = ("", ()) if tenant is None else (" AND tenant = ?", (tenant,))
        with self.driver.reading() as own:
            rows = own.execute(f"{LAYER} WHERE removed IS NULL{where} ORDER BY number", params)
            return [_layer(row) for row in rows]

    def layer(self, tenant: str, name: str) -> LayerRow | None:
        """One layer by name."""
        with self.driver.reading() as own:
            where = "WHERE removed IS NULL AND tenant = ? AND name = ?"
            row = first(own.execute(f"{LAYER} {where}", (tenant, name)))
        return None if row is None else _layer(row)

    def head(self, number: int) -> Head:
        """Where the journal of a layer stands."""
        with self.driver.reading() as own:
            return head_of(own, number)

    def entries(self, number: int, after: int = 0, until: int | None = None) -> Iterator[Entry]:
        """The journal of a layer from a number on, in order, a page at a time."""
        while True:
            with self.driver.reading() as own:
                page = page_of(own, number, after, until)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].seq

    def latest(self, number: int, kinds: Sequence[int], count: int) -> list[Entry]:
        """The last rows of these kinds, oldest first."""
        marks = ", ".join("?" * len(kinds))
        sql = f"{ENTRY} WHERE layer = ? AND kind IN ({marks}) ORDER BY seq DESC LIMIT ?"
        with self.driver.reading() as own:
            return [Entry(*row) for row in own.execute(sql, (number, *kinds, count))][::-1]

    def sums(self, number: int) -> Sums:
        """The exact sums of a layer."""
        with self.driver.reading() as own:
            return sums_of(own, number)

    def balance(self, number: int) -> tuple[Head, Sums]:
        """Where the journal of a layer stands, and the sums of all that it says until there."""
        with self.driver.reading() as own:
            return head_of(own, number), sums_of(own, number)

    def snapshot(self, number: int) -> tuple[int, str | None]:
        """The last saved state of a layer and the number of the journal that it holds; 0 and None without one."""
        with self.driver.reading() as own:
            return next(snapshots_of(own, number), (0, None))

    def rejections(self, number: int) -> list[tuple[float, str, str, str]]:
        """The last items that were refused, the latest first: when, id, status, why."""
        sql = "SELECT at, id, status, detail FROM rejections WHERE layer = ? ORDER BY number DESC"
        with self.driver.reading() as own:
            return [(row[0], row[1], row[2], row[3]) for row in own.execute(sql, (number,))]

    # Writing

    @contextmanager
    def write(self) -> Iterator[Write]:
        """One transaction: all of it is on disk when the block ends, or nothing is."""
        with self.driver.writing() as own:
            if self._token:
                row = first(own.execute("SELECT token FROM server WHERE number = 1"))
                if row is None or row[0] != self._token:
                    raise StoreTaken(
                        f"another server has taken over {self.url}; this one stops writing"
                    )
            yield Write(self.driver, own, self.secret)


class Write:
    """What can be written in one transaction."""

    def __init__(self, driver: Driver, own: Connection, secret: bytes) -> None:
        self.driver, self.own, self._secret = driver, own, secret

    def create(self, tenant: str, name: str, spec: dict[str, Any], now: float) -> LayerRow:
        """A new layer, whose journal is empty."""
        number, text = self._next("layers"), json.dumps(spec)
        head = Head(0, 0, birth(self._secret, number, tenant, name, text, now))
        self.own.execute(
            "INSERT INTO layers (number, tenant, name, spec, created, stopped, seq, entries, hash) "
            "VALUES (?, ?, ?, ?, ?, '', 0, 0, ?)",
            (number, tenant, name, text, now, f"{head.hash:x}"),
        )
        return LayerRow(number, tenant, name, spec, now, head)

    def remove(self, number: int, now: float) -> None:
        """Take a layer out of use; its name is free again, its journal stays."""
        self.own.execute("UPDATE layers SET removed = ? WHERE number = ?", (now, number))

    def stop(self, number: int, why: str) -> None:
        """Note why a layer no longer learns; "" when it learns again."""
        self.own.execute("UPDATE layers SET stopped = ? WHERE number = ?", (why, number))

    def head(self, number: int) -> Head:
        """Where the journal of a layer stands; until the transaction ends nobody else can add to it."""
        return head_of(self.own, number, self.driver.lock)

    def entries(self, number: int, after: int) -> list[Entry]:
        """What others added to the journal since a number."""
        sql = f"{ENTRY} WHERE layer = ? AND seq > ? ORDER BY seq"
        return [Entry(*row) for row in self.own.execute(sql, (number, after))]

    def find(self, number: int, ids: Sequence[str]) -> dict[tuple[str, int], Entry]:
        """The tickets and first labels of these ids, by id and kind."""
        if not ids:
            return {}
        some, param = self.driver.among(ids)
        same = "own.layer = ? AND own.id = wanted.value AND own.kind <= 2"
        sql = f"SELECT {OWN} FROM {some} journal AS own ON {same}"
        found = (Entry(*row) for row in self.own.execute(sql, (param, number)))
        return {(entry.id, entry.kind): entry for entry in found}

    def corrected(self, number: int, id: str) -> Entry | None:
        """The last correction of a label."""
        sql = f"{ENTRY} WHERE layer = ? AND kind > 2 AND kind = 4 AND id = ? ORDER BY seq DESC LIMIT 1"
        row = first(self.own.execute(sql, (number, id)))
        return None if row is None else Entry(*row)

    def append(self, number: int, head: Head, entries: Sequence[Entry], changed: Sums) -> Head:
        """Add rows to a journal, with the sums that they changed; the new head."""
        if [entry.seq for entry in entries] != [*range(head.seq + 1, head.seq + 1 + len(entries))]:
            raise StoreDamaged("the numbers of a journal must follow one another")
        self.own.executemany(
            "INSERT INTO journal (layer, seq, kind, id, at, author, payload, body) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(number, *entry) for entry in entries],
        )
        self.own.executemany(
            "INSERT INTO sums (layer, account, level, labels, gradient, moved) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (layer, account, level) DO UPDATE "
            "SET labels = excluded.labels, gradient = excluded.gradient, moved = excluded.moved",
            [
                (
                    number,
                    json.dumps(name),
                    level,
                    own.rows,
                    written(own.gradient),
                    written(own.moved),
                )
                for (name, level), own in changed.items()
            ],
        )
        added = hashed(self._secret, number, entries)
        new = Head(
            head.seq + len(entries),
            head.entries + len(entries),
            (head.hash + added) % MODULUS,
            head.stopped,
        )
        self.own.execute(
            "UPDATE layers SET seq = ?, entries = ?, hash = ? WHERE number = ?",
            (new.seq, new.entries, f"{new.hash:x}", number),
        )
        return new

    def keep_snapshot(self, number: int, seq: int, text: str, now: float) -> None:
        """Save the state of a layer as of a number of its journal; older snapshots but one go."""
        self.own.execute("DELETE FROM snapshots WHERE layer = ? AND seq >= ?", (number, seq))
        self.own.execute(
            "INSERT INTO snapshots (layer, seq, at, body) VALUES (?, ?, ?, ?)",
            (number, seq, now, zlib.compress(text.encode(), 1)),
        )
        kept = "SELECT seq FROM snapshots WHERE layer = ? ORDER BY seq DESC LIMIT ?"
        self.own.execute(
            f"DELETE FROM snapshots WHERE layer = ? AND seq NOT IN (SELECT seq FROM ({kept}) AS kept)",
            (number, number, KEPT),
        )

    def reject(self, number: int, refused: Sequence[tuple[float, str, str, str]]) -> None:
        """Note items that were refused: when, id, status, why."""
        row = first(
            self.own.execute(
                "SELECT COALESCE(MAX(number), 0) FROM rejections WHERE layer = ?", (number,)
            )
        )
        last = int(row[0])
        self.own.executemany(
            "INSERT INTO rejections (layer, number, at, id, status, detail) VALUES (?, ?, ?, ?, ?, ?)",
            [(number, last + 1 + k, *item) for k, item in enumerate(refused[-REJECTIONS:])],
        )
        oldest = last + min(len(refused), REJECTIONS) - REJECTIONS
        self.own.execute("DELETE FROM rejections WHERE layer = ? AND number <= ?", (number, oldest))

    def _next(self, table: str) -> int:
        row = first(self.own.execute(f"SELECT COALESCE(MAX(number), 0) + 1 FROM {table}"))
        return int(row[0])


OWN = "own.seq, own.kind, own.id, own.at, own.author, own.payload, own.body"
ENTRY = "SELECT seq, kind, id, at, author, payload, body FROM journal"
LAYER = "SELECT number, tenant, name, spec, created, seq, entries, hash, stopped FROM layers"


def hashed(secret: bytes, number: int, entries: Iterable[Entry]) -> int:
    """The sum of the hashes of rows, in any order: a row that is lost, doubled or changed shows."""
    total = 0
    for seq, kind, id, at, author, payload, body in entries:
        text = b"%d %d %d %s %d %s " % (number, seq, kind, repr(at).encode(), author, id.encode())
        digest = blake2b(text + payload + body, digest_size=16, key=secret).digest()
        total += int.from_bytes(digest, "big")
    return total % MODULUS


def page_of(own: Connection, number: int, after: int, until: int | None = None) -> list[Entry]:
    """The next rows of a journal, at most ``PAGE``."""
    end, more = ("", ()) if until is None else (" AND seq <= ?", (until,))
    sql = f"{ENTRY} WHERE layer = ? AND seq > ?{end} ORDER BY seq LIMIT ?"
    return [Entry(*row) for row in own.execute(sql, (number, after, *more, PAGE))]


def snapshots_of(own: Connection, number: int) -> Iterator[tuple[int, str]]:
    """The saved states of a layer, the last one first."""
    sql = "SELECT seq, body FROM snapshots WHERE layer = ? ORDER BY seq DESC"
    for seq, body in own.execute(sql, (number,)):
        with sound(f"the snapshot of layer {number}"):
            yield int(seq), zlib.decompress(body).decode()


def head_of(own: Connection, number: int, lock: str = "") -> Head:
    """Where the journal of a layer stands."""
    sql = f"SELECT seq, entries, hash, stopped, removed FROM layers WHERE number = ?{lock}"
    row = first(own.execute(sql, (number,)))
    if row is None:
        raise StoreDamaged(f"layer {number} is not in the store")
    with sound(f"the head of layer {number}"):
        return Head(int(row[0]), int(row[1]), int(row[2], 16), row[3], row[4] is not None)


def _layer(row: Any) -> LayerRow:
    number, tenant, name, spec, created, seq, entries, hash, stopped = row
    with sound(f"layer {number}"):
        head = Head(int(seq), int(entries), int(hash, 16), stopped)
        return LayerRow(int(number), tenant, name, json.loads(spec), created, head)


def sums_of(own: Connection, number: int) -> Sums:
    """The exact sums of a layer."""
    sql = "SELECT account, level, labels, gradient, moved FROM sums WHERE layer = ?"
    found: dict[Account, Sum] = {}
    for account, level, labels, gradient, moved in own.execute(sql, (number,)):
        with sound(f"a sum of layer {number}"):
            found[json.loads(account), int(level)] = Sum(int(labels), read(gradient), read(moved))
    return found


def birth(secret: bytes, number: int, tenant: str, name: str, spec: str, created: float) -> int:
    """The hash that a journal begins with: that of what the layer is, so that this cannot change unseen either."""
    text = json.dumps([number, tenant, name, spec, created]).encode()
    return int.from_bytes(blake2b(text, digest_size=16, key=secret).digest(), "big")


def birth_of(own: Connection, secret: bytes, number: int) -> int:
    """The same for a layer as the store has it now."""
    sql = "SELECT tenant, name, spec, created FROM layers WHERE number = ?"
    return birth(secret, number, *first(own.execute(sql, (number,))))


@contextmanager
def sound(what: str) -> Iterator[None]:
    """Say what is damaged when it cannot be read."""
    try:
        yield
    except (ValueError, TypeError, AttributeError, zlib.error) as error:
        raise StoreDamaged(f"{what} is damaged: {str(error)[:100]}; run gradeq audit") from None
