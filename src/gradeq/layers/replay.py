"""Postings that are reversed, replaced or replayed from a journal, and the record of such revisions."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

from gradeq.certificates.certificate import Revision
from gradeq.engine.branches import CONTENT, PREVIEWED
from gradeq.engine.lateness import FOREIGN
from gradeq.engine.validation import check_entry, check_kind
from gradeq.errors import BadInput, LabelConflict, StateError, UnknownTicket
from gradeq.inputs.arguments import as_shown
from gradeq.ledger import facts as fact
from gradeq.ledger.values import Place, Posting, Row, Ticket
from gradeq.records import copy_with
from gradeq.rules.rule import learn, posting_of
from gradeq.tables import some

LOST = (
    "a backup was restored, or a copy of the layer served it. "
    "Post it to the layer that served it, or serve the row again"
)

if TYPE_CHECKING:
    from gradeq.layers.internals import Internals
    from gradeq.layers.layer import Layer
    from gradeq.layers.serialization import Saved


def repost(layer: Layer, posting: Posting, y: object) -> tuple[Posting, Posting]:
    """Replace the label of a posting: the old posting reversed (sign -1), and the new one with the old step."""
    parts = layer.internals
    state, rule = parts.state, parts.rule
    check_entry(rule, posting)
    reversal = copy_with(posting, sign=-posting.sign, late=(), slopes=())
    new = copy_with(posting_of(rule, posting, y, posting.eta, ()), sign=posting.sign, slopes=())
    if posting.sign != 0.0 and posting.weight > 0.0:

        def exchange(place: Place) -> None:
            learn(rule, state, place, reversal)
            state.clear_empty_accounts(place.params, rule.stride // rule.width)
            learn(rule, state, place, new)

        place = revise(parts, posting, exchange)
        state.facts[fact.CORRECTED] += 1.0
        parts.lateness.correct(state, place, new)
        parts.revisions.add(reversal, place, rule.width)
        parts.revisions.add(new, place, rule.width)
    return reversal, new


def withdraw(layer: Layer, posting: Posting) -> Posting:
    """Reverse a posting without a new label; returns the reversal (sign -1) for the journal."""
    check_entry(layer.internals.rule, posting)
    reversal = copy_with(posting, sign=-posting.sign, late=(), slopes=())
    revise(layer.internals, posting, lambda _: replay(layer, reversal))
    return reversal


def revise(parts: Internals, posting: Posting, change: Callable[[Place], None]) -> Place:
    """Change what was learned from a posting, undone if anything raises; returns the place of its row."""
    state = parts.state
    parts.names.knows(posting.row)
    place: Place = parts.names.place(posting.row)
    memory = state.remember(place.params if parts.rule.penalty is None else None, (place.key,))
    try:
        change(place)
        if state.lost(memory):
            raise BadInput(
                f"the label {posting.y!r} cannot be taken back: its loss is too large for a number; "
                "go back to the state saved before it"
            )
    except Exception:
        state.undo(memory)
        raise
    return place


def put_back(layer: Layer, posting: Posting, y: object) -> Posting:
    """Enter a label where one was withdrawn, with the step of that one; returns its posting for the journal."""
    new = copy_with(posting_of(layer.internals.rule, posting, y, posting.eta, ()), slopes=())
    replay(layer, new)
    return new


def relabel(layer: Layer, posting: Posting, y: object) -> Posting:
    """Replace the label of a posting, which a service may have withdrawn before (sign -1)."""
    return put_back(layer, posting, y) if posting.sign < 0.0 else repost(layer, posting, y)[1]


def replay(layer: Layer, entry: Ticket | Posting) -> None:
    """Repeat one entry of a journal, bit for bit."""
    parts = layer.internals
    state, rule = parts.state, parts.rule
    check_entry(rule, entry)
    parts.names.knows(entry.row)
    place = parts.enter(entry.row)
    if isinstance(entry, Ticket):
        served = (entry.served, entry.memo, entry.slopes)
        parts.issue(entry.row, place, entry.base, entry.given, lambda *_: served, relative=entry.weight)
        mark, branches = entry.branch, parts.tickets.branches
        if mark[:1] in (PREVIEWED, CONTENT):  # the branch of the state before this row
            branches.note(entry.number - 1, mark.removeprefix(PREVIEWED))
        else:
            branches.note(entry.number, mark)
        return
    if len(entry.late) not in (0, len(place.cells)):
        raise BadInput(FOREIGN)
    if entry.late:
        error = entry.errors[0] if rule.width == 1 else entry.errors[: rule.width]
        ticket = (*entry[:6], (), entry.memo, entry.slopes, entry.given)
        parts.post(ticket, place, entry.y, entry.late, (entry.late, entry.eta, entry.sign, entry.memo, error))
        parts.tickets.branches.note_label(entry.number, parts.tickets.branches.mark_of(entry.number))
        return
    # Between reversal and new posting the accounts hold one label less than the facts: enter the log first.
    state.catch_up()
    if entry.sign != 0.0 and entry.weight > 0.0:
        learn(rule, state, place, entry)
        if entry.sign < 0.0:
            state.clear_empty_accounts(place.params, rule.stride // rule.width)
        parts.revisions.add(entry, place, rule.width)
    state.facts[fact.CORRECTED] += float(entry.sign < 0.0 < entry.weight)
    parts.lateness.correct(state, place, entry)


def preview(layer: Layer, arguments: tuple[object, ...], options: dict[str, object]) -> Ticket:
    """Serve a row without counting it: its ticket; the layer does not change.

    The ticket's counts include this row; the layer counts it when ``adopt`` is called.
    """
    parts = layer.internals
    uncount = uncounter(parts)
    book, branches = parts.tickets, parts.tickets.branches
    book.branches = copy(branches)
    try:
        ticket: Ticket = layer.open(*arguments, **options)
    finally:
        book.branches = branches
    uncount(ticket.row)
    return copy_with(ticket, branch=mark_of_state(parts))


def uncounter(parts: Internals) -> Callable[[Row], None]:
    """Remember the counts; the function returned takes one row and its new names out of them."""
    state, names = parts.state, parts.names
    mark, known, resized = names.mark(), names.count + names.keys, state.raw_facts[fact.RESIZED]
    parts.lateness.before = None

    def uncount(row: Row) -> None:
        place = names.place(row)
        parts.lateness.unweigh(state)
        parts.lateness.unserve(state, place.cells)
        if parts.ticking:
            state.clock[place.clock] -= 1.0
        state.raw_facts[fact.RESIZED] = resized
        if names.count + names.keys > known:
            parts.forget(mark)

    return uncount


def mark_of_state(parts: Internals) -> str:
    """What distinguishes this state from others with as many rows: its branch, or a digest of its content."""
    branches, state = parts.tickets.branches, parts.state
    if branches.trusting:
        return ""
    mark: str = branches.mark_of(state.number)
    if mark:
        return mark if mark[0] == CONTENT else PREVIEWED + mark
    digest = blake2b(digest_size=8)
    for name, values in state.saved().items():
        digest.update(name.encode() + bytes(values))
    return CONTENT + digest.hexdigest()


def check_history(parts: Internals, ticket: Ticket, y: object) -> None:
    """Raise unless this state served the ticket: else the lateness of its label is unknown."""
    branches, served = parts.tickets.branches, parts.state.number
    if branches.trusting:
        return
    if ticket.number <= served and branches.knows(ticket.number, ticket.branch):
        if branches.has_label(ticket.number, ticket.branch):
            raise LabelConflict(
                "This ticket was posted before: its label is learned from once; repost(posting, label) replaces a "
                "label by another"
            )
        # Compare the ticket's step with the only one that this layer ever had. Only a row of weight 1 is sure to have
        # it: heavier rows may take smaller steps. After a merge it is unknown, as a partition may have had others.
        constant = parts.constant_step is not None and not parts.state.weighed and not parts.lateness.featured
        changed = branches.posted is None or any(what.startswith("step ") for what, _ in parts.log)
        if constant and not changed and ticket.weight == 1.0 and ticket.step != parts.constant_step:
            raise UnknownTicket(
                f"This ticket was served with another step ({ticket.step:g}; this layer has "
                f"{parts.constant_step:g} from the start): post it to the layer that served it"
            )
        return
    parts.rule.measure(ticket.served, ticket.base, y, ticket.memo)  # raises if the ticket is of another kind of layer
    if ticket.branch[:1] in (PREVIEWED, CONTENT):
        raise BadInput("this ticket was previewed, so its row is not counted yet; use adopt(ticket, y)")
    if ticket.number > served:
        raise UnknownTicket(
            f"This ticket was served by a later state of this layer (row {ticket.number:,}; this one has served "
            f"{served:,}): {LOST}"
        )
    raise UnknownTicket(f"This ticket was not served by this state of the layer: {LOST}")


def adopt_known(layer: Layer, ticket: Ticket, y: object) -> Posting:
    """``adopt`` for a ticket that an earlier state of this layer has previewed; any other is refused."""
    parts = layer.internals
    check_kind(ticket, Ticket)
    branches, before, served = parts.tickets.branches, ticket.number - 1, parts.state.number
    mark = ticket.branch
    if branches.trusting:
        return adopt(layer, ticket, y)
    if mark and mark[0] not in (PREVIEWED, CONTENT):
        raise BadInput("this ticket was opened, so its row is counted already; use post(ticket, y)")
    if before > served:
        raise UnknownTicket(
            f"This ticket was previewed from a later state of this layer ({before:,} rows served; this one has "
            f"served {served:,}): {LOST}"
        )
    known = branches.knows(before, mark.removeprefix(PREVIEWED))
    if not known and (before < served or mark != mark_of_state(parts)):
        raise UnknownTicket(f"This ticket was not previewed from a state of this layer: {LOST}")
    issued = list(branches.given)
    try:
        posting = adopt(layer, ticket, y)
    except Exception:
        branches.given = issued
        raise
    branches.give(parts.state.number)
    return posting


def adopt(layer: Layer, ticket: Ticket, y: object) -> Posting:
    """Count the row of a previewed ticket and learn from its label: in a journal, the ticket and then the posting.

    Rows without a label are never counted. The lateness of a label is the number of rows counted since the state that
    its row was served from, its own included: that is, the updates made after the row was served.
    """
    parts = layer.internals
    check_kind(ticket, Ticket)
    y = layer.validate_label(y)
    check_entry(parts.rule, ticket)
    parts.names.knows(ticket.row)
    uncount = uncounter(parts)
    replay(layer, ticket)
    try:
        return parts.post_ticket(ticket, y)
    except Exception:
        uncount(ticket.row)
        raise


REMEMBERED = 2_000  # revisions, two for each corrected label
OF_ANOTHER_LAYER = 1 << 62  # the number of a row that this layer never served: beyond every count of rows


@dataclass(eq=False)
class Revisions:
    """The last revisions of a layer, and how many there have been."""

    count: int = 0
    last: list[Revision] = field(default_factory=list)

    def add(self, posting: Posting, place: Place, width: int) -> None:
        """Remember a posting that changes an earlier label: its reversal, or the one put in its place."""
        if posting.sign == 0.0 or not posting.weight > 0.0:
            return
        row = (tuple(place.params), tuple(posting.row.values), tuple(posting.errors[:width]))
        self.count += 1
        self.last.append(Revision(posting.number, posting.sign, posting.weight, posting.eta, *row))
        del self.last[:-REMEMBERED]

    def merge(self, other: Revisions) -> None:
        self.count += other.count
        self.last = [*self.last, *(copy_with(revision, number=OF_ANOTHER_LAYER) for revision in other.last)][
            -REMEMBERED:
        ]

    def state(self) -> Saved:
        """Ready to be saved; nothing while nothing was revised."""
        return {"revisions": [self.count, [list(revision) for revision in self.last]]} if self.count else {}

    def restore(self, state: Saved, parameters: int, width: int) -> None:
        self.count, last = state.get("revisions", (0, []))
        self.last = [
            Revision(number, sign, weight, eta, tuple(params), tuple(values), tuple(errors))
            for number, sign, weight, eta, params, values, errors in last
        ]
        for row in self.last:
            known = all(type(j) is int and 0 <= j < parameters for j in row.params) and type(row.number) is int
            sized = len(row.params) == len(row.values) and len(row.errors) == width
            floats = (row.sign, row.weight, row.eta, *row.values, *row.errors)
            if not known or not sized or any(type(x) is not float or not math.isfinite(x) for x in floats):
                raise StateError("the state is damaged: a revision is not one of this layer")
        if type(self.count) is not int or not len(self.last) <= self.count:
            held, counted = len(self.last), as_shown(self.count)
            raise StateError(f"the state is damaged: it holds {held:,} revisions but counts {counted}")


def revised_past(layer: Layer, earlier: Layer) -> list[Revision]:
    """Revisions since ``earlier``, a state of this layer, of labels posted before it."""
    now, then = layer.internals, earlier.internals
    count = now.revisions.count - then.revisions.count
    since = now.revisions.last[-count:] if count > 0 else []
    corrected = now.state.facts[fact.CORRECTED] - then.state.facts[fact.CORRECTED]
    if len(since) < count or sum(revision.sign < 0.0 for revision in since) < corrected:
        changed = some(int(corrected), "label", "was", "were")
        raise BadInput(
            f"since: {changed} corrected in between, and only the last {REMEMBERED // 2:,} corrections "
            "are remembered (none from before this version); compare with a later state"
        )
    served, book = then.state.facts[fact.SERVED], then.tickets
    opened = {ticket.number for ticket, _, _ in book.tickets()}
    opened |= {label.ticket.number for label in book.waiting.values()}
    return [revision for revision in since if revision.number <= served and revision.number not in opened]
