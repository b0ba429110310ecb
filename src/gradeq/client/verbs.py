"""The verbs of a client, each a talk with the service (see ``talk``): written once for sync and async."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gradeq.client.answers import Answer, Audit, Id, Unreachable
from gradeq.client.receipts import Receipts
from gradeq.client.talk import Patience, Request, Talk, ask
from gradeq.errors import BadInput

ROWS = 1_000  # events, or receipts, in one request
Column = Sequence[Any]


class Book:
    """What a client knows: its patience, and its receipts by layer."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self.receipts: dict[str, Receipts] = {}

    def of(self, layer: str) -> Receipts:
        """The receipts of one layer."""
        return self.receipts.setdefault(layer, Receipts())


def layers(book: Book, /) -> Talk[list[dict[str, Any]]]:
    """Every layer with its health."""
    told = yield from _told(book, "GET", "/v1/layers")
    found: list[dict[str, Any]] = told["layers"] if isinstance(told, dict) else told
    return found


def create(book: Book, /, layer: str, kind: str = "debias", **settings: Any) -> Talk[bool]:
    """Make a layer with the settings of the library, or from ``state=`` (JSON of the library); whether it is new.

    A layer that is there with the same settings is left as it is; with other settings the service refuses.
    """
    body = {"kind": kind, **settings}
    if isinstance(state := settings.get("state"), str | bytes):
        body["state"] = json.loads(state)
    told = yield from _told(book, "PUT", _path(layer), body)
    return bool(told["created"])


def remove(book: Book, /, layer: str) -> Talk[None]:
    """Remove a layer."""
    yield from _told(book, "DELETE", _path(layer))


def predict(
    book: Book,
    /,
    layer: str,
    prediction: float | Sequence[float] | None = None,
    *,
    id: Id | None = None,
    groups: Mapping[str, Any] | None = None,
    features: Mapping[str, float] | None = None,
    key: Id | None = None,
    weight: float = 1.0,
    a: Id | None = None,
    b: Id | None = None,
    home: float | None = None,
) -> Talk[Answer]:
    """The value to use instead of a prediction: ``answer.adjusted``. Keep ``answer.id`` for the label.

    ``a``, ``b`` and ``home`` are the two sides of a game and the ground, for a layer of kind ``elo``.
    """
    item = {"id": _new_id() if id is None else id, "prediction": prediction, "groups": groups}
    item |= {"features": features, "key": key, "weight": None if weight == 1.0 else weight}
    item |= {"a": a, "b": b, "home": home}
    return (yield from _one(book, layer, "predictions", item)).or_raise()


def predict_many(
    book: Book,
    /,
    layer: str,
    predictions: Column,
    *,
    ids: Sequence[Id] | None = None,
    groups: Mapping[str, Column] | None = None,
    features: Mapping[str, Column] | None = None,
    keys: Column | None = None,
    weights: Column | None = None,
    atomic: bool = False,
) -> Talk[list[Answer]]:
    """Many predictions as columns of equal length: their answers in the same order, each with a status of its own.

    ``atomic``: all or none, in one request.
    """
    rows = len(predictions)
    columns = {
        "id": ids if ids is not None else [_new_id() for _ in range(rows)],
        "prediction": predictions,
        "groups": _rows_of("groups", groups, rows),
        "features": _rows_of("features", features, rows),
        "key": keys,
        "weight": weights,
    }
    return (yield from _many(book, layer, "predictions", _items(columns, rows), atomic))


def predict_games(
    book: Book,
    /,
    layer: str,
    a: Column,
    b: Column,
    *,
    home: Column | None = None,
    ids: Sequence[Id] | None = None,
    weights: Column | None = None,
    atomic: bool = False,
) -> Talk[list[Answer]]:
    """Many games of a layer of kind ``elo``, as columns of players: how probably a wins each, in ``adjusted``.

    Their scores are labels: ``label_many(layer, scores, ids=...)``. ``home``: 1 where a is at home, 0 on neutral
    ground, -1 where b is. ``atomic``: all or none, in one request.
    """
    rows = len(a)
    columns = {
        "id": ids if ids is not None else [_new_id() for _ in range(rows)],
        "a": a,
        "b": b,
        "home": home,
        "weight": weights,
    }
    return (yield from _many(book, layer, "predictions", _items(columns, rows), atomic))


def label(
    book: Book, /, layer: str, label: float, *, id: Id | None = None, ticket: str | None = None
) -> Talk[Answer]:
    """The truth for the prediction served under this id, or for a signed ticket of its answer."""
    return (yield from _label(book, layer, label, id, ticket, False)).or_raise()


def label_many(
    book: Book,
    /,
    layer: str,
    labels: Column,
    *,
    ids: Sequence[Id] | None = None,
    tickets: Sequence[str] | None = None,
    atomic: bool = False,
) -> Talk[list[Answer]]:
    """Many labels with their ids or signed tickets; each has a status of its own, and none is raised."""
    if ids is None and tickets is None:
        raise BadInput(NO_ID)
    rows = len(labels)
    items = _items({"id": ids, "label": labels, "ticket": tickets}, rows)
    return (yield from _many(book, layer, "labels", items, atomic))


def correct(book: Book, /, layer: str, label: float, *, id: Id) -> Talk[Answer]:
    """Another label instead of the one that came before: the old posting is taken back, the new one entered."""
    return (yield from _label(book, layer, label, id, None, True)).or_raise()


