"""Commands that need the extra ``service``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any


@contextmanager
def needed(purpose: str) -> Iterator[None]:
    """Import within this what only the extra brings; without it, one line says how to get it."""
    from gradeq.errors import missing_extra

    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "gradeq":
            raise
        raise missing_extra("service", purpose) from None


def opened(url: str, read_only: bool = False) -> Any:
    """A store, closed at the end of the block."""
    with needed("the store of a service"):
        from gradeq.service import bodies  # noqa: F401
        from gradeq.service.store import open_store
    return closing(open_store(url, read_only))
