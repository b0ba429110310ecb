"""A store whose sums or snapshots are damaged, made anew from its journal: in a copy, the original stays as it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing

from gradeq.errors import GradeqError
from gradeq.service.store import open_store
from gradeq.service.store.failures import StoreDamaged
from gradeq.service.store.folds import fold_of
from gradeq.service.store.rows import LayerRow, head_of, page_of
from gradeq.service.store.store import Store, Write, write_sums
from gradeq.service.tally import Audited, Tally


def rebuild(store: Store, path: str, now: float, told: Callable[[str], None]) -> None:
    """Copy a store to a new file, and make sums and snapshots of the copy anew; refused if a journal is damaged."""
    store.driver.backup(path)
    try:
        with closing(open_store(path)) as copy, copy.write() as tx:
            for row in copy.layers():
                told(f"{row.tenant}/{row.name}: {_rebuilt(copy, tx, row, now)}")
    except BaseException:
        for ending in ("", "-wal", "-shm"):
            if os.path.exists(f"{path}{ending}"):
                os.unlink(f"{path}{ending}")
        raise


def _rebuilt(copy: Store, tx: Write, row: LayerRow, now: float) -> str:
    number, own, found = row.number, tx.own, Audited(row.tenant, row.name)
    kept = "AND seq > (SELECT MIN(seq) FROM snapshots WHERE layer = ?)"
    one = bool(fold_of(own, number).seq)  # what was folded is in the oldest snapshot alone
    own.execute(
        f"DELETE FROM snapshots WHERE layer = ? {kept if one else ''}", (number,) * (1 + one)
    )
    try:
        tally = Tally(own, copy.secret, row, replay=True)
        while page := page_of(own, number, tally.seq):
            tally.take(page, found)
    except GradeqError as error:
        found.fault(str(error))
    if not found.faults and tally.hash != head_of(own, number).hash:
        found.fault("its rows or settings are not those that were written (hash)")
    if found.faults:
        raise StoreDamaged(
            f"the journal of {row.name} is damaged itself: {found.faults[0]}; restore a backup"
        )
    own.execute("DELETE FROM sums WHERE layer = ?", (number,))
    write_sums(own, number, tally.live.sums)
    seq = max(tally.seq, tally.gaps)
    own.execute(
        "UPDATE layers SET seq = ?, entries = ?, stopped = '' WHERE number = ?",
        (seq, tally.entries, number),
    )
    if seq > 0:
        tx.keep_snapshot(number, seq, tally.live.layer.to_json(), now)
    return f"{tally.entries:,} entries, sums and snapshot made anew"
