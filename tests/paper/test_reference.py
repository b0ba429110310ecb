"""The authors' own runs, step by step, in their row order: float64 against their float32, to 1e-6."""

import json

import numpy as np
import pytest

from gradeq import Debiaser
from gradeq.datasets import helpsteer
from gradeq.datasets.compas import RACES
from gradeq.paper import regret_figures, spirals
from gradeq.paper.compas_figures import stream
from gradeq.paper.panels import debias_probabilities, debias_reals, running_mean


def read(folder, name):
    return json.loads((folder / f"{name}.json").read_text())


@pytest.mark.parametrize("place", range(4))
def test_compas_runs_equal_the_authors_at_every_sample(source, reference_dir, place) -> None:
    theirs = read(reference_dir, "compas_debias")["configs"][place]
    data = stream(source).data
    p, y = data.violent_score, data.is_recid
    run = debias_probabilities(p, y, theirs["lr"] / 2 or None)
    at = np.array(theirs["sample_t"]) - 1
    assert run.theta == pytest.approx(theirs["final_theta"], abs=1e-6)
    assert run.served[at] == pytest.approx(theirs["sample_yhat"], abs=1e-6)
    assert run.losses[at] / 2 == pytest.approx(theirs["sample_loss"], abs=1e-6)
    assert run.errors.mean() == pytest.approx(theirs["bias_signed_yhat_minus_y"], abs=1e-6)
    assert run.losses.mean() / 2 == pytest.approx(theirs["average_loss_true"], abs=1e-6)
    assert (run.errors**2).mean() == pytest.approx(theirs["brier_like_mse_yhat"], abs=1e-6)
    for t, bias in theirs["cum_bias_at"].items():
        assert running_mean(run.errors)[int(t) - 1] == pytest.approx(bias, abs=1e-6)
    for race in RACES:
        bias = theirs["bias_by_race"][race]["bias_signed"]
        assert run.errors[data.race == race].mean() == pytest.approx(bias, abs=1e-6)


@pytest.mark.parametrize("place", range(4))
def test_helpsteer_runs_equal_the_authors_at_every_sample(source, reference_dir, place) -> None:
    theirs = read(reference_dir, "helpsteer_debias")["configs"][place]
    data = source.load(helpsteer.load)
    run = debias_reals(data.reward, data.helpfulness, 2 * theirs["lr"] or None)
    at = np.array(theirs["sample_t"]) - 1
    assert run.theta == pytest.approx(theirs["final_theta"], abs=1e-9)
    assert run.served[at] == pytest.approx(theirs["sample_yhat"], abs=1e-9)
    assert 2 * run.losses.mean() == pytest.approx(theirs["average_loss_true"], abs=1e-9)
    for t, loss in theirs["cum_loss_at"].items():
        assert 2 * running_mean(run.losses)[int(t) - 1] == pytest.approx(loss, abs=1e-9)


def test_the_layer_serves_what_the_experiment_serves(source) -> None:
    data = stream(source).data
    p, y = data.violent_score, data.is_recid
    layer = Debiaser(0.025, outcome="binary", link="shift")
    served = np.asarray(layer.run(p, y).served)
    run = debias_probabilities(p, y, 0.025)
    assert np.abs(served - run.served).max() < 1e-12
    assert layer.theta["(all)"] == pytest.approx(run.theta[0], abs=1e-12)


def test_regret_and_bias_equal_the_corrected_values_at_every_horizon(reference_dir) -> None:
    theirs = read(reference_dir, "synthetic")["regret-geq"]
    y = regret_figures.labels()
    assert y[:10] == pytest.approx(theirs["y_first10"], abs=1e-15)
    for name, eta in (("correct_formula_eta_0p2", 0.2), ("correct_formula_eta_eff_0p4", 0.4)):
        run = regret_figures.descend(y, eta)
        horizons = [int(t) for t in theirs[name]["regret_over_T_at"]]
        regrets = regret_figures.average_regret(run, y, horizons)
        assert regrets == pytest.approx(list(theirs[name]["regret_over_T_at"].values()), abs=1e-9)
        biases = np.abs(running_mean(run.errors))[np.array(horizons) - 1]
        assert biases == pytest.approx(list(theirs[name]["abs_bias_at"].values()), abs=1e-9)
    scripted = regret_figures.scripted_regret(regret_figures.descend(y, 0.4), y, horizons)
    assert scripted == pytest.approx(list(theirs["ref_regret_over_T_at"].values()), abs=1e-6)


def test_the_sequences_on_the_absolute_value_are_the_authors(reference_dir) -> None:
    theirs = read(reference_dir, "synthetic")["regret-geq"]
    assert regret_figures.falling() == pytest.approx(theirs["nr_notimplies_theta"], abs=1e-12)
    assert regret_figures.bouncing() == pytest.approx(theirs["lrs_notimplies_nr_theta"], abs=1e-12)


def test_the_spirals_pass_through_the_authors_points(reference_dir) -> None:
    theirs = read(reference_dir, "synthetic")
    for name, field in (
        ("expanding-trajectory", spirals.zero_curvature),
        ("positive-curvature", spirals.positive_curvature),
    ):
        path = spirals.trajectory(field)
        assert np.abs(path - np.array(theirs[name]["points"])).max() < 1e-9


def test_the_statistics_of_compas_are_the_authors(found, source, reference_dir) -> None:
    theirs = read(reference_dir, "compas_statistics")
    data = stream(source).data
    for row in theirs["calibration"]:
        who = (data.race == row["race"]) & np.isclose(data.violent_score, row["phat"])
        assert who.sum() == row["n"]
        assert data.is_recid[who].mean() == pytest.approx(row["recid_rate"], abs=1e-9)
    result = found("compas-statistics")
    for t, bias in theirs["rolling_bias_at_t"].items():
        assert result.number(f"bias of the 100 up to {t}").ours == pytest.approx(bias, abs=1e-9)
    assert str(data.date[theirs["first_index_after_which_all_recid"] - 1]) == "2014-04-01"
