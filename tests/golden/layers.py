"""Every kind of layer with every option, each through a seeded stream: what is served, postings, states, figures."""

import contextlib
import functools
import itertools
import json
from dataclasses import dataclass
from typing import Any

import gradeq as gq
from golden import lives
from golden.streams import Shape
from golden.trees import differences, kept_states, plain

FAMILIES = {
    gq.Debiaser: "debias", gq.QuantileTracker: "quantile", gq.MultiQuantileTracker: "quantiles",
    gq.IntervalTracker: "interval", gq.Conformal: "conformal", gq.QuantileEnsemble: "ensemble",
    gq.RiskControl: "risk", gq.Elo: "elo",
}  # fmt: skip
# Fields of states that came after the states were kept; those of older states are at their defaults.
LATER: tuple[str, ...] = ()


def error(knob, y):
    """An error that falls as the knob grows."""
    return float(y > knob)


def slope(knob, y):
    """An error that falls along a slope."""
    return min(1.0, max(0.0, y - knob))


@dataclass
class Case:
    """A layer to be made, and what it is fed with."""

    name: str
    cls: Any
    first: tuple
    settings: dict
    shape: Shape
    keyed: bool = False
    pool: bool = False

    def make(self):
        layer = self.cls(*self.first, **self.settings)
        return gq.Keyed(layer, pool=self.pool) if self.keyed else layer

    def revive(self, text):
        if self.cls is gq.RiskControl:
            return gq.RiskControl.from_json(text, self.first[0])
        return gq.from_json(text)


def shape_of(cls, first, settings, **more):
    """What a layer with these settings takes."""
    kind = "real"
    if settings.get("outcome") == "binary":
        kind = "binary"
    elif settings.get("link") == "exp":
        kind = "positive"
    elif cls is gq.Elo:
        kind = "games"
    elif cls is gq.RiskControl:
        kind = "bare"
    forecasts = 1
    if cls is gq.MultiQuantileTracker:
        forecasts = len(first[0])
    elif cls is gq.IntervalTracker or first[:1] == ("cqr",):
        forecasts = 2
    return Shape(
        kind=kind, groups=tuple(settings.get("groups", ())), features=tuple(settings.get("features", ())),
        forecasts=forecasts, support=settings.get("support") or (None, None),
        home=settings.get("home_advantage", False), queue=settings.get("queue", False),
        at_once="proximal" in settings, **more,
    )  # fmt: skip


def case(name, cls, first=(), keyed="", weights="", options=(), **settings):
    shape = shape_of(cls, first, settings, weights=weights, options=tuple(options))
    shape.keyed = bool(keyed)
    return Case(name, cls, tuple(first), settings, shape, bool(keyed), keyed == "pooled")


STEPS = {"eta": {"eta": 0.1}, "no step": {}, "auto": {"eta": "auto"}, "schedule": {"schedule": gq.Power(0.2, 0.5)}}
PENALTIES = {"": {}, "ridge": {"penalty": gq.Ridge(0.02)}, "lasso": {"penalty": gq.Lasso(0.02)}}
ROWS = {
    "": {},
    "groups": {"groups": ["g"]},
    "overlap": {"groups": ["g", "h"]},
    "features": {"features": ["x"]},
    "groups features": {"groups": ["g"], "features": ["x"]},
}
SERIES = {"": "", "keyed": "keyed", "pooled": "pooled"}
DEBIAS_LINKS = {
    "identity": {}, "exp": {"link": "exp"}, "logit": {"outcome": "binary"},
    "shift": {"outcome": "binary", "link": "shift"},
}  # fmt: skip
QUANTILE_LINKS = {"sinh": {}, "linear": {"link": "linear"}}
TRACKERS = {
    "quantile": (gq.QuantileTracker, (0.8,)),
    "quantiles": (gq.MultiQuantileTracker, ((0.1, 0.5, 0.9),)),
    "interval": (gq.IntervalTracker, (0.8,)),
}


def named(*words):
    return " ".join(word for word in words if word)


def table():
    """The table of combinations, walked whole: also those that are refused."""
    yield from tracked(gq.Debiaser, (), DEBIAS_LINKS, [""])
    for kind, (cls, first) in TRACKERS.items():
        yield from tracked(cls, first, QUANTILE_LINKS, ["", "warm"] if kind == "quantile" else [""])
    for step, warm, score in itertools.product(list(STEPS)[:3], ("", "warm"), ("absolute", "cqr")):
        settings = {**STEPS[step], **({"warm": True} if warm else {})}
        yield case(named("table", score, step, warm), gq.Conformal, (score, 0.8), **settings)
    steps = {**STEPS, "k": {"k": 24.0}}
    shrink = {**PENALTIES, "proximal": {"proximal": 0.01}}
    for step, penalty, home, ties in itertools.product(steps, shrink, (False, True), ("half", "drop")):
        name = named("table", step, penalty, "home" if home else "", ties)
        settings = {**steps[step], **shrink[penalty], "home_advantage": home, "ties": ties}
        yield case(name, gq.Elo, **settings)
    for link, final in itertools.product(QUANTILE_LINKS, (0.05, None)):
        name = named("table", link, "" if final else "plain")
        yield case(name, gq.QuantileEnsemble, (0.8, [0.02, 0.2], 0.1, final), **QUANTILE_LINKS[link])
    for judged, span in itertools.product((error, slope), ((-9.0, 9.0), None)):
        name = named("table", judged.__name__, "span" if span else "no span")
        yield case(name, gq.RiskControl, (judged, 0.25, 0.2), span=span)


