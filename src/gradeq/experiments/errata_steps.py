"""Errata about updates, iterates and steps: rows 1, 2, 3, 7, 8, 10, 12, 27, 28, 29.

Each run checks the conditions of the statement that it speaks against; the parameters are there for tests, which
break one condition at a time and see that this is noticed.
"""

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
    Hypothesis,
    flat,
    over_rounds,
)
from gradeq.experiments.sheet import Dots, Level, Line, Panel
from gradeq.experiments.spirals import zero_curvature
from gradeq.losses import Logistic, Quantile
from gradeq.schedules import Power
from gradeq.theory import (
    average_from_radius,
    logistic_horizon,
    monotone_horizon_positive,
    quantile_coverage_gap,
    radius_zero_curvature,
)

ROUNDING = 1e-9


def introduction(eta: float = 0.1, residual: float = 1.0) -> Erratum:
    """Row 1: the introduction's update lacks - theta; residuals y - f are all 1."""
    rounds = 1000
    printed = np.abs(running_mean(eta * residual * np.arange(rounds) - residual))
    right = debias_reals(np.zeros(rounds), np.full(rounds, residual), eta)
    mean = np.abs(running_mean(right.errors))
    bound = np.array([average_from_radius(0.0, 1.0, eta, t) for t in range(1, rounds + 1)])
    panel = over_rounds(
        "1 update of the introduction", "|bias|", (printed, "as printed", PRINTED_LOOK),
        (mean, "with − θ", RUN_LOOK), (bound, "bound", BOUND_LOOK), floor=1e-3,
    )  # fmt: skip
    assumes = (
        Hypothesis("|y − f| ≤ 1", abs(residual) <= 1.0),
        Hypothesis("0 < η < 2", 0.0 < eta < 2.0),
    )
    return Erratum(
        panel, "introduction", assumes, printed[-1], 0.0, float(mean[-1]), limit=True
    )  # fmt: skip


def bounded_iterates(eta: float = 0.01, b: float = 1.0) -> Erratum:
    """Row 2: ||theta|| <= b gives 2b/(eta T); the eta is missing."""
    rounds = 3000
    done = debias_reals(np.zeros(rounds), np.ones(rounds), eta)
    run = np.abs(running_mean(done.errors))
    t = np.arange(1, rounds + 1)
    panel = over_rounds(
        "2 bounded iterates", "|average gradient|", (np.asarray(2.0 * b / t), "2b/T, as printed", PRINTED_LOOK),
        (run, "run", RUN_LOOK), (np.asarray(2.0 * b / (eta * t)), "2b/(ηT)", BOUND_LOOK),
    )  # fmt: skip
    largest = max(float(np.abs(done.served).max()), float(np.abs(done.theta).max()))
    assumes = (
        Hypothesis("a constant step", eta > 0.0),
        Hypothesis("|θₜ| ≤ b = 1 for all t", largest <= b),
    )
    return Erratum(
        panel, "prop:gd_simple", assumes, run[-1], 2.0 * b / rounds, 2.0 * b / (eta * rounds)
    )


def converging_iterates(step: Power | None = None) -> Erratum:
    """Row 3: theta_t approaches the minimiser of the losses so far, and its average gradient does not vanish."""
    rounds = 60_000
    t = np.arange(1, rounds + 1)
    y = np.cos(np.log(t))
    least = running_mean(y)  # the minimiser of the losses up to each round
    if step is None:  # descent with steps 1/t from 0: the mean of the labels so far
        theta = np.concatenate(([0.0], least[:-1]))
    else:
        theta = np.asarray(debias_reals(np.zeros(rounds), y, step).served)
    average = np.abs(running_mean(theta - y))
    descent = np.abs(running_mean(debias_reals(np.zeros(rounds), y, 0.1).errors))
    panel = over_rounds(
        "3 iterates that tend to the minimiser", "|average gradient|",
        (average, "η = 1/t: claimed → 0", PRINTED_LOOK),
        (descent, "descent, η = 0.1", RUN_LOOK), scale="linear",
    )  # fmt: skip
    assumes = (
        Hypothesis(
            "|θ_T − θ*_T| ≤ 2/T for all T",
            bool(np.all(np.abs(theta - least) <= 2.0 / t + ROUNDING)),
        ),
    )
    return Erratum(
        panel, "eq:iterate_conv", assumes, average[1000:].max(), 0.0, descent[-1], limit=True
    )


