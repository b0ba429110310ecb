"""How a system does a task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.inputs import Data

Job = Callable[[], Any]
Step = Callable[[int], Any]
ROUNDING = 1e-9


class Entry(NamedTuple):
    """Columns in; out comes a call that does all the work and gives what was served.

    ``rows``: as many as it does in a few seconds. ``close``: the most by which what it serves may differ from ours;
    None if its algorithm is another one, which ``remark`` names. ``begin``: for systems that take one row at a time,
    a new model and the function that is row i.
    """

    rows: int
    job: Callable[[Data], Job]
    close: float | None = ROUNDING
    remark: str = ""
    begin: Callable[[Data], Callable[[], Step]] | None = None


def one_by_one(
    rows: int, begin: Callable[[Data], Callable[[], Step]], close: float | None = ROUNDING, remark: str = ""
) -> Entry:
    """The entry of a system that takes one row at a time."""

    def job(data: Data) -> Job:
        start, n = begin(data), data["n"]

        def run() -> list[Any]:
            step = start()
            return [step(i) for i in range(n)]

        return run

    return Entry(rows, job, close, remark, begin)
