"""The bounds beyond the paper: late and missing labels, moving ranges, intervals, Elo, levels (result 8)."""

from __future__ import annotations

import math

import numpy as np

from gradeq.engine.learner import Learner
from gradeq.experiments.averages import Floats, running_mean
from gradeq.experiments.elo_growth import ETA as ELO_ETA
from gradeq.experiments.elo_growth import ladder
from gradeq.experiments.experiment import Experiment, Result
from gradeq.experiments.sheet import BEFORE, Line
from gradeq.experiments.source import Source
from gradeq.experiments.trials import (
    Trial,
    averages,
    descend,
    horizons,
    ratios,
    sheet,
    summary,
)
from gradeq.geometries import NonNegative
from gradeq.layers.quantile import MultiQuantileTracker
from gradeq.ledger.values import Ticket
from gradeq.losses import Quantile, Squared
from gradeq.theory import (
    elo_radius,
    isotonic_ranges,
    late_quantile_range,
    late_squared_radius,
    lazy_growth,
    observed_average,
    quantile_coverage_gap,
    squared_radius,
    two_sided_shortfall,
    varying_range,
)

ETA, ROUNDS = 0.1, 3000
LEVEL = 0.9


def run(source: Source) -> Result:
    """Each adversary uses what the extension allows it: delay, silence, a wider range."""
    trials = (
        late_quantile(),
        late_squared(),
        missing(),
        widening(),
        two_sided(),
        elo(),
        levels(),
        lazy(),
    )
    return Result(summary(trials), ratios(trials), {"": sheet(trials)})


def late_quantile() -> Trial:
    """Result 8.1: every label is 1 and comes 20 rounds late, so that theta overshoots by what is open."""
    delay = 20
    learner = Learner(Quantile(LEVEL), ETA)
    state, waiting, path = learner.start(), list[Ticket](), []
    for _ in range(ROUNDS):
        state, ticket = learner.ticket(state)
        waiting.append(ticket)
        if len(waiting) > delay:
            state = learner.update(state, waiting.pop(0), 1.0)
            path.append(abs(float(state.gradients[0])) / state.n)
    at = horizons(len(path))
    where = late_quantile_range(0.0, -1.0, 1.0, LEVEL, (delay + 1) * ETA)
    bound = where.radius(0.0) / (ETA * at)
    return Trial("8.1 late labels, quantile", at, np.array(path)[at - 1], bound, "|coverage − 0.9|")


def late_squared() -> Trial:
    """Results 8.1 and A1: five tickets are held back while the others flow, then released together."""
    held, b = 5, 1.0
    learner = Learner(Squared(), ETA)
    state, path, sign = learner.start(), list[float](), 1.0
    while len(path) < ROUNDS:
        waiting = []
        for _ in range(held):
            state, ticket = learner.ticket(state)
            waiting.append(ticket)
        for _ in range(80):
            state, ticket = learner.ticket(state)
            state = learner.update(state, ticket, sign * b)
            path.append(abs(float(state.gradients[0])) / state.n)
        for ticket in waiting:  # served when theta was on the other side
            state = learner.update(state, ticket, sign * b)
            path.append(abs(float(state.gradients[0])) / state.n)
        sign = -sign
    at = horizons(ROUNDS)
    radius = late_squared_radius(0.0, b, (held + 1) * ETA, held * ETA)
    return Trial("8.1 late labels, squared", at, np.array(path)[at - 1], radius / (ETA * at))


def missing() -> Trial:
    """Result 8.2: labels of 1 are seen, labels of -1 are not: the promise is about what was seen."""
    seen = np.arange(ROUNDS) % 2 == 0
    labels = np.where(seen, 1.0, -1.0)
    learner = Learner(Squared(), ETA)
    served = learner.run(learner.start(), None, np.where(seen, labels, np.nan)).served
    at = horizons(int(seen.sum()))
    run = np.abs(running_mean((served - labels)[seen]))[at - 1]
    all_rows = np.abs(running_mean(served - labels))[2 * at - 1]
    bound = [observed_average(0.0, squared_radius(0.0, 1.0, ETA), ETA, n) for n in at.tolist()]
    return Trial(
        "8.2 missing labels", at, run, np.array(bound), "|bias|, labels seen",
        (Line(at, all_rows, "all rows", BEFORE),),
    )  # fmt: skip


