"""Writing tables: input cells unchanged, floats exact, the file whole or not there at all."""

import csv
import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.errors import BadInput
from gradeq.files import Writer, atomic, guard_formula, open_table, write_text

FORMATS = [".csv", ".csv.gz", ".parquet"]
TRICKY = ["007", "", "NA", "=1+1", "-5", "@x", "a,b", 'q"q', "two\nlines", "cr\r\nlf", " blank ", "é"]


def rows_of(path: Path) -> list[list[str]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def copied(source: Path, target: Path, values: np.ndarray) -> None:
    table = open_table([source])
    with Writer(target, table.schema, {"adjusted": float}, inputs=table.paths) as out:
        for chunk in table.batches():
            out.write(chunk.batch, {"adjusted": values[chunk.start : chunk.start + chunk.batch.num_rows]})


@pytest.mark.parametrize("suffix", FORMATS)
def test_input_cells_are_copied_unchanged(tmp_path: Path, suffix: str) -> None:
    source, target = tmp_path / "in.csv", tmp_path / f"out{suffix}"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows([["text", "id"], *([cell, str(i)] for i, cell in enumerate(TRICKY))])
    copied(source, target, np.arange(float(len(TRICKY))))
    table = open_table([target])
    batch = pa.Table.from_batches([chunk.batch for chunk in table.batches()])
    assert batch.column("text").to_pylist() == TRICKY
    assert batch.column_names == ["text", "id", "adjusted"]
    if suffix != ".parquet":
        assert [row[0] for row in rows_of(target)[1:]] == TRICKY


def test_cells_that_need_no_quotes_get_none(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('id,x\n007,"1.50"\n008,"a,b"\n')
    copied(tmp_path / "in.csv", tmp_path / "out.csv", np.array([0.1, 2.0]))
    text = (tmp_path / "out.csv").read_text()
    assert text == 'id,x,adjusted\n007,1.50,0.1\n008,"a,b",2\n'


@given(cells=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6), min_size=1))
def test_any_text_is_written_so_that_it_reads_back(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str]
) -> None:
    path = tmp_path_factory.mktemp("out") / "t.csv"
    schema = pa.schema([("a,b", pa.string())])
    with Writer(path, schema, {"n": int}) as out:
        out.write(pa.record_batch([pa.array(cells)], schema=schema), {"n": range(len(cells))})
    table = open_table([path])
    assert table.names == ["a,b", "n"]
    assert [c for x in table.batches() for c in x.batch.column(0).to_pylist()] == cells


@pytest.mark.parametrize("suffix", FORMATS)
def test_floats_come_back_bit_for_bit(tmp_path: Path, suffix: str) -> None:
    rng = np.random.default_rng(3)
    values = rng.standard_normal(5000) * 10.0 ** rng.integers(-300, 300, 5000)
    values[:6] = [0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3]
    pq.write_table(pa.table({"f": values}), tmp_path / "in.parquet")
    copied(tmp_path / "in.parquet", tmp_path / f"out{suffix}", values)
    chunks = list(open_table([tmp_path / f"out{suffix}"]).batches())
    for name in ("f", "adjusted"):
        back = np.concatenate([chunk.numbers(name) for chunk in chunks])
        assert back.tobytes() == values.tobytes()


def test_parquet_types_and_metadata_are_kept(tmp_path: Path) -> None:
    table = pa.table(
        {
            "d": pa.array(["a", "b", None]).dictionary_encode(),
            "t": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
            "l": pa.array([[1], [], None]),
        }
    ).replace_schema_metadata({"who": "me"})
    pq.write_table(table, tmp_path / "in.parquet")
    copied(tmp_path / "in.parquet", tmp_path / "out.parquet", np.arange(3.0))
    back = pq.read_table(tmp_path / "out.parquet")
    source = pq.read_table(tmp_path / "in.parquet")
    assert back.drop_columns("adjusted").equals(source, check_metadata=True)
    assert back.schema.metadata[b"who"] == b"me"
    with pytest.raises(BadInput, match=r"column 'l' holds list.*write \.parquet"):
        copied(tmp_path / "in.parquet", tmp_path / "out.csv", np.arange(3.0))
    assert sorted(os.listdir(tmp_path)) == ["in.parquet", "out.parquet"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_nan_is_written_as_an_absent_value(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    with Writer(path, pa.schema([]), {"player": str, "p": float}) as out:
        out.write(None, {"player": ["x", "y"], "p": np.array([0.5, np.nan])})
    (chunk,) = open_table([path]).batches()
    assert chunk.batch.column("p").to_pylist()[1] in (None, "")


def test_text_of_our_own_is_guarded_against_formulas() -> None:
    names = ["=cmd()", "+1", "-1", "@a", "\tx", "\rx", "\0x", "Brazil", "a=b"]
    guarded = ["'=cmd()", "'+1", "'-1", "'@a", "'\tx", "'\rx", "'\0x", "Brazil", "a=b"]
    assert [guard_formula(name) for name in names] == guarded


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, BadInput])
def test_after_an_error_the_old_file_is_as_it_was(tmp_path: Path, suffix: str, error: type[BaseException]) -> None:
    schema = pa.schema([("a", pa.int64())])
    batch = pa.record_batch([pa.array(range(10))], schema=schema)
    path = tmp_path / f"t{suffix}"
    path.write_bytes(b"old")
    with pytest.raises(error), Writer(path, schema, {"x": float}) as out:
        out.write(batch, {"x": np.arange(10.0)})
        raise error("stop")
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_bytes() == b"old"
    with Writer(path, schema, {"x": float}) as out:
        out.write(batch, {"x": np.arange(10.0)})
        assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]
    assert sum(chunk.batch.num_rows for chunk in open_table([path]).batches()) == 10


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "import resource, signal, numpy as np, pyarrow as pa\n"
        "from gradeq.files import Writer\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "schema = pa.schema([('a', pa.int64())])\n"
        "x = np.random.default_rng(0).random(100_000)\n"
        "for name in ('t.csv', 't.csv.gz', 't.parquet'):\n"
        "    try:\n"
        "        with Writer(name, schema, {'x': float}) as out:\n"
        "            out.write(pa.record_batch([pa.array(range(100_000))], schema=schema), {'x': x})\n"
        "    except ValueError as e: print(e)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line.split(" cannot be written: ")[0] for line in lines] == ["t.csv", "t.csv.gz", "t.parquet"]
    assert os.listdir(tmp_path) == []


