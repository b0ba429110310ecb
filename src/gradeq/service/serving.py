"""Predictions that leave nothing in the store: with signed tickets, or because the store cannot write."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from gradeq.errors import GradeqError
from gradeq.service.bodies import id_text, payload_of
from gradeq.service.items import Answer, Prediction
from gradeq.service.live import Live
from gradeq.service.signing import signed
from gradeq.service.store.store import Store
from gradeq.service.wording import in_json

PATIENCE = 0.05  # seconds


def preview_all(
    live: Live,
    items: Sequence[Prediction],
    store: Store,
    now: float,
    why: str = "",
    stale: bool = False,
) -> list[Answer]:
    """Serve items from the state in memory, which stays as it is.

    ``why``: why the store cannot write; their labels will be unknown then, and the answers say so. Signed tickets are
    served from what is committed: those of a state that a crash takes back would be refused. Only where a commit
    takes longer than usual they do not wait for it.
    """
    committed = live.signed and live.committing.acquire(timeout=PATIENCE)
    try:
        with live.layer._lock:
            answers = [_previewed(live, item, store, now, why) for item in items]
    finally:
        if committed:
            live.committing.release()
    for answer in answers if stale else ():
        answer.stale = True
    return answers


def _previewed(live: Live, item: Prediction, store: Store, now: float, why: str) -> Answer:
    id = item.id if item.id is not None else f"gq-{secrets.token_hex(8)}"
    layer: Any = live.layer
    try:
        args, given = live.where(item)
        ticket = layer.preview(*args, **given)
    except GradeqError as error:
        return Answer(id=id, status="rejected", detail=in_json(str(error)))
    if not live.signed:
        return live.answer(id, ticket, status="served", stored=False, detail=why or None)
    own = (id_text(id), now, payload_of(item), ticket)
    text = signed(store.secret, live.number, *own, live.head)
    return live.answer(id, ticket, status="served", ticket=text)
