"""make test-faults: python -m faults [--kills N] [--sizes N] [--seed S]; a line for every law that did not hold."""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from cli.killing import FIRST
from faults.jobs import JOBS, prepare
from faults.laws import Broken, Trial

MORE = ("quantile", "elo", "elo_job", "elo_summary", "run_story")


def trials(kills: int, sizes: int, seed: int) -> Iterator[str]:
    """Kill and starve every job, spread over its writes; yields a line for each law broken."""
    for name in (*FIRST, "pyarrow.parquet", *(f"gradeq.cli.{name}" for name in MORE)):
        import_module(name)
    jobs = dict(JOBS)
    if find_spec("matplotlib") is None:
        del jobs["reproduce"]
    else:
        import_module("matplotlib.backends.backend_agg")
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as work:
        start = Path(work, "start")
        start.mkdir()
        with chdir(start):
            prepare(start)
        for place, (name, job) in enumerate(jobs.items()):
            trial = Trial(name, job, start, Path(work))
            largest = max(len(content) for content in trial.after.values())
            share = [count // len(jobs) + (place < count % len(jobs)) for count in (kills, sizes)]
            for at in spread(trial.changes, share[0], rng):
                yield from broken(trial.killed, at)
            for room in spread(largest + 4096, share[1], rng):
                yield from broken(trial.short, room)


def spread(end: int, count: int, rng: random.Random) -> list[int]:
    """So many different numbers below an end, spread over it; all of them where there are fewer."""
    if count >= end:
        return list(range(end))
    return sorted({rng.randrange(end * k // count, end * (k + 1) // count) for k in range(count)})


def broken(law, value: int) -> Iterator[str]:  # type: ignore[no-untyped-def]
    try:
        law(value)
        yield ""
    except Broken as error:
        yield str(error)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--sizes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    began, tried, failed = time.monotonic(), 0, 0
    for line in trials(given.kills, given.sizes, given.seed):
        tried += 1
        if line:
            failed += 1
            print(line[:1500], flush=True)
    print(f"{tried} faults, {failed} laws broken, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
