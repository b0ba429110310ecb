"""Maintenance of layers: import, export, rebuild, fold old rows, audit in the background."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container
from contextlib import closing, suppress
from pathlib import Path
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
from gradeq.service import schemas
from gradeq.service.audit import Auditor, AuditResult, JournalTally
from gradeq.service.layer_spec import NANO, layer_of, uses_dates
from gradeq.service.problems import LayerStopped
from gradeq.service.runtime import IMPORT, WAIT, LayerKey, LayerRuntime, book_for_import
from gradeq.service.store import journal_store as journal
from gradeq.service.store import open_store
from gradeq.service.store.database import Connection, JsonObject, StoreDamaged, StoreTaken, StoreUnavailable
from gradeq.service.store.journal_store import Entry, LayerRow, Store, StoreWriter
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
        rows += [
            (journal.TICKET, id, now, ticket),
            (journal.POSTING, id, now, copy_with(posting, sign=abs(posting.sign))),
        ]
        if posting.sign < 0.0:  # its label was taken back
            rows.append((journal.REVERSAL, id, now, posting))
    for ticket, known, opened in book.tickets():
        if known is not None:
            rows.append((journal.TICKET, known, now if opened is None else opened / unit, ticket))
    for label in book.waiting.values():
        if label.id is not None:
            at = now if label.time == HELD else label.time / unit  # served without a time
            rows.append((journal.TICKET, label.id, at, label.ticket))
    sums = sums_of_layer(layer)
    body = {"do": IMPORT, "until": 1 + len(rows), "sums": journal.encode_sums(sums), "state": text, "waiting": True}
    entries = [Entry(1, journal.CONTROL, '""', now, 0, b"", schemas.encode_json(body))]
    for seq, (kind, id, at, value) in enumerate(rows, 2):
        entries.append(Entry(seq, kind, schemas.encode_id(id), float(at), 0, b"", schemas.encode_entry(value)))
    head = tx.append(row.number, row.head, entries, sums)
    layer.internals.tickets = book_for_import(book)
    tx.save_snapshot(row.number, head.seq, layer.to_json(), now)


def sums_of_layer(layer: Layer) -> Sums:
    """The library's own sums, as the opening balance of the exact ones."""
    layer.internals.state.catch_up()
    names, sums, rule = layer.internals.names, layer.internals.state.sums, layer.internals.rule
    keys = (
        [k for k, _ in names.split()] if hasattr(names, "split") and not names.roster.scalar else range(names.count)
    )
    balance: Sums = {}
    for j, key in enumerate(keys):
        row = names.row_at([j], [1.0], key)
        for level in range(rule.width):
            at = j * rule.stride + level * COLUMNS
            if sums[at + ROWS]:
                amount = Sum(int(sums[at + ROWS]), exact(sums[at + GRADIENT]), exact(sums[at + MOVED]))
                balance[account_of(row.names[0], row.key), level] = amount
    return balance


def import_body(connection: Connection, number: int) -> JsonObject:
    """The control that begins the journal of an imported layer; empty for other layers."""
    for entry in journal.select_entries(
        connection, "WHERE layer = ? AND seq = 1 AND kind = ?", number, journal.CONTROL
    ):
        body: JsonObject = schemas.decode_json(entry.body)
        return body if body.get("do") == IMPORT else {}
    return {}


def export_state(store: Store, row: LayerRow) -> str:
    """A layer of a store as the library saves it: state, open tickets, closed ids with their labels."""
    runtime = LayerRuntime.load(store, row)
    with store.driver.reading() as connection:
        imported = import_body(connection, row.number)
    book = (from_json(imported["state"]) if imported else layer_of(row.spec)).internals.tickets
    spans = (row.spec.get("ttl"), row.spec.get("maturity"))
    unit = NANO if any(isinstance(span, str) for span in spans) or uses_dates(book) else 1.0
    for entry in store.entries(row.number, int(imported.get("until", 0)), runtime.head.seq):
        _replay_in_book(book, entry, unit, runtime.ttl)
    book.early = runtime.layer.internals.tickets.early
    runtime.layer.internals.tickets = book
    text = runtime.layer.to_json()
    try:
        from_json(text)
    except StateError as error:
        raise StateError(f"{row.name} cannot be exported: {error}; run gradeq audit") from None
    return text


