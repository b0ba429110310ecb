"""Every leaf of the states of layers that were really used, altered: ``python -m states.every_leaf SEED COUNT LIFE``.

The states here hold all that a state can: late, waiting, held-back, corrected and expired labels, several
continuations, weights, falling steps, a log, runs of the command line. Each leaf takes each hostile value; COUNT of
these alterations are tried, drawn by the seed (0: all).
"""

import contextlib
import json
import os
import random
import sys
import tempfile
import warnings

import numpy as np

import gradeq as gq
from gradeq.cli.audit import state_findings, state_lines
from gradeq.errors import GradeqError, StateError
from states.hostile import text_of

HOSTILE = (
    None, "", "x", [], {}, [1], True, -1, 0, 1, 2.5, 1e-320, 1e30, 1e308, -1e308, 10**400,
    "dropped", "longer", "shorter",
    {"$float": "nan"}, {"$float": "inf"}, {"$float": "-inf"}, {"$array": "d", "values": []},
    {"$part": "Constant", "eta": 0.1},
)  # fmt: skip
N = 60


def columns():
    rng = np.random.default_rng(4)
    f = rng.normal(100.0, 10.0, N)
    p = rng.uniform(0.1, 0.9, N)
    g, h = rng.choice(list("abc"), N).tolist(), rng.choice(list("xy"), N).tolist()
    return f, f + rng.normal(size=N), p, (rng.random(N) < p) * 1.0, g, h, rng.uniform(0.5, 2.0, N)


F, Y, P, B, G, H, W = columns()
ONE, TWO = [f"p{k % 5}" for k in range(N)], [f"p{(k % 5 + 1 + k % 4) % 5}" for k in range(N)]
TIMES = np.arange(N) * 1.0
FALLING = gq.Power(0.1, 0.5)


def events(layer, where, base=F, labels=Y, served=16, labelled=12, first=0):
    """Events with ids, some late, some without a label, one corrected; then a copy that goes on."""
    for k in range(served):
        layer.predict(*([] if base is None else [base[k]]), **where(k), id=first + k)
        if k >= 2 and k - 2 < labelled:
            layer.update(labels[k - 2], id=first + k - 2)
    layer.correct(first + 2, labels[5])
    return gq.from_json(layer.to_json()) if layer.kind != "risk" else layer


def falling():
    layer = gq.Debiaser(schedule=FALLING, groups=["g"])
    layer.run(F, Y, groups={"g": G})
    return layer


def mature():
    layer = gq.Debiaser(maturity=20.0, missing_is=0)
    layer.run(F, Y, times=TIMES, ids=list(range(N)), label_times=TIMES + 5.0)
    layer.predict(1.0, id="a", time=60.0)
    layer.predict(1.0, id="b", time=60.0)
    layer.update(2.0, id="b")
    return layer


def auto():
    layer = events(gq.Debiaser(groups=["g"]), lambda k: {"groups": {"g": G[k]}})
    layer.post(layer.open(1.0, groups={"g": "a"}), 2.0)
    return layer


def overlapping():
    layer = gq.Debiaser(0.1, groups=["g", "h"], features=["x"], penalty=gq.Ridge(0.01))
    return events(layer, lambda k: {"groups": {"g": G[k], "h": H[k]}, "features": {"x": P[k]}, "weight": W[k]})


def binary():
    layer = gq.Debiaser(outcome="binary", groups=["g", "h"])
    layer.run(P, B, weights=W, groups={"g": G, "h": H})
    return events(layer, lambda k: {"groups": {"g": G[k], "h": H[k]}}, P, B)


def frozen():
    layer = gq.Debiaser(0.2, queue=True)
    layer.predict(1.0)
    layer.predict(2.0)
    layer.update(1.5)
    layer.set_step(0.1)
    layer.freeze()
    layer.predict(1.0)
    layer.update(1.5)
    return layer


def quantile():
    layer = gq.QuantileTracker(0.9, groups=["g"])
    layer.run(F, Y, groups={"g": G}, ids=list(range(100, 100 + N)))
    return events(layer, lambda k: {"groups": {"g": G[k]}})


def interval():
    layer = gq.IntervalTracker(0.8, 0.3, groups=["g"], support=(0, None))
    both = np.stack([F - 5.0, F + 5.0], axis=1)
    layer.run(both, Y, groups={"g": G})
    return events(layer, lambda k: {"groups": {"g": G[k]}}, both.tolist())


