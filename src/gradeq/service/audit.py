"""Audits: journal, exact sums, heads, snapshots, states and clients' receipts must agree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

from gradeq.certificates.figures import ROUNDED
from gradeq.errors import GradeqError
from gradeq.kernels.account import COLUMNS, GRADIENT, MOVED, ROWS
from gradeq.layers.internals import silenced
from gradeq.layers.registry import from_json
from gradeq.ledger.exact import NOTHING, Account, Sum, Sums, amounts, rounded, written
from gradeq.ledger.values import Row
from gradeq.rules.ensemble import Ensemble
from gradeq.service.runtime import IMPORT, LayerRuntime
from gradeq.service.schemas import decode_json, decode_posting, decode_ticket, encode_id
from gradeq.service.store import journal_store as journal
from gradeq.service.store.database import Connection, JsonObject, StoreDamaged, StoreTaken, StoreUnavailable
from gradeq.service.store.journal_store import MODULUS, Entry, LayerRow, Store

MAX_FAULTS = 5  # faults of one layer that are spelled out
SavedState = tuple[int, str]  # the last journal number in a layer's state, and the state


@dataclass
class AuditResult:
    """The result of auditing one layer; no ``faults`` means success. ``read``: rows read this time."""

    tenant: str
    name: str
    entries: int = 0
    labels: int = 0
    open: int = 0
    read: int = 0
    replayed: bool = False
    faults: list[str] = field(default_factory=list)

    def fault(self, what: str) -> None:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(what)

    def as_dict(self) -> JsonObject:
        return {**asdict(self), "sound": not self.faults}


class AuditCheckpoint(NamedTuple):
    """How far a journal was audited: last number, row count, hash of the rows, hash of the sums."""

    seq: int
    entries: int
    hash: str
    sums: str

    def signature(self, secret: bytes, number: int) -> str:
        text = f"mark {number} {self.seq} {self.entries} {self.hash} {self.sums}"
        return f"{journal.keyed_hash(secret, text):032x}"


def load_checkpoint(connection: Connection, secret: bytes, number: int) -> AuditCheckpoint | None:
    """The checkpoint of a layer; None unless this store signed one."""
    for (text,) in connection.execute("SELECT value FROM meta WHERE key = ?", (f"audited {number}",)):
        with suppress(ValueError, TypeError):
            *fields, signature = json.loads(text)
            checkpoint = AuditCheckpoint(*fields)
            return checkpoint if signature == checkpoint.signature(secret, number) else None
    return None


def sums_hash(secret: bytes, number: int, sums: Sums) -> str:
    """The sum of the hashes of all nonzero sums, in any order."""
    total = 0
    for (name, level), amount in sums.items():
        if amount != NOTHING:
            text = f"{number} {level} {amount.rows} {written(amount.gradient)} {written(amount.moved)} {name}"
            total += journal.keyed_hash(secret, text)
    return f"{total % MODULUS:x}"


class JournalTally:
    """Running sums over a journal: from its beginning with what was folded out of it, or from a checkpoint."""

    imported = 0  # entries up to this number are in the balance of an imported layer
    served = 0  # the number of the last ticket

    def __init__(
        self,
        connection: Connection,
        secret: bytes,
        row: LayerRow,
        replay: bool = False,
        checkpoint: AuditCheckpoint | None = None,
    ) -> None:
        self.row, self._secret, self.replay, self.checkpoint = row, secret, replay, checkpoint
        fold = journal.read_fold(connection, row.number)
        self.runtime = LayerRuntime(row)
        self.gaps = fold.seq  # up to here rows may be missing
        self.labels = 0
        if checkpoint is not None:
            self.seq, self.entries, self.hash = checkpoint.seq, checkpoint.entries, int(checkpoint.hash, 16)
        else:
            self.runtime.sums = dict(fold.sums)
            self.seq, self.entries = 0, fold.entries
            self.hash = (journal.read_initial_hash(connection, secret, row.number) + fold.hash) % MODULUS
        self.open: set[str] = set()
        self.sizes: dict[Account, tuple[float, float]] = {}  # sums of |g| and |eta g|
        saved = dict(journal.read_snapshots(connection, row.number)) if replay else {}
        self.states = {seq: (text, f"snapshot at {seq}") for seq, text in saved.items()}
        if replay and fold.seq:
            oldest = min(saved, default=0)
            if oldest < fold.seq:
                raise StoreDamaged("no snapshot includes the rows that retention removed")
            self.runtime.layer, self.runtime.initial_seq = silenced(from_json(saved[oldest])), oldest

    @property
    def last(self) -> int:
        return max(self.seq, self.gaps)

    def take_all(self, connection: Connection, result: AuditResult) -> None:
        while page := journal.read_page(connection, self.row.number, self.seq):
            self.take(page, result)

    def take(self, page: list[Entry], result: AuditResult) -> None:
        self.hash = (self.hash + journal.hash_entries(self._secret, self.row.number, page)) % MODULUS
        self.entries += len(page)
        result.read += len(page)
        for entry in page:
            if entry.seq > self.last + 1:
                result.fault(f"entries {self.last + 1} to {entry.seq - 1} are missing")
            self.seq = entry.seq
            try:
                self._enter(entry, result)
                if entry.seq in self.states:
                    self._compare_state(*self.states[entry.seq], result)
            except GradeqError as error:
                result.fault(f"entry {entry.seq}: {error}")

    def _enter(self, entry: Entry, result: AuditResult) -> None:
        if entry.kind == journal.CONTROL:
            body = decode_json(entry.body)
            self.runtime.add_imported_sums(body)
            if body["do"] == IMPORT:
                self.imported = int(body["until"])
                for account, total in self.runtime.sums.items():
                    self.sizes[account] = abs(rounded(total.gradient)), abs(rounded(total.moved))
        elif entry.kind == journal.TICKET:
            number = decode_ticket(entry.body).number
            if entry.seq > self.imported and not self.runtime.signed:  # signed tickets may come from an older state
                if number <= self.served:
                    result.fault(f"entry {entry.seq}: its ticket was served from a state without those before it")
                self.served = number
            if entry.id in self.open:
                result.fault(f"entry {entry.seq}: a second ticket with the id {entry.id[:80]}")
            self.open.add(entry.id)
        else:
            posting = decode_posting(entry.body)
            if entry.kind == journal.POSTING:
                self.labels += 1
                if entry.id not in self.open and self.checkpoint is None:
                    result.fault(f"entry {entry.seq}: a label without a ticket, id {entry.id[:80]}")
                self.open.discard(entry.id)
            if entry.seq > self.imported and self.runtime.add_posting(posting):
                for account, amount in amounts(posting):
                    g, moved = self.sizes.get(account, (0.0, 0.0))
                    self.sizes[account] = (g + abs(rounded(amount.gradient)), moved + abs(rounded(amount.moved)))
        if self.replay:
            self.runtime.replay(entry)

    def _compare_state(self, text: str, what: str, result: AuditResult) -> None:
        """Check that the replayed journal gives a saved state to the last bit.

        Fields that are new since it was saved are not compared.
        """
        from_json(text)  # raises if it is damaged
        saved, replayed = json.loads(text), json.loads(self.runtime.layer.to_json())
        if not all(_contains(replayed[part], saved[part]) for part in ("kind", "settings", "state")):
            result.fault(f"the {what} differs from the replayed journal")

    def compare_head(self, connection: Connection, result: AuditResult) -> None:
        number = self.row.number
        head, sums = journal.read_head(connection, number), journal.read_sums(connection, number)
        result.entries, result.labels, result.open = self.entries, self.labels, len(self.open)
        if self.last != head.seq:
            result.fault(f"the journal ends at {self.last}, and the head says {head.seq}")
        if self.entries != head.entries:
            result.fault(f"the journal has {self.entries} entries, and the head says {head.entries}")
        if self.hash != head.hash:
            result.fault("the rows of the journal or the settings were changed (hash)")
        if self.checkpoint is not None:
            for account, more in self.runtime.sums.items():
                rows, gradient, moved = sums.get(account, NOTHING)
                sums[account] = Sum(rows - more.rows, gradient - more.gradient, moved - more.moved)
            if sums_hash(self._secret, number, sums) != self.checkpoint.sums:
                result.fault(f"the sums are not those of entry {self.checkpoint.seq} and of the rows since")
            return
        mine, accounts = self.runtime.sums, self.runtime.sums.keys() | sums.keys()
        wrong = [account for account in accounts if mine.get(account, NOTHING) != sums.get(account, NOTHING)]
        if wrong:
            result.fault(f"the sums of {len(wrong)} parameters are not those of the journal: {wrong[0][0]!r}")

    def compare_accounts(self, result: AuditResult) -> None:
        """Compare the layer's float sums with the exact ones, and check its certificate."""
        layer = self.runtime.layer
        if layer.equilibrium().balance == "broken":
            result.fault("the identity is broken: the parameters did not move by the sums of the labels")
        if self.gaps:  # the rounding errors of folded rows are unknown
            return
        sums, rule, names = layer.internals.state.sums, layer.internals.rule, layer.internals.names
        # The weights of an ensemble are no sums of errors: without a final tracker nothing moves by them.
        fixed = isinstance(rule, Ensemble) and rule.final is None
        tolerance = 2.0 * ROUNDED * (self.entries + 1)
        for (account, level), total in self.runtime.sums.items():
            key, separator, name = account.rpartition("\x1f")
            place = names.place(Row((name,), (1.0,), key if separator else None))
            at = int(place.params[0]) * int(rule.stride) + level * COLUMNS
            floats = sums[at + GRADIENT], sums[at + MOVED]
            exact = rounded(total.gradient), 0.0 if fixed else rounded(total.moved)
            terms = zip(floats, exact, self.sizes.get((account, level), (0.0, 0.0)), strict=True)
            if sums[at + ROWS] != total.rows or any(abs(a - b) > tolerance * size for a, b, size in terms):
                result.fault(f"the account of {account!r} is not the sum of its labels")


