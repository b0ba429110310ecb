"""A stream through one layer in a process of its own, which kills itself where it is told to.

``python -m spark.whole_child FOLDER [MOMENT BATCH]``: files of FOLDER/in are micro-batches; all else goes beside.
"""

import os
import signal
import sys
from pathlib import Path

import gradeq as gq
from gradeq.spark import whole_stream

MOMENTS = ("before the state", "after the state", "after the rows")
SCHEMA = "row long, g string, f double, y double"


def layer() -> gq.Debiaser:
    return gq.Debiaser(0.2, groups=["g"])


def follow(folder: Path, moment: str = "", last: int = -1) -> None:
    """All micro-batches that there are, one file each."""
    from spark.local_spark import started

    spark = started()

    def stop(now: str, batch: int) -> None:
        if (now, batch) == (moment, last):
            os.kill(os.getpid(), signal.SIGKILL)

    def write(rows, batch: int) -> None:
        stop("after the state", batch)
        rows.write.mode("overwrite").parquet(str(folder / "out" / str(batch)))
        stop("after the rows", batch)

    post = whole_stream(folder / "state", layer(), prediction="f", label="y", write=write)

    def one(rows, batch: int) -> None:
        stop("before the state", batch)
        post(rows, batch)

    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    stream = source.parquet(str(folder / "in")).writeStream.foreachBatch(one)
    stream = stream.option("checkpointLocation", str(folder / "checkpoint"))
    stream.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    follow(Path(sys.argv[1]), *(sys.argv[2:3]), *map(int, sys.argv[3:4]))
