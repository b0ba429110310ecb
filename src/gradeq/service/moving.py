"""Layers on their way between a store and the library's JSON, in both directions and to the last bit.

A layer that is imported begins its journal with the saved state and, as rows that the state already holds, with its
open tickets and the labels of closed ids. Exported again it has them all. What a store cannot know: labels without an
id (their tickets stay as they were), and what a client sent for ids that came with the state.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

from gradeq.codec import plain
from gradeq.engine.early_labels import HELD
from gradeq.engine.tickets import Book, Id
from gradeq.errors import BadInput, StateError
from gradeq.kernels.account import COLUMNS, GRADIENT, MOVED, ROWS
from gradeq.layers.layer import Layer
from gradeq.layers.registry import from_json
from gradeq.ledger.exact import Sum, Sums, account_of, exact
from gradeq.ledger.values import Posting, Ticket
from gradeq.penalties import Lasso, Ridge
from gradeq.schedules import Power
from gradeq.service.bodies import (
    body_of,
    id_in,
    id_text,
    plain_body,
    plain_in,
    posting_in,
    ticket_in,
)
from gradeq.service.live import IMPORT, Live
from gradeq.service.spec import MAX_NAMES, MOST_NAMES, layer_of
from gradeq.service.store.folds import listed
from gradeq.service.store.rows import Entry, LayerRow
from gradeq.service.store.schema import CONTROL, CORRECTION, POSTING, TICKET
from gradeq.service.store.store import Store, Write
from gradeq.service.waiting_labels import NANO, WAIT, imported_book, in_dates

MOVABLE = "a constant step, decay, ridge and lasso"


def spec_of(layer: Layer) -> dict[str, Any]:
    """The settings that make a layer in a store; refused if there are none."""
    inner: Any = layer.layer if layer.kind == "keyed" else layer  # type: ignore[attr-defined]
    given, usual = dict(inner.settings), signature(type(inner)).parameters
    schedule, penalty = given.pop("schedule", None), given.pop("penalty", None)
    given = {name: own for name, own in given.items() if own != usual[name].default}
    spec = {"kind": inner.kind, **given}
    if isinstance(schedule, Power):
        spec |= {"eta": schedule.eta, "decay": schedule.alpha}
    if isinstance(penalty, (Lasso, Ridge)):
        name = "lasso" if isinstance(penalty, Lasso) else "ridge"
        spec |= {"penalty": name, "strength": penalty.strength}
    if layer.kind == "keyed":
        spec |= {"keyed": True, **({"pool": True} if layer.settings.get("pool") else {})}
    for name in ("ttl", "maturity"):
        if spec.get(name) and in_dates(layer._book):
            spec[name] = f"{spec[name] / NANO!r}s"
    count = layer._names.count + layer._names.keys
    if count > MAX_NAMES:
        spec["max_names"] = min(2 * count, MOST_NAMES)
    found: dict[str, Any] = plain(spec)
    try:
        same = plain(layer_of(found).settings) == plain(layer.settings)
    except BadInput:
        same = False
    if not same:
        raise BadInput(f"this layer has settings that a service does not offer; it has {MOVABLE}")
    return found


def merged_spec(spec: dict[str, Any], text: str) -> dict[str, Any]:
    """The settings of a saved state with those that only a service has; others must be the same, if any are given."""
    own = spec_of(from_json(text))
    service = {name: value for name, value in spec.items() if name in ("tickets", "max_names")}
    for name, value in spec.items():
        if name not in service and own.get(name) != value:
            raise BadInput(
                f"the state was made with {name}={own.get(name)!r}, not {value!r}; leave the settings out"
            )
    return {**own, **service}


def write_import(tx: Write, row: LayerRow, text: str, now: float) -> None:
    """Begin the journal of a new layer with a saved state."""
    layer = from_json(text)
    unit = NANO if in_dates(layer._book) else 1.0
    rows: list[tuple[int, Id, float, Any]] = []
    for id, posting in layer._book.closed.items():
        ticket = Ticket(*posting[:6], (), posting.memo, given=posting.given)
        rows += [(TICKET, id, now, ticket), (POSTING, id, now, posting)]
    for ticket, own, time in layer._book.tickets():
        if own is not None:
            rows.append((TICKET, own, now if time is None else time / unit, ticket))
    for held in layer._book.waiting.values():
        if held.id is not None:
            at = now if held.time == HELD else held.time / unit  # served without a time
            rows.append((TICKET, held.id, at, held.ticket))
    sums = sums_of_layer(layer)
    body = {
        "do": IMPORT, "until": 1 + len(rows), "sums": listed(sums), "state": text, "waiting": True,
    }  # fmt: skip
    entries = [Entry(1, CONTROL, '""', now, 0, b"", plain_body(body))]
    for seq, (kind, id, at, value) in enumerate(rows, 2):
        entries.append(Entry(seq, kind, id_text(id), float(at), 0, b"", body_of(value)))
    head = tx.append(row.number, row.head, entries, sums)
    layer._book = imported_book(layer._book)
    tx.keep_snapshot(row.number, head.seq, layer.to_json(), now)


def sums_of_layer(layer: Layer) -> Sums:
    """The library's own sums, as the balance that exact ones begin with."""
    layer._state.catch_up()
    names, sums, rule = layer._names, layer._state.sums, layer._rule
    keys = (
        [k for k, _ in names.split()] if hasattr(names, "split") and not names.own.scalar else None
    )
    found: Sums = {}
    for j in range(names.count):
        row = names.row_at([j], [1.0], j if keys is None else keys[j])
        for level in range(rule.width):
            at = j * rule.stride + level * COLUMNS
            if sums[at + ROWS]:
                own = Sum(int(sums[at + ROWS]), exact(sums[at + GRADIENT]), exact(sums[at + MOVED]))
                found[account_of(row.names[0], row.key), level] = own
    return found


