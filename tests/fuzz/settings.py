"""Random layers over the whole table of options, and how each is fed and judged by hand."""

import math
from dataclasses import dataclass, field
from typing import Any

import gradeq as gq
from fuzz.table import SUPPORTED, Combination, picked

GROUPS = {"g": "abc", "h": "xy", "i": "uv"}
LEVELS = ((0.1, 0.5, 0.9), (0.4, 0.5, 0.6))


@dataclass
class Case:
    """A layer with random settings, and what a run of it needs to know."""

    make: Any
    combination: Combination
    scale: float = 1.0  # of predictions and labels
    groups: tuple = ()
    features: tuple = ()
    levels: tuple = ()
    forecasts: int = 1
    weights: str = "none"
    told: dict = field(default_factory=dict)
    error_of: Any = None  # risk control: the user's error, its target and what lies between its ends
    target: float = 0.0
    ends: tuple = ()

    def __post_init__(self):
        own = self.combination
        self.kind, self.keyed = own.kind, own.keyed != ""
        self.games, self.home = own.kind == "elo", own.warm == "home"
        self.binary = self.games or own.link in ("logit", "shift")
        self.positive = own.link == "exp"
        self.at_once = own.penalty == "proximal"
        made = self.make()
        self.auto = getattr(made, "eta", None) == "auto" or getattr(made, "pool", False)  # "no step" too
        self.constant = own.step in ("eta", "no step", "k") and not self.auto
        self.support = self.told.get("support", (-math.inf, math.inf))

    def held(self, x):
        """A value inside the limits of labels: the value itself, or the limit."""
        return min(self.support[1], max(self.support[0], x))

    def seen(self, layer, shown):
        """What a label will be judged by: for quantiles with limits the value before them."""
        if self.kind == "conformal":
            return shown.threshold
        if not self.levels or "support" not in self.told:
            return shown
        served = layer.internals.tickets.opened[layer.internals.tickets.newest][0][3]
        inside = tuple(map(self.held, served if isinstance(served, tuple) else (served,)))
        assert (shown if isinstance(shown, tuple) else (shown,)) == inside, (shown, inside)
        return served

    def revive(self, text):
        """The layer read back from JSON."""
        return gq.from_json(text) if self.kind != "risk" else gq.RiskControl.from_json(text, self.error_of)

    def heard(self, base, y):
        """The label as the layer tracks it: a score for conformal prediction."""
        if self.kind != "conformal":
            return y
        return max(base[0] - y, y - base[1]) if isinstance(base, tuple) else abs(y - base)

    def error(self, served, y, base):
        """What must average to zero, level by level; relative to the prediction with link exp."""
        if self.kind == "risk":
            return [self.target - self.error_of(served, y)]
        if self.positive:
            return [served / base - y / base]
        if self.levels:
            y, values = self.heard(base, y), served if isinstance(served, tuple) else (served,)
            return [float(y <= s) - tau for s, tau in zip(values, self.levels, strict=True)]
        return [served - y]

    def raw(self, base):
        """What would have been served without the layer."""
        if self.kind == "conformal":
            return 0.0
        return (base,) * len(self.levels) if self.forecasts < len(self.levels) else base

    def loss(self, served, y, base):
        """The loss of one row, as the layer reports it."""
        if self.kind == "risk":
            return self.error_of(served, y)
        if self.positive:
            return (served / base - y / base) * (served / base - y / base)
        if self.games:
            p = min(1 - 1e-6, max(1e-6, served))
            return -y * math.log(p) - (1 - y) * math.log(1 - p)
        if not self.levels:
            return (served - y) * (served - y)
        y, values = self.heard(base, y), served if isinstance(served, tuple) else (served,)
        pairs = zip(values, self.levels, strict=True)
        return sum(max(tau * (y - s), (tau - 1) * (y - s)) for s, tau in pairs) / len(self.levels)


def eta(rng, most):
    """A step, small or large; large ones get to the ends of a range in a short life."""
    return float(most * 10 ** -rng.uniform(0, rng.choice([1.0, 3.0])))


def steps(rng, step, most, unit=1.0):
    """The settings for one choice of step; schedules fall, rise and fall, or rise past what is stable."""
    if step == "no step":
        return {}
    if step == "auto":
        return {"eta": "auto"}
    first = eta(rng, most)
    if step == "eta":
        return {"eta": first * unit}
    if step == "k":
        return {"k": 400.0 / math.log(10.0) * first}
    shape = int(rng.integers(4))
    if shape < 2:
        return {"schedule": gq.Power(first * unit, float(rng.uniform(0.0, 0.9)))}
    if shape == 2:
        return {"schedule": gq.Piecewise((first * unit, first * unit / 7, first * unit), (10, 30))}
    rising = tuple(first * unit * by for by in (0.1, 30.0, 0.3, 8.0, 0.1))
    return {"schedule": gq.Piecewise(rising, (15, 25, 50, 90))}


def most_of(schedule):
    """The largest step of a schedule."""
    return schedule.eta if isinstance(schedule, gq.Power) else max(schedule.steps)


