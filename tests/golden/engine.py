"""The engine underneath and what stands beside layers: learners of every loss and geometry; boards; sweeps; pages."""

import itertools

import gradeq as gq
from golden.lives import attempt, certificate, quiet
from golden.streams import PLAYERS, Chance
from golden.trees import plain

FAMILY = "engine"
LOSSES = {
    "squared": gq.Squared(), "absolute": gq.Absolute(), "quantile": gq.Quantile(0.8), "huber": gq.Huber(1.0),
    "expectile": gq.Expectile(0.7), "logistic": gq.Logistic(), "poisson": gq.Poisson(), "linear": gq.Linear(),
}  # fmt: skip
SCHEDULES = {"constant": gq.Constant(0.05), "power": gq.Power(0.3, 0.5)}
PENALTIES = {"": None, "ridge": gq.Ridge(0.05), "lasso": gq.Lasso(0.05)}


def rows(name, count=40, width=2):
    chance = Chance(name)
    x = [[1.0, *(chance.normal() for _ in range(width - 1))] for _ in range(count)]
    return x, [float(chance.random() < 0.5) for _ in range(count)]


def learner(name, loss, schedule, penalty):
    """Events, then columns, then a bare step of descent."""
    x, y = rows(name)
    own = gq.Learner(loss, schedule, penalty=penalty)
    state, served = own.start([0.0, 0.0]), []
    for row, label in zip(x[:20], y[:20], strict=True):
        state, ticket = own.ticket(state, row)
        served.append(plain(ticket.served))
        state = own.update(state, ticket, label, weight=1.5)
    run = own.run(state, x[20:], y[20:])
    moved = own.descend(run.state, [0.25, -0.5])
    theta = {"theta": plain(run.state.theta), "moved": plain(moved.theta)}
    return {"served": served, "run": plain(run.served), **theta}


def geometry(name, made, lazy):
    x, y = rows(name)
    own = gq.Learner(gq.Squared(), 0.05, geometry=made, lazy=lazy)
    start = [0.5, 0.5] if "simplex" in name else [0.0, 0.0]
    run = own.run(own.start(start), x, y)
    return {"served": plain(run.served), "theta": plain(run.state.theta)}


def games(name, count=400):
    chance, found = Chance(name), []
    for _ in range(count):
        a, b = chance.pick(PLAYERS), chance.pick(PLAYERS)
        if a != b:
            lead = (PLAYERS.index(b) - PLAYERS.index(a)) / 8.0
            score = 1.0 if chance.random() < 0.5 + lead else chance.pick([0.0, 0.0, 0.5])
            found.append((a, b, score, chance.pick([1.0, 0.0])))
    return [list(column) for column in zip(*found, strict=True)]


def board(name, view, times, home):
    """A leaderboard of many games, by columns."""
    a, b, score, at_home = games(name)
    layer = gq.Elo(home_advantage=home)
    given = {"times": [float(k // 4) for k in range(len(a))]} if times else {}
    given |= {"home": at_home} if home else {}
    run = layer.run(a, b, score, **given)
    return {
        "served": plain(run.served),
        "leaderboard": attempt(lambda: layer.leaderboard(view)),
        "connected": attempt(layer.connected),
        "drift": attempt(layer.drift),
        "home": attempt(lambda: layer.board(view).home),
        "certificate": certificate(layer),
    }


def sweep(name, layer):
    chance = Chance(name)
    f = [chance.random() for _ in range(60)]
    y = [float(chance.random() < 0.6) for _ in range(60)]
    return plain(layer.sweep([0.01, 0.1, 0.5], f, y))


def elo_sweep(name):
    a, b, score, _ = games(name, 120)
    return plain(gq.Elo.sweep([0.02, 0.2], a, b, score))


def report_page(name, layer, tmp):
    """The page of a layer of the library."""
    from golden.pages import page

    chance = Chance(name)
    f = [chance.random() for _ in range(150)]
    y = [float(chance.random() < 0.3 + 0.5 * own) for own in f]
    run = layer.run(f, y, groups={"g": [chance.pick("abc") for _ in f]})
    layer.report(tmp / "page.html", run)
    return page((tmp / "page.html").read_text(encoding="utf-8"))


def of_page(layer):
    import tempfile
    from pathlib import Path

    def made(name):
        with tempfile.TemporaryDirectory() as folder:
            return report_page(name, layer(), Path(folder))

    return made


def every():
    for loss, schedule, penalty in itertools.product(LOSSES, SCHEDULES, PENALTIES):
        parts = (LOSSES[loss], SCHEDULES[schedule], PENALTIES[penalty])
        name = " ".join(["learner", loss, schedule, penalty]).strip()
        yield name, lambda n, parts=parts: learner(n, *parts)
    own = gq.geometries
    shapes = {
        "euclidean": own.Euclidean(), "simplex": own.Simplex(), "isotonic": own.Isotonic(), "ball": own.Ball(0.3),
        "box": own.Box(-0.1, 0.4), "entropic simplex": own.EntropicSimplex(0.05), "non-negative": own.NonNegative(),
        "shrink": own.Shrink(0.1), "soft threshold": own.SoftThreshold(0.1),
        "affine": own.Affine(((1.0, 1.0),), (0.5,)),
    }  # fmt: skip
    for (shape, made), lazy in itertools.product(shapes.items(), (False, True)):
        name = f"geometry {shape}" + (" lazy" if lazy else "")
        yield name, lambda n, made=made, lazy=lazy: geometry(n, made, lazy)
    for view, times, home in itertools.product(("auto", "all-time", "now"), (False, True), (False, True)):
        name = f"board {view}" + (" times" if times else "") + (" home" if home else "")
        yield name, lambda n, view=view, times=times, home=home: board(n, view, times, home)
    yield "sweep debias", lambda n: sweep(n, gq.Debiaser(0.1))
    yield "sweep binary", lambda n: sweep(n, gq.Debiaser(0.1, outcome="binary"))
    yield "sweep quantile", lambda n: sweep(n, gq.QuantileTracker(0.8, 0.1))
    yield "sweep elo", elo_sweep
    yield "page debias", of_page(lambda: gq.Debiaser(outcome="binary", groups=["g"]))
    yield "page interval", of_page(lambda: gq.IntervalTracker(0.8, 0.1, groups=["g"]))


def cases():
    return {FAMILY: dict(every())}


def trees(family, names):
    found = cases()[family]
    with quiet():
        for name in names:
            yield name, attempt(lambda name=name: found[name](name))
