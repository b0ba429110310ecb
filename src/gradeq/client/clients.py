"""``Client`` and ``AsyncClient``: who carries the messages of a talk. What the verbs say is in ``verbs``."""

from __future__ import annotations

import asyncio
import functools
import os
import time
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

from gradeq.client import verbs
from gradeq.client.answers import Reply
from gradeq.client.receipts import Receipts
from gradeq.client.talk import Lost, Patience, Request, Talk, Wish
from gradeq.errors import BadInput, missing_extra

try:
    import httpx
except ImportError:
    raise missing_extra("client", "the client of the service") from None

P = ParamSpec("P")
T = TypeVar("T")
Verb = Callable[Concatenate[verbs.Book, P], Talk[T]]


def _sync(verb: Verb[P, T]) -> Callable[Concatenate[Client, P], T]:
    @functools.wraps(verb)
    def method(self: Client, /, *args: P.args, **given: P.kwargs) -> T:
        return self._carry(verb(self._book, *args, **given))

    return method


def _async(verb: Verb[P, T]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    @functools.wraps(verb)
    async def method(self: AsyncClient, /, *args: P.args, **given: P.kwargs) -> T:
        return await self._carry(verb(self._book, *args, **given))

    return method


class _Shared:
    """Address, key, patience and receipts."""

    _carrier: type[Any]

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        key: str | None = None,
        *,
        timeout: float = 10.0,
        patience: Patience = Patience(),  # noqa: B008 - a value that never changes
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(f"url={url!r} is no address; give one like http://127.0.0.1:8000")
        key = os.environ.get("GRADEQ_KEY") if key is None else key
        self._url = url
        self._book = verbs.Book(patience)
        self._http = self._carrier(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=timeout,
            # A proxy of the environment has no business between two processes of one machine.
            trust_env=parts.hostname not in ("localhost", "127.0.0.1", "::1"),
        )

    def receipts(self, layer: str) -> Receipts:
        """What was acknowledged on this layer: ``.tally`` by status, ``.rows()`` of kind, id and journal number."""
        return self._book.of(layer)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"


class Client(_Shared):
    """A client of a gradeq service at ``url``; ``key`` is the API key, else that of GRADEQ_KEY.

    May be shared by threads. ``timeout``: seconds for one attempt; ``patience``: how long it is repeated.
    """

    _carrier = httpx.Client

    layers = _sync(verbs.layers)
    create = _sync(verbs.create)
    remove = _sync(verbs.remove)
    predict = _sync(verbs.predict)
    predict_many = _sync(verbs.predict_many)
    predict_games = _sync(verbs.predict_games)
    label = _sync(verbs.label)
    label_many = _sync(verbs.label_many)
    correct = _sync(verbs.correct)
    control = _sync(verbs.control)
    equilibrium = _sync(verbs.equilibrium)
    state = _sync(verbs.state)
    audit = _sync(verbs.audit)

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _carry(self, talk: Talk[T]) -> T:
        answer: Reply | Lost | None = None
        while True:
            try:
                wish = talk.send(answer)
            except StopIteration as done:
                value: T = done.value
                return value
            answer = self._granted(wish)

    def _granted(self, wish: Wish) -> Reply | Lost | None:
        if not isinstance(wish, Request):
            time.sleep(wish)
            return None
        try:
            return _reply(self._http.request(**_message(wish)))
        except httpx.TransportError as error:
            return _lost(error)


class AsyncClient(_Shared):
    """The same for asyncio: every verb of ``Client`` is awaited."""

    _carrier = httpx.AsyncClient

    layers = _async(verbs.layers)
    create = _async(verbs.create)
    remove = _async(verbs.remove)
    predict = _async(verbs.predict)
    predict_many = _async(verbs.predict_many)
    predict_games = _async(verbs.predict_games)
    label = _async(verbs.label)
    label_many = _async(verbs.label_many)
    correct = _async(verbs.correct)
    control = _async(verbs.control)
    equilibrium = _async(verbs.equilibrium)
    state = _async(verbs.state)
    audit = _async(verbs.audit)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _carry(self, talk: Talk[T]) -> T:
        answer: Reply | Lost | None = None
        while True:
            try:
                wish = talk.send(answer)
            except StopIteration as done:
                value: T = done.value
                return value
            answer = await self._granted(wish)

    async def _granted(self, wish: Wish) -> Reply | Lost | None:
        if not isinstance(wish, Request):
            await asyncio.sleep(wish)
            return None
        try:
            return _reply(await self._http.request(**_message(wish)))
        except httpx.TransportError as error:
            return _lost(error)


def _message(request: Request) -> dict[str, Any]:
    headers = {} if request.body is None else {"Content-Type": "application/json"}
    return {
        "method": request.method,
        "url": request.path,
        "content": request.body,
        "params": request.params,
        "headers": headers,
    }


def _reply(response: httpx.Response) -> Reply:
    return Reply(response.status_code, response.headers, response.content)


def _lost(error: Exception) -> Lost:
    return Lost(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
