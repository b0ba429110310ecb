"""The paper's claims that a number refutes, as printed and as corrected.

Each run checks the conditions of the statement that it refutes. The parameters are for tests, which break one
condition at a time. Rows are numbered as in the list of errata.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradeq import theory
from gradeq.engine.learner import Learner
from gradeq.engine.rows import PairRows
from gradeq.geometries import EntropicSimplex, Simplex
from gradeq.links import Sigmoid
from gradeq.losses import Linear, Logistic, Quantile
from gradeq.paper import plot
from gradeq.paper.experiment import Number, Result, Source, numeral
from gradeq.paper.panels import debias_reals, running_mean, serve
from gradeq.paper.plot import Floats
from gradeq.paper.spirals import zero_curvature
from gradeq.schedules import Power

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Erratum:
    """A panel and its verdict: ``happens`` exceeds what the paper ``allows``; ``holds`` is the corrected value.

    ``place`` is the label or the section of the statement in the paper. ``assumes`` maps its conditions, worded as on
    the page of errata, to whether the run meets them. ``limit``: the paper has no number for this run, only the limit
    that it ``allows``.
    """

    panel: plot.Panel
    place: str
    assumes: Mapping[str, bool]
    happens: float
    allows: float
    holds: float
    limit: bool = False

    @property
    def numbers(self) -> tuple[Number, ...]:
        printed = "printed limit" if self.limit else "printed"
        values = {"happens": self.happens, printed: self.allows, "corrected": self.holds}
        return tuple(Number(f"{self.panel.title}: {what}", value) for what, value in values.items())

    @property
    def is_fair(self) -> bool:
        return all(self.assumes.values())

    @property
    def verdict(self) -> str:
        allows, happens, holds = map(numeral, (self.allows, self.happens, self.holds))
        printed = f"printed limit {allows}" if self.limit else f"printed {allows}"
        verdict = f"{printed}, happens {happens}, corrected {holds}"
        return verdict if self.is_fair else f"not a counterexample: {verdict}"


LOOKS = (plot.PRINTED, plot.AFTER, plot.BOUND)  # as printed, corrected, its bound


def _over_rounds(
    title: str,
    unit: str,
    lines: Mapping[str, Floats],
    looks: Sequence[plot.Look] = LOOKS,
    scale: str = "log",
    floor: float = 0.0,
) -> plot.Panel:
    """Lines over rounds on a logarithmic axis; values below the floor are drawn at it, as the unit says."""
    marks = [
        plot.course(np.maximum(values, floor), name, look, log=True)
        for (name, values), look in zip(lines.items(), looks, strict=False)
    ]
    axis = f"{unit}, at least {floor:g}" if floor else unit
    return plot.Panel(title, "rounds T", axis, marks, x_scale="log", y_scale=scale)


def introduction(eta: float = 0.1, residual: float = 1.0) -> Erratum:
    """Row 1: the introduction's update lacks - theta; residuals y - f are all 1."""
    rounds = 1000
    printed = np.abs(running_mean(eta * residual * np.arange(rounds) - residual))
    right = debias_reals(np.zeros(rounds), np.full(rounds, residual), eta)
    mean = np.abs(running_mean(right.errors))
    bound = np.array([theory.average_from_radius(0.0, 1.0, eta, t) for t in range(1, rounds + 1)])
    lines = {"as printed": printed, "with − θ": mean, "bound": bound}
    panel = _over_rounds("1 update of the introduction", "|bias|", lines, floor=1e-3)
    assumes = {"|y − f| ≤ 1": abs(residual) <= 1.0, "0 < η < 2": 0.0 < eta < 2.0}
    return Erratum(panel, "introduction", assumes, printed[-1], 0.0, float(mean[-1]), limit=True)


def bounded_iterates(eta: float = 0.01, b: float = 1.0) -> Erratum:
    """Row 2: ||theta|| <= b gives 2b/(eta T); the eta is missing."""
    rounds = 3000
    descent = debias_reals(np.zeros(rounds), np.ones(rounds), eta)
    run = np.abs(running_mean(descent.errors))
    printed = np.asarray(2.0 * b / np.arange(1, rounds + 1))
    right = np.asarray(2.0 * b / (eta * np.arange(1, rounds + 1)))
    lines = {"2b/T, as printed": printed, "run": run, "2b/(ηT)": right}
    panel = _over_rounds("2 bounded iterates", "|average gradient|", lines)
    largest = max(np.abs(descent.served).max(), np.abs(descent.theta).max())
    assumes = {"a constant step": eta > 0.0, "|θₜ| ≤ b = 1 for all t": bool(largest <= b)}
    return Erratum(panel, "prop:gd_simple", assumes, run[-1], printed[-1], right[-1])


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
    lines = {"η = 1/t: claimed → 0": average, "descent, η = 0.1": descent}
    panel = _over_rounds("3 iterates that tend to the minimiser", "|average gradient|", lines, scale="linear")
    assumes = {"|θ_T − θ*_T| ≤ 2/T for all T": bool(np.all(np.abs(theta - least) <= 2.0 / t + ROUNDING))}
    return Erratum(panel, "eq:iterate_conv", assumes, average[1000:].max(), 0.0, descent[-1], limit=True)


