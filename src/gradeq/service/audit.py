"""The audit of a store: journal, exact sums, heads, snapshots and the library's own account must say the same.

The journal is the truth. Its rows, with what retention took out, add up to the sums to the last bit; their hashes add
up to that of the head, their numbers have no gap, each label has one ticket before it. Done again from nothing, or
from the oldest snapshot once rows were taken out, the journal gives every snapshot and the layer at work to the bit.

None of this sees what is missing from all of them alike: that is for receipts and the witness.
"""

from __future__ import annotations

from contextlib import suppress

from gradeq.errors import GradeqError
from gradeq.service.marks import put_mark
from gradeq.service.store.driver import Connection
from gradeq.service.store.failures import StoreTaken, StoreUnavailable
from gradeq.service.store.folds import folded_until
from gradeq.service.store.rows import PAGE, LayerRow, head_of, page_of, sums_of
from gradeq.service.store.store import Store
from gradeq.service.tally import Audited, Tally, unequal

Copy = tuple[int, str]  # the state of a layer at work, and the number of the journal that it holds


class Auditor:
    """Audits of one store; each goes on where the last one stopped, unless the whole is asked for."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._tallies: dict[int, Tally] = {}
        self._marked: dict[int, int] = {}  # where the marks of the layers are

    def tail(self, row: LayerRow) -> Audited:
        """The rows since the last audit, and with them all sums and the head (level 1)."""
        found = Audited(row.tenant, row.name)
        tally = read_on(self.store, row, found, self._tallies.get(row.number))
        if not found.faults:
            self._tallies[row.number] = tally
            if not self.store.read_only and self._marked.get(row.number) != tally.seq:
                with suppress(StoreUnavailable, StoreTaken):  # a mark only saves time
                    put_mark(self.store, tally)
                    self._marked[row.number] = tally.seq
        return found

    def whole(self, row: LayerRow, at_work: Copy | None = None) -> Audited:
        """All rows, done again, against sums, head, snapshots and the layer at work (level 2)."""
        found = Audited(row.tenant, row.name, replayed=True)
        tally = read_on(self.store, row, found, at_work=at_work)
        if not found.faults:
            tally.compare_accounts(found)
        return found


def audit_store(store: Store) -> list[Audited]:
    """Every layer of a store, whole."""
    auditor, found = Auditor(store), []
    for row in store.layers():
        try:
            found.append(auditor.whole(row))
        except GradeqError as error:
            found.append(Audited(row.tenant, row.name, faults=[str(error)]))
    return found


def read_on(
    store: Store,
    row: LayerRow,
    found: Audited,
    tally: Tally | None = None,
    at_work: Copy | None = None,
) -> Tally:
    """Take the rows that a tally lacks, and compare what they add up to with head and sums.

    A view of the database that is kept for long keeps all that is written meanwhile in the log; so each page has one
    of its own, and the last page, head and sums have one together. If rows are taken out meanwhile, all begins again.
    """
    while True:
        with store.driver.reading() as own:
            if tally is None or folded_until(own, row.number) > max(tally.seq, tally.gaps):
                found.read, found.faults = 0, []
                tally = _begun(own, store, row, found.replayed, at_work)
            page = page_of(own, row.number, tally.seq)
            if len(page) < PAGE:
                tally.take(page, found)
                _compare(own, tally, found)
                return tally
        tally.take(page, found)


def _begun(
    own: Connection, store: Store, row: LayerRow, replay: bool, at_work: Copy | None
) -> Tally:
    tally = Tally(own, store.secret, row, replay)
    if at_work is not None:
        tally.states[at_work[0]] = at_work[1], "layer at work"
    return tally


def _compare(own: Connection, tally: Tally, found: Audited) -> None:
    """See that head and sums are what the rows add up to."""
    number = tally.row.number
    head = head_of(own, number)
    found.entries, found.labels, found.open = tally.entries, tally.labels, len(tally.open)
    last = max(tally.seq, tally.gaps)
    if last != head.seq:
        found.fault(f"the journal ends at {last}, and the head says {head.seq}")
    if tally.entries != head.entries:
        found.fault(f"the journal has {tally.entries} entries, and the head says {head.entries}")
    if tally.hash != head.hash:
        found.fault(
            "the rows of the journal or the settings are not those that were written (hash)"
        )
    wrong = unequal(tally.live.sums, sums_of(own, number))
    if wrong:
        found.fault(
            f"the sums of {len(wrong)} parameters are not those of the journal: {wrong[0]!r}"
        )
