"""What a client can do: each verb as an exchange of requests and replies, shared by sync and async."""

from __future__ import annotations

import itertools
import json
import random
import secrets
import threading
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from gradeq.errors import BadInput, ExpiredTicket, GradeqError, LabelConflict, UnknownTicket

Id = str | int
JsonObject = dict[str, Any]


class Refused(GradeqError):
    """The service refused a whole request; with its HTTP ``status``, ``code`` and ``remedy``."""

    def __init__(self, message: str, status: int = 0, code: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.remedy = status, code, remedy


class Unreachable(GradeqError):
    """No answer within the client's patience; sending the same ``ids`` again is safe."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.ids: tuple[Id, ...] = ()


class Answer(NamedTuple):
    """What happened to one event.

    ``status``: ``served``, ``applied``, ``corrected`` or ``waiting`` when it is in the journal now, ``duplicate``
    when it was before; else ``conflict``, ``unknown``, ``expired`` or ``rejected``, with ``detail`` and ``remedy``.
    ``adjusted`` is the value to use; intervals also have ``lower`` and ``upper``. ``seq`` is the receipt, the event's
    number in the journal. ``stored`` is false when the store could not be written, so nothing will be learned from
    the event; ``learning`` is false while the layer is frozen; ``cold``: a group is new; ``stale``: the labels of
    other servers have not been read for more than 10 seconds.
    """

    id: Id | None = None
    status: str = ""
    adjusted: float | list[float] | None = None
    lower: float | None = None
    upper: float | None = None
    ticket: str | None = None
    stored: bool = True
    learning: bool = True
    cold: bool = False
    detail: str = ""
    remedy: str = ""
    seq: int | None = None
    stale: bool = False

    @classmethod
    def read(cls, reply_json: JsonObject) -> Answer:
        """From JSON; unknown fields of newer servers are ignored."""
        return cls(**{name: reply_json[name] for name in cls._fields if name in reply_json})

    def or_raise(self) -> Answer:
        """The answer if the event is in the journal; else raises the error of the library."""
        if self.status in REFUSALS:
            why = "; ".join(text for text in (self.detail, self.remedy) if text)
            raise REFUSALS[self.status](f"{self.id!r}: {why or self.status}")
        return self


REFUSALS: dict[str, type[GradeqError]] = {
    "conflict": LabelConflict,
    "unknown": UnknownTicket,
    "expired": ExpiredTicket,
    "rejected": BadInput,
}


class Audit(NamedTuple):
    """Receipts compared with the journal.

    ``missing`` and ``doubled`` hold (kind, id); ``moved`` holds (kind, id, number of the receipt, number in the
    journal). ``server`` is the server's own audit of journal, sums and state.
    """

    ok: bool
    compared: int
    missing: list[tuple[str, Id]]
    doubled: list[tuple[str, Id]]
    moved: list[tuple[str, Id, int, int]]
    server: JsonObject


class HttpReply(NamedTuple):
    """An HTTP response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def read(self) -> list[JsonObject]:
        """The JSON objects of the answer, one or a list; raises if the whole request was refused."""
        kind = self.headers.get("content-type", "")
        try:
            answer = json.loads(self.body)
        except ValueError:
            what = f"the answer ({self.status}, {kind or 'no type'}) is not JSON"
            raise Refused(f"{what}; is this the address of a gradeq service?", self.status) from None
        if isinstance(answer, list | dict) and not kind.startswith("application/problem+json"):
            return [answer] if isinstance(answer, dict) else answer
        problem: JsonObject = answer if isinstance(answer, dict) else {}
        title, code, detail, remedy = (str(problem.get(name) or "") for name in ("title", "code", "detail", "remedy"))
        words = "; ".join(text for text in (detail, remedy) if text) or title or "rejected"
        raise Refused(f"{words} ({self.status})", self.status, code, remedy)


class Receipts:
    """Journal numbers of the last ``longest`` acknowledged events of a layer, and counts of all answers by status."""

    def __init__(self, longest: int = 100_000) -> None:
        self.tally: Counter[str] = Counter()
        self.numbers: OrderedDict[tuple[str, Id], int] = OrderedDict()
        self.longest = longest
        self._lock = threading.Lock()

    def take(self, kind: str, answers: Iterable[Answer]) -> None:
        """Count answers of a kind (``ticket`` or ``posting``); those in the journal leave a receipt."""
        with self._lock:
            for answer in answers:
                self.tally[answer.status] += 1
                if answer.seq is None or answer.id is None or not answer.stored:
                    continue
                self.numbers[kind, answer.id] = answer.seq
                if len(self.numbers) > self.longest:
                    self.numbers.popitem(last=False)

    def rows(self) -> list[tuple[str, Id, int]]:
        """Kind, id and number of each receipt."""
        with self._lock:
            return [(kind, id, seq) for (kind, id), seq in self.numbers.items()]


T = TypeVar("T")
RETRY_STATUSES = frozenset({429, 502, 503, 504})  # the server, or a proxy before it, asks to retry later


class Request(NamedTuple):
    """One request; every attempt sends these bytes."""

    method: str
    path: str
    body: bytes | None = None
    params: Mapping[str, str] | None = None


# A step is a request or a wait in seconds; its result is a reply, or the reason why there is none (the request may or
# may not have been processed).
Exchange = Generator[Request | float, HttpReply | str | None, T]


class Patience(NamedTuple):
    """How long to retry: waits double from ``first`` to ``longest`` seconds, ``seconds`` in all.

    Each wait is random between 0 and its limit, so that clients do not all return at once, and never shorter than the
    server's Retry-After.
    """

    seconds: float = 30.0
    first: float = 0.05
    longest: float = 2.0

    def wait(self, attempt: int, asked: float) -> float:
        """Seconds before the next attempt; ``asked``: the server's Retry-After."""
        return max(asked, random.uniform(0.0, min(self.longest, self.first * 2.0 ** min(attempt, 60))))


def send_with_retries(request: Request, patience: Patience) -> Exchange[HttpReply]:
    """The reply to a request, which is repeated byte for byte while the server is unavailable or busy."""
    began = time.monotonic()
    for attempt in itertools.count(1):
        reply = yield request
        asked = 0.0
        if isinstance(reply, HttpReply):
            if reply.status not in RETRY_STATUSES:
                return reply
            with suppress(KeyError, ValueError):  # no such header, or a date
                asked = max(0.0, float(reply.headers["retry-after"]))
        wait = patience.wait(attempt - 1, asked)
        elapsed = time.monotonic() - began
        if elapsed + wait > patience.seconds:
            break
        yield wait
    why = reply or "no reply"
    if isinstance(reply, HttpReply):
        try:
            reply.read()
            why = f"status {reply.status}"
        except Refused as refusal:
            why = str(refusal)
    times = "once" if attempt == 1 else f"{attempt} times"
    raise Unreachable(f"no answer within {elapsed:.3g} s, tried {times}: {why}; sending the same ids again is safe")


ROWS = 1_000  # events, or receipts, in one request
Column = Sequence[object]


class ClientSession:
    """A client's patience, and its receipts by layer."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self.receipts: defaultdict[str, Receipts] = defaultdict(Receipts)


def layers(session: ClientSession, /) -> Exchange[list[JsonObject]]:
    """Every layer with its status."""
    return (yield from _request(session, "GET", "/v1/layers"))


def create(session: ClientSession, /, layer: str, kind: str = "debias", **settings: object) -> Exchange[bool]:
    """Create a layer with the settings of the library, or from ``state=`` (JSON of the library); whether it is new.

    An existing layer with the same settings is left as it is; with other settings the service refuses.
    """
    body = {"kind": kind, **settings}
    if isinstance(state := settings.get("state"), str | bytes):
        body["state"] = json.loads(state)
    (answer,) = yield from _request(session, "PUT", _path(layer), body)
    return bool(answer["created"])


def remove(session: ClientSession, /, layer: str) -> Exchange[None]:
    """Remove a layer."""
    yield from _request(session, "DELETE", _path(layer))


def predict(
    session: ClientSession,
    /,
    layer: str,
    prediction: float | Sequence[float] | None = None,
    *,
    id: Id | None = None,
    groups: Mapping[str, object] | None = None,
    features: Mapping[str, float] | None = None,
    key: Id | None = None,
    weight: float = 1.0,
    a: Id | None = None,
    b: Id | None = None,
    home: float | None = None,
) -> Exchange[Answer]:
    """The value to use instead of a prediction: ``answer.adjusted``. Send the label with ``answer.id``.

    ``a``, ``b`` and ``home`` are the players of a game and its home side, for a layer of kind ``elo``.
    """
    item = {"id": _new_ids(1)[0] if id is None else id, "prediction": prediction, "groups": groups}
    item |= {"features": features, "key": key, "weight": None if weight == 1.0 else weight}
    item |= {"a": a, "b": b, "home": home}
    return (yield from _one(session, layer, "predictions", item))


def predict_many(
    session: ClientSession,
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
) -> Exchange[list[Answer]]:
    """Many predictions as columns of equal length; their answers in the same order, each with its own status.

    ``atomic``: all or none, in one request.
    """
    rows = len(predictions)
    columns = {
        "id": _new_ids(rows) if ids is None else ids,
        "prediction": predictions,
        "groups": _rows_of("groups", groups, rows),
        "features": _rows_of("features", features, rows),
        "key": keys,
        "weight": weights,
    }
    return (yield from _many(session, layer, "predictions", columns, rows, atomic))


def predict_games(
    session: ClientSession,
    /,
    layer: str,
    a: Column,
    b: Column,
    *,
    home: Column | None = None,
    ids: Sequence[Id] | None = None,
    weights: Column | None = None,
    atomic: bool = False,
) -> Exchange[list[Answer]]:
    """Many games of a layer of kind ``elo``, as columns of players; ``adjusted`` is the probability that a wins.

    Their scores are labels: ``label_many(layer, scores, ids=...)``. ``home``: 1 if a is at home, -1 if b is, 0 on
    neutral ground. ``atomic``: all or none, in one request.
    """
    rows = len(a)
    columns = {"id": _new_ids(rows) if ids is None else ids, "a": a, "b": b, "home": home, "weight": weights}
    return (yield from _many(session, layer, "predictions", columns, rows, atomic))


def label(
    session: ClientSession, /, layer: str, label: float, *, id: Id | None = None, ticket: str | None = None
) -> Exchange[Answer]:
    """The label of the prediction with this id, or with this signed ticket."""
    if id is None and ticket is None:
        raise BadInput(NO_ID)
    return (yield from _one(session, layer, "labels", {"id": id, "label": label, "ticket": ticket}))


def label_many(
    session: ClientSession,
    /,
    layer: str,
    labels: Column,
    *,
    ids: Sequence[Id] | None = None,
    tickets: Sequence[str] | None = None,
    atomic: bool = False,
) -> Exchange[list[Answer]]:
    """Many labels with their ids or signed tickets; each has its own status, and none raises."""
    if ids is None and tickets is None:
        raise BadInput(NO_ID)
    columns = {"id": ids, "label": labels, "ticket": tickets}
    return (yield from _many(session, layer, "labels", columns, len(labels), atomic))


def correct(session: ClientSession, /, layer: str, label: float, *, id: Id) -> Exchange[Answer]:
    """Replace the label that was sent before."""
    return (yield from _one(session, layer, "labels", {"id": id, "label": label, "correct": True}))


def control(session: ClientSession, /, layer: str, do: str, **arguments: object) -> Exchange[JsonObject]:
    """``freeze``, ``resume``, ``reset_in_flight`` or ``set_step`` (with its arguments); needs an admin key."""
    (answer,) = yield from _request(session, "POST", f"{_path(layer)}/control", {"do": do, **arguments})
    return answer


def equilibrium(session: ClientSession, /, layer: str) -> Exchange[JsonObject]:
    """Averages before and after, certificate and bound, as ``layer.equilibrium()`` has them."""
    (answer,) = yield from _request(session, "GET", f"{_path(layer)}/equilibrium")
    return answer


def state(session: ClientSession, /, layer: str) -> Exchange[str]:
    """The layer as JSON of the library, for ``gradeq.from_json``; needs an admin key."""
    reply = yield from send_with_retries(Request("GET", f"{_path(layer)}/state"), session.patience)
    reply.read()
    return reply.body.decode("utf-8")


def audit(session: ClientSession, /, layer: str) -> Exchange[Audit]:
    """Compare every receipt of this client with the server's journal; includes the server's own audit."""
    rows = session.receipts[layer].rows()
    faults: dict[str, list[Any]] = {"missing": [], "doubled": [], "moved": []}
    for start in range(0, max(1, len(rows)), ROWS):
        body = {"receipts": rows[start : start + ROWS]}
        (answer,) = yield from _request(session, "POST", f"{_path(layer)}/audit", body)
        compared = answer.pop("receipts", {})
        for name, items in faults.items():
            items += map(tuple, compared.get(name, ()))
    return Audit(bool(answer.get("ok")) and not any(faults.values()), len(rows), **faults, server=answer)


NO_ID = "a label needs the id of its prediction (id=, ids=) or its signed ticket (ticket=, tickets=)"


def _one(session: ClientSession, layer: str, what: str, item: JsonObject) -> Exchange[Answer]:
    (answer,) = yield from _send_items(session, layer, what, _without_none(item), [item.get("id")], {})
    return answer.or_raise()


def _many(
    session: ClientSession, layer: str, what: str, columns: Mapping[str, Column | None], rows: int, atomic: bool
) -> Exchange[list[Answer]]:
    """The answers to columns of events, in requests of at most ``ROWS`` unless it is all or none."""
    present = {name: values for name, values in columns.items() if values is not None}
    for name, values in present.items():
        _check_length(name, values, rows)
    items = [_without_none(dict(zip(present, row, strict=True))) for row in zip(*present.values(), strict=True)]
    ids = [item.get("id") for item in items]
    size, params = (max(1, rows), {"atomic": "true"}) if atomic else (ROWS, {})
    answers: list[Answer] = []
    for start in range(0, rows, size):
        answers += yield from _send_items(session, layer, what, items[start : start + size], ids, params)
    return answers


def _send_items(
    session: ClientSession, layer: str, what: str, body: object, ids: Sequence[Id | None], params: Mapping[str, str]
) -> Exchange[list[Answer]]:
    try:
        replies = yield from _request(session, "POST", f"{_path(layer)}/{what}", body, params)
    except Unreachable as error:
        error.ids = tuple(id for id in ids if id is not None)
        raise
    answers = [Answer.read(one) for one in replies]
    session.receipts[layer].take("ticket" if what == "predictions" else "posting", answers)
    return answers


def _request(
    session: ClientSession, method: str, path: str, body: object = None, params: Mapping[str, str] | None = None
) -> Exchange[list[JsonObject]]:
    try:
        data = None if body is None else json.dumps(body, default=_plain, allow_nan=False).encode("utf-8")
    except (TypeError, ValueError) as error:
        raise BadInput(f"{error}; numbers must be finite; ids and groups are text, numbers or None") from None
    reply = yield from send_with_retries(Request(method, path, data, params or None), session.patience)
    return reply.read()


def _plain(value: object) -> object:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} cannot be written as JSON")


def _path(layer: str) -> str:
    return f"/v1/layers/{quote(layer, safe='')}"


def _new_ids(rows: int) -> list[str]:
    return [secrets.token_hex(12) for _ in range(rows)]


def _rows_of(name: str, columns: Mapping[str, Column] | None, rows: int) -> Column | None:
    if not columns:
        return None
    for column, values in columns.items():
        _check_length(f"{name}[{column!r}]", values, rows)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _check_length(name: str, values: Column, rows: int) -> None:
    if len(values) != rows:
        raise BadInput(f"{name} has {len(values)} values for {rows} rows; give one for each row")


def _without_none(item: JsonObject) -> JsonObject:
    return {name: value for name, value in item.items() if value is not None}