def ties(label: float = 0.0, b: float = 0.0) -> Erratum:
    """Row 7: at a tie the slope is 1 - tau; with - tau a constant series is always covered."""
    level, eta, rounds = 0.5, 1.0, 1000
    labels = np.full(rounds, label)
    learner = Learner(Quantile(level), eta)
    right = running_mean((learner.run(learner.start(), None, labels).served >= label) * 1.0)
    theta, covered = 0.0, []
    for _ in range(rounds):
        covered.append(float(theta >= label))
        theta -= eta * ((1.0 - level) if theta > label else -level)
    wrong, t = running_mean(covered), np.arange(1, rounds + 1)
    gaps = [theory.quantile_coverage_gap(0.0, -b, b, level, eta, n) for n in t.tolist()]
    lines = {"−τ, as printed": wrong, "1 − τ": right, "bound": level + np.array(gaps)}
    panel = _over_rounds("7 slope at a tie", "coverage, target 0.5", lines, scale="linear")
    assumes = {
        "|yₜ| ≤ b = 0": bool(np.all(np.abs(labels) <= b)),
        "0 ≤ τ ≤ 1, a constant step": 0.0 <= level <= 1.0 and eta > 0.0,
    }
    printed = level + (eta + b) / (eta * t)  # theta_1 = 0
    return Erratum(panel, "cor:quantile_loss_zero_curv", assumes, wrong[-1], printed[-1], right[-1])


def logistic_range(label: float = 0.99) -> Erratum:
    """Row 8: labels eps inside [0, 1] allow theta up to log((1 - eps)/eps)."""
    eta, gap = 0.1, 0.01
    assumes = {"ε ≤ yₜ ≤ 1 − ε": gap <= label <= 1.0 - gap, "0 < ε < 1/2, the same for all t": 0.0 < gap < 0.5}
    printed = eta + math.log(1.0 / (2.0 * gap))  # the printed numerator; theta_1 = 0
    right = eta + theory.logistic_horizon(1.0, gap)
    place, learner = "cor:logistic_loss_zero_curv", Learner(Logistic(), eta)
    return _numerator("8 logistic horizon", place, assumes, learner, label, printed, right)


def classifier(p: float = 0.01, y: float = 1.0) -> Erratum:
    """Row 10: the same for the classifier, whose residuals lie in [-1, 1]."""
    eta, gap = 0.1, 0.01
    assumes = {"ε ≤ pₜ ≤ 1 − ε": gap <= p <= 1.0 - gap, "yₜ is 0 or 1": y in (0.0, 1.0)}
    printed = 2.0 * eta + math.log(1.0 / gap)
    right = 2.0 * eta + theory.logistic_horizon(2.0, gap)
    place, learner = "eq:logistic_loss_bias_bound", Learner(Logistic(-1.0, 1.0), eta)
    return _numerator("10 classifier debiasing", place, assumes, learner, y - p, printed, right)


def _numerator(
    title: str, place: str, assumes: Mapping[str, bool], learner: Learner, label: float, printed: float, right: float
) -> Erratum:
    """Both sides of a bound on the average times eta T: on the left this is |theta|, because theta_1 = 0."""
    descent = learner.run(learner.start(), None, np.full(20_000, label))
    run = np.append(descent.served[1:], descent.state.theta)
    lines = {"printed bound": np.full(len(run), printed), "run": run, "corrected bound": np.full(len(run), right)}
    panel = _over_rounds(title, "ηT·|average gradient|", lines, scale="linear")
    return Erratum(panel, place, assumes, run[-1], printed, right)


