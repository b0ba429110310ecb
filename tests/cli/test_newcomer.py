"""What a newcomer types wrong, and labels that are not as expected: one clear line, and nothing made by mistake."""

import pytest

from cli.calling import here, ok, refused, scores, table, write


def test_an_empty_file_of_labels_is_said_to_be_empty(tmp_path):
    state = tmp_path / "s.json"
    rows = write(tmp_path / "rows.csv", [{"id": "a", "f": 0.5}])
    ok(here("debias", rows, "--prediction", "f", "--id", "id", "--state", state, "--quiet"))
    call = ("--state", state, "--id", "id", "--label", "y")
    (tmp_path / "empty.csv").write_text("")
    said = refused(here("label", tmp_path / "empty.csv", *call))
    assert "empty.csv is empty, without even a header line" in said and "at least one row" not in said
    (tmp_path / "head.csv").write_text("id,y\n")
    ok(here("label", tmp_path / "head.csv", *call))
    assert "given as --id and as --label" in refused(here("label", tmp_path / "head.csv", *call[:-1], "id"))


def test_the_table_of_series_counts_labels_under_that_name(tmp_path):
    file, out = write(tmp_path / "rows.csv", scores()), tmp_path / "keys.csv"
    call = ("--prediction", "score", "--label", "outcome", "--key", "shop", "--keys-out", out)
    ok(here("debias", file, *call, "--quiet"))
    labels = dict.fromkeys((row["shop"] for row in table(file)), 0)
    for row in table(file):
        labels[row["shop"]] += row["outcome"] != ""
    assert {row["key"]: int(row["labels"]) for row in table(out)} == labels
    assert all(row["rows"] == row["labels"] for row in table(out))


def test_a_label_dated_before_its_row_is_not_called_early_or_late_but_last(tmp_path):
    file = write(tmp_path / "rows.csv", [{"f": 0.5, "y": 1.0, "t": 10, "known": 3}])
    call = ("debias", file, "--prediction", "f", "--label", "y", "--time", "t", "--label-time")
    said = ok(here(*call, "known")).out
    assert "not due" not in said and "1 label waits for a later row" in said
    assert "No row follows the row of 1 label: nothing was learned." in said
    rows = [{"f": 0.5, "y": 1.0, "t": 10, "known": 30}]
    said = ok(here(*call[:1], write(tmp_path / "late.csv", rows), *call[2:], "known")).out
    assert "1 label was not due before the last row: nothing was learned." in said


WRONG = [
    (("debias",), ["FILE", "is missing"]),
    (("debias", "rows.csv"), ["--prediction is missing; give --prediction COL"]),
    (("label", "rows.csv"), ["--state is missing; give --state FILE.json"]),
    (("nosuch",), ["'nosuch'", "gradeq --help"]),
    (("keys",), ["needs a command: create, list, revoke, rotate"]),
    (("store",), ["needs a command: accept, backup"]),
    (("keys", "nosuch"), ["'nosuch'", "gradeq keys --help"]),
    (("serve", "--port", "x"), ["--port", "'x'", "whole number", "0<=x<=65535"]),
    (("debias", "f.csv", "--clip", "foo"), ["--clip", "'foo'", "0.0<x<0.5"]),
    (("debias", "f.csv", "--in-flight", "1e3"), ["--in-flight", "'1e3'", "whole number"]),
    (("debias", "f.csv", "--decay", "foo"), ["--decay", "'foo'", "give one such as 0.5"]),
    (("debias", "f.csv", "--eta", "foo"), ["--eta", "'foo'", "auto or plain"]),
    (("debias", "f.csv", "--missing-is", "inf"), ["--missing-is", "inf", "give a finite number"]),
]


@pytest.mark.parametrize(("call", "said"), WRONG)
def test_a_wrong_line_is_told_what_to_type(call, said):
    line = refused(here(*call))
    assert all(part in line for part in said), line
    assert "Usage" not in line and len(line) < 200


CALLS = [
    ("keys", "list", "--store"), ("keys", "revoke", "abc", "--store"), ("keys", "rotate", "abc", "--store"),
    ("store", "fold", "--keep", "3"), ("store", "undo", "--key", "abc"), ("store", "migrate"),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_a_store_that_does_not_exist_is_not_made(tmp_path, call):
    pytest.importorskip("starlette")
    assert "does not exist; name a store" in refused(here(*call, tmp_path / "typo.db"))
    assert not list(tmp_path.iterdir())
