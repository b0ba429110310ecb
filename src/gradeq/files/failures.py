"""Whatever fails in a library or in the system beneath us, as one line of ours: which file, why, what to do."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from gradeq.errors import BadInput, GradeqError

_PLAIN = (OSError, EOFError, zlib.error, MemoryError, OverflowError, UnicodeError)


@contextmanager
def reading(where: str, remedy: str = "is it damaged?") -> Iterator[None]:
    """What is said against reading there."""
    with _told(f"{where} cannot be read", remedy):
        yield


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """What is said against writing there."""
    with _told(f"{os.fspath(path)} cannot be written", "make room or choose another place"):
        yield


@contextmanager
def using(what: str, remedy: str) -> Iterator[None]:
    """What is said against values that were read."""
    with _told(f"{what} that cannot be used", remedy, (ValueError,)):
        yield


@contextmanager
def _told(what: str, remedy: str, also: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    try:
        yield
    except (GradeqError, BrokenPipeError):  # our own; standard output's
        raise
    except Exception as error:
        if not (is_beneath(error) or isinstance(error, also)):
            raise
        raise BadInput(f"{what}: {reason(error)}; {remedy}") from None


def is_beneath(error: BaseException) -> bool:
    """Whether an error is not one of ours but of what we stand on."""
    arrow = sys.modules.get("pyarrow")
    return isinstance(error, _PLAIN) or (
        arrow is not None and isinstance(error, arrow.ArrowException)
    )


def reason(error: BaseException) -> str:
    """Why, in a few words on one line."""
    if isinstance(error, MemoryError):
        return "out of memory"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:200]