def ensemble():
    layer = gq.QuantileEnsemble(0.9, [0.1, 1.0], 0.01)
    layer.run(F, Y)
    return events(layer, lambda k: {})


def pooled():
    layer = gq.Keyed(gq.QuantileTracker(0.9), pool=True)
    layer.run(F, Y, key=G)
    for k in range(4):
        layer.predict(F[k], key=G[k])
    return layer


def keyed():
    layer = gq.Keyed(gq.Debiaser(0.1, groups=["h"], ttl=9.0))
    layer.run(F, Y, key=G, groups={"h": H}, times=TIMES, label_times=TIMES + 3.0, ids=list(range(N)))
    return events(layer, lambda k: {"key": G[k], "groups": {"h": H[k]}, "time": 60.0 + k / 4}, first=N, labelled=5)


def held():
    """Labels that are held back, since their delay depends on their value."""
    layer = gq.Debiaser(outcome="binary")
    y = (np.random.default_rng(2).random(400) < 0.3) * 1.0
    for k in range(400):
        layer.predict(0.3, id=k)
        if k >= 2 and y[k - 2]:
            layer.update(1.0, id=k - 2)
    assert layer.internals.tickets.early.since is not None
    book = layer.internals.tickets
    for k in range(8, 400):
        book.drop(k)
    return layer


def elo():
    layer = gq.Elo()
    layer.run(ONE, TWO, B, weights=W)
    layer.predict("p1", "new", id=1)
    layer.predict("p1", "p2", id=2)
    layer.update(1.0, id=2)
    layer.correct(2, 0.0)
    return gq.from_json(layer.to_json())


def elo_home():
    layer = gq.Elo(0.1, home_advantage=True, dates=False)
    layer.run(ONE, TWO, B)
    layer.predict("x", "y", id=1)
    return layer


def elo_dates():
    layer = gq.Elo(0.1, penalty=gq.Ridge(0.05), dates=True)
    layer.run(ONE, TWO, B, times=np.array("2020-01-01", "datetime64[D]") + np.arange(N))
    return layer


def commands():
    """A state of the command line, with its runs."""
    layer = gq.Debiaser(0.1, groups=["g"])
    layer.run(F, Y, groups={"g": G})
    layer.internals.tickets.desk.update(
        runs=[[1, "c", 60, [["out.csv", "m"]]], [2, "d", 1, []]],
        times={"kind": "numbers", "row": 1.0, "label": 2.0},
        columns={"--key": None, "--groups": ["g"], "--id": "id"},
        waiting="rows",
    )
    return layer


LIVES = {
    "falling": falling, "mature": mature, "auto": auto, "overlapping": overlapping, "binary": binary,
    "frozen": frozen, "quantile": quantile, "interval": interval, "ensemble": ensemble, "pooled": pooled,
    "keyed": keyed, "held": held, "elo": elo, "elo home": elo_home, "elo dates": elo_dates, "commands": commands,
}  # fmt: skip


def leaves(node, path=()):
    """Every place: a value, a list, a dictionary; of a long list the first few."""
    if path:
        yield path
    if isinstance(node, dict):
        for key in node:
            yield from leaves(node[key], (*path, key))
    elif isinstance(node, list):
        for k in range(min(len(node), 24)):
            yield from leaves(node[k], (*path, k))


def altered(body, chosen):
    """The alterations that are ``chosen``, one after the other in the one body, with what was done."""
    for path, new in chosen:
        *way, last = path
        node = body
        for step in way:
            node = node[step]
        old = node[last]
        if new == "dropped":
            del node[last]
        elif new in ("longer", "shorter") and isinstance(new, str):
            if not isinstance(old, (list, str)):
                continue
            node[last] = old + old[-1:] if new == "longer" else old[:-1]
        else:
            node[last] = new
        yield path, new
        if new == "dropped" and isinstance(node, list):
            node.insert(last, old)
        else:
            node[last] = old


def first_row(name, layer):
    """A row as the layer takes it: arguments, and options."""
    if name.startswith("elo"):
        return ("p1", "p2"), {}
    options = {}
    groups = getattr(layer.pattern, "groups", ())
    if groups:
        options["groups"] = {g: {"g": "a", "h": "x"}[g] for g in groups}
    if name == "overlapping":
        options["features"] = {"x": 0.5}
    if name in ("keyed", "pooled"):
        options["key"] = "a"
    if name in ("mature", "keyed"):
        options["time"] = 1e3
    return ([90.0, 110.0] if name == "interval" else 0.4,), options


