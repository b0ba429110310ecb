"""What a store holds beside what was acknowledged to clients, and beside itself."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from gradeq import from_json
from gradeq.engine.tickets import TicketBook
from gradeq.ledger.exact import Sums, add
from gradeq.service.audit import audit_store
from gradeq.service.layer_endpoints import equilibrium_answer
from gradeq.service.layer_spec import layer_of
from gradeq.service.requests import encode
from gradeq.service.runtime import LayerRuntime
from gradeq.service.schemas import decode_posting, decode_ticket, encode_id
from gradeq.service.store import open_store
from gradeq.service.store.journal_store import (
    MODULUS,
    POSTING,
    REVERSAL,
    TICKET,
    Entry,
    hash_entries,
    read_initial_hash,
)
from service.workers import Said


class Told(NamedTuple):
    """What a server said of a layer at the end: its state, and what it has reached by its own memory."""

    layer: str
    state: str
    reached: Any


def wrong_in(address: str, said: dict[str, list[Said]], told: Sequence[Told]) -> list[str]:
    """What a store does not hold as it was acknowledged, or holds in disagreement with itself or with its servers."""
    store = open_store(address, read_only=True)
    try:
        wrong = [f"{own.name}: {line}" for own in audit_store(store) for line in own.faults]
        for row in store.layers():
            own = [one for one in told if one.layer == row.name]
            wrong += [f"{row.name}: {line}" for line in _wrong_in_layer(store, row, said[row.name], own)]
        return wrong
    finally:
        store.close()


def _wrong_in_layer(store: Any, row: Any, said: list[Said], told: list[Told]) -> list[str]:
    entries = list(store.entries(row.number))
    wrong = _against_the_clients(entries, said, row.spec.get("tickets") == "signed")
    head = store.head(row.number)
    if [entry.seq for entry in entries] != [*range(1, head.seq + 1)]:
        wrong.append(f"the numbers of {len(entries)} rows do not run from 1 to {head.seq}")
    if head.entries != len(entries):
        wrong.append(f"the head counts {head.entries} rows, there are {len(entries)}")
    with store.driver.reading() as own:
        birth = read_initial_hash(own, store.secret, row.number)
    if (birth + hash_entries(store.secret, row.number, entries)) % MODULUS != head.hash:
        wrong.append("the sum of hashes is not that of the rows")
    numbers = [decode_ticket(entry.body).number for entry in entries if entry.kind == TICKET]
    if row.spec.get("tickets") != "signed" and numbers != [*range(1, 1 + len(numbers))]:
        wrong.append("tickets do not count the rows: some were served without knowing of others")
    layer, sums = replayed(row.spec, entries)
    if {name: own for name, own in store.sums(row.number).items() if any(own)} != sums:
        wrong.append("the exact sums are not those of the postings")
    text = layer.to_json()
    if text != _by_snapshot(store, row, entries):
        wrong.append("snapshot and tail give another state than the whole journal")
    if any(_without_tickets(one.state) != text for one in told):
        wrong.append("a server tells another state than the library has from the same journal")
    live = LayerRuntime(row, layer, head.seq)
    if any(one.reached != json.loads(encode(equilibrium_answer(live))) for one in told):
        wrong.append("a server has another layer in memory than the library from the same journal")
    return wrong


def _without_tickets(state: str) -> str:
    layer: Any = from_json(state)
    layer.internals.tickets = TicketBook(layer.internals.tickets.ttl)  # the journal has them
    text: str = layer.to_json()
    return text


def replayed(spec: dict[str, Any], entries: list[Entry]) -> tuple[Any, Sums]:
    """A library layer fed with a journal, and the exact sums of its postings."""
    layer: Any = layer_of(spec)
    sums: Sums = {}
    for entry in entries:
        read = decode_ticket(entry.body) if entry.kind == TICKET else decode_posting(entry.body)
        layer.replay([read])
        if entry.kind != TICKET:
            add(sums, read)
    return layer, {name: own for name, own in sums.items() if any(own)}


def _by_snapshot(store: Any, row: Any, entries: list[Entry]) -> str:
    seq, text = store.snapshot(row.number)
    if text is None:
        return replayed(row.spec, entries)[0].to_json()
    layer = from_json(text)
    for entry in entries[seq:]:
        layer.replay([decode_ticket(entry.body) if entry.kind == TICKET else decode_posting(entry.body)])
    return layer.to_json()


def _against_the_clients(entries: list[Entry], said: list[Said], signed: bool) -> list[str]:
    """The journal beside the clients' record: the same events, each once, under the numbers that were told."""
    rows = Counter((entry.kind, entry.id, _value(entry)) for entry in entries if entry.kind != REVERSAL)
    labelled = {one.id for one in said if one.kind == POSTING}
    known = {
        (one.kind, encode_id(one.id), one.value)
        for one in said
        if one.kind != TICKET or not signed or one.id in labelled
    }
    wrong = [f"lost: {event}" for event in sorted(known - set(rows))]
    wrong += [f"doubled: {event}" for event, count in sorted(rows.items()) if count > 1]
    wrong += [f"nobody was told of {event}" for event in sorted(set(rows) - known)]
    by_seq = {entry.seq: entry for entry in entries}
    for one in said:
        if one.answer.seq is None:
            continue
        entry = by_seq.get(one.answer.seq)
        if entry is None or entry.id != encode_id(one.id):
            wrong.append(f"receipt {one.answer.seq} of {one.id} is not its row")
        elif entry.kind == TICKET and decode_ticket(entry.body).served != one.answer.adjusted:
            wrong.append(f"{one.id} was served {one.answer.adjusted}, the journal has another value")
    return wrong


def _value(entry: Entry) -> float:
    value = decode_ticket(entry.body).base if entry.kind == TICKET else decode_posting(entry.body).y
    return float(value)
