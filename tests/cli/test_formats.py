"""Files as other programs write them: own texts for missing, other separators, decimal commas."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gradeq as gq
from cli.calling import column, here, ok, refused, scores, write

BASE = ("--prediction", "score", "--label", "outcome")
MARKERS = ["#N/A", "-", r"\N", "<NA>", "NaT"]


def plain_rows(rows: int = 80) -> list[dict[str, object]]:
    return [{k: row[k] for k in ("id", "score", "outcome", "region", "day", "x")} for row in scores(rows)]


def european(path: Path, rows: list[dict[str, object]], separator: str = ";") -> Path:
    """The same rows with another separator and decimal commas."""
    lines = [separator.join(rows[0])]
    lines += [separator.join(str(cell).replace(".", ",") for cell in row.values()) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_text_for_missing_is_a_missing_label(tmp_path, marker, ending):
    rows = plain_rows()
    blank = write(tmp_path / "blank.csv", rows)
    marked = [row | {"outcome": marker if row["outcome"] == "" else row["outcome"]} for row in rows]
    path = write(tmp_path / "marked.csv", marked)
    if ending == "parquet":
        path = tmp_path / "marked.parquet"
        pq.write_table(pa.table({k: [str(row[k]) for row in marked] for k in rows[0]}), path)
    line = refused(here("debias", path, *BASE))
    assert "is not a number; if it means missing, give --missing " in line
    out = tmp_path / "out.csv"
    found = ok(here("debias", path, *BASE, "--missing", marker, "--json", "-o", out)).json
    same = ok(here("debias", blank, *BASE, "--json", "-o", tmp_path / "same.csv")).json
    assert (found["labelled"], found["bias"]) == (same["labelled"], same["bias"])
    assert column(out, "adjusted") == column(tmp_path / "same.csv", "adjusted")
    assert marker in out.read_text()  # cells are copied as they are


def test_several_texts_for_missing_and_groups_without_a_value(tmp_path):
    rows = plain_rows()
    for k, row in enumerate(rows):
        row["outcome"] = MARKERS[k % 5] if row["outcome"] == "" else row["outcome"]
        row["region"] = "-" if row["region"] == "" else row["region"]
    options = [word for marker in MARKERS for word in ("--missing", marker)]
    path = write(tmp_path / "in.csv", rows)
    found = ok(here("debias", path, *BASE, "--by", "region", *options, "--json")).json
    assert "region=(missing)" in [group["name"] for group in found["groups"]]


def test_a_number_for_missing_holds_in_columns_of_numbers(tmp_path):
    path = tmp_path / "in.parquet"
    labels = [1.5, -999.0, 2.5, -999.0]
    pq.write_table(pa.table({"score": [1.0] * 4, "outcome": labels}), path)
    found = ok(here("debias", path, *BASE, "--missing", "-999", "--json")).json
    assert found["labelled"] == 2


@pytest.mark.parametrize(("sign", "typed"), [(";", ";"), ("\t", "tab"), ("|", "|")])
def test_separators_and_decimal_commas_give_the_same_run(tmp_path, sign, typed):
    rows = plain_rows()
    usual = write(tmp_path / "usual.csv", rows)
    other = european(tmp_path / "other.csv", rows, sign)
    line = refused(here("debias", other, *BASE))
    assert "--separator" in line and typed in line
    assert "for decimal commas give --decimal ," in refused(here("debias", other, *BASE, "--separator", typed))
    own = ("--separator", typed, "--decimal", ",", "--feature", "x", "--eta", "0.01", "--time", "day")
    out = tmp_path / "out.csv"
    found = ok(here("debias", other, *BASE, *own, "--json", "-o", out)).json
    same = ok(here("debias", usual, *BASE, *own[4:], "--json", "-o", tmp_path / "same.csv")).json
    assert found["certificate"] == same["certificate"]
    # What is written can be read by the same options, and holds the same numbers.
    again = ("debias", out, "--prediction", "adjusted", "--label", "outcome", *own[:4], "--json")
    assert ok(here(*again)).json["rows"] == 80
    text = out.read_text().splitlines()
    assert text[0].split(sign) == [*rows[0], "adjusted"]
    served = [float(line.split(sign)[-1].replace(",", ".")) for line in text[1:]]
    assert served == column(tmp_path / "same.csv", "adjusted")


def test_decimal_commas_in_quotes_go_with_commas_between_cells(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text('score,outcome\n"1,5","2,5"\n"1,0","3,5"\n')
    out = tmp_path / "out.csv"
    ok(here("debias", path, *BASE, "--decimal", ",", "--quiet", "-o", out))
    assert out.read_text().splitlines()[1].startswith('"1,5","2,5","1,5"')
    assert "--decimal , a number has a comma and no point" in refused(
        here("debias", write(path, [{"score": 1.5, "outcome": 1}]), *BASE, "--decimal", ",")
    )


@pytest.mark.parametrize("sign", ["", ";;", "a", '"', "é", "0"])
def test_what_separates_nothing_is_refused(tmp_path, sign):
    path = write(tmp_path / "in.csv", plain_rows())
    line = refused(here("debias", path, *BASE, "--separator", sign))
    assert "--separator" in line and "one character such as" in line


def test_parquet_has_no_separator(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"score": [1.0], "outcome": [1.0]}), path)
    assert "leave out --separator" in refused(here("debias", path, *BASE, "--separator", ";"))


def test_games_and_labels_have_the_same_options(tmp_path):
    games = tmp_path / "games.csv"
    games.write_text("a;b;w\nx;y;a\ny;x;-\nx;y;b\n")
    own = ("--separator", ";", "--missing", "-")
    board = tmp_path / "board.csv"
    found = ok(here("elo", games, "--a", "a", "--b", "b", "--winner", "w", *own, "--json", "-o", board))
    assert found.json["labelled"] == 2
    assert board.read_text().startswith("rank;rank_low;")
    state, rows, labels = (tmp_path / name for name in ("s.json", "rows.csv", "labels.csv"))
    rows.write_text("id;p\n1;1,5\n2;2,5\n3;2,5\n")
    labels.write_text("id;y\n1;2,5\n2;#N/A\n3;x\n")
    given = ("--separator", ";", "--decimal", ",")
    ok(here("debias", rows, "--prediction", "p", "--id", "id", "--state", state, *given, "--quiet"))
    post = ("label", labels, "--state", state, "--id", "id", "--label", "y", *given)
    assert "give --missing '#N/A'" in refused(here(*post))
    assert "'x', which is not a number" in refused(here(*post, "--missing", "#N/A"))
    labels.write_text("id;y\n1;2,5\n2;#N/A\n")
    assert ok(here(*post, "--missing", "#N/A", "--json")).json["applied"] == 1
    assert gq.load(state).equilibrium().rows == 1
