"""The state in its file: never damaged, never overwritten by what does not fit; kills leave no halves."""

import base64
import json
import math
import os
import signal
import subprocess
import time
from array import array
from pathlib import Path

import pytest

from cli.calling import gradeq, here, installed, ok, refused, scores, write
from gradeq.layers import serialization

BASE = ("--prediction", "score", "--label", "outcome")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "scores.csv", scores(120))


@pytest.fixture
def state(file, tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    ok(here("debias", file, *BASE, "--by", "sex", "--state", path, "--quiet"))
    return path


def test_the_pieces_of_a_long_state_are_its_canonical_text() -> None:
    column, name = array("d", range(30_000)), 'é"' * 20_000
    names = [f"é {k}" for k in range(30_000)]
    found = "".join(serialization.pieces({"n": names, "c": column, "t": name, "e": {}, "f": (1, None, math.inf)}))
    packed = {"$array": "d", "base64": base64.b64encode(column.tobytes()).decode()}
    few = [1, None, {"$float": "inf"}]
    assert found == serialization.canonical({"n": names, "c": packed, "t": name, "e": {}, "f": few})


def as_json(text: str, **changed: object) -> str:
    return json.dumps(json.loads(text) | changed)


def flipped(body: dict) -> dict:
    body["state"]["columns"]["facts"]["values"][0] += 1
    return body


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda text: text[:-40], "damaged"),
        (lambda text: "", "damaged"),
        (lambda text: "[1, 2]", "not a gradeq state"),
        (lambda text: "day,f,y\n1,2,3\n", "not a gradeq state: name a file that gradeq saved"),
        (lambda text: "\xff\xfe", "not a gradeq state"),
        (lambda text: as_json(text, format=3), "upgrade gradeq to read it"),
        (lambda text: as_json(text, format=1, gradeq="0.1.0"), "written by gradeq 0.1.0, format 1"),
        (lambda text: json.dumps(flipped(json.loads(text))), "checksum"),
        (lambda text: '{"format": 2, "sha256": 1}', "damaged"),
        (lambda text: "[" * 100_000, "not a gradeq state"),
    ],
)
def test_a_state_that_is_damaged_newer_or_not_ours_is_left_alone(file, state, tmp_path, change, word):
    wrong = change(state.read_text()).encode("latin-1")
    state.write_bytes(wrong)
    out = tmp_path / "out.csv"
    line = refused(here("debias", file, *BASE, "--by", "sex", "--state", state, "-o", out), 3)
    assert word in line and "state.json" in line
    assert refused(here("audit", state), 3)
    assert state.read_bytes() == wrong and not out.exists()


@pytest.mark.parametrize(
    "options",
    [
        ("--by", "region"),
        ("--by", "sex", "--eta", "0.5"),
        ("--by", "sex", "--outcome", "binary"),
        ("--by", "sex", "--no-cap"),
        ("--by", "sex", "--decay", "0.5"),
        (),
    ],
)
def test_a_state_made_with_other_settings_is_refused_and_left_alone(file, state, tmp_path, options):
    before = state.read_bytes()
    line = refused(here("debias", file, *BASE, *options, "--state", state))
    assert "state" in line
    assert state.read_bytes() == before


def test_a_state_of_another_command_is_refused(file, state):
    line = refused(here("quantile", file, *BASE, "--level", "0.5", "--by", "sex", "--state", state))
    assert "debias" in line


def test_audit_says_what_it_checked(state, tmp_path):
    done = ok(gradeq("audit", state, cwd=tmp_path))
    for what in ("ok  checksum", "ok  version", "ok  identity"):
        assert what in done.out
    found = ok(here("audit", state, "--json")).json
    assert found["kind"] == "debias" and found["served"] == 120 and found["gap"] < 1e-15
    assert ok(here("audit", state, "--quiet")).out == ""
    assert "does not exist" in refused(here("audit", tmp_path / "none.json"))


def test_audit_sees_a_parameter_that_does_not_fit_its_gradients(state):

    body = json.loads(state.read_text())
    del body["sha256"]
    body["state"]["columns"]["u"]["values"][0] += 0.01
    body["sha256"] = serialization.checksum(body)
    state.write_text(serialization.canonical(body))
    assert "identity" in refused(here("audit", state), 3)


def waiting_run(tmp_path: Path, state: Path) -> subprocess.Popen:
    """A run that has opened its outputs and waits for more input."""
    process = subprocess.Popen(
        [*installed(), "debias", "-", *BASE, "--by", "sex", "-o", "out.csv", "--state", state],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    lines = (tmp_path / "scores.csv").read_text().splitlines(keepends=True)
    process.stdin.write("".join([lines[0], *(lines[1:] * 400)]))
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".gradeq-out*")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    return process


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("old", [None, "the old output\n"])
def test_a_killed_run_leaves_the_old_output_and_the_old_state(file, state, tmp_path, old):
    out = tmp_path / "out.csv"
    if old is not None:
        out.write_text(old)
    before = state.read_bytes()
    process = waiting_run(tmp_path, state)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert state.read_bytes() == before
    assert out.read_text() == old if old is not None else not out.exists()
    ok(gradeq("audit", state, cwd=tmp_path))


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_ends_in_one_line_and_leaves_nothing(file, state, tmp_path):
    before = state.read_bytes()
    process = waiting_run(tmp_path, state)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)  # it is heard before the input ends
    assert process.stdin is not None
    process.stdin.close()
    code = process.wait(timeout=60)
    assert process.stderr is not None and process.stdout is not None
    with process.stderr, process.stdout:
        said = process.stderr.read()
    assert code == 130 and said.count("\n") == 1 and "interrupted" in said
    assert state.read_bytes() == before
    assert not list(tmp_path.glob(".gradeq-*")) and not (tmp_path / "out.csv").exists()
