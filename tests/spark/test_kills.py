"""A stream killed at several points and started again: no event lost, none doubled, the library's bits throughout."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gradeq as gq
from gradeq.spark.worker import merge_states
from spark.local_spark import missing
from spark.many_events import events_table, library_outcomes, write_batches
from spark.many_rows import by_key

TESTS = Path(__file__).parents[1]
BATCHES = 6
# Planned and not begun; state written and nothing else; output written and not committed; committed.
FATAL = ("checkpoint/offsets/1", "checkpoint/state/0/1/3.changelog", "out/_spark_metadata/3", "checkpoint/commits/4")


def run(folder: Path, fatal: str) -> int:
    """One process over the stream, killed when the file appears; how it ended."""
    command = [sys.executable, "-W", "ignore", "-m", "spark.streaming_child", str(folder), fatal]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, start_new_session=True, timeout=300)
    if not fatal:
        assert done.returncode == 0, done.stderr[-2000:]
    return done.returncode


def committed(folder: Path) -> pa.Table:
    """What the sink's own log says was written; files of a batch that was cut off are not in it."""
    files: dict[str, None] = {}
    for log in sorted((folder / "out" / "_spark_metadata").glob("[0-9]*")):
        for line in log.read_text(encoding="utf-8").splitlines()[1:]:
            files[unquote(urlparse(json.loads(line)["path"]).path)] = None
    return pa.concat_tables([pq.read_table(path) for path in files])


def told(table: pa.Table) -> list[tuple[Any, ...]]:
    names = ("key", "id", "event", "outcome", "adjusted")
    rows = [tuple(row[name] for name in names) for row in table.to_pylist()]
    return sorted((row for row in rows if row[2] != "certificate"), key=repr)


def test_a_stream_killed_at_every_point_loses_and_doubles_nothing(tmp_path: Path) -> None:
    if why := missing():
        pytest.skip(why)
    table, whole = events_table(31, n=240), gq.Keyed(gq.Debiaser(eta=0.1))
    write_batches(table, tmp_path / "in", BATCHES)
    for fatal in FATAL:
        assert run(tmp_path, fatal) == -9, f"it ended before {fatal}"
        if "_spark_metadata" in fatal:
            # The kill may come a moment after the commit: then take the commit back, as if it had come before.
            number = fatal.rpartition("/")[2]
            for path in (f"commits/{number}", f"commits/.{number}.crc"):
                (tmp_path / "checkpoint" / path).unlink(missing_ok=True)
    run(tmp_path, "")
    assert told(committed(tmp_path)) == library_outcomes(whole, table)
    learned = by_key(merge_states((tmp_path / "states").read_text(encoding="utf-8").splitlines()))
    wanted = by_key(whole)
    assert {n: own for n, own in learned.items() if " of " in n} == {
        n: own for n, own in wanted.items() if " of " in n
    }
