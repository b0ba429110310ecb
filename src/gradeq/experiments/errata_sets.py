"""Errata about players, groups, ensembles and sets: rows 31, 36, 38, 39, 46, 47, 48, 52."""

from __future__ import annotations

import numpy as np

from gradeq.engine.learner import Learner
from gradeq.engine.rows import Pairs
from gradeq.experiments.averages import Floats, running_mean
from gradeq.experiments.bounds_many import ensemble, floored
from gradeq.experiments.descent import debias_probabilities, serve
from gradeq.experiments.erratum import (
    BOUND_LOOK,
    PRINTED_LOOK,
    RUN_LOOK,
    Erratum,
    over_rounds,
)
from gradeq.experiments.sheet import SERIES, Level, Line, Panel, course
from gradeq.experiments.trials import Trial
from gradeq.geometries import EntropicSimplex
from gradeq.links import Shift, Sigmoid
from gradeq.losses import Logistic, Quantile, Squared
from gradeq.theory import elo_radius, in_simplex_normal_cone, quantile_coverage_gap


def unsigned_elo() -> Erratum:
    """Row 31: seat b always wins and the seats alternate; only the signed bias of a player vanishes."""
    eta, rounds = 0.1, 4000
    a = np.arange(rounds) % 2
    learner = Learner(Logistic(), eta)
    run = learner.run(learner.start(2), Pairs(a, 1 - a), np.ones(rounds))
    errors = serve(Sigmoid(), np.zeros(rounds), run.served) - 1.0
    signed = np.abs(running_mean(np.where(a == 1, errors, -errors)))
    bound = np.array([elo_radius(2, eta, eta * t) / (eta * t) for t in range(1, rounds + 1)])
    printed = np.abs(running_mean(errors))
    panel = over_rounds(
        "31 bias of a player", "|mean over its games|", (printed, "as printed", PRINTED_LOOK),
        (signed, "signed by seat", RUN_LOOK), (bound, "bound, signed", BOUND_LOOK),
    )  # fmt: skip
    return Erratum(panel, printed[-1], bound[-1], signed[-1])


def algorithm_4() -> Erratum:
    """Row 36: e^theta read coordinate by coordinate leaves bias in groups that overlap; e^{z'theta} does not."""
    rounds, eta, p = 20_000, 0.05, 0.4
    random = np.random.RandomState(3)
    rows = np.array([(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)])[random.randint(0, 3, rounds)]
    y = (random.uniform(size=rounds) < 0.3 + rows @ np.array([0.2, 0.3])).astype(float)
    right = debias_probabilities(np.full(rounds, p), y, eta, rows).errors
    theta, wrong = np.zeros(2), np.empty(rounds)
    link = Shift()
    for t in range(rounds):
        z = rows[t]
        wrong[t] = link.serve(p, float(z @ theta)) - y[t]
        own = np.array([link.serve(p, u) for u in theta.tolist()])
        theta = theta - eta * z * (own - y[t])
    member = rows[:, 0] > 0
    printed, mended = (np.abs(running_mean(errors[member])) for errors in (wrong, right))
    panel = over_rounds(
        "36 Algorithm 4, overlapping groups", "|bias| of group 1",
        (printed, "exp(θ), as printed", PRINTED_LOOK), (mended, "exp(z'θ)", RUN_LOOK),
        scale="linear",
    )  # fmt: skip
    return Erratum(panel, printed[-1], 0.0, mended[-1])


def algorithm_5() -> Erratum:
    """Row 38: as printed every tracker starts from the ensemble's iterate, and the slow one loses its bound."""
    level, rates, weight_rate, rounds = 0.9, (0.01, 0.5), 0.05, 20_000
    labels = np.random.RandomState(11).uniform(-1.0, 1.0, rounds)
    slow = Learner(Quantile(level), rates[0])
    served = slow.run(slow.start(), None, labels).served
    right = np.abs(running_mean((labels <= served) * 1.0) - level)
    geometry = EntropicSimplex()
    theta, w, covered = [0.0, 0.0], [0.5, 0.5], np.empty(rounds)
    for t, y in enumerate(labels.tolist()):
        mixed = w[0] * theta[0] + w[1] * theta[1]
        covered[t] = y <= theta[0]
        miss = Quantile(level).slope(mixed, y)
        dual = [0.0, 0.0]
        geometry.dual(w, dual)
        shifted = [u - weight_rate * x * miss for u, x in zip(dual, theta, strict=True)]
        geometry.primal(shifted, weight_rate, w)
        theta = [
            mixed - nu * Quantile(level).slope(x, y) for nu, x in zip(rates, theta, strict=True)
        ]
    bound = [
        quantile_coverage_gap(0.0, -1.0, 1.0, level, rates[0], t) for t in range(1, rounds + 1)
    ]
    wrong = np.abs(running_mean(covered) - level)
    panel = over_rounds(
        "38 Algorithm 5, its slow tracker", "|coverage − 0.9|", (wrong, "as printed", PRINTED_LOOK),
        (right, "own iterate, own miss", RUN_LOOK),
        (np.array(bound), "bound of a tracker", BOUND_LOOK), floor=1e-3,
    )  # fmt: skip
    return Erratum(panel, wrong[-1], bound[-1], right[-1])


