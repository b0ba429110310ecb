"""Every combination of options that the layers support: their own table, walked whole."""

import itertools
from typing import NamedTuple

from gradeq.layers.options import TABLE, refusal


class Combination(NamedTuple):
    """A kind of layer with one choice for each of its options; "" is the plain one."""

    kind: str
    step: str = "eta"
    link: str = ""
    penalty: str = ""
    rows: str = ""
    warm: str = ""
    keyed: str = ""
    more: str = ""

    @property
    def names(self):
        """The options as the layers' table calls them."""
        found = {self.step, self.warm, *(["keyed"] if self.keyed else [])}
        if self.keyed == "pooled":
            found = (found - {"keyed"}) | {"pool"} | ({"groups"} if self.rows else set())
        found |= {"penalty"} if self.penalty in ("ridge", "lasso") else {self.penalty}
        found |= {f"link {self.link}"} if self.link else set()
        found |= {"features"} if "features" in self.rows else set()
        return found - {""}

    @property
    def plainness(self):
        """How often it is drawn by chance: less with every option that is not the plain one."""
        return 3.0 ** -sum(value != "" for value in self[3:])


STEPS = ("eta", "no step", "auto", "schedule")
ROWS = ("", "groups", "overlap", "features", "groups features")
PENALTIES = ("", "ridge", "lasso")
SERIES = ("", "keyed", "pooled")
QUANTILES = {"step": STEPS, "link": ("sinh", "linear"), "penalty": PENALTIES, "rows": ROWS}
AXES = {
    "debias": {
        "step": STEPS, "link": ("identity", "logit", "shift", "exp"), "penalty": PENALTIES, "rows": ROWS,
        "keyed": SERIES,
    },
    "quantile": {**QUANTILES, "warm": ("", "warm"), "keyed": SERIES},
    "quantiles": {**QUANTILES, "keyed": SERIES},
    "interval": {**QUANTILES, "keyed": SERIES},
    "conformal": {"step": STEPS[:3], "warm": ("", "warm"), "more": ("absolute", "cqr")},
    "elo": {
        "step": (*STEPS, "k"), "penalty": (*PENALTIES, "proximal"), "warm": ("", "home"),
        "more": ("half", "drop"),
    },
    "ensemble": {"link": ("sinh", "linear"), "more": ("", "plain")},
    "risk": {"link": ("step", "slope"), "more": ("", "no span")},
}  # fmt: skip


def supported():
    """All of them, those of kinds with few options several times, as the layers' table has them today."""
    found = []
    for kind, axes in AXES.items():
        own = [
            Combination(kind, **dict(zip(axes, choice, strict=True))) for choice in itertools.product(*axes.values())
        ]
        own = [c for c in own if kind not in TABLE or refusal(kind, c.names) is None]
        found += own * max(1, 100 // len(own))
    return found


SUPPORTED = supported()


def options_of(kind):
    """Every option of a kind by the name that the layers' table gives it."""
    axes = AXES[kind]
    choices = [Combination(kind, **{axis: value}) for axis, values in axes.items() for value in values]
    # Limits are drawn by chance, and groups are an option of the table only where keys are pooled.
    return set().union({"support", "groups"}, *(choice.names for choice in choices))


def picked(rng, turn):
    """Every second life takes its turn in the table; the others are drawn by chance, plain ones more often."""
    if turn % 2 == 0:
        return SUPPORTED[turn // 2 % len(SUPPORTED)]
    kind = str(rng.choice(["debias", "quantile", "elo", "quantiles", "interval", "other"], p=SHARES))
    kinds = (kind,) if kind != "other" else ("conformal", "ensemble", "risk")
    own = [c for c in SUPPORTED if c.kind in kinds]
    weights = [c.plainness for c in own]
    return own[int(rng.choice(len(own), p=[w / sum(weights) for w in weights]))]


SHARES = (0.36, 0.18, 0.14, 0.08, 0.08, 0.16)
