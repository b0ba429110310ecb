"""One call: who calls, what they send, what is answered; everything between HTTP and the handlers.

A handler takes a ``Call`` and returns a ``Reply`` (or raises ``Problem``). The table of endpoints is what the routes
and the OpenAPI document are both made from, so an answer that is not documented cannot be given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from gradeq.service.problems import Problem

if TYPE_CHECKING:
    from gradeq.service.app import Service
    from gradeq.service.keys import Key

JSON, PROBLEM, HTML, TEXT = (
    "application/json",
    "application/problem+json",
    "text/html; charset=utf-8",
    "text/plain; version=0.0.4; charset=utf-8",
)
DRAINED = 4  # times the largest body: so much is read and thrown away, so that the caller hears the answer
encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its body and what kind of text that is."""

    body: bytes = b""
    status: int = 200
    media: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer without an end: pieces of text as they come, until the caller leaves."""

    pieces: Any
    media: str = "text/event-stream"


@dataclass(slots=True)
class Call:
    """One call, after its key was looked at."""

    service: Service
    scope: Any
    receive: Any
    key: Key | None

    def part(self, name: str) -> str:
        """A part of the path, by its name in the route."""
        return str(self.scope["path_params"][name])

    def header(self, name: bytes) -> str | None:
        """The first header of this name, which is given in small letters."""
        return header(self.scope, name)

    def query(self, **known: str) -> dict[str, str]:
        """What stands behind the question mark, with these names and defaults; other names are refused."""
        given = dict(known)
        if not self.scope["query_string"]:
            return given
        for name, value in parse_qsl(self.scope["query_string"].decode("latin-1"), True):
            if name not in known:
                raise Problem(
                    400, "unknown_parameter", f"{name[:80]!r} is no parameter of this call",
                    f"leave it out; there is {', '.join(known) or 'none'}",
                )  # fmt: skip
            given[name] = value
        return given

    def flag(self, name: str) -> bool:
        """A parameter that is true or false."""
        value = self.query(**{name: "false"})[name]
        if value not in ("true", "false"):
            raise Problem(400, "bad_parameter", f"{name} is {value[:40]!r}", "give true or false")
        return value == "true"

    async def body(self, most: int) -> bytes:
        """The whole body; refused are bodies over ``most`` bytes, which are not kept, and slow ones."""
        coded = self.header(b"content-encoding")
        if coded not in (None, "identity"):
            raise Problem(
                415, "compressed", f"the body comes with Content-Encoding {coded[:40]}", "send it as it is"
            )  # fmt: skip
        length = self.header(b"content-length")
        if length is not None and int(length) > DRAINED * most:
            raise _too_large(int(length), most)
        try:
            async with asyncio.timeout(self.service.limits.body_within):
                return await self._read(most)
        except TimeoutError:
            seconds = self.service.limits.body_within
            raise Problem(
                408, "too_slow", f"the body did not come within {seconds:g} seconds", "send it again",
                {"Connection": "close"},
            ) from None  # fmt: skip

    async def _read(self, most: int) -> bytes:
        message = await self.receive()
        if not message.get("more_body", False):
            whole: bytes = message.get("body", b"")
            if len(whole) > most:
                raise _too_large(len(whole), most)
            return whole
        parts, size = [message["body"]], len(message["body"])
        while message.get("more_body", False) and size <= DRAINED * most:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Gone
            size += len(message.get("body", b""))
            if size <= most:
                parts.append(message.get("body", b""))
        if size > most:
            raise _too_large(size, most)
        return b"".join(parts)


class Gone(Exception):
    """The caller left before the call was whole; there is nobody to answer."""


Handler = Callable[[Call], Awaitable[Reply | Stream]]


@dataclass(frozen=True)
class Endpoint:
    """What may be called: the method and path, the scope a key needs ("" for any key, None for none), the types.

    ``gives``: the type of each good answer, and of the ``Answer`` to single items; problems are in ``refuses``.
    """

    method: str
    path: str
    needs: str | None
    handler: Handler
    summary: str
    takes: Any = None
    gives: Mapping[int, Any] = field(default_factory=dict)
    refuses: tuple[int, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    media: str = JSON
    listed: bool = True  # in the OpenAPI document
    cookie: bool = False  # whether the sign-in of a browser is as good as a key
    attributes: Mapping[str, Any] = field(default_factory=dict)


def header(scope: Any, name: bytes) -> str | None:
    """The first header of this name, which is given in small letters."""
    for found, value in scope["headers"]:
        if found == name:
            text: str = value.decode("latin-1")
            return text
    return None


def _too_large(size: int, most: int) -> Problem:
    return Problem(
        413, "body_too_large", f"the body has {size:,} bytes or more, the limit is {most:,}",
        "send fewer items a call", {"Connection": "close"},
    )  # fmt: skip