def simplex_coverage() -> Erratum:
    """Row 39: equilibrium on the simplex is no coverage; one final tracker gives it (the run of result 7.5)."""
    trial = ensemble()
    return _from_trial("39 coverage of the ensemble", trial, "with final tracker")


def simplex_cone() -> Erratum:
    """Row 46: a vector of the printed normal cone at a corner points into the simplex."""
    corner = [1.0, 0.0]
    share = np.linspace(0.0, 1.0, 60)
    moves = np.column_stack((-share, share))  # from the corner along the edge
    printed, right = np.array([0.0, 1.0]), np.array([1.0, 0.5])
    assert not in_simplex_normal_cone(printed.tolist(), corner)
    assert in_simplex_normal_cone(right.tolist(), corner)
    panel = Panel(
        "46 normal cone of the simplex", "distance along the edge", "v'(z − θ), must be ≤ 0",
        [
            Level(0.0),
            Line(share, moves @ printed, "v = (0, 1), as printed", PRINTED_LOOK),
            Line(share, moves @ right, "v = (1, ½), normal", RUN_LOOK),
        ],
    )  # fmt: skip
    return Erratum(panel, float(moves[-1] @ printed), 0.0, float(moves[-1] @ right))


def simplex_support() -> Erratum:
    """Row 47: on the support the average gradients become equal, not zero."""
    rounds, eta = 5000, 0.05
    random = np.random.RandomState(2)
    learner = Learner(Squared(), eta, geometry=EntropicSimplex())
    state, gradients = learner.start(3), np.empty((rounds, 3))
    for t in range(rounds):
        g = 1.0 + state.theta - 1 / 3 + random.uniform(-0.1, 0.1, 3) * np.array([1.0, 2.0, 3.0])
        gradients[t] = g
        state = learner.descend(state, g)
    means = running_mean(gradients)
    spread = means.max(axis=1) - means.min(axis=1)
    panel = Panel(
        "47 gradients on the support", "rounds T", "average gradient",
        [
            *(course(means[:, i], f"weight {i + 1}", SERIES[i], log=True) for i in range(3)),
            course(spread, "largest difference", BOUND_LOOK, log=True),
            Level(0.0, "claimed limit", PRINTED_LOOK),
        ],
        x_scale="log",
    )  # fmt: skip
    return Erratum(panel, float(means[-1].min()), 0.0, float(spread[-1]))


def no_floor() -> Erratum:
    """Row 48: entropy is unbounded on the simplex; exponentiated gradient needs a floor (the run of result 7.3)."""
    return _from_trial("48 exponentiated gradient", floored(), "floor 0.01")


def cone_test() -> Erratum:
    """Row 52: with liminf the vector 1 passes as normal to the whole line; with limsup it does not."""
    z = np.concatenate((np.linspace(-1.0, -0.01, 40), np.linspace(0.01, 1.0, 40)))
    ratio: Floats = z / np.abs(z)
    panel = Panel(
        "52 test for a normal vector", "z − θ", "v(z − θ)/|z − θ|, v = 1",
        [
            Line(z[:40], ratio[:40], "liminf −1 ≤ 0: passes as printed", PRINTED_LOOK),
            Line(z[40:], ratio[40:], "limsup 1 > 0: fails", RUN_LOOK),
            Level(0.0),
        ],
    )  # fmt: skip
    return Erratum(panel, float(ratio.max()), float(ratio.min()), 0.0)


def _from_trial(title: str, trial: Trial, mended: str) -> Erratum:
    (alone,) = trial.more
    panel = Panel(
        title, "rounds T", trial.axis,
        [
            Line(trial.at, alone.y, alone.label, PRINTED_LOOK),
            Line(trial.at, trial.drawn, mended, RUN_LOOK),
            Line(trial.at, trial.bound, "bound", BOUND_LOOK),
        ],
        "log", "log",
    )  # fmt: skip
    return Erratum(panel, float(alone.y[-1]), 0.0, float(trial.run[-1]))
