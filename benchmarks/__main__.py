"""``python -m benchmarks [NAME ...] [--large]``: every benchmark, or those named.

``python -m benchmarks --against /path/to/other/src [CASE ...]``: this source beside another, case by case.
"""

from __future__ import annotations

import importlib
import json
import platform
import sys

from benchmarks.timing import show

# Whole processes come first: a child's peak memory counts what its parent held when it was started.
ALL = {
    "startup": "Whole processes (CPU, clock)",
    "cold": "First runs with an empty cache (CPU, clock; ratio: how many times faster than interpreted)",
    "files": "File to file (CPU and clock, a row)",
    "columns": "Columns from arrays, in memory (CPU and clock, a row; ratio: how many times faster)",
    "events": "One event at a time (CPU and clock, an event; ratio: how many times as long)",
    "elo": "Elo: penalties and steps (CPU and clock, a game)",
    "slopes": "Growth (CPU and clock of 40,000; slope of CPU over size in logarithms)",
    "boards": "Leaderboards (CPU and clock, the whole; agreement with the all-time board of gradeq)",
}
LARGE = {"files"}


def main() -> None:
    """Run and print; a JSON line with machine and figures at the end."""
    if "--against" in sys.argv:
        from benchmarks.against import main as against

        at = sys.argv.index("--against")
        return against(sys.argv[at + 1], sys.argv[1:at] + sys.argv[at + 2 :])
    wanted = [name for name in sys.argv[1:] if not name.startswith("-")] or list(ALL)
    large = "--large" in sys.argv
    if large:
        wanted = [name for name in wanted if name in LARGE]
    figures = {}
    for name in wanted:
        module = importlib.import_module(f"benchmarks.{name}")
        rows = show(ALL[name], module.large() if large else module.main())
        figures[name] = [row._asdict() for row in rows]
    machine = f"{platform.processor() or platform.machine()}, Python {platform.python_version()}"
    print(json.dumps({"machine": machine, "figures": figures}))


if __name__ == "__main__":
    main()
