"""Odd places and odd cells: pipes named like our files, addresses, compressed streams, decimals, clock changes."""

import datetime as dt
import gzip
import os
import random
import subprocess
import time
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gradeq as gq
from cli.calling import here, installed, ok, refused, write
from gradeq.layers import columns

BASE = ("--prediction", "p", "--label", "y")


def rows_of(times: list[str]) -> list[dict[str, object]]:
    return [{"p": 10, "y": 11 + k % 3, "t": t} for k, t in enumerate(times)]


def test_a_pipe_named_like_a_temporary_file_does_not_hang_a_run(tmp_path):
    path = write(tmp_path / "in.csv", rows_of(["1", "2"]))
    pipe = tmp_path / ".gradeq-out.csv-0123456789ab.tmp"
    os.mkfifo(pipe)
    old = time.time() - 3600.0
    os.utime(pipe, (old, old))
    command = [*installed(), "debias", str(path), *BASE, "-o", str(tmp_path / "out.csv"), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert pipe.exists()  # not ours: it stays


@pytest.mark.parametrize("kind", ["groups", "features"])
def test_columns_that_a_layer_does_not_know_are_refused_by_every_verb(kind):
    layer = gq.Debiaser(groups=["region"], features=["x"], eta=0.1)
    one = {"groups": {"region": "n"}, "features": {"x": 1.0}}
    many = {name: {own: [cell] * 3 for own, cell in cells.items()} for name, cells in one.items()}
    one[kind] |= {"extra": 1.0}
    many[kind] |= {"extra": [1.0] * 3}
    text, said = layer.to_json(), set()
    for call in (
        lambda: layer.predict(1.0, **one),
        lambda: layer.run([1.0] * 3, [2.0] * 3, **many),
        lambda: layer.predict_many([1.0] * 3, **many),
        lambda: layer.sweep([0.1], [1.0] * 3, [2.0] * 3, **many),
    ):
        with pytest.raises(gq.BadInput, match="'extra'") as refusal:
            call()
        said.add(str(refusal.value))
    assert len(said) == 1  # in the same words
    assert layer.to_json() == text


def test_a_frame_of_groups_may_have_other_columns():
    frame = pd.DataFrame({"region": ["n", "s", "n"], "other": [1, 2, 3]})
    gq.Debiaser(groups="region", eta=0.1).run([1.0] * 3, [2.0] * 3, groups=frame)


def decimals() -> list[Decimal]:
    rng = random.Random(9)
    return [Decimal(rng.randrange(-(10**18), 10**18)).scaleb(-rng.choice([9, 12])) for _ in range(2000)]


@pytest.mark.parametrize("kind", [pa.decimal128(38, 12), pa.decimal256(60, 12)])
def test_decimals_are_the_nearest_floats_as_in_text(tmp_path, kind):
    cells = [cell.quantize(Decimal(1).scaleb(-12)) for cell in decimals()]
    column = pa.array(cells, kind)
    want = [float(cell) for cell in cells]
    forms = {"arrow": column, "list": cells, "objects": pd.Series(cells)}
    forms["pandas"] = pd.Series(column, dtype=pd.ArrowDtype(kind))
    if kind == pa.decimal128(38, 12):
        forms["polars"] = pl.Series("p", column)
    for form in forms.values():
        assert columns.floats(form, "p").tolist() == want
    path, text = tmp_path / "in.parquet", tmp_path / "in.csv"
    pq.write_table(pa.table({"p": column, "y": want}), path)
    write(text, [{"p": str(cell), "y": repr(y)} for cell, y in zip(cells, want, strict=True)])
    found = [ok(here("debias", own, *BASE, "--eta", "0.1", "--json")).json for own in (path, text)]
    assert found[0]["theta"] == found[1]["theta"] and found[0]["bias"]["before"] == 0.0


@pytest.mark.parametrize("name", ["s3://bucket/in.csv", "gs://b/in.parquet", "https://x.org/in.csv"])
def test_an_address_is_said_to_be_one(tmp_path, name):
    line = refused(here("debias", name, *BASE))
    assert "only local files are read" in line and "download it first" in line and " - " in line
    path = write(tmp_path / "in.csv", rows_of(["1"]))
    for option in ("-o", "--report", "--state"):
        assert "only local files are written" in refused(here("debias", path, *BASE, option, name))
    assert "only local files" in refused(here("audit", name))
    assert "file system path" in refused(here("debias", "file:///tmp/in.csv", *BASE))


def piped(data: bytes, *arguments: str) -> tuple[int, str]:
    command = [*installed(), "debias", "-", *BASE, *arguments]
    done = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
    return done.returncode, done.stderr.decode()


def test_other_formats_on_standard_input_get_a_remedy_that_applies(tmp_path):
    text = b"p,y\n1,2\n"
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"p": [1.0], "y": [2.0]}), path)
    code, line = piped(gzip.compress(text))
    assert code == 2 and line.count("\n") == 1 and "gzip -dc" in line and "name it" not in line
    code, line = piped(path.read_bytes())
    assert code == 2 and line.count("\n") == 1 and "give the file itself" in line
    code, line = piped("p,y\n1,2\n".encode("utf-16"))
    assert code == 2 and line.count("\n") == 1 and "iconv -f UTF-16 -t UTF-8" in line


def clocks_back(minutes: int = 60) -> list[str]:
    """Local times of an autumn night, as a wall clock shows them: an hour comes twice."""
    start = dt.datetime(2024, 10, 27, 0, 30)
    moments = [start + dt.timedelta(minutes=10 * k) for k in range(24)]
    turn = dt.datetime(2024, 10, 27, 3)
    shown = [when if when < turn else when - dt.timedelta(minutes=minutes) for when in moments]
    return [when.isoformat() for when in shown]


def warnings_of(path: Path, *options: str) -> list[str]:
    return [own["claim"] for own in ok(here(*options, path, "--time", "t", "--json")).json["warnings"]]


@pytest.mark.parametrize("command", ["debias", "elo"])
def test_an_hour_that_comes_twice_is_told_of(tmp_path, command):
    rows = [row | {"a": "x", "b": "y"} for row in rows_of(clocks_back())]
    path = write(tmp_path / "in.csv", rows)
    given = (command, *BASE) if command == "debias" else (command, "--a", "a", "--b", "b", "--score", "s")
    if command == "elo":
        path = write(tmp_path / "in.csv", [row | {"s": 1} for row in rows])
    told = [claim for claim in warnings_of(path, *given) if "go back" in claim]
    assert told == ["Times without a zone go back by 50 minutes at row 16: were clocks changed?"]


def test_times_in_any_other_order_are_not_suspected(tmp_path):
    straight = [f"2024-10-27T{k:02d}:00" for k in range(24)]
    for times in (
        straight,
        straight[::-1],
        random.Random(1).sample(straight, 24),
        [t + "Z" for t in clocks_back()],
        [str(k % 7) for k in range(20)],
    ):
        path = write(tmp_path / "in.csv", rows_of(times))
        assert not [claim for claim in warnings_of(path, "debias", *BASE) if "go back" in claim]


def test_python_says_so_too():
    times = np.array(clocks_back(), "datetime64[ns]")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        gq.Debiaser().run([10.0] * 24, [12.0] * 24, times=times)
        gq.Debiaser().run([10.0] * 24, [12.0] * 24, times=np.sort(times))
    assert [str(own.message).partition(":")[0] for own in found] == [
        "times without a zone go back by 50 minutes at row 15"
    ]
