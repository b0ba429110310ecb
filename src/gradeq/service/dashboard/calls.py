"""The calls of the dashboard: pages, their changes, the buttons on them; and an overview as JSON.

A browser is signed in by a cookie that other sites cannot send (SameSite=Strict). What changes something also needs a
token that only our own pages hold, and a key with the scope admin behind the cookie.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from gradeq.report.story import as_json
from gradeq.service.calls import HTML, Call, Endpoint, Reply, Stream, header
from gradeq.service.dashboard.screens import Screens, Viewer
from gradeq.service.dashboard.shell import Screen, asset, document, message, sign_in_page
from gradeq.service.dashboard.stream import Broadcast
from gradeq.service.failures import NoSuchLayer
from gradeq.service.keys import Key
from gradeq.service.layer_calls import ALWAYS, holder
from gradeq.service.problems import Problem
from gradeq.service.reading import read_object

MEDIA = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}


async def home(call: Call) -> Reply:
    """All layers, or how to make the first."""
    return await _page(call, "/", _screens(call).home)


async def another(call: Call) -> Reply:
    """How to make one more layer."""
    return await _page(call, "/new", _screens(call).another)


async def layer(call: Call) -> Reply:
    """The page of one layer."""
    name = call.part("name")
    try:
        return await _page(call, f"/layers/{name}", lambda who: _screens(call).layer(who, name))
    except NoSuchLayer:
        return Reply(status=303, media=HTML, headers={"Location": "/"})


async def changes(call: Call) -> Stream:
    """What changes on a page, for as long as it is looked at."""
    path = call.query(page="/")["page"]
    key = _signed_in(call)
    if key is None:
        raise Problem(401, "no_key", "nobody is signed in", "open / and sign in")
    who, screens = _viewer(call, key), _screens(call)
    makes: dict[str, Callable[[Viewer], Screen]] = {"/": screens.home, "/new": screens.another}
    make = makes.get(path)
    if make is None:
        name = path.removeprefix("/layers/")
        call.service.desk.live(key.tenant, name)  # refused at once where there is none

        def make(who: Viewer) -> Screen:
            return screens.layer(who, name)

    made = make
    return Stream(_broadcast(call).follow((who, path), "page", lambda: message(made(who))))


async def asset_file(call: Call) -> Reply:
    """The script or the style; its name holds its hash, so it never changes."""
    wanted = call.part("file")
    for kind, media in MEDIA.items():
        name, content = asset(kind)
        if wanted == name:
            return Reply(content, media=media, headers=FOR_EVER)
    raise Problem(404, "no_such_path", f"there is no file {wanted[:80]!r}", "reload the page")


async def control(call: Call) -> Reply:
    """Pause or resume learning, by a button."""
    key, name = _button(call), call.part("name")
    verb = read_object(await call.body(1_000)).get("do")
    if verb not in ("freeze", "resume"):
        raise Problem(422, "bad_control", f"do={verb!r:.40}", "freeze and resume have buttons")
    desk = call.service.desk
    await asyncio.wrap_future(desk.control(key.tenant, name, verb, {}, key.number))
    call.service.log("control", layer=name, tenant=key.tenant, done=verb, key=key.prefix)
    return Reply(b"{}")


async def state(call: Call) -> Reply:
    """The state of a layer, as a file; only a page of ours can ask for it."""
    key, name = _signed_in(call), call.part("name")
    if key is None or "admin" not in key.scopes:
        raise Problem(
            403, "wrong_scope", "this needs a key with the scope admin", "sign in with one"
        )

    def written() -> str:
        with call.service.desk.reading(key.tenant, name) as live:
            return live.layer.to_json()

    text = await asyncio.to_thread(written)
    disposition = {"Content-Disposition": f'attachment; filename="{name}.json"'}
    return Reply(f"{text}\n".encode(), headers=disposition)


async def overview(call: Call) -> Reply:
    """Everything that the page of a layer shows."""
    call.query()
    return Reply(await asyncio.to_thread(_overview, call, holder(call).tenant, call.part("name")))


class Event(Struct):
    """One event of a stream: its name, and the JSON text of what it tells."""

    event: str
    data: str


async def events(call: Call) -> Stream:
    """The same, again and again as it changes."""
    call.query()
    tenant, name = holder(call).tenant, call.part("name")
    call.service.desk.live(tenant, name)
    made = lambda: _overview(call, tenant, name)  # noqa: E731
    return Stream(_broadcast(call).follow((tenant, name), "overview", made))


def _overview(call: Call, tenant: str, name: str) -> bytes:
    return as_json(_screens(call).overview(tenant, name)).encode("utf-8", "replace")


async def _page(call: Call, path: str, make: Callable[[Viewer], Screen]) -> Reply:
    await call.service.fresh_keys()
    key = _signed_in(call)
    if key is None:
        return Reply(sign_in_page(), media=HTML, headers={"X-Sign-In": "needed"})
    screen = await asyncio.to_thread(make, _viewer(call, key))
    token = call.service.sessions.token(header(call.scope, b"cookie") or "")
    return Reply(document(screen, token, f"/live?page={path}"), media=HTML)


def _signed_in(call: Call) -> Key | None:
    cookies = header(call.scope, b"cookie")
    number = call.service.sessions.holder(cookies) if cookies else None
    return None if number is None else call.service.ring.numbered(number)


def _button(call: Call) -> Key:
    """The key behind the cookie of one of our pages; its token shows that it is one of ours."""
    key = _signed_in(call)
    if key is None:
        raise Problem(401, "no_key", "nobody is signed in", "open / and sign in")
    if not call.service.sessions.knows(
        header(call.scope, b"cookie") or "", header(call.scope, b"x-gradeq-token") or ""
    ):
        raise Problem(
            403, "no_token", "this does not come from a page of this server", "reload the page"
        )
    if "admin" not in key.scopes:
        raise Problem(
            403, "wrong_scope", f"the key {key.prefix} only looks", "sign in with an admin key"
        )
    return key


def _viewer(call: Call, key: Key) -> Viewer:
    host = header(call.scope, b"host") or "127.0.0.1:8000"
    scheme = "https://" if call.scope.get("scheme") == "https" else ""
    return Viewer(key.tenant, "admin" in key.scopes, scheme + host[:200])


def _screens(call: Call) -> Screens:
    return call.service.screens


def _broadcast(call: Call) -> Broadcast:
    return call.service.broadcast


ENDPOINTS = (
    Endpoint("GET", "/", None, home, "The dashboard.", media=HTML, listed=False),
    Endpoint("GET", "/new", None, another, "How to make a layer.", media=HTML, listed=False),
    Endpoint("GET", "/layers/{name}", None, layer, "The page of a layer.", media=HTML, listed=False),
    Endpoint("POST", "/layers/{name}/control", None, control, "Pause or resume.", listed=False),
    Endpoint("GET", "/layers/{name}/state", None, state, "The state, as a file.", listed=False),
    Endpoint("GET", "/live", None, changes, "Changes of a page.", listed=False),
    Endpoint("GET", "/static/{file}", None, asset_file, "Script and style.", listed=False),
    Endpoint(
        "GET", "/v1/layers/{name}/overview", "", overview,
        "Everything that the dashboard shows of a layer.",
        gives={200: dict[str, Any]}, refuses=(400, 404, 409, *ALWAYS), cookie=True,
    ),
    Endpoint(
        "GET", "/v1/layers/{name}/events", "", events,
        "The overview as server-sent events, at most one a second, while the layer changes.",
        gives={200: Event}, refuses=(400, 404, 409, *ALWAYS), media="text/event-stream", cookie=True,
    ),
)  # fmt: skip
