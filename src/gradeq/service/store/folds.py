"""What retention took out of a journal: how many rows, the sum of their hashes, and what they added to the sums."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from gradeq.ledger.exact import NOTHING, Sum, Sums, read, written
from gradeq.service.store.driver import Connection, first
from gradeq.service.store.rows import MODULUS, Entry, hashed, sound


class Fold(NamedTuple):
    """All rows that were taken out so far; up to ``seq`` the journal may have gaps."""

    seq: int
    entries: int
    hash: int
    sums: Sums


def fold_of(own: Connection, number: int) -> Fold:
    """What was taken out of the journal of a layer."""
    sql = "SELECT seq, entries, hash, sums FROM folds WHERE layer = ?"
    row = first(own.execute(sql, (number,)))
    if row is None:
        return Fold(0, 0, 0, {})
    with sound(f"what was folded of layer {number}"):
        sums = sums_in(json.loads(zlib.decompress(row[3])))
        return Fold(int(row[0]), int(row[1]), int(row[2], 16), sums)


def folded_until(own: Connection, number: int) -> int:
    """Up to which number the journal of a layer may have gaps; 0 if nothing was taken out."""
    row = first(own.execute("SELECT seq FROM folds WHERE layer = ?", (number,)))
    return 0 if row is None else int(row[0])


def sums_in(listed: Sequence[Any]) -> Sums:
    """Sums from their plain form."""
    return {(name, level): Sum(rows, read(g), read(m)) for name, level, rows, g, m in listed}


def listed(sums: Sums) -> list[list[Any]]:
    """Sums as JSON can have them."""
    return [
        [*account, own.rows, written(own.gradient), written(own.moved)]
        for account, own in sums.items()
    ]


def take_out(
    own: Connection, secret: bytes, number: int, until: int, gone: Sequence[Entry], sums: Sums
) -> None:
    """Take rows out of a journal; ``sums`` is what they added to the sums."""
    old = fold_of(own, number)
    added = dict(old.sums)
    for account, amount in sums.items():
        added[account] = added.get(account, NOTHING).plus(amount)
    hash = (old.hash + hashed(secret, number, gone)) % MODULUS
    own.executemany(
        "DELETE FROM journal WHERE layer = ? AND seq = ?", [(number, entry.seq) for entry in gone]
    )
    own.execute("DELETE FROM folds WHERE layer = ?", (number,))
    own.execute(
        "INSERT INTO folds (layer, seq, entries, hash, sums) VALUES (?, ?, ?, ?, ?)",
        (number, max(old.seq, until), old.entries + len(gone), f"{hash:x}",
         zlib.compress(json.dumps(listed(added)).encode())),
    )  # fmt: skip
