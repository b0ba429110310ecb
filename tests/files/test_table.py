"""Reading tables: every cell as it was written, bounded batches, one clear line for bad files."""

import csv
import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.errors import BadInput
from gradeq.files import Table, open_table


def made(path: Path, content: bytes | str) -> str:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return str(path)


def cells(table: Table) -> dict[str, list[object]]:
    chunks = list(table.batches())
    return {name: [cell for chunk in chunks for cell in chunk.batch.column(name).to_pylist()] for name in table.names}


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_cells_of_csv_are_text_as_written(tmp_path: Path, suffix: str) -> None:
    text = 'id,x,note\r\n007,1.50,"a,b"\n008,,"say ""hi"""\r\n009,NA,"two\r\nlines"\n'
    table = open_table([made(tmp_path / f"t{suffix}", text)])
    assert cells(table) == {
        "id": ["007", "008", "009"],
        "x": ["1.50", "", "NA"],
        "note": ["a,b", 'say "hi"', "two\r\nlines"],
    }


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    table = open_table([made(tmp_path / "t.csv", b"\xef\xbb\xbff,y\r\n1,2\r\n")])
    assert table.names == ["f", "y"]
    assert cells(table) == {"f": ["1"], "y": ["2"]}


printable = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@given(rows=st.lists(st.tuples(printable, printable), min_size=1, max_size=20), end=st.sampled_from(["\n", "\r\n"]))
def test_whatever_a_csv_writer_quotes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], end: str
) -> None:
    text = io.StringIO(newline="")
    out = csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL)
    out.writerows([("a", "b"), *rows])
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    table = open_table([made(path, text.getvalue())])
    assert list(zip(*cells(table).values(), strict=True)) == rows


def test_batches_are_bounded_and_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradeq.files.table.BLOCK", 1000)
    lines = "".join(f"{i},{i}.5\n" for i in range(1000))
    chunks = list(open_table([made(tmp_path / "t.csv", "a,b\n" + lines)]).batches(["b"]))
    assert len(chunks) > 5
    assert max(chunk.batch.num_rows for chunk in chunks) < 300
    starts = np.cumsum([0, *(chunk.batch.num_rows for chunk in chunks)])
    assert [chunk.start for chunk in chunks] == starts[:-1].tolist()
    assert [chunk.first_row for chunk in chunks] == (starts[:-1] + 1).tolist()
    assert np.concatenate([c.numbers("b") for c in chunks]).tolist() == [i + 0.5 for i in range(1000)]


def test_the_row_number_of_an_error_counts_across_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradeq.files.table.BLOCK", 1000)
    good = "".join(f"{i},1\n" for i in range(1, 701))
    path = made(tmp_path / "t.csv", "a,b\n" + good + "701,one\n")
    with pytest.raises(BadInput, match=r"^row 701: column 'b' has 'one', which is not a number"):
        [chunk.numbers("b") for chunk in open_table([path]).batches()]
    path = made(tmp_path / "u.csv", "a,b\n" + good + "701\n")
    with pytest.raises(BadInput, match=r"u\.csv row 701 has 1 cell, the header 2"):
        list(open_table([path]).batches())
    path = made(tmp_path / "v.csv", b"a,b\n" + good.encode() + b"\xff\xfe,1\n")
    with pytest.raises(BadInput, match=r"v\.csv row 701: column 'a' is not UTF-8"):
        list(open_table([path]).batches())


@pytest.mark.parametrize("columns", [["c"], ["d", "c"], ["a", "b", "c", "d"]], ids=str)
def test_text_that_is_not_utf8_is_named_whichever_columns_are_read(tmp_path: Path, columns: list[str]) -> None:
    path = made(tmp_path / "t.csv", b"a,b,c,d\n1,2,3,4\n1,2,\xff,4\n")
    with pytest.raises(BadInput, match=r"row 2: column 'c' is not UTF-8"):
        list(open_table([path]).batches(columns))


def test_an_open_quote_is_found_whichever_columns_are_read(tmp_path: Path) -> None:
    path = made(tmp_path / "t.csv", 'a,b\n1,2\n3,"4\n5,6\n')
    with pytest.raises(BadInput, match="ends inside a quoted cell"):
        list(open_table([path]).batches(["a"]))


