"""Reading ahead and writing behind in threads of their own, while the layer computes.

Order is kept and errors come out where the caller waits, so results do not depend on timing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

Item = TypeVar("Item")
_END = object()
_WAITING = 3  # calls; a writer that is busy with many rows at once does not hold up the next few


@contextmanager
def ahead(items: Iterator[Item], threaded: bool) -> Iterator[Iterator[Item]]:
    """The same items, the next one being read while the present one is used."""
    if not threaded:
        yield items
        return
    with ThreadPoolExecutor(1) as reader:

        def read() -> Iterator[Item]:
            coming: Future[Any] = reader.submit(next, items, _END)
            while (item := coming.result()) is not _END:
                coming = reader.submit(next, items, _END)
                yield item

        yield read()


@contextmanager
def behind(write: Callable[..., None] | None, threaded: bool) -> Iterator[Callable[..., None]]:
    """A function that hands its arguments to ``write`` in another thread, one call after the other.

    After an error nothing more is written; it is raised by a later call or, at the latest, when the block is left,
    which waits for the last call.
    """
    if write is None:
        yield lambda *arguments: None
        return
    if not threaded:
        yield write
        return
    with ThreadPoolExecutor(1) as writer:
        waiting: deque[Future[None]] = deque()
        failed = False

        def put(*arguments: Any) -> None:
            nonlocal failed
            if not failed:
                failed = True
                write(*arguments)
                failed = False

        def hand_over(*arguments: Any) -> None:
            if len(waiting) == _WAITING:
                waiting.popleft().result()
            waiting.append(writer.submit(put, *arguments))

        yield hand_over
        for last in waiting:
            last.result()
