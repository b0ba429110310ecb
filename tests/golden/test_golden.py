"""States of every released version load, go on as they would have, and are written back unchanged."""

import json
from pathlib import Path

import pytest

from golden.stories import STORIES, lived, next_served
from gradeq import from_json


def alike(one, other):
    """Equal, floats to twelve digits: another C library may round a sinh the other way."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float):
        return one == pytest.approx(other, rel=1e-12, abs=1e-12)
    return one == other


FILES = sorted(Path(__file__).parent.glob("*/*.json"))


def test_every_kind_has_a_kept_state():
    assert {path.stem for path in FILES} == set(STORIES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_kept_state_loads_and_serves_what_it_would_have(path):
    kept = json.loads(path.read_text())
    layer = from_json(kept["state"])
    again = json.loads(layer.to_json())
    written = json.loads(kept["state"])
    assert (again["settings"], again["state"]) == (written["settings"], written["state"])
    assert alike(json.loads(json.dumps(next_served(path.stem, layer))), kept["next"])


@pytest.mark.parametrize("name", STORIES)
def test_the_same_story_gives_the_same_state_today(name):
    kept = [json.loads(path.read_text()) for path in FILES if path.stem == name][-1]
    now, then = json.loads(lived(name).to_json()), json.loads(kept["state"])
    assert alike(now["state"], then["state"])
