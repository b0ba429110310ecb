"""Examples 1 and 2 and prop:squared_loss_nr_lrs as runs: no regret and equilibrium are different things."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gradeq.experiments.averages import Floats
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import AFTER, SECOND, Level, Line, Mark, Panel, Sheet
from gradeq.experiments.source import Source
from gradeq.losses import Absolute, Loss, Squared
from gradeq.regret import regret

Runs = Callable[[int], tuple[Floats, Floats]]  # labels and iterates of the first T rounds

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


def proposition_1(rounds: int = ROUNDS) -> tuple[Floats, Floats]:
    """Labels drawn at random, and iterates above each by s_T, the standard deviation of these T labels.

    The proposition is about one T: another T has other iterates.
    """
    y = np.random.RandomState(0).normal(1.0, 2.0, ROUNDS)[:rounds]
    return y, y + y.std()


def run(source: Source) -> Result:
    """Four sequences, their average regret and their average gradient at every horizon."""
    falling, bouncing = example_1()
    zeros = np.zeros(ROUNDS)
    y2, theta2 = example_2()
    # The slope of |theta| off its kink is the sign; Absolute counts a kink as positive, and no iterate is at one.
    cases: tuple[tuple[str, Loss, Runs], ...] = (
        ("Example 1: θ = 1/t on |θ|", Absolute(), lambda t: (zeros[:t], falling[:t])),
        ("Example 1: θ = ±1 on |θ|", Absolute(), lambda t: (zeros[:t], bouncing[:t])),
        ("Example 2: squared losses", Squared(), lambda t: (y2[:t], theta2[:t])),
        ("Proposition 1: any labels", Squared(), proposition_1),
    )
    # Whole cycles, so that Example 2's comparator is the one of the paper.
    at = np.unique((np.geomspace(1, CYCLES, 40)).round().astype(int)) * (N + M)
    panels, numbers = [], []
    for title, loss, labels_and_thetas in cases:
        runs = [labels_and_thetas(t) for t in at.tolist()]
        # Beyond twelve decimals there is only rounding; + 0.0 makes -0.0 a plain zero.
        regrets = np.array([regret(loss, u, y) / len(y) for y, u in runs]).round(12) + 0.0
        gradients = np.array([abs(_slopes(loss, thetas, y).mean()) for y, thetas in runs])
        numbers += [
            Number(f"{title}: regret / T", float(regrets[-1])),
            Number(f"{title}: |average gradient|", float(gradients[-1])),
            Number(f"{title}: largest |regret| / T", float(np.abs(regrets).max())),
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
        "has gradient 0 and regret 1; Example 2 has no regret after whole cycles and bias "
        f"{numbers[7].ours:.4f} (formula: {promised:.4f}); iterates that lie above any T labels by their standard "
        "deviation s_T have no regret and the bias s_T, at every T that is drawn."
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
