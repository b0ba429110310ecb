"""``python -m benchmarks.peers.worker SYSTEM TASK ROWS SIZES OUT``: a process that does one job when it is told to.

Every line on standard input starts a run: ``run`` the whole by the clocks, ``memory`` the whole for what it holds,
``each`` one row after the other by the clock. A line of JSON answers. The first answer comes unasked, when everything
is imported and made. What the first run served goes to OUT. A process for each job keeps imports, caches and memory
of one system out of the figures of another.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inputs import Data
from benchmarks.peers.entry import Entry
from benchmarks.peers.systems import entries

STATUS = Path("/proc/self/status")


def memory(line: str) -> float | None:
    """Megabytes of this process as the system tells them: VmRSS now, VmHWM at most since ``forget``."""
    if not STATUS.exists():
        return None
    for text in STATUS.read_text().splitlines():
        if text.startswith(line):
            return int(text.split()[1]) / 1024
    return None


def forget() -> None:
    """Give back what is free, and begin the most anew."""
    try:
        ctypes.CDLL("").malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError):
        return


def timed(job: Any) -> tuple[dict[str, Any], Any]:
    """One run of everything by the clocks."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    served = job()
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}, served


def weighed(job: Any) -> dict[str, Any]:
    """One run of everything, slower since it asks for all pages again: most memory, and most beyond the inputs."""
    gc.collect()
    forget()
    held = memory("VmRSS")
    job()
    peak = memory("VmHWM")
    return {"peak": peak, "extra": None if peak is None or held is None else peak - held}


def each(entry: Entry, data: Data) -> dict[str, Any]:
    """Every row by the clock, less what the clock itself takes: the middle one and the slowest of a hundred."""
    assert entry.begin is not None
    step, now, n = entry.begin(data)(), time.perf_counter_ns, data["n"]
    took = np.empty(n)
    for i in range(n):
        start = now()
        step(i)
        took[i] = now() - start
    empty = np.empty(n)
    for i in range(n):
        start = now()
        empty[i] = now() - start
    took -= np.median(empty)
    return {"median": float(np.median(took)), "p99": float(np.quantile(took, 0.99))}


def main(system: str, task: str, rows: str, sizes: str, out: str) -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a package prints must not come between the answers
    warnings.simplefilter("ignore")
    entry, data = entries(system)[task], Data(int(rows), **json.loads(sizes))
    job = entry.job(data)
    answers.write(json.dumps({"held": memory("VmRSS")}) + "\n")
    first = True
    for line in sys.stdin:
        if line.strip() == "each":
            told = each(entry, data)
        elif line.strip() == "memory":
            told = weighed(job)
        else:
            told, served = timed(job)
            if first and entry.close is not None:
                np.save(out, np.asarray(served, dtype=float))
            first = False
            del served
        answers.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
