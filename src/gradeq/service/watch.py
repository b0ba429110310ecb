"""The audit of a store that is being served: what came since the last mark at the start, all of it soon after, then
what is new, every minute.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from gradeq.errors import GradeqError
from gradeq.service.audit import Auditor
from gradeq.service.desk import Desk
from gradeq.service.failures import LayerStopped
from gradeq.service.marks import since_mark
from gradeq.service.retention import fold_layer
from gradeq.service.store.failures import StoreDamaged, StoreTaken, StoreUnavailable
from gradeq.service.store.rows import LayerRow
from gradeq.service.tally import Audited

EVERY = 60.0  # seconds between two looks at what is new
WHOLE = 86_400.0  # seconds between two audits of everything
SHORT = 20_000  # entries; a journal with no more is audited whole before the server begins
AT_ONCE = 300_000  # entries; one without a mark that has more is audited while the server is at work already
FOLD = 3_600.0  # seconds between two folds
REMEDY = "run gradeq audit on the store, and gradeq store rebuild or a backup if it is damaged"


class Watch:
    """Audits what a desk writes; a layer whose books do not balance stops learning and goes on serving."""

    def __init__(self, desk: Desk, told: Callable[[Audited], None] = lambda found: None) -> None:
        self.desk, self._told = desk, told
        self.keep: float | None = None  # seconds; older closed rows are folded, None: never
        self.folded: Callable[[LayerRow, int, str], None] = lambda row, gone, why: None
        self._folds = 0.0  # when to fold again
        self.found: dict[
            tuple[str, str], tuple[float, Audited]
        ] = {}  # and when, by tenant and name
        self._auditor = Auditor(desk.store)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)

    def start(self) -> None:
        """Audit what is new since the last mark, or short, then all of it beside the desk."""
        for row in self.desk.store.layers():
            if row.head.entries <= SHORT or (not self._begun(row) and row.head.entries <= AT_ONCE):
                self.look(row)
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        whole, pause = time.monotonic() + WHOLE, 0.0
        while not self._end.wait(pause):
            late, pause = time.monotonic() > whole, EVERY
            whole += WHOLE if late else 0.0
            try:
                rows = self.desk.store.layers()
            except GradeqError:
                continue  # what cannot be read now is audited when it can
            fold = self.keep is not None and time.monotonic() >= self._folds
            self._folds = time.monotonic() + FOLD if fold else self._folds
            for row in rows:
                found = None if self._end.is_set() else self.look(row, whole=late)
                if fold and found is not None and not found.faults:
                    self._fold(row)

    def _fold(self, row: LayerRow) -> None:
        """Fold what is old of a layer whose books balance."""
        if self.keep is None or self.desk.store.read_only:
            return
        try:
            gone, why = fold_layer(self.desk.store, row, self.keep, self.desk.clock()), ""
        except (StoreUnavailable, StoreTaken):
            return  # the next time
        except GradeqError as error:
            gone, why = 0, str(error)
        if gone or why:
            self.folded(row, gone, why)

    def _begun(self, row: LayerRow) -> bool:
        """Audit what came since the last mark; False where there is none."""
        try:
            found = since_mark(self.desk.store, row)
        except StoreUnavailable:
            return False
        except GradeqError as error:
            found = Audited(row.tenant, row.name, faults=[str(error)])
        if found is not None and found.faults:
            self._note(row, found)
        return found is not None

    def look(self, row: LayerRow, whole: bool = False) -> Audited | None:
        """Audit one layer, the whole of it or what is new; None when it cannot be read now."""
        try:
            found = self._whole(row) if whole else self._auditor.tail(row)
        except StoreUnavailable:
            return None
        except GradeqError as error:
            found = Audited(row.tenant, row.name, faults=[str(error)])
        self._note(row, found)
        return found

    def _note(self, row: LayerRow, found: Audited) -> None:
        self.found[row.tenant, row.name] = time.time(), found
        if found.faults and not row.head.stopped:
            self._stop(row, found)
        self._told(found)

    def _whole(self, row: LayerRow) -> Audited:
        try:
            copy = self.desk.copy(row.tenant, row.name).result()
        except (LayerStopped, StoreUnavailable):
            copy = None  # it is not at work
        return self._auditor.whole(row, copy)

    def _stop(self, row: LayerRow, found: Audited) -> None:
        if self.desk.store.read_only:
            return
        try:
            with self.desk.store.write() as tx:
                tx.stop(row.number, f"{found.faults[0]}; {REMEDY}")
        except (StoreUnavailable, StoreDamaged):
            return  # nothing can be learned then either; the next look tries again
        with suppress(GradeqError):
            self.desk.copy(row.tenant, row.name)  # the desk hears of it now, not with the next item
