"""The events of one bucket of a stream: predictions served, labels joined to them by id, all of it kept as JSON.

The layer is the library's; its tickets are kept here, by ``open`` and ``post``, as they are written: only the ticket
of a label that comes is made anew, so that a bucket with many open ones is read and written quickly. Nothing here
knows Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gradeq import codec
from gradeq.engine.tickets import as_ticket, id_of
from gradeq.errors import BadInput, StateError
from gradeq.layers.keytable import key_table
from gradeq.naming import name_of

REMEMBER = 1_000  # closed and expired ids for each bucket
PREDICTION, LABEL, EXPIRY = "prediction", "label", "expiry"


class Event(NamedTuple):
    """A prediction, a label, or both at once, as a row of the stream has it; None is what it has not.

    ``place``: its order inside a micro-batch; ``time``: of the event, or of the micro-batch.
    """

    place: tuple[Any, ...]
    key: Any
    id: Any
    prediction: Any
    label: Any
    groups: dict[str, Any] | None
    features: dict[str, Any] | None
    weight: Any
    time: Any


class Outcome(NamedTuple):
    """What became of an event: ``served`` is what was served for a prediction, ``reason`` why it was refused."""

    event: Event
    what: str
    outcome: str
    served: tuple[float, ...] | None = None
    reason: str | None = None


class Desk:
    """A layer of the keys of one bucket, its open tickets by id, and the last ids that were closed or have expired.

    ``opened``: id to (fields of the ticket, what was shown, time); ``closed``: id to (label, prediction, what was
    shown); ``lapsed``: id to (prediction, what was shown).
    """

    def __init__(self, layer: Any, remember: int = REMEMBER) -> None:
        self.layer, self.remember = layer, remember
        self.opened: dict[Any, Any] = {}
        self.closed: dict[Any, Any] = {}
        self.lapsed: dict[Any, Any] = {}
        layer._book.branches.trusting = True  # its tickets are kept beside it
        self.now: float | None = None
        self.touched: set[str] = set()

    @property
    def ttl(self) -> float | None:
        """The time to live of a ticket: the layer's own."""
        own: float | None = self.layer._book.ttl
        return own

    def handle(self, events: Iterable[Event]) -> Iterator[Outcome]:
        """All events of a micro-batch in their order; tickets that are too old by then expire at the end.

        Ties: predictions before labels, then by id and value, so that nothing is left to chance.
        """
        for event in sorted(events, key=_place):
            now = event.time
            if now is not None and (self.now is None or now > self.now):
                self.now = now
            if event.prediction is None and event.label is None:
                yield Outcome(event, "", "rejected", reason="neither a prediction nor a label")
            if event.prediction is not None:
                yield self._guarded(event, PREDICTION)
            if event.label is not None:
                yield self._guarded(event, LABEL)
        if self.now is not None:
            yield from self.expire(self.now)

    def _guarded(self, event: Event, what: str) -> Outcome:
        try:
            if event.id is None:
                raise BadInput("it has no id; give every prediction and every label one")
            if event.time is None or any(own is None for own in event.place):
                raise BadInput("it has no place in the order; fill in its time and order")
            return (self._served if what == PREDICTION else self._learned)(event, id_of(event.id))
        except BadInput as refusal:
            return Outcome(event, what, "rejected", reason=str(refusal))

    def _served(self, event: Event, id: Any) -> Outcome:
        known = self._known(id)
        if known is not None:
            base, shown, word = known
            same = base == _plain(self.layer.layer._prediction(event.prediction))
            outcome = (word or "duplicate") if same else "conflict"
            reason = None if same else f"id {id!r} was served for the prediction {base!r}"
            return Outcome(event, PREDICTION, outcome, _several(shown), reason)
        weight = 1.0 if event.weight is None else event.weight
        ticket = self.layer.open(event.prediction, event.key, event.groups, event.features, weight)
        shown = _plain(self.layer.shown(ticket))
        self.opened[id] = [_fields(ticket), shown, event.time]
        self.touched.add(ticket.row.key)
        return Outcome(event, PREDICTION, "served", _several(shown))

    def _known(self, id: Any) -> tuple[Any, Any, str | None] | None:
        """Prediction and served value of an id that was served before, and whether it has expired."""
        if id in self.opened:
            fields, shown, _ = self.opened[id]
            return fields[2], shown, None
        if id in self.closed:
            _, base, shown = self.closed[id]
            return base, shown, None
        return (*self.lapsed[id], "expired") if id in self.lapsed else None

    def _learned(self, event: Event, id: Any) -> Outcome:
        y = self.layer._label(event.label)
        if id in self.closed:
            known = self.closed[id][0]
            if known == y:
                return Outcome(event, LABEL, "duplicate")
            reason = f"id {id!r} already has the label {known!r}, not {y!r}"
            return Outcome(event, LABEL, "conflict", reason=reason)
        if id not in self.opened:
            return Outcome(event, LABEL, "expired" if id in self.lapsed else "unknown")
        fields, shown, time = self.opened[id]
        if name_of(event.key) != fields[1][2]:
            reason = f"id {id!r} was served for the key {fields[1][2]!r}"
            return Outcome(event, LABEL, "conflict", reason=reason)
        if self._outlived(time, event.time):
            self._lapse(id)
            return Outcome(event, LABEL, "expired")
        self.layer.post(as_ticket(fields), y)
        del self.opened[id]
        _remember(self.closed, id, [y, fields[2], shown], self.remember)
        self.touched.add(fields[1][2])
        return Outcome(event, LABEL, "applied")

    def _outlived(self, time: float, now: float) -> bool:
        return self.ttl is not None and now - time > self.ttl

    def _lapse(self, id: Any) -> Any:
        fields, shown, time = self.opened.pop(id)
        _remember(self.lapsed, id, [fields[2], shown], self.remember)
        return fields, shown, time

    def expire(self, now: float) -> list[Outcome]:
        """Let go of the tickets that are older than the time to live; a label for them is refused from now on."""
        if self.ttl is None:
            return []
        found = []
        for id in [id for id, own in self.opened.items() if self._outlived(own[2], now)]:
            fields, shown, time = self._lapse(id)
            event = Event((), fields[1][2], id, None, None, None, None, None, time)
            found.append(Outcome(event, EXPIRY, "expired", _several(shown)))
        return found

    @property
    def next_expiry(self) -> float | None:
        """When the oldest open ticket will have expired."""
        oldest = min((own[2] for own in self.opened.values()), default=None)
        return None if oldest is None or self.ttl is None else oldest + self.ttl

    def certificates(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The library's table of keys, of those keys that this micro-batch touched."""
        if not self.touched:
            return
        names = self.layer._names
        codes = sorted(names.code(key) for key in self.touched)
        rows = codes
        if not names.own.scalar:
            rows = [row for row, (key, _) in enumerate(names.split()) if key in set(codes)]
        columns = {name: list(own) for name, own in key_table(self.layer).columns().items()}
        for row in rows:
            own = {name: _number(column[row]) for name, column in columns.items()}
            yield str(own.pop("key")), own

    def saved(self) -> tuple[str, str]:
        """The layer and the book of tickets, a line of JSON each, versioned and with checksums."""
        state = {
            "closed": [[id, *own] for id, own in self.closed.items()],
            "lapsed": [[id, *own] for id, own in self.lapsed.items()],
            "now": self.now,
            "opened": [[id, *own] for id, own in self.opened.items()],
        }
        return self.layer.to_json(), "".join(codec.written("book", {}, state))

    def restore(self, text: str) -> None:
        """Take up a saved book."""
        kind, _, state = codec.load(text)
        if kind != "book":
            raise StateError(
                f"the state is of a {kind} layer, not a book of tickets; give the state of a stream"
            )
        try:
            for name in ("opened", "closed", "lapsed"):
                setattr(self, name, {id: list(own) for id, *own in state[name]})
            self.now = state["now"]
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the state is damaged: {error}") from None


def adopted(layer: Any, remember: int = REMEMBER) -> Desk:
    """The desk of a layer of the library, whose tickets come along."""
    book = layer._book
    if book.waiting:
        raise StateError(
            f"the state holds {len(book.waiting):,} labels that were not due yet; run the table that they came with "
            "up to the time when all of them are"
        )
    desk = Desk(layer, remember)
    for id, posting in book.closed.items():
        _remember(
            desk.closed, id, [posting.y, _plain(posting.base), _plain(posting.served)], remember
        )
    for ticket, id, time in list(book.tickets()):
        if id is not None:
            desk.opened[id] = [_fields(ticket), _plain(layer.shown(ticket)), time]
        book.withdraw(ticket.number)
    book.closed.clear()
    desk.now = book.now
    return desk


def desk_of(layer: Any, book: str | None, remember: int = REMEMBER) -> Desk:
    """The desk of a saved layer and, if it was a stream's, its book of tickets."""
    desk = adopted(layer, remember)
    if book is not None:
        desk.restore(book)
    return desk


def _place(event: Event) -> tuple[Any, ...]:
    lacks = event.time is None or any(own is None for own in event.place)
    what = 0 if event.prediction is not None else 1
    values = repr((event.prediction, event.label))
    none = event.id is None
    return (lacks, () if lacks else event.place, what, none, () if none else event.id, values)


def _remember(known: dict[Any, Any], id: Any, own: Any, most: int) -> None:
    known[id] = own
    while len(known) > most:
        del known[next(iter(known))]


def _fields(ticket: Any) -> list[Any]:
    """The ticket as JSON gives it back, so that one just opened and one read again are the same."""
    number, row, *rest = ticket[:-1]  # the desk knows whose it is
    return [number, [_plain(own) for own in row], *(_plain(own) for own in rest)]


def _plain(value: Any) -> Any:
    return [_plain(own) for own in value] if isinstance(value, (tuple, list)) else value


def _several(shown: Any) -> tuple[float, ...]:
    return tuple(shown) if isinstance(shown, list) else (shown,)


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
