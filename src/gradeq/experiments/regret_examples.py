"""Examples 1 and 2 and prop:squared_loss_nr_lrs as runs: no regret and equilibrium are different things."""

from __future__ import annotations

import math

import numpy as np

from gradeq.experiments.averages import Floats, running_mean
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import AFTER, SECOND, Level, Line, Mark, Panel, Sheet
from gradeq.experiments.source import Source
from gradeq.losses import Absolute, Loss, Squared
from gradeq.regret import regret

N, M = 6, 3  # Example 2: n times a, then m times b, with n a + m b = 0
A, B = -1.0, 2.0
CYCLES = 200
ROUNDS = CYCLES * (N + M)


def example_1() -> tuple[Floats, Floats]:
    """theta_t = 1/t, and theta_t = +1, -1, +1, ...; the loss is |theta| throughout."""
    t = np.arange(1, ROUNDS + 1)
    return 1.0 / t, np.where(t % 2 == 1, 1.0, -1.0)


def example_2() -> tuple[Floats, Floats]:
    """Labels a, ..., a, b, ..., b and iterates a, ..., a, v, ..., v, repeated."""
    alpha, beta = N / (N + M), M / (N + M)
    v = B + math.sqrt(alpha * A**2 / beta + B**2)
    return np.tile([A] * N + [B] * M, CYCLES), np.tile([A] * N + [v] * M, CYCLES)


def proposition_1() -> tuple[Floats, Floats]:
    """Labels drawn at random, and iterates one standard deviation above each."""
    y = np.random.RandomState(0).normal(1.0, 2.0, ROUNDS)
    return y, y + y.std()


def run(source: Source) -> Result:
    """Four sequences, their average regret and their average gradient at every horizon."""
    falling, bouncing = example_1()
    zeros = np.zeros(ROUNDS)
    y2, theta2 = example_2()
    y3, theta3 = proposition_1()
    # The slope of |theta| off its kink is the sign; Absolute counts a kink as positive, and no iterate is at one.
    cases = (
        ("Example 1: θ = 1/t on |θ|", Absolute(), falling, zeros),
        ("Example 1: θ = ±1 on |θ|", Absolute(), bouncing, zeros),
        ("Example 2: squared losses", Squared(), theta2, y2),
        ("Proposition 1: any labels", Squared(), theta3, y3),
    )
    panels, numbers = [], []
    for title, loss, thetas, y in cases:
        # Whole cycles, so that Example 2's comparator is the one of the paper.
        at = np.unique((np.geomspace(1, CYCLES, 40)).round().astype(int)) * (N + M)
        regrets = np.array([regret(loss, thetas[:t], y[:t]) / t for t in at.tolist()])
        gradients = np.abs(running_mean(_slopes(loss, thetas, y)))[at - 1]
        numbers += [
            Number(f"{title}: regret / T", float(regrets[-1])),
            Number(f"{title}: |average gradient|", float(gradients[-1])),
        ]
        lines: list[Mark] = [
            Level(0.0),
            Line(at, regrets, "regret / T", SECOND),
            Line(at, gradients, "|average gradient|", AFTER),
        ]
        panels.append(Panel(title, "rounds T", "", lines, x_scale="log"))
    alpha, beta = N / (N + M), M / (N + M)
    promised = math.sqrt(alpha * beta * A**2 + beta**2 * B**2)
    numbers.append(Number("Example 2: bias by the paper's formula", promised))
    found = (
        "Where one of the two curves goes to zero the other need not: θ = 1/t has no regret and gradient 1; θ = ±1 "
        f"has gradient 0 and regret 1; Example 2 has regret {abs(numbers[4].ours):.0e} and bias "
        f"{numbers[5].ours:.4f} (formula: {promised:.4f}); iterates one standard "
        "deviation above any labels have no regret and that bias."
    )
    return Result(found, tuple(numbers), {"": Sheet(panels, (1, 4), (14.5, 3.3))})


def _slopes(loss: Loss, thetas: Floats, y: Floats) -> Floats:
    pairs = zip(thetas.tolist(), y.tolist(), strict=True)
    return np.array([loss.slope(theta, label) for theta, label in pairs])


EXPERIMENT = Experiment(
    name="regret-examples",
    title="No regret does not imply equilibrium, nor the reverse",
    figure="Examples 1 and 2, Proposition 1",
    chapter="theory",
    needs=(),
    shows="Does a sequence without regret have a vanishing average gradient, or one in equilibrium a vanishing "
    "regret? Four sequences from the paper.",
    corrected="In Example 2 the second block of iterates has length m, where n is printed.",
    run=run,
)
