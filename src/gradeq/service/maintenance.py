"""What is done to layers besides serving: import, export, rebuild, fold old rows, audit in the background."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Container, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from gradeq.engine.label_stats import HELD
from gradeq.engine.tickets import Id, TicketBook
from gradeq.errors import BadInput, GradeqError, StateError
from gradeq.kernels.account import COLUMNS, GRADIENT, MOVED, ROWS
from gradeq.layers.layer import Layer
from gradeq.layers.registry import from_json
from gradeq.ledger.exact import Sum, Sums, account_of, exact
from gradeq.ledger.values import Posting, Ticket
from gradeq.records import copy_with
from gradeq.service.audit import Auditor, AuditResult, JournalTally
from gradeq.service.layer_spec import NANO, layer_of, uses_dates
from gradeq.service.problems import LayerStopped
from gradeq.service.runtime import IMPORT, WAIT, LayerRuntime, book_for_import
from gradeq.service.schemas import (
    decode_id,
    decode_json,
    decode_posting,
    decode_ticket,
    encode_entry,
    encode_id,
    encode_json,
)
from gradeq.service.store import open_store
from gradeq.service.store.database import (
    CONTROL,
    CORRECTION,
    POSTING,
    REVERSAL,
    TICKET,
    Connection,
    JsonObject,
    StoreDamaged,
    StoreTaken,
    StoreUnavailable,
)
from gradeq.service.store.journal_store import (
    Entry,
    LayerRow,
    Store,
    StoreWriter,
    encode_sums,
    fold_rows,
    folded_until,
    number_of,
    read_head,
    read_page,
    write_sums,
)
from gradeq.service.telemetry import Log

if TYPE_CHECKING:
    from gradeq.service.desk import Desk


def write_import(tx: StoreWriter, row: LayerRow, text: str, now: float) -> None:
    layer = from_json(text)
    book = layer.internals.tickets
    unit = NANO if uses_dates(book) else 1.0
    rows: list[tuple[int, Id, float, Ticket | Posting]] = []
    for id, posting in book.closed.items():
        ticket = Ticket(*posting[:6], (), posting.memo, given=posting.given)
        rows += [(TICKET, id, now, ticket), (POSTING, id, now, copy_with(posting, sign=abs(posting.sign)))]
        if posting.sign < 0.0:  # its label was taken back
            rows.append((REVERSAL, id, now, posting))
    for ticket, known, opened in book.tickets():
        if known is not None:
            rows.append((TICKET, known, now if opened is None else opened / unit, ticket))
    for label in book.waiting.values():
        if label.id is not None:
            at = now if label.time == HELD else label.time / unit  # served without a time
            rows.append((TICKET, label.id, at, label.ticket))
    sums = sums_of_layer(layer)
    body = {
        "do": IMPORT, "until": 1 + len(rows), "sums": encode_sums(sums), "state": text, "waiting": True,
    }  # fmt: skip
    entries = [Entry(1, CONTROL, '""', now, 0, b"", encode_json(body))]
    for seq, (kind, id, at, value) in enumerate(rows, 2):
        entries.append(Entry(seq, kind, encode_id(id), float(at), 0, b"", encode_entry(value)))
    head = tx.append(row.number, row.head, entries, sums)
    layer.internals.tickets = book_for_import(book)
    tx.keep_snapshot(row.number, head.seq, layer.to_json(), now)


def sums_of_layer(layer: Layer) -> Sums:
    """The library's own sums, as the opening balance of the exact ones."""
    layer.internals.state.catch_up()
    names, sums, rule = layer.internals.names, layer.internals.state.sums, layer.internals.rule
    keys = [k for k, _ in names.split()] if hasattr(names, "split") and not names.roster.scalar else None
    balance: Sums = {}
    for j in range(names.count):
        row = names.row_at([j], [1.0], j if keys is None else keys[j])
        for level in range(rule.width):
            at = j * rule.stride + level * COLUMNS
            if sums[at + ROWS]:
                amount = Sum(int(sums[at + ROWS]), exact(sums[at + GRADIENT]), exact(sums[at + MOVED]))
                balance[account_of(row.names[0], row.key), level] = amount
    return balance


