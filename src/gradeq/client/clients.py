"""``Client`` and ``AsyncClient`` send the requests of an exchange; the verbs are in ``verbs``."""

from __future__ import annotations

import asyncio
import functools
import os
import time
from collections.abc import Callable, Coroutine
from typing import Concatenate, Generic, ParamSpec, TypeVar
from urllib.parse import urlsplit

from gradeq.client import verbs
from gradeq.client.verbs import Exchange, HttpReply, Patience, Receipts, Request
from gradeq.errors import BadInput, missing_extra

try:
    import httpx
except ImportError:
    raise missing_extra("client", "the client of the service") from None

P = ParamSpec("P")
T = TypeVar("T")
HttpClient = TypeVar("HttpClient", httpx.Client, httpx.AsyncClient)
Verb = Callable[Concatenate[verbs.ClientSession, P], Exchange[T]]


def _sync(verb: Verb[P, T]) -> Callable[Concatenate[Client, P], T]:
    @functools.wraps(verb)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(verb(self._session, *args, **kwargs))

    return method


def _async(verb: Verb[P, T]) -> Callable[Concatenate[AsyncClient, P], Coroutine[None, None, T]]:
    @functools.wraps(verb)
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(verb(self._session, *args, **kwargs))

    return method


class _BaseClient(Generic[HttpClient]):
    """Address, key, patience and receipts."""

    _http_class: type[HttpClient]

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
            raise BadInput(f"url={url!r} is not a URL; give one like http://127.0.0.1:8000")
        key = os.environ.get("GRADEQ_KEY") if key is None else key
        self._url = url
        self._session = verbs.ClientSession(patience)
        self._http: HttpClient = self._http_class(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=timeout,
            # No proxy between two processes on one machine.
            trust_env=parts.hostname not in ("localhost", "127.0.0.1", "::1"),
        )

    def receipts(self, layer: str) -> Receipts:
        """What was acknowledged on this layer: ``.tally`` by status, ``.rows()`` of kind, id and journal number."""
        return self._session.receipts[layer]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"

    def _build(self, request: Request) -> httpx.Request:
        headers = {} if request.body is None else {"Content-Type": "application/json"}
        return self._http.build_request(
            request.method, request.path, content=request.body, params=request.params, headers=headers
        )


class Client(_BaseClient[httpx.Client]):
    """A client of the gradeq service at ``url``; ``key`` is the API key, by default GRADEQ_KEY.

    Threads may share it. ``timeout``: seconds for one attempt; ``patience``: how long to retry.
    """

    _http_class = httpx.Client

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
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, exchange: Exchange[T]) -> T:
        try:
            step = next(exchange)
            while True:
                step = exchange.send(self._perform(step))
        except StopIteration as done:
            value: T = done.value
            return value

    def _perform(self, step: Request | float) -> HttpReply | str | None:
        if not isinstance(step, Request):
            time.sleep(step)
            return None
        try:
            return _reply(self._http.send(self._build(step)))
        except httpx.TransportError as error:
            return _reason(error)


class AsyncClient(_BaseClient[httpx.AsyncClient]):
    """The same for asyncio: every verb of ``Client`` is awaited."""

    _http_class = httpx.AsyncClient

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
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, exchange: Exchange[T]) -> T:
        try:
            step = next(exchange)
            while True:
                step = exchange.send(await self._perform(step))
        except StopIteration as done:
            value: T = done.value
            return value

    async def _perform(self, step: Request | float) -> HttpReply | str | None:
        if not isinstance(step, Request):
            await asyncio.sleep(step)
            return None
        try:
            return _reply(await self._http.send(self._build(step)))
        except httpx.TransportError as error:
            return _reason(error)


def _reply(response: httpx.Response) -> HttpReply:
    return HttpReply(response.status_code, response.headers, response.content)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
