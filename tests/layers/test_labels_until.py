"""After as many labels as ``labels_until`` says, things going on as they were, the bound is below what was asked."""

import numpy as np
import pytest

import gradeq as gq

MAKE = {
    "decay": lambda a: gq.Debiaser(schedule=gq.Power(0.5, a)),
    "groups": lambda a: gq.Debiaser(schedule=gq.Power(0.5, a), groups=["g"]),
    "overlapping": lambda a: gq.Debiaser(schedule=gq.Power(0.3, a), groups=["g", "h"]),
    "quantile": lambda a: gq.QuantileTracker(0.8, schedule=gq.Power(0.5, a), link="linear"),
    "binary": lambda a: gq.Debiaser(schedule=gq.Power(0.5, a), outcome="binary"),
}


def rows(rng, n, share, name):
    """Rows of which a share has a label, evenly spread."""
    f = rng.uniform(0.2, 0.8, n)
    y = (rng.random(n) < 0.5).astype(float) if name == "binary" else f + rng.choice([-1.0, 1.0], n)
    y[np.arange(n) % round(1.0 / share) != 0] = np.nan
    k = np.arange(n) // round(1.0 / share)
    return f, y, {"g": k % 2, "h": k % 3}


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("decay", [0.2, 0.4, 0.5])
@pytest.mark.parametrize("name", MAKE)
def test_the_bound_is_below_after_as_many_labels(name, decay, share):
    rng = np.random.default_rng(6)
    layer = MAKE[name](decay)
    columns = {"groups": ["g"], "overlapping": ["g", "h"]}.get(name, [])

    def run(labels):
        f, y, groups = rows(rng, round(labels / share), share, name)
        layer.run(f, y, **({"groups": {c: groups[c] for c in columns}} if columns else {}))

    run(240)
    bound = layer.equilibrium().bound
    for by in (0.8, 0.5):
        more = layer.labels_until(by * bound)
        if more is None or more > 30_000:
            continue
        run(1.02 * more + 6)
        assert layer.equilibrium().bound < by * bound
