"""One bucket of a stream: serve predictions, join labels by id, save the state as JSON.

A bucket stores open tickets as JSON fields and rebuilds a ticket only when its label arrives. A bucket with many open
tickets is therefore quick to read and write. This module does not depend on Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gradeq.engine.tickets import Id, as_ticket, id_of
from gradeq.errors import BadInput, StateError
from gradeq.inputs.arguments import name_of
from gradeq.inputs.column_types import Forecast
from gradeq.layers import serialization
from gradeq.layers.key_table import Key, key_table
from gradeq.spark.roles import KeyedLayer
from gradeq.tables import agreeing, some

if TYPE_CHECKING:
    from gradeq.ledger.values import Ticket


Plain = float | list[float]  # a number, or one for each level
Fields = list[Any]  # a ticket as JSON values
REMEMBER = 1_000  # closed ids, and as many expired ids, per bucket
PREDICTION, LABEL, EXPIRY = "prediction", "label", "expiry"


class BucketEvent(NamedTuple):
    """A prediction, a label, or both, from a row of the stream; absent fields are None.

    ``place`` orders events within a micro-batch; ``time`` is that of the event or of the micro-batch.
    """

    place: tuple[object, ...]
    key: Key
    id: object
    prediction: Forecast | None = None
    label: object = None
    groups: dict[str, object] | None = None
    features: dict[str, float] | None = None
    weight: float | None = None
    time: float | None = None


class EventOutcome(NamedTuple):
    """The outcome of an event: the served value of a prediction, or why it was refused."""

    event: BucketEvent
    what: str
    outcome: str
    served: tuple[float, ...] | None = None
    reason: str | None = None


class OpenTicket(NamedTuple):
    """A ticket that waits for its label."""

    fields: Fields
    served: Plain
    time: float | None

    @property
    def base(self) -> Plain:
        return cast(Plain, self.fields[2])

    @property
    def key(self) -> str:
        return str(self.fields[1][2])


class ClosedTicket(NamedTuple):
    """The record of a closed id; the label is None if the ticket expired."""

    label: float | None
    base: Plain
    served: Plain


class Bucket:
    """A layer for the keys of one bucket, with its open tickets by id and the latest closed and expired ids."""

    def __init__(self, layer: KeyedLayer, remember: int = REMEMBER) -> None:
        self.layer, self.remember = layer, remember
        self.opened: dict[Id, OpenTicket] = {}
        self.closed: dict[Id, ClosedTicket] = {}
        self.lapsed: dict[Id, ClosedTicket] = {}
        layer.internals.tickets.branches.trusting = True  # the bucket stores its tickets
        self.ttl: float | None = layer.internals.tickets.ttl
        self.now: float | None = None
        self.touched: set[str] = set()

    def handle(self, events: Iterable[BucketEvent]) -> Iterator[EventOutcome]:
        """Handle the events of a micro-batch in order, then expire old tickets.

        Ties are ordered deterministically: predictions before labels, then by id and value.
        """
        for event in sorted(events, key=_event_order):
            now = event.time
            if now is not None and (self.now is None or now > self.now):
                self.now = now
            if event.prediction is None and event.label is None:
                yield EventOutcome(event, "", "rejected", reason="neither a prediction nor a label")
            if event.prediction is not None:
                yield self._handle_one(event, PREDICTION)
            if event.label is not None:
                yield self._handle_one(event, LABEL)
        if self.now is not None:
            yield from self.expire(self.now)

    def _handle_one(self, event: BucketEvent, what: str) -> EventOutcome:
        try:
            if event.id is None:
                raise BadInput("it has no id; give every prediction and every label an id")
            if event.time is None or None in event.place:
                raise BadInput("it has no place in the order; fill in its time and order")
            if what == PREDICTION and event.prediction is not None:
                return self._predict(event, id_of(event.id), event.prediction, event.time)
            return self._learn(event, id_of(event.id), event.time)
        except BadInput as refusal:
            return EventOutcome(event, what, "rejected", reason=str(refusal))

    def _predict(self, event: BucketEvent, id: Id, prediction: Forecast, time: float) -> EventOutcome:
        known = self.opened.get(id) or self.closed.get(id) or self.lapsed.get(id)
        if known is not None:
            served = _as_tuple(known.served)
            if known.base != _plain(self.layer.layer.validate_prediction(prediction)):
                reason = f"id {id!r} was served for the prediction {known.base!r}"
                return EventOutcome(event, PREDICTION, "conflict", served, reason)
            expired = id in self.lapsed and id not in self.opened and id not in self.closed
            return EventOutcome(event, PREDICTION, "expired" if expired else "duplicate", served)
        weight = 1.0 if event.weight is None else event.weight
        ticket = self.layer.open(
            prediction, key=event.key, groups=event.groups, features=event.features, weight=weight
        )
        self.opened[id] = OpenTicket(_fields(ticket), _plain(self.layer.value_of(ticket)), time)
        self.touched.add(str(ticket.row.key))
        return EventOutcome(event, PREDICTION, "served", _as_tuple(self.opened[id].served))

    def _learn(self, event: BucketEvent, id: Id, now: float) -> EventOutcome:
        y = self.layer.validate_label(event.label)
        if id in self.closed:
            known = self.closed[id].label
            if known == y:
                return EventOutcome(event, LABEL, "duplicate")
            reason = f"id {id!r} already has the label {known!r}, not {y!r}"
            return EventOutcome(event, LABEL, "conflict", reason=reason)
        if id not in self.opened:
            return EventOutcome(event, LABEL, "expired" if id in self.lapsed else "unknown")
        ticket = self.opened[id]
        if name_of(event.key) != ticket.key:
            reason = f"id {id!r} was served for the key {ticket.key!r}"
            return EventOutcome(event, LABEL, "conflict", reason=reason)
        if self._outlived(ticket, now):
            self._lapse(id)
            return EventOutcome(event, LABEL, "expired")
        del self.opened[id]
        self.layer.post(as_ticket(ticket.fields), y)
        self.note(self.closed, id, ClosedTicket(y, ticket.base, ticket.served))
        self.touched.add(ticket.key)
        return EventOutcome(event, LABEL, "applied")

    def _outlived(self, ticket: OpenTicket, now: float) -> bool:
        return self.ttl is not None and ticket.time is not None and now - ticket.time > self.ttl

    def _lapse(self, id: Id) -> None:
        ticket = self.opened.pop(id)
        self.note(self.lapsed, id, ClosedTicket(None, ticket.base, ticket.served))

    def note(self, known: dict[Id, ClosedTicket], id: Id, ticket: ClosedTicket) -> None:
        """Remember a closed or expired ticket, and forget the oldest beyond the limit."""
        known[id] = ticket
        while len(known) > self.remember:
            del known[next(iter(known))]

    def expire(self, now: float | None) -> list[EventOutcome]:
        """Expire the tickets that are older than the time to live; their labels will be refused."""
        outcomes = []
        for id, ticket in list(self.opened.items()):
            if now is not None and self._outlived(ticket, now):
                self._lapse(id)
                event = BucketEvent((), ticket.key, id, time=ticket.time)
                outcomes.append(EventOutcome(event, EXPIRY, "expired", _as_tuple(ticket.served)))
        return outcomes

    @property
    def next_expiry(self) -> float | None:
        oldest = min((ticket.time for ticket in self.opened.values() if ticket.time is not None), default=None)
        return None if oldest is None or self.ttl is None else oldest + self.ttl

    def certificates(self) -> Iterator[tuple[str, dict[str, float]]]:
        """The rows of the key table that this micro-batch changed."""
        if not self.touched:
            return
        names = self.layer.internals.names
        rows = codes = sorted(names.code(key) for key in self.touched)
        if not names.roster.scalar:
            rows = [row for row, (key, _) in enumerate(names.split()) if key in set(codes)]
        columns = {name: list(column) for name, column in key_table(self.layer).columns().items()}
        keys = columns.pop("key")
        for row in rows:
            cells = {name: column[row] for name, column in columns.items()}
            yield str(keys[row]), {n: v.item() if hasattr(v, "item") else v for n, v in cells.items()}

    def dump(self) -> tuple[str, str]:
        """The layer and the ticket book, one line of JSON each, versioned and with checksums."""
        state = {
            "closed": [[id, *ticket] for id, ticket in self.closed.items()],
            "lapsed": [[id, ticket.base, ticket.served] for id, ticket in self.lapsed.items()],
            "now": self.now,
            "opened": [[id, *ticket] for id, ticket in self.opened.items()],
        }
        return self.layer.to_json(), "".join(serialization.dump("book", {}, state))

    def restore(self, text: str) -> None:
        kind, _, state = serialization.load(text)
        if kind != "book":
            raise StateError(f"a ticket book is needed, not the state of a {kind} layer; give the state of a stream")
        try:
            self.opened = {id: OpenTicket(*ticket) for id, *ticket in state["opened"]}
            self.closed = {id: ClosedTicket(*ticket) for id, *ticket in state["closed"]}
            self.lapsed = {id: ClosedTicket(None, *ticket) for id, *ticket in state["lapsed"]}
            self.now = state["now"]
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the state is damaged: {error}") from None


def restore_bucket(layer: KeyedLayer, book: str | None = None, remember: int = REMEMBER) -> Bucket:
    """A bucket from a layer and its tickets; ``book`` is the ticket book if a stream saved one."""
    tickets = layer.internals.tickets
    waiting = len(tickets.waiting)
    if waiting:
        raise StateError(
            f"the state holds {some(waiting, 'label')} that {agreeing(waiting, 'was', 'were')} not due yet; "
            "process the table they came with until all of them are due"
        )
    bucket = Bucket(layer, remember)
    for id, posting in tickets.closed.items():
        closed = ClosedTicket(posting.y, _plain(posting.base), _plain(posting.served))
        bucket.note(bucket.closed, id, closed)
    for ticket, number, time in list(tickets.tickets()):
        if number is not None:
            bucket.opened[number] = OpenTicket(_fields(ticket), _plain(layer.value_of(ticket)), time)
        tickets.withdraw(ticket.number)
    tickets.closed.clear()
    bucket.now = tickets.now
    if book is not None:
        bucket.restore(book)
    return bucket


def _event_order(event: BucketEvent) -> tuple[Any, ...]:
    unplaced, unnamed = event.time is None or None in event.place, event.id is None
    values = repr((event.prediction, event.label))
    is_label = event.prediction is None
    return (unplaced, () if unplaced else event.place, is_label, unnamed, () if unnamed else event.id, values)


def _fields(ticket: Ticket) -> Fields:
    """The ticket as JSON fields, equal for a new ticket and one read back."""
    number, row, *rest = ticket[:-1]  # without its branch: the bucket itself holds the ticket
    return [number, [_plain(part) for part in row], *(_plain(part) for part in rest)]


def _plain(value: Any) -> Any:
    return [_plain(part) for part in value] if isinstance(value, (tuple, list)) else value


def _as_tuple(served: Plain) -> tuple[float, ...]:
    return tuple(served) if isinstance(served, list) else (served,)