def verbs(name, layer):
    """All that a layer is asked for."""
    args, where = first_row(name, layer)
    games, label = name.startswith("elo"), 1.0
    many = {}
    for key, own in where.items():
        many[key] = {name: [value] * 3 for name, value in own.items()} if isinstance(own, dict) else [own] * 3
    if "time" in many:
        many["times"] = many.pop("time")
    own = {"key": where["key"]} if "key" in where else {}
    yield lambda: (str(layer), repr(layer), layer.theta, layer.traffic, layer.in_flight)
    yield lambda: (layer.ids, layer.log, layer.steps)
    yield lambda: str(layer.equilibrium())
    yield lambda: layer.to_json()
    yield lambda: on_disk(layer)
    if games:
        yield lambda: layer.leaderboard()
    if own:
        yield lambda: layer.table()
    yield lambda: layer.peek(*args, **where)
    yield lambda: layer.predict(*args, **where, id="new")
    yield lambda: layer.update(label, id="new")
    yield lambda: layer.correct("new", 0.0)
    yield lambda: layer.predict(*args, **where)
    yield lambda: layer.update(label, **own)
    for id in (1, 3, 13, 15, "a", "b", 55):
        yield lambda id=id: layer.update(label, id=id)
        yield lambda id=id: layer.correct(id, 0.0)
    yield lambda: layer.predict(*args, **where, weight=2.0, id="heavy")
    yield lambda: layer.update(label, id="heavy")
    yield lambda: layer.post(layer.open(*args, **{k: v for k, v in where.items() if k != "time"}), label)
    yield lambda: layer.run(*([a] * 3 for a in args), [label] * 3, **many)
    yield lambda: layer.run(*([a] * 3 for a in args), [label] * 3, **many, weights=[1.0, 2.0, 3.0])
    yield lambda: layer.expire(1e9)
    yield lambda: layer.advance(1e9)
    yield lambda: layer.since(gq.from_json(layer.to_json()))
    yield lambda: layer.copy().merge(layer)
    yield lambda: layer.merge(LIVES[name]())
    yield lambda: LIVES[name]().merge(layer)
    yield lambda: layer.skip()
    yield lambda: layer.freeze()
    yield lambda: layer.reset_in_flight()
    yield lambda: str(layer.equilibrium())
    if games:
        yield lambda: layer.leaderboard()
    yield lambda: gq.from_json(layer.to_json())


def on_disk(layer):
    """The page of a layer, and what ``gradeq audit`` prints of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.json")
        layer.save(path)
        with contextlib.suppress(GradeqError):
            layer.report(os.path.join(folder, "page.html"))
        state_lines(state_findings(path))


def tried_verbs(name, layer, done):
    """Print the first verb that fails by a fault of our own."""
    for k, verb in enumerate(verbs(name, layer)):
        try:
            with contextlib.suppress(GradeqError):
                verb()
        except Exception as error:
            what = " ".join(str(error).split())[:100]
            print("FAULT", name, str(done)[:200], f"verb {k}", type(error).__name__, what, flush=True)
            return


def main(seed, count, name):
    """A line for each fault of our own, then how many were tried and how many refused when they were loaded."""
    warnings.simplefilter("ignore")
    body = json.loads(LIVES[name]().to_json())
    del body["sha256"]
    every = [((part, *path), new) for part in ("settings", "state") for path in leaves(body[part]) for new in HOSTILE]
    tried_verbs(name, LIVES[name](), "as it was")
    rng = random.Random(f"{name} {seed}")
    chosen = rng.sample(every, min(count, len(every))) if count else every
    tried = refused = 0
    for done in altered(body, chosen):
        tried += 1
        try:
            text = text_of(body)
        except ValueError:  # no JSON
            continue
        try:
            layer = gq.from_json(text)
        except StateError:
            refused += 1
            continue
        except Exception as error:
            print("FAULT", name, str(done)[:200], "load", type(error).__name__, str(error)[:100], flush=True)
            continue
        tried_verbs(name, layer, done)
    print("done", name, len(every), tried, refused, flush=True)


if __name__ == "__main__":
    for one in sys.argv[3:] or LIVES:
        main(sys.argv[1], int(sys.argv[2]), one)
