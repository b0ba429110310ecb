"""Regret and gradient equilibrium are different things: the paper's examples and figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gradeq import theory
from gradeq.engine.learner import Learner
from gradeq.losses import Absolute, Loss, Quantile, Squared
from gradeq.paper import plot
from gradeq.paper.experiment import Number, Result, Source
from gradeq.paper.panels import DescentRun, debias_reals, running_mean, slopes
from gradeq.paper.plot import Floats, Values
from gradeq.regret import regret
from gradeq.schedules import Power


def falling() -> Floats:
    """(2/3)^k, k = 0..9: above the minimum, and converging to it."""
    return np.array([(2 / 3) ** k for k in range(10)])


def bouncing() -> Floats:
    """-(-1)^k/2 - (-2/3)^(k+2), k = 1..10: alternates between the sides of the minimum, never near it."""
    return np.array([-0.5 * (-1) ** k - (-2 / 3) ** (k + 2) for k in range(1, 11)])


def regret_absolute(source: Source) -> Result:
    ends = np.array([-1.1, 0.0, 1.1])
    loss, thin = plot.Line(ends, np.abs(ends), "|θ|", replace(plot.THIRD, dash="-")), replace(plot.BEFORE, width=1.0)
    turn, arcs = np.linspace(0.0, np.pi / 2, 20), []
    one, two = falling(), bouncing()
    for k, (a, b) in enumerate(pairwise(one.tolist())):  # quarter circles, only to guide the eye
        x, y = b + (a - b) * np.cos(turn), a - (a - b) * np.sin(turn)
        arcs.append(plot.Line(x, y, "order", thin, quiet=k > 0))
    hops = [plot.Line(two, np.abs(two), "order", thin)]
    panels, regrets, numbers, steps = [], [], [], []
    for name, thetas, title, order, gradient in (
        ("falling", one, "No regret, no equilibrium: every gradient is 1", arcs, 1.0),
        ("bouncing", two, "Equilibrium, yet regret: gradients cancel", hops, 0.0),
    ):
        average = abs(float(np.sign(thetas).mean()))
        regrets.append(regret(Absolute(), thetas, np.zeros(10)) / 10)
        numbers += [
            Number(f"{name}: regret / T after 10", regrets[-1]),
            Number(f"{name}: average gradient", average, gradient, gradient),
        ]
        steps += [Number(f"{name}: θ, step {k + 1}", float(u)) for k, u in enumerate(thetas)]
        dots = plot.Dots(thetas, np.abs(thetas), "θ₁, θ₂, …", plot.AFTER)
        panels.append(plot.Panel(title, "θ", "loss", [loss, *order, dots]))
    text = (
        f"Left: Regret/T is {regrets[0]:.3f} after ten steps and tends to 0 (the sum of θ converges to 3), but "
        f"the average gradient is 1 at every step. Right: gradients +1 and −1 cancel, but Regret/T stays above 1/2 "
        f"({regrets[1]:.3f})."
    )
    return Result(text, (*numbers, *steps), {"": plot.Sheet(panels, (1, 2), (10.0, 3.8))})


ETA = 0.2
SEED = 3
ROUNDS = 1000
FIRST = 10  # the first drawn round; earlier averages are too noisy
HORIZONS = (*range(1, 10), *range(10, ROUNDS + 1, 10))


def labels() -> Floats:
    """The same thousand standard normal labels as in the authors' script."""
    return np.random.RandomState(SEED).normal(size=ROUNDS)


def descend(y: Floats, eta: float) -> DescentRun:
    """Descent on (y_t - theta)^2/2 from theta_1 = 0; theta itself is served."""
    return debias_reals(np.zeros(len(y)), y, eta)


def average_regret(run: DescentRun, y: Floats, horizons: Sequence[int] = HORIZONS) -> Floats:
    """Regret/T against the best constant for the first T labels, for each horizon T."""
    return np.array([regret(Squared(), run.served[:t], y[:t]) / t for t in horizons])


def scripted_regret(run: DescentRun, y: Floats, horizons: Sequence[int] = HORIZONS) -> Floats:
    """The curve of the authors' script: loss without the 1/2, minus half of (sum y^2 - sum y), not the best loss."""
    loss, square, total = np.cumsum(run.errors**2), np.cumsum(y**2), np.cumsum(y)
    at = np.array(horizons) - 1
    return np.asarray((loss - 0.5 * (square - total))[at] / (at + 1))


