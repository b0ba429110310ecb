"""Signals that ask a process to end, heard only where it can end well."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


@contextmanager
def undisturbed() -> Iterator[None]:
    """What asks the process to end is heard after the block: half of what it does would fit nothing."""
    heard: list[int] = []
    before: dict[int, Any] = {}

    def later(number: int, frame: Any) -> None:
        heard.append(number)

    try:
        for number in ENDING:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, later)
    except ValueError:  # only the main thread can say so, and only it is interrupted
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if heard:
            signal.raise_signal(heard[0])