def test_a_killed_run_leaves_only_what_the_next_one_sweeps(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom gradeq.files import atomic\n"
        "with atomic('out.csv') as f:\n    f.write(b'half'); f.flush(); print('on', flush=True); time.sleep(60)\n"
    )
    (tmp_path / "out.csv").write_text("old")
    run = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE)
    assert run.stdout is not None
    assert run.stdout.readline() == b"on\n"
    (left,) = (name for name in os.listdir(tmp_path) if name != "out.csv")
    assert left.startswith(".gradeq-out.csv-")
    past = time.time() - 3600
    os.utime(tmp_path / left, (past, past))
    write_text(tmp_path / "other.txt", "x")
    assert left in os.listdir(tmp_path), "a file that a live run holds is not swept"
    os.kill(run.pid, signal.SIGKILL)
    run.wait(10)
    run.stdout.close()
    assert (tmp_path / "out.csv").read_text() == "old"
    write_text(tmp_path / "other.txt", "y")
    assert sorted(os.listdir(tmp_path)) == ["other.txt", "out.csv"]


def test_an_output_that_cannot_be_is_refused_before_any_work(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("a\n1\n")
    schema = pa.schema([("a", pa.string())])

    def refused(path: Path, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            Writer(path, schema, {"adjusted": float}, inputs=[str(source)])

    (tmp_path / "folder.csv").mkdir()
    os.link(source, tmp_path / "hard.csv")
    os.symlink(source, tmp_path / "soft.csv")
    refused(source, "is an input too")
    refused(tmp_path / "x" / ".." / "in.csv", "is an input too")
    refused(tmp_path / "soft.csv", "is an input too")
    refused(tmp_path / "hard.csv", "is an input too")
    refused(tmp_path / "folder.csv", "is a folder")
    refused(tmp_path / "none" / "out.csv", "there is no folder")
    refused(tmp_path / "out.xlsx", "must end in")
    with pytest.raises(BadInput, match="has a column 'a' already"):
        Writer(tmp_path / "out.csv", schema, {"a": float})
    if os.geteuid() != 0:
        os.chmod(tmp_path, 0o500)
        with pytest.raises(BadInput, match="cannot be written"), atomic(tmp_path / "out.csv"):
            pass
        os.chmod(tmp_path, 0o700)


def test_a_new_column_of_another_length_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64())])
    batch = pa.record_batch([pa.array([1, 2])], schema=schema)
    with (
        pytest.raises(BadInput, match="3 values for 2 rows"),
        Writer(tmp_path / "t.csv", schema, {"x": float}) as out,
    ):
        out.write(batch, {"x": np.zeros(3)})
    assert os.listdir(tmp_path) == []


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("x")
    path.chmod(0o640)
    write_text(path, "y")
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="peak memory is read on Linux")
def test_memory_stays_flat_as_files_grow(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom gradeq.files import Codebook, Writer, open_table\n"
        "table = open_table([sys.argv[1]])\nbook = Codebook()\n"
        "with Writer(sys.argv[2], table.schema, {'adjusted': float}) as out:\n"
        "    for chunk in table.batches():\n"
        "        book.codes(chunk.batch.column('k'))\n"
        "        out.write(chunk.batch, {'adjusted': chunk.numbers('f')})\n"
        "status = open('/proc/self/status').read()\n"
        "print(status.split('VmHWM:')[1].split()[0])\n"
    )

    def peak(rows: int) -> float:
        rng = np.random.default_rng(0)
        path = tmp_path / f"{rows}.parquet"
        columns = {"f": rng.random(rows), "g": rng.random(rows), "k": rng.integers(0, 1000, rows)}
        pq.write_table(pa.table(columns), path, row_group_size=200_000)
        done = subprocess.run(
            [sys.executable, "-c", code, path, tmp_path / "out.parquet"], capture_output=True, text=True, check=True
        )
        return int(done.stdout) / 1024

    small, large = peak(1_500_000), peak(6_000_000)  # the large one is 140 MB of columns
    assert large - small < 60