def ties(label: float = 0.0, b: float = 0.0) -> Erratum:
    """Row 7: at a tie the slope is 1 - tau; with - tau a constant series is covered always."""
    level, eta, rounds = 0.5, 1.0, 1000
    labels = np.full(rounds, label)
    learner = Learner(Quantile(level), eta)
    right = running_mean((learner.run(learner.start(), None, labels).served >= label) * 1.0)
    theta, covered = 0.0, []
    for _ in range(rounds):
        covered.append(float(theta >= label))
        theta -= eta * ((1.0 - level) if theta > label else -level)
    most = level + np.array(
        [quantile_coverage_gap(0.0, -b, b, level, eta, t) for t in range(1, rounds + 1)]
    )
    printed = level + (eta + b) / (eta * np.arange(1, rounds + 1))  # theta_1 = 0
    wrong = running_mean(covered)
    panel = over_rounds(
        "7 slope at a tie", "coverage, target 0.5", (wrong, "−τ, as printed", PRINTED_LOOK),
        (right, "1 − τ", RUN_LOOK), (most, "bound", BOUND_LOOK), scale="linear",
    )  # fmt: skip
    assumes = (
        Hypothesis("|yₜ| ≤ b = 0", bool(np.all(np.abs(labels) <= b))),
        Hypothesis("0 ≤ τ ≤ 1, a constant step", 0.0 <= level <= 1.0 and eta > 0.0),
    )
    return Erratum(
        panel, "cor:quantile_loss_zero_curv", assumes, wrong[-1], printed[-1], right[-1]
    )  # fmt: skip


def logistic_range(label: float = 0.99) -> Erratum:
    """Row 8: labels eps inside [0, 1] allow theta up to log((1 - eps)/eps)."""
    eta, gap, rounds = 0.1, 0.01, 20_000
    assumes = (
        Hypothesis("ε ≤ yₜ ≤ 1 − ε", gap <= label <= 1.0 - gap),
        Hypothesis("0 < ε < 1/2, the same for all t", 0.0 < gap < 0.5),
    )
    learner = Learner(Logistic(), eta)
    run = learner.run(learner.start(), None, np.full(rounds, label))
    printed = eta + math.log(1.0 / (2.0 * gap))  # the printed numerator; theta_1 = 0
    right = eta + logistic_horizon(1.0, gap)
    place = "cor:logistic_loss_zero_curv"
    path = np.append(run.served[1:], run.state.theta)
    return _numerator("8 logistic horizon", place, assumes, path, printed, right)


def classifier(p: float = 0.01, y: float = 1.0) -> Erratum:
    """Row 10: the same for the classifier, whose residuals lie in [-1, 1]."""
    eta, gap, rounds = 0.1, 0.01, 20_000
    assumes = (
        Hypothesis("ε ≤ pₜ ≤ 1 − ε", gap <= p <= 1.0 - gap),
        Hypothesis("yₜ is 0 or 1", y in (0.0, 1.0)),
    )
    learner = Learner(Logistic(-1.0, 1.0), eta)
    run = learner.run(learner.start(), None, np.full(rounds, y - p))
    printed = 2.0 * eta + math.log(1.0 / gap)
    right = 2.0 * eta + logistic_horizon(2.0, gap)
    place = "eq:logistic_loss_bias_bound"
    path = np.append(run.served[1:], run.state.theta)
    return _numerator("10 classifier debiasing", place, assumes, path, printed, right)


