"""The ASGI application: what all requests share, the routes, and what every request goes through."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect
from starlette.routing import Route, Router

from gradeq.service import layer_endpoints, site_endpoints
from gradeq.service.auth import ApiKey, KeyRing, Sessions, read_keys
from gradeq.service.dashboard import live_updates as dashboard
from gradeq.service.dashboard.live_updates import Broadcast
from gradeq.service.dashboard.pages import PageCache
from gradeq.service.desk import Desk, FutureBridge
from gradeq.service.maintenance import AuditWatch
from gradeq.service.problems import Problem, retry_after, to_problem
from gradeq.service.requests import HTML, PROBLEM, Call, Endpoint, Reply, StreamedReply, header
from gradeq.service.store.database import StoreUnavailable
from gradeq.service.store.journal_store import Store
from gradeq.service.telemetry import Limits, Log, Metrics, TokenBucket

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

ENDPOINTS: tuple[Endpoint, ...] = (*layer_endpoints.ENDPOINTS, *site_endpoints.ENDPOINTS, *dashboard.ENDPOINTS)

KEY_POLL_SECONDS = 0.05  # at least, between two readings of the keys because of unknown keys
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
DATA_CSP = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
PAGE_CSP = (
    b"content-security-policy",
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'",
)
UNTIMED_BYTES = 60_000  # a socket takes so many bytes without waiting
SLOW_SECONDS = 1.0  # slower calls are logged


class Service:
    """What all requests share."""

    endpoints = ENDPOINTS

    def __init__(self, store: Store, desk: Desk, limits: Limits | None = None, log: Log | None = None) -> None:
        self.store, self.desk = store, desk
        self.limits, self.log = limits or Limits(), log or Log()
        self.metrics, self.sessions = Metrics(), Sessions(store.secret)
        self.bridge = FutureBridge()
        self.ring = KeyRing(lambda: read_keys(store))
        self.watch = AuditWatch(desk, self.log)
        self.pages, self.broadcast = PageCache(desk, self.watch.results), Broadcast(desk)
        self.started_at, self.closing = time.time(), False
        self.shutdown = asyncio.Event()
        desk.on_divergence = lambda runtime: self.log(
            "diverged", "error", layer=runtime.row.name, tenant=runtime.row.tenant, why=runtime.stopped
        )
        self._buckets: dict[int, TokenBucket] = {}
        self._reloading: asyncio.Future[None] | None = None

    def charge(self, key: ApiKey, items: int) -> None:
        if key.number not in self._buckets:
            self._buckets[key.number] = TokenBucket(self.limits.rate, self.limits.burst)
        wait = self._buckets[key.number].take(items)
        if wait:
            what = f"key {key.prefix} exceeded {self.limits.rate:g} items a second"
            raise Problem(429, "too_many_calls", what, f"retry after {wait:.1f} seconds", retry_after(wait))

    async def find_key(self, text: str) -> ApiKey | None:
        """The key with this text. An unknown key may be new, so the store is read before it is refused."""
        if self.ring.stale:
            await self._read_keys()
        key = self.ring.find(text)
        for _ in range(2):  # the current reading may have begun before the key was created
            if key is None and self.ring.may_be_new(text):
                if self._reloading is None:
                    self._reloading = asyncio.ensure_future(self._read_keys_after_pause())
                await asyncio.shield(self._reloading)
                key = self.ring.find(text)
        return key

    async def _read_keys_after_pause(self) -> None:
        """Read the keys once for all waiting requests, so a flood of wrong keys costs 20 reads a second."""
        await asyncio.sleep(max(0.0, KEY_POLL_SECONDS - (time.monotonic() - self.ring.read_at)))
        try:
            await self._read_keys()
        finally:
            self._reloading = None

    async def refresh_keys(self) -> None:
        """Read the keys again if they are old; if the store cannot be read, use the old ones."""
        if self.ring.stale:
            await self._read_keys()

    async def _read_keys(self) -> None:
        self.ring.read_at = time.monotonic()  # other requests need not read them too
        try:
            await asyncio.to_thread(self.ring.reload)
        except StoreUnavailable as error:
            self.log("keys", "warning", why=str(error))

    def begin_shutdown(self) -> None:
        """Stop being ready, and end all streams."""
        self.closing = True
        self.shutdown.set()

    def application(self) -> Router:
        """The ASGI application; on shutdown the desk finishes its queue first."""
        paths: dict[str, dict[str, Endpoint]] = {}
        for endpoint in self.endpoints:
            paths.setdefault(endpoint.path, {})[endpoint.method] = endpoint
        routes = [Route(path, PathApp(self, path, methods)) for path, methods in paths.items()]

        @asynccontextmanager
        async def lifespan_of(_: object) -> AsyncIterator[None]:
            yield
            self.begin_shutdown()
            await asyncio.to_thread(self.watch.stop)
            await asyncio.to_thread(self.desk.stop)
            self.log("stopped", commits=self.desk.health.commits)

        return Router(routes, redirect_slashes=False, default=PathApp(self, "(none)", {}), lifespan=lifespan_of)


class PathApp:
    """The ASGI application of one path with all its methods; without any, of all unknown paths."""

    def __init__(self, service: Service, path: str, endpoints: dict[str, Endpoint]) -> None:
        self.service, self.path, self.endpoints = service, path, endpoints
        allowed = [*endpoints, *(["HEAD"] if "GET" in endpoints else [])]
        self.allowed = ", ".join(sorted(allowed))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        began, service, method = time.perf_counter(), self.service, scope["method"]
        key: ApiKey | None = None
        reply: Reply | StreamedReply
        failed = None
        try:
            endpoint = self.endpoints.get("GET" if method == "HEAD" else method)
            if not self.endpoints:
                what = f"there is nothing at {scope['path'][:200]}"
                raise Problem(404, "no_such_path", what, "see /openapi.json")
            if endpoint is None:
                what, remedy = f"{method[:20]} is not allowed here", f"use {self.allowed}"
                raise Problem(405, "method_not_allowed", what, remedy, {"Allow": self.allowed})
            key = await authenticate(service, scope, endpoint)
            call = Call(service, scope, receive, key)
            if endpoint.scope is not None and not endpoint.parameters:
                call.query()  # rejects unknown parameters
            reply = await endpoint.handler(call)
        except ClientDisconnect:
            return
        except Exception as error:
            problem = to_problem(error)
            failed = "".join(traceback.format_tb(error.__traceback__)[-3:]) if problem.status == 500 else None
            reply = Reply(problem.body(), problem.status, PROBLEM, problem.headers)
        if isinstance(reply, StreamedReply):
            service.metrics.calls.add(route=self.path, method=method, status="200")
            if method == "HEAD":
                await _send(send, Reply(media=reply.media), True, service.limits.body_within)
            else:
                await _stream(service, send, receive, reply)
            return
        try:
            await _send(send, reply, method == "HEAD", service.limits.body_within)
        except TimeoutError:
            service.log("left", "warning", path=scope["path"], why="the client did not read the response in time")
            raise
        seconds = time.perf_counter() - began
        known = method if method in self.endpoints else "other"
        service.metrics.calls.add(route=self.path, method=known, status=str(reply.status))
        if self.endpoints:
            service.metrics.seconds.add(seconds, self.path)
        if reply.status >= 400 or seconds > SLOW_SECONDS or service.log.requests:
            level = "error" if reply.status >= 500 else "warning" if reply.status >= 400 else "info"
            service.log(
                "request", level, method=method, path=scope["path"], status=reply.status,
                ms=round(1000.0 * seconds, 3), key=key.prefix if key else None,
                client=(scope.get("client") or ("",))[0], failed=failed,
            )  # fmt: skip


async def authenticate(service: Service, scope: Scope, endpoint: Endpoint) -> ApiKey | None:
    """The key of the call; raises without one, with the wrong scope, or over the rate limit."""
    sent, key = header(scope, b"authorization"), None
    if sent is not None:
        scheme, _, text = sent.partition(" ")
        if scheme.lower() == "bearer":
            key = await service.find_key(text.strip())
    elif endpoint.scope is None:
        return None
    else:
        await service.refresh_keys()
        cookies = header(scope, b"cookie") if endpoint.allows_cookie else None
        number = service.sessions.key_number(cookies) if cookies else None
        key = None if number is None else service.ring.by_number(number)
    if key is None:
        remedy = 'send the header "Authorization: Bearer gq_..."; `gradeq keys create` creates one'
        raise Problem(401, "no_key", "this call needs an active API key", remedy, {"WWW-Authenticate": "Bearer"})
    if endpoint.scope and endpoint.scope not in key.scopes:
        what = f"key {key.prefix} only has the scope {', '.join(sorted(key.scopes))}"
        raise Problem(403, "wrong_scope", what, f"use a key with the scope {endpoint.scope}")
    service.charge(key, 1)
    return key


async def _send(send: Send, reply: Reply, head: bool, within: float) -> None:
    headers = [
        (b"content-type", reply.media.encode()),
        (b"content-length", str(len(reply.body)).encode()),
        *SECURITY_HEADERS,
        PAGE_CSP if reply.media == HTML else DATA_CSP,
    ]
    more = {"cache-control": "no-store", **{name.lower(): value for name, value in reply.headers.items()}}
    headers += [(name.encode(), value.encode("latin-1")) for name, value in more.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    async with asyncio.timeout(within if len(reply.body) >= UNTIMED_BYTES else None):
        await send({"type": "http.response.body", "body": b"" if head else reply.body})


async def _stream(service: Service, send: Send, receive: Receive, reply: StreamedReply) -> None:
    """Send chunks until they end, the client disconnects, or the server shuts down."""
    headers = [(b"content-type", reply.media.encode()), (b"cache-control", b"no-store"), *SECURITY_HEADERS, DATA_CSP]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    chunks = aiter(reply.chunks)

    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    over = {asyncio.ensure_future(disconnected()), asyncio.ensure_future(service.shutdown.wait())}
    try:
        while True:
            following = asyncio.ensure_future(anext(chunks, None))
            await asyncio.wait({following, *over}, return_when=asyncio.FIRST_COMPLETED)
            if any(one.done() for one in over) or (piece := following.result()) is None:
                following.cancel()
                break
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    finally:
        for one in over:
            one.cancel()
    await send({"type": "http.response.body", "body": b""})