def strong_monotonicity(b: float = 1.0, curvature: float = 4.0, side: float = 1.0) -> Erratum:
    """Row 12: beyond the printed horizon the pull is still smaller than positive curvature requires.

    The loss 2 theta^2 - theta on [-1, 1], where its gradients 4 theta - 1 are at most L = 5 in size.
    """
    alpha, eta, lipschitz = 4.0, 0.02, 5.0
    theta = np.linspace(-side, side, 201)
    gradient = curvature * theta - 1.0
    needed = eta * lipschitz**2 / 2.0
    printed = b / alpha + math.sqrt(eta / 2.0) * lipschitz / alpha
    right = theory.monotone_horizon_positive(b, alpha, eta, lipschitz)
    pull = (curvature * printed - 1.0) * printed
    near = (theta >= 0.0) & (theta <= 0.6)
    marks = [
        plot.Line(theta[near], (gradient * theta)[near], "(4θ − 1)θ", plot.AFTER),
        plot.Level(needed, "needed: ηL²/2"),
        plot.Dots(np.array([printed]), np.array([pull]), "printed h", replace(plot.PRINTED, marker="s")),
        plot.Dots(np.array([right]), np.array([needed]), "corrected h", plot.BOUND),
    ]
    panel = plot.Panel("12 horizon from monotonicity", "θ", "g(θ)θ", marks)
    pulls = (gradient + 1.0) * theta
    assumes = {
        "(g(θ) − g(0))θ ≥ αθ² with α = 4": bool(np.all(pulls >= alpha * theta**2 - ROUNDING)),
        "|g(0)| ≤ b = 1": b >= 1.0,
        "|g(θ)| ≤ L = 5 on [−1, 1]": bool(np.abs(gradient).max() <= lipschitz) and printed < side,
    }
    # At the corrected horizon nothing is lacking, except for rounding.
    lacking = round(needed - (alpha * right - 1.0) * right, 12) + 0.0
    return Erratum(panel, "prop:restricted_strongly_monotone", assumes, needed - pull, 0.0, lacking)


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
    lines = {"η = exp(−t): claimed → 0": explode, "η = 1/√t": slow}
    panel = _over_rounds("27 steps that vanish too fast", "|average gradient|", lines, floor=1e-3)
    share = t**power / t  # theta_{t+1} over eta_t t
    falling = bool(np.all(np.diff(steps) <= 0.0) and np.all(np.diff(steps * t) <= 0.0))
    assumes = {
        "ηₜ and ηₜt are nonincreasing": falling,
        "θₜ₊₁/(ηₜt) = 1/√t tends to 0": bool(np.all(np.diff(share) < 0.0) and share[-1] < 0.05),
    }
    return Erratum(panel, "prop:gd_sublinear_lrt", assumes, explode[-1], 0.0, slow[-1], limit=True)


def root_term(alpha: float = 0.5, size: float = 1.0) -> Erratum:
    """Row 28: with steps t^-1/2 the root term needs the factor 2. The losses are |v_t'theta|, v_t'theta_t = 0."""
    t = np.arange(1, 41)
    eta = t**-alpha
    x = y = gx = gy = 0.0
    norms, across, lengths = [], [], []
    for k, step in enumerate(eta.tolist(), 1):
        ux, uy = (size * u for u in (zero_curvature(x, y) if k > 1 else (1.0, 0.0)))
        across.append(abs(ux * x + uy * y))
        lengths.append(math.hypot(ux, uy))
        gx, gy, x, y = gx + ux, gy + uy, x - step * ux, y - step * uy
        norms.append(math.hypot(gx, gy) / k)
    # The printed bound with c = L = 1, h = 0 and theta_1 = 0.
    squares = np.cumsum(eta**2).tolist()
    radius = np.array([theory.radius_zero_curvature(0.0, 1.0, s, 0.0) for s in squares])
    run, printed = np.array(norms), radius / (eta * t)
    worst = int((run / printed).argmax())
    lines = {"printed bound": printed, "run": run, "twice that": 2.0 * printed}
    panel = _over_rounds("28 decaying steps, factor of the root", "‖average gradient‖", lines)
    assumes = {
        "ηₜ = t^−α with 0 < α < 1": 0.0 < alpha < 1.0,
        "ℓₜ = |vₜ'θ| with ‖vₜ‖ = L = 1": max(lengths) <= 1.0 + ROUNDING,
        # Then v_t itself is a subgradient at theta_t, and every subgradient has g'theta >= 0.
        "vₜ'θₜ = 0": max(across) <= ROUNDING,
    }
    return Erratum(panel, "prop:restorative_lrt", assumes, run[worst], printed[worst], 2.0 * printed[worst])


