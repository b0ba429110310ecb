"""Odd files and odd options end well or in one line, whatever arrow or Python would make of them."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gradeq as gq
from cli.calling import gradeq, here, ok, refused, table
from fuzz.odd_files import tried
from gradeq.errors import BadInput

BASE = ("--prediction", "p", "--label", "y")


def test_odd_files_and_options_end_well_or_in_one_line():
    codes, broken = tried(range(400))
    assert not broken, "\n".join(broken)
    assert codes[0] > 60 and codes[2] > 150


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def made(**columns):
        rng = np.random.default_rng(1)
        plain = {"p": rng.random(40), "y": (rng.random(40) < 0.5).astype(float)}
        pq.write_table(pa.table(plain | columns), "in.parquet")

    return made


def test_views_of_text_are_text(file):
    cells = [str(i % 5) for i in range(40)]
    outputs = []
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        column = pa.array(cells, kind)
        file(g=column, w=column, t=pa.array([f"{i:03d}" for i in range(40)], kind))
        call = ("--by", "g", "--weight", "w", "--time", "t", "--eta", "0.1", "--quiet")
        ok(here("debias", "in.parquet", *BASE, *call, "-o", "out.csv"))
        outputs.append([row["adjusted"] for row in table("out.csv")])
    assert outputs[0] == outputs[1] == outputs[2]


@pytest.mark.parametrize(
    "column",
    [pa.array([2**31 - 1] * 40, pa.date32()), pa.array([10**17] * 40, pa.duration("s")), pa.array([[1]] * 40)],
    ids=["date", "duration", "list"],
)
def test_a_column_that_can_name_nothing_is_refused_by_its_name(file, column):
    file(g=column)
    for call in (("--by", "g"), ("--id", "g"), ("--by", "g", "--state", "s.json")):
        assert "column 'g' holds" in refused(here("debias", "in.parquet", *BASE, *call))
    assert os.listdir() == ["in.parquet"]


def test_steps_and_weights_that_rounding_would_lose_are_refused(file):
    file(w=np.full(40, 5e-324))
    for step in ("5e-324", "1e-101", "1e101", "1e308"):
        assert "lost in rounding" in refused(here("debias", "in.parquet", *BASE, "--eta", step))
    assert "row 1: column 'w'" in refused(here("debias", "in.parquet", *BASE, "--weight", "w"))
    layer = gq.Debiaser(eta=1e-100)
    layer.predict(0.5, id=1)
    with pytest.raises(BadInput, match="rounding"):
        gq.Debiaser(eta=0.1).predict(0.5, weight=1e-200)
    layer.update(1.0, id=1)
    assert layer.equilibrium().balance != "broken"


def test_rows_none_of_whose_labels_is_due_are_kept_for_later(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open("in.csv", "w") as out:
        out.write("p,y,g,t,d,id\n0.5,0,b,0,4,r0\n0.5,1,a,1,4,r1\n")
    times = ("--time", "t", "--label-time", "d", "--id", "id")
    done = ok(here("debias", "in.csv", *BASE, "--by", "g", *times, "--state", "s.json", "--json"))
    assert done.json["not_due"] == 2


def test_no_warning_stands_beside_the_line(file, tmp_path):
    file(p=np.full(40, 1e308), y=np.full(40, -1e308))
    call = ("--eta", "1.9", "--min", "-1e308", "--max", "1e308", "--report", "page.html")
    done = gradeq("debias", "in.parquet", *BASE, *call, cwd=tmp_path)
    assert done.code in (0, 2) and done.err.count("\n") == (done.code == 2), done.err
