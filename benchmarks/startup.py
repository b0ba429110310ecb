"""Start-up in new processes: help, a small job, the import, the first compiled call from the cache."""

from __future__ import annotations

import csv
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.process import bytecode, gradeq, least, python
from benchmarks.timing import Row

ROUNDS = 7
ROWS = 5_000
IMPORT = """
import time, numpy
wall, cpu = time.perf_counter(), time.process_time()
import gradeq
print(time.perf_counter() - wall, time.process_time() - cpu)
"""
ABSENT = "import sys; sys.modules['scipy'] = None"
FIRST_CALL = """
import time, numpy as np
from gradeq import Debiaser
f = np.linspace(0.0, 1.0, 300_000)
layer = Debiaser(eta=0.05)
wall, cpu = time.perf_counter(), time.process_time()
layer.run(f, f + 1.0)
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


def main() -> list[Row]:
    with bytecode():
        return [
            *commands(),
            inside("import gradeq, beyond numpy", IMPORT, "< 60 ms"),
            inside("first compiled call, cached", FIRST_CALL, "<= 500 ms"),
            inside(
                "the same without scipy, which numba imports if it is there",
                ABSENT + FIRST_CALL,
                "<= 500 ms",
            ),
        ]


def commands() -> list[Row]:
    """Whole processes."""
    with tempfile.TemporaryDirectory(prefix="gradeq-bench-") as folder:
        table, out = Path(folder) / "rows.csv", Path(folder) / "out.csv"
        write_rows(table)
        job = ("debias", str(table), "--prediction", "f", "--label", "y", "-o", str(out))
        no_compiler(job)
        took = least({"help": gradeq("--help"), "job": gradeq(*job)}, ROUNDS)
    return [
        row("gradeq --help", took["help"].wall, took["help"].cpu, "< 150 ms"),
        row(f"gradeq debias, {ROWS:,} rows of CSV", took["job"].wall, took["job"].cpu, "< 600 ms"),
    ]


def row(name: str, wall: float, cpu: float, target: str) -> Row:
    """Seconds by the clock and of CPU; on a busy machine the clock says little."""
    return Row(name, wall * 1e9, {}, target, f"CPU {cpu * 1e3:.0f} ms")


def write_rows(path: Path) -> None:
    rnd = random.Random(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["f", "y"])
        writer.writerows([rnd.random(), rnd.random()] for _ in range(ROWS))


def no_compiler(job: tuple[str, ...]) -> None:
    """Refuse to go on if the small job imports the compiler."""
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gradeq.cli", *job],
        capture_output=True, text=True, check=True,
    ).stderr  # fmt: skip
    # By a module inside: the import of a package that is looked for and not there is told as well.
    heavy = [name for name in ("numba", "llvmlite", "pandas", "scipy") if f" {name}." in told]
    if heavy or " gradeq.cli" not in told:
        raise AssertionError(f"gradeq debias on {ROWS} rows imports {heavy}")


def inside(name: str, code: str, target: str) -> Row:
    """What a part of a new process takes, by its own clocks; the first of them fills the caches."""
    seconds = []
    for _ in range(1 + ROUNDS):
        done = subprocess.run(python(code), capture_output=True, text=True, check=True)
        seconds.append([float(word) for word in done.stdout.split()])
    wall, cpu = (min(column) for column in zip(*seconds[1:], strict=True))
    return row(name, wall, cpu, target)
