"""Signed tickets: what serving leaves behind, in the client's hands until the label comes."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import NamedTuple

from gradeq.errors import BadInput
from gradeq.ledger.values import Ticket
from gradeq.service.bodies import body_of, plain_body, plain_in, ticket_in
from gradeq.service.store.failures import StoreDamaged
from gradeq.service.store.rows import Head

MAC = 16  # bytes
NOT_OURS = "this ticket was not signed by this server; send back what came with the prediction"


class Signed(NamedTuple):
    """A ticket that came back: its id, when it was served, a hash of what was sent.

    ``seq`` and ``mark``: where the journal stood that it was served from; None and "" of earlier versions.
    """

    id: str
    at: float
    payload: bytes
    ticket: Ticket
    seq: int | None = None
    mark: str = ""


def signed(
    secret: bytes, layer: int, id: str, at: float, payload: bytes, ticket: Ticket, journal: Head | None = None
) -> str:  # fmt: skip
    """A ticket that nobody else can write; ``journal``: where it stands that the ticket is served from."""
    place = (
        [] if journal is None else [journal.seq, mark_of(secret, layer, journal.seq, journal.hash)]
    )
    head = plain_body([layer, id, at, payload.hex(), *place])
    text = head + b"\n" + body_of(ticket)
    return urlsafe_b64encode(_mac(secret, text) + text).decode().rstrip("=")


def mark_of(secret: bytes, layer: int, seq: int, hash: int) -> str:
    """A short mark of a journal up to a number: another journal of the same length has another."""
    return _mac(secret, f"journal {layer} {seq} {hash:x}".encode())[:8].hex()


def verified(secret: bytes, layer: int, text: str) -> Signed:
    """What ``signed`` gave for this layer; all else is refused."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise BadInput(NOT_OURS) from None
    mac, body = raw[:MAC], raw[MAC:]
    if not hmac.compare_digest(mac, _mac(secret, body)):
        raise BadInput(NOT_OURS)
    try:
        head, _, ticket = body.partition(b"\n")
        number, id, at, payload, *place = plain_in(head)
        found = ticket_in(ticket)
    except StoreDamaged:
        raise BadInput(NOT_OURS) from None
    if number != layer:
        raise BadInput("this ticket is of another layer; send it to the one that served it")
    return Signed(id, at, bytes.fromhex(payload), found, *place)


def _mac(secret: bytes, text: bytes) -> bytes:
    return hmac.new(secret, b"ticket\n" + text, sha256).digest()[:MAC]
