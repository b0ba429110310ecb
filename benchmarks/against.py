"""This source beside another: the same cases in new processes, in turn, and how many times as long ours takes.

A child (``python -m benchmarks.against CASE ...``) prints what a row or event takes, and the sum of what was served.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROUNDS, EVENTS_ROWS = 3, 10_000
ALLOWED = 1.10  # a case that takes longer than this many times is slower


def main(other: str, wanted: list[str]) -> None:
    """Print the ratios; fails if a case is slower."""
    from benchmarks.cases import COLUMNS, EVENTS

    every = [*COLUMNS, *(f"event: {name}" for name in EVENTS)]
    names = [name for name in every if not wanted or any(word in name for word in wanted)]
    root = Path(__file__).resolve().parents[1]
    sources = {"ours": root / "src", "theirs": Path(other).resolve()}
    slower = []
    print("case: ours and theirs in CPU ns (a row or event), ratio ours / theirs", flush=True)
    for name in names:
        seen: dict[str, list[list[float]]] = {side: [] for side in sources}
        for k in range(ROUNDS):
            for side in sources if k % 2 else reversed(sources):
                seen[side].append(child(name, sources[side], root))
        ours, theirs = (min(took for took, _ in seen[side]) for side in sources)
        same = seen["ours"][0][1] == seen["theirs"][0][1]
        told = "" if same else "  served other values"
        print(f"  {name:<36} {ours:>10,.1f} {theirs:>10,.1f}  {ours / theirs:.2f}{told}", flush=True)
        if ours > ALLOWED * theirs:
            slower.append(name)
    if slower:
        raise SystemExit(f"slower by more than 10 %: {', '.join(slower)}")


def child(name: str, source: Path, root: Path) -> list[float]:
    """The figures of one case, with this source first on the path."""
    path = os.pathsep.join([str(source), str(root)])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.against", name],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, cwd=root,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{name} with {source}: {done.stderr}")
    figures: list[float] = json.loads(done.stdout)
    return figures


def measure(name: str) -> None:
    """Time one case in this process, in memory."""
    import numpy as np

    from benchmarks.cases import COLUMNS, EVENTS, happened, ran
    from benchmarks.inputs import Data
    from benchmarks.timing import best

    if name.startswith("event: "):
        n = EVENTS_ROWS
        job = happened(EVENTS[name.removeprefix("event: ")], Data(n))
    else:
        n = COLUMNS[name].rows
        job = ran(COLUMNS[name], Data(n))
    served = job()
    print(json.dumps([best({"": job}, n, 3)[""].cpu, float(np.asarray(served, dtype=float).sum())]))


if __name__ == "__main__":
    measure(sys.argv[1])
