"""Reading ahead and writing behind in threads of their own, while the layer computes.

Order is kept and errors come out where the caller waits, so results do not depend on timing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

Item = TypeVar("Item")
_END = object()


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
    """A function that hands its arguments to ``write`` in another thread, one call at a time.

    Leaving the block waits for the last call; its error, if any, is raised then.
    """
    if write is None:
        yield lambda *arguments: None
        return
    if not threaded:
        yield write
        return
    with ThreadPoolExecutor(1) as writer:
        last: Future[None] | None = None

        def hand_over(*arguments: Any) -> None:
            nonlocal last
            if last is not None:
                last.result()
            last = writer.submit(write, *arguments)

        yield hand_over
        if last is not None:
            last.result()
