"""Endpoints of the dashboard: pages, their changes as server-sent events, and buttons."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import suppress

from msgspec import Struct

from gradeq.report.story import as_json
from gradeq.service.auth import ApiKey
from gradeq.service.dashboard.pages import Viewer, asset, document, page_update, sign_in_page
from gradeq.service.desk import Desk
from gradeq.service.layer_endpoints import LAYER
from gradeq.service.problems import NoSuchLayer, Problem
from gradeq.service.requests import HTML, READ_PROBLEMS, Call, Endpoint, Reply, StreamedReply, read_object
from gradeq.service.store.database import JsonObject

MESSAGE_SECONDS = 1.0  # between two messages, at least
REFRESH_SECONDS = 2.0  # between two updates without a commit: other servers may have written
KEEPALIVE_SECONDS = 15.0  # without a message, until a comment shows that the connection is open


class Topic:
    """One page or overview with its readers: a task that makes messages while there are readers."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        self.make = make
        self.readers: set[asyncio.Queue[bytes | None]] = set()
        self.grown = asyncio.Event()
        self.last: bytes | None = None
        self.task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """After each write, make a message and send it to all readers if it changed."""
        while True:
            try:
                message = await asyncio.to_thread(self.make)
            except Exception:  # removed or unreadable: readers connect again and get the reason
                self.send(None)
                return
            if message != self.last:
                self.last = message
                self.send(message)
            await asyncio.sleep(MESSAGE_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.grown.wait(), REFRESH_SECONDS - MESSAGE_SECONDS)
            self.grown.clear()

    def send(self, message: bytes | None) -> None:
        for reader in self.readers:
            _put(reader, message)


