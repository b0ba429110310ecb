"""Marks of the audit: up to where a journal was audited, so that a start need only look at what came since.

A mark holds the hash of all rows up to its number, how many they are, and a hash of their sums. It is signed with the
secret of the store, and the head must follow from it by the rows behind it; the sums at the mark follow from those
of now by taking these rows back. What lies before a mark is audited again in the background.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import NamedTuple

from gradeq.ledger.exact import NOTHING, Sum, Sums, written
from gradeq.service.bodies import plain_in, posting_in
from gradeq.service.live import IMPORT, Live, fresh
from gradeq.service.store.driver import Connection, first
from gradeq.service.store.folds import fold_of
from gradeq.service.store.rows import MODULUS, PAGE, LayerRow, hashed, head_of, page_of, sums_of
from gradeq.service.store.schema import CONTROL, TICKET
from gradeq.service.store.store import Store
from gradeq.service.tally import Audited, Tally


class Mark(NamedTuple):
    """How far a journal was audited: the last number, rows until there, their hash, and the hash of their sums."""

    seq: int
    entries: int
    hash: str
    sums: str


def put_mark(store: Store, tally: Tally) -> None:
    """Remember that a journal was audited up to where a tally stands."""
    number, secret = tally.row.number, store.secret
    sums = f"{sums_hash(secret, number, tally.live.sums):x}"
    mark = Mark(max(tally.seq, tally.gaps), tally.entries, f"{tally.hash:x}", sums)
    text = json.dumps([*mark, signature(secret, number, mark)])
    with store.write() as tx:
        tx.own.execute("DELETE FROM meta WHERE key = ?", (name_of(number),))
        tx.own.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (name_of(number), text))


def mark_of(own: Connection, secret: bytes, number: int) -> Mark | None:
    """The mark of a layer; None without one that is ours."""
    row = first(own.execute("SELECT value FROM meta WHERE key = ?", (name_of(number),)))
    try:
        *fields, signed = json.loads(row[0]) if row is not None else [None]
        mark = Mark(*fields)
    except (ValueError, TypeError):
        return None
    return mark if signed == signature(secret, number, mark) else None


def since_mark(store: Store, row: LayerRow) -> Audited | None:
    """What the rows since the mark say; None where there is no mark to begin from."""
    found, number = Audited(row.tenant, row.name), row.number
    with store.driver.reading() as own:
        mark, head = mark_of(own, store.secret, number), head_of(own, number)
        if mark is None or mark.seq > head.seq or fold_of(own, number).seq > mark.seq:
            return None
        live, seq, hash = fresh(row), mark.seq, int(mark.hash, 16)
        while page := page_of(own, number, seq):
            if [entry.seq for entry in page] != [*range(seq + 1, seq + 1 + len(page))]:
                found.fault(f"entries after {seq} are missing")
                return found
            hash = (hash + hashed(store.secret, number, page)) % MODULUS
            for entry in page:
                _enter(live, entry.kind, entry.body)
            seq, found.read = page[-1].seq, found.read + len(page)
            if len(page) < PAGE:
                break
        now = sums_of(own, number)
    found.entries = head.entries
    if seq != head.seq or mark.entries + found.read != head.entries or hash != head.hash:
        found.fault(f"the rows since {mark.seq} are not those that were written (hash)")
    then = f"{sums_hash(store.secret, number, without(now, live.sums)):x}"
    if then != mark.sums:
        found.fault(f"the sums are not those of entry {mark.seq} and of the rows since")
    return found


def _enter(live: Live, kind: int, body: bytes) -> None:
    if kind not in (TICKET, CONTROL):
        live.enter(posting_in(body))
    elif kind == CONTROL and plain_in(body)["do"] == IMPORT:
        live.open_balance(plain_in(body))


def without(sums: Sums, more: Sums) -> Sums:
    """Sums before these were added."""
    found = dict(sums)
    for account, own in more.items():
        rows, gradient, moved = found.get(account, NOTHING)
        found[account] = Sum(rows - own.rows, gradient - own.gradient, moved - own.moved)
    return found


def sums_hash(secret: bytes, number: int, sums: Sums) -> int:
    """The sum of the hashes of all sums that are not nothing, in any order."""
    total = 0
    for (name, level), own in sums.items():
        if own != NOTHING:
            text = (
                f"{number} {level} {own.rows} {written(own.gradient)} {written(own.moved)} {name}"
            )
            digest = blake2b(text.encode(), digest_size=16, key=secret).digest()
            total += int.from_bytes(digest, "big")
    return total % MODULUS


def signature(secret: bytes, number: int, mark: Mark) -> str:
    """What only this store can have written beside a mark."""
    text = f"mark {number} {mark.seq} {mark.entries} {mark.hash} {mark.sums}"
    return blake2b(text.encode(), digest_size=16, key=secret).hexdigest()


def name_of(number: int) -> str:
    """Under what the mark of a layer is kept."""
    return f"audited {number}"
