"""The gate that every call goes through: method, key, scope, rate; then the handler; then headers, counts, log."""

from __future__ import annotations

import asyncio
import time
import traceback
from typing import TYPE_CHECKING, Any

from gradeq.service.calls import HTML, PROBLEM, Call, Endpoint, Gone, Reply, Stream, header
from gradeq.service.problems import Problem, retry_after
from gradeq.service.refusals import problem_of

if TYPE_CHECKING:
    from gradeq.service.app import Service
    from gradeq.service.keys import Key

GUARDS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
OF_DATA = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
OF_PAGES = (
    b"content-security-policy",
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'",
)
AT_ONCE = 60_000  # bytes that a socket takes without waiting
SLOW = 1.0  # seconds: such a call is logged


class Place:
    """One path: an ASGI application that answers each of its methods."""

    def __init__(self, service: Service, path: str, endpoints: dict[str, Endpoint]) -> None:
        self.service, self.path, self.endpoints = service, path, endpoints
        allowed = [*endpoints, *(["HEAD"] if "GET" in endpoints else [])]
        self.allowed = ", ".join(sorted(allowed))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one call, whatever happens."""
        began, service, method = time.perf_counter(), self.service, scope["method"]
        key: Key | None = None
        reply: Reply | Stream
        failed = None
        try:
            endpoint = self.endpoints.get("GET" if method == "HEAD" else method)
            if endpoint is None:
                raise Problem(
                    405, "method_not_allowed", f"{method[:20]} is no way to call {self.path}",
                    f"use {self.allowed}", {"Allow": self.allowed},
                )  # fmt: skip
            key = await admitted(service, scope, endpoint)
            reply = await endpoint.handler(Call(service, scope, receive, key))
        except Gone:
            return
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500:
                failed = "".join(traceback.format_tb(error.__traceback__)[-3:])
            reply = Reply(problem.body(), problem.status, PROBLEM, problem.headers)
        if isinstance(reply, Stream):
            service.metrics.calls.add(route=self.path, method=method, status="200")
            if method == "HEAD":
                await _send(send, Reply(media=reply.media), True, service.limits.body_within)
            else:
                await _stream(service, send, receive, reply)
            return
        try:
            await _send(send, reply, method == "HEAD", service.limits.body_within)
        except TimeoutError:
            service.log(
                "left", "warning", path=scope["path"], why="the answer was not read in time"
            )
            raise
        seconds = time.perf_counter() - began
        known = method if method in self.endpoints else "other"
        service.metrics.calls.add(route=self.path, method=known, status=str(reply.status))
        service.metrics.seconds.add(seconds, self.path)
        if reply.status >= 400 or seconds > SLOW or service.log.requests:
            _tell(service, scope, reply, seconds, key, failed)


class Nowhere(Place):
    """What is answered where there is no path."""

    def __init__(self, service: Service) -> None:
        super().__init__(service, "(none)", {})

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Say so."""
        if scope["type"] != "http":
            return
        problem = Problem(
            404, "no_such_path", f"there is nothing at {scope['path'][:200]}", "see /openapi.json"
        )
        reply = Reply(problem.body(), 404, PROBLEM)
        await _send(send, reply, scope["method"] == "HEAD", self.service.limits.body_within)
        self.service.metrics.calls.add(route=self.path, method="other", status="404")
        _tell(self.service, scope, reply, 0.0, None, None)


async def admitted(service: Service, scope: Any, endpoint: Endpoint) -> Key | None:
    """The key of the call; refused without one, with one of another scope, and too often."""
    given = header(scope, b"authorization")
    if endpoint.needs is None and given is None:
        return None
    key = await _holder(service, scope, endpoint, given)
    if key is None:
        raise Problem(
            401, "no_key", "this call needs a key, and none that is good came with it",
            'send the header "Authorization: Bearer gq_..."; `gradeq keys create` makes a key',
            {"WWW-Authenticate": "Bearer"},
        )  # fmt: skip
    if endpoint.needs and endpoint.needs not in key.scopes:
        raise Problem(
            403, "wrong_scope", f"the key {key.prefix} is for {', '.join(sorted(key.scopes))}",
            f"use a key with the scope {endpoint.needs}",
        )  # fmt: skip
    spend(service, key, 1)
    return key


def spend(service: Service, key: Key, items: int) -> None:
    """Count items against the rate of a key."""
    wait = service.bucket(key.number).take(items)
    if wait:
        raise Problem(
            429, "too_many_calls", f"the key {key.prefix} asked for more than {service.limits.rate:g} items a second",
            f"send again after {wait:.1f} seconds",
            retry_after(wait),
        )  # fmt: skip


async def _holder(
    service: Service, scope: Any, endpoint: Endpoint, given: str | None
) -> Key | None:
    if given is not None:
        kind, _, text = given.partition(" ")
        return await service.holder(text.strip()) if kind.lower() == "bearer" else None
    await service.fresh_keys()
    cookies = header(scope, b"cookie") if endpoint.cookie else None
    number = service.sessions.holder(cookies) if cookies else None
    return None if number is None else service.ring.numbered(number)


async def _send(send: Any, reply: Reply, head: bool, within: float) -> None:
    headers = [
        (b"content-type", reply.media.encode()),
        (b"content-length", str(len(reply.body)).encode()),
        *GUARDS,
        OF_PAGES if reply.media == HTML else OF_DATA,
    ]
    names = {name.lower() for name in reply.headers}
    if "cache-control" not in names:
        headers.append((b"cache-control", b"no-store"))
    headers += [(n.lower().encode(), v.encode("latin-1")) for n, v in reply.headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    last = {"type": "http.response.body", "body": b"" if head else reply.body}
    if len(reply.body) < AT_ONCE:
        await send(last)
    else:
        async with asyncio.timeout(within):
            await send(last)


async def _stream(service: Service, send: Any, receive: Any, reply: Stream) -> None:
    """Send pieces until there are no more, the caller leaves, or the server ends."""
    headers = [
        (b"content-type", reply.media.encode()),
        (b"cache-control", b"no-store"),
        *GUARDS,
        OF_DATA,
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    pieces = aiter(reply.pieces)
    over = {asyncio.ensure_future(_left(receive)), asyncio.ensure_future(service.ending.wait())}
    try:
        while True:
            following = asyncio.ensure_future(anext(pieces, None))
            await asyncio.wait({following, *over}, return_when=asyncio.FIRST_COMPLETED)
            if any(one.done() for one in over) or (piece := following.result()) is None:
                following.cancel()
                break
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    finally:
        for one in over:
            one.cancel()
    await send({"type": "http.response.body", "body": b""})


async def _left(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _tell(
    service: Service, scope: Any, reply: Reply, seconds: float, key: Key | None, failed: str | None
) -> None:
    level = "error" if reply.status >= 500 else "warning" if reply.status >= 400 else "info"
    service.log(
        "request",
        level,
        method=scope["method"],
        path=scope["path"],
        status=reply.status,
        ms=round(1000.0 * seconds, 3),
        key=key.prefix if key else None,
        client=(scope.get("client") or ("",))[0],
        failed=failed,
    )