def regret_bias(source: Source) -> Result:
    y = labels()
    ours, theirs = descend(y, ETA), descend(y, 2 * ETA)
    ours_regret, theirs_regret = average_regret(ours, y), average_regret(theirs, y)
    scripted = scripted_regret(theirs, y)
    ours_bias, theirs_bias = (np.abs(running_mean(r.errors)) for r in (ours, theirs))
    numbers = (
        Number("regret / T, η = 0.2", ours_regret[-1], 0.790020, 0.061658),
        Number("regret / T, η = 0.4", theirs_regret[-1], 0.790020, 0.136545),
        Number("regret / T as their script has it", scripted[-1], 0.790020, 0.790020),
        Number("absolute bias, η = 0.2", ours_bias[-1], 0.000521, 0.000710),
        Number("absolute bias, η = 0.4", theirs_bias[-1], 0.000521, 0.000521),
        Number("θ, η = 0.2", float(ours.theta[0]), 0.208569, 0.142043),
        Number("θ, η = 0.4", float(theirs.theta[0]), 0.208569, 0.208569),
    )
    at = np.array(HORIZONS)
    late = at >= FIRST
    at, scripted, theirs_regret, ours_regret = (values[late] for values in (at, scripted, theirs_regret, ours_regret))
    rounds, dashed = np.arange(FIRST, ROUNDS + 1), replace(plot.PRINTED, dash="--")
    left = [
        plot.Level(0.0),
        plot.Line(at, scripted, "as published", plot.PRINTED),
        plot.Line(at, theirs_regret, "corrected, η = 0.4 (their step)", plot.SECOND),
        plot.Line(at, ours_regret, "corrected, η = 0.2 (as stated)", plot.AFTER),
    ]
    right = [
        plot.Level(0.0),
        plot.course(theirs_bias[FIRST - 1 :], "η = 0.4, as published", dashed, rounds),
        plot.course(ours_bias[FIRST - 1 :], "η = 0.2 (as stated)", plot.AFTER, rounds),
    ]
    panels = [
        plot.Panel(f"Regret / T, from round {FIRST} on", "rounds T", "regret / T", left),
        plot.Panel(f"Absolute bias, from round {FIRST} on", "rounds T", "|mean(θ − y)|", right),
    ]
    text = (
        f"At η = 0.2 the regret per round settles near {ours_regret[-1]:.4f}, not 0.79, while the bias ends at "
        f"{ours_bias[-1]:.5f}. The message of the figure holds: the regret does not vanish, the bias does."
    )
    return Result(text, numbers, {"": plot.Sheet(panels, (1, 2), (10.0, 3.4))}, "1,000 normal labels, seed 3")


Runs = Callable[[int], tuple[Floats, Floats]]  # labels and iterates of the first T rounds

N, M = 6, 3  # Example 2: n times a, then m times b, with n a + m b = 0
A, B = -1.0, 2.0
CYCLES = 200
EXAMPLE_ROUNDS = CYCLES * (N + M)


def proposition_1(rounds: int = EXAMPLE_ROUNDS) -> tuple[Floats, Floats]:
    """Random labels, and iterates that exceed each by s_T, the standard deviation of these T labels."""
    y = np.random.RandomState(0).normal(1.0, 2.0, EXAMPLE_ROUNDS)[:rounds]
    return y, y + y.std()


def regret_examples(source: Source) -> Result:
    t, zeros = np.arange(1, EXAMPLE_ROUNDS + 1), np.zeros(EXAMPLE_ROUNDS)
    falling, bouncing = 1.0 / t, np.where(t % 2 == 1, 1.0, -1.0)
    # Labels a, ..., a, b, ..., b and iterates a, ..., a, v, ..., v, repeated.
    alpha, beta = N / (N + M), M / (N + M)
    v = B + math.sqrt(alpha * A**2 / beta + B**2)
    y2, theta2 = np.tile([A] * N + [B] * M, CYCLES), np.tile([A] * N + [v] * M, CYCLES)
    cases: tuple[tuple[str, Loss, Runs], ...] = (
        ("Example 1: θ = 1/t on |θ|", Absolute(), lambda t: (zeros[:t], falling[:t])),
        ("Example 1: θ = ±1 on |θ|", Absolute(), lambda t: (zeros[:t], bouncing[:t])),
        ("Example 2: squared losses", Squared(), lambda t: (y2[:t], theta2[:t])),
        ("Proposition 1: any labels", Squared(), proposition_1),
    )
    # Whole cycles: only then Example 2's comparator is the paper's.
    at = np.unique((np.geomspace(1, CYCLES, 40)).round().astype(int)) * (N + M)
    panels, numbers = [], []
    for title, loss, labels_and_thetas in cases:
        runs = [labels_and_thetas(t) for t in at.tolist()]
        # Digits beyond the twelfth are rounding; + 0.0 turns -0.0 into 0.0.
        regrets = np.array([regret(loss, u, y) / len(y) for y, u in runs]).round(12) + 0.0
        gradients = np.array([abs(slopes(loss, thetas, y).mean()) for y, thetas in runs])
        numbers += [
            Number(f"{title}: regret / T", float(regrets[-1])),
            Number(f"{title}: |average gradient|", float(gradients[-1])),
            Number(f"{title}: largest |regret| / T", float(np.abs(regrets).max())),
        ]
        lines = [
            plot.Level(0.0),
            plot.Line(at, regrets, "regret / T", plot.SECOND),
            plot.Line(at, gradients, "|average gradient|", plot.AFTER),
        ]
        panels.append(plot.Panel(title, "rounds T", "", lines, x_scale="log"))
    promised = math.sqrt(alpha * beta * A**2 + beta**2 * B**2)
    numbers.append(Number("Example 2: bias by the paper's formula", promised))
    text = (
        "If one of the two curves goes to zero, the other need not: θ = 1/t has no regret and gradient 1; θ = ±1 has "
        "gradient 0 and regret 1; Example 2 has no regret after whole cycles and bias "
        f"{numbers[7].ours:.4f} (formula: {promised:.4f}); iterates that exceed any T labels by their standard "
        "deviation s_T have no regret and the bias s_T, at every T in the figure."
    )
    return Result(text, tuple(numbers), {"": plot.Sheet(panels, (1, 4), (14.5, 3.3))})


