"""The paper's three panels over time: mean prediction, bias or average gradient, average loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradeq.experiments.averages import Floats, centred_mean, running_mean
from gradeq.experiments.descent import Descent
from gradeq.experiments.sheet import RATES, UNDER, Line, Look, Panel, Sheet, course

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
    """The largest coordinate of the average gradient at every t, in absolute value; without rows the |bias|."""
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
) -> Sheet:
    """Above the centred mean of predictions and labels, below the bias and the loss so far.

    With ``rows`` of features the panel of the bias has what the paper calls its norm: the largest coordinate of the
    average gradient, an average over all rows and not within a group.
    """
    middle, truth = centred_mean(y, window)

    def place(line: Line) -> Line:
        return line if x is None else line._replace(x=np.asarray(x)[line.x - 1])

    means = [place(course(truth, "labels", UNDER, middle))]
    means += [
        place(course(centred_mean(c.run.served, window)[1], c.label, c.look, middle)) for c in found
    ]
    # The first averages are wild and would hide what follows.
    start = len(y) // EARLY
    later = np.arange(start + 1, len(y) + 1)
    bias = [place(course(bias_norm(c.run, rows)[start:], c.label, c.look, later)) for c in found]
    average = [
        place(course(running_mean(c.run.losses)[start:], c.label, c.look, later)) for c in found
    ]
    since = f"so far, from row {start + 1:,} on"
    what = "Absolute bias" if rows is None else "Largest coordinate of the average gradient"
    panels = [
        Panel(f"Mean of {window:,} around each step", steps, unit, means, legend="outside", cells=(0, 0, 1, 4)),
        Panel(
            f"{what} {since}", steps, unit, bias, y_limits=(0.0, None), legend="", cells=(1, 0, 1, 2)
        ),
        Panel(f"Average loss {since}", steps, loss, average, legend="", cells=(1, 2, 1, 2)),
    ]  # fmt: skip
    return Sheet(panels, (2, 4), (13.0, 6.2))
