"""Whole processes, as a user meets them: wall time, CPU time and peak memory of each."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.timing import turns


class Spent(NamedTuple):
    """What a process took: seconds by the clock, seconds of CPU, most megabytes in memory."""

    wall: float
    cpu: float
    megabytes: float


def gradeq(*arguments: str) -> list[str]:
    """The command line as installed beside this Python, or as a module."""
    script = Path(sys.executable).parent / "gradeq"
    return [*([str(script)] if script.exists() else [sys.executable, "-m", "gradeq"]), *arguments]


def python(code: str, *arguments: str) -> list[str]:
    """A new Python that runs this code."""
    return [sys.executable, "-c", code, *arguments]


@contextmanager
def bytecode() -> Iterator[None]:
    """Processes started in this block keep bytecode, as installed packages do, whatever this one was told."""
    told = os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if told is None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="gradeq-bench-") as folder:
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        try:
            yield
        finally:
            del os.environ["PYTHONPYCACHEPREFIX"]
            os.environ["PYTHONDONTWRITEBYTECODE"] = told


def spend(command: Sequence[str]) -> Spent:
    """Run a command to its end; it must end well. The system counts no less memory than this process has by then."""
    with tempfile.TemporaryFile() as words:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=words)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            words.seek(0)
            raise RuntimeError(f"{command} ended with {child.returncode}: {words.read().decode()}")
    return Spent(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def least(commands: dict[str, Sequence[str]], rounds: int) -> dict[str, Spent]:
    """The least of each figure over so many rounds, commands in turn, once for nothing; the largest for memory."""
    seen: dict[str, list[Spent]] = {name: [] for name in commands}
    for command in commands.values() if rounds > 1 else ():
        spend(command)
    for name in turns(commands, rounds):
        seen[name].append(spend(commands[name]))
    return {
        name: Spent(min(s.wall for s in all), min(s.cpu for s in all), max(s.megabytes for s in all))
        for name, all in seen.items()
    }