def test_columns_come_in_the_order_asked_for(tmp_path: Path) -> None:
    csv_file = made(tmp_path / "t.csv", "a,b,c\n1,2,3\n")
    pq.write_table(pa.table({"a": ["1"], "b": ["2"], "c": ["3"]}), tmp_path / "t.parquet")
    for path in (csv_file, tmp_path / "t.parquet"):
        (chunk,) = open_table([path]).batches(["c", "a", "c"])
        assert chunk.batch.to_pydict() == {"c": ["3"], "a": ["1"]}


def test_parquet_keeps_types_and_several_files_are_one_table(tmp_path: Path) -> None:
    one, two = str(tmp_path / "1.parquet"), str(tmp_path / "2.parquet")
    pq.write_table(pa.table({"k": pa.array([1, 2], pa.int32()), "s": ["a", None]}), one)
    pq.write_table(pa.table({"s": ["c"], "k": pa.array([2**40], pa.int64())}), two)
    table = open_table([one, two])
    assert cells(table) == {"k": [1, 2, 2**40], "s": ["a", None, "c"]}
    assert table.rows == 3
    assert table.progress() == 1.0
    assert [chunk.file for chunk in table.batches()] == [one, two]


def test_several_csv_files_are_one_table_in_the_columns_of_the_first(tmp_path: Path) -> None:
    one = made(tmp_path / "1.csv", "a,b\n1,2\n")
    two = made(tmp_path / "2.csv.gz", "b,a\n4,3\n")
    table = open_table([one, two])
    assert cells(table) == {"a": ["1", "3"], "b": ["2", "4"]}


def test_a_row_in_one_of_several_files_is_named_with_its_file(tmp_path: Path) -> None:
    one = made(tmp_path / "1.csv", "a\n1\n2\n")
    two = made(tmp_path / "2.csv", "a\n3\nx\n")
    with pytest.raises(BadInput, match=r"2\.csv row 2: column 'a' has 'x'"):
        [chunk.numbers("a") for chunk in open_table([one, two]).batches()]


def test_a_very_large_row_group_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradeq.files.table._LARGE_GROUP", 1000)
    monkeypatch.setattr("gradeq.files.table.ROWS", 100)
    values = np.arange(5000.0)
    pq.write_table(pa.table({"x": values}), tmp_path / "t.parquet")
    chunks = list(open_table([tmp_path / "t.parquet"]).batches())
    assert max(chunk.batch.num_rows for chunk in chunks) <= 100
    assert np.concatenate([c.numbers("x") for c in chunks]).tobytes() == values.tobytes()


