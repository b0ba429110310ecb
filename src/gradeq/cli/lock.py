"""One run at a time on a state, and what a run that was killed while it put its files in place has left to say."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gradeq.errors import BadInput
from gradeq.files.atomic import lock
from gradeq.files.failures import writing
from gradeq.files.places import beside

WAIT = 5.0  # seconds that a second run waits for the first
PAUSE = 0.05


class Held:
    """A state that is this run's alone. ``left``: what an earlier run was putting in place when it was killed."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor, self._path = descriptor, path
        self.left = self._read()
        self.promised = False

    def _read(self) -> dict[str, Any] | None:
        try:
            found = json.loads(os.pread(self._descriptor, 1 << 20, 0))
            return {"run": int(found["run"]), "content": str(found["content"]),
                    "outputs": [str(path) for path in found["outputs"]],
                    "inputs": [str(path) for path in found["inputs"]]}  # fmt: skip
        except (ValueError, TypeError, KeyError, OSError):
            return None

    def promise(self, **run: Any) -> None:
        """Say, before the first file takes its place, which ones belong to the run that the state will name."""
        with writing(self._path):
            text = json.dumps(run).encode()
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, text, 0)
            os.fsync(self._descriptor)
        self.promised = True

    def release(self) -> None:
        """All is in place, or nothing is: the next run need not know of this one."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)


@contextmanager
def holding(state: str | None) -> Iterator[Held | None]:
    """Hold a state until the block ends or the process dies; a second run waits a little, then is refused."""
    if state is None:
        yield None
        return
    path = beside(os.path.realpath(state), ".lock")
    descriptor = _locked(path, state)
    try:
        held = Held(descriptor, path)
        earlier = held.left is not None
        yield held
        held.release()
    except BaseException:
        if not (held.promised or earlier):
            held.release()
        raise
    finally:
        os.close(descriptor)


def _locked(path: str, state: str) -> int:
    deadline = time.monotonic() + WAIT
    while True:
        with writing(state):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if lock(descriptor) is not False and _is_still(descriptor, path):
            return descriptor
        os.close(descriptor)
        if time.monotonic() > deadline:
            raise BadInput(
                f"another run is using {state}; wait until it is done, or give this one a state of its own"
            )
        time.sleep(PAUSE)


def _is_still(descriptor: int, path: str) -> bool:
    """Whether the file that is locked is the one of that name: who held it before may have removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False
