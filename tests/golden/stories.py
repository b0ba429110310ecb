"""The layers whose states are kept, each after the same small story."""

import numpy as np

import gradeq as gq

STORIES = {
    "debias": lambda: gq.Debiaser(eta=0.05, groups=["g", "h"]),
    "debias-auto": lambda: gq.Debiaser("auto", outcome="binary"),
    "debias-penalty": lambda: gq.Debiaser(schedule=gq.Power(0.1, 0.5), penalty=gq.Ridge(0.01), groups=["g"]),
    "quantile": lambda: gq.QuantileTracker(0.9, 0.1, features=["x"]),
    "quantiles": lambda: gq.MultiQuantileTracker([0.1, 0.5, 0.9], 0.1),
    "interval": lambda: gq.IntervalTracker(0.8, link="linear", eta=0.2),
    "ensemble": lambda: gq.QuantileEnsemble(0.9, [0.01, 0.1], 0.05),
    "conformal": lambda: gq.Conformal("absolute", 0.9, 0.1),
    "elo": lambda: gq.Elo(0.1),
    "keyed": lambda: gq.Keyed(gq.Debiaser(eta=0.1, groups=["g"])),
}  # fmt: skip


def lived(name):
    """The layer after forty rows, two of them still waiting for their label."""
    rng = np.random.default_rng(5)
    layer = STORIES[name]()
    if name == "elo":
        players = [f"p{k}" for k in rng.integers(0, 4, 40)]
        others = [f"q{k}" for k in rng.integers(0, 4, 40)]
        layer.run(players, others, rng.integers(0, 2, 40).astype(float))
        layer.predict("p1", "q2", id="open")
        return layer
    base, labels = rng.uniform(size=40), (rng.uniform(size=40) < 0.4).astype(float)
    for i in range(40):
        layer.predict(base[i], **extra(name, i), id=f"row {i}")
        if i % 20 != 7:
            layer.update(labels[i], id=f"row {i}")
    return layer


def extra(name, i):
    """Groups, features and key of a row, as the layer wants them."""
    groups = {"g": "ab"[i % 2], "h": "xyz"[i % 3]}
    if name == "debias":
        return {"groups": groups}
    if name == "debias-penalty":
        return {"groups": {"g": groups["g"]}}
    if name == "quantile":
        return {"features": {"x": i / 40}}
    if name == "keyed":
        return {"key": i % 3, "groups": {"g": groups["g"]}}
    return {}


def next_served(name, layer):
    """What the layer serves next."""
    if name == "elo":
        return layer.peek("p1", "q1")
    served = layer.predict(0.25, **extra(name, 40), id="next")
    return list(served.interval) if name == "conformal" else served