def shrunk(rng, penalty):
    """The settings for one choice of penalty."""
    strength = float(10 ** -rng.uniform(0.5, 6))
    made = {"ridge": gq.Ridge, "lasso": gq.Lasso}
    if penalty == "proximal":
        return {"proximal": strength}
    return {"penalty": made[penalty](strength)} if penalty else {}


def late(rng):
    """Settings about late labels."""
    found = {}
    if rng.random() < 0.5:
        found["late_cap"] = None if rng.random() < 0.6 else float(rng.uniform(0.01, 1.0))
    if rng.random() < 0.15:
        found["in_flight"] = int(rng.integers(1, 30))
    if rng.random() < 0.2:
        found["ttl"] = float(rng.integers(3, 40))
    if rng.random() < 0.15:
        found["queue"] = True
    return found


def limited(rng, own, scale):
    """Limits of labels, for one in three: what is served must stay inside, and labels do."""
    if rng.random() < 2 / 3 or own.link == "exp":
        return {}
    if own.link in ("logit", "shift"):
        return {"support": (0.0, 1.0) if rng.random() < 0.5 else (0.2, 0.7)}
    low = scale * float(rng.choice([-2.0, -0.5, 0.0]))
    return {"support": (low, low + scale * float(rng.choice([0.5, 2.0, math.inf])))}


def weighted(rng):
    usual = ["mild", "heavy", "light", "wild", "zeros"]
    kinds = [*usual, "huge", "large", "constant", "lognormal", "one"]
    return "none" if rng.random() < 0.35 else str(rng.choice(kinds))


def scaled(rng, in_steps=False):
    """The size of numbers: mostly ordinary, sometimes absurd; steps that carry it are held to 1e-100 to 1e100."""
    if rng.random() < 0.2:
        return float(10.0 ** (rng.uniform(-90, 90) if in_steps else rng.uniform(-300, 290)))
    return float(10.0 ** rng.uniform(-3, 3))


def columns_of(rng, rows):
    """The names of the group columns and of the features."""
    count = {"": 0, "groups": 1, "overlap": int(rng.integers(2, 4)), "features": 0}.get(rows, 1)
    features = ("x", "z")[: int(rng.integers(1, 3))] if "features" in rows else ()
    return tuple(list(GROUPS)[:count]), features


def debias(rng, own):
    groups, features = columns_of(rng, own.rows)
    settings = {"groups": list(groups), "features": list(features), **late(rng)}
    binary = own.link in ("logit", "shift")
    if binary:
        # An adversary's labels depend on what they say: layers would hold them back, unless they are told not to.
        settings |= {"outcome": "binary", "maturity": 0.0}
        settings |= {"clip": float(rng.choice([1e-6, 0.01, 0.2]))} if rng.random() < 0.3 else {}
    settings["link"] = own.link
    size = max(1, len(groups)) + (4 * len(features) if features else 0)
    most = 3.0 if binary else 0.2 if own.link == "exp" else 1.9 / size
    settings |= steps(rng, own.step, most) | shrunk(rng, own.penalty)
    plain = binary or own.penalty == "lasso"  # a lasso has the unit of the labels
    scale = 1.0 if plain else scaled(rng)
    settings |= limited(rng, own, scale)
    return Case(
        keyed(own, gq.Debiaser, settings), own, scale, groups, features, weights=weighted(rng), told=settings,
    )  # fmt: skip


def keyed(own, cls, settings, *first):
    """How a layer of these settings is made; they may still be changed."""

    def make():
        layer = cls(*first, **settings)
        return gq.Keyed(layer, pool=own.keyed == "pooled") if own.keyed else layer

    make.settings = settings
    return make


def matured(rng, made):
    """The same with a maturity, where the layer takes one: labels wait until their rows are that old."""
    if made.kind in ("elo", "conformal"):
        return made
    for settings in (made.make.settings, made.told):
        settings.pop("ttl", None)
        settings.pop("queue", None)
    more = {"maturity": float(rng.choice([2.0, 5.0, 15.0]))}
    if rng.random() < 0.5:
        more["missing_is"] = float(made.ends[0]) if made.ends else made.held(0.0)
    made.make.settings |= more
    made.told |= more
    return made


def doubting(made):
    """The same without being told that delays do not matter: labels may be held back."""
    for settings in (made.make.settings, made.told):
        settings.pop("maturity", None)
        settings.pop("ttl", None)
        settings.pop("queue", None)
    return made


