"""Debiasing on real data: the authors' numbers, overlapping groups, labels that come when the plane lands."""

import json

import numpy as np
import pytest

from gradeq import Debiaser, Diverging
from gradeq.datasets import compas, elec2, flights, french, helpsteer


@pytest.fixture(scope="module")
def recidivism(data_dir, reference_dir):
    return compas.load_paper(data_dir, reference_dir / "compas_row_order.txt")


@pytest.fixture(scope="module")
def planes(data_dir):
    pytest.importorskip("pyarrow")
    try:
        return flights.load(data_dir)
    except Exception as error:  # the package with the flights is an extra
        pytest.skip(str(error))


def test_compas_gives_the_authors_numbers(recidivism, reference_dir):
    """Their loss is half the paper's, so their learning rate L is the paper's eta = L / 2; link shift; float32."""
    configs = json.loads((reference_dir / "compas_debias.json").read_text())["configs"]
    for config in configs:
        if config["lr"] == 0.0:
            continue
        layer = Debiaser(eta=config["lr"] / 2, outcome="binary", link="shift")
        served = layer.run(recidivism.violent_score, recidivism.is_recid).served
        result = layer.equilibrium()
        assert layer.theta["(all)"] == pytest.approx(config["final_theta"][0], abs=1e-6)
        assert result.bias_after == pytest.approx(config["bias_signed_yhat_minus_y"], abs=1e-6)
        for t, value in zip(config["sample_t"], config["sample_yhat"], strict=True):
            assert served[t - 1] == pytest.approx(value, abs=1e-6)


def test_helpsteer_gives_the_authors_numbers(data_dir, reference_dir):
    """Their loss lacks the half, so their learning rate L is the paper's eta = 2 L; identity link; float64."""
    ratings = helpsteer.load(data_dir)
    configs = json.loads((reference_dir / "helpsteer_debias.json").read_text())["configs"]
    for config in configs:
        if config["lr"] == 0.0:
            continue
        layer = Debiaser(eta=2 * config["lr"])
        served = layer.run(ratings.reward, ratings.helpfulness).served
        result = layer.equilibrium()
        assert layer.theta["(all)"] == pytest.approx(config["final_theta"][0], abs=1e-9)
        assert result.bias_after == pytest.approx(config["bias_signed_yhat_minus_y"], abs=1e-9)
        assert result.loss_after == pytest.approx(config["average_loss_true"], abs=1e-9)
        for t, value in zip(config["sample_t"], config["sample_yhat"], strict=True):
            assert served[t - 1] == pytest.approx(value, abs=1e-9)


def test_overlapping_groups_of_compas_become_unbiased_within_their_bounds(recidivism):
    layer = Debiaser(eta=0.05, outcome="binary", groups=["race", "sex"])
    groups = {"race": recidivism.race, "sex": recidivism.sex}
    layer.run(recidivism.violent_score, recidivism.is_recid, groups)
    result = layer.equilibrium()
    assert result.gap < 1e-14 and result.loss_after < result.loss_before
    for group in result.coordinates:
        assert abs(group.bias_after) < min(0.03, abs(group.bias_before))
        assert group.bound is None or abs(group.bias_after) <= group.bound


def test_the_bias_of_compas_is_removed_at_the_authors_step(recidivism):
    layer = Debiaser(eta=0.025, outcome="binary", link="shift")
    layer.run(recidivism.violent_score, recidivism.is_recid)
    result = layer.equilibrium()
    assert (result.bias_before, result.bias_after) == pytest.approx((-0.11288, -0.00746), abs=1e-5)
    assert (result.loss_before, result.loss_after) == pytest.approx((0.2509, 0.2078), abs=1e-4)
    assert layer.theta["(all)"] == pytest.approx(1.2664, abs=1e-4)


def late_run(planes, **settings):
    layer = Debiaser(**settings)
    groups = {name: getattr(planes, name) for name in settings.get("groups", ())} or None
    run = layer.run(planes.prediction, planes.delay, groups, times=planes.served, label_times=planes.landed)
    return layer, run


def test_flights_with_labels_at_landing_are_stable_at_the_default_cap(planes):
    layer, run = late_run(planes, eta=0.01, groups=["origin"])
    done = run.posts
    result = layer.equilibrium()
    assert layer.traffic["peak"] > 50 and layer.steps["capped"] > 0
    assert not result.exact and result.gap < 1e-9
    base = np.sqrt(np.mean((planes.prediction[done] - planes.delay[done]) ** 2))
    served = np.sqrt(np.mean((run.served[done] - planes.delay[done]) ** 2))
    assert served < base
    for group in result.coordinates:
        assert abs(group.bias_after) < 0.5 < abs(group.bias_before)  # minutes


def test_flights_without_the_cap_diverge_and_are_stopped(planes):
    layer = Debiaser(eta=0.01, late_cap=None)
    before = layer.to_json()
    with pytest.raises(Diverging):
        layer.run(planes.prediction, planes.delay, times=planes.served, label_times=planes.landed)
    assert layer.to_json() == before


def streams(data_dir):
    """Streams of the quality table whose data are at hand, each with a simple base forecast."""
    power = elec2.load(data_dir).nswdemand
    prices = french.load(data_dir)
    rewards = helpsteer.load(data_dir)
    return {
        "elec2, same half hour a day before": (power[:-48], power[48:]),
        "french prices, same hour a day before": (
            prices.day_before[np.arange(len(prices.spot)), prices.hour], prices.spot,
        ),
        "helpsteer": (rewards.reward, rewards.helpfulness),
    }  # fmt: skip


def test_auto_beats_the_default_step_and_does_no_harm(data_dir):
    """No worse than the plain default and the smallest steps, harm at most 1.2 %, and no bias left."""
    for name, (base, labels) in streams(data_dir).items():
        raw = np.mean((base - labels) ** 2)
        fixed = {
            eta: np.mean((Debiaser(eta=eta).run(base, labels).served - labels) ** 2) for eta in (0.001, 0.003, 0.01)
        }
        auto = Debiaser(eta="auto")
        loss = np.mean((auto.run(base, labels).served - labels) ** 2)
        assert loss <= 1.01 * min(fixed.values()), name
        assert loss <= 1.012 * raw, name
        spread = np.std(base - labels)
        assert abs(auto.equilibrium().bias_after) < 0.015 * spread, name


def test_shuffled_labels_cannot_make_auto_cost_more_than_its_budget(data_dir):
    rng = np.random.default_rng(0)
    for name, (base, labels) in streams(data_dir).items():
        order = rng.permutation(len(base))
        base, labels = base[order], labels[order]
        served = Debiaser(eta="auto").run(base, labels).served
        assert np.mean((served - labels) ** 2) <= 1.015 * np.mean((base - labels) ** 2), name
