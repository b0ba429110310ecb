"""Errata about players, ensembles and sets: rows 31, 38, 46, 47, 52.

Each run checks the conditions of the statement that it speaks against, as in :mod:`errata_steps`.
"""

from __future__ import annotations

import numpy as np

from gradeq.engine.learner import Learner
from gradeq.engine.rows import Pairs
from gradeq.experiments.averages import Floats, running_mean
from gradeq.experiments.descent import serve
from gradeq.experiments.erratum import (
    BOUND_LOOK,
    PRINTED_LOOK,
    RUN_LOOK,
    Erratum,
    Hypothesis,
    over_rounds,
)
from gradeq.experiments.sheet import SERIES, Level, Line, Panel, course
from gradeq.geometries import EntropicSimplex, Simplex
from gradeq.links import Sigmoid
from gradeq.losses import Linear, Logistic, Quantile
from gradeq.theory import elo_radius, in_simplex_normal_cone


def unsigned_elo(rounds: int = 4000) -> Erratum:
    """Row 31: seat b always wins and the seats alternate; only the signed bias of a player vanishes."""
    eta = 0.1
    a = np.arange(rounds) % 2
    learner = Learner(Logistic(), eta)
    run = learner.run(learner.start(2), Pairs(a, 1 - a), np.ones(rounds))
    errors = serve(Sigmoid(), np.zeros(rounds), run.served) - 1.0
    signed = np.abs(running_mean(np.where(a == 1, errors, -errors)))
    bound = np.array([elo_radius(2, eta, eta * t) / (eta * t) for t in range(1, rounds + 1)])
    printed = np.abs(running_mean(errors))
    panel = over_rounds(
        "31 bias of a player", "|mean over its games|", (printed, "as printed: claimed → 0", PRINTED_LOOK),
        (signed, "signed by seat", RUN_LOOK), (bound, "bound, signed", BOUND_LOOK),
    )  # fmt: skip
    assumes = (
        Hypothesis("gradient equilibrium", float(signed[-1]) < 1e-3),
        Hypothesis("both players are in every game", bool(np.all(a != 1 - a))),
    )
    return Erratum(
        panel, "sec:pairwise_preference", assumes, printed[-1], 0.0, signed[-1], limit=True
    )


def algorithm_5(reach: float = 1.0) -> Erratum:
    """Row 38: as printed every tracker starts from the ensemble's iterate, and one loses the bound of a tracker.

    The signed error is printed without the tracker's index on one side and with it on the other, so both readings
    are run; the milder one counts.
    """
    level, rates, weight_rate, rounds, b = 0.9, (0.01, 0.5), 0.05, 20_000, 1.0
    labels = np.random.RandomState(11).uniform(-reach, reach, rounds)
    fast = Learner(Quantile(level), rates[1])
    served = fast.run(fast.start(), None, labels).served
    right = np.abs(running_mean((labels <= served) * 1.0) - level)
    own, shared = (
        np.abs(running_mean(_covered(labels, level, rates, weight_rate, each)) - level)
        for each in (True, False)
    )
    t = np.arange(1, rounds + 1)
    printed = (rates[1] + b) / (rates[1] * t)  # cor:quantile_loss_zero_curv from theta_1 = 0
    panel = over_rounds(
        "38 Algorithm 5, its quick tracker", "|coverage − 0.9|", (own, "as printed, σ of each", PRINTED_LOOK),
        (shared, "as printed, σ of the ensemble", PRINTED_LOOK._replace(dash="--")),
        (right, "own iterate, own miss", RUN_LOOK),
        (np.asarray(printed), "bound of a tracker", BOUND_LOOK), floor=1e-4,
    )  # fmt: skip
    assumes = (
        Hypothesis("|yₜ − fₜ| ≤ b = 1", bool(np.abs(labels).max() <= b)),
        Hypothesis("no label ties with a tracker", bool(np.all(labels != served))),
    )
    happens = min(float(own[-1]), float(shared[-1]))
    return Erratum(panel, "alg:quantile-ensembling", assumes, happens, printed[-1], right[-1])


def _covered(
    labels: Floats, level: float, rates: tuple[float, float], weight_rate: float, each: bool
) -> Floats:
    """Which labels the quick tracker of Algorithm 5 as printed covers; ``each`` tracker's miss, or the ensemble's."""
    loss, geometry = Quantile(level), EntropicSimplex()
    theta, w, covered = [0.0, 0.0], [0.5, 0.5], np.empty(len(labels))
    for t, y in enumerate(labels.tolist()):
        mixed = w[0] * theta[0] + w[1] * theta[1]
        covered[t] = y <= theta[1]
        miss = loss.slope(mixed, y)
        dual = [0.0, 0.0]
        geometry.dual(w, dual)
        shifted = [u - weight_rate * x * miss for u, x in zip(dual, theta, strict=True)]
        geometry.primal(shifted, weight_rate, w)
        theta = [
            mixed - nu * (loss.slope(x, y) if each else miss)
            for nu, x in zip(rates, theta, strict=True)
        ]
    return covered


