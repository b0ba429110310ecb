"""Panels and averages that several figures share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.engine.learner import Learner
from gradeq.links import Identity, Link, Shift
from gradeq.losses import Logistic, Loss, Squared
from gradeq.paper import plot
from gradeq.paper.experiment import Number
from gradeq.paper.plot import Floats, Values
from gradeq.schedules import Schedule


def running_mean(x: npt.ArrayLike) -> Floats:
    """(x_1 + ... + x_t)/t for every t, for each column of a table.

    >>> running_mean([1.0, 3.0]).tolist()
    [1.0, 2.0]
    """
    values = np.asarray(x, dtype=np.float64)
    steps = np.arange(1, len(values) + 1).reshape(-1, *([1] * (values.ndim - 1)))
    return np.asarray(np.cumsum(values, axis=0) / steps)


def published_numbers(
    at: str, run: DescentRun, authors: Sequence[float], scale: float, within: float = 1e-6
) -> list[Number]:
    """theta, bias, loss and the ends of the authors' two curves, whose loss is ``scale`` times the paper's."""
    theta, bias, loss, bias_end, loss_end = authors
    # The authors' averages begin with a dummy zero and omit the last step.
    ends = [scale * abs(float(x[:-1].sum() / len(x))) for x in (run.errors, run.losses)]
    return [
        Number(f"θ, {at}", float(run.theta[0]), theta, theta, within),
        Number(f"bias, {at}", run.bias, bias, bias, within),
        Number(f"average loss, {at}", run.loss, loss, loss / scale, within),
        Number(f"end of their bias curve, {at}", ends[0], bias_end, bias_end, within),
        Number(f"end of their loss curve, {at}", ends[1], loss_end, loss_end, within),
    ]


def trailing_mean(x: npt.ArrayLike, window: int) -> Floats:
    """The mean of the last ``window`` values, or of as many as there are.

    >>> trailing_mean([1.0, 3.0, 5.0], 2).tolist()
    [1.0, 2.0, 4.0]
    """
    values = np.asarray(x, dtype=np.float64)
    sums = np.concatenate(([0.0], np.cumsum(values)))
    stops = np.arange(1, len(values) + 1)
    starts = np.maximum(stops - window, 0)
    return np.asarray((sums[stops] - sums[starts]) / (stops - starts))


def centred_mean(x: npt.ArrayLike, window: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """Means over ``window`` steps and the steps, from 1, in their middle; whole windows only.

    >>> [part.tolist() for part in centred_mean([1.0, 3.0, 5.0], 2)]
    [[2, 3], [2.0, 4.0]]
    """
    values = np.asarray(x, dtype=np.float64)
    width = min(window, len(values))
    sums = np.concatenate(([0.0], np.cumsum(values)))
    means = (sums[width:] - sums[:-width]) / width
    return np.arange(len(means)) + 1 + width // 2, means


Step = float | Schedule | None


class DescentRun(NamedTuple):
    """Served predictions, their errors served - y, the paper's losses, and the last theta of one run."""

    served: Floats
    errors: Floats
    losses: Floats
    theta: Floats

    @property
    def bias(self) -> float:
        return float(self.errors.mean())

    @property
    def loss(self) -> float:
        return float(self.losses.mean())


def debias_probabilities(p: Floats, y: Floats, step: Step, rows: Values | None = None) -> DescentRun:
    """alg:simple-debias-logistic, and with rows of groups alg:multigroup-debias-logistic (corrected).

    Descent on the logistic loss on [-1, 1] of the residual y - p; p + 2 sigma(z'theta) - 1 is served. Without a step,
    the base model.
    """
    return _descend(Logistic(-1.0, 1.0), Shift(), p, y - p, y, step, rows)


def debias_reals(f: Floats, y: Floats, step: Step, rows: Values | None = None) -> DescentRun:
    """alg:simple-debias-squared, and with rows of groups alg:multigroup-debias-squared: f + z'theta is served."""
    return _descend(Squared(), Identity(), f, y - f, y, step, rows)


def values(loss: Loss, u: Floats, y: Floats) -> Floats:
    return np.array(list(map(loss.value, u.tolist(), y.tolist())))


def slopes(loss: Loss, u: Floats, y: Floats) -> Floats:
    return np.array(list(map(loss.slope, u.tolist(), y.tolist())))


def serve(link: Link, f: Floats, margins: Floats) -> Floats:
    return np.array(list(map(link.serve, f.tolist(), margins.tolist())))


