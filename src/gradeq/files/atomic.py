"""Files that appear whole or not at all: written beside their place, then renamed into it."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from gradeq.errors import BadInput

_PREFIX = ".gradeq-"
_SUFFIX = ".tmp"
# A temporary file younger than this may be one that its writer has not locked yet.
_YOUNG = 60.0


@contextmanager
def atomic(path: str | os.PathLike[str], inputs: Iterable[str] = ()) -> Iterator[BinaryIO]:
    """A file to write that takes the place of ``path`` when the block ends without an error.

    Refused at once when it is one of the ``inputs`` or cannot be written. After an error or
    Ctrl-C nothing is left; after a kill the temporary file (.gradeq-*.tmp) is removed by the
    next run that writes into the folder.
    """
    place = os.path.realpath(os.fspath(path))
    check_output(path, inputs)
    folder, name = os.path.split(place)
    _sweep(folder)
    temporary = os.path.join(folder, f"{_PREFIX}{name[:80]}-{secrets.token_hex(6)}{_SUFFIX}")
    with writing(path):
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, _mode(place))
    file = os.fdopen(descriptor, "wb")
    try:
        _lock(file.fileno())
        yield file
        with writing(path):
            file.flush()
            os.fsync(file.fileno())
            file.close()
            os.replace(temporary, place)
    except BaseException:
        with contextlib.suppress(OSError):
            file.close()
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """What the system says against writing there, as one line of ours."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInput(
            f"{os.fspath(path)} cannot be written: {reason}; make room or choose another place"
        ) from None


def write_text(
    path: str | os.PathLike[str], pieces: Iterable[str], inputs: Iterable[str] = ()
) -> None:
    """Write a whole text file in UTF-8, atomically."""
    with atomic(path, inputs) as file, writing(path):
        file.writelines(piece.encode("utf-8") for piece in pieces)


def check_output(path: str | os.PathLike[str], inputs: Iterable[str] = ()) -> None:
    """Refuse an output that is a folder, lies in no folder, or is one of the inputs."""
    name = os.fspath(path)
    place = os.path.realpath(name)
    if os.path.isdir(place):
        raise BadInput(f"{name} is a folder; name a file for the output")
    folder = os.path.dirname(place)
    if not os.path.isdir(folder):
        raise BadInput(f"{name} cannot be written: there is no folder {folder}; make it first")
    for other in inputs:
        if os.path.exists(other) and os.path.realpath(other) == place:
            raise BadInput(f"{name} is an input too; write the output to another file")
        if os.path.exists(other) and os.path.exists(place) and os.path.samefile(other, place):
            raise BadInput(f"{name} is the input {other}; write the output to another file")


def _mode(place: str) -> int:
    """The permissions of the file that is replaced, else those of any new file."""
    try:
        return os.stat(place).st_mode & 0o777
    except OSError:
        return 0o666


def _lock(descriptor: int) -> bool:
    """Hold the file until it is closed or the process dies; False when another one holds it."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system: nothing is ever swept
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sweep(folder: str) -> None:
    """Remove what a killed run of ours left here: ours by name, old enough, locked by nobody."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not (entry.name.startswith(_PREFIX) and entry.name.endswith(_SUFFIX)):
                continue
            with contextlib.suppress(OSError):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime < _YOUNG:
                    continue
                with open(entry.path, "rb") as left:
                    if _lock(left.fileno()):
                        os.unlink(entry.path)


def _sync_folder(folder: str) -> None:
    """Make the rename itself durable, where folders can be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
