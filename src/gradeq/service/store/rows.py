"""Rows of a store: journals, their heads and sums, layers; read from any database, and what their hashes are."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, NamedTuple

from gradeq.ledger.exact import Account, Sum, Sums, read
from gradeq.service.store.driver import Connection, first
from gradeq.service.store.failures import StoreDamaged

PAGE = 5_000  # rows of the journal that are read at once
MODULUS = 1 << 128


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


OWN = "own.seq, own.kind, own.id, own.at, own.author, own.payload, own.body"
ENTRY = "SELECT seq, kind, id, at, author, payload, body FROM journal"
LAYER = "SELECT number, tenant, name, spec, created, seq, entries, hash, stopped FROM layers"


def hashed(secret: bytes, number: int, entries: Iterable[Entry]) -> int:
    """The sum of the hashes of rows, in any order: a row that is lost, doubled or changed shows."""
    total, keyed = 0, blake2b(digest_size=16, key=secret)
    for seq, kind, id, at, author, payload, body in entries:
        text = f"{number} {seq} {kind} {at!r} {author} {id} ".encode()
        own = keyed.copy()  # quicker than a new one
        own.update(text + payload + body)
        total += int.from_bytes(own.digest(), "big")
    return total % MODULUS


TYPES = (int, int, str, float, int, bytes, bytes)


def entry_of(row: Any) -> Entry:
    """A row of a journal; a damaged page may hold anything in its place."""
    if tuple(map(type, row)) != TYPES:
        raise StoreDamaged(
            "a row of the journal is damaged: it holds other types; run gradeq audit"
        )
    return Entry(*row)


def page_of(own: Connection, number: int, after: int, until: int | None = None) -> list[Entry]:
    """The next rows of a journal, at most ``PAGE``."""
    end, more = ("", ()) if until is None else (" AND seq <= ?", (until,))
    sql = f"{ENTRY} WHERE layer = ? AND seq > ?{end} ORDER BY seq LIMIT ?"
    return [entry_of(row) for row in own.execute(sql, (number, after, *more, PAGE))]


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


def layer_row(row: Any) -> LayerRow:
    """A layer from what ``LAYER`` reads."""
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