def squared_step(eta: float = 0.1) -> Erratum:
    """Row 29: with eta^2 in the condition a parabola of curvature 100 meets it, and diverges at step 0.1."""
    path, horizon, curvature = [1.0], 0.001, 100.0
    for _ in range(6):
        path.append(abs(path[-1] - eta * curvature * path[-1]))
    claimed = max(path[0], horizon) + eta * curvature * horizon
    t, theta = np.arange(1, 8), np.array(path)
    marks = [
        plot.Line(t, theta, "run, condition as printed holds", plot.AFTER),
        plot.Line(t, np.full(7, claimed), "printed bound", plot.PRINTED),
    ]
    panel = plot.Panel("29 quadratic curvature with η²", "rounds T", "|θ|", marks, y_scale="log")
    gradients = curvature * theta
    assumes = {
        "|g| ≤ L = 0.1 within h = 0.001": curvature * horizon <= 0.1,
        "gθ ≥ η²g²/2 beyond h": bool(np.all(gradients * theta >= eta**2 * gradients**2 / 2.0)),
    }
    return Erratum(panel, "prop:restorative_lrt", assumes, path[-1], claimed, math.inf)


def unsigned_elo(rounds: int = 4000) -> Erratum:
    """Row 31: seat b always wins and the seats alternate; only the signed bias of a player vanishes."""
    eta = 0.1
    a = np.arange(rounds) % 2
    learner = Learner(Logistic(), eta)
    run = learner.run(learner.start(2), PairRows(a, 1 - a), np.ones(rounds))
    errors = serve(Sigmoid(), np.zeros(rounds), run.served) - 1.0
    signed = np.abs(running_mean(np.where(a == 1, errors, -errors)))
    bound = np.array([theory.elo_radius(2, eta, eta * t) / (eta * t) for t in range(1, rounds + 1)])
    printed = np.abs(running_mean(errors))
    lines = {"as printed: claimed → 0": printed, "signed by seat": signed, "bound, signed": bound}
    panel = _over_rounds("31 bias of a player", "|mean over its games|", lines)
    assumes = {
        "gradient equilibrium": bool(signed[-1] < 1e-3),
        "both players are in every game": bool(np.all(a != 1 - a)),
    }
    return Erratum(panel, "sec:pairwise_preference", assumes, printed[-1], 0.0, signed[-1], limit=True)


def algorithm_5(reach: float = 1.0) -> Erratum:
    """Row 38: as printed, every tracker starts from the ensemble's iterate, and one exceeds the bound of a tracker.

    The signed error is printed without the tracker's index on one side and with it on the other. Both readings run,
    and the milder one counts.
    """
    level, rates, weight_rate, rounds, b = 0.9, (0.01, 0.5), 0.05, 20_000, 1.0
    labels = np.random.RandomState(11).uniform(-reach, reach, rounds)
    fast = Learner(Quantile(level), rates[1])
    served = fast.run(fast.start(), None, labels).served
    right = np.abs(running_mean((labels <= served) * 1.0) - level)
    single, shared = (
        np.abs(running_mean(_covered(labels, level, rates, weight_rate, each)) - level) for each in (True, False)
    )
    # cor:quantile_loss_zero_curv from theta_1 = 0
    printed = np.asarray((rates[1] + b) / (rates[1] * np.arange(1, rounds + 1)))
    lines = {
        "as printed, σ of each": single,
        "as printed, σ of the ensemble": shared,
        "own iterate, own miss": right,
        "bound of a tracker": printed,
    }
    looks = (plot.PRINTED, replace(plot.PRINTED, dash="--"), *LOOKS[1:])
    panel = _over_rounds("38 Algorithm 5, its quick tracker", "|coverage − 0.9|", lines, looks, floor=1e-4)
    assumes = {
        "|yₜ − fₜ| ≤ b = 1": bool(np.abs(labels).max() <= b),
        "no label ties with a tracker": bool(np.all(labels != served)),
    }
    happens = min(float(single[-1]), float(shared[-1]))
    return Erratum(panel, "alg:quantile-ensembling", assumes, happens, printed[-1], right[-1])


def _covered(labels: Floats, level: float, rates: tuple[float, float], weight_rate: float, each: bool) -> Floats:
    """Whether the fast tracker of the printed Algorithm 5 covers each label.

    Trackers move by ``each`` one's miss, or by the ensemble's.
    """
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
        theta = [mixed - nu * (loss.slope(x, y) if each else miss) for nu, x in zip(rates, theta, strict=True)]
    return covered


