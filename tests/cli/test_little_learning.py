"""A run that hardly learned says so, and says why."""

import pytest

from cli.calling import games, here, ok, write
from gradeq import Debiaser

COLUMNS = ("--prediction", "f", "--label", "y")
LATE = ("--time", "t", "--label-time", "known")


def late(rows: int, delay: int, **more):
    return [{"f": 0.0, "y": i % 2, "t": i, "known": i + delay, **more} for i in range(rows)]


def warnings(*call: object) -> list[str]:
    found = ok(here(*call, "--json")).json["warnings"]
    return [f"{w['level']}: {w['claim']} {w['remedy']}" for w in found]


def test_labels_that_are_never_due_are_a_warning(tmp_path):
    file = write(tmp_path / "late.csv", late(300, 1000))
    claim = "300 labels were not due before the last row: nothing was learned."
    call = ("debias", file, *COLUMNS, *LATE)
    assert f"amber: {claim} Use a longer file, or `--state`" in "\n".join(warnings(*call))
    assert f"Warning: {claim}" in ok(here(*call)).out
    state = tmp_path / "s.json"
    said = warnings(*call, "--state", state)
    assert f"amber: {claim} The state keeps them for the next run." in said


def test_few_labels_that_are_due_are_a_warning_and_most_are_none(tmp_path):
    file = write(tmp_path / "late.csv", late(400, 388))
    said = "\n".join(warnings("debias", file, *COLUMNS, *LATE))
    assert "Only 11 of 400 labels were due" in said or "Only 12 of 400 labels were due" in said
    file = write(tmp_path / "soon.csv", late(400, 20))
    assert "due before" not in "\n".join(warnings("debias", file, *COLUMNS, *LATE))


def test_labels_of_weight_0_or_without_a_time_are_a_warning(tmp_path):
    file = write(tmp_path / "none.csv", late(100, 1, w=0))
    said = "\n".join(warnings("debias", file, *COLUMNS, "--weight", "w"))
    assert "amber: None of 100 labels was learned from. Give the rows" in said
    assert "nothing to judge" in ok(here("debias", file, *COLUMNS, "--weight", "w")).out
    file = write(tmp_path / "when.csv", [{**row, "known": ""} for row in late(100, 1)])
    said = "\n".join(warnings("debias", file, *COLUMNS, *LATE))
    assert "amber: None of 100 labels was learned from. Fill in" in said


def test_games_whose_score_is_never_due_are_a_warning(tmp_path):
    rows = [{**row, "known": 1000, "w": 0} for row in games()]
    file = write(tmp_path / "games.csv", rows)
    call = ("elo", file, "--a", "home", "--b", "away", "--winner", "winner")
    said = "\n".join(warnings(*call, "--time", "day", "--label-time", "known"))
    assert "amber: 300 labels were not due before the last row: nothing was" in said
    assert "None of 300 labels was learned from" in "\n".join(warnings(*call, "--weight", "w"))


def test_a_frozen_state_says_that_nothing_was_learned(tmp_path):
    layer = Debiaser(eta=0.1)
    layer.freeze()
    layer.save(tmp_path / "s.json")
    file = write(tmp_path / "rows.csv", late(50, 1))
    call = ("debias", file, *COLUMNS, "--state", tmp_path / "s.json")
    found = ok(here(*call, "--json")).json
    assert found["learned"] == 0 and found["labelled"] == 50
    claim = "None of 50 labels was learned from."
    assert found["warnings"][0]["claim"] == claim and "frozen" in found["warnings"][0]["evidence"]


@pytest.mark.parametrize(("eta", "words"), [((), "the default is 0.01"), (("--eta", "0.01"), "you asked for 0.01")])
def test_a_step_that_is_held_down_is_the_default_or_the_one_asked_for(tmp_path, eta, words):
    """Labels of rows 0 to 249 are posted 50 rows late, so their step is 0.1 / 50; 50 labels wait."""
    file, state = write(tmp_path / "late.csv", late(300, 50)), tmp_path / "s.json"
    call = ("debias", file, *COLUMNS, *LATE, "--state", state)
    held = "note: Labels arrived up to 49 rows late: steps were capped, down to 0.002, for 250 labels"
    assert f"{held} ({words}). " in warnings(*call, *eta)
    later = write(tmp_path / "later.csv", [{**row, "t": row["t"] + 300} for row in late(300, 350)])
    call = ("debias", later, *call[2:])
    assert "for 300 labels (the state has 0.01)" in "\n".join(warnings(*call))


def test_steps_held_down_for_labels_that_are_only_expected_late(tmp_path):
    file = write(tmp_path / "late.csv", late(300, 50))
    said = ok(here("debias", file, *COLUMNS, "--in-flight", "50")).out
    assert "For late labels steps went down to 0.002" in said and "up to  late" not in said


def test_late_labels_without_the_cap_are_a_warning(tmp_path):
    file = write(tmp_path / "late.csv", late(300, 3))
    said = "\n".join(warnings("debias", file, *COLUMNS, *LATE, "--no-cap"))
    assert "amber: Labels arrived up to 2 rows late and steps were not capped." in said


def test_rows_too_large_for_the_step_are_served_and_told(tmp_path):
    rows = [{"f": 0.0, "y": 1, "x": 100.0 if i % 10 == 0 else 1.0} for i in range(100)]
    file = write(tmp_path / "large.csv", rows)
    call = ("debias", file, *COLUMNS, "--feature", "x", "--eta", "0.5")
    found = ok(here(*call, "--json")).json
    assert found["resized"] == 10 and found["certificate"]["gap"] < 1e-13
    assert "10 rows were too large for the step" in ok(here(*call)).out
