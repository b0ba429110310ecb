"""A desk at work on a store, for as long as a test needs it."""

from collections.abc import Iterator
from contextlib import contextmanager

from gradeq.service.desk import Desk
from gradeq.service.store import open_store


@contextmanager
def working_desk(address: str) -> Iterator[Desk]:
    """Started, and stopped with its store closed at the end."""
    store = open_store(address)
    desk = Desk(store)
    desk.start()
    yield desk
    desk.stop()
    store.close()
