"""A restorative field: beyond the horizon, descent is never pushed outward (fig:restorative)."""

from __future__ import annotations

import numpy as np

from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import TRUTH, Arrows, Line, Mark, Panel, Sheet
from gradeq.experiments.source import Source

HORIZON = 2.15
DRAWN = 2.0  # the circle that the authors' script draws
GRID, REACH, LENGTH = 20, 4.0, 0.4


def run(source: Source) -> Result:
    """Negative gradients of unit size that point to the origin, on a grid, outside the horizon."""
    ticks = np.linspace(-REACH, REACH, GRID)
    x, y = (part.ravel() for part in np.meshgrid(ticks, ticks))
    radius = np.hypot(x, y)
    outside = radius > HORIZON
    x, y, radius = x[outside], y[outside], radius[outside]
    size = np.minimum(LENGTH, radius - HORIZON)  # heads stop at the horizon
    turn = np.linspace(0.0, 2.0 * np.pi, 200)
    marks: list[Mark] = [
        Arrows(x, y, -x / radius * size, -y / radius * size, "negative gradient"),
        Line(HORIZON * np.cos(turn), HORIZON * np.sin(turn), f"horizon h = {HORIZON:g}", TRUTH),
    ]
    panel = Panel(
        "−g(θ) outside the horizon", "θ₁", "θ₂", marks, x_limits=(-3.5, 3.5), y_limits=(-3.5, 3.5),
        square=True, legend="center",
    )  # fmt: skip
    number = Number("arrows", float(len(x)), 320, 320)
    found = (
        "All 320 arrows outside the horizon have g(θ)'θ > 0. The circle stands at 2.15, where the arrows end; the "
        "authors' script draws it at 2."
    )
    return Result(found, (number,), {"": Sheet([panel], (1, 1), (5.6, 5.4))})


EXPERIMENT = Experiment(
    name="restorative-field",
    title="A restorative field",
    figure="Figure 5",
    chapter="paper",
    needs=(),
    shows="Negative gradients outside a ball, none of which points away from it.",
    corrected="In one dimension the condition is printed as sign(g) = sign(θ); it is g(θ)θ ≥ 0, which a zero "
    "gradient also satisfies. The circle is drawn at the horizon of the arrows.",
    run=run,
)
