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
    step = found["final_eta"]
    assert found["eta"] == "auto" and step > 0.0
    for name, average in found["certificate"]["from_state"].items():
        moved = -found["theta"][name] / (step * found["learned"])
        assert average == pytest.approx(moved, abs=1e-12)
    assert (
        f"step auto, certified at {step:g}"
        in ok(here(command, file, *options, "--eta", "auto")).out
    )
    assert "final_eta" not in ok(here(command, file, *options, "--json")).json


def test_keys_have_too_few_labels_for_auto(tmp_path):
    file = write(tmp_path / "rows.csv", scores())
    options = ("--prediction", "score", "--label", "outcome", "--key", "shop", "--eta", "auto")
    assert "cannot be keyed" in refused(here("debias", file, *options))
