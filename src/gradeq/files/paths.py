"""Paths: checks, errors of the system in one line, and outputs that appear complete or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import signal
import stat
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

from gradeq.errors import BadInput, GradeqError

_PLAIN = (OSError, EOFError, zlib.error, MemoryError, OverflowError, UnicodeError)


def writing(path: str | os.PathLike[str]) -> AbstractContextManager[None]:
    return system_errors(f"{os.fspath(path)} cannot be written", "make room or choose another place")


@contextmanager
def system_errors(what: str, remedy: str, *also: type[Exception]) -> Iterator[None]:
    """Turn errors of the system, of arrow and of the types ``also`` into one line: what, why, and the remedy."""
    try:
        yield
    except (GradeqError, BrokenPipeError):  # our own; standard output's
        raise
    except Exception as error:
        if not (is_system_error(error) or isinstance(error, also)):
            raise
        raise BadInput(f"{what}: {reason(error)}; {remedy}") from None


def is_system_error(error: BaseException) -> bool:
    """Whether an error comes from the system or a library, not from gradeq."""
    arrow = sys.modules.get("pyarrow")
    return isinstance(error, _PLAIN) or (arrow is not None and isinstance(error, arrow.ArrowException))


def reason(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "out of memory"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:200]


_LONGEST_NAME = 255  # bytes, on every common system


def refuse_address(name: str, done: str, remedy: str) -> None:
    address = re.match(r"([A-Za-z][A-Za-z0-9+.-]+)://", name)
    if address is None:
        return
    if address[1].lower() == "file":
        remedy = "give the file system path without file://"
    raise BadInput(f"{name} is an address, and only local files are {done}; {remedy}")


def check_output(path: str | os.PathLike[str], inputs: Iterable[str] = ()) -> None:
    """Raise unless the path is a writable file and not an input."""
    if not isinstance(path, (str, os.PathLike)) or "\0" in os.fspath(path):
        raise BadInput(f"{path!r} is not the name of a file; give a path")
    name = os.fspath(path)
    if not name:
        raise BadInput("the name of an output is empty; name a file")
    refuse_address(name, "written", "write a local file and upload it")
    place = os.path.realpath(name)
    folder = os.path.dirname(place)
    if not os.path.isdir(folder):
        raise BadInput(f"{name} cannot be written: there is no folder {folder}; create it first")
    with system_errors(f"{name} cannot be written", "choose another place"):
        try:
            old = os.stat(place)
        except FileNotFoundError:
            return
    if stat.S_ISDIR(old.st_mode):
        raise BadInput(f"{name} is a folder; name a file for the output")
    if not stat.S_ISREG(old.st_mode):
        raise BadInput(f"{name} is a pipe or a device; name a file for the output")
    if not os.access(place, os.W_OK):
        raise BadInput(f"{name} may not be written; check its permissions")
    for other in inputs:
        if os.path.exists(other) and os.path.samestat(os.stat(other), old):
            raise BadInput(f"{name} is an input too; write the output to another file")


def sibling_path(place: str, ending: str) -> str:
    """A temporary or lock file next to ``place``, with a name of legal length."""
    folder, name = os.path.split(place)
    whole = os.fsencode(f".gradeq-{name}{ending}")
    if len(whole) > _LONGEST_NAME:
        short = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
        cut = os.fsencode(name)[:100].decode("utf-8", "ignore")
        whole = os.fsencode(f".gradeq-{cut}-{short}{ending}")
    return os.path.join(folder, os.fsdecode(whole))


WAIT = 5.0  # seconds in which another program must open a named pipe to write to it


def open_input(path: str) -> BinaryIO:
    """Open a file or a named pipe; opening a pipe waits for its writer, here with a timeout."""
    if not stat.S_ISFIFO(os.stat(path).st_mode):
        return open(path, "rb")
    opened: list[int] = []
    opening = threading.Thread(target=lambda: opened.append(os.open(path, os.O_RDONLY)), daemon=True)
    opening.start()
    opening.join(WAIT)
    if not opened:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))  # a writer: the thread stops waiting
        opening.join()
        os.close(opened[0])
        raise BadInput(f"{path} is a pipe that no program writes to; start the writer first, or give a file")
    return os.fdopen(opened[0], "rb")


ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def defer_signals() -> Iterator[None]:
    """Handle termination signals only after the block, which must not be interrupted."""
    if threading.current_thread() is not threading.main_thread():  # only that one is interrupted
        yield
        return
    received: list[int] = []
    before = {}
    for number in ENDING:
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            before[number] = signal.signal(number, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


_PREFIX = ".gradeq-"
_SUFFIX = ".tmp"
# A temporary file younger than this may be one that its writer has not locked yet.
_YOUNG = 60.0
# The files that this process published last: reported after an interruption.
published_paths: deque[str] = deque(maxlen=100)


@dataclass
class _Draft:
    """A temporary file next to its destination."""

    path: str
    last: bool
    place: str
    temporary: str
    file: BinaryIO


@dataclass
class OutputFiles(AbstractContextManager["OutputFiles"]):
    """Files that are published together, each complete.

    Use as a context manager. ``publish`` renames them in the order of opening, ``last`` ones at the end. After an
    error nothing is left; temporary files of a killed run (.gradeq-*.tmp) are removed by the next run in that folder.
    """

    inputs: list[str] = field(default_factory=list)
    halfway: bool = False  # some files are published, others are not
    _drafts: list[_Draft] = field(default_factory=list)

    def __exit__(self, *error: object) -> None:
        for draft in self._drafts:
            with contextlib.suppress(OSError):
                draft.file.close()
            with contextlib.suppress(OSError):
                os.unlink(draft.temporary)

    def open(self, path: str | os.PathLike[str], last: bool = False) -> BinaryIO:
        """Open an output; raises if it is an input or cannot be written."""
        check_output(path, self.inputs)
        place = os.path.realpath(path)
        _remove_abandoned(os.path.dirname(place))
        temporary = sibling_path(place, f"-{secrets.token_hex(6)}{_SUFFIX}")
        with defer_signals(), writing(path):
            old = os.stat(place) if os.path.exists(place) else None
            descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666 if old is None else 0o600)
            self._drafts.append(_Draft(os.fspath(path), last, place, temporary, os.fdopen(descriptor, "wb")))
        lock(descriptor)
        if old is not None and os.name == "posix":  # keep permissions, and the owner where allowed
            new = os.fstat(descriptor)
            if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
                with contextlib.suppress(OSError):
                    os.fchown(descriptor, old.st_uid, old.st_gid)
            with contextlib.suppress(OSError):
                os.fchmod(descriptor, old.st_mode & 0o777)
        return self._drafts[-1].file

    def seal(self) -> None:
        """Flush and sync, so that publishing can only fail at the rename."""
        for draft in self._drafts:
            with writing(draft.path):
                draft.file.flush()
                os.fsync(draft.file.fileno())

    def checksums(self) -> list[tuple[str, str]]:
        """Path and SHA-256 of every file except ``last`` ones; from now on they must not change."""
        self.seal()
        checksums = []
        for draft in self._drafts:
            if not draft.last:
                with writing(draft.path), open(draft.temporary, "rb") as file:
                    checksums.append((draft.path, hashlib.file_digest(file, "sha256").hexdigest()))
        return checksums

    def publish(self) -> None:
        self.seal()
        self._drafts.sort(key=lambda draft: draft.last)
        with defer_signals():
            while self._drafts:
                draft = self._drafts[0]
                with writing(draft.path):
                    if os.name == "nt":  # where an open file cannot be renamed
                        draft.file.close()
                    os.replace(draft.temporary, draft.place)
                    published_paths.append(draft.path)
                    draft.file.close()
                with contextlib.suppress(OSError):  # the folder's entry must survive a crash too
                    folder = os.open(os.path.dirname(draft.place), os.O_RDONLY)
                    try:
                        os.fsync(folder)
                    finally:
                        os.close(folder)
                del self._drafts[0]
                self.halfway = bool(self._drafts)


@contextmanager
def atomic(path: str | os.PathLike[str], inputs: Iterable[str] = ()) -> Iterator[BinaryIO]:
    with OutputFiles(list(inputs)) as files:
        yield files.open(path)
        files.publish()


def write_text(path: str | os.PathLike[str], pieces: Iterable[str], inputs: Iterable[str] = ()) -> None:
    with atomic(path, inputs) as file, writing(path):
        file.writelines(piece.encode("utf-8") for piece in pieces)


def lock(descriptor: int) -> bool | None:
    """Lock an open file until it is closed; False if another process has it, None if the system lacks flock."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_abandoned(folder: str) -> None:
    """Remove temporary files of killed runs: old enough and not locked."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not (entry.name.startswith(_PREFIX) and entry.name.endswith(_SUFFIX)):
                continue
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                is_old = time.time() - status.st_mtime >= _YOUNG
                if is_old and stat.S_ISREG(status.st_mode):  # opening a pipe would wait for ever
                    with open(entry.path, "rb") as abandoned:
                        if lock(abandoned.fileno()):
                            os.unlink(entry.path)
