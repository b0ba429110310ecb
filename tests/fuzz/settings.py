"""Random layers over the whole table of options, and how each is fed and judged by hand."""

import math
from dataclasses import dataclass, field

import gradeq as gq

GROUPS = {"g": "abc", "h": "xy", "i": "uv"}


@dataclass
class Case:
    """A layer with random settings, and what a run of it needs to know."""

    make: object
    kind: str
    scale: float = 1.0  # of predictions and labels
    groups: tuple = ()
    features: tuple = ()
    levels: tuple = ()
    forecasts: int = 1
    binary: bool = False
    keyed: bool = False
    games: bool = False
    home: bool = False
    weights: str = "none"
    positive: bool = False
    told: dict = field(default_factory=dict)

    def error(self, served, y, base=None):
        """What must average to zero, level by level; relative to the prediction with link exp."""
        if self.positive:
            return [served / base - y / base]
        if self.levels:
            values = served if isinstance(served, tuple) else (served,)
            return [float(y <= s) - tau for s, tau in zip(values, self.levels, strict=True)]
        return [served - y]

    def loss(self, served, y, base=None):
        """The loss of one row, as the layer reports it."""
        if self.positive:
            return (served / base - y / base) ** 2
        if self.games:
            p = min(1 - 1e-6, max(1e-6, served))
            return -y * math.log(p) - (1 - y) * math.log(1 - p)
        if not self.levels:
            return (served - y) * (served - y)
        values = served if isinstance(served, tuple) else (served,)
        pairs = zip(values, self.levels, strict=True)
        total = math.fsum(max(tau * (y - s), (tau - 1) * (y - s)) for s, tau in pairs)
        return total / len(self.levels)


def eta(rng, most):
    """A step, small or large."""
    return float(most * 10 ** -rng.uniform(0, 3))


def groups_of(rng):
    return tuple(list(GROUPS)[: int(rng.choice([0, 0, 1, 1, 2, 3]))])


def late(rng):
    """Settings about late labels."""
    found = {}
    if rng.random() < 0.2:
        found["late_cap"] = None if rng.random() < 0.5 else float(rng.uniform(0.01, 1.0))
    if rng.random() < 0.2:
        found["in_flight"] = int(rng.integers(1, 30))
    if rng.random() < 0.2:
        found["ttl"] = float(rng.integers(3, 40))
    return found


def weighted(rng):
    return str(rng.choice(["none", "none", "none", "mild", "wild", "zeros"]))


def scaled(rng):
    """The size of numbers: mostly ordinary, sometimes absurd."""
    return (
        float(10.0 ** rng.uniform(-300, 290))
        if rng.random() < 0.2
        else float(10.0 ** rng.uniform(-3, 3))
    )


def debias(rng):
    groups = groups_of(rng)
    features = ("x",) if rng.random() < 0.15 else ()
    size = max(1, len(groups)) + (4 if features else 0)
    settings = {"groups": list(groups), "features": list(features), **late(rng)}
    binary = rng.random() < 0.4
    link = None
    if binary:
        settings["outcome"] = "binary"
        link = str(rng.choice(["logit", "logit", "shift"]))
        settings["link"] = link
    exp = not binary and not features and rng.random() < 0.15
    if exp:
        link = settings["link"] = "exp"
    step = eta(rng, 3.0 if binary else 0.2 if exp else 1.9 / size)
    choice = rng.random()
    if choice < 0.12 and not features and link not in ("shift", "exp"):
        settings["eta"] = "auto"
    elif choice < 0.25:
        settings["schedule"] = gq.Power(step, float(rng.uniform(0.0, 0.9)))
    elif choice < 0.3:
        settings["schedule"] = gq.Piecewise((step, step / 7, step), (10, 30))
    else:
        settings["eta"] = step
    if settings.get("eta") != "auto" and not exp and rng.random() < 0.2:
        strength = float(10 ** -rng.uniform(0.5, 3))
        settings["penalty"] = gq.Ridge(strength) if rng.random() < 0.5 else gq.Lasso(strength)
    keyed = "penalty" not in settings and settings.get("eta") != "auto" and rng.random() < 0.2
    scale = 1.0 if binary else scaled(rng)
    if isinstance(settings.get("penalty"), gq.Lasso) and not binary:
        scale = 1.0
    made = (
        (lambda: gq.Keyed(gq.Debiaser(**settings))) if keyed else (lambda: gq.Debiaser(**settings))
    )
    return Case(
        made, "debias", scale, groups, features, binary=binary, keyed=keyed, weights=weighted(rng),
        positive=exp, told=settings,
    )  # fmt: skip


