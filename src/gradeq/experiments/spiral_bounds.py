"""The spirals run on for ten thousand steps, against the bounds of their propositions."""

from __future__ import annotations

import math

import numpy as np

from gradeq.experiments.averages import Floats
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import AFTER, BOUND, Line, Panel, Sheet, thinned
from gradeq.experiments.source import Source
from gradeq.experiments.spirals import (
    ANGLE,
    ETA,
    START,
    Field,
    positive_curvature,
    trajectory,
    zero_curvature,
)
from gradeq.theory import average_from_radius, radius_positive_curvature, radius_zero_curvature

ROUNDS = 10_000
ROOM = math.hypot(*START)


def zero_radius(t: int) -> float:
    """prop:restorative_zero_curv with horizon 0 and L = 1."""
    return radius_zero_curvature(ROOM, 1.0, ETA**2 * t, 0.0)


def positive_radius(t: int) -> float:
    """prop:restorative_pos_curv: beyond h, g'theta >= eta L^2/2."""
    return radius_positive_curvature(ROOM, ETA / 2 / math.cos(ANGLE), 1.0, ETA)


def run(source: Source) -> Result:
    """Radius and average gradient of either spiral on logarithmic axes."""
    panels, numbers = [], []
    fields: tuple[tuple[str, Field], ...] = (
        ("zero curvature", zero_curvature),
        ("positive curvature", positive_curvature),
    )
    for (name, field), radius in zip(fields, (zero_radius, positive_radius), strict=True):
        path = trajectory(field, ROUNDS)
        at = thinned(ROUNDS, log=True, most=120) + 1
        radii, averages = np.hypot(*path[at].T), _averages(path, at)
        caps = np.array([radius(t) for t in at.tolist()])
        allowed = np.array([average_from_radius(ROOM, radius(t), ETA, t) for t in at.tolist()])
        numbers += [
            Number(f"{name}: radius after {ROUNDS:,}", float(radii[-1])),
            Number(f"{name}: its bound", float(caps[-1])),
            Number(f"{name}: |average gradient|", float(averages[-1])),
            Number(f"{name}: its bound on that", float(allowed[-1])),
            Number(f"{name}: largest radius / bound", float((radii / caps).max())),
        ]
        panels += [
            _panel(f"Radius, {name}", "‖θ‖", at, radii, caps),
            _panel(f"Average gradient, {name}", "‖mean g‖", at, averages, allowed),
        ]
    found = (
        f"Without curvature the radius follows its bound exactly (ratio {numbers[4].ours:.6f}) and grows like √T, so "
        f"the average gradient falls like 1/√T to {numbers[2].ours:.4f}. With positive curvature the radius stays at "
        f"{numbers[5].ours:.4f} under {numbers[6].ours:.4f}, and the average gradient falls like 1/T to "
        f"{numbers[7].ours:.5f}."
    )
    return Result(found, tuple(numbers), {"": Sheet(panels, (1, 4), (14.5, 3.3))})


def _averages(path: Floats, at: Floats) -> Floats:
    """prop:gd_simple: the average gradient is the displacement over eta T."""
    return np.asarray(np.hypot(*(path[0] - path[at]).T) / (ETA * at))


def _panel(title: str, unit: str, at: Floats, run: Floats, bound: Floats) -> Panel:
    lines = [Line(at, run, "run", AFTER), Line(at, bound, "bound", BOUND)]
    return Panel(title, "rounds T", unit, lines, x_scale="log", y_scale="log")


EXPERIMENT = Experiment(
    name="spiral-bounds",
    title="Spirals against their bounds",
    figure="Propositions 5 and 6",
    chapter="theory",
    needs=(),
    shows="How near do the descents of Figure 6 come to the bounds with zero and with positive curvature?",
    corrected="The bound with zero curvature is said to grow at best at the rate 1/√T; it decays. The bound with "
    "positive curvature is max(‖θ₁‖, h + ηL), smaller than the printed max(‖θ₁‖, h) + ηL.",
    run=run,
)
