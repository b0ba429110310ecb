"""One transaction on one layer: items become journal entries or are rejected one by one."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from copy import copy
from itertools import zip_longest
from typing import NamedTuple, TypeVar

from gradeq.engine.label_stats import HELD
from gradeq.engine.tickets import Id, WaitingLabel, just_after
from gradeq.errors import BadInput, Diverging, GradeqError
from gradeq.layers.replay import adopt, put_back, withdraw
from gradeq.ledger.exact import Account
from gradeq.ledger.values import Posting, Ticket, new
from gradeq.records import copy_with
from gradeq.rules.wrapped import Relative
from gradeq.service import schemas
from gradeq.service.problems import LayerStopped, NoSuchLayer, in_http_words
from gradeq.service.runtime import (
    AUTHORS,
    HOLD_BACK,
    WAIT,
    LayerRuntime,
    apply_wait_control,
    count_label,
    due_labels,
    release_label,
)
from gradeq.service.schemas import ACCEPTED, ItemAnswer, Label, Prediction
from gradeq.service.signed_tickets import SignedTicket, journal_mark, verify_ticket
from gradeq.service.store.database import JsonObject
from gradeq.service.store.journal_store import (
    CONTROL,
    CORRECTION,
    PAGE_SIZE,
    POSTING,
    REVERSAL,
    TICKET,
    Entry,
    Rejection,
    StoreWriter,
    select_entries,
)
from gradeq.tables import some

REMEDIES = {
    "conflict": "send the label with correct set to true to change it",
    "unknown": "send the prediction first, with the same id",
    "expired": "create the layer with a longer ttl",
}
RESUME = (
    'send {"do": "set_step", "eta": ...} with a smaller step and then {"do": "resume"}, '
    "or create the layer with its late_cap"
)
OTHER_LABEL = "id {!r} already has the label {!r}, not {!r}"
OTHER_HISTORY = "this ticket was served from a state that the store has lost; an old backup was restored"
EXPIRED = "the ticket of {!r} is older than the ttl"
SERVE_AGAIN = "ask for the prediction again, and send the label with the new ticket"
NO_TICKETS = "this layer keeps no tickets; send the prediction's ticket under 'ticket'"

T = TypeVar("T")


class LabelEvent(NamedTuple):
    """A label to apply; ``text`` is its id as JSON.

    ``dry_run``: the labels checked so far in an atomic call; None if the label is to be applied.
    """

    id: Id
    text: str
    y: float
    author: int
    correct: bool
    dry_run: dict[str, float] | None


class Transaction:
    """The part of a store transaction that concerns one layer; ``write`` ends it."""

    def __init__(self, runtime: LayerRuntime, tx: StoreWriter, now: float, secret: bytes) -> None:
        self.runtime, self.tx, self.now, self._secret = runtime, tx, now, secret
        self.head = tx.head(runtime.number)
        if self.head.removed:
            raise NoSuchLayer(f"the layer {runtime.row.name!r} was deleted")
        if self.head.stopped:
            runtime.head = copy_with(runtime.head, stopped=self.head.stopped)
            raise LayerStopped(f"learning has stopped: {self.head.stopped}")
        if self.head.seq != runtime.head.seq:
            runtime.catch_up(tx.entries(runtime.number, runtime.head.seq))
        runtime.head = self.head
        self.entries: list[Entry] = []
        self.changed: set[Account] = set()
        self.rejections: list[Rejection] = []
        self.diverged = ""  # why this transaction froze the layer
        # Entries by id and kind: of this transaction, and of the store. Open tickets are in ``runtime`` too.
        self._new: dict[tuple[str, int], Entry] = {}
        self._stored: dict[tuple[str, int], Entry] = {}

    # Predictions

    def predict(self, items: Sequence[Prediction], author: int, atomic: bool) -> list[ItemAnswer]:
        ids = [item.id if item.id is not None else f"gq-{secrets.token_hex(8)}" for item in items]
        texts = [schemas.encode_id(id) for id in ids]
        self._look_up([text for item, text in zip(items, texts, strict=True) if item.id is not None])

        def each(dry_run: dict[str, bytes] | None) -> list[ItemAnswer]:
            rows = zip(items, ids, texts, strict=True)
            return [self._predict_item(item, id, text, author, dry_run) for item, id, text in rows]

        return all_or_none(each) if atomic else each(None)

    def _predict_item(
        self, item: Prediction, id: Id, text: str, author: int, dry_run: dict[str, bytes] | None
    ) -> ItemAnswer:
        """Serve an item; ``dry_run``: only check it, with the payloads of the ids checked so far."""
        runtime, names = self.runtime, self.runtime.layer.internals.names
        try:
            payload = schemas.payload_hash(item)
            old = self._entry(text, TICKET)
            other = dry_run is not None and dry_run.setdefault(text, payload) != payload
            if other or (old is not None and old.payload and old.payload != payload):
                return self._reject(id, "conflict", "this id was used for another prediction", "give it another id")
            if old is not None:
                opened = runtime.open_tickets.get(text)
                ticket = opened[1] if opened is not None else schemas.decode_ticket(old.body)
                return runtime.answer(id, ticket, status="duplicate", seq=old.seq)
            args, options = runtime.open_arguments(item)
            known = names.count + names.keys
            ticket = (runtime.layer.open if dry_run is None else runtime.layer.preview)(*args, **options)
        except GradeqError as error:
            return self._reject(id, "rejected", in_http_words(str(error)))
        if dry_run is not None:
            return ItemAnswer(id=id, status="served")
        entry = self._append(TICKET, text, author, payload, schemas.encode_entry(ticket))
        runtime.remember_entry(entry, ticket)
        cold = names.count + names.keys > known
        return runtime.answer(id, ticket, status="served", seq=entry.seq, cold=cold)

    # Labels

    def label(self, items: Sequence[Label], author: int, atomic: bool) -> list[ItemAnswer]:
        texts = ["" if item.id is None else schemas.encode_id(item.id) for item in items]
        wanted = [text for text in texts if text and text not in self.runtime.open_tickets]
        if wanted:
            self._look_up(wanted)

        def each(dry_run: dict[str, float] | None) -> list[ItemAnswer]:
            return [self._label_item(item, text, author, dry_run) for item, text in zip(items, texts, strict=True)]

        return all_or_none(each) if atomic else each(None)

    def _label_item(self, item: Label, text: str, author: int, dry_run: dict[str, float] | None) -> ItemAnswer:
        id = item.id
        try:
            y = self.runtime.layer.validate_label(item.label)
            if item.ticket is not None:
                return self._label_signed(item, y, author, dry_run)
            if id is None:
                raise BadInput("the label has no id; send the id of its prediction")
            return self._label_stored(LabelEvent(id, text, y, author, item.correct, dry_run))
        except Diverging as error:
            return self._freeze_diverging(id, error)
        except GradeqError as error:
            return self._reject(id, "rejected", in_http_words(str(error)))

    def _label_stored(self, event: LabelEvent) -> ItemAnswer:
        """Apply a label whose ticket is in the journal."""
        id, text, runtime = event.id, event.text, self.runtime
        opened = runtime.open_tickets.get(text)  # then it has no label yet
        if opened is None:
            posted = self._entry(text, POSTING)
            if posted is not None:
                return self._relabel(event, posted)
            entry = self._entry(text, TICKET)
            if entry is None and runtime.signed:
                raise BadInput(NO_TICKETS)
            if entry is None:
                return self._reject(id, "unknown", f"no prediction was served with the id {id!r}")
            opened = (entry, schemas.decode_ticket(entry.body))
        entry, ticket = opened
        if runtime.ttl is not None and self.now - entry.at > runtime.ttl:
            return self._reject(id, "expired", EXPIRED.format(id))
        check_outlier(runtime, ticket, event.y)
        book = runtime.layer.internals.tickets
        late = ticket.number != runtime.layer.internals.state.number
        early = copy(book.early) if late else book.early  # only late labels are counted
        answer = self._keep_for_later(event, entry, ticket)
        if answer is not None:
            return answer
        if event.dry_run is not None:
            return self._dry_run_answer(event, event.dry_run)
        try:
            posting = runtime.post(ticket, event.y)
        except GradeqError:
            book.early = early  # the label is not learned, so it does not count
            raise
        return self._append_posting(id, text, posting, event.author)

    def _keep_for_later(self, event: LabelEvent, entry: Entry, ticket: Ticket) -> ItemAnswer | None:
        """The answer to a label that is not learned yet; None if it is to be learned now."""
        id, text, y, author = event.id, event.text, event.y, event.author
        runtime, book = self.runtime, self.runtime.layer.internals.tickets
        known = book.waiting_ids.get(text)
        if known is not None:
            label = book.waiting[known]
            if label.y == y:
                return ItemAnswer(id=id, status="duplicate")
            if not event.correct:
                return self._reject(id, "conflict", OTHER_LABEL.format(id, label.y, y))
            if event.dry_run is None:
                self._add_waiting(copy_with(label, y=y), author)
            return ItemAnswer(id=id, status="corrected")
        if runtime.maturity:
            due = just_after(entry.at + runtime.maturity)
            if self.now >= due:
                return None
            if event.dry_run is None:
                self._add_waiting(WaitingLabel(ticket, y, due, entry.at, text), author)
            return ItemAnswer(id=id, status="waiting")
        early, number = book.early, runtime.layer.internals.state.number
        if event.dry_run is not None or runtime.signed or early is None or ticket.number == number:
            return None
        since = early.since
        if not count_label(runtime.layer, ticket, y):
            return None
        # Its delay seems to depend on its value: it is held back.
        if since is None:
            self._append_control({"do": HOLD_BACK, "since": early.since})
        self._add_waiting(WaitingLabel(ticket, y, HELD, entry.at, text), author)
        released = early.ready(ticket.number, int(number), book.is_held_back, lambda: book.held_back)
        if early.since is None:
            self._append_control({"do": HOLD_BACK, "since": None})
        learned = {row: self._learn_waiting(book.waiting[row]) for row in released}
        return learned.get(ticket.number, ItemAnswer(id=id, status="waiting"))

    def _add_waiting(self, label: WaitingLabel, author: int) -> None:
        body = {"do": WAIT, "id": label.id, "label": label.y, "due": label.due, "at": label.time, "by": author}
        body["ticket"] = schemas.encode_entry(label.ticket).decode()
        apply_wait_control(self.runtime.layer, body, replay=False)
        self._append_control(body, author)

    def _append_control(self, body: JsonObject, author: int = 0) -> Entry:
        return self._append(CONTROL, '""', author, b"", schemas.encode_json(body))

    def _learn_waiting(self, label: WaitingLabel) -> ItemAnswer:
        text = str(label.id)
        id = schemas.decode_id(text)
        try:
            posting = self.runtime.post(label.ticket, label.y)
        except Diverging as error:
            return self._freeze_diverging(id, error)
        return self._append_posting(id, text, posting, release_label(self.runtime.layer.internals.tickets, text))

    def mature(self) -> None:
        """Learn from the labels that are due; mature rows without a label get that of ``missing_is``."""
        runtime = self.runtime
        book, age = runtime.layer.internals.tickets, runtime.maturity
        if book.missing_is is not None and age is not None:
            for entry, ticket in self._unlabelled(self.now - age):
                if entry.id not in book.waiting_ids:
                    due = just_after(entry.at + age)
                    self._add_waiting(WaitingLabel(ticket, book.missing_is, due, entry.at, entry.id), 0)
        for label in due_labels(book, self.now):
            if not runtime.layer.internals.frozen or age:
                self._learn_waiting(label)

    def _unlabelled(self, before: float) -> list[tuple[Entry, Ticket]]:
        runtime = self.runtime
        if runtime.has_all_open:
            return [opened for opened in runtime.open_tickets.values() if opened[0].at < before]
        same = "label.layer = entry.layer AND label.id = entry.id AND label.kind = 2"
        none = f"NOT EXISTS (SELECT 1 FROM journal AS label WHERE {same})"
        where = f"WHERE entry.layer = ? AND entry.kind = 1 AND entry.at < ? AND {none} ORDER BY entry.seq LIMIT ?"
        entries = select_entries(self.tx.connection, where, runtime.number, before, PAGE_SIZE)
        return [(entry, schemas.decode_ticket(entry.body)) for entry in entries]

    def _append_posting(self, id: Id | None, text: str, posting: Posting, author: int) -> ItemAnswer:
        entry = self.change(POSTING, text, posting, author)
        learning = not self.runtime.layer.internals.frozen
        return ItemAnswer(id=id, status="applied", seq=entry.seq, learning=learning)

    def _dry_run_answer(self, event: LabelEvent, dry_run: dict[str, float]) -> ItemAnswer:
        before = dry_run.get(event.text, event.y)
        if before != event.y and not event.correct:
            return self._reject(event.id, "conflict", OTHER_LABEL.format(event.id, before, event.y))
        dry_run[event.text] = event.y
        return ItemAnswer(id=event.id, status="applied")

    def _relabel(self, event: LabelEvent, posted: Entry) -> ItemAnswer:
        """Answer a label of an id that already has one, or had one that was taken back."""
        id, text, y, dry_run, layer = event.id, event.text, event.y, event.dry_run, self.runtime.layer
        last = max(self.changes(text), default=posted)
        old, undone = schemas.decode_posting(last.body), last.kind == REVERSAL
        current = old.y if dry_run is None else dry_run.get(text, old.y)
        if not undone and current == y:
            return ItemAnswer(id=id, status="duplicate", seq=last.seq, learning=old.sign != 0.0)
        if not event.correct:
            why = f"the label of id {id!r} was taken back" if undone else OTHER_LABEL.format(id, current, y)
            return self._reject(id, "conflict", why)
        if layer.internals.frozen:
            raise BadInput("learning is frozen, so labels cannot be corrected; resume it first")
        check_outlier(self.runtime, old, y)
        if dry_run is not None:
            if not undone:
                dry_run[text] = y
            return ItemAnswer(id=id, status="corrected")
        if undone:
            with layer.lock:
                new = put_back(layer, old, y)
        else:
            try:
                back, new = layer.repost(old, y)
            except Diverging as error:  # the layer as it is does not diverge: it need not stop
                why = f"with the label {y!r} {reason(error)}"
                raise BadInput(f"{why}; the label {old.y!r} stays, check the new one") from None
            self.change(REVERSAL, text, back, event.author)
        seq = self.change(CORRECTION, text, new, event.author).seq
        return ItemAnswer(id=id, status="corrected", seq=seq, learning=undone or new.sign != 0.0)

    def changes(self, text: str) -> list[Entry]:
        """The corrections and reversals of a label, oldest first."""
        changes = [self._new.get((text, kind)) for kind in (REVERSAL, CORRECTION)]
        new = [entry for entry in changes if entry is not None]
        return sorted([*self.tx.changes(self.runtime.number, text), *new])

    def change(self, kind: int, text: str, posting: Posting, author: int, payload: bytes = b"") -> Entry:
        """Append a posting, a reversal or a correction that the layer has learned; ``payload``: of an undo."""
        entry = self._append(kind, text, author, payload, schemas.encode_entry(posting))
        self.changed.update(self.runtime.add_posting(posting))
        self.runtime.remember_entry(entry, posting)
        return entry

    def _label_signed(self, item: Label, y: float, author: int, dry_run: dict[str, float] | None) -> ItemAnswer:
        runtime = self.runtime
        if not runtime.signed:
            raise BadInput("this layer stores its tickets; send the id and the label only")
        assert item.ticket is not None
        signed = verify_ticket(self._secret, runtime.number, item.ticket)
        text, ticket = signed.id, signed.ticket
        id = schemas.decode_id(text)
        if item.id is not None and schemas.encode_id(item.id) != text:
            raise BadInput(f"the ticket has id {id!r}, not {item.id!r}")
        if item.id is None:  # the others were looked up together
            self._look_up([text])
        event = LabelEvent(id, text, y, author, item.correct, dry_run)
        posted = self._entry(text, POSTING)
        if posted is not None:
            return self._relabel(event, posted)
        if runtime.ttl is not None and self.now - signed.at > runtime.ttl:
            return self._reject(id, "expired", EXPIRED.format(id))
        if not self._served_by_this_journal(signed):
            return self._reject(id, "rejected", OTHER_HISTORY, SERVE_AGAIN)
        check_outlier(runtime, ticket, y)
        if dry_run is not None:
            return self._dry_run_answer(event, dry_run)
        with runtime.layer.lock:
            posting = adopt(runtime.layer, ticket, y)
        entry = self._append(TICKET, text, author, signed.payload, schemas.encode_entry(ticket), signed.at)
        runtime.remember_entry(entry, ticket)
        return self._append_posting(id, text, posting, author)

    def _served_by_this_journal(self, signed: SignedTicket) -> bool:
        """Whether this journal contains the state that served a signed ticket.

        After an old backup is restored it may not, and then the lateness of the label is unknown.
        """
        number, seq = self.runtime.number, signed.seq
        if signed.ticket.number > self.runtime.layer.internals.state.number + 1:
            return False
        if seq is None:  # a ticket of an earlier version
            return True
        if seq > self.head.seq:
            return False
        hash = self.runtime.hash_at(seq, self.head, lambda after: self.tx.entries(number, after), self._secret)
        return journal_mark(self._secret, number, seq, hash) == signed.mark

    def control(self, do: str, arguments: JsonObject, author: int, why: str = "") -> int:
        body = {"do": do, "with": arguments} | ({"why": why} if why else {})
        self.runtime.control(body)
        return self._append_control(body, author).seq

    def copy(self) -> tuple[int, str]:
        return self.head.seq + len(self.entries), self.runtime.layer.to_json()

    # What all of them share

    def _look_up(self, ids: list[str]) -> None:
        wanted = [text for text in ids if (text, TICKET) not in self._new]
        self._stored.update(self.tx.find(self.runtime.number, wanted))

    def _entry(self, text: str, kind: int) -> Entry | None:
        entry = self._new.get((text, kind)) or self._stored.get((text, kind))
        if entry is None and kind == TICKET and text in self.runtime.open_tickets:
            return self.runtime.open_tickets[text][0]
        return entry

    def _append(
        self, kind: int, text: str, author: int, payload: bytes, body: bytes, at: float | None = None
    ) -> Entry:
        seq = self.head.seq + len(self.entries) + 1
        fields = (seq, kind, text, self.now if at is None else at, author, payload, body)
        entry: Entry = new(Entry, fields)
        self.entries.append(entry)
        self._new[text, kind] = entry
        return entry

    def _reject(self, id: Id | None, status: str, why: str, remedy: str | None = None) -> ItemAnswer:
        self.rejections.append(Rejection(self.now, str(id)[:255], status, why[:500].replace("\0", "\\0")))
        return ItemAnswer(id=id, status=status, detail=why, remedy=remedy or REMEDIES.get(status))

    def _freeze_diverging(self, id: Id | None, error: Diverging) -> ItemAnswer:
        """Stop learning because the layer diverges; it goes on serving."""
        if not self.runtime.layer.frozen:
            self.diverged = reason(error)
            self.control("freeze", {}, 0, self.diverged)
        return self._reject(id, "rejected", f"learning stopped: {reason(error)}", RESUME)

    def write(self) -> None:
        runtime, number = self.runtime, self.runtime.number
        if self.entries:
            sums = {account: runtime.sums[account] for account in self.changed}
            runtime.head = self.tx.append(number, self.head, self.entries, sums)
            if runtime.signed:
                runtime.hashes[runtime.head.seq] = runtime.head.hash
        if self.rejections:
            self.tx.reject(number, self.rejections)
            runtime.rejections.extend(self.rejections)


def reason(error: Diverging) -> str:
    """What diverges, without the remedy for Python."""
    return str(error).partition("; ")[0]


def all_or_none(each: Callable[[dict[str, T] | None], list[ItemAnswer]]) -> list[ItemAnswer]:
    """Check all items in a dry run; apply them only if each would be accepted."""
    checked = each({})
    if all(answer.status in ACCEPTED for answer in checked):
        return each(None)
    return [schemas.not_applied(answer.id) if answer.status in ACCEPTED else answer for answer in checked]


UNDO_BATCH = 500  # labels in one transaction


class UndoCounts(NamedTuple):
    """Labels of a key: taken back, replaced by the one before, or left (corrected by others, not learned)."""

    taken_back: int = 0
    restored: int = 0
    left: int = 0

    def plus(self, other: UndoCounts) -> UndoCounts:
        return UndoCounts(*(a + b for a, b in zip(self, other, strict=True)))


def undo_batch(transaction: Transaction, key: int, after: int, until: int, author: int) -> tuple[UndoCounts, int]:
    """Take back the next labels of a key; how many, and where to continue."""
    number, connection = transaction.runtime.number, transaction.tx.connection
    where = "WHERE layer = ? AND author = ? AND kind IN (?, ?) AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
    rows = select_entries(connection, where, number, key, POSTING, CORRECTION, after, until, UNDO_BATCH)
    counts = UndoCounts()
    for text in dict.fromkeys(entry.id for entry in rows):
        counts = counts.plus(_undo_label(transaction, key, text, author))
    if len(rows) == UNDO_BATCH:
        return counts, rows[-1].seq
    authors = transaction.runtime.layer.internals.tickets.desk.get(AUTHORS, {})
    return counts.plus(UndoCounts(left=sum(author == key for author in authors.values()))), until


# The payload of a reversal without a correction. An undo's correction has: the label it restores, the key undone.
WITHDRAWN = b"undo"


def standing_labels(posted: Entry, changes: Sequence[Entry]) -> list[Entry]:
    """The labels of one id, oldest first, without those that were undone; the last one is its current label."""
    labels = [posted]
    for entry, after in zip_longest(changes, changes[1:]):
        if entry.kind == CORRECTION and entry.payload:
            seq, key = map(int, entry.payload.split())
            labels = [label for label in labels if label.seq <= seq and label.author != key]
        elif entry.kind == CORRECTION:
            labels.append(entry)
        elif entry.payload or after is None or (after.seq, after.author) != (entry.seq + 1, entry.author):
            labels = []
    return labels


def _undo_label(transaction: Transaction, key: int, text: str, author: int) -> UndoCounts:
    """Take back the label of one id if the current one is the key's."""
    number, layer = transaction.runtime.number, transaction.runtime.layer
    posted, changes = transaction.tx.find(number, [text])[text, POSTING], transaction.changes(text)
    labels = standing_labels(posted, changes)
    if all(entry.author != key for entry in labels):
        return UndoCounts()  # it was taken back or replaced before
    if labels[-1].author != key:
        return UndoCounts(left=1)
    old = schemas.decode_posting(changes[-1].body if changes else posted.body)
    replaced = next((entry for entry in reversed(labels) if entry.author != key), None)
    if replaced is not None:
        back, new = layer.repost(old, schemas.decode_posting(replaced.body).y)
        transaction.change(REVERSAL, text, back, author)
        transaction.change(CORRECTION, text, new, author, f"{replaced.seq} {key}".encode())
        return UndoCounts(restored=1)
    learns = layer.internals.learns
    if old.sign == 0.0 or old.weight == 0.0 or (learns is not None and not learns(old.y)):
        return UndoCounts(left=1)  # nothing was learned from it
    with layer.lock:
        back = withdraw(layer, old)
    transaction.change(REVERSAL, text, back, author, WITHDRAWN)
    return UndoCounts(taken_back=1)