def tracked(cls, first, links, warms):
    for step, link, penalty, rows, warm, keyed in itertools.product(STEPS, links, PENALTIES, ROWS, warms, SERIES):
        settings = {**STEPS[step], **links[link], **PENALTIES[penalty], **ROWS[rows]}
        settings |= {"warm": True} if warm else {}
        name = named("table", step, link, penalty, rows, warm, keyed)
        yield case(name, cls, first, keyed=SERIES[keyed], **settings)


BASES = {
    "debias": (gq.Debiaser, (0.1,), {}, ""),
    "debias groups": (gq.Debiaser, (0.1,), {"groups": ["g", "h"]}, ""),
    "debias features": (gq.Debiaser, (0.05,), {"features": ["x"], "groups": ["g"]}, ""),
    "debias plain": (gq.Debiaser, ("plain",), {"groups": ["g"]}, ""),
    "debias auto": (gq.Debiaser, (), {}, ""),
    "debias auto groups": (gq.Debiaser, (), {"groups": ["g"]}, ""),
    "exp": (gq.Debiaser, (0.05,), {"link": "exp", "groups": ["g"]}, ""),
    "logit": (gq.Debiaser, (0.2,), {"outcome": "binary", "groups": ["g"]}, ""),
    "shift": (gq.Debiaser, (0.1,), {"outcome": "binary", "link": "shift"}, ""),
    "binary auto": (gq.Debiaser, (), {"outcome": "binary", "groups": ["g"]}, ""),
    "keyed debias": (gq.Debiaser, (0.1,), {"groups": ["g"]}, "keyed"),
    "keyed logit": (gq.Debiaser, (0.2,), {"outcome": "binary"}, "keyed"),
    "quantile": (gq.QuantileTracker, (0.8, 0.1), {"groups": ["g"]}, ""),
    "quantile linear": (gq.QuantileTracker, (0.8, 0.2), {"link": "linear"}, ""),
    "quantile auto": (gq.QuantileTracker, (0.9,), {"groups": ["g"]}, ""),
    "quantiles": (gq.MultiQuantileTracker, ((0.1, 0.5, 0.9), 0.1), {"groups": ["g", "h"]}, ""),
    "quantiles auto": (gq.MultiQuantileTracker, ((0.1, 0.5, 0.9),), {}, ""),
    "interval": (gq.IntervalTracker, (0.8, 0.1), {"groups": ["g"]}, ""),
    "interval auto": (gq.IntervalTracker, (0.8,), {}, ""),
    "interval linear": (gq.IntervalTracker, (0.8, 0.2), {"link": "linear"}, ""),
    "keyed quantile": (gq.QuantileTracker, (0.8, 0.1), {}, "keyed"),
    "keyed interval": (gq.IntervalTracker, (0.8, 0.1), {"groups": ["g"]}, "keyed"),
    "pooled quantiles": (gq.MultiQuantileTracker, ((0.1, 0.9),), {}, "pooled"),
    "pooled interval": (gq.IntervalTracker, (0.8,), {}, "pooled"),
    "conformal": (gq.Conformal, ("absolute", 0.8, 0.1), {}, ""),
    "conformal cqr": (gq.Conformal, ("cqr", 0.8, 0.1), {}, ""),
    "ensemble": (gq.QuantileEnsemble, (0.8, [0.02, 0.2], 0.1), {"floor": 0.05}, ""),
    "risk": (gq.RiskControl, (error, 0.25, 0.2), {"span": (-9.0, 9.0), "start": 0.5}, ""),
    "elo": (gq.Elo, (0.1,), {}, ""),
    "elo auto": (gq.Elo, (), {"home_advantage": True}, ""),
    "elo k": (gq.Elo, (), {"k": 32.0, "ties": "drop"}, ""),
}
OPTIONS = {
    "weights": {"weights": "mild"},
    "weights zeros": {"weights": "zeros"},
    "in_flight": {"in_flight": 6},
    "no cap": {"late_cap": None},
    "cap": {"late_cap": 0.05},
    "ttl": {"ttl": 5.0, "options": ("expire",)},
    "ttl dates": {"ttl": "5h", "options": ("dates",)},
    "maturity": {"maturity": 4.0, "options": ("advance",)},
    "maturity dates": {"maturity": "4h", "options": ("dates",)},
    "maturity 0": {"maturity": 0.0},
    "missing_is": {"maturity": 4.0, "missing_is": 0.0},
    "queue": {"queue": True},
    "support": {"support": (0.0, 2.0)},
    "support low": {"support": (0.0, None), "weights": "mild"},
    "shadow": {"shadow": True},
    "bins": {"bins": [0.2, 0.8]},
    "clip": {"clip": 0.1},
    "dates": {"dates": True, "options": ("dates",)},
    "home_step": {"home_step": 0.02, "home_advantage": True},
    "set_step": {"options": ("set_step",)},
    "freeze": {"options": ("freeze",)},
    "reset_in_flight": {"options": ("reset_in_flight", "forget")},
}
SCHEDULES = {
    "Constant": gq.Constant(0.1),
    "Power": gq.Power(0.3, 0.6),
    "Piecewise": gq.Piecewise((0.2, 0.02, 0.1), (10, 30)),
    "Listed": gq.Listed(tuple(0.3 / (1 + t) for t in range(2000))),
}


