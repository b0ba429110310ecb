"""Files that appear whole or not at all: written beside their place, then renamed into it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from gradeq.errors import BadInput
from gradeq.files.failures import writing
from gradeq.files.places import beside, check_output, keep_mode
from gradeq.files.signals import undisturbed

_PREFIX = ".gradeq-"
_SUFFIX = ".tmp"
# A temporary file younger than this may be one that its writer has not locked yet.
_YOUNG = 60.0
# The files that this process has put in their places, the last ones of many: what is true after an interruption.
lately: deque[str] = deque(maxlen=100)


class Together:
    """Files that appear together: each is written beside its place, and all are whole before the first takes it.

    Use as a context manager; ``publish`` puts them in their places, in the order in which they were opened, those
    opened as ``last`` at the end. After an error or Ctrl-C before that nothing is left; after a kill the temporary
    files (.gradeq-*.tmp) are removed by the next run that writes into the folder.
    """

    def __init__(self, inputs: Iterable[str] = ()) -> None:
        self.inputs = list(inputs)
        self._drafts: list[_Draft] = []
        self.halfway = False  # some files are in their places, and others are not

    def __enter__(self) -> Together:
        return self

    def __exit__(self, *error: object) -> None:
        for draft in self._drafts:
            draft.discard()

    def open(self, path: str | os.PathLike[str], last: bool = False) -> BinaryIO:
        """A file to write; refused at once when it is one of the inputs or cannot be written."""
        check_output(path, self.inputs)
        with undisturbed():
            self._drafts.append(_Draft(path, last))
        return self._drafts[-1].file

    def marks(self) -> list[tuple[str, str]]:
        """The path and the SHA-256 of every file so far, the last ones apart; nothing may be written to them now."""
        drafts = [draft for draft in self._drafts if not draft.last]
        for draft in drafts:
            draft.seal()
        return [(draft.path, draft.mark()) for draft in drafts]

    def seal(self) -> None:
        """All of every file is on the disk, beside its place: from here on only a name can be refused."""
        for draft in self._drafts:
            draft.seal()

    def publish(self) -> None:
        """Put every file in its place; Ctrl-C is heard when all are there."""
        self.seal()
        self._drafts.sort(key=lambda draft: draft.last)
        with undisturbed():
            while self._drafts:
                self._drafts[0].place()
                del self._drafts[0]
                self.halfway = bool(self._drafts)


class _Draft:
    """One file beside its place."""

    def __init__(self, path: str | os.PathLike[str], last: bool) -> None:
        self.path, self.last = os.fspath(path), last
        self._place = os.path.realpath(self.path)
        self._folder = os.path.dirname(self._place)
        _sweep(self._folder)
        self._temporary = beside(self._place, f"-{secrets.token_hex(6)}{_SUFFIX}")
        with writing(path):
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
            mode = 0o600 if os.path.exists(self._place) else 0o666
            descriptor = os.open(self._temporary, flags, mode)
        self.file = os.fdopen(descriptor, "wb")
        lock(descriptor)
        keep_mode(descriptor, self._place)

    def seal(self) -> None:
        """All of it is on the disk; it stays open, and so locked, until it is in its place."""
        with writing(self.path):
            self.file.flush()
            os.fsync(self.file.fileno())

    def mark(self) -> str:
        """Its SHA-256."""
        with writing(self.path), open(self._temporary, "rb") as whole:
            return hashlib.file_digest(whole, "sha256").hexdigest()

    def place(self) -> None:
        """Take the place of what was there."""
        with writing(self.path):
            if os.name == "nt":  # where an open file cannot be renamed
                self.file.close()
            os.replace(self._temporary, self._place)
            lately.append(self.path)
            self.file.close()
        _sync_folder(self._folder)

    def discard(self) -> None:
        """Leave nothing behind."""
        with contextlib.suppress(OSError):
            self.file.close()
        with contextlib.suppress(OSError):
            os.unlink(self._temporary)


@contextmanager
def atomic(path: str | os.PathLike[str], inputs: Iterable[str] = ()) -> Iterator[BinaryIO]:
    """A file to write that takes the place of ``path`` when the block ends without an error, whole or not at all."""
    with Together(inputs) as files:
        yield files.open(path)
        files.publish()


def write_text(
    path: str | os.PathLike[str], pieces: Iterable[str], inputs: Iterable[str] = ()
) -> None:
    """Write a whole text file in UTF-8, atomically."""
    if not isinstance(path, (str, os.PathLike)) or "\0" in os.fspath(path):
        raise BadInput(f"{path!r} is not the name of a file; give a path")
    with atomic(path, inputs) as file, writing(path):
        file.writelines(piece.encode("utf-8") for piece in pieces)


def lock(descriptor: int) -> bool | None:
    """Hold the file until it is closed or the process dies; False when another one holds it, None without locks."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system: nothing is ever swept
        return None
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
                found = entry.stat(follow_symlinks=False)
                young = time.time() - found.st_mtime < _YOUNG
                if young or not stat.S_ISREG(
                    found.st_mode
                ):  # opening a pipe would wait without end
                    continue
                with open(entry.path, "rb") as left:
                    if lock(left.fileno()):
                        os.unlink(entry.path)


def _sync_folder(folder: str) -> None:
    """Make the rename itself durable, where folders can be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
