"""Descents in the plane: restorative fields, spirals, and their bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gradeq.engine.learner import Learner
from gradeq.losses import Linear
from gradeq.paper import plot
from gradeq.paper.experiment import Number, Result, Source
from gradeq.paper.plot import Floats
from gradeq.theory import average_from_radius, radius_positive_curvature, radius_zero_curvature

HORIZON = 2.15
GRID, REACH, LENGTH = 20, 4.0, 0.4


def restorative_field(source: Source) -> Result:
    ticks = np.linspace(-REACH, REACH, GRID)
    x, y = (part.ravel() for part in np.meshgrid(ticks, ticks))
    radius = np.hypot(x, y)
    outside = radius > HORIZON
    x, y, radius = x[outside], y[outside], radius[outside]
    size = np.minimum(LENGTH, radius - HORIZON)  # heads stop at the horizon
    turn = np.linspace(0.0, 2.0 * np.pi, 200)
    marks = [
        plot.Arrows(x, y, -x / radius * size, -y / radius * size, "negative gradient"),
        plot.Line(HORIZON * np.cos(turn), HORIZON * np.sin(turn), f"horizon h = {HORIZON:g}", plot.TRUTH),
    ]
    panel = plot.Panel("−g(θ) outside the horizon", "θ₁", "θ₂", marks, square=True, legend="center")
    panel = replace(panel, x_limits=(-3.5, 3.5), y_limits=(-3.5, 3.5))
    number = Number("arrows", float(len(x)), 320, 320)
    text = (
        "All 320 arrows outside the horizon have g(θ)'θ > 0. The circle stands at 2.15, where the arrows end; the "
        "authors' script draws it at 2."
    )
    return Result(text, (number,), {"": plot.Sheet([panel], (1, 1), (5.6, 5.4))})


ETA, ROUNDS, START = 0.8, 30, (0.1, 0.1)
ANGLE = math.radians(75.0)
PALE = plot.Look("#b9bec6")


def zero_curvature(x: float, y: float) -> tuple[float, float]:
    """A unit gradient at right angles to theta: g'theta = 0."""
    r = max(math.hypot(x, y), 0.01)
    return y / r, -x / r


def positive_curvature(x: float, y: float) -> tuple[float, float]:
    """The same, turned inward by 15 degrees: g'theta = |theta| cos(75 degrees)."""
    r = max(math.hypot(x, y), 0.01)
    c, s = math.cos(ANGLE), math.sin(ANGLE)
    return (x * c + y * s) / r, (y * c - x * s) / r


Field = Callable[[float, float], tuple[float, float]]
ORIGIN = math.hypot(*START)


def zero_radius(t: int) -> float:
    """prop:restorative_zero_curv with horizon 0 and L = 1."""
    return radius_zero_curvature(ORIGIN, 1.0, ETA**2 * t, 0.0)


def positive_radius(t: int) -> float:
    """prop:restorative_pos_curv: beyond h, g'theta >= eta L^2/2."""
    return radius_positive_curvature(ORIGIN, ETA / 2 / math.cos(ANGLE), 1.0, ETA)


def trajectory(field: Field, rounds: int = ROUNDS, eta: float = ETA) -> Floats:
    """theta_1, ..., theta_{T+1} of descent along the field."""
    learner = Learner(Linear(), eta)
    state = learner.start(START)
    path = [state.theta]
    for _ in range(rounds):
        state = learner.descend(state, field(*state.theta.tolist()))
        path.append(state.theta)
    return np.array(path)


