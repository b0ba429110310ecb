"""--eta auto names the step that its certificate divides by."""

import pytest

from cli.calling import games, here, ok, prices, refused, scores, write

ELO = ("--a", "home", "--b", "away", "--winner", "winner")
QUANTILE = ("--prediction", "forecast", "--label", "price")
CALLS = [
    ("debias", scores, ("--prediction", "score", "--label", "outcome")),
    ("debias", scores, ("--prediction", "score", "--label", "outcome", "--outcome", "binary")),
    ("debias", scores, ("--prediction", "score", "--label", "outcome", "--by", "sex")),
    ("quantile", prices, (*QUANTILE, "--level", "0.9")),
    ("quantile", prices, (*QUANTILE, "--level", "0.2", "--level", "0.9")),
    ("elo", games, ELO),
]


@pytest.mark.parametrize(("command", "made", "options"), CALLS)
def test_theta_over_the_final_step_and_the_labels_is_from_state(tmp_path, command, made, options):
    file = write(tmp_path / "rows.csv", made())
    found = ok(here(command, file, *options, "--eta", "auto", "--json")).json
    step = found["eta"]
    assert found["method"] == "auto" and step > 0.0
    for name, average in found["certificate"]["from_state"].items():
        moved = -found["theta"][name] / (step * found["learned"])
        assert average == pytest.approx(moved, abs=1e-12)
    printed = ok(here(command, file, *options, "--eta", "auto")).out
    assert "automatic step" in printed
    assert command == "elo" or f"final step {step:.3g}" in printed
    plain = ok(here(command, file, *options, "--eta", "plain", "--json")).json
    assert plain["method"] == "plain"
    assert ok(here(command, file, *options, "--json")).json == found


def test_keys_have_too_few_labels_for_auto(tmp_path):
    file = write(tmp_path / "rows.csv", scores())
    options = ("--prediction", "score", "--label", "outcome", "--key", "shop", "--eta", "auto")
    assert "cannot be keyed" in refused(here("debias", file, *options))


BINARY = ("--prediction", "score", "--label", "outcome", "--outcome", "binary")
PLAIN = [
    ("debias", scores, (*BINARY, "--key", "shop"), 0.03),
    ("debias", scores, (*BINARY, "--link", "shift"), 0.03),
    ("debias", scores, (*BINARY, "--penalty", "ridge", "--strength", "0.1"), 0.03),
    ("debias", scores, (*BINARY, "--decay", "0.3"), 0.03),
    ("debias", scores, ("--prediction", "score", "--label", "outcome", "--link", "exp"), 0.01),
    ("quantile", prices, (*QUANTILE, "--level", "0.9", "--key", "weekday"), 0.1),
    ("quantile", prices, (*QUANTILE, "--level", "0.9", "--decay", "0.3"), 0.1),
]


@pytest.mark.parametrize(("command", "made", "options", "eta"), PLAIN)
def test_a_step_left_out_is_plain_where_auto_does_not_apply(tmp_path, command, made, options, eta):
    file = write(tmp_path / "rows.csv", made())
    found = ok(here(command, file, *options, "--json")).json
    assert (found["eta"], found["method"]) == (eta, "plain")
    assert ok(here(command, file, *options, "--eta", "plain", "--json")).json == found


def test_plain_is_no_step_where_one_is_required(tmp_path):
    file = write(tmp_path / "rows.csv", scores())
    assert "eta is required" in refused(here("debias", file, *BINARY, "--feature", "x", "--eta", "plain"))
    file = write(tmp_path / "prices.csv", prices())
    call = ("quantile", file, *QUANTILE, "--level", "0.9", "--eta", "plain")
    assert "eta is required" in refused(here(*call, "--link", "linear"))
    said = refused(here(*call, "--ensemble", "0.1,0.2", "--ensemble-eta", "0.1"))
    assert "leave out auto, plain" in said


def test_a_state_keeps_its_method_when_eta_is_left_out(tmp_path):
    file, state = write(tmp_path / "rows.csv", scores()), tmp_path / "state.json"
    call = ("debias", file, *BINARY, "--state", state, "--json")
    assert ok(here(*call, "--eta", "plain")).json["method"] == "plain"
    assert ok(here(*call, "--again")).json["method"] == "plain"
    assert "made with --eta" in refused(here(*call, "--eta", "auto"))


def test_how_it_learned_is_told(tmp_path):
    file, page = write(tmp_path / "rows.csv", scores()), tmp_path / "page.html"
    call = ("debias", file, *BINARY, "--by", "sex", "--delay", "30")
    said = ok(here(*call, "--report", page)).out
    line = next(line for line in said.splitlines() if line.startswith("Learning: auto with a memory"))
    assert "final step 0.03, at the end capped at" in line and "rows late on average" in line
    assert "% of rows have no label to learn from" in line and "with a memory of about" in page.read_text()
    found = ok(here(*call, "--json")).json["learning"]
    assert found["latest"] == 30 and 10.0 <= found["memory"] <= 400.0
    assert 0.0 < found["step"] < found["eta"] == 0.03 and 0.05 < found["unlabelled"] < 0.3


def test_auto_says_when_it_costs_accuracy(tmp_path):
    rows = [{"f": 0.0, "y": (-1) ** (i // 40) * 2.0} for i in range(2000)]
    file = write(tmp_path / "rows.csv", rows)
    call = ("debias", file, "--prediction", "f", "--label", "y", "--delay", "40")
    said = ok(here(*call)).out
    assert "Squared error got worse by" in said and "--eta plain makes smaller corrections" in said
