"""File to file: ``gradeq debias --key`` on Parquet against merely reading and writing it, and peak memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.process import Spent, bytecode, gradeq, least, python, spend
from benchmarks.timing import Row, Took

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


def main() -> Iterator[Row]:
    """1e7 rows: integer keys, then text."""
    with bytecode(), tempfile.TemporaryDirectory(prefix="gradeq-bench-") as name:
        folder = Path(name)
        small = folder / "million.parquet"
        make(small, MILLION, text=False)
        peak = spend(debias(small, folder)).megabytes
        yield Row("peak memory at 1e6 rows", None, {}, "", f"{peak:.0f} MB")
        for text, goal in ((False, "<= 2x"), (True, "<= 2.5x")):
            big = folder / "ten.parquet"
            make(big, TEN_MILLION, text)
            took = least(commands(big, folder), 1)
            compare(big, folder)
            kind = "text" if text else "integer"
            yield row(f"debias --key, 1e7 rows, 1e6 {kind} keys", TEN_MILLION, took, goal)
            most = f"{took['gradeq'].megabytes:.0f} MB"
            yield Row(f"peak memory at 1e7 rows, {kind} keys", None, {}, "< 600 MB", most)


def large() -> Iterator[Row]:
    """1e8 rows: peak memory is that of 1e7."""
    with bytecode(), tempfile.TemporaryDirectory(prefix="gradeq-bench-") as name:
        folder = Path(name)
        big, huge = folder / "ten.parquet", folder / "hundred.parquet"
        make(big, TEN_MILLION, text=False)
        few = spend(debias(big, folder)).megabytes
        big.unlink()
        make(huge, HUNDRED_MILLION, text=False)
        took = least(commands(huge, folder), 1)
    most = took["gradeq"].megabytes
    yield row("debias --key, 1e8 rows, 1e6 integer keys", HUNDRED_MILLION, took, "<= 2x")
    yield Row("peak memory at 1e7 rows", None, {}, "< 600 MB", f"{few:.0f} MB")
    flat = {"of that at 1e7": most / few}
    yield Row("peak memory at 1e8 rows", None, flat, "< 600 MB, flat", f"{most:.0f} MB")


def row(name: str, rows: int, took: dict[str, Spent], target: str) -> Row:
    """Our time beside reading and writing alone, in CPU and by the clock."""
    ours, copy = took["gradeq"], took["read + write"]
    ratios = {"CPU of read + write": ours.cpu / copy.cpu, "clock": ours.wall / copy.wall}
    own = Took(ours.cpu / rows * 1e9, ours.wall / rows * 1e9)
    return Row(name, own, ratios, target, f"{ours.wall:.1f} s in all")


def commands(source: Path, folder: Path) -> dict[str, list[str]]:
    """The job, and what it is measured against."""
    copy = python(COPY, str(source), str(folder / "copy.parquet"), "1")
    return {"read + write": copy, "gradeq": debias(source, folder)}


def debias(source: Path, folder: Path) -> list[str]:
    out = str(folder / "adjusted.parquet")
    return gradeq("debias", str(source), "--prediction", "f", "--label", "y", "--key", "key",
                  "--eta", "0.05", "-o", out, "--quiet")  # fmt: skip


def make(path: Path, rows: int, text: bool) -> None:
    """Predictions, labels and a random key."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    kind = pa.string() if text else pa.int64()
    names = pa.array([f"key-{k}" for k in range(KEYS)]) if text else None
    schema = pa.schema([("key", kind), ("f", pa.float64()), ("y", pa.float64())])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as out:
        for first in range(0, rows, PIECE):
            n = min(PIECE, rows - first)
            codes = rng.integers(0, KEYS, n)
            key = pa.array(codes) if names is None else names.take(pa.array(codes))
            columns = [key, pa.array(rng.normal(size=n)), pa.array(rng.normal(1.0, 1.0, size=n))]
            out.write_table(pa.table(columns, schema=schema), row_group_size=n)


def compare(source: Path, folder: Path) -> None:
    """Refuse to print a figure unless the served column is that of a plain loop over the first rows."""
    import pyarrow.parquet as pq

    cut = 2 * PIECE
    given = head(pq, source, ["key", "f", "y"], cut)
    served = head(pq, folder / "adjusted.parquet", ["adjusted"], cut)[0]
    theta = dict.fromkeys(given[0].tolist(), 0.0)
    expected = np.empty(len(served))
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
        found = [batch[name].to_numpy(zero_copy_only=False) for name in columns]
        break
    return found