def widening() -> Trial:
    """Result 8.3: the range of labels grows like sqrt(t)."""
    t = np.arange(1, ROUNDS + 1)
    reach = np.sqrt(t) / 10.0
    learner = Learner(Quantile(LEVEL), ETA)
    states = descend(learner, learner.start(), lambda u, k: (None, float(reach[k - 1])), ROUNDS)
    at = horizons(ROUNDS)
    lows, highs, etas = (-reach).tolist(), reach.tolist(), [ETA] * ROUNDS
    ends = [varying_range(0.0, lows[:n], highs[:n], LEVEL, etas[:n]) for n in at.tolist()]
    bound = np.array([end.radius(0.0) for end in ends]) / (ETA * at)
    return Trial("8.3 widening range", at, averages(states), bound, "|coverage − 0.9|")


def two_sided() -> Trial:
    """Result 8.4: an interval of two trackers; labels first high, then low, so that both ends run late."""
    level = 0.95
    labels = np.where(np.arange(ROUNDS) < 12, 1.0, -1.0)
    learner = Learner(Quantile(level), ETA)
    upper = learner.run(learner.start(), None, labels).served
    lower = -learner.run(learner.start(), None, -labels).served
    covered = (lower <= labels) & (labels <= upper)
    at = horizons(ROUNDS)
    short = np.maximum(0.0, 2 * level - 1.0 - running_mean(covered.astype(float)))[at - 1]
    gaps = [quantile_coverage_gap(0.0, -1.0, 1.0, level, ETA, n) for n in at.tolist()]
    bound = np.array([two_sided_shortfall(gap, gap) for gap in gaps])
    return Trial("8.4 two-sided interval", at, short, bound, "0.9 − coverage")


def elo() -> Trial:
    """Result 8.5: a ladder of four players."""
    players, rounds = 4, 20_000
    at = horizons(rounds - 1)
    tops = ladder(players, rounds)[at]
    bound = [elo_radius(players, ELO_ETA, ELO_ETA * t) / (ELO_ETA * t) for t in at.tolist()]
    return Trial("8.5 Elo, four players", at, tops / (ELO_ETA * at), np.array(bound))


def levels() -> Trial:
    """Result 8.6: three levels that never cross; the worst of them."""
    wanted = (0.1, 0.5, 0.9)
    labels = np.ones(ROUNDS)
    tracker = MultiQuantileTracker(wanted, ETA, link="linear")
    served = np.asarray(tracker.run(np.zeros(ROUNDS), labels).served)
    covered = (labels[:, None] <= served).astype(float)
    at = horizons(ROUNDS)
    gaps: Floats = np.abs(running_mean(covered) - np.array(wanted))[at - 1]
    ranges = isotonic_ranges(wanted, [-1.0] * 3, [1.0] * 3, [0.0] * 2, ETA)
    bounds = np.array([where.radius(0.0) for where in ranges]) / ETA
    worst = int((gaps / bounds).max(axis=0).argmax())
    bound = bounds[worst] / at
    title = f"8.6 three levels, τ = {wanted[worst]:g}"
    return Trial(title, at, gaps[:, worst], bound, "|coverage − τ|")


def lazy() -> Trial:
    """Result 8.7: the plain sum of steps, projected onto what is >= 0 when it is served; labels of either sign."""
    at = horizons(ROUNDS)
    learner = Learner(Quantile(0.5), ETA, geometry=NonNegative(), lazy=True)
    states = descend(learner, learner.start(), lambda u, t: (None, 1.0), ROUNDS)
    growth = [lazy_growth(0.5, 0.0, 0.5, ETA, t) for t in at.tolist()]
    bound = np.array([math.sqrt(g) for g in growth]) / (ETA * at)
    return Trial("8.7 lazy projection", at, averages(states), bound, "|coverage − 1/2|")


EXPERIMENT = Experiment(
    name="bounds-more",
    title="Bounds for late and missing labels, intervals, Elo and levels",
    figure="result 8",
    chapter="theory",
    needs=(),
    shows="The same question for what the paper does not treat: late labels, missing ones, ranges that widen, "
    "intervals, ratings, several levels at once.",
    corrected="With missing labels nothing is promised about the rows without one: the grey line.",
    run=run,
    labels="bounds",
)
