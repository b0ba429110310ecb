"""One run of the command in a child that meets a fault: a kill at a write, or no room for more bytes."""

import contextlib
import io
import json
import os
import signal
import tempfile
from typing import Any, NamedTuple

from gradeq.cli import run

CHANGING = (
    "open", "replace", "unlink", "fsync", "ftruncate", "pwrite", "fchmod", "mkdir",
)  # fmt: skip


class Ended(NamedTuple):
    """How a child ended: its exit code (None when it was killed), what it said, how many changes it made."""

    code: int | None
    out: str = ""
    err: str = ""
    changes: int = 0


def run_in_child(folder: Any, job: Any, kill: int | None = None, room: int | None = None) -> Ended:
    """Run a job in a folder; ``kill``: before which change of a file it is killed; ``room``: the largest file."""
    with tempfile.TemporaryFile() as told:
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                _child(folder, job, kill, room, told.fileno())
            os._exit(99)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) == signal.SIGKILL, f"ended by signal {os.WTERMSIG(status)}"
            return Ended(None)
        told.seek(0)
        return Ended(*json.loads(told.read() or "[99]"))


def _child(folder: Any, job: Any, kill: int | None, room: int | None, told: int) -> None:
    os.chdir(folder)
    changes = _counted(kill)
    if room is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(word) for word in job])
    if room is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    os.write(told, json.dumps([code, out.getvalue(), err.getvalue(), changes[0]]).encode())
    os._exit(0)


def _counted(kill: int | None) -> list[int]:
    """Count the calls that change files, writes of bytes as well; before the one of that number the process ends."""
    changes = [0]

    def count() -> None:
        if changes[0] == kill:
            os.kill(os.getpid(), signal.SIGKILL)
        changes[0] += 1

    def counted(call: Any) -> Any:
        def changed(*args: Any, **given: Any) -> Any:
            count()
            return call(*args, **given)

        return changed

    class Raw(io.FileIO):
        def write(self, data: Any) -> int:
            count()
            return super().write(data)

    def fdopen(descriptor: int, mode: str = "r", *args: Any, **given: Any) -> Any:
        return io.BufferedWriter(Raw(descriptor, mode)) if mode == "wb" else whole(descriptor, mode, *args, **given)

    whole = os.fdopen
    os.fdopen = fdopen  # type: ignore[assignment]
    for name in CHANGING:
        setattr(os, name, counted(getattr(os, name)))
    return changes
