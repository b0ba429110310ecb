"""Bad input is refused in one line that names the fault, with nothing written and the state as it was."""

import os
from pathlib import Path

import pytest

from cli.calling import gradeq, here, ok, refused, scores, table, write

BASE = ("--prediction", "score", "--label", "outcome")
BINARY = (*BASE, "--outcome", "binary")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "scores.csv", scores(60))


def changed(tmp_path: Path, row: int, **cells: object) -> Path:
    """The file with some cells of one row (from 1) replaced."""
    rows = scores(60)
    rows[row - 1] |= cells
    return write(tmp_path / "changed.csv", rows)


def in_vain(tmp_path: Path, *arguments: object, code: int = 2) -> str:
    """The refusal of a call; no file may come or change, whatever outputs were asked for."""
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    outputs = ("-o", tmp_path / "out.csv", "--report", tmp_path / "out.html")
    line = refused(here("debias", *arguments, *outputs, "--state", tmp_path / "new.json"), code)
    after = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert after == before
    return line


@pytest.mark.parametrize(
    ("row", "cells", "options", "words"),
    [
        (7, {"score": "abc"}, BASE, ("row 7", "'abc'", "not a number")),
        (7, {"score": ""}, BASE, ("row 7", "'score'")),
        (7, {"score": "NaN"}, BASE, ("row 7", "'score'")),
        (7, {"score": "inf"}, BASE, ("row 7", "infinite")),
        (7, {"outcome": "-inf"}, BASE, ("row 7", "infinite")),
        (7, {"outcome": "yes"}, BASE, ("row 7", "'yes'")),
        (7, {"score": "1.5"}, BINARY, ("row 7", "1.5", "[0, 1]")),
        (7, {"score": "-0.1"}, BINARY, ("row 7", "[0, 1]")),
        (7, {"outcome": "2"}, BINARY, ("row 7", "2.0", "[0, 1]")),
        (7, {"score": "0"}, (*BASE, "--link", "exp"), ("row 7", "positive")),
        (7, {"weight": "-1"}, (*BASE, "--weight", "weight"), ("row 7", "negative")),
        (7, {"weight": ""}, (*BASE, "--weight", "weight"), ("row 7", "'weight'")),
        (7, {"x": ""}, (*BASE, "--feature", "x", "--eta", "0.1"), ("row 7", "'x'")),
        (7, {"day": ""}, (*BASE, "--time", "day"), ("row 7", "'day'")),
        (7, {"day": "soon"}, (*BASE, "--time", "day"), ("row 7", "'soon'")),
    ],
)
def test_a_bad_cell_is_named_by_row_and_value(tmp_path, row, cells, options, words):
    line = in_vain(tmp_path, changed(tmp_path, row, **cells), *options)
    assert all(word in line for word in words), line


def test_a_bad_cell_is_named_by_its_row_in_the_file_also_when_rows_are_sorted(tmp_path):
    file = changed(tmp_path, 41, score="abc")
    assert "row 41" in in_vain(tmp_path, file, *BASE, "--time", "day")


def test_a_bad_cell_in_the_second_file_is_named_with_its_file(file, tmp_path):
    second = changed(tmp_path, 9, score="abc")
    line = in_vain(tmp_path, file, second, *BASE)
    assert f"{second} row 9" in line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--prediction", "scor", "--label", "outcome"], ["'scor'", "did you mean 'score'?"]),
        (["--prediction", "score", "--label", "Outcome"], ["did you mean 'outcome'?"]),
        (["--prediction", "score"], ["--label"]),
        ([*BASE, "--eta", "0"], ["--eta", "above 0"]),
        ([*BASE, "--eta", "-1"], ["--eta"]),
        ([*BASE, "--eta", "nan"], ["--eta"]),
        ([*BASE, "--eta", "inf"], ["--eta"]),
        ([*BASE, "--eta", "fast"], ["--eta", "number"]),
        ([*BASE, "--eta", "5"], ["eta < 2"]),
        ([*BASE, "--eta", "auto", "--decay", "0.5"], ["--decay"]),
        ([*BASE, "--eta", "auto", "--penalty", "lasso", "--strength", "1"], ["--penalty"]),
        ([*BASE, "--penalty", "lasso"], ["--strength"]),
        ([*BASE, "--strength", "1"], ["--penalty"]),
        ([*BASE, "--feature", "x"], ["eta is required"]),
        ([*BASE, "--label-time", "known"], ["--time"]),
        ([*BASE, "--time", "id", "--label-time", "knwn"], ["did you mean 'known'?"]),
        ([*BASE, "--ttl", "3"], ["--time"]),
        ([*BASE, "--time", "day", "--ttl", "-3"], ["--ttl"]),
        ([*BASE, "--time", "day", "--ttl", "3h"], ["--ttl"]),
        ([*BASE, "--in-flight", "0"], ["--in-flight"]),
        ([*BASE, "--in-flight", str(10**30)], ["--in-flight", str(10**9)]),
        ([*BASE, "--decay", "1"], ["--decay 1", "below 1"]),
        ([*BASE, "--link", "logit"], ["logit", "real"]),
        ([*BASE, "--link", "cube"], ["--link"]),
        ([*BASE, "--outcome", "odd"], ["--outcome"]),
        ([*BASE, "--clip", "0.7"], ["--clip"]),
        ([*BASE, "--column", "x"], ["'x'", "--column"]),
        ([*BASE, "--bye", "sex"], ["--bye"]),
        ([*BASE, "--by", "sex", "--by", "sex"], ["twice"]),
    ],
)
def test_options_that_make_no_sense_are_refused(file, tmp_path, options, words):
    line = in_vain(tmp_path, file, *options)
    assert all(word in line for word in words), line


