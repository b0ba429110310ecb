"""Many groups: what is made when it is looked at is what one would get by looking at every group."""

import copy
import dataclasses

import numpy as np
import pytest

from gradeq import Debiaser, IntervalTracker, Lasso, MultiQuantileTracker, Power, QuantileTracker, Ridge
from gradeq.certificates import certificate, reading
from gradeq.theory import best

GROUPS = 150
G = ["g"]
LAYERS = {
    "mean": lambda: Debiaser(eta=0.1, groups=G),
    "mean, large step": lambda: Debiaser(eta=1.4, groups=G),
    "auto": lambda: Debiaser(groups=G),
    "falling": lambda: Debiaser(schedule=Power(0.5, 0.5), groups=G),
    "lasso": lambda: Debiaser(eta=0.1, groups=G, penalty=Lasso(0.1)),
    "ridge": lambda: Debiaser(eta=0.1, groups=G, penalty=Ridge(0.1)),
    "overlapping": lambda: Debiaser(eta=0.1, groups=["g", "h"]),
    "logit": lambda: Debiaser(eta=0.1, outcome="binary", groups=G),
    "shift": lambda: Debiaser(eta=0.1, outcome="binary", link="shift", groups=G),
    "exp": lambda: Debiaser(eta=0.1, link="exp", groups=G),
    "quantile": lambda: QuantileTracker(0.9, eta=0.1, groups=G),
    "quantile, auto": lambda: QuantileTracker(0.9, groups=G),
    "quantile, linear": lambda: QuantileTracker(0.2, eta=0.1, link="linear", groups=G),
    "levels": lambda: MultiQuantileTracker([0.2, 0.7], eta=0.1, groups=G),
    "interval": lambda: IntervalTracker(0.8, eta=0.1, groups=G),
}


def learned(kind: str, late: bool, weighted: bool, coarse: bool):
    """A layer with many groups; some have no label, and with ``coarse`` values many have the same facts."""
    rng = np.random.default_rng(len(kind) + 2 * late + weighted)
    n = 4 * GROUPS
    codes = np.concatenate([np.arange(GROUPS), rng.integers(0, GROUPS, n - GROUPS)])
    groups = {"g": codes, "h": codes % 7}
    layer = LAYERS[kind]()
    f, y = rng.random(n), rng.random(n) ** 3
    if coarse:
        f, y = np.full(n, 0.5), np.round(y)
        y[codes == 7] = 1e-6  # hardly more than 0, which an exponential mean takes for something else
    y[codes % 10 == 3] = np.nan
    base = f
    if kind in ("levels", "interval"):
        base = np.stack([f, f + 0.1], axis=1)
    given = {"groups": {name: groups[name] for name in layer.internals.names.groups}}
    if late:
        given |= {"times": np.arange(n), "label_times": np.arange(n) + rng.integers(0, 90, n)}
    if weighted:
        given["weights"] = rng.integers(0, 3, n) / 2.0
    layer.run(base, y, **given)
    return layer, (base, y, given)


@pytest.mark.parametrize("late, weighted, coarse", [(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 1, 0), (0, 1, 1)])
@pytest.mark.parametrize("kind", LAYERS)
def test_groups_made_when_looked_at_are_those_made_at_once(monkeypatch, kind, late, weighted, coarse):
    layer, (base, y, given) = learned(kind, late, weighted, coarse)
    at_once = layer.equilibrium()
    assert isinstance(at_once.coordinates, tuple) and len(at_once.coordinates) >= GROUPS
    for module in (certificate, reading):
        monkeypatch.setattr(module, "MANY", 2)
    lazily = layer.equilibrium()
    assert not isinstance(lazily.coordinates, tuple)
    shown = [str(lazily), lazily.certificate, lazily.largest, lazily.norm]
    if not late:  # what is told of a moment stays, whatever is learned after it
        layer.run(base[::-1] / 2.0, y, **given)
    assert shown == [str(at_once), at_once.certificate, at_once.largest, at_once.norm]
    assert lazily == at_once and lazily.as_dict() == at_once.as_dict()
    assert copy.deepcopy(lazily) == at_once
    assert lazily.coordinates[-1] == at_once.coordinates[-1]
    assert lazily.coordinates[2:7] == at_once.coordinates[2:7]
    assert dataclasses.replace(lazily, rows=0) == dataclasses.replace(at_once, rows=0)


@pytest.mark.parametrize("kind", ["mean", "exp", "levels"])
def test_the_worst_of_many_groups_is_found_without_looking_at_all(monkeypatch, kind):
    rng = np.random.default_rng(0)
    layer = LAYERS[kind]()
    f = np.exp(rng.normal(size=12_000))
    base = np.stack([f, f + 0.1], axis=1) if kind == "levels" else f
    y = f * np.exp(rng.normal(size=12_000))
    layer.run(base, y, groups={"g": rng.integers(0, 4000, 12_000)})
    looked, found = [], best._found_total
    monkeypatch.setattr(best, "_found_total", lambda s: looked.append(s) or found(s))
    layer.equilibrium()
    assert 0 < len(looked) < 400
