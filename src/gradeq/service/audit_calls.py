"""The audit of a layer over HTTP: what the clients were told beside what the journal holds."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import Struct

from gradeq.service.calls import Call, Endpoint, Reply, encode
from gradeq.service.layer_calls import ALWAYS, holder, looked
from gradeq.service.problems import Problem
from gradeq.service.reading import explained, read_object
from gradeq.service.receipts import Compared, Receipt, compare


class Receipts(Struct, forbid_unknown_fields=True):
    """What a client was told: kind ("ticket" of a prediction, "posting" of a label), id, number in the journal."""

    receipts: list[Receipt] = []


class AuditAnswer(Struct):
    """Whether every receipt is borne out and the server's own audits found no fault.

    ``seq``: the last number of the journal; ``audited``: when the server audited itself last (seconds since 1970).
    """

    layer: str
    ok: bool
    seq: int
    audited: float | None
    faults: list[str]
    receipts: Compared


async def audit(call: Call) -> Reply:
    """Look for receipts in the journal."""
    call.query()
    name, tenant, service = call.part("name"), holder(call).tenant, call.service
    body = await call.body(service.limits.body)
    sent = read_object(body) if body else {}
    try:
        given = msgspec.convert(sent, Receipts).receipts
    except msgspec.ValidationError as error:
        raise Problem(
            422, "bad_receipts", explained(str(error), sent)[0],
            'send {"receipts": [["ticket", "order-17", 1], ["posting", "order-17", 2]]}',
        ) from None  # fmt: skip
    if len(given) > service.limits.items:
        raise Problem(
            413, "too_many_items", f"{len(given):,} receipts, the limit is {service.limits.items:,}",
            "send them in several calls",
        )  # fmt: skip
    number, head = await looked(call, lambda live: (live.number, live.head))
    found = await asyncio.to_thread(compare, service.store, number, given)
    borne_out = not (found.missing or found.doubled or found.moved)
    service.log("audit", layer=name, tenant=tenant, receipts=len(given), borne_out=borne_out)
    at, last = service.watch.found.get((tenant, name), (None, None))
    faults = [*(last.faults if last else ()), *([head.stopped] if head.stopped else ())]
    return Reply(encode(AuditAnswer(name, borne_out and not faults, head.seq, at, faults, found)))


ENDPOINTS = (
    Endpoint(
        "POST", "/v1/layers/{name}/audit", "", audit,
        "Compare what you were told with the journal: which events are missing, doubled, or elsewhere.",
        Receipts, {200: AuditAnswer}, (400, 404, 408, 413, 415, 422, 503, *ALWAYS),
    ),
)  # fmt: skip