def indicators(*columns: Values) -> tuple[Floats, list[str]]:
    """One indicator per value of every column, in alphabetical order, and the names of the values."""
    names = [np.unique(column) for column in columns]
    rows = np.hstack([column[:, None] == known for column, known in zip(columns, names, strict=True)])
    return rows.astype(np.float64), [str(name) for known in names for name in known]


def _descend(
    loss: Loss, link: Link, base: Floats, residuals: Floats, y: Floats, step: Step, rows: Values | None
) -> DescentRun:
    dimension = 1 if rows is None else rows.shape[1]
    if step is None:
        margins, theta = np.zeros(len(y)), np.zeros(dimension)
    else:
        learner = Learner(loss, step)
        run = learner.run(learner.start(dimension), rows, residuals)
        margins, theta = run.served, run.state.theta
    served = serve(link, base, margins)
    return DescentRun(served, served - y, values(loss, margins, residuals), theta)


EARLY, EARLY_GROUPS = (50, 20)  # averages are drawn after 1/EARLY of all rows, or 1/EARLY_GROUPS of a group


def bias_norm(run: DescentRun, rows: Values | None = None) -> Floats:
    """The largest |coordinate of the average gradient| at every t; without rows the |bias|."""
    if rows is None:
        return np.abs(running_mean(run.errors))
    return np.asarray(np.abs(running_mean(run.errors[:, None] * rows)).max(axis=1))


def three_panels(
    curves: Iterable[tuple[str, DescentRun, plot.Look]],
    y: Floats,
    axes: tuple[str, str, str],
    rows: Values | None = None,
    window: int = 100,
    x: Values | None = None,
) -> plot.Sheet:
    """Above, the centred mean of predictions and labels; below, the bias and the loss so far.

    ``axes`` names the unit, the steps and the loss. With ``rows`` of features, the panel of the bias shows what the
    paper calls its norm: the largest coordinate of the average gradient over all rows, not within a group.
    """
    middle, truth = centred_mean(y, window)

    def line(values: Floats, label: str, look: plot.Look, at: Values) -> plot.Line:
        course = plot.course(values, label, look, at)
        return course if x is None else replace(course, x=x[course.x - 1])

    # The first averages vary so much that they would hide the rest.
    start = len(y) // EARLY
    later = np.arange(start + 1, len(y) + 1)
    means, bias, losses = [line(truth, "labels", plot.UNDER, middle)], [], []
    for label, run, look in curves:
        means.append(line(centred_mean(run.served, window)[1], label, look, middle))
        bias.append(line(bias_norm(run, rows)[start:], label, look, later))
        losses.append(line(running_mean(run.losses)[start:], label, look, later))
    unit, steps, loss = axes
    since = f"so far, from row {start + 1:,} on"
    title = f"{'Absolute bias' if rows is None else 'Largest coordinate of the average gradient'} {since}"
    panels = [
        plot.Panel(f"Mean of {window:,} around each step", steps, unit, means, legend="outside", cells=(0, 0, 1, 4)),
        plot.Panel(title, steps, unit, bias, y_limits=(0.0, None), legend="", cells=(1, 0, 1, 2)),
        plot.Panel(f"Average loss {since}", steps, loss, losses, legend="", cells=(1, 2, 1, 2)),
    ]
    return plot.Sheet(panels, (2, 4), (13.0, 6.2))


def group_panels(
    titles: Sequence[str],
    runs: Sequence[DescentRun],
    kinds: Mapping[str, Mapping[str, Values]],
    unit: str,
    top: float,
    looks: Mapping[str, plot.Look] | None = None,
) -> list[plot.Panel]:
    """One row of panels per kind of group; ``kinds`` holds the members of each group of each kind.

    All panels share one axis, which ends at ``top`` or higher.
    """
    panels: list[plot.Panel] = []
    members_so_far = f"members so far, the first {100 // EARLY_GROUPS} % left out"
    for kind, groups in kinds.items():
        drawn = looks or dict(zip(groups, plot.SERIES, strict=False))
        for title, run in zip(titles, runs, strict=True):
            lines = []
            for name, members in groups.items():
                count = int(members.sum())
                start = count // EARLY_GROUPS
                bias = np.abs(running_mean(run.errors[members]))[start:]
                so_far = np.arange(start + 1, count + 1)
                lines.append(plot.course(bias, f"{name} ({count:,})", drawn[name], so_far))
            top = max(top, *(1.03 * float(line.y.max()) for line in lines))
            y = f"absolute bias, {unit}" if run is runs[0] else ""
            legend = "outside" if run is runs[-1] else ""
            panels.append(plot.Panel(f"{title}: {kind}", members_so_far, y, lines, legend=legend))
    return [replace(panel, y_limits=(0.0, top)) for panel in panels]
