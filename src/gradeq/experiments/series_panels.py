"""The paper's three panels over time: mean prediction, absolute bias, average loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradeq.experiments.averages import Floats, centred_mean, running_mean
from gradeq.experiments.descent import Descent
from gradeq.experiments.sheet import RATES, TRUTH, Line, Look, Panel, course


class Curve(NamedTuple):
    """One run with its name and look."""

    label: str
    run: Descent
    look: Look


def curves(labels: Sequence[str], runs: Sequence[Descent]) -> list[Curve]:
    """Runs of growing steps; the first is the base model in grey."""
    return [Curve(*parts) for parts in zip(labels, runs, RATES, strict=True)]


def bias_norm(run: Descent, rows: Any = None) -> Floats:
    """The largest coordinate of the average gradient at every t, in absolute value: the paper's norm of bias."""
    if rows is None:
        return np.abs(running_mean(run.errors))
    return np.asarray(np.abs(running_mean(run.errors[:, None] * rows)).max(axis=1))


def three_panels(
    found: Sequence[Curve],
    y: Floats,
    unit: str,
    steps: str,
    loss: str,
    rows: Any = None,
    window: int = 100,
    x: Any = None,
) -> list[Panel]:
    """Left the centred mean of predictions and labels, in the middle the bias so far, right the loss so far."""
    middle, truth = centred_mean(y, window)

    def place(line: Line) -> Line:
        return line if x is None else line._replace(x=np.asarray(x)[line.x - 1])

    left = [
        place(course(centred_mean(c.run.served, window)[1], c.label, c.look, middle))._replace(
            quiet=True
        )
        for c in found
    ]
    left.append(place(course(truth, "labels", TRUTH, middle)))
    bias = [place(course(bias_norm(c.run, rows), c.label, c.look)) for c in found]
    average = [place(course(running_mean(c.run.losses), c.label, c.look)) for c in found]
    # The first steps of an average are wild; the scale is that of what follows.
    start = len(y) // 50
    low = min(float(running_mean(c.run.losses)[start:].min()) for c in found)
    high = max(float(running_mean(c.run.losses)[start:].max()) for c in found)
    top = max(float(bias_norm(c.run, rows)[start:].max()) for c in found)
    room = 0.08 * (high - low)
    return [
        Panel(f"Mean of {window} around each step", steps, unit, left),
        Panel("Absolute bias so far", steps, unit, bias, y_limits=(0.0, 1.1 * top), legend=""),
        Panel(
            "Average loss so far",
            steps,
            loss,
            average,
            y_limits=(low - room, high + room),
            legend="outside",
        ),
    ]