class Broadcast:
    """The source of live updates of a server."""

    def __init__(self, desk: Desk) -> None:
        self._topics: dict[Hashable, Topic] = {}
        self._desk = desk
        self._loop: asyncio.AbstractEventLoop | None = None

    async def follow(self, key: Hashable, event: str, make: Callable[[], bytes]) -> AsyncIterator[bytes]:
        """Messages on one topic; ``make`` computes one, in a thread."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._desk.subscribe(self._on_commit)
        topic = self._topics.setdefault(key, Topic(make))
        mine: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        topic.readers.add(mine)
        if topic.last is not None:
            _put(mine, topic.last)
        if topic.task is None or topic.task.done():
            topic.task = asyncio.create_task(topic.run())
        try:
            yield b"retry: 1000\n\n"
            while True:
                try:
                    message = await asyncio.wait_for(mine.get(), KEEPALIVE_SECONDS)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if message is None:
                    return
                yield b"event: " + event.encode() + b"\ndata: " + message + b"\n\n"
        finally:
            topic.readers.discard(mine)
            if not topic.readers:
                self._topics.pop(key, None)
                topic.task.cancel()

    def _on_commit(self) -> None:
        def wake() -> None:
            for topic in self._topics.values():
                topic.grown.set()

        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(wake)


def _put(reader: asyncio.Queue[bytes | None], message: bytes | None) -> None:
    """Replace a message that was not read yet."""
    if reader.full():
        reader.get_nowait()
    reader.put_nowait(message)


MEDIA = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
IMMUTABLE = {"Cache-Control": "public, max-age=31536000, immutable"}


async def page(call: Call) -> Reply:
    await call.service.refresh_keys()
    key, path = _signed_in(call), call.scope["path"]
    if key is None:
        return Reply(sign_in_page(), media=HTML, headers={"X-Sign-In": "needed"})
    try:
        screen = await asyncio.to_thread(call.service.pages.page, _viewer(call, key), path)
    except NoSuchLayer:
        return Reply(status=303, media=HTML, headers={"Location": "/"})
    token = call.service.sessions.token(call.header(b"cookie") or "")
    return Reply(document(screen, token, f"/live?page={path}"), media=HTML)


async def page_changes(call: Call) -> StreamedReply:
    path = call.query(page="/")["page"]
    key = _session_key(call)
    if path not in ("/", "/new"):
        call.service.desk.runtime(key.tenant, path.removeprefix("/layers/"))  # raises if there is no such layer
    viewer, pages = _viewer(call, key), call.service.pages

    def changed() -> bytes:
        return page_update(pages.page(viewer, path))

    return StreamedReply(call.service.broadcast.follow((viewer, path), "page", changed))


async def asset_file(call: Call) -> Reply:
    wanted = str(call.scope["path_params"]["file"])
    for kind, media in MEDIA.items():
        name, content = asset(kind)
        if wanted == name:
            return Reply(content, media=media, headers=IMMUTABLE)
    raise Problem(404, "no_such_path", f"there is no file {wanted[:80]!r}", "reload the page")


async def button_control(call: Call) -> Reply:
    """Pause or resume learning: an admin key, and the token of one of our pages, are required."""
    key = _session_key(call)
    if not call.service.sessions.is_valid_token(call.header(b"cookie") or "", call.header(b"x-gradeq-token") or ""):
        raise Problem(403, "no_token", "the request does not come from a page of this server", "reload the page")
    if "admin" not in key.scopes:
        raise Problem(403, "wrong_scope", f"key {key.prefix} is read-only", "sign in with an admin key")
    verb = read_object(await call.body(1_000)).get("do")
    if verb not in ("freeze", "resume"):
        raise Problem(422, "bad_control", f"do={verb!r:.40}", "give freeze or resume")
    await asyncio.wrap_future(call.service.desk.control(key.tenant, call.layer, verb, {}, key.number))
    call.service.log("control", layer=call.layer, tenant=key.tenant, done=verb, key=key.prefix)
    return Reply(b"{}")


async def download_state(call: Call) -> Reply:
    key, name = _signed_in(call), call.layer
    if key is None or "admin" not in key.scopes:
        raise Problem(403, "wrong_scope", "this needs a key with the scope admin", "sign in with one")

    def saved() -> str:
        with call.service.desk.reading(key.tenant, name) as runtime:
            return runtime.layer.to_json()

    text = await asyncio.to_thread(saved)
    disposition = {"Content-Disposition": f'attachment; filename="{name}.json"'}
    return Reply(f"{text}\n".encode(), headers=disposition)


class ServerEvent(Struct):
    """One server-sent event: its name and its JSON data."""

    event: str
    data: str


async def get_overview(call: Call) -> Reply:
    """Everything that the dashboard shows of a layer."""
    return Reply(await asyncio.to_thread(_overview, call))


async def follow_overview(call: Call) -> StreamedReply:
    """The overview as server-sent events, at most one a second, while the layer changes."""
    topic = call.caller.tenant, call.layer
    call.service.desk.runtime(*topic)
    return StreamedReply(call.service.broadcast.follow(topic, "overview", lambda: _overview(call)))


def _overview(call: Call) -> bytes:
    view = call.service.pages.overview(call.caller.tenant, call.layer)
    return as_json(view).encode("utf-8", "replace")


def _signed_in(call: Call) -> ApiKey | None:
    cookies = call.header(b"cookie")
    number = call.service.sessions.key_number(cookies) if cookies else None
    return None if number is None else call.service.ring.by_number(number)


def _session_key(call: Call) -> ApiKey:
    key = _signed_in(call)
    if key is None:
        raise Problem(401, "no_key", "you are not signed in", "open / and sign in")
    return key


def _viewer(call: Call, key: ApiKey) -> Viewer:
    host = call.header(b"host") or "127.0.0.1:8000"
    scheme = "https://" if call.scope.get("scheme") == "https" else ""
    return Viewer(key.tenant, "admin" in key.scopes, scheme + host[:200])


OVERVIEW_PROBLEMS = (409, *READ_PROBLEMS)
ENDPOINTS = (
    Endpoint("GET", "/", None, page, media=HTML, documented=False),
    Endpoint("GET", "/new", None, page, media=HTML, documented=False),
    Endpoint("GET", "/layers/{name}", None, page, media=HTML, documented=False),
    Endpoint("POST", "/layers/{name}/control", None, button_control, documented=False),
    Endpoint("GET", "/layers/{name}/state", None, download_state, documented=False),
    Endpoint("GET", "/live", None, page_changes, documented=False),
    Endpoint("GET", "/static/{file}", None, asset_file, documented=False),
    Endpoint("GET", f"{LAYER}/overview", "", get_overview, {200: JsonObject}, OVERVIEW_PROBLEMS, allows_cookie=True),
    Endpoint(
        "GET",
        f"{LAYER}/events",
        "",
        follow_overview,
        {200: ServerEvent},
        OVERVIEW_PROBLEMS,
        media="text/event-stream",
        allows_cookie=True,
    ),
)