def quantile(rng):
    groups = groups_of(rng)
    features = ("x",) if rng.random() < 0.15 else ()
    link = str(rng.choice(["sinh", "sinh", "linear"]))
    scale = scaled(rng)
    unit = scale if link == "linear" else 1.0
    settings = {"groups": list(groups), "features": list(features), "link": link, **late(rng)}
    choice = rng.random()
    if choice < 0.12 and link == "sinh" and not features:
        settings["eta"] = "auto"
    elif choice < 0.25:
        settings["schedule"] = gq.Power(eta(rng, 2.0) * unit, float(rng.uniform(0.0, 0.9)))
    else:
        settings["eta"] = eta(rng, 2.0) * unit
    which = str(rng.choice(["one", "several", "interval"]))
    if which == "one":
        level = float(rng.choice([0.1, 0.5, 0.9, 0.99]))
        levels, cls, first = (level,), gq.QuantileTracker, level
        if settings.get("eta") != "auto" and rng.random() < 0.15 and scale == 1.0:
            settings["penalty"] = gq.Ridge(0.05)
        if link == "sinh" and not features and rng.random() < 0.2:
            settings["warm"] = True
    elif which == "several":
        levels, cls = (0.1, 0.5, 0.9), gq.MultiQuantileTracker
        first = levels
    else:
        first = float(rng.choice([0.5, 0.8, 0.95]))
        levels, cls = ((1 - first) / 2, (1 + first) / 2), gq.IntervalTracker
    forecasts = len(levels) if len(levels) > 1 and rng.random() < 0.5 else 1
    keyed = "penalty" not in settings and settings.get("eta") != "auto" and rng.random() < 0.2
    made = (lambda: gq.Keyed(cls(first, **settings))) if keyed else (lambda: cls(first, **settings))
    return Case(
        made, which, scale, groups, features, levels, forecasts, keyed=keyed, weights=weighted(rng),
        told={"first": first, **settings},
    )  # fmt: skip


def elo(rng):
    settings = late(rng)
    choice = rng.random()
    if choice < 0.1:
        settings["eta"] = "auto"
    elif choice < 0.25:
        settings["schedule"] = gq.Power(eta(rng, 1.0), float(rng.uniform(0.0, 0.9)))
    else:
        settings["eta"] = eta(rng, 1.0)
    home = rng.random() < 0.3
    settings["home_advantage"] = home
    if settings.get("eta") != "auto" and rng.random() < 0.3:
        strength = float(10 ** -rng.uniform(0.5, 3))
        which = rng.random()
        if which < 0.4:
            settings["penalty"] = gq.Ridge(min(strength, 0.5))
        elif which < 0.7:
            settings["penalty"] = gq.Lasso(strength)
        else:
            settings["proximal"] = strength
    settings["ties"] = str(rng.choice(["half", "half", "drop"]))
    return Case(
        lambda: gq.Elo(**settings), "elo", games=True, home=home, binary=True,
        weights=weighted(rng), told=settings,
    )  # fmt: skip


def other(rng):
    if rng.random() < 0.5:
        final = None if rng.random() < 0.3 else eta(rng, 0.5)
        scale = scaled(rng)
        settings = {
            "etas": [0.05 * scale, 0.5 * scale],
            "ensemble_eta": 0.1 / scale,
            "final_eta": final,
        }
        return Case(
            lambda: gq.QuantileEnsemble(0.9, **settings), "ensemble", scale, levels=(0.9,),
            weights=weighted(rng), told=settings,
        )  # fmt: skip
    settings = {
        "coverage": 0.8,
        "eta": "auto" if rng.random() < 0.2 else eta(rng, 1.0),
        **late(rng),
    }
    return Case(
        lambda: gq.Conformal("absolute", **settings),
        "conformal",
        scaled(rng),
        levels=(0.8,),
        told=settings,
    )


def case(rng):
    """One of them."""
    pick = rng.random()
    if pick < 0.5:
        return debias(rng)
    if pick < 0.8:
        return quantile(rng)
    return elo(rng) if pick < 0.93 else other(rng)
