"""What one transaction does to one layer: items become entries of its journal, or are refused one by one."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import Any

from gradeq.engine.early_labels import HELD
from gradeq.engine.tickets import Waiting, just_after
from gradeq.errors import BadInput, Diverging, GradeqError
from gradeq.layers.early import ready
from gradeq.layers.journal import adopt, put_back
from gradeq.ledger.exact import Account
from gradeq.ledger.values import Posting, Ticket, new
from gradeq.service.bodies import (
    body_of,
    id_in,
    id_text,
    payload_of,
    plain_body,
    posting_in,
    ticket_in,
)
from gradeq.service.failures import LayerStopped, NoSuchLayer
from gradeq.service.items import GOOD, Answer, Label, Prediction, not_done
from gradeq.service.live import Live
from gradeq.service.outliers import check_reach
from gradeq.service.signing import Signed, mark_of, verified
from gradeq.service.store.rows import Entry
from gradeq.service.store.schema import CONTROL, CORRECTION, POSTING, REVERSAL, TICKET
from gradeq.service.store.store import Write
from gradeq.service.waiting_labels import count, do_again, due_now, hold_body, let_go, wait_body
from gradeq.service.wording import in_json

REMEDIES = {
    "conflict": "send the label with correct set to true to change it",
    "unknown": "post the prediction first, with the same id",
    "expired": "make the layer with a longer ttl",
}
RESUME = (
    'send {"do": "set_step", "eta": ...} with a smaller step and then {"do": "resume"}, '
    "or make the layer with its late_cap"
)
HAS_ANOTHER = "id {!r} already has the label {!r}, not {!r}"
OTHER_HISTORY = (
    "this ticket was served by a state that the store has lost: an old backup was put in its place"
)
SERVE_AGAIN = "ask for the prediction again, and send the label with the new ticket"
SENT_BEFORE = "this id was sent with another prediction"


class Page:
    """The part of a transaction that is about one layer; ``write`` ends it."""

    def __init__(self, live: Live, tx: Write, now: float, secret: bytes) -> None:
        self.live, self.tx, self.now, self._secret = live, tx, now, secret
        self.head = tx.head(live.number)
        if self.head.removed:
            raise NoSuchLayer(f"the layer {live.row.name!r} was deleted")
        live.head = live.head._replace(stopped=self.head.stopped)
        if self.head.stopped:
            raise LayerStopped(f"learning has stopped: {self.head.stopped}")
        if self.head.seq != live.head.seq:
            live.catch_up(tx.entries(live.number, live.head.seq))
        live.head = self.head
        self.entries: list[Entry] = []
        self.changed: set[Account] = set()
        self.refused: list[tuple[float, str, str, str]] = []
        self.diverged = ""  # why this transaction froze the layer
        # Of this transaction, by id and kind; and what the store has. Open tickets are in ``live`` as well.
        self._new: dict[tuple[str, int], Entry] = {}
        self._found: dict[tuple[str, int], Entry] = {}

    # Predictions

    def predict(self, items: Sequence[Prediction], author: int, atomic: bool) -> list[Answer]:
        """Serve items, in order; those seen before are answered as before."""
        ids = [item.id if item.id is not None else f"gq-{secrets.token_hex(8)}" for item in items]
        texts = [id_text(id) for id in ids]
        self._look_up(
            [text for item, text in zip(items, texts, strict=True) if item.id is not None]
        )
        each = list(zip(items, ids, texts, strict=True))
        if atomic:
            told: dict[str, bytes] = {}
            checked = [self._judged(*own, author, told) for own in each]
            if not all(answer.status in GOOD for answer in checked):
                return undone(checked)
        return [self._judged(*own, author) for own in each]

    def _judged(
        self,
        item: Prediction,
        id: str | int,
        text: str,
        author: int,
        told: dict[str, bytes] | None = None,
    ) -> Answer:
        """What becomes of a prediction; ``told``: what would, and what the ids of the same call said before it."""
        try:
            payload = payload_of(item)
            old = self._entry(text, TICKET)
            if told is not None and told.setdefault(text, payload) != payload:
                return self._refuse(id, "conflict", SENT_BEFORE, "give it another id")
            if old is not None:
                if old.payload and old.payload != payload:
                    return self._refuse(id, "conflict", SENT_BEFORE, "give it another id")
                ticket = self._ticket(text, old)
                return self.live.answer(id, ticket, status="duplicate", seq=old.seq)
            args, given = self.live.where(item)
            layer: Any = self.live.layer
            known = layer._names.count + layer._names.keys
            ticket = (layer.open if told is None else layer.preview)(*args, **given)
        except GradeqError as error:
            return self._refuse(id, "rejected", in_json(str(error)))
        if told is not None:
            return Answer(id=id, status="served")
        entry = self._append(TICKET, text, author, payload, body_of(ticket))
        self.live.note(entry, ticket)
        cold = layer._names.count + layer._names.keys > known
        return self.live.answer(id, ticket, status="served", seq=entry.seq, cold=cold)

    # Labels

    def label(self, items: Sequence[Label], author: int, atomic: bool) -> list[Answer]:
        """Learn from labels, in order."""
        texts = ["" if item.id is None else id_text(item.id) for item in items]
        self._look_up([text for text in texts if text and text not in self.live.opened])
        each = list(zip(items, texts, strict=True))
        if atomic:
            told: dict[str, Any] = {}
            checked = [self._outcome(*own, author, told) for own in each]
            if not all(answer.status in GOOD for answer in checked):
                return undone(checked)
        return [self._outcome(*own, author) for own in each]

    def _outcome(
        self, item: Label, text: str, author: int, told: dict[str, Any] | None = None
    ) -> Answer:
        """What becomes of a label; ``told``: what would, and what the ids of the same call said before it."""
        id, live = item.id, self.live
        try:
            y = live.layer._label(item.label)
            if item.ticket is not None:
                return self._adopted(item, y, author, told)
            if id is None:
                raise BadInput("the label has no id; send that of its prediction")
            opened = live.opened.get(text)  # then it has no label yet
            if opened is None:
                posted = self._entry(text, POSTING)
                if posted is not None:
                    return self._again(item, id, text, posted, y, author, told)
                entry = self._entry(text, TICKET)
                if entry is None and live.signed:
                    raise BadInput(
                        "this layer keeps no tickets; send the one that came with the prediction, under 'ticket'"
                    )
                if entry is None:
                    return self._refuse(
                        id, "unknown", f"no prediction was served with the id {id!r}"
                    )
                opened = (entry, ticket_in(entry.body))
            if live.ttl is not None and self._expired(opened[0].at):
                return self._refuse(id, "expired", f"the ticket of {id!r} is older than the ttl")
            check_reach(live, opened[1], y)
            early = copy(live.layer._book.early)
            kept = self._kept(item, id, text, y, author, told, opened)
            if kept is not None:
                return kept
            if told is not None:
                return self._would(item, id, text, y, told)
            try:
                posting = live.post(opened[1], y)
            except GradeqError:
                live.layer._book.early = early  # the label is not learned, so it does not count
                raise
        except Diverging as error:
            return self._diverged(id, error)
        except GradeqError as error:
            return self._refuse(id, "rejected", in_json(str(error)))
        return self._posted(id, text, posting, author)

    def _kept(
        self,
        item: Label,
        id: str | int,
        text: str,
        y: Any,
        author: int,
        told: Any,
        opened: tuple[Entry, Ticket],
    ) -> Answer | None:
        """What becomes of a label that is kept for later; None if it is to be learned now."""
        live, (entry, ticket) = self.live, opened
        book = live.layer._book
        known = book.held.get(text)
        if known is not None:
            was = book.waiting[known]
            if was.y == y:
                return Answer(id=id, status="duplicate")
            if not item.correct:
                return self._refuse(id, "conflict", HAS_ANOTHER.format(id, was.y, y))
            if told is None:
                self._wait(was._replace(y=y), author)
            return Answer(id=id, status="corrected")
        if live.maturity:
            due = just_after(entry.at + live.maturity)
            if self.now >= due:
                return None
            if told is None:
                self._wait(Waiting(ticket, y, due, entry.at, text), author)
            return Answer(id=id, status="waiting")
        if told is not None or live.signed or book.early is None:
            return None
        return self._screened(id, Waiting(ticket, y, HELD, entry.at, text), author)

    def _screened(self, id: str | int, own: Waiting, author: int) -> Answer | None:
        """What becomes of a label if its delay seems to depend on its value; None if it does not."""
        layer: Any = self.live.layer
        book, early, number = layer._book, layer._book.early, own.ticket.number
        looks = count(layer, own.ticket, own.y)
        if early.since is None and looks:
            waiting = [
                ticket.number for _, ticket in self.live.opened.values() if ticket.number != number
            ]
            if sum(k < early.newest for k in waiting) > early.sums[0]:
                early.hold_back(int(layer._state.number), waiting)
                self._note(hold_body(layer))
        prompt = number == int(layer._state.number) or own.ticket.weight == 0.0 or layer._frozen
        if early.since is None or prompt:
            return None
        self._wait(own, author)
        released = ready(early, number, book.is_held_back, lambda: book.held_back)
        if early.since is None:
            self._note(hold_body(layer))
        answer = Answer(id=id, status="waiting")
        for k in released:
            posted = self._learn_kept(book.waiting[k])
            answer = posted if k == number else answer
        return answer

    def _wait(self, own: Waiting, author: int) -> None:
        """Keep a label, in memory and in the journal."""
        body = wait_body(own, author)
        do_again(self.live.layer, body, replay=False)
        self._note(body, author)

    def _note(self, body: dict[str, Any], author: int = 0) -> None:
        self._append(CONTROL, '""', author, b"", plain_body(body))

    def _learn_kept(self, own: Waiting) -> Answer:
        """Learn from a label that was kept."""
        text = str(own.id)
        try:
            posting = self.live.post(own.ticket, own.y)
        except Diverging as error:
            return self._diverged(id_in(text), error)
        return self._posted(id_in(text), text, posting, let_go(self.live.layer._book, text))

    def mature(self) -> None:
        """Learn from the labels of rows that are mature by now, and count those as missing that have none."""
        live = self.live
        book, age = live.layer._book, live.maturity
        if book.missing_is is not None and age is not None:
            for entry, ticket in self._unlabelled(self.now - age):
                if entry.id not in book.held:
                    self._wait(
                        Waiting(
                            ticket, book.missing_is, just_after(entry.at + age), entry.at, entry.id
                        ),
                        0,
                    )
        for own in due_now(book, self.now):
            if not live.layer._frozen or age:
                self._learn_kept(own)

    def _unlabelled(self, before: float) -> list[tuple[Entry, Ticket]]:
        """The rows without a label that were served before this time."""
        live = self.live
        if not live.whole:
            found = self.tx.unlabelled(live.number, before)
            return [(entry, ticket_in(entry.body)) for entry in found]
        return [own for own in live.opened.values() if own[0].at < before]

    def _posted(self, id: str | int | None, text: str, posting: Posting, author: int) -> Answer:
        entry = self._append(POSTING, text, author, b"", body_of(posting))
        self.changed.update(self.live.enter(posting))
        self.live.note(entry, posting)
        learning = not self.live.layer._frozen
        return Answer(id=id, status="applied", seq=entry.seq, learning=learning)

    def _would(self, item: Label, id: str | int, text: str, y: Any, told: dict[str, Any]) -> Answer:
        """What would become of the first label of an id, or of another one in the same call."""
        before = told.get(text, y)
        if before != y and not item.correct:
            return self._refuse(id, "conflict", HAS_ANOTHER.format(id, before, y))
        told[text] = y
        return Answer(id=id, status="applied")

    def _again(
        self, item: Label, id: str | int, text: str, posted: Entry, y: Any, author: int, told: Any
    ) -> Answer:
        """A label of an id that has one."""
        last = self.changed_last(text)
        old = posting_in((last or posted).body)
        if last is not None and last.kind == REVERSAL:
            return self._put_back(item, id, text, old, y, author, told)
        has = old.y if told is None else told.get(text, old.y)
        if has == y:
            seq, learned = (last or posted).seq, old.sign != 0.0
            return Answer(id=id, status="duplicate", seq=seq, learning=learned)
        if not item.correct:
            return self._refuse(id, "conflict", HAS_ANOTHER.format(id, has, y))
        if self.live.layer._frozen:
            raise BadInput("learning is frozen, and a correction would change it; resume it first")
        check_reach(self.live, old, y)
        if told is not None:
            told[text] = y
            return Answer(id=id, status="corrected")
        try:
            back, new = self.live.layer.repost(old, y)
        except Diverging as error:  # the layer as it is does not diverge: it need not stop
            raise BadInput(
                f"with the label {y!r} {reason(error)}; the label {old.y!r} stays, check the new one"
            ) from None
        self.change(REVERSAL, text, back, author)
        seq = self.change(CORRECTION, text, new, author).seq
        return Answer(id=id, status="corrected", seq=seq, learning=new.sign != 0.0)

    def changed_last(self, text: str) -> Entry | None:
        """The last correction or reversal of a label."""
        new = [
            self._new[text, kind] for kind in (REVERSAL, CORRECTION) if (text, kind) in self._new
        ]
        return max(new, default=None) or self.tx.corrected(self.live.number, text)

    def _put_back(
        self, item: Label, id: str | int, text: str, old: Posting, y: Any, author: int, told: Any
    ) -> Answer:
        """A label of an id whose label was taken back."""
        if not item.correct:
            return self._refuse(id, "conflict", f"the label of id {id!r} was taken back")
        check_reach(self.live, old, y)
        if told is not None:
            return Answer(id=id, status="corrected")
        with self.live.layer._lock:
            new = put_back(self.live.layer, old, y)
        return Answer(id=id, status="corrected", seq=self.change(CORRECTION, text, new, author).seq)

    def change(self, kind: int, text: str, posting: Posting, author: int) -> Entry:
        """Enter a reversal, or what comes in its place, that the layer has learned."""
        entry = self._append(kind, text, author, b"", body_of(posting))
        self.changed.update(self.live.enter(posting))
        self.live.note(entry, posting)
        return entry

    def _adopted(self, item: Label, y: Any, author: int, told: dict[str, Any] | None) -> Answer:
        """A label that comes with the signed ticket of its prediction."""
        if not self.live.signed:
            raise BadInput("this layer keeps its tickets itself; send the id and the label alone")
        assert item.ticket is not None
        sent = verified(self._secret, self.live.number, item.ticket)
        text, at, payload, ticket = sent[:4]
        id = id_in(text)
        if item.id is not None and id_text(item.id) != text:
            raise BadInput(f"the ticket is of id {id!r}, not {item.id!r}")
        if item.id is None:  # the others were looked up together
            self._look_up([text])
        posted = self._entry(text, POSTING)
        if posted is not None:
            return self._again(item, id, text, posted, y, author, told)
        if self._expired(at):
            return self._refuse(id, "expired", f"the ticket of {id!r} is older than the ttl")
        if not self._served_by_this_journal(sent):
            return self._refuse(id, "rejected", OTHER_HISTORY, SERVE_AGAIN)
        check_reach(self.live, ticket, y)
        if told is not None:
            return self._would(item, id, text, y, told)
        with self.live.layer._lock:
            posting = adopt(self.live.layer, ticket, y)
        entry = self._append(TICKET, text, author, payload, body_of(ticket), at)
        self.live.note(entry, ticket)
        return self._posted(id, text, posting, author)

    def _served_by_this_journal(self, sent: Signed) -> bool:
        """Whether a signed ticket was served from what this journal says.

        It is not after an old backup was put in the place of the store: the entries since are lost, and so is the
        state that served it. How late its label is, nobody knows then.
        """
        number = self.live.number
        if sent.ticket.number > self.live.layer._state.number + 1:
            return False
        if sent.seq is None:  # of an earlier version
            return True
        if sent.seq > self.head.seq:
            return False
        if sent.seq == self.head.seq:
            hash = self.head.hash
        else:
            hash = self.live.hash_at(
                sent.seq, self.head, partial(self.tx.entries, number), self._secret
            )
        return mark_of(self._secret, number, sent.seq, hash) == sent.mark

    def control(self, do: str, given: dict[str, Any], author: int, why: str = "") -> int:
        """What an operator asked for, or what had to be done and why; its number in the journal."""
        body = {"do": do, "with": given} | ({"why": why} if why else {})
        self.live.control(body)
        return self._append(CONTROL, '""', author, b"", plain_body(body)).seq

    def copy(self) -> tuple[int, str]:
        """The layer as it is now, and the number of the journal that it holds."""
        return self.head.seq + len(self.entries), self.live.layer.to_json()

    # What all of them share

    def _look_up(self, ids: list[str]) -> None:
        wanted = [text for text in ids if (text, TICKET) not in self._new]
        self._found.update(self.tx.find(self.live.number, wanted))

    def _entry(self, text: str, kind: int) -> Entry | None:
        found = self._new.get((text, kind)) or self._found.get((text, kind))
        if found is None and kind == TICKET and text in self.live.opened:
            return self.live.opened[text][0]
        return found

    def _ticket(self, text: str, entry: Entry) -> Ticket:
        known = self.live.opened.get(text)
        return known[1] if known is not None else ticket_in(entry.body)

    def _append(
        self,
        kind: int,
        text: str,
        author: int,
        payload: bytes,
        body: bytes,
        at: float | None = None,
    ) -> Entry:
        seq = self.head.seq + len(self.entries) + 1
        fields = (seq, kind, text, self.now if at is None else at, author, payload, body)
        entry: Entry = new(Entry, fields)
        self.entries.append(entry)
        self._new[text, kind] = entry
        return entry

    def _expired(self, at: float) -> bool:
        ttl = self.live.ttl
        return ttl is not None and self.now - at > ttl

    def _refuse(self, id: Any, status: str, why: str, remedy: str | None = None) -> Answer:
        self.refused.append((self.now, str(id)[:255], status, why[:500].replace("\0", "\\0")))
        return Answer(id=id, status=status, detail=why, remedy=remedy or REMEDIES.get(status))

    def _diverged(self, id: Any, error: Diverging) -> Answer:
        """The layer would leave its proven range: it stops learning, and goes on serving."""
        if not self.live.layer.frozen:
            self.diverged = reason(error)
            self.control("freeze", {}, 0, self.diverged)
        return self._refuse(id, "rejected", f"learning stopped: {reason(error)}", RESUME)

    def write(self) -> None:
        """Give everything to the transaction."""
        live, number = self.live, self.live.number
        if self.entries:
            sums = {account: live.sums[account] for account in self.changed}
            live.head = self.tx.append(number, self.head, self.entries, sums)
            if live.signed:
                live.hashes[live.head.seq] = live.head.hash
        if self.refused:
            self.tx.reject(number, self.refused)
            live.rejections.extend(self.refused)


def reason(error: Diverging) -> str:
    """What diverges, without what to do about it in Python."""
    return str(error).partition("; ")[0]


def undone(answers: list[Answer]) -> list[Answer]:
    """What became of the items of a call that asked for all or none."""
    return [answer if answer.status not in GOOD else not_done(answer.id) for answer in answers]
