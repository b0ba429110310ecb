"""Errata about updates, iterates and steps: rows 1, 2, 3, 7, 8, 10, 12, 13, 21, 27, 28, 29."""

from __future__ import annotations

import math

import numpy as np

from gradeq.engine.learner import Learner
from gradeq.experiments.averages import Floats, running_mean
from gradeq.experiments.descent import debias_reals
from gradeq.experiments.erratum import (
    BOUND_LOOK,
    PRINTED_LOOK,
    RUN_LOOK,
    Erratum,
    flat,
    over_rounds,
)
from gradeq.experiments.sheet import Dots, Level, Line, Panel
from gradeq.experiments.spirals import zero_curvature
from gradeq.losses import Logistic, Quantile, Squared
from gradeq.penalties import Ridge
from gradeq.schedules import Power
from gradeq.theory import (
    average_from_radius,
    logistic_horizon,
    monotone_horizon_positive,
    quantile_coverage_gap,
    radius_quadratic_curvature,
    radius_zero_curvature,
)


def introduction() -> Erratum:
    """Row 1: the introduction's update lacks - theta; labels are all 1."""
    eta, rounds = 0.1, 1000
    printed = np.abs(running_mean(eta * np.arange(rounds) - 1.0))  # theta_t = eta (t - 1)
    right = debias_reals(np.zeros(rounds), np.ones(rounds), eta)
    mean = np.abs(running_mean(right.errors))
    bound = np.array([average_from_radius(0.0, 1.0, eta, t) for t in range(1, rounds + 1)])
    panel = over_rounds(
        "1 update of the introduction", "|bias|", (printed, "as printed", PRINTED_LOOK),
        (mean, "with − θ", RUN_LOOK), (bound, "bound", BOUND_LOOK), floor=1e-3,
    )  # fmt: skip
    return Erratum(panel, printed[-1], bound[-1], mean[-1])


def bounded_iterates() -> Erratum:
    """Row 2: ||theta|| <= b gives 2b/(eta T); the eta is missing."""
    eta, rounds = 0.01, 3000
    run = np.abs(running_mean(debias_reals(np.zeros(rounds), np.ones(rounds), eta).errors))
    t = np.arange(1, rounds + 1)
    panel = over_rounds(
        "2 bounded iterates", "|average gradient|", (np.asarray(2.0 / t), "2b/T, as printed", PRINTED_LOOK),
        (run, "run", RUN_LOOK), (np.asarray(2.0 / (eta * t)), "2b/(ηT)", BOUND_LOOK),
    )  # fmt: skip
    return Erratum(panel, run[-1], 2.0 / rounds, 2.0 / (eta * rounds))


def converging_iterates() -> Erratum:
    """Row 3: theta_t is the minimiser of the losses so far, exactly, and its average gradient does not vanish."""
    t = np.arange(1, 60_001)
    y = np.cos(np.log(t))
    best = np.abs(running_mean(running_mean(y) - y))
    descent = np.abs(running_mean(debias_reals(np.zeros(len(y)), y, 0.1).errors))
    panel = over_rounds(
        "3 iterates at the minimiser", "|average gradient|",
        (best, "θ = running mean, claimed → 0", PRINTED_LOOK),
        (descent, "descent, η = 0.1", RUN_LOOK), scale="linear",
    )  # fmt: skip
    return Erratum(panel, best[1000:].max(), 0.0, descent[-1])


def ties() -> Erratum:
    """Row 7: at a tie the slope is 1 - tau; with - tau a constant series is covered always."""
    level, eta, rounds = 0.5, 1.0, 1000
    learner = Learner(Quantile(level), eta)
    right = running_mean((learner.run(learner.start(), None, np.zeros(rounds)).served >= 0.0) * 1.0)
    theta, covered = 0.0, []
    for _ in range(rounds):
        covered.append(float(theta >= 0.0))
        theta -= eta * ((1.0 - level) if theta > 0.0 else -level)
    most = level + np.array(
        [quantile_coverage_gap(0.0, 0.0, 0.0, level, eta, t) for t in range(1, rounds + 1)]
    )
    wrong = running_mean(covered)
    panel = over_rounds(
        "7 slope at a tie", "coverage, target 0.5", (wrong, "−τ, as printed", PRINTED_LOOK),
        (right, "1 − τ", RUN_LOOK), (most, "bound", BOUND_LOOK), scale="linear",
    )  # fmt: skip
    return Erratum(panel, wrong[-1], most[-1], right[-1])