def test_files_that_cannot_be_read_are_refused(file, tmp_path):
    cases: dict[str, bytes] = {
        "empty.csv": b"",
        "header.csv": b"score,outcome\n",
        "twice.csv": b"score,score,outcome\n1,2,3\n",
        "ragged.csv": b"score,outcome\n1,2\n1,2,3\n",
        "notes.txt": b"score,outcome\n1,2\n",
        "binary.csv": bytes(range(256)) * 4,
        "broken.parquet": b"PAR1 nothing of that kind",
        "short.csv.gz": b"\x1f\x8b\x08\x00rubbish",
        "quote.csv": b'score,outcome\n1,"2\n' + b"3,4\n" * 50,
    }
    for name, content in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert name in in_vain(tmp_path, path, *BASE)
    assert "does not exist" in in_vain(tmp_path, tmp_path / "none.csv", *BASE)
    assert "folder" in in_vain(tmp_path, tmp_path, *BASE)
    assert "FILE" in refused(here("debias", *BASE))


def test_a_truncated_parquet_file_is_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"score": [0.5] * 1000, "outcome": [1.0] * 1000}), whole)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-200])
    assert "cut.parquet" in in_vain(tmp_path, cut, *BASE)


def test_outputs_in_impossible_places_are_refused(file, tmp_path):
    content = file.read_bytes()
    for options in (
        ("-o", file),
        ("-o", tmp_path / "no" / "out.csv"),
        ("-o", tmp_path),
        ("-o", tmp_path / "out.txt"),
        ("--report", file),
        ("--state", file),
        ("-o", tmp_path / "a.csv", "--report", tmp_path / "a.csv"),
        ("--report", tmp_path / "no" / "r.html"),
        ("--state", tmp_path / "no" / "s.json"),
    ):
        code = 3 if options == ("--state", file) else 2
        refused(here("debias", file, *BASE, *options), code)
    link = tmp_path / "link.csv"
    link.symlink_to(file)
    refused(here("debias", file, *BASE, "-o", link))
    assert file.read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.csv", "scores.csv"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_refused(file, tmp_path):
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o500)
    refused(here("debias", file, *BASE, "-o", shut / "out.csv"))


def test_marks_line_ends_and_odd_cells_pass_through_unchanged(tmp_path):
    odd = tmp_path / "odd.csv"
    odd.write_bytes(
        b"\xef\xbb\xbfscore,outcome,note\r\n0.5,1,007\n0.25,NA,=1+1\r\n"
        b'0.5,0," a ""quoted"" cell, with\nlines"\n1e-1,none,-x\n'
    )
    out = tmp_path / "out.csv"
    done = ok(here("debias", odd, *BASE, "-o", out, "--json"))
    assert (done.json["rows"], done.json["labelled"]) == (4, 2)
    lines = table(out)
    assert [line["note"] for line in lines] == [
        "007", "=1+1", ' a "quoted" cell, with\nlines', "-x",
    ]  # fmt: skip
    assert [line["score"] for line in lines] == ["0.5", "0.25", "0.5", "1e-1"]


def test_a_huge_cell_is_carried_or_refused_in_one_line(tmp_path):
    path = tmp_path / "huge.csv"
    path.write_text("score,outcome,note\n0.5,1," + "x" * 1_000_000 + "\n0.5,0,y\n")
    ok(here("debias", path, *BASE, "-o", tmp_path / "out.csv", "--quiet"))
    path.write_text("score,outcome,note\n0.5,1," + "x" * 9_000_000 + "\n0.5,0,y\n")
    refused(here("debias", path, *BASE))


def test_ten_thousand_groups_are_warned_about_and_served(tmp_path):
    rows = [{"score": 1.0, "outcome": i % 2, "who": f"g{i}"} for i in range(3000)]
    file = write(tmp_path / "many.csv", rows)
    done = ok(here("debias", file, *BASE, "--by", "who"))
    assert "3,000 groups in who" in done.out
    assert "and 2,980 groups with less" in done.out


def test_a_step_that_diverges_is_an_error_and_nothing_is_written(tmp_path):
    rows = [{"f": 0.0, "y": 1e300 * (-1) ** i, "t": i, "due": i + 50} for i in range(2000)]
    file = write(tmp_path / "wild.csv", rows)
    options = ("--prediction", "f", "--label", "y", "--time", "t", "--label-time", "due")
    line = refused(here("debias", file, *options, "--eta", "1.9", "--no-cap", "-o", tmp_path / "o.csv"))
    assert "diverging" in line
    assert not (tmp_path / "o.csv").exists()


def test_an_unknown_command_or_figure_is_refused(tmp_path):
    assert "debiasing" in refused(gradeq("debiasing", "x.csv", cwd=tmp_path))


def test_hostile_names_are_printed_without_their_control_characters(tmp_path):
    rows = scores(100)
    for row in rows[:50]:
        row["region"] = "\x1b[31mred\x07"
    file = write(tmp_path / "scores.csv", rows)
    done = ok(here("debias", file, *BASE, "--by", "region"))
    assert "\x1b" not in done.out and "\x07" not in done.out and "red" in done.out
    line = refused(here("debias", file, "--prediction", "\x1b[2Jscore", "--label", "outcome"))
    assert "\x1b" not in line


@pytest.mark.parametrize("eta", ["auto", "plain", "0.1"])
def test_numbers_too_large_for_any_step_are_named(eta, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("p,y\n1,2\n1e308,-1e308\n1e308,-1e308\n")
    line = refused(here("debias", path, "--prediction", "p", "--label", "y", "--eta", eta))
    assert "row 2: column 'p' has 1e+308, which is too large" in line and "eta" not in line
