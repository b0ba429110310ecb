"""make bench-spark: a layer for each key on Spark, beside Spark itself and beside the library, on the same rows.

python -m benchmarks.spark [--rows 10000000] [--keys 1000000]

Rows lie in Parquet files. Spark has two cores and writes what comes out to Parquet files: plain (each row through
Python as an Arrow table and back), grouped (the same, after the shuffle that brings the rows of a bucket together),
and adjusted, rows and states. The library runs the same rows in memory on one core. What both served is compared row
by row in the same run. Times depend on the machine and on what else it does; ratios less so.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gradeq as gq
from gradeq.spark import adjust, read, session
from gradeq.spark.worker import BUCKET, BUCKETS, bucket_column

FILES = 8
WIDTH = 44
COLUMNS: dict[str, Any] = {"prediction": "forecast", "label": "sold", "key": "shop", "order": "number"}


class Timed(NamedTuple):
    """How long something took, and the most memory that all processes had together meanwhile."""

    seconds: float
    megabytes: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    given = parser.parse_args()
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
    with tempfile.TemporaryDirectory() as made:
        measure(Path(made), given.rows, given.keys)


def measure(folder: Path, rows: int, keys: int) -> None:
    """One table of figures."""
    table = written(folder / "in", rows, keys)
    spark = session(2, spark_driver_memory="3g", spark_sql_shuffle_partitions=8)
    spark.sparkContext.setLogLevel("ERROR")
    frame = spark.read.parquet(str(folder / "in"))
    layer = gq.Debiaser(eta=0.05)
    frame.limit(1000).mapInArrow(same, frame.schema).count()  # workers are up
    identity = frame.mapInArrow(same, frame.schema)
    plain = timed(lambda: identity.write.parquet(str(folder / "plain")))
    shuffled = timed(lambda: grouped(frame).write.parquet(str(folder / "grouped")))
    ours = timed(lambda: adjust(frame, layer, **COLUMNS).write(folder / "out"))
    overall = timed(lambda: read(spark, folder / "out").equilibrium())
    own = gq.Keyed(layer)
    started = time.perf_counter()
    columns = (table["forecast"].to_numpy(), table["sold"].to_numpy())
    run = own.run(*columns, key=table["shop"].to_numpy())
    alone = Timed(time.perf_counter() - started, resident([os.getpid()]))
    found = pq.read_table(folder / "out", columns=["number", "adjusted"]).drop_null()
    served = np.empty(rows)
    served[found["number"].to_numpy()] = found["adjusted"].to_numpy()
    equal = len(found) == rows and np.array_equal(served, run.served)
    print(f"{rows:,} rows, {keys:,} keys, {BUCKETS} buckets, two cores; outputs equal bit for bit: {equal}")
    for name, result in (
        ("Spark, plain identity map", plain),
        ("Spark, identity by bucket (with its shuffle)", shuffled),
        ("gradeq.spark.adjust, rows and state", ours),
        ("the library in memory, one core", alone),
    ):
        ratio = f"  {ours.seconds / result.seconds:5.2f}x" if result is not ours else ""
        print(
            f"{name:<{WIDTH}}{rows / result.seconds:>12,.0f} rows/s {result.seconds:>7.1f} s "
            f"{result.megabytes:>7,.0f} MB{ratio}"
        )
    print(f"{'overall certificate, states joined':<{WIDTH}}{overall.seconds:>28.1f} s {overall.megabytes:>7,.0f} MB")
    print("x: time of adjust over this one's; MB: resident memory of all processes at its peak")
    spark.stop()


def written(folder: Path, rows: int, keys: int) -> pa.Table:
    """Seeded rows in files, and the same in memory."""
    rng = np.random.default_rng(7)
    forecast, shop = rng.normal(size=rows), rng.integers(0, keys, rows)
    table = pa.table(
        {
            "shop": shop,
            "number": np.arange(rows),
            "forecast": forecast,
            "sold": forecast + 0.3 + rng.normal(size=rows),
        }
    )
    folder.mkdir()
    size = -(-rows // FILES)
    for k in range(FILES):
        pq.write_table(table.slice(k * size, size), folder / f"{k}.parquet")
    return table


def same(batches: Iterator[Any]) -> Iterator[Any]:
    """Every row as it is."""
    yield from batches


def grouped(frame: Any) -> Any:
    """Every row as it is, those of a bucket together."""
    own = frame.withColumn(BUCKET, bucket_column(frame["shop"], frame.schema["shop"].dataType, BUCKETS))
    return own.groupBy(BUCKET).applyInArrow(lambda table: table, own.schema)


def timed(work: Callable[[], Any]) -> Timed:
    """How long it took; memory of this process and all below it is looked at meanwhile."""
    most, done = 0.0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.2):
            most = max(most, resident(family(os.getpid())))

    watcher = threading.Thread(target=watch)
    watcher.start()
    started = time.perf_counter()
    work()
    seconds = time.perf_counter() - started
    done.set()
    watcher.join()
    return Timed(seconds, most)


def family(pid: int) -> list[int]:
    """This process and all that it or they started."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
    found = [pid]
    for own in found:
        found += [child for child, parent in parents.items() if parent == own]
    return found


def resident(pids: list[int]) -> float:
    """The memory of these processes, in megabytes; what they share is counted once for each."""
    total = 0
    for pid in pids:
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except OSError:
            continue
    return total * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
