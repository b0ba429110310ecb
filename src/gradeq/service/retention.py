"""Retention: old rows of a journal are folded into their sums and their hash, and the identity stays.

A row goes once it is older than what is kept, a snapshot holds it, and nothing can come of it any more: a ticket and
its label go together with all corrections, a ticket without a label once its time to live has passed. Ids are refused
for as long as their rows are there, so what is kept is at least twice the time to live. What operators did stays.
"""

from __future__ import annotations

from gradeq.errors import BadInput
from gradeq.service.bodies import posting_in
from gradeq.service.live import Live, fresh
from gradeq.service.store.driver import Connection, first
from gradeq.service.store.folds import take_out
from gradeq.service.store.rows import ENTRY, Entry, LayerRow, entry_of, page_of
from gradeq.service.store.schema import POSTING, TICKET
from gradeq.service.store.store import Store, Write
from gradeq.service.tally import imported_until


def fold_layer(store: Store, row: LayerRow, keep: float, now: float) -> int:
    """Fold what is older than ``keep`` seconds, some rows at a time; how many rows went."""
    live = fresh(row)
    if not keep > 0.0:
        raise BadInput(f"to keep {keep:g} seconds is too little; give a positive time")
    if live.ttl is not None and keep < 2.0 * live.ttl:
        raise BadInput(
            f"{row.name}: labels may come for {live.ttl:g} seconds, and ids are refused for twice that; "
            f"keep at least {2.0 * live.ttl:g} seconds"
        )
    if live.signed and live.ttl is None:
        raise BadInput(
            f"{row.name}: its signed tickets are good for ever, so their ids must stay; make it with a ttl"
        )
    gone = after = 0
    while True:
        with store.write() as tx:
            tx.head(row.number)  # nobody else folds or appends meanwhile
            until = foldable(tx, row.number, now - keep)
            page = page_of(tx.own, row.number, after, until)
            if not page:
                return gone
            after = page[-1].seq
            rows = done_with(tx, live, page, until)
            if rows:
                live.sums, carried = {}, imported_until(tx.own, row.number)
                for entry in rows:
                    if entry.kind != TICKET and entry.seq > carried:
                        live.enter(posting_in(entry.body))
                take_out(tx.own, store.secret, row.number, until, rows, live.sums)
                gone += len(rows)


def foldable(tx: Write, number: int, before: float) -> int:
    """The last number that may go: older than ``before``, as are all before it, and in every snapshot.

    Clocks may jump: the first row that is too young ends it, whatever comes after.
    """
    return min(_in_snapshots(tx.own, number), _old(tx.own, number, before))


def unsaved(store: Store, row: LayerRow, keep: float, now: float) -> int:
    """How many rows would be old enough to go, and stay because a snapshot does not hold them."""
    with store.driver.reading() as own:
        saved, old = _in_snapshots(own, row.number), _old(own, row.number, now - keep)
        sql = "SELECT COUNT(*) FROM journal WHERE layer = ? AND seq > ? AND seq <= ?"
        return int(first(own.execute(sql, (row.number, saved, old)))[0])


def _in_snapshots(own: Connection, number: int) -> int:
    """Every snapshot holds the journal up to this number."""
    sql = "SELECT MIN(seq) FROM snapshots WHERE layer = ?"
    return int(first(own.execute(sql, (number,)))[0] or 0)


def _old(own: Connection, number: int, before: float) -> int:
    """All rows up to this number are older than ``before``."""
    sql = "SELECT MIN(seq) FROM journal WHERE layer = ? AND at >= ?"
    young = first(own.execute(sql, (number, before)))[0]
    if young is not None:
        return int(young) - 1
    return int(
        first(own.execute("SELECT MAX(seq) FROM journal WHERE layer = ?", (number,)))[0] or 0
    )


def done_with(tx: Write, live: Live, page: list[Entry], until: int) -> list[Entry]:
    """The rows of these ids that nothing can come of any more, wherever they stand up to ``until``."""
    number = live.number
    found = tx.find(number, [entry.id for entry in page if entry.kind in (TICKET, POSTING)])
    gone: dict[int, Entry] = {}
    for entry in page:
        posting = found.get((entry.id, POSTING))
        ticket = found.get((entry.id, TICKET))
        if entry.kind == POSTING and posting is not None and ticket is not None:
            changes = changes_of(tx, number, entry.id)
            if all(own.seq <= until for own in (posting, ticket, *changes)):
                gone |= {own.seq: own for own in (ticket, posting, *changes)}
        elif entry.kind == TICKET and posting is None and live.ttl is not None:
            gone[entry.seq] = entry  # it is older than twice the time to live
    return [gone[seq] for seq in sorted(gone)]


def changes_of(tx: Write, number: int, id: str) -> list[Entry]:
    """The corrections of a label."""
    sql = f"{ENTRY} WHERE layer = ? AND kind > 2 AND id = ?"
    return [entry_of(row) for row in tx.own.execute(sql, (number, id))]
