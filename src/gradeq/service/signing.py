"""Signed tickets: what serving leaves behind, in the client's hands until the label comes."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

from gradeq.errors import BadInput
from gradeq.ledger.values import Ticket
from gradeq.service.bodies import body_of, plain_body, plain_in, ticket_in
from gradeq.service.store.failures import StoreDamaged

MAC = 16  # bytes
NOT_OURS = "this ticket was not signed by this server; send back what came with the prediction"


def signed(secret: bytes, layer: int, id: str, at: float, payload: bytes, ticket: Ticket) -> str:
    """A ticket that nobody else can write."""
    head = plain_body([layer, id, at, payload.hex()])
    text = head + b"\n" + body_of(ticket)
    return urlsafe_b64encode(_mac(secret, text) + text).decode().rstrip("=")


def verified(secret: bytes, layer: int, text: str) -> tuple[str, float, bytes, Ticket]:
    """Id, time of serving, payload and ticket of what ``signed`` gave for this layer; all else is refused."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise BadInput(NOT_OURS) from None
    mac, body = raw[:MAC], raw[MAC:]
    if not hmac.compare_digest(mac, _mac(secret, body)):
        raise BadInput(NOT_OURS)
    try:
        head, _, ticket = body.partition(b"\n")
        number, id, at, payload = plain_in(head)
        found = ticket_in(ticket)
    except StoreDamaged:
        raise BadInput(NOT_OURS) from None
    if number != layer:
        raise BadInput("this ticket is of another layer; send it to the one that served it")
    return id, at, bytes.fromhex(payload), found


def _mac(secret: bytes, text: bytes) -> bytes:
    return hmac.new(secret, b"ticket\n" + text, sha256).digest()[:MAC]
