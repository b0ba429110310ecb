"""A perfect model is not called worse for what rounding, the clip or the least scale did to it."""

import warnings

import numpy as np
import pytest

import gradeq as gq
from gradeq.report.layer_story import page_of, story_of

MAKE = {
    "auto": lambda: gq.Debiaser(),
    "plain": lambda: gq.Debiaser("plain"),
    "groups": lambda: gq.Debiaser(groups=["g"]),
    "keyed": lambda: gq.Keyed(gq.Debiaser()),
    "exp": lambda: gq.Debiaser(link="exp"),
    "binary": lambda: gq.Debiaser(outcome="binary"),
    "plain binary": lambda: gq.Debiaser("plain", outcome="binary"),
    "shift": lambda: gq.Debiaser(outcome="binary", link="shift"),
    "quantile": lambda: gq.QuantileTracker(0.9),
    "plain quantile": lambda: gq.QuantileTracker(0.9, "plain"),
    "interval": lambda: gq.IntervalTracker(0.9),
}


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_a_perfect_model_is_not_called_worse(name, unit):
    rng = np.random.default_rng(5)
    layer, y = MAKE[name](), unit * rng.normal(100.0, 10.0, 1500)
    if name in ("binary", "plain binary", "shift"):
        y = rng.random(1500) if unit == 1.0 else (rng.random(1500) < 0.5).astype(float)
    given = {"groups": {"g": np.arange(1500) % 2}} if name == "groups" else {}
    given |= {"key": np.arange(1500) % 3} if name == "keyed" else {}
    layer.run(y, y, **given)
    reached = layer.equilibrium()
    assert not reached.loss_got_worse
    assert "worse" not in str(reached)
    story = story_of(layer)
    assert not [notice.claim for notice in story.notices if "worse" in notice.claim]


def test_a_model_that_gets_worse_is_still_told():
    y = np.zeros(1500)
    tracker = gq.QuantileTracker(0.5, 0.1, link="linear")
    tracker.run(y, y)
    assert tracker.equilibrium().loss_got_worse
    clipped = gq.Debiaser("plain", outcome="binary", clip=0.1)
    clipped.run(y, y)
    assert clipped.equilibrium().loss_got_worse
    noisy = gq.Debiaser(0.5)
    noisy.run(y, np.random.default_rng(0).normal(0.0, 1.0, 1500))
    assert noisy.equilibrium().loss_got_worse


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-30, 1.0, 1e30, 1e150, 1e160, 1e250, 1e300])
@pytest.mark.parametrize("name", ["auto", "plain", "groups", "exp", "quantile", "interval"])
def test_labels_of_any_size_have_a_page(name, size):
    rng = np.random.default_rng(3)
    layer = MAKE[name]()
    f = size * rng.uniform(0.5, 1.0, 300)
    y = f * rng.uniform(0.8, 1.3, 300)
    given = {"groups": {"g": np.arange(300) % 2}} if name == "groups" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = layer.run(f, y, **given)
        page = page_of(layer, run)
    assert "<svg" in page
    assert ">nan<" not in page and ">inf<" not in page
