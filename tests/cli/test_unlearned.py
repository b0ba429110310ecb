"""A run that hardly learned says so, and says why."""

import pytest

from cli.calling import games, here, ok, write

COLUMNS = ("--prediction", "f", "--label", "y")
LATE = ("--time", "t", "--label-time", "known")


def late(rows: int, delay: int, **more):
    return [{"f": 0.0, "y": i % 2, "t": i, "known": i + delay, **more} for i in range(rows)]


def warnings(*call: object) -> list[str]:
    found = ok(here(*call, "--json")).json["warnings"]
    return [f"{w['level']}: {w['claim']} {w['remedy']}" for w in found]


def test_labels_that_are_never_due_are_a_warning(tmp_path):
    file = write(tmp_path / "late.csv", late(300, 1000))
    claim = "None of the 300 labels was due before the last row: nothing was learned."
    call = ("debias", file, *COLUMNS, *LATE)
    assert f"amber: {claim} Give a longer file, or `--state`" in "\n".join(warnings(*call))
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
    assert "amber: None of 100 labels was learned from. Give rows" in said
    assert "nothing to judge" in ok(here("debias", file, *COLUMNS, "--weight", "w")).out
    file = write(tmp_path / "when.csv", [{**row, "known": ""} for row in late(100, 1)])
    said = "\n".join(warnings("debias", file, *COLUMNS, *LATE))
    assert "amber: None of 100 labels was learned from. Fill in" in said


def test_games_whose_score_is_never_due_are_a_warning(tmp_path):
    rows = [{**row, "known": 1000, "w": 0} for row in games()]
    file = write(tmp_path / "games.csv", rows)
    call = ("elo", file, "--a", "home", "--b", "away", "--winner", "winner")
    said = "\n".join(warnings(*call, "--time", "day", "--label-time", "known"))
    assert "amber: None of the 300 labels was due before the last row: nothing was" in said
    assert "None of 300 labels was learned from" in "\n".join(warnings(*call, "--weight", "w"))


@pytest.mark.parametrize(
    ("eta", "words"), [((), "the default is 0.01"), (("--eta", "0.01"), "you asked for 0.01")]
)
def test_a_capped_step_is_the_default_or_the_one_asked_for(tmp_path, eta, words):
    file, state = write(tmp_path / "late.csv", late(300, 50)), tmp_path / "s.json"
    call = ("debias", file, *COLUMNS, *LATE, "--state", state)
    assert words in "\n".join(warnings(*call, *eta))
    assert "the state has 0.01" in "\n".join(warnings(*call))
