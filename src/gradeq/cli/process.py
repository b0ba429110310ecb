"""What a process is given and how it ends: its streams, its signals, and the files that it has put in place."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections import deque
from typing import Any


class Stopped(KeyboardInterrupt):
    """A signal that ends a process, heard as Ctrl-C is: what was begun is cleared away."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def open_streams() -> None:
    """Give a process whose standard streams are closed empty ones: no file of ours must take their place."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the first number that is free, which is this one
        if getattr(sys, name) is None:
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def lost(stream: int) -> None:
    """A stream takes nothing any more: what is still buffered must not raise at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)


def one_line() -> None:
    """Only our own line goes to stderr: no warning of a library beside it, unless Python was asked for warnings."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")


def end_well() -> None:
    """Hear what asks a process to end, unless it was told not to: files that were begun are removed first."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)


def _stop(number: int, frame: Any) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough: what follows is the clearing away
    raise Stopped(number)


def in_place() -> deque[str]:
    """The files that this run has put in their places; nothing is imported to find that there are none."""
    module = sys.modules.get("gradeq.files.atomic")
    return deque() if module is None else module.lately
