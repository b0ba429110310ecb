"""Two sequences on |theta|: no regret without equilibrium, and the reverse (fig:abs_value)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gradeq.experiments.averages import Floats
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import AFTER, BEFORE, THIRD, Dots, Line, Panel, Sheet
from gradeq.experiments.source import Source
from gradeq.losses import Absolute
from gradeq.numerics import sign
from gradeq.regret import regret


def falling() -> Floats:
    """(2/3)^k, k = 0..9: always above the minimum, and tending to it."""
    return np.array([(2 / 3) ** k for k in range(10)])


def bouncing() -> Floats:
    """-(-1)^k/2 - (-2/3)^(k+2), k = 1..10: on either side in turn, never near the minimum."""
    return np.array([-0.5 * (-1) ** k - (-2 / 3) ** (k + 2) for k in range(1, 11)])


def run(source: Source) -> Result:
    """Both sequences with their average regret and average gradient after ten steps."""
    one, two = falling(), bouncing()
    found = {}
    for name, thetas in (("falling", one), ("bouncing", two)):
        average = float(np.mean([sign(u) for u in thetas.tolist()]))
        found[name] = regret(Absolute(), thetas, np.zeros(10)) / 10, abs(average)
    numbers = (
        Number("falling: regret / T after 10", found["falling"][0]),
        Number("falling: average gradient", found["falling"][1], 1.0, 1.0),
        Number("bouncing: regret / T after 10", found["bouncing"][0]),
        Number("bouncing: average gradient", found["bouncing"][1], 0.0, 0.0),
        *(Number(f"falling: θ, step {k + 1}", float(u)) for k, u in enumerate(one)),
        *(Number(f"bouncing: θ, step {k + 1}", float(u)) for k, u in enumerate(two)),
    )
    ends = np.array([-1.1, 0.0, 1.1])
    loss = Line(ends, np.abs(ends), "|θ|", THIRD._replace(dash="-"))
    hops = Line(two, np.abs(two), "order", BEFORE._replace(width=1.0))
    panels = [
        Panel(
            "No regret, no equilibrium: every gradient is 1",
            "θ",
            "loss",
            [loss, *_arcs(one), Dots(one, np.abs(one), "θ₁, θ₂, …", AFTER)],
        ),
        Panel(
            "Equilibrium, yet regret: gradients cancel",
            "θ",
            "loss",
            [loss, hops, Dots(two, np.abs(two), "θ₁, θ₂, …", AFTER)],
        ),
    ]
    said = (
        f"Left: Regret/T is {found['falling'][0]:.3f} after ten steps and tends to 0 (the sum of θ converges to 3), "
        f"the average gradient is 1 at every step. Right: gradients +1 and −1 cancel, and Regret/T stays above 1/2 "
        f"({found['bouncing'][0]:.3f})."
    )
    return Result(said, numbers, {"": Sheet(panels, (1, 2), (10.0, 3.8))})


def _arcs(thetas: Floats) -> list[Line]:
    """Quarter circles from each point to the next: only an aid to the eye."""
    turn = np.linspace(0.0, np.pi / 2, 20)
    thin = BEFORE._replace(width=1.0)
    lines = []
    for k, (a, b) in enumerate(pairwise(thetas.tolist())):
        x, y = b + (a - b) * np.cos(turn), a - (a - b) * np.sin(turn)
        lines.append(Line(x, y, "order", thin, quiet=k > 0))
    return lines


EXPERIMENT = Experiment(
    name="regret-absolute",
    title="Two sequences on |θ|: neither property implies the other",
    figure="Figure 4",
    chapter="paper",
    needs=(),
    shows="Left: iterates above the minimum that tend to it: no regret, yet every gradient is 1. Right: iterates "
    "that jump from side to side: the gradients cancel, yet the regret stays.",
    corrected="",
    run=run,
)
