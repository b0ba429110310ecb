"""Changes as server-sent events: made once for all who look at the same thing, at most once a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import suppress
from typing import Any

from gradeq.service.desk import Desk

EVERY = 1.0  # seconds between two messages, at the least
ANYWAY = 2.0  # seconds after which things are looked at again: what was kept may be old, others may have written
BEAT = 15.0  # seconds of silence after which a comment says that the line is open


class Topic:
    """One thing that is looked at: a task that makes its messages while somebody does."""

    def __init__(self, make: Callable[[], bytes], key: Hashable) -> None:
        self.make, self.key = make, key
        self.readers: set[asyncio.Queue[bytes | None]] = set()
        self.grown = asyncio.Event()
        self.last: bytes | None = None
        self.task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Make a message when something was written, and send it to all if it says anything new."""
        while True:
            try:
                made = await asyncio.to_thread(self.make)
            except Exception:  # gone, or not to be read now: readers connect again and hear why
                self.end()
                return
            if made != self.last:
                self.last = made
                for reader in self.readers:
                    _put(reader, made)
            await asyncio.sleep(EVERY)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.grown.wait(), ANYWAY - EVERY)
            self.grown.clear()

    def end(self) -> None:
        """Let all readers go."""
        for reader in self.readers:
            _put(reader, None)


class Broadcast:
    """The one source of changes of a server."""

    def __init__(self, desk: Desk) -> None:
        self._topics: dict[Hashable, Topic] = {}
        self._desk = desk
        self._loop: asyncio.AbstractEventLoop | None = None

    async def follow(
        self, key: Hashable, event: str, make: Callable[[], bytes]
    ) -> AsyncIterator[bytes]:
        """Messages on one topic, from now on; ``make`` works one out, in a thread."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._desk.subscribe(self._told)
        topic = self._topics.get(key)
        if topic is None:
            topic = self._topics[key] = Topic(make, key)
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
                    said = await asyncio.wait_for(mine.get(), BEAT)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if said is None:
                    return
                yield b"event: " + event.encode() + b"\ndata: " + said + b"\n\n"
        finally:
            self._leave(topic, mine)

    def _leave(self, topic: Topic, mine: Any) -> None:
        topic.readers.discard(mine)
        if not topic.readers:
            self._topics.pop(topic.key, None)
            if topic.task is not None:
                topic.task.cancel()

    def _told(self, grown: Any) -> None:
        """Called by the desk, from its own thread, after each commit."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for topic in self._topics.values():
            topic.grown.set()


def _put(reader: asyncio.Queue[bytes | None], message: bytes | None) -> None:
    """The newest message takes the place of one that was not read yet."""
    if reader.full():
        reader.get_nowait()
    reader.put_nowait(message)