def options():
    """Each usual layer with each option beside."""
    for (base, own), (option, more) in itertools.product(BASES.items(), OPTIONS.items()):
        cls, first, settings, keyed = own
        yield case(named("option", base, option), cls, first, keyed, **{**settings, **more})
    for name, schedule in SCHEDULES.items():
        yield case(f"schedule debias {name}", gq.Debiaser, groups=["g"], schedule=schedule, weights="mild")
        yield case(f"schedule logit {name}", gq.Debiaser, outcome="binary", schedule=schedule, keyed="keyed")
        yield case(f"schedule quantile {name}", gq.QuantileTracker, (0.8,), schedule=schedule)
        yield case(f"schedule elo {name}", gq.Elo, schedule=schedule)


def offered(own):
    """Whether the layer has these options at all."""
    try:
        own.make()
    except TypeError:
        return False
    except gq.BadInput:
        return True
    return True


@functools.cache
def cases():
    """All of them, by family and name."""
    with lives.quiet():
        every = [*table(), *(own for own in options() if offered(own))]
    found = {family: {} for family in FAMILIES.values()}
    for own in every:
        found[FAMILIES[own.cls]][own.name] = own
    return found


def states(family, names):
    """What is kept of cases for ever: a state half way; where tickets can be in hand, one of them and a posting."""
    for name in names:
        own = cases()[family][name]
        if "no step" in name or "lasso" in name:  # states of the same fields as others
            continue
        with lives.quiet():
            try:
                kept = {"state": lives.by_events(own).layer.to_json()}
            except gq.GradeqError:
                continue
            if with_extras(own):
                with contextlib.suppress(gq.GradeqError):
                    kept |= lives.hand_texts(own)
        yield name, kept


def trees(family, names):
    """The trees of cases."""
    for name in names:
        with lives.quiet():
            yield name, tree_of(cases()[family][name], kept_states(family).get(name, {}))


def tree_of(own, kept):
    """One case: by events up to the middle, from the state of then to the end, by columns, and more."""
    try:
        life = lives.by_events(own)
    except gq.GradeqError as error:
        return {"refused": type(error).__name__}
    text = life.layer.to_json()
    tree = {
        "half": {
            "served": list(life.served), "answers": list(life.answers),
            "theta": lives.attempt(lambda: life.layer.theta),
        },
        "after": lives.resumed(own, life, text),
        "columns": lives.attempt(lambda: lives.by_columns(own)),
    }  # fmt: skip
    if "state" in kept:
        tree["state kept"] = unlike(own.revive(kept["state"]).to_json(), text) + list(
            differences(tree["after"], lives.resumed(own, life, kept["state"]))
        )
    unbroken = lives.continued(life)
    tree["unbroken"] = list(differences(tree["after"]["served"], unbroken))
    if with_extras(own):
        tree["merged"] = lives.attempt(lambda: lives.merged(own))
        tree["tickets"] = lives.attempt(lambda: lives.in_hand(own, kept))
    return tree


def unlike(one, other):
    """Where two saved states differ, apart from fields that came later."""
    then, now = (json.loads(own) for own in (one, other))
    for own in (then, now):
        own.pop("sha256", None)
    found = differences(plain(then), plain(now))
    return [line for line in found if not any(name in line for name in LATER)]


def with_extras(own):
    """Whether tickets in hand and merging are tried: with the usual layers, and where groups overlap."""
    usual = own.name.startswith(("option", "schedule")) or own.settings.get("groups") == ["g", "h"]
    return usual and not (own.shape.at_once or own.shape.queue)
