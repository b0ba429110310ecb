"""How a client talks to the service, apart from who carries the messages.

A talk is a generator: it yields a request, or the seconds to wait, and is sent the reply, or why none came. Sync and
async clients only carry; what is asked, asked again, and made of the answers is written once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Mapping
from typing import Any, NamedTuple, TypeVar

from gradeq.client.answers import Refused, Reply, Unreachable

T = TypeVar("T")
BUSY = frozenset({429, 502, 503, 504})  # the server, or what stands before it, asks to come again


class Request(NamedTuple):
    """One request, complete: every attempt sends these bytes."""

    method: str
    path: str
    body: bytes | None = None
    params: Mapping[str, str] | None = None


class Lost(NamedTuple):
    """No reply came, or none that could be read: what was asked may have happened or not."""

    why: str


Wish = Request | float
Talk = Generator[Wish, Reply | Lost | None, T]


class Patience(NamedTuple):
    """How long to ask again: waits double from ``first`` to ``longest`` seconds, ``seconds`` in all.

    A wait is drawn evenly between nothing and its limit, so that clients which were cut off together do not return
    together; it is never shorter than the server's Retry-After.
    """

    seconds: float = 30.0
    first: float = 0.05
    longest: float = 2.0

    def wait(self, attempt: int, asked: float) -> float:
        """Seconds before the next attempt; ``asked``: what the server asked for."""
        limit = min(self.longest, self.first * 2.0 ** min(attempt, 60))
        return max(asked, random.uniform(0.0, limit))


def ask(request: Request, patience: Patience) -> Talk[Reply]:
    """The reply to a request, which is sent again, the same to the byte, while the server is away or busy."""
    began = time.monotonic()
    attempt = 0
    while True:
        reply = yield request
        if isinstance(reply, Reply) and reply.status not in BUSY:
            return reply
        wait = patience.wait(attempt, _retry_after(reply))
        attempt += 1
        if time.monotonic() + wait - began > patience.seconds:
            raise _given_up(reply, attempt, time.monotonic() - began)
        yield wait


def _retry_after(reply: Any) -> float:
    try:
        return max(0.0, float(reply.headers["retry-after"]))
    except (AttributeError, KeyError, ValueError):
        return 0.0  # no reply, no such header, or a date: our own wait will do


def _given_up(reply: Any, attempts: int, seconds: float) -> Unreachable:
    why = getattr(reply, "why", None)
    if why is None:
        try:
            reply.read()
            why = f"status {reply.status}"
        except Refused as refusal:
            why = str(refusal)
    times = "once" if attempts == 1 else f"{attempts} times"
    return Unreachable(
        f"no answer within {seconds:.3g} s, asked {times}: {why}; "
        "sending the same ids again is safe, whatever became of them"
    )
