"""Layers with explicit steps and labels at once, over one stream: what they serve may not change by a bit."""

import numpy as np

import gradeq as gq

N = 300
GROUPS = ("g", "h")
MAKES = {
    "squared": lambda: gq.Debiaser(0.05),
    "squared, groups": lambda: gq.Debiaser(0.05, groups=["g"]),
    "squared, overlapping groups": lambda: gq.Debiaser(0.05, groups=["g", "h"]),
    "squared, features": lambda: gq.Debiaser(0.02, features=["x"]),
    "squared, falling": lambda: gq.Debiaser(schedule=gq.Power(0.5, 0.5), groups=["g"]),
    "squared, ridge": lambda: gq.Debiaser(0.05, groups=["g", "h"], penalty=gq.Ridge(0.01)),
    "squared, keyed": lambda: gq.Keyed(gq.Debiaser(0.05, groups=["g"])),
    "logit": lambda: gq.Debiaser(0.1, outcome="binary"),
    "logit, groups": lambda: gq.Debiaser(0.1, outcome="binary", groups=["g", "h"]),
    "shift, lasso": lambda: gq.Debiaser(
        0.05, outcome="binary", link="shift", groups=["g"], penalty=gq.Lasso(0.01)
    ),
    "quantile": lambda: gq.QuantileTracker(0.9, 0.1, groups=["g"]),
    "quantile, linear": lambda: gq.QuantileTracker(0.9, 0.1, link="linear"),
    "quantiles": lambda: gq.MultiQuantileTracker([0.1, 0.5, 0.9], 0.1),
    "interval, linear": lambda: gq.IntervalTracker(0.8, 0.2, link="linear"),
    "conformal": lambda: gq.Conformal("absolute", 0.9, 0.1),
    "ensemble": lambda: gq.QuantileEnsemble(0.9, [0.01, 0.1], 0.05),
    "elo": lambda: gq.Elo(0.1),
    "elo, ridge": lambda: gq.Elo(0.1, penalty=gq.Ridge(0.01)),
    "elo, proximal": lambda: gq.Elo(0.1, proximal=0.01),
    "elo, falling": lambda: gq.Elo(schedule=gq.Power(0.5, 0.4)),
}


def lived(name):
    """The layer after the stream, and what it served."""
    rng = np.random.default_rng(11)
    base, weights = rng.uniform(0.05, 0.95, N), rng.uniform(0.5, 1.5, N)
    labels = (rng.uniform(size=N) < 0.4).astype(float)
    groups = {"g": rng.choice(list("abc"), N), "h": rng.choice(list("xy"), N)}
    x, keys = rng.normal(size=N), rng.integers(0, 7, N)
    layer = MAKES[name]()
    if name.startswith("elo"):
        return layer, layer.run(groups["g"], np.char.add("q", groups["h"]), labels).served
    given = {"weights": weights} if "weights" in name or name == "squared, groups" else {}
    wanted = layer.settings.get("settings", layer.settings)
    if wanted.get("groups"):
        given["groups"] = {k: groups[k] for k in wanted["groups"]}
    if wanted.get("features"):
        given["features"] = {"x": x}
    if name.endswith("keyed"):
        given["key"] = keys
    return layer, layer.run(base, labels, **given).served


def told(name):
    """Served values and parameters, as JSON takes them."""
    layer, served = lived(name)
    theta = layer.table().theta.tolist() if name.endswith("keyed") else list(layer.theta.values())
    return {"served": np.asarray(served)[-40:].tolist(), "theta": theta}
