"""A stream in a process of its own, which dies at once when a given file appears: python -m spark.streaming_child."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import gradeq as gq
from gradeq.spark import follow, states_in
from spark.local_spark import started
from spark.many_events import COLUMNS, SCHEMA

BUCKETS = 4


def die_at(path: Path) -> None:
    """Kill this process and all that it started as soon as the file is there."""
    while not path.exists():
        time.sleep(0.0005)
    os.killpg(os.getpgid(0), signal.SIGKILL)


def main(folder: Path, fatal: str) -> None:
    """Follow all that is in the folder; at the end its states are written beside."""
    if fatal:
        threading.Thread(target=die_at, args=(folder / fatal,), daemon=True).start()
    spark = started()
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    followed = follow(frame, gq.Debiaser(eta=0.1), buckets=BUCKETS, **COLUMNS)
    followed.whole.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(
        availableNow=True
    ).start(str(folder / "out")).awaitTermination()
    states = states_in(spark, str(folder / "checkpoint"), BUCKETS).collect()
    (folder / "states").write_text("\n".join(row.state for row in states), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