def import_body(first: Sequence[Entry]) -> JsonObject:
    """The control that an imported layer began with, from its first entry; empty for other layers."""
    body = decode_json(first[0].body) if first and first[0].kind == CONTROL else {}
    return body if body.get("do") == IMPORT else {}


def export_state(store: Store, row: LayerRow) -> str:
    """A layer of a store as the library saves it: state, open tickets, closed ids with their labels."""
    runtime = LayerRuntime.load(store, row)
    began = import_body(list(store.entries(row.number, 0, 1)))
    origin = from_json(began["state"]) if began else layer_of(row.spec)
    book = origin.internals.tickets
    spans = (row.spec.get("ttl"), row.spec.get("maturity"))
    unit = NANO if any(isinstance(span, str) for span in spans) or uses_dates(book) else 1.0
    for entry in store.entries(row.number, int(began.get("until", 0)), runtime.head.seq):
        _enter(book, entry, unit, runtime.ttl)
    book.early = runtime.layer.internals.tickets.early
    runtime.layer.internals.tickets = book
    text = runtime.layer.to_json()
    try:
        from_json(text)
    except StateError as error:
        raise StateError(f"{row.name} cannot be exported: {error}; run gradeq audit") from None
    return text


def _enter(book: TicketBook, entry: Entry, unit: float, ttl: float | None) -> None:
    """Apply one entry to the library's ticket book."""
    if entry.kind == TICKET:
        book.put(decode_ticket(entry.body), decode_id(entry.id), entry.at * unit)
        if ttl is not None:
            book.expire(entry.at * unit)
    elif entry.kind == POSTING:
        id, posting = decode_id(entry.id), decode_posting(entry.body)
        if id in book.by_id:
            ticket = book.find(id)[0]
            del book.opened[ticket[0]]
            book.close(ticket, id, posting)
            return
        book.lapsed.pop(id, None)  # a label may come after its ticket expired, or was held back
        if id in book.waiting_ids:
            book.release(book.waiting_ids[id])
        book.shut(id, posting)
    elif entry.kind in (REVERSAL, CORRECTION):
        id, posting = decode_id(entry.id), decode_posting(entry.body)
        if id in book.closed:
            book.closed[id] = copy_with(posting, slopes=())
    elif entry.kind == CONTROL:
        body = decode_json(entry.body)
        if body["do"] != WAIT:
            return
        id = decode_id(body["id"])
        if id in book.by_id:
            book.wait(book.find(id), body["label"], HELD if body["due"] == HELD else body["due"] * unit)
        elif id in book.waiting_ids:
            book.hold([copy_with(book.waiting[book.waiting_ids[id]], y=body["label"])])


def rebuild(store: Store, path: str, now: float, report: Callable[[str], None]) -> None:
    """Copy a store to a new file and rebuild its sums and snapshots; raises if a journal is damaged."""
    store.driver.backup(path)
    try:
        with closing(open_store(path)) as copy, copy.write() as tx:
            for row in copy.layers():
                report(f"{row.tenant}/{row.name}: {_rebuild_layer(tx, row, now)}")
    except BaseException:
        for ending in ("", "-wal", "-shm"):
            if os.path.exists(f"{path}{ending}"):
                os.unlink(f"{path}{ending}")
        raise


def _rebuild_layer(tx: StoreWriter, row: LayerRow, now: float) -> str:
    number, connection, result = row.number, tx.connection, AuditResult(row.tenant, row.name)
    young = "AND seq > (SELECT MIN(seq) FROM snapshots WHERE layer = ?)"
    one = bool(folded_until(connection, number))  # what was folded is in the oldest snapshot alone
    connection.execute(f"DELETE FROM snapshots WHERE layer = ? {young if one else ''}", (number,) * (1 + one))
    try:
        tally = JournalTally(connection, tx.secret, row, replay=True)
        while page := read_page(connection, number, tally.seq):
            tally.take(page, result)
    except GradeqError as error:
        result.fault(str(error))
    if not result.faults and tally.hash != read_head(connection, number).hash:
        result.fault("its rows or settings are not those that were written (hash)")
    if result.faults:
        raise StoreDamaged(f"the journal of {row.name} is damaged itself: {result.faults[0]}; restore a backup")
    connection.execute("DELETE FROM sums WHERE layer = ?", (number,))
    write_sums(connection, number, tally.runtime.sums)
    connection.execute(
        "UPDATE layers SET seq = ?, entries = ?, stopped = '' WHERE number = ?", (tally.last, tally.entries, number)
    )
    if tally.last > 0:
        tx.keep_snapshot(number, tally.last, tally.runtime.layer.to_json(), now)
    return f"{tally.entries:,} entries, sums and snapshot made anew"


