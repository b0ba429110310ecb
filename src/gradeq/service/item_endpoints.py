"""Endpoints of predictions, labels and receipts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from gradeq.service.audit import Receipt, ReceiptComparison, compare_receipts
from gradeq.service.layer_endpoints import KEY_PROBLEMS, caller_key, read_layer
from gradeq.service.problems import Problem, split_remedy
from gradeq.service.requests import (
    Call,
    Endpoint,
    Item,
    ItemReader,
    Reply,
    encode,
    explain_validation,
    read_object,
    rejected_item,
)
from gradeq.service.schemas import ACCEPTED, ItemAnswer, Label, Prediction, not_applied

STATUS = {"conflict": 409, "unknown": 404, "expired": 410, "rejected": 422}
INLINE_ITEMS = 200  # items that may be previewed, or queued, while other calls wait
PREDICTIONS, LABELS = ItemReader(Prediction), ItemReader(Label)
ATOMIC = {"atomic": Annotated[bool, Meta(description="All items or none: 422 if one is rejected.")]}


# Desk.predict or Desk.label: tenant, layer, items, number of the key, atomic.
Ask = Callable[[str, str, Sequence[Item], int, bool], Future[list[ItemAnswer]]]


async def predict(call: Call) -> Reply:
    return await _process_items(call, PREDICTIONS, call.service.desk.predict)


async def label(call: Call) -> Reply:
    return await _process_items(call, LABELS, call.service.desk.label)


async def _process_items(call: Call, reader: ItemReader[Item], ask: Ask[Item]) -> Reply:
    service, key = call.service, call.key
    assert key is not None
    flag = call.query(atomic="false")["atomic"]
    if flag not in ("true", "false"):
        raise Problem(400, "bad_parameter", f"atomic is {flag[:40]!r}", "give true or false")
    atomic = flag == "true"
    sent, single = reader.read(await call.body(service.limits.body), service.limits.items)
    if len(sent) > 1:
        service.charge(key, len(sent) - 1)
    if atomic:
        sent = _reject_repeated_ids(sent)
    items = [item for item in sent if not isinstance(item, ItemAnswer)]
    if len(items) == len(sent) or not atomic:
        name = call.path_param("name")
        arguments = (key.tenant, name, items, key.number, atomic)
        if len(items) > INLINE_ITEMS or (key.tenant, name) not in service.desk.layers.runtimes:
            waiting = await asyncio.to_thread(lambda: ask(*arguments))
        else:
            waiting = ask(*arguments)
        answers = await service.bridge.wait(waiting)
        if len(items) < len(sent):
            following = iter(answers)
            answers = [one if isinstance(one, ItemAnswer) else next(following) for one in sent]
    else:
        answers = [one if isinstance(one, ItemAnswer) else not_applied(one.id) for one in sent]
    for answer in answers:
        if answer.status == "rejected" and answer.remedy is None and answer.detail is not None:
            answer.detail, answer.remedy = split_remedy(answer.detail)
    for status, count in Counter(answer.status for answer in answers).items():
        service.metrics.items.add(count, kind=reader.item.__name__.lower(), status=status)
    if single:
        return Reply(encode(answers[0]), STATUS.get(answers[0].status, 200))
    refused = atomic and any(answer.status not in ACCEPTED for answer in answers)
    return Reply(encode(answers), 422 if refused else 200)


def _reject_repeated_ids(sent: Sequence[Item | ItemAnswer]) -> list[Item | ItemAnswer]:
    """Reject an id that occurs twice in an atomic call: the second depends on the first."""
    seen: set[tuple[str | int | None, ...]] = set()
    checked: list[Item | ItemAnswer] = []
    for item in sent:
        known = () if isinstance(item, ItemAnswer) else (item.id, getattr(item, "ticket", None))
        if known in seen and known not in ((), (None, None)):
            item = rejected_item(item.id, f"id {item.id!r} occurs twice in an atomic call", "send it once")
        seen.add(known)
        checked.append(item)
    return checked


ITEM_PROBLEMS = (400, 401, 403, 408, 413, 415, 429, 503)
ITEM_RESPONSES = {200: ItemAnswer | list[ItemAnswer], 409: ItemAnswer, 422: ItemAnswer | list[ItemAnswer]}

ENDPOINTS = (
    Endpoint(
        "POST", "/v1/layers/{name}/predictions", "predict", predict,
        "Adjust one prediction of your model, or a list of them.",
        Prediction | list[Prediction], ITEM_RESPONSES, (404, *ITEM_PROBLEMS), ATOMIC,
    ),
    Endpoint(
        "POST", "/v1/layers/{name}/labels", "label", label,
        "Send one label, or a list of them: in any order, however late; ids make retries safe.",
        Label | list[Label], {**ITEM_RESPONSES, 404: ItemAnswer, 410: ItemAnswer}, (404, *ITEM_PROBLEMS), ATOMIC,
    ),
)  # fmt: skip


class ReceiptList(Struct, forbid_unknown_fields=True):
    """Receipts of a client: kind ("ticket" of a prediction, "posting" of a label), id, journal number."""

    receipts: list[Receipt] = []


class AuditAnswer(Struct):
    """Whether the journal confirms every receipt and the server's own audits found no fault.

    ``seq``: the last journal number; ``audited``: when the server last audited itself (seconds since 1970).
    """

    layer: str
    ok: bool
    seq: int
    audited: float | None
    faults: list[str]
    receipts: ReceiptComparison


async def audit_receipts(call: Call) -> Reply:
    call.query()
    name, tenant, service = call.path_param("name"), caller_key(call).tenant, call.service
    body = await call.body(service.limits.body)
    sent = read_object(body) if body else {}
    try:
        given = msgspec.convert(sent, ReceiptList).receipts
    except msgspec.ValidationError as error:
        remedy = 'send {"receipts": [["ticket", "order-17", 1], ["posting", "order-17", 2]]}'
        raise Problem(422, "bad_receipts", explain_validation(str(error), sent)[0], remedy) from None
    if len(given) > service.limits.items:
        what = f"{len(given):,} receipts, the limit is {service.limits.items:,}"
        raise Problem(413, "too_many_items", what, "send them in several calls")
    number, head = await read_layer(call, lambda runtime: (runtime.number, runtime.head))
    found = await asyncio.to_thread(compare_receipts, service.store, number, given)
    confirmed = not (found.missing or found.doubled or found.moved)
    service.log("audit", layer=name, tenant=tenant, receipts=len(given), borne_out=confirmed)
    at, last = service.watch.results.get((tenant, name), (None, None))
    faults = [*(last.faults if last else ()), *([head.stopped] if head.stopped else ())]
    return Reply(encode(AuditAnswer(name, confirmed and not faults, head.seq, at, faults, found)))


AUDIT_ENDPOINTS = (
    Endpoint(
        "POST", "/v1/layers/{name}/audit", "", audit_receipts,
        "Compare your receipts with the journal: which events are missing, doubled or moved.",
        ReceiptList, {200: AuditAnswer}, (400, 404, 408, 413, 415, 422, 503, *KEY_PROBLEMS),
    ),
)  # fmt: skip