def logistic_range() -> Erratum:
    """Rows 8 and 9: labels eps inside [0, 1] allow theta up to log((1 - eps)/eps)."""
    eta, gap, rounds = 0.1, 0.01, 20_000
    learner = Learner(Logistic(), eta)
    run = learner.run(learner.start(), None, np.full(rounds, 1.0 - gap)).served
    printed, right = math.log(1.0 / (2.0 * gap)) + eta, logistic_horizon(1.0, gap) + eta
    return _levels("8 logistic horizon", run, printed, right)


def classifier() -> Erratum:
    """Row 10: the same for the classifier, whose residuals lie in [-1, 1]."""
    eta, gap, rounds = 0.1, 0.01, 20_000
    learner = Learner(Logistic(-1.0, 1.0), eta)
    run = learner.run(learner.start(), None, np.full(rounds, 1.0 - gap)).served
    printed = 2.0 * eta + math.log(1.0 / gap)
    return _levels("10 classifier debiasing", run, printed, 2.0 * eta + logistic_horizon(2.0, gap))


def strong_monotonicity() -> Erratum:
    """Row 12: beyond the printed horizon the pull is still less than positive curvature asks for."""
    alpha, b, eta, lipschitz = 4.0, 1.0, 2.0, 4.0
    needed = eta * lipschitz**2 / 2.0
    printed = b / alpha + math.sqrt(eta / 2.0) * lipschitz / alpha
    right = monotone_horizon_positive(b, alpha, eta, lipschitz)
    had = (alpha * printed - b) * printed
    theta = np.linspace(0.0, 3.0, 100)
    panel = Panel(
        "12 horizon from monotonicity", "θ", "g(θ)'θ at least",
        [
            Line(theta, (alpha * theta - b) * theta, "αθ² − bθ", RUN_LOOK),
            Level(needed, "needed: ηL²/2"),
            Dots(np.array([printed]), np.array([had]), "printed h", PRINTED_LOOK._replace(marker="s")),
            Dots(np.array([right]), np.array([needed]), "corrected h", BOUND_LOOK),
        ],
    )  # fmt: skip
    # At the corrected horizon nothing is lacking; what the subtraction leaves is rounding.
    lacking = round(needed - (alpha * right - b) * right, 12) + 0.0
    return Erratum(panel, needed - had, 0.0, lacking)


def no_lipschitz_constant() -> Erratum:
    """Row 13: the same condition makes gradients grow without end, so no L holds everywhere."""
    alpha, b = 0.5, 1.0
    theta = np.geomspace(3.0, 1e4, 80)
    panel = Panel(
        "13 no global L", "‖θ‖", "‖g(θ)‖ at least",
        [
            Line(theta, alpha * theta - b, "α‖θ‖ − b", RUN_LOOK),
            *(Line(theta, np.full(80, size), f"L = {size:g}", PRINTED_LOOK) for size in (10.0, 1000.0)),
        ],
        "log", "log",
    )  # fmt: skip
    return Erratum(panel, alpha * 1e4 - b, 1000.0, math.inf)


def growing_features() -> Erratum:
    """Row 21: ridge with features that grow like t^(1/4) diverges at a constant step."""
    rounds, eta = 60, 0.5

    def path(grows: bool) -> Floats:
        learner = Learner(Squared(), eta, penalty=Ridge(0.1))
        state, found = learner.start(1), []
        for t in range(1, rounds + 1):
            row = np.array([t**0.25 if grows else 1.0])
            y = 1.0 if float(state.theta[0]) < 0.0 else -1.0
            state, ticket = learner.ticket(state, row)
            state = learner.update(state, ticket, y)
            found.append(abs(float(state.theta[0])))
        return np.array(found)

    growing, bounded = path(True), path(False)
    panel = Panel(
        "21 ridge, growing features", "rounds T", "|θ|",
        [
            Line(np.arange(1, rounds + 1), growing, "‖x‖ = ⁴√t, allowed as printed", PRINTED_LOOK),
            Line(np.arange(1, rounds + 1), bounded, "‖x‖ = 1", RUN_LOOK),
        ],
        y_scale="log",
    )  # fmt: skip
    return Erratum(panel, float(growing[-1]), float(bounded.max()), float(bounded[-1]))


