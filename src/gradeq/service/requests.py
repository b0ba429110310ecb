"""One request: the caller, the validated input, the reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import ClientDisconnect

from gradeq.service.problems import Problem, expected_type
from gradeq.service.schemas import ItemAnswer, Label, Prediction
from gradeq.service.store.database import JsonObject

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

    from gradeq.service.app import Service
    from gradeq.service.auth import ApiKey
    from gradeq.service.runtime import LayerRuntime

JSON, PROBLEM = "application/json", "application/problem+json"
HTML, TEXT = "text/html; charset=utf-8", "text/plain; version=0.0.4; charset=utf-8"
SchemaType = Any  # a type, a union or an annotated type, of which msgspec makes a schema
DRAIN_FACTOR = 4  # times the largest body are read and thrown away, so that the caller gets the answer
encode = msgspec.json.Encoder().encode
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reply:
    """A response."""

    body: bytes = b""
    status: int = 200
    media: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamedReply:
    """A response that goes on until the client disconnects."""

    chunks: AsyncIterator[bytes]
    media: str = "text/event-stream"


@dataclass(slots=True)
class Call:
    """One call, with its key checked."""

    service: Service
    scope: Scope
    receive: Receive
    key: ApiKey | None

    @property
    def caller(self) -> ApiKey:
        assert self.key is not None
        return self.key

    @property
    def layer(self) -> str:
        return str(self.scope["path_params"]["name"])

    async def read_layer(self, read: Callable[[LayerRuntime], T]) -> T:
        """Read something of the layer in a thread, while the layer is locked."""
        desk, tenant, name = self.service.desk, self.caller.tenant, self.layer

        def locked() -> T:
            with desk.reading(tenant, name) as runtime:
                return read(runtime)

        return await asyncio.to_thread(locked)

    def log(self, event: str, **values: object) -> None:
        where = {"layer": self.layer, "tenant": self.caller.tenant, "key": self.caller.prefix}
        self.service.log(event, "info", **values, **where)

    def header(self, name: bytes) -> str | None:
        return header(self.scope, name)

    def query(self, **known: str) -> dict[str, str]:
        """The query parameters, with these names and defaults; other names are rejected."""
        if not self.scope["query_string"]:
            return known
        for name, value in parse_qsl(self.scope["query_string"].decode("latin-1"), True):
            if name not in known:
                remedy = f"remove it; this call takes {', '.join(known) or 'none'}"
                raise Problem(400, "unknown_parameter", f"unknown query parameter {name[:80]!r}", remedy)
            known[name] = value
        return known

    async def body(self, most: int) -> bytes:
        """The whole body; one that is too large or too slow is rejected."""
        encoding = header(self.scope, b"content-encoding")
        if encoding not in (None, "identity"):
            what = f"the body has Content-Encoding {encoding[:40]}"
            raise Problem(415, "compressed", what, "send it uncompressed")
        size = int(header(self.scope, b"content-length") or 0)
        if size > DRAIN_FACTOR * most:
            raise _too_large(size, most)
        seconds, parts, size, more = self.service.limits.body_within, [], 0, True
        try:
            async with asyncio.timeout(seconds):
                while more and size <= DRAIN_FACTOR * most:
                    message = await self.receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    part, more = message.get("body", b""), message.get("more_body", False)
                    size += len(part)
                    if size <= most:
                        parts.append(part)
        except TimeoutError:
            what = f"the body did not arrive within {seconds:g} seconds"
            raise Problem(408, "too_slow", what, "send it again", {"Connection": "close"}) from None
        if size > most:
            raise _too_large(size, most)
        return b"".join(parts)


Handler = Callable[[Call], Awaitable[Reply | StreamedReply]]


@dataclass(frozen=True)
class Endpoint:
    """A method and path, the scope a key needs ("" for any key, None for no key), and the types.

    ``responses``: the type of each answer by status; ``problems``: other statuses, answered with problem details.
    """

    method: str
    path: str
    scope: str | None
    handler: Handler  # its docstring is the summary in the OpenAPI document
    responses: Mapping[int, SchemaType] = field(default_factory=dict)
    problems: tuple[int, ...] = ()
    request: SchemaType = None
    parameters: Mapping[str, SchemaType] = field(default_factory=dict)
    media: str = JSON
    documented: bool = True  # in the OpenAPI document
    allows_cookie: bool = False  # whether a signed-in browser needs no key


KEY_PROBLEMS = (401, 403, 429)
READ_PROBLEMS = (400, 404, *KEY_PROBLEMS)
BODY_PROBLEMS = (400, 408, 409, 413, 415, 422, 503, *KEY_PROBLEMS)


def header(scope: Scope, name: bytes) -> str | None:
    for known, value in scope["headers"]:
        if known == name:
            return str(value, "latin-1")
    return None


def _too_large(size: int, most: int) -> Problem:
    what = f"the body has {size:,} bytes or more, the limit is {most:,}"
    return Problem(413, "body_too_large", what, "send fewer items per call", {"Connection": "close"})


Item = TypeVar("Item", bound=Prediction | Label)
MAX_ID_BYTES = 255  # bytes
MAX_DEPTH = 32
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class ItemReader(Generic[Item]):
    """Reads one item or a list of them."""

    def __init__(self, item: type[Item]) -> None:
        self.item = item
        self._one = msgspec.json.Decoder(item)
        self._many = msgspec.json.Decoder(list[item])  # type: ignore[valid-type]

    def read(self, body: bytes, most: int) -> tuple[Sequence[Item | ItemAnswer], bool]:
        """The items in order, invalid ones as answers that say why; and whether it was a single object."""
        single = body[:64].lstrip()[:1] == b"{"
        items: list[Any] = []
        try:
            items = [self._one.decode(body)] if single else self._many.decode(body)
            quick = _has_unique_names(body, items) and not any(
                type(item.id) is str and 4 * len(item.id) > MAX_ID_BYTES and len(item.id.encode()) > MAX_ID_BYTES
                for item in items
            )
        except UNREADABLE:
            quick = False
        if not quick:
            sent = parse_json(body)
            single = isinstance(sent, dict)
            if not isinstance(sent, (dict, list)):
                remedy = "send one object or a list of objects"
                raise Problem(400, "not_items", f"the body is {_json_type(sent)}", remedy)
            items = [sent] if isinstance(sent, dict) else sent
        if len(items) > most:
            what = f"{len(items):,} items in one call"
            raise Problem(413, "too_many_items", what, f"send at most {most:,} per call")
        return items if quick else [self._convert(one) for one in items], single

    def _convert(self, sent: object) -> Item | ItemAnswer:
        id = sent.get("id") if isinstance(sent, dict) else None
        if not isinstance(id, (str, int)) or isinstance(id, bool):
            id = None
        elif len(str(id).encode()) > MAX_ID_BYTES:
            return rejected_item(None, f"an id of {len(str(id).encode()):,} bytes", f"give at most {MAX_ID_BYTES}")
        try:
            return msgspec.convert(sent, self.item)
        except msgspec.ValidationError as error:
            return rejected_item(id, *explain_validation(str(error), sent))


def rejected_item(id: str | int | None, detail: str, remedy: str) -> ItemAnswer:
    return ItemAnswer(id=id, status="rejected", detail=detail, remedy=remedy)


def read_struct(body: bytes, kind: type[T], code: str, remedy: str = "") -> T:
    """A JSON object as a struct; ``code`` and ``remedy`` are for the caller if it is invalid."""
    sent = read_object(body)
    try:
        return msgspec.convert(sent, kind)
    except msgspec.ValidationError as error:
        detail, usual = explain_validation(str(error), sent)
        raise Problem(422, code, detail, remedy or usual) from None


def read_object(body: bytes) -> JsonObject:
    sent = parse_json(body)
    if not isinstance(sent, dict):
        raise Problem(400, "not_an_object", f"the body is {_json_type(sent)}", "send one JSON object")
    return sent


def parse_json(body: bytes) -> object:
    """Plain values from JSON; rejects repeated names, deep nesting, very long numbers and invalid text."""
    try:
        sent: object = json.loads(body, object_pairs_hook=_unique_names)
        json.dumps(sent, ensure_ascii=False).encode()
        if _depth(sent) > MAX_DEPTH:
            raise RecursionError
    except RecursionError:
        what = f"lists and objects are nested more than {MAX_DEPTH} deep"
        raise Problem(400, "nested_too_deeply", what, f"nest at most {MAX_DEPTH} deep") from None
    except UnicodeError:
        raise Problem(400, "not_text", "the body is not valid UTF-8", "encode the body as UTF-8") from None
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            what = f"the body is not JSON: {error.msg} at character {error.pos}"
            raise Problem(400, "not_json", what, "send JSON (RFC 8259)") from None
        raise Problem(400, "number_too_long", "a whole number is too long", "send at most 64 bits") from None
    return sent


def _unique_names(pairs: list[tuple[str, object]]) -> JsonObject:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise Problem(400, "duplicate_name", f"{twice[:80]!r} occurs twice in one object", "name each value once")
    return dict(pairs)


def _has_unique_names(body: bytes, items: Sequence[object]) -> bool:
    """Whether no object can hold a name twice: there are no more colons than names.

    A repeated name, or a name with its default value, changes the number of colons when items are encoded again;
    then names are counted. Escapes may hide a colon and texts may contain one; the slow path decides those.
    """
    colons = body.count(b":")
    if b"\\" not in body and colons == encode(items).count(b":"):
        return True
    return colons == _count_names(msgspec.json.decode(body))


def _count_names(value: object) -> int:
    if type(value) is list:
        return sum(map(_count_names, value))
    return len(value) + sum(map(_count_names, value.values())) if type(value) is dict else 0


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, (dict, list)) else 0


def _json_type(value: object) -> str:
    names = {type(None): "null", bool: "true or false", str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")


def explain_validation(message: str, sent: object) -> tuple[str, str]:
    what, _, where = message.replace("`", "").partition(" - at $")
    field = where.strip(".").partition("[")[0]
    if what.startswith("Object contains unknown field"):
        name = what.rpartition("field ")[2]
        return f"unknown field {name[:80]!r}", "remove it, or check its spelling"
    if what.startswith("Object missing required field"):
        return f"{what.rpartition(' ')[2]} is missing", "send it with the item"
    value = json.dumps(sent.get(field) if isinstance(sent, dict) else sent)
    value = value if len(value) <= 60 else f"{value[:57]}..."
    return f"{field or 'the item'} is {value}", expected_type(what)