def spirals(source: Source) -> Result:
    outward, bounded = trajectory(zero_curvature), trajectory(positive_curvature)
    bounds = (zero_radius(ROUNDS), positive_radius(ROUNDS))
    radii = [float(np.hypot(*path[-1])) for path in (outward, bounded)]
    numbers = (
        Number("radius after 30 steps, zero curvature", radii[0], 4.384, 4.384, 1e-3),
        Number("its bound (prop:restorative_zero_curv)", bounds[0]),
        Number("radius after 30 steps, positive curvature", radii[1], 1.5385, 1.5385, 1e-4),
        Number("its bound (prop:restorative_pos_curv)", bounds[1]),
    )
    panels = [
        _panel("Zero curvature: g'θ = 0", zero_curvature, outward),
        _panel("Positive curvature: g'θ ≥ ηL²/2 beyond h", positive_curvature, bounded),
    ]
    text = (
        f"After 30 steps the first is at radius {radii[0]:.4f}, exactly its bound √(‖θ₁‖² + η²T) = {bounds[0]:.4f}; "
        f"the second is at {radii[1]:.4f}, and stays near it (bound {bounds[1]:.4f})."
    )
    return Result(text, numbers, {"": plot.Sheet(panels, (1, 2), (10.4, 5.4))})


def _panel(title: str, field: Field, path: Floats) -> plot.Panel:
    ticks = np.linspace(-4.0, 4.0, 15)
    x, y = (part.ravel() for part in np.meshgrid(ticks, ticks))
    moves = -0.35 * np.array([field(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)])
    marks = [
        plot.Arrows(x, y, moves[:, 0], moves[:, 1], "field", PALE),
        plot.Line(path[:, 0], path[:, 1], "path", replace(plot.SECOND, dash=":"), quiet=True),
        plot.Dots(path[:, 0], path[:, 1], "iterates", plot.SECOND),
        plot.Dots(path[:1, 0], path[:1, 1], "start", replace(plot.AFTER, marker="s")),
    ]
    panel = plot.Panel(title, "first coordinate", "second coordinate", marks, square=True, legend="upper right")
    return replace(panel, x_limits=(-4.9, 4.9), y_limits=(-4.9, 5.6))


LONG = 10_000  # rounds


def spiral_bounds(source: Source) -> Result:
    panels, numbers = [], []
    at = plot.thinned(LONG, log=True, most=120) + 1
    for name, field, radius in (
        ("zero curvature", zero_curvature, zero_radius),
        ("positive curvature", positive_curvature, positive_radius),
    ):
        path = trajectory(field, LONG)
        radii = np.hypot(*path[at].T)
        # prop:gd_simple: the average gradient is the displacement over eta T.
        averages = np.hypot(*(path[0] - path[at]).T) / (ETA * at)
        caps = np.array([radius(t) for t in at.tolist()])
        allowed = np.array([average_from_radius(ORIGIN, radius(t), ETA, t) for t in at.tolist()])
        ends = {
            f"radius after {LONG:,}": radii[-1],
            "its bound": caps[-1],
            "|average gradient|": averages[-1],
            "its bound on that": allowed[-1],
            "largest radius / bound": (radii / caps).max(),
        }
        numbers += [Number(f"{name}: {what}", float(end)) for what, end in ends.items()]
        for title, unit, run, bound in (
            ("Radius", "‖θ‖", radii, caps),
            ("Average gradient", "‖mean g‖", averages, allowed),
        ):
            lines = [plot.Line(at, run, "run", plot.AFTER), plot.Line(at, bound, "bound", plot.BOUND)]
            panels.append(plot.Panel(f"{title}, {name}", "rounds T", unit, lines, x_scale="log", y_scale="log"))
    text = (
        f"Without curvature the radius follows its bound exactly (ratio {numbers[4].ours:.6f}) and grows like √T, so "
        f"the average gradient falls like 1/√T to {numbers[2].ours:.4f}. With positive curvature the radius stays at "
        f"{numbers[5].ours:.4f} under {numbers[6].ours:.4f}, and the average gradient falls like 1/T to "
        f"{numbers[7].ours:.5f}."
    )
    return Result(text, tuple(numbers), {"": plot.Sheet(panels, (1, 4), (14.5, 3.3))})
