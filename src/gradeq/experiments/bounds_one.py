"""The bounds for one parameter and for disjoint groups against their worst labels (results 3 and 4)."""

from __future__ import annotations

import math

import numpy as np

from gradeq.engine.learner import Learner
from gradeq.experiments.averages import Floats
from gradeq.experiments.experiment import Experiment, Result
from gradeq.experiments.sheet import PRINTED, Line
from gradeq.experiments.source import Source
from gradeq.experiments.trials import (
    Trial,
    averages,
    constant,
    descend,
    horizons,
    ratios,
    sheet,
    summary,
)
from gradeq.losses import Logistic, Poisson, Quantile, Squared
from gradeq.schedules import Power
from gradeq.theory import (
    average_from_radius,
    average_with_power_steps,
    exponential_range,
    logistic_hard_radius,
    logistic_soft_radius,
    quantile_coverage_gap,
    squared_bias_printed,
    squared_radius,
)

ETA, ROUNDS = 0.1, 3000


def run(source: Source) -> Result:
    """Labels at the end of their range push theta to the edge of its own."""
    trials = (
        quantile(),
        squared(),
        overshooting(),
        decaying(),
        soft_labels(),
        hard_labels(),
        poisson(),
        groups(),
    )
    return Result(summary(trials), ratios(trials), {"": sheet(trials)})


def quantile() -> Trial:
    """Result 3.1: labels in [-1, 1], all of them 1."""
    level, at = 0.9, horizons(ROUNDS)
    learner = Learner(Quantile(level), ETA)
    states = descend(learner, learner.start(), constant(1.0), ROUNDS)
    bound = [quantile_coverage_gap(0.0, -1.0, 1.0, level, ETA, t) for t in at.tolist()]
    return Trial("3.1 quantile", at, averages(states), np.array(bound), "|coverage − 0.9|")


def squared() -> Trial:
    """Result 3.2 below step 1, with the bound that the paper prints (delta = 1/2) beside it."""
    at = horizons(ROUNDS)
    learner = Learner(Squared(), ETA)
    states = descend(learner, learner.start(), constant(1.0), ROUNDS)
    printed = np.array([squared_bias_printed(0.0, 1.0, 0.5, ETA, t) for t in at.tolist()])
    return Trial(
        "3.2 squared error", at, averages(states), _from_radius(at, squared_radius(0.0, 1.0, ETA)),
        more=(Line(at, printed, "printed, δ = 1/2", PRINTED),),
    )  # fmt: skip


def overshooting() -> Trial:
    """Result 3.2 between 1 and 2: theta jumps from side to side, the labels with it."""
    eta, rounds = 1.5, 300
    at = horizons(rounds)
    learner = Learner(Squared(), eta)
    states = descend(
        learner, learner.start(), lambda u, t: (None, 1.0 if u[0] <= 0.0 else -1.0), rounds
    )
    bound = _from_radius(at, squared_radius(0.0, 1.0, eta), eta)
    return Trial("3.2 squared error, η = 1.5", at, averages(states), bound)


def decaying() -> Trial:
    """Results 1.2 and 3.2: steps t^-1/2."""
    at = horizons(ROUNDS)
    learner = Learner(Squared(), Power(1.0, 0.5))
    states = descend(learner, learner.start(), _swings, ROUNDS)
    radius = squared_radius(0.0, 1.0, 1.0)
    bound = [average_with_power_steps(radius, 1.0, 0.5, t) for t in at.tolist()]
    return Trial("3.2 decaying, α = 1/2", at, averages(states), np.array(bound))


def _swings(theta: Floats, t: int) -> tuple[None, float]:
    """Labels that change sides after ever longer stretches, so that early errors are carried far."""
    return None, 1.0 if int(math.log(t) / math.log(6.0)) % 2 == 0 else -1.0


def soft_labels() -> Trial:
    """Result 3.3: labels 0.01 inside [0, 1]; beside it the horizon that the paper prints."""
    gap, rounds, at = 0.01, 20_000, horizons(20_000)
    learner = Learner(Logistic(), ETA)
    found = learner.run(learner.start(), None, np.full(rounds, 1.0 - gap))
    run = np.append(found.served, found.state.theta)[at] / (ETA * at)
    printed = (ETA + math.log(1.0 / (2.0 * gap))) / (ETA * at)
    bound = _from_radius(at, logistic_soft_radius(0.0, 1.0, gap, ETA))
    return Trial(
        "3.3 logistic, ε = 0.01", at, run, bound, more=(Line(at, printed, "printed", PRINTED),)
    )


def hard_labels() -> Trial:
    """Result 3.4: every label is 1, and theta grows like log T."""
    rounds, at = 20_000, horizons(20_000)
    learner = Learner(Logistic(), ETA)
    found = learner.run(learner.start(), None, np.ones(rounds))
    run = np.append(found.served, found.state.theta)[at] / (ETA * at)
    radii = [logistic_hard_radius(0.0, 1.0, ETA, ETA * t) for t in at.tolist()]
    return Trial("3.4 logistic, hard labels", at, run, np.array(radii) / (ETA * at))


def poisson() -> Trial:
    """Result 3.5: counts between 0.05 and 5, all at the lower end."""
    low, high, at = 0.05, 5.0, horizons(ROUNDS)
    learner = Learner(Poisson(), ETA)
    states = descend(learner, learner.start(), constant(low), ROUNDS)
    where = exponential_range(0.0, low, high, 1.0, high, ETA, ETA * ROUNDS)
    return Trial("3.5 Poisson", at, averages(states), _from_radius(at, where.radius(0.0)))


def groups() -> Trial:
    """Result 4: a group with one row in twenty, judged by its own count."""
    rounds, rare = 60_000, 20
    index = (np.arange(rounds) % rare == 0).astype(np.int64)
    labels = np.where(index == 1, 1.0, -1.0)
    learner = Learner(Squared(), ETA)
    found = learner.run(learner.start(2), index, labels)
    errors = (found.served - labels)[index == 1]
    at = horizons(len(errors))
    run = np.abs(np.cumsum(errors))[at - 1] / at
    return Trial(
        "4 disjoint groups, the rare one", at, run, _from_radius(at, squared_radius(0.0, 1.0, ETA)),
        "|bias| in the group",
    )  # fmt: skip


def _from_radius(at: Floats, radius: float, eta: float = ETA) -> Floats:
    return np.array([average_from_radius(0.0, radius, eta, t) for t in at.tolist()])


EXPERIMENT = Experiment(
    name="bounds-one",
    title="Bounds for one parameter and disjoint groups, against the worst labels",
    figure="results 3 and 4",
    chapter="theory",
    needs=(),
    shows="How near can a run come to each proven bound on the average gradient?",
    corrected="The logistic horizon is log((b − a − ε)/ε), not log((b − a)/(2ε)): the run crosses the printed line. "
    "The paper has no bound for hard labels or for the Poisson loss.",
    run=run,
    labels="bounds",
)
