"""A script that uses every public verb passes mypy --strict and pyright, and none of its results is Any."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradeq as gq

HERE = Path(__file__).parent
SCRIPT = HERE / "user_script.py"
SOURCE = HERE.parents[1] / "src"
SHAPE = re.compile(r"ndarray\[tuple\[Any, \.\.\.\]|_AnyShape")  # an array of any shape


def checked(*command: str) -> str:
    environment = {**os.environ, "MYPYPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-m", *command], cwd=HERE, env=environment, capture_output=True, text=True)
    return done.stdout + done.stderr


def revealed_by_mypy(folder: Path) -> Iterator[tuple[int, str]]:
    text = checked("mypy", "--strict", "--cache-dir", str(folder), str(SCRIPT))
    assert " error: " not in text, text
    for line in text.splitlines():
        if ": note: Revealed type is " in line:
            place, _, found = line.partition(": note: Revealed type is ")
            yield int(place.rpartition(":")[2]), found


def revealed_by_pyright(folder: Path) -> Iterator[tuple[int, str]]:
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "extraPaths": [str(SOURCE)],
        "include": [str(SCRIPT)],
    }
    path = folder / "pyrightconfig.json"
    path.write_text(json.dumps(settings))
    text = checked("basedpyright", "-p", str(path), "--pythonpath", sys.executable, "--outputjson")
    found = json.loads(text)["generalDiagnostics"]
    errors = [each for each in found if each["severity"] != "information"]
    assert not errors, errors
    for each in found:
        yield each["range"]["start"]["line"] + 1, each["message"].rpartition(" is ")[2]


@pytest.mark.parametrize("checker", [revealed_by_mypy, revealed_by_pyright])
def test_type_checkers_know_what_every_verb_gives(checker, tmp_path):
    wanted = SCRIPT.read_text().count("reveal_type(")
    types = dict(checker(tmp_path))
    assert len(types) == wanted
    vague = {line: text for line, text in types.items() if re.search(r"\b(Any|Unknown)\b", SHAPE.sub("", text))}
    assert not vague, vague


def test_the_script_calls_every_public_method_of_every_layer():
    text = SCRIPT.read_text()
    layers = (
        gq.Conformal("absolute", 0.9),
        gq.Debiaser(),
        gq.Elo(),
        gq.IntervalTracker(0.9),
        gq.Keyed(gq.Debiaser()),
        gq.MultiQuantileTracker([0.1, 0.9]),
        gq.QuantileEnsemble(0.9, [0.1], 0.1),
        gq.QuantileTracker(0.9),
        gq.RiskControl(lambda theta, y: 0.0, 0.1, 0.1),
    )
    names = {
        name
        for layer in layers
        for name in dir(layer)
        if not name.startswith("_") and callable(getattr(type(layer), name, None))
    }
    deprecated = {"settle", "shown"}
    assert [name for name in sorted(names - deprecated) if f".{name}(" not in text] == []


def test_a_state_of_another_class_is_refused():
    text = gq.Keyed(gq.Debiaser(eta=0.5)).to_json()
    assert isinstance(gq.from_json(text, gq.Keyed[gq.Debiaser]), gq.Keyed)
    with pytest.raises(gq.StateError, match="the state is of a Keyed, not of a Debiaser"):
        gq.from_json(text, gq.Debiaser)
