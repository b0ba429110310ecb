"""Decaying steps give no regret and equilibrium at once, on the whole line (remark after prop:restorative_lrt)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradeq.engine.learner import Learner
from gradeq.experiments.averages import Floats
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import BOUND, DECAYS, Line, Mark, Panel, Sheet, thinned
from gradeq.experiments.source import Source
from gradeq.losses import Loss, Quantile, Squared
from gradeq.regret import regret
from gradeq.schedules import Power
from gradeq.theory import (
    average_with_power_steps,
    radius_1d,
    regret_with_power_steps,
    squared_radius,
)

FIRST, B, LEVEL = 0.5, 1.0, 0.9  # the first step, the largest label, the quantile
ROUNDS = 10_000  # that are drawn, of twice as many: an average may pass through 0, so the largest later one is drawn
RATES = (0.0, 0.25, 0.5, 0.75)
WHATS = (
    ("regret / T", "Regret"),
    ("largest |average gradient| from T on", "Average gradient"),
)
SHOWN = 0.5  # the rate whose bounds are drawn


class Case(NamedTuple):
    """Losses and labels, a radius that no iterate leaves, and a bound on the gradients within it."""

    name: str
    loss: Loss
    labels: Floats
    radius: float
    lipschitz: float


def cases() -> tuple[Case, ...]:
    """Labels +1 and -1 at random under the squared error, uniform ones under the pinball loss."""
    random = np.random.RandomState(1)
    signs, uniform = random.choice((-B, B), 2 * ROUNDS), random.uniform(-B, B, 2 * ROUNDS)
    reach = squared_radius(0.0, B, FIRST)
    return (
        Case("squared error", Squared(), signs, reach, reach + B),
        Case(
            f"quantile {LEVEL:g}", Quantile(LEVEL), uniform, radius_1d(0.0, B, LEVEL, FIRST), LEVEL
        ),
    )


class Course(NamedTuple):
    """Regret per round after ``at`` rounds, and the largest average gradient from there on."""

    at: Floats
    regrets: Floats
    gradients: Floats


def descend(case: Case, rate: float) -> Course:
    """Steps 0.5 t^-rate from theta = 0."""
    learner = Learner(case.loss, Power(FIRST, rate))
    thetas, y = learner.run(learner.start(), None, case.labels).served, case.labels
    pairs = zip(thetas.tolist(), y.tolist(), strict=True)
    slopes = np.cumsum([case.loss.slope(theta, label) for theta, label in pairs])
    sizes = np.abs(slopes) / np.arange(1, len(y) + 1)
    at = thinned(ROUNDS, log=True, most=40) + 1
    regrets = np.array([regret(case.loss, thetas[:t], y[:t]) / t for t in at.tolist()])
    return Course(at, regrets, np.maximum.accumulate(sizes[::-1])[::-1][at - 1])


def run(source: Source) -> Result:
    """Four rates of decay; at 0 the step is constant."""
    panels, numbers, said = [], [], []
    for case in cases():
        done = {rate: descend(case, rate) for rate in RATES}
        at = done[SHOWN].at
        bounds = [
            [
                regret_with_power_steps(case.radius + B, case.lipschitz, FIRST, SHOWN, t)
                for t in at.tolist()
            ],
            [average_with_power_steps(case.radius, FIRST, SHOWN, t) for t in at.tolist()],
        ]
        for k, (what, title) in enumerate(WHATS):
            lines: list[Mark] = [
                Line(at, (found.regrets, found.gradients)[k], f"α = {rate:g}", look)
                for (rate, found), look in zip(done.items(), DECAYS, strict=True)
            ]
            bound = Line(at, np.array(bounds[k]), f"bound, α = {SHOWN:g}", BOUND)
            panels.append(
                Panel(
                    f"{title}, {case.name}",
                    "rounds T",
                    what,
                    [*lines, bound._replace(look=BOUND._replace(colour="#191c20", dash=":"))],
                    x_scale="log",
                    y_scale="log",
                    legend="lower left" if k == 0 else "",
                )
            )
            numbers += [
                Number(
                    f"{what}, {case.name}, α = {rate:g}",
                    float((found.regrets, found.gradients)[k][-1]),
                )
                for rate, found in done.items()
            ]
            ratio = float(((done[SHOWN].regrets, done[SHOWN].gradients)[k] / bounds[k]).max())
            numbers.append(Number(f"{what}, {case.name}: run / bound at α = {SHOWN:g}", ratio))
        still, falling = done[0.0], done[SHOWN]
        said.append(
            f"{case.name}: with a constant step the average gradient is {still.gradients[-1]:.4f} at most after "
            f"{ROUNDS:,} rounds, but the regret per round stays at {still.regrets[-1]:.4f}; with steps 0.5/√t they "
            f"are {falling.gradients[-1]:.4f} and {falling.regrets[-1]:.4f}"
        )
    found_text = (
        ". ".join(text[0].upper() + text[1:] for text in said)
        + ". Both bounds fall like 1/√T at α = 1/2."
    )
    return Result(found_text, tuple(numbers), {"": Sheet(panels, (1, 4), (15.5, 3.4))})


EXPERIMENT = Experiment(
    name="regret-decaying",
    title="Decaying steps: no regret and equilibrium at once",
    figure="remark after Proposition 13",
    chapter="theory",
    needs=(),
    shows="Must one choose between no regret and equilibrium? Steps 0.5 t⁻ᵅ for four rates α on labels in [−1, 1], "
    "without a constraint set.",
    corrected="The remark takes a bounded set and its diameter from the literature. No set is needed: restorative "
    "losses keep the iterates together, so the regret is bounded on the whole space (result 1.7). Its step is "
    "printed without the index t.",
    run=run,
)