def _replay_in_book(book: TicketBook, entry: Entry, unit: float, ttl: float | None) -> None:
    id = schemas.decode_id(entry.id)
    if entry.kind == journal.TICKET:
        book.put(schemas.decode_ticket(entry.body), id, entry.at * unit)
        if ttl is not None:
            book.expire(entry.at * unit)
    elif entry.kind == journal.POSTING and id in book.by_id:
        ticket = book.find(id)[0]
        del book.opened[ticket[0]]
        book.close(ticket, id, schemas.decode_posting(entry.body))
    elif entry.kind == journal.POSTING:
        book.lapsed.pop(id, None)  # a label may come after its ticket expired, or was held back
        if id in book.waiting_ids:
            book.release(book.waiting_ids[id])
        book.shut(id, schemas.decode_posting(entry.body))
    elif entry.kind in (journal.REVERSAL, journal.CORRECTION) and id in book.closed:
        book.closed[id] = copy_with(schemas.decode_posting(entry.body), slopes=())
    elif entry.kind == journal.CONTROL and (body := schemas.decode_json(entry.body))["do"] == WAIT:
        id = schemas.decode_id(body["id"])
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
            Path(f"{path}{ending}").unlink(missing_ok=True)
        raise


def _rebuild_layer(tx: StoreWriter, row: LayerRow, now: float) -> str:
    number, connection, result = row.number, tx.connection, AuditResult(row.tenant, row.name)
    oldest = 0
    if journal.folded_until(connection, number):  # folded rows are only in the oldest snapshot
        oldest = journal.number_of(connection, "SELECT MIN(seq) FROM snapshots WHERE layer = ?", number) or 0
    connection.execute("DELETE FROM snapshots WHERE layer = ? AND seq <> ?", (number, oldest))
    try:
        tally = JournalTally(connection, tx.secret, row, replay=True)
        tally.take_all(connection, result)
        if tally.hash != journal.read_head(connection, number).hash:
            result.fault("its rows or settings were changed (hash)")
    except GradeqError as error:
        result.fault(str(error))
    if result.faults:
        raise StoreDamaged(f"the journal of {row.name} is damaged: {result.faults[0]}; restore a backup")
    connection.execute("DELETE FROM sums WHERE layer = ?", (number,))
    journal.write_sums(connection, number, tally.runtime.sums)
    connection.execute(
        "UPDATE layers SET seq = ?, entries = ?, stopped = '' WHERE number = ?", (tally.last, tally.entries, number)
    )
    if tally.last > 0:
        tx.save_snapshot(number, tally.last, tally.runtime.layer.to_json(), now)
    return f"{tally.entries:,} entries, sums and snapshot rebuilt"


def fold_layer(store: Store, row: LayerRow, keep: float, now: float) -> int:
    """Fold rows older than ``keep`` seconds, in batches; return how many."""
    runtime = LayerRuntime(row)
    if not keep > 0.0:
        raise BadInput(f"keeping rows for {keep:g} seconds is too little; give a positive time")
    if runtime.ttl is not None and keep < 2.0 * runtime.ttl:
        why = f"labels may come for {runtime.ttl:g} seconds, and ids are refused for twice that"
        raise BadInput(f"{row.name}: {why}; keep at least {2.0 * runtime.ttl:g} seconds")
    if runtime.signed and runtime.ttl is None:
        raise BadInput(f"{row.name}: its signed tickets never expire, so their ids must stay; create it with a ttl")
    # A label may wait for longer than the ttl: its ticket stays until the label is learned.
    waiting = LayerRuntime.load(store, row).layer.internals.tickets.waiting_ids if runtime.ttl is not None else {}
    folded = after = 0
    while True:
        with store.write() as tx:
            tx.head(row.number)  # locks the layer: no other server folds or appends meanwhile
            until = min(_foldable(tx.connection, row.number, now - keep))
            page = journal.read_page(tx.connection, row.number, after, until)
            if not page:
                return folded
            after = page[-1].seq
            rows = closed_rows(tx, runtime, page, until, waiting)
            if rows:
                runtime.sums, imported = {}, int(import_body(tx.connection, row.number).get("until", 0))
                for entry in rows:
                    if entry.kind != journal.TICKET and entry.seq > imported:
                        runtime.add_posting(schemas.decode_posting(entry.body))
                tx.fold(row.number, until, rows, runtime.sums)
                folded += len(rows)


