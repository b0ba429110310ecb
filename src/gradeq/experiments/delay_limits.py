"""How large a step late labels allow: constant delay, and any order of labels."""

from __future__ import annotations

import math

import numpy as np

from gradeq.engine.learner import Learner
from gradeq.experiments.averages import Floats
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import AFTER, BEFORE, BOUND, SECOND, Level, Line, Panel, Sheet
from gradeq.experiments.source import Source
from gradeq.ledger.values import Ticket
from gradeq.losses import Squared
from gradeq.theory import fifo_step_limit

DELAYS = (0, 1, 2, 3, 5, 10, 20)
SHOWN = 5


def constant_delay(eta: float, delay: int, rounds: int) -> Floats:
    """|theta| when every label (all are 0) comes ``delay`` rounds late, from theta_1 = 1."""
    learner = Learner(Squared(), eta)
    state, waiting, path = learner.start([1.0]), list[Ticket](), []
    for _ in range(rounds):
        path.append(abs(float(state.theta[0])))
        state, ticket = learner.ticket(state)
        waiting.append(ticket)
        if len(waiting) > delay:
            state = learner.update(state, waiting.pop(0), 0.0)
    return np.array(path)


def hold_and_release(mass: float, held: int, cycles: int) -> Floats:
    """|theta| after each half cycle: ``held`` tickets wait while others bring theta to zero, then all come."""
    eta = mass / held
    learner = Learner(Squared(), eta)
    state, path = learner.start([1.0]), [1.0]
    for _ in range(cycles):
        waiting = []
        for _ in range(held):
            state, ticket = learner.ticket(state)
            waiting.append(ticket)
        for _ in range(math.ceil(8.0 / eta)):  # meanwhile the others flow, each posted at once
            state, ticket = learner.ticket(state)
            state = learner.update(state, ticket, 0.0)
        for ticket in waiting:
            state = learner.update(state, ticket, 0.0)
        path.append(abs(float(state.theta[0])))
    return np.array(path)


def largest_stable_step(delay: int) -> float:
    """The step at which a long run with this delay neither grows nor shrinks, by bisection."""
    low, high, rounds = 0.0, 2.5, 60 * (2 * delay + 1)
    for _ in range(14):
        middle = 0.5 * (low + high)
        path = constant_delay(middle, delay, rounds)
        half = len(path) // 2
        low, high = (middle, high) if path[half:].max() < path[:half].max() else (low, middle)
    return 0.5 * (low + high)


def run(source: Source) -> Result:
    """Both limits, measured and proven."""
    delays = np.array(DELAYS)
    limits = np.array([fifo_step_limit(delay) for delay in DELAYS])
    measured = np.array([largest_stable_step(delay) for delay in DELAYS])
    numbers = [
        Number(f"largest stable step, delay {delay}", float(found), None, float(limit), 0.02)
        for delay, found, limit in zip(DELAYS, measured, limits, strict=True)
    ]
    limit = fifo_step_limit(SHOWN)
    runs = [
        Line(
            np.arange(400) + 1,
            constant_delay(factor * limit, SHOWN, 400),
            f"{factor:g} × limit",
            look,
        )
        for factor, look in ((0.95, AFTER), (1.0, BEFORE), (1.05, SECOND))
    ]
    cycles = np.arange(13)
    held = [
        Line(cycles, hold_and_release(mass, 20, 12), f"open mass {mass:g}", look)
        for mass, look in ((0.9, AFTER), (1.0, BEFORE), (1.1, SECOND))
    ]
    numbers += [
        Number(f"|θ| after 12 releases, {line.label}", float(line.y[-1]), None, mass**12, 0.01)
        for line, mass in zip(held, (0.9, 1.0, 1.1), strict=True)
    ]
    panels = [
        Panel(
            "Constant delay D: limit of the step",
            "delay D",
            "η",
            [
                Line(delays, limits, "2 sin(π / (2(2D + 1)))", BOUND),
                Line(delays, measured, "measured", AFTER._replace(dash="none", marker="o")),
            ],
            y_scale="log",
            ticks=(DELAYS, tuple(str(delay) for delay in DELAYS)),
        ),
        Panel(f"Constant delay {SHOWN}", "rounds", "|θ|", runs, y_scale="log", legend="upper left"),
        Panel(
            "Labels held back, then released",
            "releases",
            "|θ|",
            [Level(1.0), *held],
            y_scale="log",
            legend="upper left",
        ),
    ]
    found = (
        f"With a constant delay the limit is 2 sin(π/(2(2D + 1))): measured {measured[4]:.4f} for D = 5, formula "
        f"{limits[4]:.4f}. When labels may be held back at will, |θ| is multiplied by the open step mass at each "
        f"release: {held[0].y[-1]:.3f}, {held[1].y[-1]:.3f} and {held[2].y[-1]:.3f} after twelve, so mass below 1 is "
        "safe and mass above 1 is not."
    )
    return Result(found, tuple(numbers), {"": Sheet(panels, (1, 3), (13.5, 3.6))})


EXPERIMENT = Experiment(
    name="delay-limits",
    title="Late labels: how large a step is safe",
    figure="results 8.1 and A1",
    chapter="theory",
    needs=(),
    shows="At which step does debiasing with late labels begin to diverge? The paper has no label delay.",
    corrected="",
    run=run,
)
