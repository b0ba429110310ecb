"""``python -m benchmarks [NAME ...] [--large]``: every benchmark, or those named."""

from __future__ import annotations

import importlib
import json
import platform
import sys

from benchmarks.timing import show

# Whole processes come first: a child's peak memory counts what its parent held when it was started.
ALL = {
    "startup": "Start-up (seconds, whole processes)",
    "files": "File to file",
    "engine": "Compiled batch (ns a row; ratio = how many times faster than the yardstick)",
    "peers": "End to end from arrays (ns a row)",
    "events": "One event at a time (ns an event)",
    "elo": "Elo (ns a game)",
    "levels": "Quantile levels (ns a row)",
}
LARGE = {"files"}


def main() -> None:
    """Run and print; a JSON line with machine and figures at the end."""
    wanted = [name for name in sys.argv[1:] if not name.startswith("-")] or list(ALL)
    large = "--large" in sys.argv
    if large:
        wanted = [name for name in wanted if name in LARGE]
    figures = {}
    for name in wanted:
        module = importlib.import_module(f"benchmarks.{name}")
        rows = module.large() if large else module.main()
        if rows:
            show(ALL[name], rows)
            figures[name] = [row._asdict() for row in rows]
    machine = f"{platform.processor() or platform.machine()}, Python {platform.python_version()}"
    print(json.dumps({"machine": machine, "figures": figures}))


if __name__ == "__main__":
    main()