def standard_input(code: str, data: bytes) -> str:
    script = f"from gradeq.files import open_table\nimport gradeq.errors\n{code}"
    done = subprocess.run([sys.executable, "-c", script], input=data, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_standard_input_is_csv_and_a_spooled_one_can_be_read_again() -> None:
    rows = b"a,b\n" + b"007,x\n" * 500_000  # more than a first look takes
    count = "sum(c.batch.num_rows for c in t.batches())"
    code = f"t = open_table(['-'], spool=True)\nprint({count}, {count}, t.names)"
    assert standard_input(code, rows).strip() == "500000 500000 ['a', 'b']"
    code = f"t = open_table(['-'])\nprint({count})\ntry: {count}\nexcept ValueError as e: print(e)"
    first, second = standard_input(code, rows).splitlines()
    assert first == "500000"
    assert second == "standard input can be read only once; give a file"


def test_a_named_pipe_is_read_as_csv(tmp_path: Path) -> None:
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    writer = subprocess.Popen(["sh", "-c", f"printf 'a,b\\n1,2\\n' > {pipe}"])
    table = open_table([pipe])
    assert cells(table) == {"a": ["1"], "b": ["2"]}
    assert writer.wait(10) == 0


def whole_parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": np.arange(1000.0)}), sink)
    return sink.getvalue()


BAD_FILES = [
    ("absent.csv", None, "does not exist"),
    ("empty.csv", b"", "is empty"),
    ("blank.csv", b"\n\r\n  \n", "is empty"),
    ("mark.csv", b"\xef\xbb\xbf", "is empty"),
    ("header.csv", b"a,b\n", "has no rows"),
    ("header_only.csv", b"a,b", "has no rows"),
    ("twice.csv", b"a,b,a\n1,2,3\n", "more than one column 'a'"),
    ("picture.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "neither CSV in UTF-8 nor Parquet"),
    ("latin.csv", "prénom,y\n1,2\n".encode("latin-1"), "neither CSV in UTF-8 nor Parquet"),
    ("wide.csv", "a,b\n1,2\n".encode("utf-16"), "UTF-16"),
    ("really.csv", whole_parquet(), "name it .parquet"),
    ("really2.csv", gzip.compress(b"a,b\n1,2\n", mtime=0), "name it .csv.gz"),
    ("plain.csv.gz", gzip.decompress(gzip.compress(b"a,b\n1,2\n", mtime=0)), "is it gzipped"),
    ("cut.csv.gz", None, "cannot be read"),
    ("quote.csv", b'a,b\n1,2\n3,"4\n5,6\n', "ends inside a quoted cell"),
    ("long.csv", b"a,b\n" + b"x" * (9 << 20) + b",1\n", "longer than 4 MB"),
    ("sheet.xlsx", b"PK\3\4", "by its name"),
    ("text.parquet", b"a,b\n1,2\n", "not a complete Parquet file"),
    ("zero.parquet", b"", "not a complete Parquet file"),
    ("cut.parquet", whole_parquet()[:-100], "not a complete Parquet file"),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD_FILES, ids=lambda v: str(v)[:20])
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    path = tmp_path / name
    if name == "cut.csv.gz":
        content = gzip.compress(os.urandom(4000) + b",b\n1,2\n", mtime=0)[:-2000]
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput) as error:
        list(open_table([path]).batches())
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_damage_within_a_parquet_file_is_refused(tmp_path: Path) -> None:
    data = bytearray(whole_parquet())
    data[4:200] = bytes(196)
    (tmp_path / "t.parquet").write_bytes(data)
    with pytest.raises(BadInput, match="cannot be read as Parquet"):
        list(open_table([tmp_path / "t.parquet"]).batches())


def test_a_parquet_file_without_rows_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "t.parquet")
    with pytest.raises(BadInput, match="no rows"):
        open_table([tmp_path / "t.parquet"])


def test_a_file_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path / "t.csv", "p\n1\n")
    (tmp_path / "again.csv").symlink_to(path)
    for other in (path, str(tmp_path / "again.csv")):
        with pytest.raises(BadInput, match="named twice"):
            open_table([path, other])


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a folder"):
        open_table([tmp_path])


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("predicton", "did you mean 'prediction'?"),
        ("LABEL", "did you mean 'label'?"),
        ("zzz", "the columns are 'prediction', 'label'"),
    ],
)
def test_a_wrong_column_is_refused_with_the_nearest_name(tmp_path: Path, asked: str, hint: str) -> None:
    table = open_table([made(tmp_path / "t.csv", "prediction,label\n1,2\n")])
    with pytest.raises(BadInput) as error:
        table.need("label", asked)
    assert str(error.value) == f"{tmp_path}/t.csv has no column {asked!r}; {hint}"


def test_another_separator_is_guessed_in_the_message(tmp_path: Path) -> None:
    table = open_table([made(tmp_path / "t.csv", "f;y\n1;2\n")])
    with pytest.raises(BadInput, match="give --separator ';'"):
        table.need("f")


def test_inputs_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    one = made(tmp_path / "1.csv", "a,b\n1,2\n")
    with pytest.raises(BadInput, match=r"2\.csv has no column 'b', unlike"):
        open_table([one, made(tmp_path / "2.csv", "a\n1\n")])
    with pytest.raises(BadInput, match=r"2\.csv has a column 'c', unlike"):
        open_table([one, made(tmp_path / "2.csv", "a,b,c\n1,2,3\n")])
    (tmp_path / "3.parquet").write_bytes(whole_parquet())
    with pytest.raises(BadInput, match="differ in format"):
        open_table([one, tmp_path / "3.parquet"])
    with pytest.raises(BadInput, match="give it alone"):
        open_table([one, "-"])
    with pytest.raises(BadInput, match="no input file"):
        open_table([])
