"""File to file: a table read, every row corrected by its series, the table written; beside a mere copy of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.files import COPY, KEYS, debias, head
from benchmarks.process import bytecode, least, python, spend

MILLION, TEN_MILLION = 1_000_000, 10_000_000
ALONE = "read and write alone"

# What one would write with river: batch by batch from Parquet, row by row through the model.
RIVER = """
import sys
import pyarrow as pa, pyarrow.parquet as pq
from river import linear_model, optim
model = linear_model.LinearRegression(optimizer=optim.SGD(0.025), intercept_lr=0.0)
file = pq.ParquetFile(sys.argv[1])
schema = file.schema_arrow.append(pa.field("adjusted", pa.float64()))
with pq.ParquetWriter(sys.argv[2], schema, use_dictionary=False) as out:
    for batch in file.iter_batches(batch_size=1 << 17):
        served = []
        for key, f, y in zip(*(batch[name].to_pylist() for name in ("key", "f", "y"))):
            x = {key: 1.0}
            served.append(f + model.predict_one(x))
            model.learn_one(x, y - f)
        out.write_batch(pa.RecordBatch.from_arrays([*batch.columns, pa.array(served)], schema=schema))
"""


# Both in processes of their own: a command counts as large as the process that starts it.
MAKE = """
import sys
from pathlib import Path
from benchmarks.files import make
make(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1")
"""
COMPARE = """
import sys
from pathlib import Path
from benchmarks.peers.tables import same
same(Path(sys.argv[1]))
"""


class Filed(NamedTuple):
    """Of one command: seconds of CPU and by the clock, megabytes at most."""

    task: str
    system: str
    rows: int
    cpu: float
    wall: float
    megabytes: float


def filed(systems: Sequence[str]) -> Iterator[Filed]:
    """A million rows for all, ten million without river; keys as numbers, then as text."""
    with bytecode(), tempfile.TemporaryDirectory(prefix="gradeq-bench-") as name:
        folder = Path(name)
        for rows, text in ((MILLION, False), (TEN_MILLION, False), (TEN_MILLION, True)):
            source = folder / "rows.parquet"
            spend(python(MAKE, str(source), str(rows), str(int(text))))
            commands = {
                "gradeq debias --key": debias(source, folder),
                ALONE: python(COPY, str(source), str(folder / "copy.parquet"), "1"),
            }
            if rows == MILLION and "river" in systems:
                commands["river"] = python(RIVER, str(source), str(folder / "river.parquet"))
            took = least(commands, 3 if rows == MILLION else 2)
            if "river" in commands:
                spend(python(COMPARE, str(folder)))
            kind = "text" if text else "whole numbers"
            for system, own in took.items():
                title = f"Parquet to Parquet, {min(KEYS, rows):,} series, {kind}"
                yield Filed(title, system, rows, own.cpu, own.wall, own.megabytes)


def same(folder: Path) -> None:
    """Refuse to print a figure unless both wrote the same column."""
    import pyarrow.parquet as pq

    def column(name: str) -> Any:
        return head(pq, folder / name, ["adjusted"], MILLION)[0]

    gap = np.abs(column("adjusted.parquet") - column("river.parquet")).max()
    if not gap <= 1e-9:
        raise AssertionError(f"gradeq and river write other values: {gap}")