def _contains(value: object, part: object) -> bool:
    """Whether two JSON values are equal, apart from names that only the first has."""
    if isinstance(value, dict) and isinstance(part, dict):
        return all(name in value and _contains(value[name], part[name]) for name in part)
    return bool(value == part)


class Auditor:
    """Audits one store; an audit of the tail continues where the last one stopped."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._tallies: dict[int, JournalTally] = {}
        self._checkpoints: dict[int, int] = {}  # journal numbers of saved checkpoints, by layer

    def tail(self, row: LayerRow) -> AuditResult:
        """Audit the rows since the last audit, all sums and the head (level 1)."""
        result = AuditResult(row.tenant, row.name)
        tally = self._read_rows(row, result, self._tallies.get(row.number))
        if not result.faults:
            self._tallies[row.number] = tally
            if not self.store.read_only and self._checkpoints.get(row.number) != tally.seq:
                with suppress(StoreUnavailable, StoreTaken):  # a checkpoint only saves time
                    self._save_checkpoint(tally)
                    self._checkpoints[row.number] = tally.seq
        return result

    def full(self, row: LayerRow, running: SavedState | None = None) -> AuditResult:
        """Replay all rows and compare sums, head, snapshots and the running layer (level 2)."""
        result = AuditResult(row.tenant, row.name, replayed=True)
        tally = self._read_rows(row, result, running=running)
        if not result.faults:
            tally.compare_accounts(result)
        return result

    def since_checkpoint(self, row: LayerRow) -> AuditResult | None:
        """Audit the rows since the checkpoint; None without one."""
        result, number = AuditResult(row.tenant, row.name), row.number
        with self.store.driver.reading() as connection:
            checkpoint = load_checkpoint(connection, self.store.secret, number)
            first, last = journal.folded_until(connection, number), journal.read_head(connection, number).seq
            if checkpoint is None or not first <= checkpoint.seq <= last:
                return None
            tally = JournalTally(connection, self.store.secret, row, checkpoint=checkpoint)
            tally.take_all(connection, result)
            tally.compare_head(connection, result)
        return result

    def _read_rows(
        self, row: LayerRow, result: AuditResult, tally: JournalTally | None = None, running: SavedState | None = None
    ) -> JournalTally:
        """Take the rows that a tally lacks, and compare them with head and sums.

        A long read transaction would make the log of the database grow, so each page has its own; the last page, head
        and sums share one. If rows are folded meanwhile, the audit starts again.
        """
        while True:
            with self.store.driver.reading() as connection:
                if tally is None or journal.folded_until(connection, row.number) > tally.last:
                    result.read, result.faults = 0, []
                    tally = JournalTally(connection, self.store.secret, row, result.replayed)
                    if running is not None:
                        tally.states[running[0]] = running[1], "running layer"
                page = journal.read_page(connection, row.number, tally.seq)
                if len(page) < journal.PAGE_SIZE:
                    tally.take(page, result)
                    tally.compare_head(connection, result)
                    return tally
            tally.take(page, result)

    def _save_checkpoint(self, tally: JournalTally) -> None:
        number, secret = tally.row.number, self.store.secret
        sums = sums_hash(secret, number, tally.runtime.sums)
        checkpoint = AuditCheckpoint(tally.last, tally.entries, f"{tally.hash:x}", sums)
        row = f"audited {number}", json.dumps([*checkpoint, checkpoint.signature(secret, number)])
        with self.store.write() as tx:
            tx.connection.execute("DELETE FROM meta WHERE key = ?", row[:1])
            tx.connection.execute("INSERT INTO meta (key, value) VALUES (?, ?)", row)


def audit_store(store: Store) -> list[AuditResult]:
    auditor, results = Auditor(store), []
    for row in store.layers():
        try:
            results.append(auditor.full(row))
        except GradeqError as error:
            results.append(AuditResult(row.tenant, row.name, faults=[str(error)]))
    return results


Id = str | int
Kind = Literal["ticket", "posting"]
Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Receipt = tuple[Kind, Id, Number]
RECEIPT_KINDS = {"ticket": (journal.TICKET,), "posting": (journal.POSTING, journal.CORRECTION)}


class ReceiptComparison(Struct):
    """Receipts that the journal does not confirm: missing, doubled, or under another number.

    ``missing`` and ``doubled`` hold kind and id; ``moved`` the receipt and the number in the journal. Rows that
    retention has folded away cannot be looked up; ``folded`` counts their receipts.
    """

    compared: int
    missing: list[tuple[Kind, Id]]
    doubled: list[tuple[Kind, Id]]
    moved: list[tuple[Kind, Id, Number, Number]]
    folded: int


def compare_receipts(store: Store, number: int, receipts: Sequence[Receipt]) -> ReceiptComparison:
    wanted, ids = store.driver.among([encode_id(id) for _, id, _ in receipts])
    same = "entry.layer = ? AND entry.id = wanted.value AND entry.kind <= 2"
    by_id = f"SELECT entry.seq, entry.kind, entry.id FROM {wanted} journal AS entry ON {same}"
    by_seq = "SELECT seq, kind, id FROM journal WHERE layer = ? AND seq = ?"
    with store.driver.reading() as connection:
        matches = [*connection.execute(by_id, (ids, number))]
        for _, _, seq in receipts:
            matches += connection.execute(by_seq, (number, seq))
        folded = journal.folded_until(connection, number)
    numbers: dict[tuple[int, str], list[int]] = {}
    for seq, kind, text in sorted({(int(seq), int(kind), str(text)) for seq, kind, text in matches}):
        numbers.setdefault((kind, text), []).append(seq)
    result = ReceiptComparison(len(receipts), [], [], [], 0)
    for name, id, seq in receipts:
        each = [numbers.get((kind, encode_id(id)), []) for kind in RECEIPT_KINDS[name]]
        if len(each[0]) > 1:
            result.doubled.append((name, id))
        stored = [number for some in each for number in some]
        if seq in stored:
            continue
        if stored:
            result.moved.append((name, id, seq, max(stored)))
        elif seq <= folded:
            result.folded += 1
        else:
            result.missing.append((name, id))
    return result
