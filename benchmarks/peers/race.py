"""Systems on the same work: each in a process of its own, in turn, best of several; what they serve is compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from benchmarks.peers.entry import Entry
from benchmarks.peers.systems import LOOP, OURS, PASS, entries
from benchmarks.timing import turns

ROUNDS, ENOUGH = 5, 12.0  # at most so many runs, and none after so many seconds of a system


class Lane(NamedTuple):
    """One system at one size."""

    system: str
    rows: int


class Result(NamedTuple):
    """Of one system: seconds for a row (None: it failed), megabytes, how far from ours what it served is.

    ``ours``, ``loop``, ``memory``: what a row takes by gradeq, in C and in a pass over memory, at the same rows.
    """

    task: str
    system: str
    rows: int
    cpu: float | None
    wall: float | None
    extra: float | None
    peak: float | None
    gap: float | None
    remark: str
    ours: float | None = None
    loop: float | None = None
    memory: float | None = None
    error: str = ""


class Worker:
    """A process that does one job when it is told to."""

    def __init__(self, lane: Lane, task: str, sizes: Mapping[str, int], out: Path, words: IO[bytes]) -> None:
        self.out, self.words = out, words
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.peers.worker", lane.system, task, str(lane.rows),
             json.dumps(dict(sizes)), str(out)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=words, text=True,
            env={**os.environ, "GRADEQ_COMPILE": os.environ.get("GRADEQ_COMPILE", "1")},
        )  # fmt: skip

    def heard(self) -> dict[str, Any]:
        """The next answer; an error with the last line that the process said, if there is none."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.words.seek(0)
            said = self.words.read().decode(errors="replace").strip().splitlines()
            raise ChildProcessError(said[-1] if said else f"ended with {self.process.returncode}")
        told: dict[str, Any] = json.loads(line)
        return told

    def told(self, word: str) -> dict[str, Any]:
        """Run once."""
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.heard()

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@contextmanager
def worker(lane: Lane, task: str, sizes: Mapping[str, int], folder: Path) -> Iterator[Worker]:
    """One process, ended when the block is."""
    out = folder / f"{lane.system}-{lane.rows}.npy"
    with tempfile.TemporaryFile() as words:
        made = Worker(lane, task, sizes, out, words)
        try:
            made.heard()
            yield made
        finally:
            made.close()


def race(
    title: str, task: str, systems: Sequence[str], rounds: int = ROUNDS, rows: int = 0, **sizes: int
) -> list[Result]:
    """Every system that has the task, each at its number of rows unless one is given for all.

    Ours, the C loop and the pass over memory run also at the numbers of rows of the others.
    """
    own = {name: entries(name)[task] for name in systems if task in entries(name)}
    lanes = {Lane(name, rows or entry.rows): entry for name, entry in own.items()}
    for lane in list(lanes):
        for name in (OURS, LOOP, PASS):
            if name in own:
                lanes.setdefault(Lane(name, lane.rows), own[name])
    runs, weights, gaps, failed = ran(task, lanes, rounds, sizes)
    took = {
        kind: {lane: min(run[kind] for run in own) / lane.rows for lane, own in runs.items() if own}
        for kind in ("cpu", "wall")
    }
    found = []
    for lane, entry in lanes.items():
        times = (took[kind].get(lane) for kind in ("cpu", "wall"))
        memory = (weights.get(lane, {}).get(kind) for kind in ("extra", "peak"))
        beside = (took["cpu"].get(Lane(name, lane.rows)) for name in (OURS, LOOP, PASS))
        more = gaps.get(lane), entry.remark, *beside, failed.get(lane, "")
        found.append(Result(title, *lane, *times, *memory, *more))
    return found


class Ran(NamedTuple):
    """By lane: every timed run, what it held, how far from ours it is, and why it could not run."""

    runs: dict[Lane, list[dict[str, Any]]]
    weights: dict[Lane, dict[str, Any]]
    gaps: dict[Lane, float | None]
    failed: dict[Lane, str]


def ran(task: str, lanes: dict[Lane, Entry], rounds: int, sizes: Mapping[str, int]) -> Ran:
    """All lanes alive at once, told to run in turn."""
    found = Ran({lane: [] for lane in lanes}, {}, {}, {})
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gradeq-bench-")))
        alive: dict[Lane, Worker] = {}
        for lane in lanes:
            try:
                own = stack.enter_context(worker(lane, task, sizes, folder))
                own.told("run")  # once for nothing: compilers, caches
            except ChildProcessError as error:
                found.failed[lane] = str(error)
            else:
                alive[lane] = own
        found.runs.update(in_turn(alive, rounds, ENOUGH, "run"))
        for lane in alive:
            found.gaps[lane] = gap(task, lane, lanes[lane], alive)
            found.weights[lane] = alive[lane].told("memory")
    return found


def in_turn(alive: dict[Lane, Worker], rounds: int, enough: float, *words: str) -> dict[Lane, list[dict[str, Any]]]:
    """What each answers to these words, all together; none is told again after ``enough`` seconds of its own."""
    heard: dict[Lane, list[dict[str, Any]]] = {lane: [] for lane in alive}
    for lane in turns(alive, rounds):
        if sum(answer["wall"] for answer in heard[lane]) < enough:
            answers = [alive[lane].told(word) for word in words]
            heard[lane].append({key: x for answer in answers for key, x in answer.items()})
    return heard


def gap(task: str, lane: Lane, entry: Entry, alive: dict[Lane, Worker]) -> float | None:
    """How far what it served is from ours in any row, None for another algorithm.

    An error if that is more than its arithmetic explains.
    """
    ours = alive.get(Lane(OURS, lane.rows))
    if entry.close is None or ours is None or lane.system == OURS:
        return None
    mine, theirs = np.load(ours.out), np.load(alive[lane].out)
    found = float(np.abs(mine - theirs).max()) if mine.shape == theirs.shape else np.inf
    if not found <= entry.close:
        raise AssertionError(f"{task}, {lane.system}: outputs differ by {found}")
    return found
