"""Receipts of clients beside the journal: what was acknowledged is there, once, under the number that was told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gradeq.service.bodies import id_text
from gradeq.service.store.driver import first
from gradeq.service.store.schema import CORRECTION, POSTING, TICKET
from gradeq.service.store.store import Store

Id = str | int
Kind = Literal["ticket", "posting"]
Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Receipt = tuple[Kind, Id, Number]
KINDS = {"ticket": (TICKET,), "posting": (POSTING, CORRECTION)}


class Compared(Struct):
    """Receipts that the journal does not bear out: not there, there more than once, there under another number.

    ``missing`` and ``doubled`` hold kind and id; ``moved`` the receipt and the number in the journal. Rows that
    retention has folded away can no longer be looked up; ``folded`` counts their receipts.
    """

    compared: int
    missing: list[tuple[Kind, Id]]
    doubled: list[tuple[Kind, Id]]
    moved: list[tuple[Kind, Id, Number, Number]]
    folded: int


def compare(store: Store, number: int, receipts: Sequence[Receipt]) -> Compared:
    """Look for every receipt in the journal of a layer."""
    found = Compared(len(receipts), [], [], [], 0)
    rows = _rows(store, number, receipts)
    times = Counter((kind, text) for _, kind, text in rows if kind in (TICKET, POSTING))
    by_seq = {seq: (kind, text) for seq, kind, text in rows}
    last = {(kind, text): seq for seq, kind, text in sorted(rows)}
    folded = _folded(store, number)
    for kind, id, seq in receipts:
        text, kinds = id_text(id), KINDS[kind]
        if times[kinds[0], text] > 1:
            found.doubled.append((kind, id))
        told = by_seq.get(seq)
        if told is not None and told[1] == text and told[0] in kinds:
            continue
        now = max((last.get((own, text), 0) for own in kinds), default=0)
        if now:
            found.moved.append((kind, id, seq, now))
        elif seq <= folded:
            found.folded += 1
        else:
            found.missing.append((kind, id))
    return found


def _rows(store: Store, number: int, receipts: Sequence[Receipt]) -> list[tuple[int, int, str]]:
    """Number, kind and id of the rows with the receipts' ids, and of those with their numbers."""
    wanted, ids = store.driver.among([id_text(id) for _, id, _ in receipts])
    same = "own.layer = ? AND own.id = wanted.value AND own.kind <= 2"
    by_id = f"SELECT own.seq, own.kind, own.id FROM {wanted} journal AS own ON {same}"
    by_seq = "SELECT seq, kind, id FROM journal WHERE layer = ? AND seq = ?"
    rows: set[tuple[int, int, str]] = set()
    with store.driver.reading() as own:
        found = [*own.execute(by_id, (ids, number))]
        for _, _, seq in receipts:
            found += own.execute(by_seq, (number, seq))
    for seq, kind, id in found:
        rows.add((int(seq), int(kind), id))
    return sorted(rows)


def _folded(store: Store, number: int) -> int:
    """The last number that retention took out of the journal."""
    with store.driver.reading() as own:
        row = first(own.execute("SELECT seq FROM folds WHERE layer = ?", (number,)))
    return 0 if row is None else int(row[0])