def fold_layer(store: Store, row: LayerRow, keep: float, now: float) -> int:
    """Fold rows older than ``keep`` seconds, in batches; how many rows went."""
    runtime = LayerRuntime(row)
    if not keep > 0.0:
        raise BadInput(f"to keep {keep:g} seconds is too little; give a positive time")
    if runtime.ttl is not None and keep < 2.0 * runtime.ttl:
        raise BadInput(
            f"{row.name}: labels may come for {runtime.ttl:g} seconds, and ids are refused for twice that; "
            f"keep at least {2.0 * runtime.ttl:g} seconds"
        )
    if runtime.signed and runtime.ttl is None:
        raise BadInput(
            f"{row.name}: its signed tickets are good for ever, so their ids must stay; make it with a ttl"
        )
    # A label may be known and wait for longer than the ttl: its ticket stays until it is learned.
    waiting = LayerRuntime.load(store, row).layer.internals.tickets.waiting_ids if runtime.ttl is not None else {}
    gone = after = 0
    while True:
        with store.write() as tx:
            tx.head(row.number)  # nobody else folds or appends meanwhile
            until = min(_foldable(tx.connection, row.number, now - keep))
            page = read_page(tx.connection, row.number, after, until)
            if not page:
                return gone
            after = page[-1].seq
            rows = closed_rows(tx, runtime, page, until, waiting)
            if rows:
                first = read_page(tx.connection, row.number, 0, 1)
                runtime.sums, carried = {}, int(import_body(first).get("until", 0))
                for entry in rows:
                    if entry.kind != TICKET and entry.seq > carried:
                        runtime.add_posting(decode_posting(entry.body))
                fold_rows(tx.connection, store.secret, row.number, until, rows, runtime.sums)
                gone += len(rows)


def _foldable(connection: Connection, number: int, before: float) -> tuple[int, int]:
    """The last number that is in every snapshot, and the last that is older than ``before``, as is all before it.

    Clocks may jump: the first row that is too young ends it.
    """
    saved = number_of(connection, "SELECT MIN(seq) FROM snapshots WHERE layer = ?", number)
    young = number_of(connection, "SELECT MIN(seq) FROM journal WHERE layer = ? AND at >= ?", number, before)
    if young is None:
        young = (number_of(connection, "SELECT MAX(seq) FROM journal WHERE layer = ?", number) or 0) + 1
    return saved or 0, young - 1


def rows_without_snapshot(store: Store, row: LayerRow, keep: float, now: float) -> int:
    """How many rows are old enough to go but are in no snapshot yet."""
    sql = "SELECT COUNT(*) FROM journal WHERE layer = ? AND seq > ? AND seq <= ?"
    with store.driver.reading() as connection:
        return number_of(connection, sql, row.number, *_foldable(connection, row.number, now - keep)) or 0


def closed_rows(
    tx: StoreWriter, runtime: LayerRuntime, page: list[Entry], until: int, waiting: Container[Id]
) -> list[Entry]:
    """The rows of these ids that can no longer change, up to ``until``; ``waiting``: ids whose labels are kept."""
    number = runtime.number
    known = tx.find(number, [entry.id for entry in page if entry.kind in (TICKET, POSTING)])
    gone: dict[int, Entry] = {}
    for entry in page:
        posting, ticket = known.get((entry.id, POSTING)), known.get((entry.id, TICKET))
        if entry.kind == POSTING and posting is not None and ticket is not None:
            rows = (ticket, posting, *tx.changes(number, entry.id))
            if all(row.seq <= until for row in rows):
                gone |= {row.seq: row for row in rows}
        elif entry.kind == TICKET and posting is None and runtime.ttl is not None and entry.id not in waiting:
            gone[entry.seq] = entry  # it is older than twice the time to live
    return [gone[seq] for seq in sorted(gone)]