def strong_monotonicity(b: float = 1.0, curvature: float = 4.0, side: float = 1.0) -> Erratum:
    """Row 12: beyond the printed horizon the pull is still less than positive curvature asks for.

    The loss 2 theta^2 - theta on [-1, 1], where its gradients 4 theta - 1 are at most L = 5 in size.
    """
    alpha, eta, lipschitz = 4.0, 0.02, 5.0
    theta = np.linspace(-side, side, 201)
    gradient = curvature * theta - 1.0
    needed = eta * lipschitz**2 / 2.0
    printed = b / alpha + math.sqrt(eta / 2.0) * lipschitz / alpha
    right = monotone_horizon_positive(b, alpha, eta, lipschitz)
    had = (curvature * printed - 1.0) * printed
    near = (theta >= 0.0) & (theta <= 0.6)
    panel = Panel(
        "12 horizon from monotonicity", "θ", "g(θ)θ",
        [
            Line(theta[near], (gradient * theta)[near], "(4θ − 1)θ", RUN_LOOK),
            Level(needed, "needed: ηL²/2"),
            Dots(np.array([printed]), np.array([had]), "printed h", PRINTED_LOOK._replace(marker="s")),
            Dots(np.array([right]), np.array([needed]), "corrected h", BOUND_LOOK),
        ],
    )  # fmt: skip
    pulls = (gradient + 1.0) * theta
    assumes = (
        Hypothesis(
            "(g(θ) − g(0))θ ≥ αθ² with α = 4", bool(np.all(pulls >= alpha * theta**2 - ROUNDING))
        ),
        Hypothesis("|g(0)| ≤ b = 1", b >= 1.0),
        Hypothesis(
            "|g(θ)| ≤ L = 5 on [−1, 1]",
            bool(np.abs(gradient).max() <= lipschitz) and printed < side,
        ),
    )
    # At the corrected horizon nothing is lacking; what the subtraction leaves is rounding.
    lacking = round(needed - (alpha * right - 1.0) * right, 12) + 0.0
    place = "prop:restricted_strongly_monotone"
    return Erratum(panel, place, assumes, needed - had, 0.0, lacking)


def vanishing_steps(power: float = 0.5) -> Erratum:
    """Row 27: with steps e^-t theta_{t+1} = sqrt(t) e^-t is o(eta_t t), and the average gradient grows."""
    rounds = 600
    t = np.arange(1, rounds + 1)
    steps = np.exp(-1.0 * t)
    # Each gradient is the move over its step, with e^-t divided out; theta_1 = 0.
    moves = np.where(t == 1, 0.0, (t - 1.0) ** power) * math.e - t**power
    explode = np.abs(running_mean(moves))
    y = np.cos(np.log(t))
    slow = np.abs(running_mean(debias_reals(np.zeros(rounds), y, Power(1.0, 0.5)).errors))
    panel = over_rounds(
        "27 steps that vanish too fast", "|average gradient|",
        (explode, "η = exp(−t): claimed → 0", PRINTED_LOOK),
        (slow, "η = 1/√t", RUN_LOOK), floor=1e-3,
    )  # fmt: skip
    share = t**power / t  # theta_{t+1} over eta_t t
    assumes = (
        Hypothesis(
            "ηₜ and ηₜt are nonincreasing",
            bool(np.all(np.diff(steps) <= 0.0) and np.all(np.diff(steps * t) <= 0.0)),
        ),
        Hypothesis(
            "θₜ₊₁/(ηₜt) = 1/√t tends to 0", bool(np.all(np.diff(share) < 0.0) and share[-1] < 0.05)
        ),
    )
    place = "prop:gd_sublinear_lrt"
    return Erratum(panel, place, assumes, explode[-1], 0.0, slow[-1], limit=True)