def vanishing_steps() -> Erratum:
    """Row 27: theta_{t+1} = o(eta_t t) is not enough unless eta_t t grows without end."""
    rounds = 600
    t = np.arange(1, rounds + 1)
    # theta_{t+1} = sqrt(t) e^-t, and each gradient is the move over its step, with e^-t divided out.
    moves = np.sqrt(t - 1.0) * math.e - np.sqrt(t)
    explode = np.abs(running_mean(moves))
    y = np.cos(np.log(t))
    means = np.concatenate(([0.0], running_mean(y)[:-1]))
    hover = np.abs(running_mean(means - y))
    slow = np.abs(running_mean(debias_reals(np.zeros(rounds), y, Power(1.0, 0.5)).errors))
    panel = over_rounds(
        "27 steps that vanish too fast", "|average gradient|",
        (explode, "η = exp(−t), as printed", PRINTED_LOOK),
        (hover, "η = 1/t, as printed", PRINTED_LOOK._replace(dash="--")),
        (slow, "η = 1/√t", RUN_LOOK), floor=1e-3,
    )  # fmt: skip
    return Erratum(panel, explode[-1], 0.0, slow[-1])


def root_term() -> Erratum:
    """Row 28: with steps t^-1/2 the root term needs the factor 2."""
    rounds = 40
    eta = np.arange(1, rounds + 1) ** -0.5
    x = y = gx = gy = 0.0
    run = []
    for k, step in enumerate(eta.tolist(), 1):
        ux, uy = zero_curvature(x, y) if k > 1 else (1.0, 0.0)
        gx, gy, x, y = gx + ux, gy + uy, x - step * ux, y - step * uy
        run.append(math.hypot(gx, gy) / k)
    t = np.arange(1, rounds + 1)
    radius = np.array([radius_zero_curvature(0.0, 1.0, s, 0.0) for s in np.cumsum(eta**2).tolist()])
    found, printed = np.array(run), radius / (eta * t)
    worst = int((found / printed).argmax())
    panel = over_rounds(
        "28 decaying steps, factor of the root", "‖average gradient‖",
        (printed, "printed bound", PRINTED_LOOK), (found, "run", RUN_LOOK),
        (2.0 * printed, "twice that", BOUND_LOOK),
    )  # fmt: skip
    return Erratum(panel, found[worst], printed[worst], 2.0 * printed[worst])


def squared_step() -> Erratum:
    """Row 29: with eta^2 in the condition a parabola of curvature 100 passes, and explodes at step 0.1."""
    theta, eta, horizon = [1.0], 0.1, 0.001
    for _ in range(6):
        theta.append(abs(theta[-1] - eta * 100.0 * theta[-1]))
    claimed = radius_quadratic_curvature(1.0, horizon, 100.0 * horizon, eta)
    t = np.arange(1, 8)
    panel = Panel(
        "29 quadratic curvature with η²", "rounds T", "|θ|",
        [
            Line(t, np.array(theta), "run, condition as printed holds", RUN_LOOK),
            Line(t, np.full(7, claimed), "printed bound", PRINTED_LOOK),
        ],
        y_scale="log",
    )  # fmt: skip
    return Erratum(panel, theta[-1], claimed, math.inf)


def _levels(title: str, run: Floats, printed: float, right: float) -> Erratum:
    panel = over_rounds(
        title, "|θ|", (flat(printed, run), "printed bound", PRINTED_LOOK), (run, "run", RUN_LOOK),
        (flat(right, run), "corrected bound", BOUND_LOOK), scale="linear",
    )  # fmt: skip
    return Erratum(panel, run[-1], printed, right)
