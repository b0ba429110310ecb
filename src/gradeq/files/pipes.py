"""Files and named pipes opened for reading: a pipe that nobody writes to is refused, not waited for without end."""

from __future__ import annotations

import os
import stat
import threading
from typing import BinaryIO

from gradeq.errors import BadInput

WAIT = 5.0  # seconds in which whoever writes to a named pipe must have opened it


def opened(path: str) -> BinaryIO:
    """A file or a pipe to read; raises OSError where that cannot be."""
    return _opened_pipe(path) if stat.S_ISFIFO(os.stat(path).st_mode) else open(path, "rb")


def _opened_pipe(path: str) -> BinaryIO:
    """Opening a pipe waits until somebody opens its other end: a thread waits, and is sent home after a while."""
    got: list[int] = []
    waiting = threading.Thread(
        target=lambda: got.append(os.open(path, os.O_RDONLY)), daemon=True, name="gradeq-pipe"
    )
    waiting.start()
    waiting.join(WAIT)
    if not got:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))  # now it has somebody
        waiting.join()
        os.close(got[0])
        raise BadInput(
            f"{path} is a pipe that nobody writes to; start what writes to it first, or give a file"
        )
    return os.fdopen(got[0], "rb")
