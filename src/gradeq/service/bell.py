"""The bell between the desk and the event loop: one ring for all answers of a commit."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Bell:
    """Lets calls wait for answers of another thread; waking the loop costs a system call, so it is woken once."""

    def __init__(self) -> None:
        self._done: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._rung = False

    async def wait(self, answer: Future[T]) -> T:
        """The result of the answer, when it is there."""
        if answer.done():
            return answer.result()
        loop = asyncio.get_running_loop()
        own: asyncio.Future[T] = loop.create_future()
        answer.add_done_callback(lambda done: self._ring(loop, own, done))
        return await own

    def _ring(
        self, loop: asyncio.AbstractEventLoop, own: asyncio.Future[Any], done: Future[Any]
    ) -> None:
        self._done.append((own, done))
        if not self._rung:
            self._rung = True
            loop.call_soon_threadsafe(self._hand_out)

    def _hand_out(self) -> None:
        self._rung = False  # before looking: what is added from now on rings again
        while self._done:
            own, done = self._done.popleft()
            if own.done():
                continue  # the caller has left
            error = done.exception()
            if error is None:
                own.set_result(done.result())
            else:
                own.set_exception(error)