DIGITS = 2.0**53
LARGEST = 1e150  # the squares of any number of smaller values can be summed
FEW_LABELS = 5  # with fewer, the prediction is compared


def check_outlier(runtime: LayerRuntime, entry: Ticket | Posting, y: float) -> None:
    """Raise if learning from a label would erase what was learned.

    A float has 53 bits: a label 2^53 times as large as all before erases every digit of the sums and cannot be taken
    back. If its square overflows, the loss cannot be computed.
    """
    f = entry.base
    relative = isinstance(runtime.layer.internals.rule, Relative)
    if type(f) is float and -DIGITS < y - f < DIGITS and not relative:
        return
    each: Sequence[float] = f if isinstance(f, tuple) else (f,)
    away = abs(y / each[0] - 1.0) if relative else max(abs(y - one) for one in each)
    what = f"the label {y!r} is too far from its prediction {', '.join(map(repr, each))}"
    if not away <= LARGEST:
        raise BadInput(f"{what}: its loss would overflow; check both, and send the right label")
    if away < DIGITS:
        return
    recent = runtime.recent_labels
    if len(recent) < FEW_LABELS:
        size = max(map(abs, each))  # a prediction of 0 says nothing about the size of labels
        if size == 0.0 or relative or away <= DIGITS * max(1.0, size):
            return
        raise BadInput(f"{what}, more than {DIGITS:.0e} times; check both, and send the right label")
    for _, _, posting in reversed(recent):  # if numbers are usually this large, the last one shows it
        base = posting.base if isinstance(posting.base, tuple) else (posting.base,)
        sizes = [abs(posting.y / base[0])] if relative else [abs(posting.y), *map(abs, base)]
        if away <= DIGITS * max(1.0, *sizes):
            return
    scale = f"more than {DIGITS:.0e} times anything in the last {some(len(recent), 'label')}"
    raise BadInput(f"{what}: {scale}; check both, or create another layer for values of this size")
