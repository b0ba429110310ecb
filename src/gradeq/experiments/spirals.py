"""Two descents in the plane: without curvature they spiral out, with it they stay (fig:curvature)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gradeq.engine.learner import Learner
from gradeq.experiments.averages import Floats
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import AFTER, SECOND, Arrows, Dots, Line, Look, Mark, Panel, Sheet
from gradeq.experiments.source import Source
from gradeq.losses import Linear
from gradeq.theory import radius_positive_curvature, radius_zero_curvature

ETA, ROUNDS, START = 0.8, 30, (0.1, 0.1)
ANGLE = math.radians(75.0)
PALE = Look("#b9bec6")


def zero_curvature(x: float, y: float) -> tuple[float, float]:
    """A gradient of length 1 at right angles to theta: g'theta = 0."""
    r = max(math.hypot(x, y), 0.01)
    return y / r, -x / r


def positive_curvature(x: float, y: float) -> tuple[float, float]:
    """The same, turned inward by 15 degrees: g'theta = |theta| cos(75 degrees)."""
    r = max(math.hypot(x, y), 0.01)
    c, s = math.cos(ANGLE), math.sin(ANGLE)
    return (x * c + y * s) / r, (y * c - x * s) / r


Field = Callable[[float, float], tuple[float, float]]


def trajectory(field: Field, rounds: int = ROUNDS, eta: float = ETA) -> Floats:
    """theta_1, ..., theta_{T+1} of descent along the field."""
    learner = Learner(Linear(), eta)
    state = learner.start(START)
    path = [state.theta]
    for _ in range(rounds):
        state = learner.descend(state, field(*state.theta.tolist()))
        path.append(state.theta)
    return np.array(path)


def run(source: Source) -> Result:
    """Thirty steps of size 0.8 in either field."""
    out, kept = trajectory(zero_curvature), trajectory(positive_curvature)
    horizon = (
        ETA / 2 / math.cos(ANGLE)
    )  # beyond it g'theta >= eta L^2/2, the condition of positive curvature
    bounds = (
        radius_zero_curvature(math.hypot(*START), 1.0, ETA**2 * ROUNDS, 0.0),
        radius_positive_curvature(math.hypot(*START), horizon, 1.0, ETA),
    )
    radii = [float(np.hypot(*path[-1])) for path in (out, kept)]
    numbers = (
        Number("radius after 30 steps, zero curvature", radii[0], 4.384, 4.384, 1e-3),
        Number("its bound (prop:restorative_zero_curv)", bounds[0]),
        Number("radius after 30 steps, positive curvature", radii[1], 1.5385, 1.5385, 1e-4),
        Number("its bound (prop:restorative_pos_curv)", bounds[1]),
    )
    panels = [
        _panel("Zero curvature: g'θ = 0", zero_curvature, out),
        _panel("Positive curvature: g'θ ≥ ηL²/2 beyond h", positive_curvature, kept),
    ]
    found = (
        f"After 30 steps the first is at radius {radii[0]:.4f}, exactly its bound √(‖θ₁‖² + η²T) = {bounds[0]:.4f}; "
        f"the second at {radii[1]:.4f}, near which it stays (bound {bounds[1]:.4f})."
    )
    return Result(found, numbers, {"": Sheet(panels, (1, 2), (10.4, 5.4))})


def _panel(title: str, field: Field, path: Floats) -> Panel:
    ticks = np.linspace(-4.0, 4.0, 15)
    x, y = (part.ravel() for part in np.meshgrid(ticks, ticks))
    moves = -0.35 * np.array([field(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)])
    marks: list[Mark] = [
        Arrows(x, y, moves[:, 0], moves[:, 1], "field", PALE),
        Line(path[:, 0], path[:, 1], "path", SECOND._replace(dash=":"), quiet=True),
        Dots(path[:, 0], path[:, 1], "iterates", SECOND),
        Dots(path[:1, 0], path[:1, 1], "start", AFTER._replace(marker="s")),
    ]
    return Panel(
        title,
        "first coordinate",
        "second coordinate",
        marks,
        x_limits=(-4.9, 4.9),
        y_limits=(-4.9, 5.6),
        square=True,
        legend="upper right",
    )


EXPERIMENT = Experiment(
    name="spirals",
    title="Trajectories with zero and with positive curvature",
    figure="Figure 6",
    chapter="paper",
    needs=(),
    shows="Left: gradients at right angles to θ, and iterates that spiral outward like √T. Right: gradients that "
    "point slightly inward, and iterates that stay.",
    corrected="",
    run=run,
)