def simplex_cone(corner: tuple[float, float] = (1.0, 0.0)) -> Erratum:
    """Row 46: a vector of the printed normal cone at a corner points into the simplex."""
    share = np.linspace(0.0, 1.0, 60)
    moves = np.column_stack((-share, share))  # from the corner along the edge
    printed, right = np.array([0.0, 1.0]), np.array([1.0, 0.5])
    assert not in_simplex_normal_cone(printed.tolist(), list(corner))
    panel = Panel(
        "46 normal cone of the simplex", "distance along the edge", "v'(z − θ), must be ≤ 0",
        [
            Level(0.0),
            Line(share, moves @ printed, "v = (0, 1), as printed", PRINTED_LOOK),
            Line(share, moves @ right, "v = (1, ½), normal", RUN_LOOK),
        ],
    )  # fmt: skip
    support = [j for j in range(2) if corner[j] > 0.0]
    assumes = (
        Hypothesis("θ lies in the simplex", min(corner) >= 0.0 and sum(corner) == 1.0),
        # u is orthogonal to the directions of the face exactly when it is constant on the support.
        Hypothesis("v is orthogonal to L", len(set(printed[support].tolist())) == 1),
    )
    return Erratum(
        panel, "eq:normal_cone3", assumes, float(moves[-1] @ printed), 0.0, float(moves[-1] @ right)
    )


def simplex_support(off: float = 3.0) -> Erratum:
    """Row 47: on the support the average gradients become equal, not zero. Projected descent on an edge."""
    rounds, eta = 5000, 0.05
    noise = np.random.RandomState(2).uniform(-0.1, 0.1, (rounds, 2)) * np.array([1.0, 2.0])
    learner = Learner(Linear(), eta, geometry=Simplex())
    state = learner.start((0.5, 0.5, 0.0))
    gradients, path = np.empty((rounds, 3)), np.empty((rounds, 3))
    for t in range(rounds):
        path[t] = state.theta
        gradients[t] = (*(state.theta[:2] + 0.5 + noise[t]), off)
        state = learner.descend(state, gradients[t])
    means = running_mean(gradients)
    spread = np.abs(means[:, 0] - means[:, 1])
    panel = Panel(
        "47 gradients on the support", "rounds T", "average gradient",
        [
            *(course(means[:, i], f"weight {i + 1}", SERIES[3 * i], log=True) for i in range(2)),
            course(spread, "their difference", BOUND_LOOK, log=True),
            Level(0.0, "claimed limit", PRINTED_LOOK),
        ],
        x_scale="log",
    )  # fmt: skip
    left = float(np.linalg.norm((state.gradients + state.normals) / rounds))
    assumes = (
        Hypothesis(
            "every θₜ lies inside the edge θ₃ = 0",
            bool(np.all(path[:, 2] == 0.0) and np.all(path[:, :2] > 0.0)),
        ),
        Hypothesis("equilibrium: the average of g + n vanishes", left < 1e-2),
    )
    happens = float(means[-1, :2].min())
    return Erratum(
        panel, "eq:grad_eq_simplex2", assumes, happens, 0.0, float(spread[-1]), limit=True
    )


def cone_test(low: float = -1.0) -> Erratum:
    """Row 52: with liminf the vector 1 passes as normal to the whole line; with limsup it does not."""
    right = np.linspace(0.01, 1.0, 40)
    z = np.concatenate((-right[::-1], right)) if low < 0.0 else right
    ratio: Floats = z / np.abs(z)
    panel = Panel(
        "52 test for a normal vector", "z − θ", "v(z − θ)/|z − θ|, v = 1",
        [
            Line(z[z < 0.0], ratio[z < 0.0], "liminf −1 ≤ 0: passes as printed", PRINTED_LOOK),
            Line(z[z > 0.0], ratio[z > 0.0], "limsup 1 > 0: fails", RUN_LOOK),
            Level(0.0),
        ],
    )  # fmt: skip
    assumes = (
        Hypothesis("lim inf of v(z − θ)/|z − θ| ≤ 0", float(ratio.min()) <= 0.0),
        Hypothesis("θ is inside the set", low < 0.0),
    )
    # With lim sup the one vector that passes on the whole line is 0, whose ratio is 0.
    return Erratum(panel, "eq:normal_cone1", assumes, float(ratio.max()), 0.0, 0.0)
