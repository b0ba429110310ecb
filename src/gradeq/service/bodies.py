"""Entries of a journal as JSON that reads back bit for bit, and hashes of what clients sent."""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import Any

import msgspec

from gradeq.ledger.values import Posting, Ticket
from gradeq.service.items import Prediction
from gradeq.service.store.failures import StoreDamaged

_encode = msgspec.json.Encoder(order="deterministic").encode
_ticket, _posting = msgspec.json.Decoder(Ticket), msgspec.json.Decoder(Posting, strict=False)
_any = msgspec.json.Decoder()
_unkeyed = blake2b(digest_size=16)  # to be copied, which is quicker than a new one


def body_of(entry: Any) -> bytes:
    """A ticket or a posting as JSON."""
    if type(entry) is Posting and not math.isfinite(sum(entry.losses)):
        losses: Any = [x if math.isfinite(x) else repr(x) for x in entry.losses]
        entry = entry._replace(losses=losses)
    return _encode(entry[:-1] if type(entry) is Ticket else entry)  # the journal knows whose it is


def ticket_in(body: bytes) -> Ticket:
    """The ticket that was written."""
    try:
        found: Ticket = _tuples(_ticket.decode(body))
    except msgspec.MsgspecError as error:
        raise StoreDamaged(f"a ticket in the journal is damaged: {error}") from None
    return found


def posting_in(body: bytes) -> Posting:
    """The posting that was written."""
    try:
        found: Posting = _tuples(_posting.decode(body))
    except msgspec.MsgspecError as error:
        raise StoreDamaged(f"a posting in the journal is damaged: {error}") from None
    return found


def _tuples(entry: Any) -> Any:
    if type(entry.served) is list or type(entry.base) is list:
        base, served = (tuple(x) if type(x) is list else x for x in (entry.base, entry.served))
        return entry._replace(base=base, served=served)
    return entry


def plain_body(value: Any) -> bytes:
    """Anything else as JSON."""
    return _encode(value)


def plain_in(body: bytes) -> Any:
    """What ``plain_body`` wrote."""
    try:
        return _any.decode(body)
    except msgspec.MsgspecError as error:
        raise StoreDamaged(f"a row of the journal is damaged: {error}") from None


def payload_of(item: Prediction) -> bytes:
    """A hash of what a client sent, its id apart: the same prediction sent again has the same."""
    f = item.prediction
    sent = (
        f + 0.0 if type(f) is float else f,  # -0.0 is 0.0
        item.groups, item.features, item.key, item.weight, item.a, item.b, item.home,
    )  # fmt: skip
    own = _unkeyed.copy()
    own.update(_encode(sent))
    return own.digest()


def id_text(id: str | int) -> str:
    """An id as the journal has it: its JSON, so 17 is not "17"."""
    return _encode(id).decode()


def id_in(text: str) -> str | int:
    """The id that a journal has as JSON."""
    found: str | int = plain_in(text.encode())
    return found
