"""The ticket book: which predictions wait for a label, by id and by age, and which ids are closed.

This is the book of one process, kept in memory and saved with the layer. Whoever keeps tickets elsewhere uses the
layer's verbs ``open`` and ``post`` and needs none.
"""

from __future__ import annotations

import math
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy, deepcopy
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from gradeq.engine.branches import Branches
from gradeq.engine.label_stats import HELD, EarlyLabels
from gradeq.errors import BadInput, ExpiredTicket, LabelConflict, ReplacedPrediction, StateError, UnknownTicket
from gradeq.inputs.arguments import as_shown
from gradeq.inputs.durations import DATES, comparable, format_span, needs_dates, remedy
from gradeq.ledger.values import Place, Posting, Row, Ticket, brief, checked_fields, new
from gradeq.records import copy_with
from gradeq.tables import some

Id = str | int
LARGEST_ID = 10**4000  # Python writes no longer numbers


class WaitingLabel(NamedTuple):
    """A ticket of a run whose label is known but not yet due."""

    ticket: Ticket
    y: float
    due: float
    time: float
    id: Id | None = None


# Those of a ticket, made into one when somebody looks at it; counts may still be floats.
Fields = tuple[Any, ...]
# A ticket in the book, where its row belongs (if that is known), and the id and the time it was served under.
Opened = tuple[Fields, Place | None, Id | None, float | None]