def exported(store: Store, row: LayerRow) -> str:
    """A layer of a store as the library saves it: state, open tickets, closed ids with their labels."""
    live = Live.load(store, row)
    began = next(store.entries(row.number, 0, 1), None)
    first = plain_in(began.body) if began is not None and began.kind == CONTROL else {}
    origin = from_json(first["state"]) if first.get("do") == IMPORT else layer_of(row.spec)
    spans = (row.spec.get("ttl"), row.spec.get("maturity"))
    unit = NANO if any(isinstance(own, str) for own in spans) or in_dates(origin._book) else 1.0
    book = origin._book
    for entry in store.entries(row.number, int(first.get("until", 0)), live.head.seq):
        _enter(book, entry, unit, live.ttl)
    book.early = live.layer._book.early
    live.layer._book = book
    text = live.layer.to_json()
    try:
        from_json(text)
    except StateError as error:
        raise StateError(f"{row.name} cannot be exported: {error}; run gradeq audit") from None
    return text


def _enter(book: Book, entry: Entry, unit: float, ttl: float | None) -> None:
    """What one entry does to the ticket book of the library."""
    if entry.kind == TICKET:
        time = entry.at * unit
        book.put(ticket_in(entry.body), id_in(entry.id), time)
        if ttl is not None:
            book.expire(time)
    elif entry.kind == POSTING:
        _close(book, id_in(entry.id), posting_in(entry.body))
    elif entry.kind == CONTROL and plain_in(entry.body)["do"] == WAIT:
        body = plain_in(entry.body)
        id = id_in(body["id"])
        held = body["due"] == HELD
        due = HELD if held else body["due"] * unit
        if id in book.by_id:
            book.wait(book.find(id), body["label"], due)
        elif id in book.held:
            book.hold([book.waiting[book.held[id]]._replace(y=body["label"])])
    elif entry.kind == CORRECTION:
        id, posting = id_in(entry.id), posting_in(entry.body)
        if id in book.closed:
            book.closed[id] = posting._replace(slopes=())


def _close(book: Book, id: Id, posting: Posting) -> None:
    """A label; also one that the book no longer waits for, because its time had passed there or it was held back."""
    if id in book.by_id:
        ticket = book.find(id)[0]
        del book.opened[ticket[0]]
        book.close(ticket, id, posting)
        return
    book.lapsed.pop(id, None)
    if id in book.held:
        book._release(book.held[id])
    book.shut(id, posting)
