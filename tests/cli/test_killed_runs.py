"""Outputs and state are a pair: whatever moment a run is killed at, no row is lost or learned from twice."""

import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import chdir
from pathlib import Path

import pytest

import gradeq as gq
from cli.calling import gradeq, here, ok, refused, scores, write
from gradeq.cli import session
from gradeq.cli.session import locked_state

BASE = ("--prediction", "score", "--label", "outcome", "--eta", "0.1", "--quiet")
OUT = ("-o", "out.csv", "--state", "state.json")
SECOND = ("debias", "second.csv", *BASE, "--id", "id", *OUT)
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """A state that has seen a first file, and a second file to come."""
    made = tmp_path_factory.mktemp("pairs") / "work"
    made.mkdir()
    with chdir(made):
        write(Path("first.csv"), scores(40, seed=1))
        write(Path("second.csv"), [row | {"id": f"b{row['id']}"} for row in scores(60, seed=2)])
        ok(here("debias", "first.csv", *BASE, "--id", "id", *OUT))
    return made


@pytest.fixture
def folder(template, tmp_path, monkeypatch) -> Path:
    made = tmp_path / "work"
    shutil.copytree(template, made)
    monkeypatch.chdir(made)
    return made


@pytest.fixture(scope="module")
def killed_runs(template) -> list[Path]:
    """What is left of a run of the second file, killed at every write."""
    return killed(template, *SECOND)


def killed(folder: Path, *arguments: str) -> list[Path]:
    """What is left of a run that is killed at every change of a file, one folder each; the last went through."""
    script = Path(__file__).with_name("killing.py")
    done = subprocess.run([sys.executable, script, folder, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return sorted(folder.parent.glob(f"{folder.name}-*"), key=lambda path: int(path.name.rpartition("-")[2]))


def learned(path: Path) -> object:
    layer = gq.load(path)
    return layer.internals.state.saved(), layer.ids


def test_a_run_killed_at_any_write_is_done_once_when_it_is_run_again(folder, killed_runs, monkeypatch):
    before = (folder / "state.json").read_bytes()
    *halves, whole = killed_runs
    after, output = (whole / "state.json").read_bytes(), (whole / "out.csv").read_bytes()
    assert len(halves) > 12 and not list(whole.glob(".gradeq-*"))
    seen = set()
    for k, half in enumerate(halves):
        monkeypatch.chdir(shutil.copytree(half, folder.with_name(f"half {k}")))
        found = Path("state.json").read_bytes()
        assert found in (before, after)  # never a half
        new = Path("out.csv").read_bytes() == output
        assert new or found == before  # a state in place has its outputs in place
        again = here(*SECOND)
        if found == before:
            ok(again)
        else:
            assert "the state has seen these 60 rows" in refused(again)
        assert learned(Path("state.json")) == learned(whole / "state.json")
        assert Path("out.csv").read_bytes() == output
        seen.add((new, found == after))
    assert seen == {(False, False), (True, False), (True, True)}


def test_the_next_run_says_what_a_killed_one_left(folder, killed_runs, monkeypatch):
    call = ("debias", "second.csv", *BASE[:-1], "--id", "id", *OUT)
    *halves, whole = killed_runs
    before, output = (folder / "state.json").read_bytes(), (whole / "out.csv").read_bytes()
    torn = [
        half for half in halves
        if (half / "out.csv").read_bytes() == output and (half / "state.json").read_bytes() == before
    ]  # fmt: skip
    left = shutil.copytree(torn[-1], folder.with_name("left"))
    monkeypatch.chdir(left)
    write(Path("third.csv"), [row | {"id": f"c{row['id']}"} for row in scores(30, seed=3)])
    other = ("debias", "third.csv", *BASE[:-1], "--id", "id", "--state", "state.json", "--json")
    bad = ("debias", "third.csv", *BASE[:-1], "--id", "sex", "--state", "state.json")
    refused(here(*bad))  # and what it left is still to be told
    shutil.copytree(left, folder.with_name("other"))
    warned = ok(here(*other)).json["warnings"][0]
    assert warned["claim"] == "Run 2 (second.csv) was stopped while it wrote its files."
    assert "out.csv may be there" in warned["evidence"] and "Run second.csv again" in warned["remedy"]
    assert not [w for w in ok(here(*other, "--again")).json["warnings"] if "was stopped" in w["claim"]]
    monkeypatch.chdir(folder.with_name("other"))
    assert "this run had the same ones and took its place" in ok(here(*call)).out


def test_labels_killed_at_any_write_are_applied_once(folder, monkeypatch):
    blank = [row["id"] for row in scores(40, seed=1) if row["outcome"] == ""]
    write(Path("labels.csv"), [{"id": id, "y": 1} for id in [*blank, "nobody"]])
    call = ("label", "labels.csv", "--state", "state.json", "--id", "id", "--label", "y", "--rejected", "no.csv")
    *halves, whole = killed(folder, *call)
    for half in halves:
        monkeypatch.chdir(half)
        ok(here(*call))
        assert learned(Path("state.json")) == learned(whole / "state.json")
        assert Path("no.csv").read_bytes() == (whole / "no.csv").read_bytes()


def test_a_state_names_the_outputs_that_belong_to_it(folder):
    def pair() -> str:
        return next(line for line in ok(here("audit", "state.json")).out.splitlines() if "wrote" in line)

    assert "run 1 of 1 wrote out.csv: in place" in pair()
    Path("out.csv").write_text("other\n")
    assert "run 1 of 1 wrote out.csv: changed since" in pair()
    Path("out.csv").unlink()
    assert "out.csv: gone" in pair()


def test_a_second_run_on_a_state_waits_and_then_refuses(folder, monkeypatch):
    call = ("debias", "second.csv", *BASE, "--id", "id", "--state", "state.json")
    monkeypatch.setattr(session, "WAIT", 0.2)
    before = Path("state.json").read_bytes()
    with locked_state("state.json"):
        line = refused(here(*call))
        assert "another run is using state.json" in line
        assert "another run" in refused(
            here("label", "first.csv", "--state", "state.json", "--id", "id", "--label", "outcome")
        )
    assert Path("state.json").read_bytes() == before and not list(folder.glob(".gradeq-*"))
    monkeypatch.setattr(session, "WAIT", 30.0)
    held = locked_state("state.json")
    held.__enter__()
    release = threading.Timer(0.3, lambda: held.__exit__(None, None, None))
    release.start()
    ok(here(*call))  # it waited
    release.join()


def test_runs_at_the_same_time_lose_nothing(tmp_path):
    files = []
    for k in range(3):
        rows = [row | {"id": f"{k}-{row['id']}"} for row in scores(50, seed=k)]
        files.append(write(tmp_path / f"part{k}.csv", rows))
    given = ("--id", "id", "--state", "state.json")
    done = [
        threading.Thread(target=gradeq, args=("debias", file, *BASE, *given), kwargs={"cwd": tmp_path})
        for file in files
    ]
    for one in done:
        one.start()
    for one in done:
        one.join()
    layer = gq.load(tmp_path / "state.json")
    labelled = sum(row["outcome"] != "" for k in range(3) for row in scores(50, seed=k))
    assert layer.traffic["served"] == 150 and layer.traffic["labelled"] == labelled
    assert json.loads((tmp_path / "state.json").read_text())["state"]["tickets"]["desk"]["runs"][-1][0] == 3
