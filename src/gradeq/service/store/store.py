"""A store: layers, their journals of tickets and postings, exact sums, snapshots and keys, over one driver.

Everything that one commit of the desk means is written by one ``Write``: rows of the journal, sums, heads.
"""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gradeq.ledger.exact import Sums, written
from gradeq.service.store.driver import Connection, Driver, first
from gradeq.service.store.failures import StoreDamaged, StoreTaken, StoreUnavailable
from gradeq.service.store.rows import (
    ENTRY,
    LAYER,
    MODULUS,
    OWN,
    PAGE,
    Entry,
    Head,
    LayerRow,
    birth,
    entry_of,
    hashed,
    head_of,
    layer_row,
    page_of,
    snapshots_of,
    sums_of,
)
from gradeq.service.store.schema import TABLES, VERSION, check_version

KEPT = 2  # snapshots of each layer
REJECTIONS = 100  # of each layer that are kept


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
            return [layer_row(row) for row in rows]

    def layer(self, tenant: str, name: str) -> LayerRow | None:
        """One layer by name."""
        with self.driver.reading() as own:
            where = "WHERE removed IS NULL AND tenant = ? AND name = ?"
            row = first(own.execute(f"{LAYER} {where}", (tenant, name)))
        return None if row is None else layer_row(row)

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
            return [entry_of(row) for row in own.execute(sql, (number, *kinds, count))][::-1]

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
        return [entry_of(row) for row in self.own.execute(sql, (number, after))]

    def find(self, number: int, ids: Sequence[str]) -> dict[tuple[str, int], Entry]:
        """The tickets and first labels of these ids, by id and kind."""
        if not ids:
            return {}
        some, param = self.driver.among(ids)
        same = "own.layer = ? AND own.id = wanted.value AND own.kind <= 2"
        sql = f"SELECT {OWN} FROM {some} journal AS own ON {same}"
        found = (entry_of(row) for row in self.own.execute(sql, (param, number)))
        return {(entry.id, entry.kind): entry for entry in found}

    def unlabelled(self, number: int, before: float) -> list[Entry]:
        """The tickets without a label from before this time, oldest first, at most ``PAGE``."""
        same = "label.layer = own.layer AND label.id = own.id AND label.kind = 2"
        none = f"NOT EXISTS (SELECT 1 FROM journal AS label WHERE {same})"
        old = f"own.layer = ? AND own.kind = 1 AND own.at < ? AND {none}"
        sql = f"SELECT {OWN} FROM journal AS own WHERE {old} ORDER BY own.seq LIMIT ?"
        return [entry_of(row) for row in self.own.execute(sql, (number, before, PAGE))]

    def corrected(self, number: int, id: str) -> Entry | None:
        """The last change of a label: a correction, or the reversal of one that was taken back."""
        sql = f"{ENTRY} WHERE layer = ? AND kind > 2 AND id = ? ORDER BY seq DESC LIMIT 1"
        row = first(self.own.execute(sql, (number, id)))
        return None if row is None else entry_of(row)

    def append(self, number: int, head: Head, entries: Sequence[Entry], changed: Sums) -> Head:
        """Add rows to a journal, with the sums that they changed; the new head."""
        if [entry.seq for entry in entries] != [*range(head.seq + 1, head.seq + 1 + len(entries))]:
            raise StoreDamaged("the numbers of a journal must follow one another")
        self.own.executemany(
            "INSERT INTO journal (layer, seq, kind, id, at, author, payload, body) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(number, *entry) for entry in entries],
        )
        write_sums(self.own, number, changed)
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


def write_sums(own: Connection, number: int, changed: Sums) -> None:
    """Put these sums in the place of what they were."""
    own.executemany(
        "INSERT INTO sums (layer, account, level, labels, gradient, moved) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (layer, account, level) DO UPDATE "
        "SET labels = excluded.labels, gradient = excluded.gradient, moved = excluded.moved",
        [
            (number, json.dumps(name), level, own.rows, written(own.gradient), written(own.moved))
            for (name, level), own in changed.items()
        ],
    )
