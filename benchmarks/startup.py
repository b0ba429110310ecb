"""New processes: help, a small job, the import; a first run with an empty cache, a full one, and interpreted."""

from __future__ import annotations

import csv
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.peers.systems import missing
from benchmarks.process import bytecode, gradeq, least, python
from benchmarks.timing import Row, Took, compare

ROUNDS, ROWS = 5, 5_000
SIZES = (4_000, 1_000_000)
FIRST = {"scalar": True, "groups, integers": True, "quantile, sinh": False}  # whether river has it
IMPORT = """
import time, numpy
cpu, wall = time.process_time(), time.perf_counter()
import gradeq
print(time.process_time() - cpu, time.perf_counter() - wall, 0)
"""


def main() -> Iterator[Row]:
    with bytecode():
        yield from commands()
        yield Row("import gradeq, beyond numpy", inside(python(IMPORT), ROUNDS)[0], {}, "< 60 ms")
        for name, known in FIRST.items():
            for rows in SIZES:
                yield from first_runs(name, rows, known and not missing("river"))


def commands() -> Iterator[Row]:
    """The command line."""
    with tempfile.TemporaryDirectory(prefix="gradeq-bench-") as folder:
        table, out = Path(folder) / "rows.csv", Path(folder) / "out.csv"
        write_rows(table)
        job = ("debias", str(table), "--prediction", "f", "--label", "y", "-o", str(out))
        no_compiler(job)
        took = least({"help": gradeq("--help"), "job": gradeq(*job)}, ROUNDS)
    named = (("help", "gradeq --help", "< 150 ms"), ("job", "gradeq debias, 5,000 rows of CSV", "< 600 ms"))
    for key, name, goal in named:
        yield Row(name, Took(took[key].cpu * 1e9, took[key].wall * 1e9), {}, goal)


def first_runs(name: str, rows: int, river: bool) -> Iterator[Row]:
    """Import and first run; with an empty cache it must not take longer than interpreting it."""
    with tempfile.TemporaryDirectory(prefix="gradeq-bench-") as cache:
        child = [sys.executable, "-m", "benchmarks.child", name, str(rows)]
        once = 1 if rows > 100_000 else 3
        own = [*child, "gradeq"]
        interpreted, expected = inside(own, once, GRADEQ_CACHE=cache, GRADEQ_COMPILE="0")
        empty = inside(own, once, GRADEQ_CACHE=cache)
        inside([*child[:-1], "4000", "gradeq"], 1, GRADEQ_CACHE=cache, GRADEQ_COMPILE="1")
        full = inside(own, once, GRADEQ_CACHE=cache)
    theirs = {"river": inside([*child, "river"], once)} if river else {}
    gaps = [
        compare(f"{name}, {rows:,} rows, {who}", expected, mean)
        for who, (_, mean) in {"empty": empty, "full": full, **theirs}.items()
    ]
    others = {"interpreted": interpreted, **{who: took for who, (took, _) in theirs.items()}}
    for kind, took, goal in (("empty", empty[0], "<= interpreted"), ("full", full[0], "")):
        ratios = {other: own.cpu / took.cpu for other, own in others.items()}
        yield Row(f"{name}, {rows:,} rows, {kind} cache", took, ratios, goal, gap=max(gaps))


def inside(command: list[str], rounds: int, **told: str) -> tuple[Took, float]:
    """What a part of a new process takes, by its own clocks, and the mean of what it served."""
    seen = []
    environment = {k: v for k, v in os.environ.items() if k != "GRADEQ_COMPILE"} | told
    for _ in range(rounds):
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr}")
        seen.append([float(word) for word in done.stdout.split()])
    cpu, wall, means = zip(*seen, strict=True)
    return Took(min(cpu) * 1e9, min(wall) * 1e9), means[0]


def write_rows(path: Path) -> None:
    rnd = random.Random(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["f", "y"])
        writer.writerows([rnd.random(), rnd.random()] for _ in range(ROWS))


def no_compiler(job: tuple[str, ...]) -> None:
    """Refuse to go on if the small job imports the compiler."""
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gradeq", *job],
        capture_output=True, text=True, check=True,
    ).stderr  # fmt: skip
    # By a module inside: the import of a package that is looked for and not there is told as well.
    heavy = [name for name in ("numba", "llvmlite", "pandas", "scipy") if f" {name}." in told]
    if heavy or " gradeq.cli" not in told:
        raise AssertionError(f"gradeq debias on {ROWS} rows imports {heavy}")
