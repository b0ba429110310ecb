"""The walks of CONTRIBUTING.md pass the functions that they name, and hardly more functions than they say."""

import re
from pathlib import Path

import pytest

from walks import WALKS, Function, walked

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```walk (\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SLACK = 1.05  # a count may grow by a twentieth before CONTRIBUTING.md must say so
COUNTS = re.compile(r"^\| (\w+) \| (\d+) \| (\d+) \|$", re.MULTILINE)


def test_every_walk_is_described_and_counted() -> None:
    assert [name for name, _ in BLOCK.findall(TEXT)] == list(WALKS)
    assert [name for name, *_ in COUNTS.findall(TEXT)] == list(WALKS)


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_passes_what_it_names_and_hardly_more_than_it_says(name: str) -> None:
    passed = walked(name)
    lines = dict(BLOCK.findall(TEXT))[name].splitlines()
    named = [Function(*line.split()[0].split(":")) for line in lines]
    assert not [each for each in named if each not in passed]
    functions, files = next((int(a), int(b)) for walk, a, b in COUNTS.findall(TEXT) if walk == name)
    assert len(passed) <= SLACK * functions
    assert len({each.file for each in passed}) <= SLACK * files
