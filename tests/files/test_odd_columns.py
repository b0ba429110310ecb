"""Columns that arrow reads by surprise: dictionaries of parts, bytes that are no text, types that differ by file."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.calling import gradeq, here, ok, refused

BASE = ("--prediction", "p", "--label", "y")
ROWS = 60


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plain(seed=0):
    rng = np.random.default_rng(seed)
    return {"p": rng.random(ROWS), "y": (rng.random(ROWS) < 0.5).astype(float)}


def with_groups(kind, parts):
    """Tables whose group columns share no name, so that together they need more numbers than one of them."""
    return [pa.table(plain(k) | {"g": pa.array([f"{k}-{i}" for i in range(ROWS)]).cast(kind)}) for k in range(parts)]


@pytest.mark.parametrize("more", [(), ("--time", "p")])
@pytest.mark.parametrize("files", [True, False])
def test_small_dictionaries_of_parts_or_files_are_read_as_their_texts(folder, more, files):
    small = pa.dictionary(pa.int8(), pa.string())
    outputs = []
    for kind in (pa.string(), small):
        tables = with_groups(pa.string(), 4)
        if kind == small:
            tables = [t.set_column(2, "g", t["g"].combine_chunks().dictionary_encode().cast(small)) for t in tables]
        if files:
            names = [f"{k}.parquet" for k in range(4)]
            for name, own in zip(names, tables, strict=True):
                pq.write_table(own, name)
        else:
            names = ["all.parquet"]
            with pq.ParquetWriter(names[0], tables[0].schema) as out:
                for own in tables:
                    out.write_table(own)
        ok(here("debias", *names, *BASE, "--by", "g", *more, "--quiet", "-o", "out.parquet"))
        found = pq.read_table("out.parquet")
        outputs.append((found["g"].cast(pa.string()).to_pylist(), found["adjusted"].to_pylist()))
    assert outputs[0] == outputs[1]


def spoiled(path):
    """Put bytes that are no UTF-8 in the place of QQQQ."""
    with open(path, "rb") as file:
        data = file.read().replace(b"QQQQ", b"\xff\xfe\xfd\xfc")
    with open(path, "wb") as file:
        file.write(data)


def test_bytes_that_are_no_text_are_refused_by_row_and_column(folder):
    cells = ["a"] * 41 + ["QQQQ"] + ["a"] * 18
    pq.write_table(
        pa.table(plain() | {"g": cells}), "t.parquet", compression="none", use_dictionary=False,
        write_statistics=False, row_group_size=25,
    )  # fmt: skip
    spoiled("t.parquet")
    for call in (("--by", "g"), ("--id", "g"), ("-o", "out.csv"), ("--key", "g", "--eta", "0.1")):
        line = refused(here("debias", "t.parquet", *BASE, *call))
        assert "row 42: column 'g' is not UTF-8" in line
    ok(here("debias", "t.parquet", *BASE, "--quiet"))  # nobody asks for that column
    pq.write_table(pa.table(plain() | {"QQQQ": cells}), "n.parquet", store_schema=False)
    spoiled("n.parquet")
    assert "whose name is not UTF-8" in refused(here("debias", "n.parquet", *BASE))


@pytest.mark.skipif(os.name != "posix", reason="names of bytes")
def test_names_that_are_no_text_can_be_used_and_a_column_needs_text(folder):
    pq.write_table(pa.table(plain()), "in.parquet")
    odd = os.fsdecode(b"\xff")
    os.rename("in.parquet", f"{odd}.parquet")
    outputs = ("-o", f"{odd}.csv", "--report", f"{odd}.html", "--state", f"{odd}.json")
    assert gradeq("debias", f"{odd}.parquet", *BASE, *outputs, cwd=folder).code == 0
    audit = gradeq("audit", f"{odd}.json", cwd=folder)
    assert audit.code == 0 and "in place" in audit.out
    call = ("debias", f"{odd}.parquet", *BASE, "--column", odd, "-o", "out.csv")
    assert "no name in UTF-8" in refused(here(*call))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([2**60 + 1] * ROWS), pa.array([0.5] * ROWS)),
        (pa.array([1] * ROWS), pa.array([2**64 - 1] * ROWS, pa.uint64())),
    ],
)
def test_whole_numbers_that_do_not_fit_beside_others_are_refused_by_file_and_column(folder, first, second):
    pq.write_table(pa.table(plain() | {"x": first}), "a.parquet")
    pq.write_table(pa.table(plain() | {"x": second}), "b.parquet")
    for files in (("a.parquet", "b.parquet"), ("b.parquet", "a.parquet")):
        line = refused(here("debias", *files, *BASE, "-o", "out.parquet"))
        assert ".parquet: column 'x' holds" in line and "same types" in line
        ok(here("debias", *files, *BASE, "--quiet"))  # nobody asks for that column


def test_a_first_line_without_end_is_no_header(folder):
    (folder / "in.csv").write_bytes(b"p,y," + b"x" * (3 << 20))
    assert "the first line is longer than 2 MB" in refused(here("debias", "in.csv", *BASE))


def test_many_columns_are_carried_along(folder):
    count = 5000
    header = ",".join(["p", "y", *(f"c{i}" for i in range(count))])
    row = ",".join(["0.5", "1", *("3" for _ in range(count))])
    (folder / "in.csv").write_text(f"{header}\n{row}\n{row}\n")
    ok(here("debias", "in.csv", *BASE, "--eta", "0.1", "--quiet", "-o", "out.csv"))
    first, second, _ = (folder / "out.csv").read_text().splitlines()
    assert (first, second) == (f"{header},adjusted", f"{row},0.5")


@pytest.mark.parametrize("kind", [pa.time64("us"), pa.time32("ms"), pa.duration("s")], ids=str)
def test_a_time_that_is_no_moment_is_refused_with_what_is_needed(folder, kind):
    whole = pa.int32() if kind == pa.time32("ms") else pa.int64()
    pq.write_table(pa.table(plain() | {"t": pa.array(range(ROWS), whole).cast(kind)}), "t.parquet")
    line = refused(here("debias", "t.parquet", *BASE, "--time", "t"))
    assert "'t'" in line and str(kind) in line and "dates, timestamps or numbers" in line


@pytest.mark.parametrize("word", ["", "NA", "N/A", "n/a", "NaN", "null", "None", " none "])
def test_words_for_no_label_are_blank(folder, word):
    (folder / "rows.csv").write_text("p,y\n" + "1,2\n" * 30 + f"1,{word}\n")
    assert ok(here("debias", "rows.csv", *BASE, "--json")).json["labelled"] == 30