def control(book: Book, /, layer: str, do: str, **arguments: Any) -> Talk[dict[str, Any]]:
    """``freeze``, ``resume``, ``reset_in_flight`` or ``set_step`` (with its arguments); needs an admin key."""
    told: dict[str, Any] = yield from _told(
        book, "POST", f"{_path(layer)}/control", {"do": do, **arguments}
    )
    return told


def equilibrium(book: Book, /, layer: str) -> Talk[dict[str, Any]]:
    """Averages before and after, certificate and bound, as ``layer.equilibrium()`` of the library has them."""
    told: dict[str, Any] = yield from _told(book, "GET", f"{_path(layer)}/equilibrium")
    return told


def state(book: Book, /, layer: str) -> Talk[str]:
    """The layer as JSON of the library, for ``gradeq.from_json``; needs an admin key."""
    reply = yield from ask(Request("GET", f"{_path(layer)}/state"), book.patience)
    reply.read()
    return reply.body.decode("utf-8")


def audit(book: Book, /, layer: str) -> Talk[Audit]:
    """Let the server look for every receipt of this client in its journal, and audit itself."""
    rows = book.of(layer).rows()
    told: dict[str, Any] = {}
    found: dict[str, list[Any]] = {"missing": [], "doubled": [], "moved": []}
    for start in range(0, max(1, len(rows)), ROWS):
        body = {"receipts": rows[start : start + ROWS]}
        told = yield from _told(book, "POST", f"{_path(layer)}/audit", body)
        for name, kept in found.items():
            kept += [tuple(row) for row in told.get("receipts", {}).get(name, ())]
    ok = bool(told.get("ok")) and not any(found.values())
    server = {name: value for name, value in told.items() if name != "receipts"}
    return Audit(ok, len(rows), found["missing"], found["doubled"], found["moved"], server)


NO_ID = (
    "a label needs the id of its prediction (id=, ids=) or its signed ticket (ticket=, tickets=)"
)


def _label(
    book: Book, layer: str, label: float, id: Id | None, ticket: str | None, again: bool
) -> Talk[Answer]:
    if id is None and ticket is None:
        raise BadInput(NO_ID)
    item = {"id": id, "label": label, "ticket": ticket, "correct": again or None}
    return (yield from _one(book, layer, "labels", item))


def _one(book: Book, layer: str, what: str, item: Mapping[str, Any]) -> Talk[Answer]:
    (answer,) = yield from _sent(book, layer, what, _without_none(item), [item.get("id")], {})
    return answer


def _many(
    book: Book, layer: str, what: str, items: list[dict[str, Any]], atomic: bool
) -> Talk[list[Answer]]:
    """The answers to a list of events, in requests of so many rows."""
    answers: list[Answer] = []
    ids = [item.get("id") for item in items]
    size = max(1, len(items)) if atomic else ROWS
    for start in range(0, len(items), size):
        part = items[start : start + size]
        given = {"atomic": "true"} if atomic else {}
        answers += yield from _sent(book, layer, what, part, ids, given)
    return answers


def _sent(
    book: Book, layer: str, what: str, body: Any, ids: Sequence[Any], given: Mapping[str, str]
) -> Talk[list[Answer]]:
    """Send events and keep the receipts of what is acknowledged."""
    try:
        told = yield from _told(book, "POST", f"{_path(layer)}/{what}", body, given)
    except Unreachable as error:
        error.ids = tuple(id for id in ids if id is not None)
        raise
    answers = [Answer.read(one) for one in (told if isinstance(told, list) else [told])]
    book.of(layer).take("ticket" if what == "predictions" else "posting", answers)
    return answers


def _told(
    book: Book, method: str, path: str, body: Any = None, given: Mapping[str, str] | None = None
) -> Talk[Any]:
    data = None if body is None else _encoded(body)
    reply = yield from ask(Request(method, path, data, given or None), book.patience)
    return reply.read()


def _encoded(body: Any) -> bytes:
    try:
        return json.dumps(body, default=_plain, allow_nan=False).encode("utf-8")
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"{error}; numbers are finite, and ids and groups are texts, numbers or None"
        ) from None


def _plain(value: Any) -> Any:
    """Numbers and columns of numpy as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} has no form in JSON")


def _path(layer: str) -> str:
    return f"/v1/layers/{quote(layer, safe='')}"


def _new_id() -> str:
    return secrets.token_hex(12)


def _rows_of(name: str, columns: Mapping[str, Column] | None, rows: int) -> Column | None:
    """One mapping for each row out of a mapping of columns."""
    if not columns:
        return None
    for column, values in columns.items():
        _check_length(f"{name}[{column!r}]", values, rows)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _items(columns: Mapping[str, Column | None], rows: int) -> list[dict[str, Any]]:
    """One event for each row; what is absent or None is left out."""
    given = {name: values for name, values in columns.items() if values is not None}
    for name, values in given.items():
        _check_length(name, values, rows)
    return [
        _without_none(dict(zip(given, row, strict=True)))
        for row in zip(*given.values(), strict=True)
    ]


def _check_length(name: str, values: Column, rows: int) -> None:
    if len(values) != rows:
        raise BadInput(f"{name} has {len(values)} values for {rows} rows; give one for each row")


def _without_none(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if value is not None}
