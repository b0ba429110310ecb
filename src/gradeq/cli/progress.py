"""Progress on a terminal: rows a second and time left; nothing elsewhere, and nothing for short runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# A run shorter than this shows nothing, so that it does not wait for the bar to be imported.
_PATIENCE = 1.0

Step = Callable[[int, float | None], None]


@contextmanager
def progress(title: str, quiet: bool) -> Iterator[Step]:
    """Yields a function that takes rows done so far and the share of the input read, if known."""
    if quiet or not sys.stderr.isatty():
        yield lambda rows, share: None
        return
    bar: Any = None
    task: Any = None
    began = time.monotonic()

    def step(rows: int, share: float | None) -> None:
        nonlocal bar, task
        passed = time.monotonic() - began
        if passed < _PATIENCE:
            return
        if bar is None:
            bar = _bar()
            if bar is not False:
                bar.start()
                task = bar.add_task(title, total=1.0 if share is not None else None, rate="")
        if bar is not False:
            bar.update(task, completed=share or 0.0, rate=f"{rows:,} rows, {rows / passed:,.0f}/s")

    try:
        yield step
    finally:
        if bar:
            bar.stop()


def _bar() -> Any:
    """A bar of rich's, or False where rich is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return False
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
