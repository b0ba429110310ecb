"""Endpoints of predictions, labels and receipts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Annotated

from msgspec import Meta, Struct

from gradeq.service.audit import Receipt, ReceiptComparison, compare_receipts
from gradeq.service.layer_endpoints import LAYER
from gradeq.service.problems import Problem, split_remedy
from gradeq.service.requests import (
    BODY_PROBLEMS,
    Call,
    Endpoint,
    Item,
    ItemReader,
    Reply,
    encode,
    read_struct,
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
    """Adjust one prediction of your model, or a list of them."""
    return await _process_items(call, PREDICTIONS, call.service.desk.predict)


async def label(call: Call) -> Reply:
    """Send one label, or a list of them: in any order, however late; ids make retries safe."""
    return await _process_items(call, LABELS, call.service.desk.label)


async def _process_items(call: Call, reader: ItemReader[Item], ask: Ask[Item]) -> Reply:
    service, key = call.service, call.caller
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
        arguments = (key.tenant, call.layer, items, key.number, atomic)
        if len(items) > INLINE_ITEMS or (key.tenant, call.layer) not in service.desk.layers.runtimes:
            work = await asyncio.to_thread(lambda: ask(*arguments))
        else:
            work = ask(*arguments)
        answers = await service.bridge.wait(work)
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
    """Compare your receipts with the journal: which events are missing, doubled or moved."""
    service = call.service
    remedy = 'send {"receipts": [["ticket", "order-17", 1], ["posting", "order-17", 2]]}'
    body = await call.body(service.limits.body) or b"{}"
    receipts = read_struct(body, ReceiptList, "bad_receipts", remedy).receipts
    if len(receipts) > service.limits.items:
        what = f"{len(receipts):,} receipts, the limit is {service.limits.items:,}"
        raise Problem(413, "too_many_items", what, "send them in several calls")
    number, head = await call.read_layer(lambda runtime: (runtime.number, runtime.head))
    compared = await asyncio.to_thread(compare_receipts, service.store, number, receipts)
    confirmed = not (compared.missing or compared.doubled or compared.moved)
    call.log("audit", receipts=len(receipts), borne_out=confirmed)
    at, last = service.watch.results.get((call.caller.tenant, call.layer), (None, None))
    faults = [*(last.faults if last else ()), *([head.stopped] if head.stopped else ())]
    return Reply(encode(AuditAnswer(call.layer, confirmed and not faults, head.seq, at, faults, compared)))


ITEM_RESPONSES = {200: ItemAnswer | list[ItemAnswer], 409: ItemAnswer, 422: ItemAnswer | list[ItemAnswer]}
LABEL_RESPONSES = {**ITEM_RESPONSES, 404: ItemAnswer, 410: ItemAnswer}
PREDICTION_BODY, LABEL_BODY = Prediction | list[Prediction], Label | list[Label]
PROBLEMS = (404, *BODY_PROBLEMS)
ENDPOINTS = (
    Endpoint("POST", f"{LAYER}/predictions", "predict", predict, ITEM_RESPONSES, PROBLEMS, PREDICTION_BODY, ATOMIC),
    Endpoint("POST", f"{LAYER}/labels", "label", label, LABEL_RESPONSES, PROBLEMS, LABEL_BODY, ATOMIC),
    Endpoint("POST", f"{LAYER}/audit", "", audit_receipts, {200: AuditAnswer}, PROBLEMS, ReceiptList),
)
