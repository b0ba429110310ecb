"""Signed tickets: clients carry their predictions, and the store is first written when a label arrives."""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import NamedTuple

from gradeq.errors import BadInput, GradeqError
from gradeq.ledger.values import Ticket
from gradeq.service import schemas
from gradeq.service.problems import in_http_words
from gradeq.service.runtime import LayerRuntime
from gradeq.service.schemas import ItemAnswer, Prediction
from gradeq.service.store.database import StoreDamaged
from gradeq.service.store.journal_store import Store

MAC = 16  # bytes
NOT_OURS = "this ticket was not signed by this server; send back the ticket that came with the prediction"


class SignedTicket(NamedTuple):
    """A ticket sent back by a client: id, time served, hash of the prediction.

    ``seq`` and ``mark`` identify the journal at that time; they are None and "" in tickets of earlier versions.
    """

    id: str
    at: float
    payload: bytes
    ticket: Ticket
    seq: int | None = None
    mark: str = ""


def sign_ticket(secret: bytes, layer: int, signed: SignedTicket) -> str:
    """A ticket as text, signed with the server's secret."""
    position = [] if signed.seq is None else [signed.seq, signed.mark]
    head = schemas.encode_json([layer, signed.id, signed.at, signed.payload.hex(), *position])
    text = head + b"\n" + schemas.encode_entry(signed.ticket)
    return urlsafe_b64encode(_mac(secret, text) + text).decode().rstrip("=")


def journal_mark(secret: bytes, layer: int, seq: int, hash: int) -> str:
    """A short fingerprint of the journal up to entry ``seq``."""
    return _mac(secret, f"journal {layer} {seq} {hash:x}".encode())[:8].hex()


def verify_ticket(secret: bytes, layer: int, text: str) -> SignedTicket:
    """The content of a ticket; raises unless this server signed it for this layer."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        mac, body = raw[:MAC], raw[MAC:]
        if not hmac.compare_digest(mac, _mac(secret, body)):
            raise BadInput(NOT_OURS)
        head, _, ticket = body.partition(b"\n")
        number, id, at, payload, *position = schemas.decode_json(head)
        decoded = schemas.decode_ticket(ticket)
    except (ValueError, StoreDamaged):
        raise BadInput(NOT_OURS) from None
    if number != layer:
        raise BadInput("this ticket belongs to another layer; send it to the layer that served it")
    return SignedTicket(id, at, bytes.fromhex(payload), decoded, *position)


def _mac(secret: bytes, text: bytes) -> bytes:
    return hmac.new(secret, b"ticket\n" + text, sha256).digest()[:MAC]


COMMIT_WAIT = 0.05  # seconds


def preview_all(
    runtime: LayerRuntime, items: Sequence[Prediction], store: Store, now: float, why: str = "", stale: bool = False
) -> list[ItemAnswer]:
    """Serve items from the state in memory without changing it.

    ``why``: why the store cannot write. The answers have it, because labels of these items will be unknown.
    """
    with runtime.layer.lock:
        answers = [_preview_item(runtime, item, store, now, why) for item in items]
    for answer in answers if stale else ():
        answer.stale = True
    return answers


@contextmanager
def wait_for_commit(runtime: LayerRuntime) -> Iterator[None]:
    """Wait for the current commit, for ``COMMIT_WAIT`` seconds at most.

    Signed tickets are served from committed state: after a crash, tickets of uncommitted state would be refused.
    """
    waited = runtime.signed and runtime.committing.acquire(timeout=COMMIT_WAIT)
    try:
        yield
    finally:
        if waited:
            runtime.committing.release()


def _preview_item(runtime: LayerRuntime, item: Prediction, store: Store, now: float, why: str) -> ItemAnswer:
    id = item.id if item.id is not None else f"gq-{secrets.token_hex(8)}"
    layer = runtime.layer
    try:
        args, options = runtime.open_arguments(item)
        ticket = layer.preview(*args, **options)
    except GradeqError as error:
        return ItemAnswer(id=id, status="rejected", detail=in_http_words(str(error)))
    if not runtime.signed:
        return runtime.answer(id, ticket, status="served", stored=False, detail=why or None)
    head = runtime.head  # read once: a commit replaces it
    mark = journal_mark(store.secret, runtime.number, head.seq, head.hash)
    signed = SignedTicket(schemas.encode_id(id), now, schemas.payload_hash(item), ticket, head.seq, mark)
    text = sign_ticket(store.secret, runtime.number, signed)
    return runtime.answer(id, ticket, status="served", ticket=text)
