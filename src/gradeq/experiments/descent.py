"""Debiasing as the paper runs it, with everything its figures need along the way."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradeq.engine.learner import Learner
from gradeq.experiments.averages import Floats
from gradeq.links import Identity, Link, Shift
from gradeq.losses import Logistic, Loss, Squared
from gradeq.schedules import Schedule

Step = float | Schedule | None


class Descent(NamedTuple):
    """One run: the adjusted predictions, their errors served - y, the paper's loss, theta after the last update."""

    served: Floats
    errors: Floats
    losses: Floats
    theta: Floats


def debias_probabilities(p: Floats, y: Floats, step: Step, rows: Any = None) -> Descent:
    """alg:simple-debias-logistic, and with rows of groups alg:multigroup-debias-logistic (corrected).

    Descent on the logistic loss on [-1, 1] of the residual y - p; p + 2 sigma(z'theta) - 1 is served. No step: the
    base model.
    """
    return _descend(Logistic(-1.0, 1.0), Shift(), p, y - p, y, step, rows)


def debias_reals(f: Floats, y: Floats, step: Step, rows: Any = None) -> Descent:
    """alg:simple-debias-squared, and with rows of groups alg:multigroup-debias-squared: f + z'theta is served."""
    return _descend(Squared(), Identity(), f, y - f, y, step, rows)


def values(loss: Loss, u: Floats, y: Floats) -> Floats:
    """The loss of every row."""
    return np.array([loss.value(a, b) for a, b in zip(u.tolist(), y.tolist(), strict=True)])


def serve(link: Link, f: Floats, margins: Floats) -> Floats:
    """What the link serves for every row."""
    pairs = zip(f.tolist(), margins.tolist(), strict=True)
    return np.array([link.serve(base, m) for base, m in pairs])


def indicators(*columns: Any) -> tuple[Floats, list[str]]:
    """One indicator per value of every column, values in alphabetical order, and their names."""
    parts, names = [], []
    for column in columns:
        found = np.unique(column)
        parts.append((np.asarray(column)[:, None] == found[None, :]).astype(np.float64))
        names += [str(name) for name in found]
    return np.hstack(parts), names


def _descend(
    loss: Loss, link: Link, base: Floats, residuals: Floats, y: Floats, step: Step, rows: Any
) -> Descent:
    dimension = 1 if rows is None else rows.shape[1]
    if step is None:
        margins, theta = np.zeros(len(y)), np.zeros(dimension)
    else:
        learner = Learner(loss, step)
        run = learner.run(learner.start(dimension), rows, residuals)
        margins, theta = run.served, run.state.theta
    served = serve(link, base, margins)
    return Descent(served, served - y, values(loss, margins, residuals), theta)