def root_term(alpha: float = 0.5, size: float = 1.0) -> Erratum:
    """Row 28: with steps t^-1/2 the root term needs the factor 2. The losses are |v_t'theta|, v_t'theta_t = 0."""
    rounds = 40
    t = np.arange(1, rounds + 1)
    eta = t**-alpha
    x = y = gx = gy = 0.0
    run, across, lengths = [], [], []
    for k, step in enumerate(eta.tolist(), 1):
        ux, uy = (size * u for u in (zero_curvature(x, y) if k > 1 else (1.0, 0.0)))
        across.append(abs(ux * x + uy * y))
        lengths.append(math.hypot(ux, uy))
        gx, gy, x, y = gx + ux, gy + uy, x - step * ux, y - step * uy
        run.append(math.hypot(gx, gy) / k)
    # The printed bound with c = L = 1, h = 0 and theta_1 = 0.
    radius = np.array([radius_zero_curvature(0.0, 1.0, s, 0.0) for s in np.cumsum(eta**2).tolist()])
    found, printed = np.array(run), radius / (eta * t)
    worst = int((found / printed).argmax())
    panel = over_rounds(
        "28 decaying steps, factor of the root", "‖average gradient‖",
        (printed, "printed bound", PRINTED_LOOK), (found, "run", RUN_LOOK),
        (2.0 * printed, "twice that", BOUND_LOOK),
    )  # fmt: skip
    assumes = (
        Hypothesis("ηₜ = t^−α with 0 < α < 1", 0.0 < alpha < 1.0),
        Hypothesis("ℓₜ = |vₜ'θ| with ‖vₜ‖ = L = 1", max(lengths) <= 1.0 + ROUNDING),
        # Then v_t itself is a subgradient at theta_t, and every subgradient has g'theta >= 0.
        Hypothesis("vₜ'θₜ = 0", max(across) <= ROUNDING),
    )
    place = "prop:restorative_lrt"
    return Erratum(panel, place, assumes, found[worst], printed[worst], 2.0 * printed[worst])


def squared_step(eta: float = 0.1) -> Erratum:
    """Row 29: with eta^2 in the condition a parabola of curvature 100 passes, and explodes at step 0.1."""
    theta, horizon, curvature = [1.0], 0.001, 100.0
    for _ in range(6):
        theta.append(abs(theta[-1] - eta * curvature * theta[-1]))
    claimed = max(theta[0], horizon) + eta * curvature * horizon
    t = np.arange(1, 8)
    panel = Panel(
        "29 quadratic curvature with η²", "rounds T", "|θ|",
        [
            Line(t, np.array(theta), "run, condition as printed holds", RUN_LOOK),
            Line(t, np.full(7, claimed), "printed bound", PRINTED_LOOK),
        ],
        y_scale="log",
    )  # fmt: skip
    beyond = np.array(theta)
    gradients = curvature * beyond
    assumes = (
        Hypothesis("|g| ≤ L = 0.1 within h = 0.001", curvature * horizon <= 0.1),
        Hypothesis(
            "gθ ≥ η²g²/2 beyond h",
            bool(np.all(gradients * beyond >= eta**2 * gradients**2 / 2.0)),
        ),
    )
    return Erratum(panel, "prop:restorative_lrt", assumes, theta[-1], claimed, math.inf)


def _numerator(
    title: str,
    place: str,
    assumes: tuple[Hypothesis, ...],
    run: Floats,
    printed: float,
    right: float,
) -> Erratum:
    """Both sides of a bound on the average times eta T: on the left this is |theta|, because theta_1 = 0."""
    panel = over_rounds(
        title, "ηT·|average gradient|", (flat(printed, run), "printed bound", PRINTED_LOOK), (run, "run", RUN_LOOK),
        (flat(right, run), "corrected bound", BOUND_LOOK), scale="linear",
    )  # fmt: skip
    return Erratum(panel, place, assumes, run[-1], printed, right)