def quantile(rng, own):
    groups, features = columns_of(rng, own.rows)
    scale = 1.0 if own.penalty else scaled(rng, own.link == "linear")
    settings = {"groups": list(groups), "features": list(features), "link": own.link, **late(rng)}
    settings |= steps(rng, own.step, 2.0, scale if own.link == "linear" else 1.0)
    settings |= shrunk(rng, own.penalty) | ({"warm": True} if own.warm else {})
    settings |= limited(rng, own, scale)
    if own.kind == "quantile":
        first = float(rng.choice([0.1, 0.5, 0.9, 0.99]))
        levels, cls = (first,), gq.QuantileTracker
    elif own.kind == "quantiles":
        first = levels = LEVELS[int(rng.integers(len(LEVELS)))]
        cls = gq.MultiQuantileTracker
    else:
        first = float(rng.choice([0.2, 0.5, 0.8, 0.95]))
        levels, cls = ((1 - first) / 2, (1 + first) / 2), gq.IntervalTracker
    forecasts = len(levels) if len(levels) > 1 and rng.random() < 0.7 else 1
    return Case(
        keyed(own, cls, settings, first), own, scale, groups, features, levels, forecasts,
        weighted(rng), {"first": first, **settings},
    )  # fmt: skip


def elo(rng, own):
    settings = late(rng) | steps(rng, own.step, 1.0) | shrunk(rng, own.penalty)
    if own.penalty and own.step == "no step":  # a penalty needs one
        settings["eta"] = 0.1
    if own.penalty == "ridge" and "schedule" in settings:  # of steps that rise the largest counts
        strength = min(settings["penalty"].strength, 0.9 / most_of(settings["schedule"]))
        settings["penalty"] = gq.Ridge(strength)
    settings |= {"home_advantage": own.warm == "home", "ties": own.more}
    return Case(keyed(own, gq.Elo, settings), own, weights=weighted(rng), told=settings)


def conformal(rng, own):
    settings = {"coverage": 0.8, "warm": bool(own.warm), **late(rng), **steps(rng, own.step, 1.0)}
    return Case(
        keyed(own, gq.Conformal, settings, own.more), own, scaled(rng), levels=(0.8,),
        forecasts=2 if own.more == "cqr" else 1, weights=weighted(rng), told=settings,
    )  # fmt: skip


def ensemble(rng, own):
    scale = scaled(rng, in_steps=True)
    unit = scale if own.link == "linear" else 1.0
    settings = {"etas": [0.05 * scale, 0.5 * scale], "ensemble_eta": 0.1 / scale, "link": own.link}
    settings |= {"final_eta": None if own.more == "plain" else unit * eta(rng, 0.5)}
    settings |= {"floor": float(rng.choice([0.0, 0.05]))} | late(rng) | limited(rng, own, scale)
    return Case(
        keyed(own, gq.QuantileEnsemble, settings, 0.9), own, scale, levels=(0.9,),
        weights=weighted(rng), told=settings,
    )  # fmt: skip


def risk(rng, own):
    """An error that falls as the knob grows: all or nothing, or along a slope; labels lie between two ends."""
    scale, most = scaled(rng, in_steps=True), float(10.0 ** rng.uniform(-2, 2))
    start, width = scale * float(rng.normal()), scale * float(rng.uniform(0.01, 2.0))
    low, high = (start + scale * side * float(rng.choice([0.1, 1.0, 2.0])) for side in (-1.0, 1.0))

    def error(knob, y):
        if math.isinf(y):  # a mistake of the user's, to be refused
            return math.copysign(1.5, y) * most
        if own.link == "step":
            return most * float(y > knob)
        return most * min(1.0, max(0.0, (y - knob) / width))

    target = most * float(rng.uniform(0.05, 0.95))
    span = None if own.more else (low - (width if own.link == "slope" else 0.0), high)
    settings = {"target": target, "eta": eta(rng, 2.0) * scale / most, "start": start}
    settings |= {"span": span, "most": most, **late(rng)}
    return Case(
        keyed(own, gq.RiskControl, settings, error), own, scale, weights=weighted(rng), told=settings,
        error_of=error, target=target, ends=(low, high),
    )  # fmt: skip


MAKERS = {
    "debias": debias, "quantile": quantile, "quantiles": quantile, "interval": quantile, "elo": elo,
    "conformal": conformal, "ensemble": ensemble, "risk": risk,
}  # fmt: skip


def of_late_groups(rng):
    """A layer whose rows share parameters, for late labels: mostly with weights of 1, and steps that are capped."""
    shared = [
        c for c in SUPPORTED if c.rows in ("overlap", "features", "groups features") and not (c.penalty or c.keyed)
    ]
    own = shared[int(rng.integers(len(shared)))]
    made = MAKERS[own.kind](rng, own)
    made.weights = "none" if rng.random() < 0.75 else made.weights
    return made


def case(rng, turn=1):
    """One of them: an even turn takes its place in the table, an odd one is drawn by chance."""
    own = picked(rng, turn)
    made = MAKERS[own.kind](rng, own)
    if made.told.get("queue") and made.kind not in ("elo", "conformal"):
        # Of labels without ids that are held back nobody could tell from outside when they are learned.
        for settings in (made.make.settings, made.told):
            settings["maturity"] = 0.0
    return made


def lively(rng, made):
    """The same; sometimes with a maturity, or without being told that delays do not matter."""
    pick = rng.random()
    if pick < 0.12:
        return matured(rng, made)
    return doubting(made) if pick < 0.18 and made.kind == "debias" else made
