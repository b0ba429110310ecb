"""The table of options, walked whole: what is refused says why, what is not refused works."""

import itertools

import numpy as np
import pytest

import gradeq as gq
from gradeq import BadInput
from gradeq.layers.options import TABLE, refusal

STEPS = {"no step": {}, "eta": {"eta": 0.1}, "auto": {"eta": "auto"}, "schedule": {"schedule": gq.Power(0.1, 0.5)}}
DEBIAS_LINKS = {
    "link identity": {}, "link exp": {"link": "exp"}, "link logit": {"outcome": "binary"},
    "link shift": {"outcome": "binary", "link": "shift"},
}  # fmt: skip
QUANTILE_LINKS = {"link sinh": {}, "link linear": {"link": "linear"}}
PENALTIES = {"": {}, "penalty": {"penalty": gq.Ridge(0.01)}, "penalty ": {"penalty": gq.Lasso(0.01)}}
ROWS = {"": {}, "groups": {"groups": ["g"]}, "overlap": {"groups": ["g", "h"]}, "features": {"features": ["x"]}}
LATE = {"": {}, "late": {"in_flight": 5}, "no cap support": {"late_cap": None, "support": (0, 2)}}
KINDS = {
    "debias": gq.Debiaser,
    "quantile": lambda **s: gq.QuantileTracker(0.9, **s),
    "quantiles": lambda **s: gq.MultiQuantileTracker([0.1, 0.9], **s),
    "interval": lambda **s: gq.IntervalTracker(0.8, **s),
}


def walk(kind):
    """Every combination of a kind's options: their names, and the settings that ask for them."""
    links = DEBIAS_LINKS if kind == "debias" else QUANTILE_LINKS
    warm = {"": {}, "warm": {"warm": True}} if kind == "quantile" else {"": {}}
    keyed = {"": {}, "keyed": {"keyed": True}, "pool": {"keyed": True, "pool": True}}
    for parts in itertools.product(*(d.items() for d in (STEPS, links, PENALTIES, ROWS, LATE, warm, keyed))):
        names = {name.strip() for name, _ in parts if name.strip()}
        if "no cap support" in names:
            names |= {"support"}
        if "pool" in names:
            if "late" in names:
                continue
            names |= {"groups"} if "overlap" in names else set()
        settings = {k: v for _, own in parts for k, v in own.items()}
        yield names, settings


def made(kind, settings):
    settings = dict(settings)
    keyed, pool = settings.pop("keyed", False), settings.pop("pool", False)
    layer = KINDS[kind](**settings)
    return gq.Keyed(layer, pool=pool) if keyed else layer


def lives(layer, settings):
    """A few rows by events and by columns, at once and late; saved, and certified."""
    rng = np.random.default_rng(0)
    binary = settings.get("outcome") == "binary"

    def where(i):
        found = {}
        if settings.get("groups"):
            found["groups"] = {name: "ab"[i % 2] for name in settings["groups"]}
        if settings.get("features"):
            found["features"] = {"x": 0.5 + 0.1 * i}
        if settings.get("keyed"):
            found["key"] = i % 2
        return found

    for i in range(6):
        y = float(rng.random() < 0.5) if binary else float(rng.uniform(0.5, 2.0))
        layer.predict(0.5, **where(i), id=i)
        if i % 3:
            layer.update(y, id=i)
    layer.update(1.0, id=0)
    n = 8
    given = {"times": np.arange(n), "label_times": np.arange(n) + 2}
    rows = [where(i) for i in range(n)]
    for what in ("groups", "features"):
        if what in rows[0]:
            given[what] = {k: [row[what][k] for row in rows] for k in rows[0][what]}
    if settings.get("keyed"):
        given["key"] = [row["key"] for row in rows]
    labels = rng.choice([0.0, 1.0], n) if binary else rng.uniform(0.5, 2.0, n)
    layer.run(np.full(n, 0.5), labels, **given)
    result = layer.equilibrium()
    assert result.gap < 1e-9
    assert result.bound is None or abs(result.largest) <= result.bound * (1 + 1e-9)
    again = gq.from_json(layer.to_json())
    assert again.to_json() == layer.to_json()
    again.since(layer), str(result), repr(layer), again.traffic, again.steps


@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_table_is_true(kind):
    refused = worked = 0
    for names, settings in walk(kind):
        reason = refusal(kind, names)
        if reason is not None:
            with pytest.raises(BadInput) as error:
                made(kind, settings)
            first = refusal(kind, names - {"keyed", "pool"})  # of the layer that is to be keyed
            assert str(error.value) in (first, reason)
            refused += 1
        else:
            lives(made(kind, settings), settings)
            worked += 1
    assert refused > 30 and worked > 30


def test_elo_options_are_refused_as_the_table_says():
    steps = {"": {}, "eta": {"eta": 0.1}, "auto": {"eta": "auto"}, "k": {"k": 20.0}}
    schedules = {"": {}, "schedule": {"schedule": gq.Power(0.1, 0.5)}}
    shrink = {"": {}, "penalty": {"penalty": gq.Lasso(0.01)}, "penalty ": {"penalty": gq.Ridge(0.01)}}
    proximal = {"": {}, "proximal": {"proximal": 0.01}}
    rest = {"": {}, "home": {"home_advantage": True}, "drop": {"ties": "drop"}}
    for parts in itertools.product(*(d.items() for d in (steps, schedules, shrink, proximal, rest))):
        names = {name.strip() for name, _ in parts if name.strip()}
        settings = {k: v for _, own in parts for k, v in own.items()}
        # Without a step the forecaster chooses its own.
        reason = refusal("elo", names if names & {"eta", "k", "schedule"} else {*names, "auto"})
        if reason is not None:
            with pytest.raises(BadInput) as error:
                gq.Elo(**settings)
            assert str(error.value) == reason
            continue
        elo = gq.Elo(**settings)
        for score in (1.0, 0.5, 0.0, 1.0):
            elo.play("a", "b", score)
        elo.run(["a", "b"], ["c", "c"], [1.0, 0.0])
        result = elo.equilibrium()
        assert result.gap < 1e-9 and elo.leaderboard()
        assert result.bound is None or abs(result.largest) <= result.bound
        assert gq.from_json(elo.to_json()).to_json() == elo.to_json()


def test_every_reason_is_one_line_with_a_remedy():
    for entries in TABLE.values():
        for entry in entries:
            assert "\n" not in entry.reason and len(entry.reason) < 120 and entry.options