FIRST_STEP, LARGEST, LEVEL = 0.5, 1.0, 0.9  # the first step, the largest label, the quantile
# Runs are twice as long: an average may pass through 0, so the largest later one is drawn.
DECAY_ROUNDS = 10_000
RATES = (0.0, 0.25, 0.5, 0.75)
SHOWN = 0.5  # the rate whose bounds are drawn


class Case(NamedTuple):
    """A loss and its labels, a radius that no iterate leaves, and a bound on the gradients within it."""

    name: str
    loss: Loss
    labels: Floats
    radius: float
    lipschitz: float

    def run(self, rate: float, at: Values) -> tuple[Floats, Floats]:
        """Regret per round after ``at`` rounds with steps 0.5 t^-rate, and the largest later average gradient."""
        learner = Learner(self.loss, Power(FIRST_STEP, rate))
        thetas, y = learner.run(learner.start(), None, self.labels).served, self.labels
        sizes = np.abs(running_mean(slopes(self.loss, thetas, y)))
        regrets = np.array([regret(self.loss, thetas[:t], y[:t]) / t for t in at.tolist()])
        return regrets, np.maximum.accumulate(sizes[::-1])[::-1][at - 1]


def cases() -> tuple[Case, ...]:
    """Labels +1 and -1 at random under the squared error, uniform ones under the pinball loss."""
    random = np.random.RandomState(1)
    signs = random.choice((-LARGEST, LARGEST), 2 * DECAY_ROUNDS)
    uniform = random.uniform(-LARGEST, LARGEST, 2 * DECAY_ROUNDS)
    reach = theory.squared_radius(0.0, LARGEST, FIRST_STEP)
    radius = theory.radius_1d(0.0, LARGEST, LEVEL, FIRST_STEP)
    return (
        Case("squared error", Squared(), signs, reach, reach + LARGEST),
        Case(f"quantile {LEVEL:g}", Quantile(LEVEL), uniform, radius, LEVEL),
    )


def regret_decaying(source: Source) -> Result:
    panels, numbers, texts = [], [], []
    at = plot.thinned(DECAY_ROUNDS, log=True, most=40) + 1
    black = replace(plot.BOUND, colour="#191c20", dash=":")
    for case in cases():
        runs = {rate: case.run(rate, at) for rate in RATES}
        reach, steps = case.radius + LARGEST, (FIRST_STEP, SHOWN)
        regrets = [theory.regret_with_power_steps(reach, case.lipschitz, *steps, t) for t in at.tolist()]
        averages = [theory.average_with_power_steps(case.radius, *steps, t) for t in at.tolist()]
        kinds = (
            ("regret / T", "Regret", np.array(regrets), "lower left"),
            ("largest |average gradient| from T on", "Average gradient", np.array(averages), ""),
        )
        for k, (what, title, bound, legend) in enumerate(kinds):
            lines = [
                plot.Line(at, ends[k], f"α = {rate:g}", look)
                for (rate, ends), look in zip(runs.items(), plot.DECAYS, strict=True)
            ]
            lines.append(plot.Line(at, bound, f"bound, α = {SHOWN:g}", black))
            panel = plot.Panel(f"{title}, {case.name}", "rounds T", what, lines, legend=legend)
            panels.append(replace(panel, x_scale="log", y_scale="log"))
            for rate, ends in runs.items():
                numbers.append(Number(f"{what}, {case.name}, α = {rate:g}", float(ends[k][-1])))
            ratio = float((runs[SHOWN][k] / bound).max())
            numbers.append(Number(f"{what}, {case.name}: run / bound at α = {SHOWN:g}", ratio))
        constant, decaying = ([float(ends[-1]) for ends in runs[rate]] for rate in (0.0, SHOWN))
        texts.append(
            f"{case.name.capitalize()}: with a constant step the average gradient is {constant[1]:.4f} at most after "
            f"{DECAY_ROUNDS:,} rounds, but the regret per round stays at {constant[0]:.4f}; "
            f"with steps 0.5/√t they are {decaying[1]:.4f} and {decaying[0]:.4f}"
        )
    text = f"{'. '.join(texts)}. Both bounds fall like 1/√T at α = 1/2."
    return Result(text, tuple(numbers), {"": plot.Sheet(panels, (1, 4), (15.5, 3.4))})