TAIL_EVERY = 60.0  # seconds between two looks at what is new
FULL_EVERY = 86_400.0  # seconds between two audits of everything
SHORT_JOURNAL = 20_000  # entries; a journal with no more is audited whole before the server begins
STARTUP_LIMIT = 300_000  # entries; one without a checkpoint that has more is audited while the server is at work
FOLD_EVERY = 3_600.0  # seconds between two folds
REMEDY = "run gradeq audit on the store, and gradeq store rebuild or a backup if it is damaged"


class AuditWatch:
    """Audits what a desk writes; a layer that fails stops learning and goes on serving."""

    def __init__(self, desk: Desk, log: Log | None = None) -> None:
        self.desk, self._log = desk, log or Log()
        self.retention: float | None = None  # seconds; older closed rows are folded, None: never
        self._next_fold = 0.0  # when to fold again
        self.results: dict[tuple[str, str], tuple[float, AuditResult]] = {}  # and when, by tenant and name
        self._auditor = Auditor(desk.store)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)

    def start(self) -> None:
        """Audit new rows and short journals now, then everything in a thread."""
        for row in self.desk.store.layers():
            if row.head.entries > SHORT_JOURNAL:
                result = self._try(self._auditor.since_checkpoint, row)
                if result is not None and result.faults:
                    self._record(row, result)
                if result is not None or row.head.entries > STARTUP_LIMIT:
                    continue
            self.audit_layer(row)
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        next_full, pause = time.monotonic() + FULL_EVERY, 0.0
        while not self._end.wait(pause):
            full, pause = time.monotonic() > next_full, TAIL_EVERY
            next_full += FULL_EVERY if full else 0.0
            try:
                rows = self.desk.store.layers()
            except GradeqError:
                continue  # what cannot be read now is audited when it can
            fold = self.retention is not None and time.monotonic() >= self._next_fold
            self._next_fold = time.monotonic() + FOLD_EVERY if fold else self._next_fold
            for row in rows:
                result = None if self._end.is_set() else self.audit_layer(row, full)
                if fold and result is not None and not result.faults:
                    self._fold(row)

    def _fold(self, row: LayerRow) -> None:
        if self.retention is None or self.desk.store.read_only:
            return
        try:
            gone, why = fold_layer(self.desk.store, row, self.retention, self.desk.clock()), ""
        except (StoreUnavailable, StoreTaken):
            return  # the next time
        except GradeqError as error:
            gone, why = 0, str(error)
        if gone or why:
            level = "warning" if why else "info"
            self._log("fold", level, layer=row.name, tenant=row.tenant, entries=gone, why=why or None)

    def _try(self, audit: Callable[[LayerRow], AuditResult | None], row: LayerRow) -> AuditResult | None:
        try:
            return audit(row)
        except StoreUnavailable:
            return None
        except GradeqError as error:
            return AuditResult(row.tenant, row.name, faults=[str(error)])

    def audit_layer(self, row: LayerRow, full: bool = False) -> AuditResult | None:
        """Audit one layer, in full or only new rows; None if it cannot be read now."""
        result = self._try(self._full if full else self._auditor.tail, row)
        if result is not None:
            self._record(row, result)
        return result

    def _full(self, row: LayerRow) -> AuditResult:
        try:
            copy = self.desk.copy(row.tenant, row.name).result()
        except (LayerStopped, StoreUnavailable):
            copy = None  # it is not at work
        return self._auditor.full(row, copy)

    def _record(self, row: LayerRow, result: AuditResult) -> None:
        self.results[row.tenant, row.name] = time.time(), result
        if result.faults:
            if not row.head.stopped and not self.desk.store.read_only:
                self._stop_layer(row, result.faults[0])
            self._log("audit", "error", layer=row.name, tenant=row.tenant, why=result.faults[0])

    def _stop_layer(self, row: LayerRow, why: str) -> None:
        try:
            with self.desk.store.write() as tx:
                tx.stop(row.number, f"{why}; {REMEDY}")
        except (StoreUnavailable, StoreDamaged):
            return  # nothing can be learned then either; the next look tries again
        with suppress(GradeqError):
            self.desk.copy(row.tenant, row.name)  # the desk hears of it now, not with the next item
