"""A layer that does harm says so: in the run of a file, from its state, and when labels come later."""

import random
from pathlib import Path
from typing import Any

import pytest

import gradeq as gq
from cli.calling import here, ok, write
from gradeq.cli.summary import notices_json
from gradeq.report.layer_story import story_of
from gradeq.report.state_facts import worse_in_state

DAY = 60


def swinging(days: int = 10, seed: int = 3) -> list[dict[str, Any]]:
    """Group a is too low on one day and too high on the next, so that yesterday's correction does harm."""
    rng = random.Random(seed)
    rows = []
    for i in range(days * DAY):
        g, f = rng.choice("ab"), rng.uniform(20.0, 40.0)
        y = f + (8.0 * (-1.0) ** (i // DAY) if g == "a" else 0.0) + rng.gauss(0.0, 2.0)
        row = {"id": f"n{i}", "g @ 1": g, "h": rng.choice("xyz"), "day": i // DAY, "f": f, "y": y}
        rows.append(row | {"w": 3, "p": (f - 20.0) / 20.0, "b": int(y > 30.0)})
    return rows


BY = ("--by", "g @ 1")
SETTINGS = {
    "auto": ("debias", "--prediction", "f", "--label", "y", *BY),
    "no group": ("debias", "--prediction", "f", "--label", "y", "--eta", "1.8"),
    "one step": ("debias", "--prediction", "f", "--label", "y", *BY, "--eta", "0.2"),
    "two columns": ("debias", "--prediction", "f", "--label", "y", *BY, "--by", "h", "--eta", "0.2"),
    "weights": ("debias", "--prediction", "f", "--label", "y", *BY, "--weight", "w"),
    "probabilities": ("debias", "--prediction", "p", "--label", "b", *BY, "--outcome", "binary", "--eta", "3"),
    "level": ("quantile", "--prediction", "f", "--label", "y", "--level", "0.5", *BY, "--eta", "3"),
    "levels": ("quantile", "--prediction", "f", "--label", "y", "--level", ".4", "--level", ".6", *BY, "--eta", "3"),
    "interval": ("quantile", "--prediction", "f", "--label", "y", "--interval", "0.8", *BY, "--eta", "9"),
    "series": ("debias", "--prediction", "f", "--label", "y", "--key", "h", "--eta", "0.9"),
}  # fmt: skip


def harmful(warnings: list[dict[str, str]]) -> list[dict[str, str]]:
    return [warning for warning in warnings if " got worse" in warning["claim"]]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_state_says_what_the_run_of_the_same_rows_said_got_worse(name, tmp_path):
    file, state = write(tmp_path / "rows.csv", swinging()), tmp_path / "state.json"
    said = ok(here(*SETTINGS[name], file, "--state", state, "--json")).json["warnings"]
    layer = gq.load(state)
    found = notices_json(worse_in_state(layer, layer.equilibrium()))
    assert found == harmful(said) and found, said
    assert harmful(notices_json(story_of(layer).notices)) == found
    audit = ok(here("audit", state, "--json")).json
    assert harmful(audit["warnings"]) == found
    assert all(warning["claim"] in ok(here("audit", state)).out for warning in found)


@pytest.mark.parametrize("name", SETTINGS)
def test_an_audit_shows_the_groups_as_the_run_of_the_same_rows_did(name, tmp_path):
    file, state = write(tmp_path / "rows.csv", swinging()), tmp_path / "state.json"
    run = ok(here(*SETTINGS[name], file, "--state", state, "--json")).json
    shown = {group["name"]: group for group in run["groups"]}
    audit = ok(here("audit", state, "--json")).json["groups"]
    assert sorted(group["name"] for group in audit) == sorted(shown)
    for group in audit:
        own = shown[group["name"]]
        what = "bias" if "bias" in group else "coverage"
        first = own[what][0] if isinstance(own[what], list) else own[what]
        assert group["rows"] == own["labelled"] and group["vacuous"] == own["vacuous"]
        for when in ("before", "after"):
            assert group[what][when] == pytest.approx(first[when], abs=1e-9)
            assert group["loss"][when] == pytest.approx(own["loss"][when])
    text = ok(here("audit", state)).out
    assert all(f"\n{name}  " in text for name in shown) and ("\ngroup " in text) == bool(shown)


def daily(folder: Path, eta: tuple[str, ...]) -> Any:
    """Days are served in the morning, with the labels of the day before; what the last labels brought."""
    rows, state, answer = swinging(), folder / "state.json", None
    for day in range(0, len(rows), DAY):
        own = rows[day : day + DAY]
        asked = write(folder / "asked.csv", [{k: r[k] for k in ("id", "g @ 1", "f")} for r in own])
        told = write(folder / "told.csv", [{k: r[k] for k in ("id", "y")} for r in own])
        ok(here("debias", asked, "--prediction", "f", *BY, *eta, "--id", "id", "--state", state))
        answer = ok(here("label", told, "--state", state, "--id", "id", "--label", "y", "--json"))
    assert answer is not None
    return answer.json


@pytest.mark.parametrize("eta", [(), ("--eta", "0.03")])
def test_labels_that_come_later_bring_the_warning_and_never_advise_the_step_in_use(eta, tmp_path):
    answer = daily(tmp_path, eta)
    assert answer["loss"]["after"] > 1.05 * answer["loss"]["before"]
    found = harmful(answer["warnings"])
    assert [warning["level"] for warning in found] == ["amber", "amber"]
    assert "`--eta plain`" in found[0]["remedy"] if not eta else "`--eta auto`" in found[0]["remedy"]
    assert "`--eta auto`" not in found[0]["remedy"] or eta
    assert "2 groups got worse" in found[1]["claim"]


def test_no_warning_where_nothing_got_worse(tmp_path):
    rows = [{"f": 1.0 + i % 2, "y": 2.0 + i % 2 + 0.1 * (i % 3), "g @ 1": i % 2} for i in range(400)]
    file, state = write(tmp_path / "rows.csv", rows), tmp_path / "state.json"
    said = ok(here(*SETTINGS["auto"], file, "--state", state, "--json")).json["warnings"]
    layer = gq.load(state)
    assert harmful(said) == worse_in_state(layer, layer.equilibrium()) == []
