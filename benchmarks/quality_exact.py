"""Whether the product serves what the plain programs of its specification serve."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality_streams import LEVEL, Stream

TESTS = Path(__file__).parent.parent / "tests"


def plain_program(stream: Stream) -> Any:
    """A new one for this stream: ``late_defaults.py`` beside the data if it is there, else that of the tests."""
    sys.path.insert(0, str(TESTS))
    try:
        from layers.late_reference import AutoDebiaser, AutoTracker
    finally:
        sys.path.remove(str(TESTS))
    if stream.kind == "quantile":
        return AutoTracker([LEVEL], 1)
    beside = Path(os.environ.get("GRADEQ_DATA", "")).parent / "reference" / "late_defaults.py"
    if not beside.is_file():
        return AutoDebiaser(stream.kind, 1)
    spec = importlib.util.spec_from_file_location("late_defaults", beside)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.LateDebiaser(stream.kind, n_group_columns=1)


def gap(stream: Stream, due: Any, served: Any, rows: int) -> float:
    """How far what was served is from the plain program over the first rows, in units of the labels' spread."""
    rows = min(rows, len(stream.y))
    program = plain_program(stream)
    names = [(f"g={name}",) for name in stream.group[:rows].tolist()]
    f, y, now = (column[:rows].tolist() for column in (stream.f, stream.y, stream.served))
    order: list[int] = []
    if due is not None:
        known = np.flatnonzero(np.isfinite(due[:rows]))
        order = known[np.argsort(due[known], kind="stable")].tolist()
    told, posted = np.empty(rows), 0
    for i in range(rows):
        while posted < len(order) and due[order[posted]] <= now[i]:
            program.update(order[posted], y[order[posted]])
            posted += 1
        base = [f[i]] if stream.kind == "quantile" else f[i]
        said = program.predict(i, base, names[i])
        told[i] = said[0] if stream.kind == "quantile" else said
        if due is None:
            program.update(i, y[i])
    spread = float(np.std(stream.y)) or 1.0
    return float(np.abs(told - served[:rows]).max()) / spread
