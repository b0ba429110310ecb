"""Labels that a layer of a service keeps for later: their rows are not mature, or their delay depends on their value.

They are in the journal as controls, each with its ticket, and in the book of the library's layer until they are
learned; so a snapshot holds them, and the journal done again gives the same.
"""

from __future__ import annotations

from typing import Any

from gradeq.engine.early_labels import HELD
from gradeq.engine.tickets import Book, Waiting
from gradeq.layers.early import middle, note_learned
from gradeq.ledger.values import Posting, Ticket
from gradeq.service.bodies import body_of, id_text, ticket_in
from gradeq.spans import NUMBERS

WAIT, HOLD_BACK = "wait", "hold_back"  # what such controls do
AUTHORS = "authors"  # in the notes of a book: who sent each label
NANO = 1e9  # dates are nanoseconds in the library, and seconds here
DATES = 1e16  # times above this are dates: in seconds they would be later than the sun


def in_dates(book: Book) -> bool:
    """Whether the times of a book of the library are dates."""
    times = [time for _, _, time in book.tickets()]
    times += [book.now, *(own.time for own in book.waiting.values() if own.time != HELD)]
    kind = book.desk.get("times", {}).get("kind")
    dated = kind is not None and kind != NUMBERS
    return dated or any(time is not None and time > DATES for time in times)


def imported_book(book: Book) -> Book:
    """What a layer that was imported keeps beside its journal: labels that wait, and how late labels were."""
    made, unit = book.blank(), NANO if in_dates(book) else 1.0
    made.early = book.early
    for own in book.waiting.values():
        if own.id is not None:
            due, time = (at if at == HELD else at / unit for at in (own.due, own.time))
            made.hold([own._replace(id=id_text(own.id), due=due, time=time)])
    return made


def wait_body(own: Waiting, author: int) -> dict[str, Any]:
    """A label that is kept, as the journal has it."""
    ticket = body_of(own.ticket).decode()
    return {
        "do": WAIT, "id": own.id, "label": own.y, "due": own.due, "at": own.time, "by": author, "ticket": ticket,
    }  # fmt: skip


def hold_body(layer: Any) -> dict[str, Any]:
    """That labels are held back from now on, or no longer."""
    early = layer._book.early
    known = [[block, count] for block, count in early.known.items()]
    return {"do": HOLD_BACK, "since": early.since, "known": known}


def do_again(layer: Any, body: dict[str, Any], replay: bool = True) -> None:
    """Do what such a control says; ``replay``: a label that is held back is counted as well."""
    book: Book = layer._book
    if body["do"] == WAIT:
        ticket = ticket_in(body["ticket"].encode())
        if replay and body["due"] == HELD and body["id"] not in book.held:
            count(layer, ticket, float(body["label"]))
        own = Waiting(
            ticket, float(body["label"]), float(body["due"]), float(body["at"]), body["id"]
        )
        book.hold([own])
        book.desk.setdefault(AUTHORS, {})[body["id"]] = int(body["by"])
    elif book.early is not None:
        book.early.since = None if body["since"] is None else int(body["since"])
        book.early.known = {int(block): int(count) for block, count in body["known"]}
        book.early.why = ""  # the label that is counted next explains it


def count(layer: Any, entry: Ticket | Posting, y: Any) -> bool:
    """Count a label that has come; whether labels look as if their delay depended on their value."""
    early, now = layer._book.early, int(layer._state.number)
    if early is None or entry.weight == 0.0 or layer._frozen:
        return False
    if entry.number == now:
        if early.since is not None:
            note_learned(early, [entry.number])
        return False
    return bool(early.count(y, middle(entry.base), float(now - entry.number + 1), entry.number))


def learned(layer: Any, id: str, posting: Posting) -> None:
    """A label is learned: it waits no longer, or it is counted if it never did."""
    book: Book = layer._book
    number = book.held.get(id)
    if number is None:
        count(layer, posting, posting.y)
        return
    let_go(book, id)


def let_go(book: Book, id: str) -> int:
    """Take out a label that is kept; who sent it."""
    number = book.held[id]
    if book.is_held_back(number) and book.early is not None and book.early.since is not None:
        note_learned(book.early, [number])
    book.hold((), [book.waiting[number]])
    authors = book.desk.get(AUTHORS, {})
    author = int(authors.pop(id, 0))
    if not authors:
        book.desk.pop(AUTHORS, None)
    return author


def due_now(book: Book, now: float) -> list[Waiting]:
    """The labels that are due, in the order in which they became so."""
    found = [own for own in book.due_by(now) if own.due <= now and own.due != HELD]
    return sorted(found, key=lambda own: (own.due, own.ticket.number))