def simplex_cone(corner: tuple[float, float] = (1.0, 0.0)) -> Erratum:
    """Row 46: a vector of the printed normal cone at a corner points into the simplex."""
    share = np.linspace(0.0, 1.0, 60)
    moves = np.column_stack((-share, share))  # from the corner along the edge
    printed, right = np.array([0.0, 1.0]), np.array([1.0, 0.5])
    assert not theory.in_simplex_normal_cone(printed.tolist(), list(corner))
    marks = [
        plot.Level(0.0),
        plot.Line(share, moves @ printed, "v = (0, 1), as printed", plot.PRINTED),
        plot.Line(share, moves @ right, "v = (1, ½), normal", plot.AFTER),
    ]
    axes = ("distance along the edge", "v'(z − θ), must be ≤ 0")
    panel = plot.Panel("46 normal cone of the simplex", *axes, marks)
    support = [j for j in range(2) if corner[j] > 0.0]
    assumes = {
        "θ lies in the simplex": min(corner) >= 0.0 and sum(corner) == 1.0,
        # u is orthogonal to the directions of the face exactly when it is constant on the support.
        "v is orthogonal to L": len(set(printed[support].tolist())) == 1,
    }
    happens, holds = float(moves[-1] @ printed), float(moves[-1] @ right)
    return Erratum(panel, "eq:normal_cone3", assumes, happens, 0.0, holds)


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
    marks = [
        *(plot.course(means[:, i], f"weight {i + 1}", plot.SERIES[3 * i], log=True) for i in range(2)),
        plot.course(spread, "their difference", plot.BOUND, log=True),
        plot.Level(0.0, "claimed limit", plot.PRINTED),
    ]
    panel = plot.Panel("47 gradients on the support", "rounds T", "average gradient", marks, x_scale="log")
    average = np.linalg.norm((state.gradients + state.normals) / rounds)
    assumes = {
        "every θₜ lies inside the edge θ₃ = 0": bool(np.all(path[:, 2] == 0.0) and np.all(path[:, :2] > 0.0)),
        "equilibrium: the average of g + n vanishes": bool(average < 1e-2),
    }
    happens, holds = float(means[-1, :2].min()), float(spread[-1])
    return Erratum(panel, "eq:grad_eq_simplex2", assumes, happens, 0.0, holds, limit=True)


def cone_test(low: float = -1.0) -> Erratum:
    """Row 52: with liminf the vector 1 passes as normal to the whole line; with limsup it does not."""
    right = np.linspace(0.01, 1.0, 40)
    z = np.concatenate((-right[::-1], right)) if low < 0.0 else right
    ratio: Floats = z / np.abs(z)
    marks = [
        plot.Line(z[z < 0.0], ratio[z < 0.0], "liminf −1 ≤ 0: passes as printed", plot.PRINTED),
        plot.Line(z[z > 0.0], ratio[z > 0.0], "limsup 1 > 0: fails", plot.AFTER),
        plot.Level(0.0),
    ]
    panel = plot.Panel("52 test for a normal vector", "z − θ", "v(z − θ)/|z − θ|, v = 1", marks)
    assumes = {"lim inf of v(z − θ)/|z − θ| ≤ 0": float(ratio.min()) <= 0.0, "θ is inside the set": low < 0.0}
    # With lim sup only the vector 0 passes on the whole line, and its ratio is 0.
    return Erratum(panel, "eq:normal_cone1", assumes, float(ratio.max()), 0.0, 0.0)


ERRATA = (
    introduction, bounded_iterates, converging_iterates, ties, logistic_range, classifier, strong_monotonicity,
    vanishing_steps, root_term, squared_step, unsigned_elo, algorithm_5, simplex_cone, simplex_support, cone_test,
)  # fmt: skip


def errata(source: Source) -> Result:
    items = [erratum() for erratum in ERRATA]
    rows = math.ceil(len(items) / 3)
    sheet = plot.Sheet([item.panel for item in items], (rows, 3), (12.5, 3.1 * rows))
    refuted = sum(item.happens > item.allows for item in items)
    text = (
        f"{len(items)} panels. Grey: what is printed, or a run of it; blue: a run of the method; dashed orange: what "
        f"holds. In {'all' if refuted == len(items) else refuted} of them a run exceeds what the paper allows, and "
        f"{sum(item.is_fair for item in items)} of the {len(items)} runs meet every condition of the statement that "
        "they refute."
    )
    return Result(text, tuple(number for item in items for number in item.numbers), {"": sheet})
