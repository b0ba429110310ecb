"""Layers: made, listed, looked at, controlled, removed."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, ValidationError, convert

from gradeq.service.bodies import plain_in
from gradeq.service.calls import Call, Endpoint, Reply, encode
from gradeq.service.keys import Key
from gradeq.service.moving import exported
from gradeq.service.problems import Problem
from gradeq.service.reading import explained, read_object
from gradeq.service.shown import Reached, Shown, all_standing, reached, standing
from gradeq.service.store.rows import Entry
from gradeq.service.store.schema import KINDS

if TYPE_CHECKING:
    from gradeq.service.app import Service
    from gradeq.service.live import Live

NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
CONTROLS = (
    'send {"do": "freeze"}, "resume" or "reset_in_flight", or {"do": "set_step", "eta": 0.02}'
)
PAGE = 1_000  # rows of the journal in one answer
T = TypeVar("T")


class Settings(Struct):
    """The settings of a layer under their Python names, with its kind: {"kind": "debias", "groups": ["region"]}.

    ``keyed``: a state for each key. ``tickets``: "signed" for tickets that come back with the labels. ``max_names``:
    groups, keys or players that are kept apart. ``state``: what ``to_json`` of the library or ``--state`` of the
    command line wrote, to go on from there; it knows its kind and settings. Whatever else the class of the layer
    takes is taken here too.
    """

    kind: (
        Literal["conformal", "debias", "elo", "ensemble", "interval", "quantile", "quantiles"]
        | None
    ) = None
    eta: float | str | None = None
    groups: list[str] | None = None
    keyed: bool = False
    tickets: Literal["stored", "signed"] = "stored"
    max_names: int = 10_000
    state: dict[str, Any] | None = None


class Made(Struct):
    """Whether the layer is new; false: it was there with the same settings."""

    layer: str
    created: bool


class Removed(Struct):
    """The layer is out of use and its name free; its journal stays in the store."""

    layer: str
    removed: bool = True


class Control(Struct, forbid_unknown_fields=True):
    """What an operator asks for: {"do": "freeze"}, or {"do": "set_step", "eta": 0.02}."""

    do: Literal["freeze", "resume", "reset_in_flight", "set_step"]
    eta: float | None = None


class Controlled(Struct):
    """It was done and journalled under this number."""

    layer: str
    done: str
    seq: int


class Undo(Struct, forbid_unknown_fields=True):
    """Whose labels are taken back: {"key": "abcdefgh"}, the prefix of an API key of your tenant."""

    key: str


class Undone(Struct):
    """Labels of the key that were taken back, that gave way to the one before, and that were ``left`` as they are.

    ``left``: somebody else has corrected them since, or they taught nothing (they came during a freeze, or were ties
    that the layer drops). Done before, the same again takes nothing back, and ``left`` is the same.
    """

    layer: str
    key: str
    taken_back: int
    restored: int
    left: int


class Row(Struct):
    """One row of a journal: what was served or learned, when, and with which key (its number)."""

    seq: int
    kind: str
    id: str | int | None
    at: float
    key: int
    body: Any


class Journal(Struct):
    """Rows of a journal in order; ``after`` is where the next page begins, null after the last."""

    rows: list[Row]
    after: int | None


async def make(call: Call) -> Reply:
    """A new layer, or the same again."""
    name = call.part("name")
    call.query()
    if not re.fullmatch(NAME, name):
        raise Problem(
            422, "bad_name", f"the layer's name {name[:120]!r}",
            "give 1 to 100 letters, digits, points, hyphens and underscores, a letter or digit first",
        )  # fmt: skip
    spec = read_object(await call.body(call.service.limits.settings_body))
    key, service = holder(call), call.service
    state = spec.pop("state", None)
    text = state if isinstance(state, str) or state is None else json.dumps(state)
    created = await asyncio.to_thread(_made, service, key.tenant, name, spec, text)
    service.log("layer", layer=name, tenant=key.tenant, created=created, key=key.prefix)
    return Reply(encode(Made(name, created)), 201 if created else 200)


async def remove(call: Call) -> Reply:
    """A layer out of use."""
    name, key = call.part("name"), holder(call)
    call.query()
    await asyncio.to_thread(call.service.desk.remove, key.tenant, name)
    call.service.log("layer", layer=name, tenant=key.tenant, removed=True, key=key.prefix)
    return Reply(encode(Removed(name)))


async def control(call: Call) -> Reply:
    """What an operator asks for."""
    name, key = call.part("name"), holder(call)
    call.query()
    body = read_object(await call.body(100_000))
    try:
        asked = convert(body, Control)
    except ValidationError as error:
        raise Problem(422, "bad_control", explained(str(error), body)[0], CONTROLS) from None
    given = {} if asked.eta is None else {"eta": asked.eta}
    if (asked.do == "set_step") != bool(given):
        step = "no eta" if asked.eta is None else f"eta {asked.eta:g}"
        raise Problem(422, "bad_control", f'do is "{asked.do}" with {step}', CONTROLS)
    if not await looked(call, lambda live: hasattr(live.layer, asked.do)):
        raise Problem(
            422,
            "bad_control",
            f"a layer of this kind has no {asked.do}",
            "make a new one with other settings",
        )
    desk = call.service.desk
    seq = await call.service.bell.wait(desk.control(key.tenant, name, asked.do, given, key.number))
    call.service.log("control", layer=name, tenant=key.tenant, done=asked.do, key=key.prefix)
    return Reply(encode(Controlled(name, asked.do, seq)))


async def undo(call: Call) -> Reply:
    """All labels of a key, taken back."""
    name, key, service = call.part("name"), holder(call), call.service
    call.query()
    body = read_object(await call.body(100_000))
    try:
        prefix = convert(body, Undo).key
    except ValidationError as error:
        raise Problem(422, "bad_undo", *explained(str(error), body)) from None
    await service.fresh_keys()
    whose = service.ring.named(prefix)
    if whose is None or whose.tenant != key.tenant:
        raise Problem(
            404, "no_such_key", f"no key has the prefix {prefix[:20]!r}", "`gradeq keys list` names them"
        )  # fmt: skip
    desk = service.desk
    done = await asyncio.to_thread(desk.undo, key.tenant, name, whose.number, key.number)
    told = {"undone": whose.prefix, **done._asdict(), "key": key.prefix}
    service.log("undo", layer=name, tenant=key.tenant, **told)
    return Reply(encode(Undone(name, whose.prefix, *done)))


async def listed(call: Call) -> Reply:
    """All layers of the tenant."""
    call.query()
    found = await asyncio.to_thread(all_standing, call.service.desk, holder(call).tenant)
    return Reply(encode(found))


async def shown(call: Call) -> Reply:
    """Where one layer stands."""
    call.query()
    return Reply(encode(await looked(call, standing)))


async def equilibrium(call: Call) -> Reply:
    """What one layer has reached."""
    call.query()
    return Reply(encode(await looked(call, reached)))


async def state(call: Call) -> Reply:
    """The layer as the library saves it."""
    call.query()
    row = await looked(call, lambda live: live.row)
    text = await asyncio.to_thread(exported, call.service.store, row)
    return Reply(text.encode())


async def journal(call: Call) -> Reply:
    """A page of the journal."""
    asked = call.query(after="0", limit=str(PAGE))
    after, limit = (_whole(asked, name) for name in ("after", "limit"))
    number = await looked(call, lambda live: live.number)
    entries, limit = call.service.store.entries, min(limit, PAGE)
    rows = await asyncio.to_thread(lambda: list(islice(entries(number, after), limit)))
    found = [_row(entry) for entry in rows]
    following = found[-1].seq if found and len(found) == limit else None
    return Reply(encode(Journal(found, following)))


def holder(call: Call) -> Key:
    """The key of a call that needs one."""
    assert call.key is not None
    return call.key


async def looked(call: Call, look: Callable[[Live], T]) -> T:
    """Something of a layer, computed beside the event loop while nothing is written to the layer."""
    tenant, name, desk = holder(call).tenant, call.part("name"), call.service.desk

    def there() -> T:
        with desk.reading(tenant, name) as live:
            return look(live)

    return await asyncio.to_thread(there)


def _made(
    service: Service, tenant: str, name: str, spec: dict[str, Any], state: str | None
) -> bool:
    if name not in (known := service.desk.names(tenant)) and len(known) >= service.limits.layers:
        raise Problem(
            422, "too_many_layers", f"there are {service.limits.layers:,} layers, the limit",
            "remove one, or use one layer with keyed set to true",
        )  # fmt: skip
    return service.desk.create(tenant, name, spec, state)


def _row(entry: Entry) -> Row:
    id = plain_in(entry.id.encode())
    return Row(entry.seq, KINDS[entry.kind], id, entry.at, entry.author, plain_in(entry.body))


def _whole(asked: dict[str, str], name: str) -> int:
    text = asked[name]
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Problem(
            400, "bad_parameter", f"{name} is {text[:40]!r}", "give a whole number from 0 on"
        )
    return int(text)


ALWAYS = (401, 403, 429)
LATER = Annotated[int, Meta(ge=0, description="Rows after this number of the journal.")]
MANY = Annotated[int, Meta(ge=0, le=PAGE, description="At most so many rows.")]

ENDPOINTS = (
    Endpoint(
        "GET", "/v1/layers", "", listed, "List the layers of your tenant.",
        gives={200: list[Shown]}, refuses=(400, *ALWAYS), cookie=True,
    ),
    Endpoint(
        "PUT", "/v1/layers/{name}", "admin", make, "Make a layer; the same again changes nothing.",
        Settings, {200: Made, 201: Made}, (400, 408, 409, 413, 415, 422, 503, *ALWAYS),
    ),
    Endpoint(
        "GET", "/v1/layers/{name}", "", shown, "Where a layer stands.",
        gives={200: Shown}, refuses=(400, 404, *ALWAYS), cookie=True,
    ),
    Endpoint(
        "DELETE", "/v1/layers/{name}", "admin", remove, "Take a layer out of use; its journal stays.",
        gives={200: Removed}, refuses=(400, 404, 503, *ALWAYS),
    ),
    Endpoint(
        "GET", "/v1/layers/{name}/equilibrium", "", equilibrium,
        "What a layer has reached: bias or coverage and loss before and after, certificate, bound.",
        gives={200: Reached}, refuses=(400, 404, *ALWAYS), cookie=True,
    ),
    Endpoint(
        "POST", "/v1/layers/{name}/control", "admin", control,
        "Freeze, resume, reset_in_flight or set_step; posted to the journal like everything else.",
        Control, {200: Controlled}, (400, 404, 408, 409, 413, 415, 422, 503, *ALWAYS),
    ),
    Endpoint(
        "POST", "/v1/layers/{name}/undo", "admin", undo,
        "Take back every label that one API key sent; posted to the journal as reversals.",
        Undo, {200: Undone}, (400, 404, 408, 409, 413, 415, 422, 503, *ALWAYS),
    ),
    Endpoint(
        "GET", "/v1/layers/{name}/state", "admin", state,
        "The layer as the library saves it: for gradeq.from_json, or to begin another one with.",
        gives={200: dict[str, Any]}, refuses=(400, 404, *ALWAYS),
    ),
    Endpoint(
        "GET", "/v1/layers/{name}/journal", "admin", journal, "The journal, a page at a time.",
        gives={200: Journal}, refuses=(400, 404, 503, *ALWAYS),
        parameters={"after": LATER, "limit": MANY},
    ),
)  # fmt: skip
