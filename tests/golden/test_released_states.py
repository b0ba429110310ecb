"""States that released versions wrote: those of format 2 load and go on, those of format 1 are refused."""

import json
from pathlib import Path

import pytest

from golden.stories import STORIES, lived, next_served
from gradeq import StateError, __version__, from_json

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*/*.json"))
READ = [path for path in FILES if path.parent.name == "0.2.0"]
REFUSED = [path for path in FILES if path.parent.name == "0.1.0"]


def alike(one, other):
    """Equal, floats to twelve digits: another C library may round a sinh the other way."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float):
        return one == pytest.approx(other, rel=1e-12, abs=1e-12)
    return one == other


LATER = (
    "crowded",
    "silence",
    "steps",
    "total_steps",
    "mix_squares",
    "total_mix_squares",
    "largest_weight",
)  # columns


def older(settings, written):
    """Settings without those that came later and are left out."""
    return {
        name: older(value, written[name]) if isinstance(value, dict) else value
        for name, value in settings.items()
        if name in written or value is not None
    }


def without_later(state):
    """A state without the columns that came after these were kept."""
    columns = {name: values for name, values in state["columns"].items() if name not in LATER}
    return {**state, "columns": columns}


def test_every_kind_has_a_kept_state():
    assert {path.stem for path in READ} == {path.stem for path in REFUSED} == set(STORIES)


@pytest.mark.parametrize("path", READ, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_kept_state_loads_and_serves_what_it_would_have(path):
    kept = json.loads(path.read_text())
    layer = from_json(kept["state"])
    again = json.loads(layer.to_json())
    written = json.loads(kept["state"])
    assert older(again["settings"], written["settings"]) == written["settings"]
    assert without_later(again["state"]) == written["state"]
    assert alike(json.loads(json.dumps(next_served(path.stem, layer))), kept["next"])


@pytest.mark.parametrize("name", STORIES)
def test_the_same_story_gives_the_same_state_today(name):
    kept = [json.loads(path.read_text()) for path in READ if path.stem == name][-1]
    now, then = json.loads(lived(name).to_json()), json.loads(kept["state"])
    assert alike(without_later(now["state"]), then["state"])


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_state_whose_sums_are_others_is_refused_by_its_version(path):
    with pytest.raises(StateError, match=f"written by gradeq 0.1.0, format 1; gradeq {__version__}"):
        from_json(json.loads(path.read_text())["state"])