class TicketBook:
    """Open tickets by number and by id, the last ``remember`` closed and expired ids.

    Tickets without an id: ``queue`` keeps them all, first in, first out. Else a single prediction (of each key)
    replaces the one before it, and only those of a batch (``predict_many``) queue.
    """

    __slots__ = (
        "branches", "by_id", "by_key", "clock", "closed", "desk", "due", "early", "forgotten", "lapsed", "maturity",
        "missing_is", "newest", "now", "oldest", "oldest_without_id", "opened", "queue", "remember",
        "replaced", "singles", "timed", "ttl", "waiting", "waiting_ids",
    )  # fmt: skip

    def __init__(self, ttl: float | None, remember: int = 10_000, *, queue: bool = False) -> None:
        if ttl is not None and not ttl > 0:
            raise BadInput(f"ttl={ttl}: a ticket's time to live must be positive")
        self.ttl, self.remember, self.queue = ttl, remember, queue
        # How old a row must be before its label is learned (0: as it comes), and what a label that has not come
        # by then counts as.
        self.maturity: float | None = None
        self.missing_is: Any = None
        self.branches = Branches()  # the tickets that were given away
        # Whether the delay of labels depends on their value; None where nobody looks.
        self.early: EarlyLabels | None = None
        self.opened: dict[int, Opened] = {}  # by number
        # No number of an open ticket that queues is smaller, nor of one without an id.
        self.oldest = self.oldest_without_id = 1
        self.newest = 0  # the largest number that was ever open
        # By key (None without keys): the number of its single ticket without an id, open or not; those replaced.
        self.singles: dict[str | None, int] = {}
        self.replaced: dict[str | None, int] = {}
        self.by_id: dict[Id, int] = {}
        # The numbers of each key's open tickets, from the first time that a key is asked for.
        self.by_key: dict[str, OrderedDict[int, None]] | None = None
        # A heap of when tickets were served; some are closed by now.
        self.timed: list[tuple[float, int]] = []
        self.closed: OrderedDict[Id, Posting] = OrderedDict()  # most of them not judged yet
        self.lapsed: OrderedDict[Id, None] = OrderedDict()
        # Labels of earlier runs that are known but not yet due, by the number of their ticket, oldest first.
        self.waiting: dict[int, WaitingLabel] = {}
        self.waiting_ids: dict[Id, int] = {}  # the numbers of those of them that have an id
        # A heap of when a run has to look at each of them; some are gone or due at another time by now.
        self.due: list[tuple[float, int]] = []
        self.forgotten = 0  # ids that were closed or expired and are no longer remembered
        self.now: float | None = None
        self.desk: dict[str, Any] = {}  # what is noted from run to run
        self.clock: str | None = None  # the kind of the times that are being looked at

    def blank(self) -> TicketBook:
        """An empty book with the same settings."""
        made = TicketBook(self.ttl, self.remember, queue=self.queue)
        made.maturity, made.missing_is = self.maturity, self.missing_is
        if self.clock_before == DATES:
            made.take_dates()
        made.branches.trusting = self.branches.trusting
        made.early = None if self.early is None else EarlyLabels(self.early.means)
        return made

    def __len__(self) -> int:
        return len(self.opened) + len(self.waiting)

    def __deepcopy__(self, memo: dict[int, object]) -> TicketBook:
        """An independent book; tickets and postings never change, so both may hold them."""
        twin = TicketBook(self.ttl, self.remember, queue=self.queue)
        for name in self.__slots__:
            setattr(twin, name, copy(getattr(self, name)))
        twin.by_key, twin.desk = None, deepcopy(self.desk, memo)
        return twin

    def check_new(self, id: object) -> Id | None:
        """An id as it is kept; one that was served before is refused."""
        if id is None:
            return None
        own: Id = id if type(id) is str else id_of(id)
        if self.knows(own):
            raise BadInput(f"id {own!r} was already served; every prediction needs its own id")
        return own

    def knows(self, id: Id) -> bool:
        """Whether this id is open, closed or expired, as far as is remembered."""
        return id in self.by_id or id in self.closed or id in self.lapsed or id in self.waiting_ids

    def tickets(self, latest: bool = False) -> Iterator[tuple[Ticket, Id | None, float | None]]:
        """The open tickets with id and time, the oldest first, or the latest."""
        each = self.opened.values()
        for fields, _, id, time in reversed(each) if latest else each:
            yield ticket_of(fields), id, time

    def put(
        self, ticket: Fields, id: Id | None = None, time: float | None = None, place: Place | None = None
    ) -> None:
        """Keep a ticket that was just opened."""
        number = ticket[0]
        if not self.opened:
            self.oldest = self.oldest_without_id = number
        self.newest = max(self.newest, number)
        self.opened[number] = (ticket, place, id, time)
        if id is None and time is None and self.by_key is None:
            return
        if id is not None:
            self.by_id[id] = number
        if self.by_key is not None:
            self._enter(ticket)
        if time is not None and (self.ttl is not None or self.missing_is is not None):
            if len(self.timed) > 64 + 2 * len(self.opened):
                self.timed = [entry for entry in self.timed if entry[1] in self.opened]
                heapify(self.timed)
            heappush(self.timed, (time, number))

    def single(self, key: str | None) -> int | None:
        """The number of the open single ticket without an id (of this key)."""
        number = self.singles.get(key)
        return number if number in self.opened else None

    def replace(self, ticket: Fields, time: float | None, place: Place | None) -> None:
        """Keep a ticket without an id, in the place of the single one that waits (of the same key)."""
        key = ticket[1].key
        if self.singles:
            self.replace_single(key)
        self.singles[key] = ticket[0]
        self.put(ticket, None, time, place)

    def replace_single(self, key: str | None) -> None:
        """Drop the single ticket without an id (of this key) and count it, if there is one."""
        number = self.single(key)
        if number is not None:
            del self.singles[key]
            self.withdraw(number)
            self.replaced[key] = self.replaced.get(key, 0) + 1

    def _enter(self, ticket: Fields) -> None:
        number, row = ticket[:2]
        if self.by_key is not None and row.key is not None:
            self.by_key.setdefault(row.key, OrderedDict())[number] = None

    def find(self, id: Id | None = None, key: str | None = None, batch: bool = False) -> Opened:
        """The open ticket of this id, or the one without an id that a label now belongs to; it stays open.

        Without an id: the single one (of this key), else the oldest of a batch, else the only one with an id. With
        ``batch`` the single one comes last, and with ``queue`` the oldest of all is taken.
        """
        if id is not None:
            return self._of_id(id)
        number = None if batch else self.single(key)
        if number is not None:
            return self.opened[number]
        if self.queue:
            return self._oldest(key, every=True)
        if batch:
            with suppress(UnknownTicket):
                return self._oldest(key, every=True)
            return self._single(key)
        with suppress(UnknownTicket):
            return self._single(key)
        with suppress(UnknownTicket):
            return self._oldest(key, every=False)
        found = self._oldest(key, every=True)
        waiting = len(self.by_id if key is None or self.by_key is None else self.by_key[key])
        if waiting > 1:
            of = "" if key is None else f" of key {key!r}"
            raise UnknownTicket(
                f"{waiting:,} predictions{of} wait for a label, all with ids, so nobody knows whose label this is; "
                "say it: update(y, id=...), or make the layer with queue=True if labels come in the order of "
                "predictions"
            )
        return found

    def _of_id(self, id: Id) -> Opened:
        number = self.by_id.get(id)
        if number is not None:
            return self.opened[number]
        if id in self.lapsed:
            why = "was skipped" if self.ttl is None else f"has expired (ttl {format_span(self.ttl)})"
            raise ExpiredTicket(f"id {id!r} {why}; its label is not used")
        if self.forgotten:
            raise UnknownTicket(
                f"id {id!r} is not known: it was never served here, or it was forgotten "
                f"({some(self.forgotten, 'id', 'was', 'were')}; the last {self.remember:,} closed are kept)"
            )
        raise UnknownTicket(f"id {id!r} was never served here; predict with this id first")

    def _single(self, key: str | None) -> Opened:
        """The single ticket without an id of this key; without a key, the only one."""
        if self.single(key) is not None:
            return self.opened[self.singles[key]]
        if key is None and self.singles:
            waiting = []
            for own in list(self.singles):
                if self.single(own) is None:
                    del self.singles[own]
                    continue
                waiting.append(own)
                if len(waiting) == 2:
                    raise BadInput(
                        f"keys {waiting[0]!r} and {waiting[1]!r} both wait for a label; "
                        "say whose it is: update(y, key=...)"
                    )
            if waiting:
                return self.opened[self.singles[waiting[0]]]
        raise UnknownTicket(waits_for_none(key))

    def _oldest(self, key: str | None, every: bool) -> Opened:
        """The oldest ticket (of this key) that queues; ``every``: with or without an id."""
        if key is not None:
            if self.by_key is None:
                self.by_key = {}
                for ticket, _, _, _ in self.opened.values():
                    self._enter(ticket)
            for number in self.by_key.get(key, ()):
                if self._queues(number, every):
                    return self.opened[number]
            raise UnknownTicket(waits_for_none(key))
        first = self.oldest if every else self.oldest_without_id
        last = self.newest if self.opened else 0
        while first <= last and not self._queues(first, every):
            first += 1
        if every:
            self.oldest = first
        else:
            self.oldest_without_id = first
        if first > last:
            raise UnknownTicket(waits_for_none(None))
        return self.opened[first]

    def _queues(self, number: int, every: bool) -> bool:
        opened = self.opened.get(number)
        if opened is None or self.singles.get(opened[0][1].key) == number:
            return False
        return every or opened[2] is None

    def close(self, ticket: Fields, id: Id | None, posting: Fields) -> None:
        """The label of a ticket came, which is taken out of ``opened``: its id is remembered with the posting."""
        if id is not None:
            del self.by_id[id]
            self.shut(id, new(Posting, posting))
        elif self.singles and self.singles.get(ticket[1][2]) == ticket[0]:
            del self.singles[ticket[1][2]]
        if self.by_key is not None:
            self._unlist(ticket, None)

    def withdraw(self, number: int) -> Opened:
        """Take out the open ticket of this number, as if it had never been here."""
        opened = self.opened.pop(number)
        self._unlist(opened[0], opened[2])
        return opened

    def shut(self, id: Id, posting: Posting) -> None:
        """Remember what the label of this id added."""
        closed = self.closed
        closed[id] = copy_with(posting, slopes=()) if posting[12] else posting
        if len(closed) > self.remember:
            closed.popitem(last=False)
            self.forgotten += 1

    def known_label(self, id: Id) -> Any:
        """The label of an id that has one, posted or waiting; ``LabelConflict`` if a service has taken it back."""
        if id in self.waiting_ids:
            return self.waiting[self.waiting_ids[id]].y
        if self.closed[id].sign < 0.0:
            raise LabelConflict(f"the label of id {id!r} was taken back; use correct(id, label) to enter another")
        return self.closed[id].y

    def lapse(self, id: Id) -> None:
        """Remember that the ticket of this id has expired."""
        self.lapsed[id] = None
        if len(self.lapsed) > self.remember:
            self.lapsed.popitem(last=False)
            self.forgotten += 1

    def wait(self, opened: Opened, y: Any, due: float) -> None:
        """Keep the label of an open ticket until it is due."""
        fields, _, id, time = opened
        del self.opened[fields[0]]
        if self.singles.get(fields[1].key) == fields[0]:
            del self.singles[fields[1].key]
        self._unlist(fields, id)
        self.hold([WaitingLabel(ticket_of(fields), y, due, due if time is None else time, id)])

    def count_missing(self, now: float) -> list[WaitingLabel]:
        """Rows that are mature without a label wait as ``missing_is``, due when they became mature."""
        found: list[WaitingLabel] = []
        if self.missing_is is None or self.maturity is None:
            return found
        while self.timed and just_after(self.timed[0][0] + self.maturity) <= now:
            opened = self.opened.get(heappop(self.timed)[1])
            if opened is not None and opened[3] is not None:
                self.wait(opened, self.missing_is, just_after(opened[3] + self.maturity))
                found.append(self.waiting[opened[0][0]])
        return found

    def reopen(self, waiting: Iterable[WaitingLabel]) -> None:
        """Let rows wait for their label again that a run had counted as missing, since the run was refused."""
        for own in waiting:
            self.release(own.ticket.number)
            self.put(own.ticket, own.id, own.time)
            self.oldest = min(self.oldest, own.ticket.number)
        self.opened = dict(sorted(self.opened.items()))

    def is_held_back(self, number: int) -> bool:
        """Whether the label of this row is held back because its delay seems to depend on its value."""
        own = self.waiting.get(number)
        return own is not None and own.due == HELD

    @property
    def held_back(self) -> list[int]:
        return [number for number in sorted(self.waiting) if self.is_held_back(number)]

    def due_by(self, until: float) -> list[WaitingLabel]:
        """The waiting labels that are due, or whose tickets expire, by this time, oldest ticket first.

        Perhaps a few more; what none of this is true for is not looked at.
        """
        found, at, until = set(), [0], float(until)
        while at:  # no entry of a heap is smaller than the one above it
            k = at.pop()
            if k < len(self.due) and self.due[k][0] <= until:
                found.add(self.due[k][1])
                at += (2 * k + 1, 2 * k + 2)
        return [self.waiting[number] for number in sorted(found & self.waiting.keys())]

    def hold(self, waiting: Iterable[WaitingLabel], instead: Iterable[WaitingLabel] = ()) -> None:
        """Keep these labels until they are due; they replace those of ``instead``."""
        kept = {own.ticket.number: own for own in waiting}
        for old in instead:
            if old.ticket.number not in kept:
                self.release(old.ticket.number)
        while self.due and self.due[0][1] not in self.waiting:
            heappop(self.due)
        for number, own in kept.items():
            self.waiting[number] = own
            if own.id is not None:
                self.waiting_ids[own.id] = number
            heappush(self.due, (self._moment(own), number))
        if len(self.due) > 64 + 2 * len(self.waiting):
            self.due = [(self._moment(own), number) for number, own in self.waiting.items()]
            heapify(self.due)

    def _moment(self, own: WaitingLabel) -> float:
        return float(own.due if self.ttl is None else min(own.due, own.time + self.ttl))

    def release(self, number: int) -> None:
        self.waiting_ids.pop(self.waiting.pop(number).id, None)  # type: ignore[arg-type]

    def give_up(self, id: Id, now: float) -> None:
        """Let the ticket of this id expire if it is older than the time to live."""
        time = self.opened[self.by_id[id]][3] if id in self.by_id else None
        if time is not None and self.ttl is not None and now - time > self.ttl:
            self._unlist(self.opened.pop(self.by_id[id])[0], id)
            self.lapse(id)

    def drop(self, id: Id) -> None:
        """Forget an id, whatever became of it: an open ticket goes, and so does a label that is not due."""
        known = self.knows(id)
        if id in self.by_id:
            self._unlist(self.opened.pop(self.by_id[id])[0], id)
        if id in self.waiting_ids:
            self.release(self.waiting_ids[id])
        self.closed.pop(id, None)
        self.lapsed.pop(id, None)
        self.forgotten += known

    def check_clock(self, kind: str | None, what: str) -> None:
        """Refuse times that cannot be compared with those before; the kind is noted with the next row."""
        before = self.clock_before
        if not comparable(before, kind):
            spans = {"ttl": self.ttl, "maturity": self.maturity}
            if before == DATES and any(spans.values()):
                raise BadInput(f"{what}: {needs_dates(spans, kind)}")
            raise BadInput(
                f"{what} holds {kind}, and times of this layer were {before} so far; {remedy(before, kind)}"
            )
        self.clock = kind

    @property
    def clock_before(self) -> str | None:
        """The kind of the times of this layer so far, if any are known."""
        times = self.desk.get("times")
        return times.get("kind") if isinstance(times, dict) else None

    def take_dates(self) -> None:
        self.desk["times"] = {"kind": DATES}

    def note_clock(self) -> None:
        if self.clock is not None:
            self.desk["times"] = {**self.desk.get("times", {}), "kind": self.clock}
            self.clock = None

    def expire(self, now: float) -> list[Opened]:
        """Drop the tickets that are older than the time to live; a label for them is refused from now on."""
        self.note_clock()
        if self.now is None or now > self.now:
            self.now = now
        if self.ttl is None:
            return []
        dropped = []
        while self.timed and now - self.timed[0][0] > self.ttl:
            opened = self.opened.pop(heappop(self.timed)[1], None)
            if opened is not None:
                self._unlist(opened[0], opened[2])
                dropped.append(opened)
        for _, _, id, _ in dropped:
            if id is not None:
                self.lapse(id)
        return dropped

    def _unlist(self, ticket: Fields, id: Id | None) -> None:
        if id is not None:
            del self.by_id[id]
        if self.by_key is None:
            return
        number, row = ticket[:2]
        if row.key is not None:
            own = self.by_key[row.key]
            del own[number]
            if not own:
                del self.by_key[row.key]

    def rename(self, row: Callable[[Row], Row]) -> None:
        """Change the rows of all tickets and postings."""
        for number, (fields, _, id, time) in self.opened.items():
            self.opened[number] = ((number, row(fields[1]), *fields[2:]), None, id, time)
        for number, held in self.waiting.items():
            ticket = copy_with(held.ticket, row=row(held.ticket.row))
            self.waiting[number] = copy_with(held, ticket=ticket)
        for own, posting in self.closed.items():
            self.closed[own] = copy_with(posting, row=row(posting.row))

    def state(self) -> dict[str, Any]:
        """Everything, ready for the codec."""
        waiting = [self.waiting[number] for number in sorted(self.waiting)]
        return {
            "open": [(brief(ticket), id, time) for ticket, id, time in self.tickets()],
            "closed": [[id, brief(posting)] for id, posting in self.closed.items()],
            "lapsed": list(self.lapsed),
            "waiting": [(brief(own.ticket), *(own[1:] if own.id is not None else own[1:4])) for own in waiting],
            "now": self.now,
            **self._singles_state(),
            **self.branches.state(),
            **({"forgotten": self.forgotten} if self.forgotten else {}),
            **({"desk": self.desk} if self.desk else {}),
            **({"early": self.early.state()} if self.early is not None and self.early.sums[0] else {}),
        }

    def _singles_state(self) -> dict[str, Any]:
        queued = len(self.opened) > len(self.by_id) and not self.queue  # some have no id
        singles = [number for number in self.singles.values() if number in self.opened]
        replaced = [[key, count] for key, count in self.replaced.items()]
        return {**({"singles": singles} if queued else {}), **({"replaced": replaced} if replaced else {})}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved book."""
        fresh = self.blank()
        fresh.closed = OrderedDict((id, as_posting(entry)) for id, entry in state["closed"])
        fresh.lapsed = OrderedDict.fromkeys(state["lapsed"])
        for entry, id, time in state["open"]:
            fresh.check_new(id)
            fresh.put(as_ticket(entry), id, time)
        fresh.oldest = fresh.oldest_without_id = min(fresh.opened, default=1)
        fresh.hold([WaitingLabel(as_ticket(entry), *own) for entry, *own in state["waiting"]])
        named = sum(own.id is not None for own in fresh.waiting.values())
        counts = (len(fresh.opened), len(fresh.closed), len(fresh.waiting), len(fresh.waiting_ids))
        if counts != (*(len(state[name]) for name in ("open", "closed", "waiting")), named):
            raise StateError("the state is damaged: a ticket or an id stands twice")
        fresh.forgotten = state.get("forgotten", 0)
        fresh.replaced = dict(state.get("replaced", ()))
        for number in state.get("singles", ()):
            fields, _, id, _ = fresh.opened[number]
            if id is not None or fields[1].key in fresh.singles or self.queue:
                raise StateError("the state is damaged: a key has two single tickets")
            fresh.singles[fields[1].key] = number
        if self.early is not None and "early" in state:
            fresh.early = EarlyLabels.restored(state["early"], self.early.means)
        for name in self.__slots__:
            if name not in ("ttl", "remember", "maturity", "missing_is", "queue"):
                setattr(self, name, getattr(fresh, name))
        self.now, self.desk = state["now"], dict(state.get("desk", {}))


def just_after(time: float) -> float:
    return math.nextafter(time, math.inf)


def waits_for_none(key: str | None) -> str:
    """That no label is waited for."""
    what = "prediction" if key is None else f"prediction of key {key!r}"
    return f"no {what} waits for a label; call predict first"


def warn_replaced(key: str | None) -> None:
    """Say, once for each layer, that predictions without ids replace each other, and what to do."""
    of = "" if key is None else f" of key {key!r}"
    warnings.warn(
        f"a second predict{of} without an id came before the label of the first, which it replaces: its label is "
        "no longer waited for (said once). Give ids, call layer.skip() where no label will come, look with "
        "layer.peek(...), or make the layer with queue=True if labels come in the order of predictions",
        ReplacedPrediction,
        stacklevel=4,
    )


def id_of(id: object) -> Id:
    """An id as it is kept, numpy's as Python's own.

    What a saved state would not give back as it was, or equals another (1 == 1.0 == True), is refused.
    """
    if isinstance(id, str):
        return str(id)
    if isinstance(id, np.integer) and not isinstance(id, np.timedelta64):
        return int(id)
    if type(id) is int and -LARGEST_ID < id < LARGEST_ID:
        return id
    raise BadInput(f"id {as_shown(id)} is neither text nor a whole number; give one of these")


def ticket_of(fields: Fields) -> Ticket:
    """The ticket of these fields; those of one in the book end with the weight that was given."""
    counts = tuple(map(int, fields[6]))
    own = (*fields[:6], counts, *fields[7:10], "")
    ticket: Ticket = new(Ticket, own)
    return ticket


def as_ticket(entry: Sequence[object]) -> Ticket:
    return Ticket(*checked_fields(Ticket, entry))


def as_posting(entry: Sequence[object]) -> Posting:
    return Posting(*checked_fields(Posting, entry))
