"""File to file: ``gradeq debias --key`` on Parquet against merely reading and writing it, and peak memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.process import Spent, bytecode, gradeq, least, python, spend
from benchmarks.timing import Row

KEYS = 1_000_000
PIECE = 1 << 20
MILLION, TEN_MILLION, HUNDRED_MILLION = 1_000_000, 10_000_000, 100_000_000

# Reads the columns and writes them again, with as many new columns of the same kind as argv[3] says, batch by batch
# and in row groups of the size that the command line has.
COPY = """
import sys
import pyarrow as pa, pyarrow.parquet as pq
source, target, new = sys.argv[1], sys.argv[2], int(sys.argv[3])
file = pq.ParquetFile(source, pre_buffer=False)
schema = file.schema_arrow
for k in range(new):
    schema = schema.append(pa.field(f"copy{k}", pa.float64()))
held, rows = [], 0
with pq.ParquetWriter(target, schema, use_dictionary=False) as out:
    for batch in file.iter_batches(batch_size=1 << 17):
        held.append(pa.RecordBatch.from_arrays([*batch.columns, *[batch["f"]] * new], schema=schema))
        rows += batch.num_rows
        if rows >= 1 << 20:
            out.write_table(pa.Table.from_batches(held), row_group_size=rows)
            held, rows = [], 0
    if held:
        out.write_table(pa.Table.from_batches(held), row_group_size=rows)
"""


def main() -> list[Row]:
    with bytecode(), tempfile.TemporaryDirectory(prefix="gradeq-bench-") as name:
        folder = Path(name)
        small, big = folder / "million.parquet", folder / "ten.parquet"
        make(small, MILLION)
        make(big, TEN_MILLION)
        print("  1e7 rows are made; reading, debiasing and writing them", flush=True)
        peak = spend(debias(small, folder)).megabytes
        took = least(commands(big, folder), 3)
        compare(big, folder)
    ours = took.pop("gradeq")
    return [
        row("debias --key, 1e7 rows, 1e6 keys, Parquet", TEN_MILLION, ours, took, "<= 2x"),
        Row("peak memory at 1e6 rows", 0.0, {}, "", f"{peak:.0f} MB"),
        Row("peak memory at 1e7 rows", 0.0, {}, "< 600 MB", f"{ours.megabytes:.0f} MB"),
    ]


def large() -> list[Row]:
    """1e8 rows: peak memory is that of 1e7."""
    with bytecode(), tempfile.TemporaryDirectory(prefix="gradeq-bench-") as name:
        folder = Path(name)
        big, huge = folder / "ten.parquet", folder / "hundred.parquet"
        make(big, TEN_MILLION)
        few = spend(debias(big, folder))
        big.unlink()
        make(huge, HUNDRED_MILLION)
        print("  1e8 rows are made; reading, debiasing and writing them", flush=True)
        took = least(commands(huge, folder), 1)
    ours = took.pop("gradeq")
    flat = {"of that at 1e7": ours.megabytes / few.megabytes}
    return [
        row("debias --key, 1e8 rows, 1e6 keys, Parquet", HUNDRED_MILLION, ours, took, "<= 2x"),
        Row("peak memory at 1e7 rows", 0.0, {}, "< 600 MB", f"{few.megabytes:.0f} MB"),
        Row("peak memory at 1e8 rows", 0.0, flat, "< 600 MB, flat", f"{ours.megabytes:.0f} MB"),
    ]


def row(name: str, rows: int, ours: Spent, others: dict[str, Spent], target: str) -> Row:
    """Our time beside the yardsticks', by the clock and in CPU."""
    ratios = {
        f"{kind} of {other}": getattr(ours, kind) / getattr(spent, kind)
        for other, spent in others.items()
        for kind in ("wall", "cpu")
    }
    return Row(name, ours.wall / rows * 1e9, ratios, target, f"{ours.wall:.1f} s in all")


def commands(source: Path, folder: Path) -> dict[str, list[str]]:
    """The job, and what it is measured against."""
    return {
        "read + write": python(COPY, str(source), str(folder / "copy.parquet"), "1"),
        "gradeq": debias(source, folder),
        "read + write without the new column": python(
            COPY, str(source), str(folder / "copy.parquet"), "0"
        ),
    }


def debias(source: Path, folder: Path) -> list[str]:
    out = str(folder / "adjusted.parquet")
    return gradeq("debias", str(source), "--prediction", "f", "--label", "y", "--key", "key",
                  "--eta", "0.05", "-o", out, "--quiet")  # fmt: skip


def make(path: Path, rows: int) -> None:
    """Predictions, labels and a random integer key."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([("key", pa.int64()), ("f", pa.float64()), ("y", pa.float64())])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as out:
        for first in range(0, rows, PIECE):
            n = min(PIECE, rows - first)
            columns = [rng.integers(0, KEYS, n), rng.normal(size=n), rng.normal(1.0, 1.0, size=n)]
            out.write_table(
                pa.table([pa.array(c) for c in columns], schema=schema), row_group_size=n
            )


def compare(source: Path, folder: Path) -> None:
    """Refuse to print a figure unless the served column is that of a plain loop over the rows."""
    import pyarrow.parquet as pq

    cut = 3 * PIECE
    given = head(pq, source, ["key", "f", "y"], cut)
    served = head(pq, folder / "adjusted.parquet", ["adjusted"], cut)[0]
    theta = [0.0] * KEYS
    expected = np.empty(cut)
    for i, (key, f, y) in enumerate(zip(*(column.tolist() for column in given), strict=True)):
        s = expected[i] = f + theta[key]
        theta[key] -= 0.05 * (s - y)
    if not np.array_equal(served, expected):
        raise AssertionError("gradeq debias --key serves other values than a plain loop")


def head(pq: Any, path: Path, columns: list[str], rows: int) -> list[Any]:
    """The first rows of some columns."""
    found: list[Any] = []
    file = pq.ParquetFile(path)
    for batch in file.iter_batches(batch_size=rows, columns=columns):
        found = [batch[name].to_numpy() for name in columns]
        break
    return found
