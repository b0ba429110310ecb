"""Every kind of layer, with what goes into it: for laws that hold for all of them."""

from dataclasses import dataclass, field, replace

import numpy as np

import gradeq as gq

GROUPS = {"g": "abc", "h": "xy"}


def certified(layer):
    """The certificate of a layer, apart from labels that a run knows before they are due: events cannot have any."""
    found = layer.equilibrium()
    if found.learning is None:
        return found
    return replace(found, learning=replace(found.learning, not_due=0, unlabelled=0.0))


def missed(knob, y):
    """An error that falls as the knob grows."""
    return float(y > knob)


@dataclass
class Kind:
    """How one kind of layer is made and fed."""

    make: object
    groups: tuple = ()
    features: tuple = ()
    binary: bool = False
    keyed: bool = False
    forecasts: int = 1
    bare: bool = False  # takes no prediction (a knob)
    games: bool = False
    steps: bool = True  # whether set_step makes sense
    weights: bool = True
    support: tuple = (-np.inf, np.inf)  # labels stay inside
    saved: object = field(default=gq.from_json)

    def base(self, rng):
        """A prediction."""
        if self.binary:
            return float(rng.uniform(0.05, 0.95))
        if self.forecasts > 1:
            return [float(x) for x in np.sort(rng.normal(size=self.forecasts))]
        return float(rng.normal())

    def label(self, rng):
        """A label."""
        if self.games:
            return float(rng.choice([0.0, 0.5, 1.0]))
        y = float(rng.random() < 0.4) if self.binary else float(rng.normal(0.5, 1.5))
        return float(np.clip(y, *self.support))

    def where(self, rng):
        """Groups, features and key of a row."""
        found = {}
        if self.groups:
            found["groups"] = {name: str(rng.choice(list(GROUPS[name]))) for name in self.groups}
        if self.features:
            found["features"] = {name: float(rng.normal()) for name in self.features}
        if self.keyed:
            found["key"] = int(rng.integers(4))
        return found

    def args(self, rng):
        """Positional arguments of predict and open."""
        if self.games:
            a, b = rng.choice(6, 2, replace=False)
            return (f"p{a}", f"p{b}")
        return () if self.bare else (self.base(rng),)


def of(make, **given):
    return Kind(make, **given)


KINDS = {
    "scalar": of(lambda: gq.Debiaser(0.2)),
    "no cap": of(lambda: gq.Debiaser(0.02, late_cap=None)),
    "disjoint": of(lambda: gq.Debiaser(0.2, groups=["g"]), groups=("g",)),
    "overlapping": of(lambda: gq.Debiaser(0.2, groups=["g", "h"]), groups=("g", "h")),
    "features": of(lambda: gq.Debiaser(0.1, groups=["g"], features=["x"]), groups=("g",), features=("x",)),
    "falling": of(lambda: gq.Debiaser(schedule=gq.Power(0.5, 0.4), groups=["g"]), groups=("g",), steps=False),
    "logit": of(lambda: gq.Debiaser(0.3, outcome="binary", groups=["g"]), groups=("g",), binary=True),
    "shift": of(lambda: gq.Debiaser(0.3, outcome="binary", link="shift"), binary=True),
    "ridge": of(lambda: gq.Debiaser(0.1, groups=["g"], penalty=gq.Ridge(0.1)), groups=("g",)),
    "lasso": of(
        lambda: gq.Debiaser(0.1, outcome="binary", link="shift", groups=["g", "h"], penalty=gq.Lasso(0.01)),
        groups=("g", "h"), binary=True,
    ),
    "auto": of(lambda: gq.Debiaser("auto", groups=["g"]), groups=("g",), steps=False),
    "auto binary": of(lambda: gq.Debiaser("auto", outcome="binary"), binary=True, steps=False),
    "quantile": of(lambda: gq.QuantileTracker(0.9, 0.2, groups=["g"]), groups=("g",)),
    "linear": of(lambda: gq.QuantileTracker(0.8, 0.2, link="linear")),
    "quantiles": of(lambda: gq.MultiQuantileTracker([0.1, 0.5, 0.9], 0.2), forecasts=3),
    "interval": of(lambda: gq.IntervalTracker(0.8, 0.2, groups=["g", "h"]), groups=("g", "h"), forecasts=2),
    "auto quantile": of(lambda: gq.QuantileTracker(0.9, "auto"), steps=False),
    "limits": of(lambda: gq.Debiaser(0.2, groups=["g"], support=(0, None)), groups=("g",), support=(0.0, np.inf)),
    "auto limits": of(lambda: gq.Debiaser("auto", support=(0, 2)), steps=False, support=(0.0, 2.0)),
    "limits binary": of(
        lambda: gq.Debiaser(0.3, outcome="binary", link="shift", support=(0, 1)), binary=True
    ),
    "limits quantile": of(
        lambda: gq.QuantileTracker(0.3, 0.2, groups=["g"], support=(0, None)), groups=("g",),
        support=(0.0, np.inf),
    ),
    "limits interval": of(
        lambda: gq.Keyed(gq.IntervalTracker(0.8, 0.2, groups=["g", "h"], support=(0, 2))),
        groups=("g", "h"), keyed=True, forecasts=2, support=(0.0, 2.0),
    ),
    "auto limits quantile": of(
        lambda: gq.QuantileTracker(0.9, "auto", support=(0, None)), steps=False, support=(0.0, np.inf)
    ),
    "conformal": of(lambda: gq.Conformal("absolute", 0.8, 0.2), steps=False),
    "ensemble": of(lambda: gq.QuantileEnsemble(0.9, [0.05, 0.5], 0.1), steps=False),
    "plain ensemble": of(lambda: gq.QuantileEnsemble(0.9, [0.05, 0.5], 0.1, None), steps=False),
    "risk": of(
        lambda: gq.RiskControl(missed, 0.25, 0.2, span=(-9.0, 9.0)), bare=True, steps=False,
        saved=lambda text: gq.RiskControl.from_json(text, missed),
    ),
    "keyed": of(lambda: gq.Keyed(gq.Debiaser(0.2)), keyed=True),
    "keyed groups": of(
        lambda: gq.Keyed(gq.Debiaser(0.2, groups=["g", "h"])), groups=("g", "h"), keyed=True
    ),
    "keyed quantiles": of(
        lambda: gq.Keyed(gq.MultiQuantileTracker([0.1, 0.9], 0.2)), keyed=True, forecasts=2
    ),
    "pooled": of(
        lambda: gq.Keyed(gq.MultiQuantileTracker([0.1, 0.9]), pool=True), keyed=True, forecasts=2, steps=False
    ),
    "elo": of(lambda: gq.Elo(0.2), games=True),
    "elo ties dropped": of(lambda: gq.Elo(0.2, ties="drop"), games=True),
    "elo ridge": of(lambda: gq.Elo(0.2, penalty=gq.Ridge(0.05)), games=True),
    "elo auto": of(lambda: gq.Elo("auto"), games=True, steps=False),
}  # fmt: skip
