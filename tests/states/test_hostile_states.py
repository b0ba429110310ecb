"""A state with the right checksum and the wrong sense is refused: no crash, no hang, no fault of our own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gradeq as gq
from gradeq import codec
from gradeq.errors import StateError
from laws.kinds import KINDS

COUNT, PARTS = 40, 4


@pytest.mark.parametrize("part", range(PARTS))
def test_altered_states_are_refused_or_work(part):
    """In a process of its own: a loop over columns that was led astray would end it."""
    names = list(KINDS)[part::PARTS]
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "states.hostile", "5", str(COUNT), *names], cwd=tests, timeout=600,
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-300:]
    lines = done.stdout.splitlines()
    assert not [line for line in lines if line.startswith("FAULT")]
    told = [line.rsplit(" ", 2) for line in lines if line.startswith("done")]
    assert [name for name, _, _ in told] == [f"done {name}" for name in names]
    refused = sum(int(own) for _, own, _ in told)
    assert COUNT * len(names) // 2 < refused <= COUNT * len(names)


@pytest.mark.parametrize("version", [0, -1, 1, 3, "2", "1", 2.5, None, True, [2]])
def test_another_format_is_refused(version):
    body = json.loads(gq.Debiaser(0.1).to_json()) | {"format": version}
    del body["sha256"]
    with pytest.raises(StateError):
        gq.from_json(codec.canonical({**body, "sha256": codec.checksum(body)}))


def test_a_byte_order_mark_is_refused():
    with pytest.raises(StateError):
        gq.from_json("\ufeff" + gq.Debiaser(0.1).to_json())
