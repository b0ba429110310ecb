"""Predictions and labels: one object or a list, answered one by one in the same order."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Annotated, Any

from msgspec import Meta

from gradeq.service.calls import Call, Endpoint, Reply, encode
from gradeq.service.gate import spend
from gradeq.service.items import GOOD, Answer, Label, Prediction, not_done
from gradeq.service.problems import split_remedy
from gradeq.service.reading import Reader, rejected

STATUS = {"conflict": 409, "unknown": 404, "expired": 410, "rejected": 422}
AT_ONCE = 200  # items that may be previewed, or queued, while other calls wait
PREDICTIONS, LABELS = Reader(Prediction), Reader(Label)
ATOMIC = {"atomic": Annotated[bool, Meta(description="All items or none: 422 if one is refused.")]}


async def predict(call: Call) -> Reply:
    """Predictions of a model in, what to serve out."""
    return await _answered(call, PREDICTIONS, call.service.desk.predict)


async def label(call: Call) -> Reply:
    """Labels in, what became of each out."""
    return await _answered(call, LABELS, call.service.desk.label)


async def _answered(call: Call, reader: Reader[Any], ask: Any) -> Reply:
    service, key = call.service, call.key
    assert key is not None
    atomic = call.flag("atomic")
    given, alone = reader.read(await call.body(service.limits.body), service.limits.items)
    if len(given) > 1:
        spend(service, key, len(given) - 1)
    if atomic:
        given = _each_once(given)
    items = [item for item in given if type(item) is not Answer]
    answers: list[Answer]
    if len(items) == len(given) or not atomic:
        asked = (key.tenant, call.part("name"), items, key.number, atomic)
        waiting: Future[list[Answer]]
        if len(items) > AT_ONCE or service.desk.layers.known(asked[:2]) is None:
            waiting = await asyncio.to_thread(lambda: ask(*asked))
        else:
            waiting = ask(*asked)
        answers = await service.bell.wait(waiting)
        if len(items) < len(given):
            following = iter(answers)
            answers = [one if type(one) is Answer else next(following) for one in given]
    else:
        answers = [one if type(one) is Answer else not_done(one.id) for one in given]
    for answer in answers:
        if answer.status == "rejected" and answer.remedy is None and answer.detail is not None:
            answer.detail, answer.remedy = split_remedy(answer.detail)
    for status, count in Counter(answer.status for answer in answers).items():
        service.metrics.items.add(count, kind=reader.item.__name__.lower(), status=status)
    if alone:
        return Reply(encode(answers[0]), STATUS.get(answers[0].status, 200))
    refused = atomic and any(answer.status not in GOOD for answer in answers)
    return Reply(encode(answers), 422 if refused else 200)


def _each_once(given: Sequence[Any]) -> list[Any]:
    """Refuse an id that stands twice in an atomic call: what the second does depends on the first being done."""
    seen: set[tuple[Any, ...]] = set()
    found = []
    for item in given:
        known = () if type(item) is Answer else (item.id, getattr(item, "ticket", None))
        if known in seen and known not in ((), (None, None)):
            item = rejected(item.id, f"{item.id!r} stands twice in an atomic call", "send it once")
        seen.add(known)
        found.append(item)
    return found


BOTH = (400, 401, 403, 408, 413, 415, 429, 503)
ONE = {200: Answer | list[Answer], 409: Answer, 422: Answer | list[Answer]}

ENDPOINTS = (
    Endpoint(
        "POST", "/v1/layers/{name}/predictions", "predict", predict,
        "Ask what to serve for one prediction of your model, or for a list of them.",
        Prediction | list[Prediction], ONE, (404, *BOTH), ATOMIC,
    ),
    Endpoint(
        "POST", "/v1/layers/{name}/labels", "label", label,
        "Bring one label, or a list of them: in any order, as late as they come, twice if in doubt.",
        Label | list[Label], {**ONE, 404: Answer, 410: Answer}, (404, *BOTH), ATOMIC,
    ),
)  # fmt: skip
