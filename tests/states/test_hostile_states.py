"""A state with the right checksum and the wrong sense is refused: no crash, no hang, no fault of our own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gradeq as gq
from gradeq.errors import StateError
from gradeq.layers import serialization
from gradeq.layers.replay import withdraw
from laws.kinds import KINDS
from states.every_leaf import LIVES
from states.hostile import text_of

COUNT, PARTS = 40, 4


def tried(*arguments):
    """What a module printed, in a process of its own: a loop over columns that was led astray would end it."""
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=tests, timeout=600,
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-300:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("part", range(PARTS))
def test_altered_states_are_refused_or_work(part):
    names = list(KINDS)[part::PARTS]
    lines = tried("states.hostile", "5", str(COUNT), *names)
    assert not [line for line in lines if line.startswith("FAULT")]
    told = [line.rsplit(" ", 2) for line in lines if line.startswith("done")]
    assert [name for name, _, _ in told] == [f"done {name}" for name in names]
    refused = sum(int(own) for _, own, _ in told)
    assert COUNT * len(names) // 2 < refused <= COUNT * len(names)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_field_altered_is_refused_or_works(part):
    """One alteration in 41; ``python -m states.every_field 1`` tries all of them."""
    lines = tried("states.every_field", "41", *list(KINDS)[part::PARTS])
    assert not [line for line in lines if line.startswith("FAULT")]
    assert len(lines) == len(list(KINDS)[part::PARTS])


@pytest.mark.parametrize("part", range(PARTS))
def test_every_leaf_of_a_used_layer_altered_is_refused_or_works(part):
    """Some, drawn by a seed; ``python -m states.every_leaf 1 0`` tries all of them, of every verb."""
    names = list(LIVES)[part::PARTS]
    lines = tried("states.every_leaf", "24", "100", *names)
    assert not [line for line in lines if line.startswith("FAULT")]
    told = [line.rsplit(" ", 3) for line in lines if line.startswith("done")]
    assert [name for name, *_ in told] == [f"done {name}" for name in names]
    assert all(int(done) > 80 and 50 < int(refused) < int(done) for *_, done, refused in told)


def altered(name, *path, to):
    """The state of a used layer as text, with the value at ``path`` replaced and the checksum repaired."""
    body = json.loads(LIVES[name]().to_json())
    del body["sha256"]
    node = body["state"]
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = to
    return text_of(body)


@pytest.mark.parametrize(
    ("name", "path", "to"),
    [
        ("falling", ("columns", "total", "values", 0), 1e-320),
        ("falling", ("columns", "total", "values", 0), 61.0),
        ("falling", ("columns", "sums", "values", 1), 0.0),
        ("falling", ("columns", "path", "values", 0), 1e300),
        ("falling", ("columns", "facts", "values", 1), 59.5),
        ("binary", ("columns", "mean_weight", "values"), {}),
        ("binary", ("columns", "mean_weight", "values"), []),
        ("elo home", ("columns", "sums", "values", 5), 0.0),
        ("elo home", ("columns", "tally", "values", 0), 1e30),
        ("elo dates", ("columns", "tally", "values", 3), 1e30),
        ("elo", ("columns", "spreads", "values", 8), 1e30),
        ("elo", ("columns", "shares", "values"), [0.0] * 6),
        ("mature", ("tickets", "desk", "times"), None),
        ("mature", ("tickets", "desk", "times"), [1]),
        ("mature", ("tickets", "desk", "times"), 1e-320),
        ("mature", ("tickets", "forgotten"), 0.5),
        ("auto", ("tickets", "branches"), [[1, 2]]),
        ("auto", ("tickets", "branches"), [[1.0, 2, "0"]]),
        ("frozen", ("log", 0, 1), 1.5),
        ("frozen", ("log", 0, 1), 99),
        ("commands", ("tickets", "desk", "runs", 0, 2), "60"),
        ("commands", ("tickets", "desk", "columns", "--id"), 7),
    ],
)
def test_a_number_that_no_honest_state_has_is_refused(name, path, to):
    with pytest.raises(StateError, match="the state is damaged"):
        gq.from_json(altered(name, *path, to=to))


@pytest.mark.parametrize(("column", "values"), [("total_path", []), ("path", []), ("total_path", [0.0, 0.0, 0.0])])
def test_the_steps_of_a_falling_schedule_cannot_be_lost(column, values):
    layer = KINDS["falling"].make()
    layer.run([1.0] * 9, [2.0] * 9, groups={"g": list("abcabcabc")})
    body = json.loads(layer.to_json())
    del body["sha256"]
    body["state"]["columns"][column] = {"$array": "d", "values": values}
    with pytest.raises(StateError):
        gq.from_json(serialization.canonical({**body, "sha256": serialization.checksum(body)}))


@pytest.mark.parametrize("version", [0, -1, 1, 3, "2", "1", 2.5, None, True, [2]])
def test_another_format_is_refused(version):
    body = json.loads(gq.Debiaser(0.1).to_json()) | {"format": version}
    del body["sha256"]
    with pytest.raises(StateError):
        gq.from_json(serialization.canonical({**body, "sha256": serialization.checksum(body)}))


def test_a_byte_order_mark_is_refused():
    with pytest.raises(StateError):
        gq.from_json("\ufeff" + gq.Debiaser(0.1).to_json())


@pytest.mark.parametrize(
    "layer",
    [
        gq.QuantileTracker(0.9, 1e60, link="linear"),
        gq.RiskControl(lambda knob, y: float(y > knob), target=0.1, eta=1e60, start=0.0),
        gq.QuantileEnsemble(0.9, [1e70], 1e-70, final_eta=1e60, link="linear"),
    ],
    ids=["quantile", "risk", "ensemble"],
)
def test_a_step_in_a_large_unit_is_no_count(layer):
    """Wei, or a price in nanounits: a step is measured in the unit of labels, and its state is read again."""
    for y in (1e61, -1e61):
        layer.predict(*(() if isinstance(layer, gq.RiskControl) else (0.0,)))
        layer.update(y)
    text = layer.to_json()
    again = type(layer).from_json(text, layer.error) if isinstance(layer, gq.RiskControl) else gq.from_json(text)
    assert again.to_json() == text


@pytest.mark.parametrize(
    "make", [lambda: gq.Debiaser(0.1), gq.Debiaser, lambda: gq.QuantileTracker(0.9), lambda: gq.Elo(0.1)]
)
def test_a_state_whose_heavy_label_was_taken_back_loads_though_rounding_took_the_weight_of_the_others(make):
    layer = make()
    row = ("a", "b") if layer.kind == "elo" else (1.0,)
    heavy, *_ = [layer.post(layer.open(*row, weight=weight), 1.0) for weight in (1.0, 1e-20, 1e-20)]
    withdraw(layer, heavy)
    again = gq.from_json(layer.to_json())
    assert again.to_json() == layer.to_json()
    assert str(again.equilibrium()) and again.peek(*row) is not None
    again.post(again.open(*row), 1.0)
    assert gq.from_json(again.to_json()).equilibrium().rows == 3
