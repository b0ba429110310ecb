"""Items of the HTTP API and entries of a journal: typed values, and JSON that reads back bit for bit."""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from gradeq.ledger.values import Posting, Ticket
from gradeq.records import copy_with
from gradeq.service.store.database import StoreDamaged

Id = Annotated[str, Meta(min_length=1, max_length=255)] | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Name = str | int | float | bool | None


class Prediction(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A prediction of your model. For a game: the players ``a`` and ``b`` instead."""

    id: Id | None = None
    prediction: float | list[float] | None = None
    groups: dict[str, Name] | None = None
    features: dict[str, float] | None = None
    key: Name = None
    weight: float = 1.0
    a: Name = None
    b: Name = None
    home: float = 1.0


class Label(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The label of a prediction, by its id or by its signed ticket.

    ``correct``: replace the label that was sent before.
    """

    label: float
    id: Id | None = None
    correct: bool = False
    ticket: str | None = None


class ItemAnswer(Struct, omit_defaults=True):
    """What happened to one item.

    Predictions: ``served``, ``duplicate`` (served before: the same value again), ``conflict`` or ``rejected``.
    Labels: ``applied``, ``waiting`` (its row is not mature, or labels of one value seem to come earlier),
    ``duplicate``, ``corrected``, ``conflict``, ``unknown``, ``expired`` or ``rejected``.
    ``seq`` is its number in the journal, your receipt. ``stored`` is false when the store could not write: the value
    comes from the last good state, and a label sent for it is answered `unknown`. ``learning`` is false while the
    layer is frozen; on a label, false: stored but not learned from. ``stale``: the labels of other servers have not
    been read for more than 10 seconds. ``cold``: a group, the key or a player is new.
    """

    id: str | int | None = None
    status: str = ""
    adjusted: float | list[float] | None = None
    lower: float | None = None
    upper: float | None = None
    ticket: str | None = None
    seq: int | None = None
    stored: bool = True
    learning: bool = True
    stale: bool = False
    cold: bool = False
    detail: str | None = None
    remedy: str | None = None


ACCEPTED = frozenset({"served", "duplicate", "applied", "waiting", "corrected"})


def not_applied(id: str | int | None) -> ItemAnswer:
    """The answer to a valid item of an atomic call that was refused."""
    detail, remedy = "another item of this atomic call was rejected", "correct that one and send all again"
    return ItemAnswer(id=id, status="rejected", detail=detail, remedy=remedy)


encode_json = msgspec.json.Encoder(order="deterministic").encode
_ticket, _posting = msgspec.json.Decoder(Ticket), msgspec.json.Decoder(Posting, strict=False)
_json = msgspec.json.Decoder()
Decoded = TypeVar("Decoded", Ticket, Posting)
_empty_hash = blake2b(digest_size=16)  # to be copied, which is quicker than a new one


def encode_entry(entry: Ticket | Posting) -> bytes:
    if type(entry) is Posting and not math.isfinite(sum(entry.losses)):
        entry = copy_with(entry, losses=[x if math.isfinite(x) else repr(x) for x in entry.losses])
    return encode_json(
        entry[:-1] if type(entry) is Ticket else entry
    )  # without ``branch``: a journal is of one layer


def decode_ticket(body: bytes) -> Ticket:
    return _decode(_ticket, body, "ticket")


def decode_posting(body: bytes) -> Posting:
    return _decode(_posting, body, "posting")


def _decode(decoder: msgspec.json.Decoder[Decoded], body: bytes, what: str) -> Decoded:
    try:
        entry = decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise StoreDamaged(f"a {what} in the journal is damaged: {error}") from None
    if type(entry.served) is list or type(entry.base) is list:
        base, served = (tuple(x) if type(x) is list else x for x in (entry.base, entry.served))
        entry = copy_with(entry, base=base, served=served)
    return entry


def decode_json(body: bytes) -> Any:
    try:
        return _json.decode(body)
    except msgspec.MsgspecError as error:
        raise StoreDamaged(f"a row of the journal is damaged: {error}") from None


def payload_hash(item: Prediction) -> bytes:
    """A hash of a prediction without its id, to recognize the same one sent again."""
    f = item.prediction
    f = f + 0.0 if type(f) is float else f  # -0.0 is 0.0
    sent = (f, item.groups, item.features, item.key, item.weight, item.a, item.b, item.home)
    digest = _empty_hash.copy()
    digest.update(encode_json(sent))
    return digest.digest()


def encode_id(id: str | int) -> str:
    """An id as JSON, so 17 is not "17"."""
    return encode_json(id).decode()


def decode_id(text: str) -> str | int:
    id: str | int = decode_json(text.encode())
    return id
