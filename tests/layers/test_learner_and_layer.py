"""The Learner and the layers have loops of their own; they serve the same to the last bit."""

import numpy as np
import pytest

from gradeq import Debiaser, Learner, Logit, Power, Quantile, QuantileTracker, Shift, Squared
from gradeq.engine.rows import Sparse


def columns(binary, n=700):
    rng = np.random.default_rng(4)
    base, labels = rng.normal(size=n), rng.normal(0.5, 1.0, n)
    if binary:
        base, labels = 1 / (1 + np.exp(-base)), (labels > 0).astype(float)
    labels[::13] = np.nan
    return base, labels, rng.integers(0, 3, n), rng.integers(0, 2, n)


@pytest.mark.parametrize("step", [0.05, Power(0.5, 0.5)], ids=repr)
@pytest.mark.parametrize("link", [None, Logit(), Shift()], ids=repr)
def test_one_parameter(link, step):
    base, labels, _, _ = columns(link is not None)
    named = {} if link is None else {"outcome": "binary", "link": type(link).__name__.lower()}
    how = {"eta": step} if isinstance(step, float) else {"schedule": step}
    layer, learner = (Debiaser(**how, **named), Learner(Squared(), step, **({} if link is None else {"link": link})))
    run = learner.run(learner.start(), None, labels, offsets=base)
    assert np.array_equal(layer.run(base, labels).served, run.served)
    assert layer.theta["(all)"] == run.state.theta[0]


def test_a_quantile():
    base, labels, _, _ = columns(False)
    tracker, learner = QuantileTracker(0.9, 0.2, link="linear"), Learner(Quantile(0.9), 0.2)
    run = learner.run(learner.start(), None, labels, offsets=base)
    assert np.array_equal(tracker.run(base, labels).served, run.served)


def test_disjoint_and_overlapping_groups():
    base, labels, g, h = columns(False)
    learner = Learner(Squared(), 0.05)
    one = learner.run(learner.start(3), g, labels, offsets=base)
    layer = Debiaser(eta=0.05, groups=["g"])
    assert np.array_equal(layer.run(base, labels, {"g": g}).served, one.served)
    n = len(base)
    index = np.stack([g, 3 + h], axis=1).ravel()
    rows = Sparse(2 * np.arange(n + 1), index, np.ones(2 * n))
    both = learner.run(learner.start(5), rows, labels, offsets=base)
    layer = Debiaser(eta=0.05, groups=["g", "h"])
    assert np.array_equal(layer.run(base, labels, {"g": g, "h": h}).served, both.served)
