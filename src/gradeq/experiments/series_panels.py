"""The paper's three panels over time: mean prediction, absolute bias, average loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradeq.experiments.averages import Floats, centred_mean, running_mean
from gradeq.experiments.descent import Descent
from gradeq.experiments.sheet import RATES, TRUTH, Line, Look, Panel, course

EARLY = 50  # one part in so many of all rows comes before the first average that is drawn


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
    # The first averages are wild and would hide what follows.
    start = len(y) // EARLY
    later = np.arange(start + 1, len(y) + 1)
    bias = [place(course(bias_norm(c.run, rows)[start:], c.label, c.look, later)) for c in found]
    average = [
        place(course(running_mean(c.run.losses)[start:], c.label, c.look, later)) for c in found
    ]
    since = f"so far, from row {start + 1:,} on"
    return [
        Panel(f"Mean of {window:,} around each step", steps, unit, left),
        Panel(f"Absolute bias {since}", steps, unit, bias, y_limits=(0.0, None), legend=""),
        Panel(f"Average loss {since}", steps, loss, average, legend="outside"),
    ]