def _foldable(connection: Connection, number: int, before: float) -> tuple[int, int]:
    """The last number in every snapshot, and the last number up to which all rows are older than ``before``."""
    saved = journal.number_of(connection, "SELECT MIN(seq) FROM snapshots WHERE layer = ?", number)
    young = journal.number_of(
        connection, "SELECT MIN(seq) - 1 FROM journal WHERE layer = ? AND at >= ?", number, before
    )
    last = journal.number_of(connection, "SELECT MAX(seq) FROM journal WHERE layer = ?", number)
    return saved or 0, (last or 0) if young is None else young


def rows_without_snapshot(store: Store, row: LayerRow, keep: float, now: float) -> int:
    """How many rows are old enough to fold but are in no snapshot yet."""
    sql = "SELECT COUNT(*) FROM journal WHERE layer = ? AND seq > ? AND seq <= ?"
    with store.driver.reading() as connection:
        return journal.number_of(connection, sql, row.number, *_foldable(connection, row.number, now - keep)) or 0


def closed_rows(
    tx: StoreWriter, runtime: LayerRuntime, page: list[Entry], until: int, waiting: Container[Id]
) -> list[Entry]:
    """The rows of these ids that can no longer change, up to ``until``; ``waiting``: ids whose labels still wait."""
    number = runtime.number
    known = tx.find(number, [entry.id for entry in page if entry.kind in (journal.TICKET, journal.POSTING)])
    closed: set[Entry] = set()
    for entry in page:
        posting, ticket = known.get((entry.id, journal.POSTING)), known.get((entry.id, journal.TICKET))
        if entry.kind == journal.POSTING and posting is not None and ticket is not None:
            rows = (ticket, posting, *tx.changes(number, entry.id))
            if all(row.seq <= until for row in rows):
                closed.update(rows)
        elif entry.kind == journal.TICKET and posting is None and runtime.ttl is not None and entry.id not in waiting:
            closed.add(entry)  # it is older than twice the ttl
    return sorted(closed)


TAIL_EVERY = 60.0  # seconds between two audits of new rows
FULL_EVERY = 86_400.0  # seconds between two full audits
SHORT_JOURNAL = 20_000  # entries; shorter journals are audited completely before the server starts
STARTUP_LIMIT = 300_000  # entries; longer journals without a checkpoint are audited while the server runs
FOLD_EVERY = 3_600.0  # seconds between two folds
REMEDY = "run gradeq audit on the store, and gradeq store rebuild or a backup if it is damaged"


class AuditWatch:
    """Audits what a desk writes; a layer that fails stops learning and goes on serving."""

    def __init__(self, desk: Desk, log: Log | None = None) -> None:
        self.desk, self._log = desk, log or Log()
        self.retention: float | None = None  # seconds; older closed rows are folded, None: never
        self._next_fold = 0.0
        self.results: dict[LayerKey, tuple[float, AuditResult]] = {}  # with their times
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
                continue  # it is audited when it can be read again
            retention = None if self.desk.store.read_only or time.monotonic() < self._next_fold else self.retention
            if retention is not None:
                self._next_fold = time.monotonic() + FOLD_EVERY
            for row in rows:
                result = None if self._end.is_set() else self.audit_layer(row, full)
                if retention is not None and result is not None and not result.faults:
                    self._fold(row, retention)

    def _fold(self, row: LayerRow, retention: float) -> None:
        where = {"layer": row.name, "tenant": row.tenant}
        try:
            if folded := fold_layer(self.desk.store, row, retention, self.desk.clock()):
                self._log("fold", **where, entries=folded)
        except (StoreUnavailable, StoreTaken):
            pass  # it is tried again an hour later
        except GradeqError as error:
            self._log("fold", "warning", **where, entries=0, why=str(error))

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
            copy = None  # it is not running
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
            return  # nothing can be learned then either; the next audit tries again
        with suppress(GradeqError):
            self.desk.copy(row.tenant, row.name)  # the desk notices it now, not with the next item
