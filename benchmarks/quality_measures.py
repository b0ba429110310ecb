"""How good it was: bias (of quantiles: coverage error) overall, in the worst group, by group and month, and loss.

Over all rows, those included whose label the layer never saw. Groups, and groups within a month, count from 30 rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality_streams import LEVEL, Stream

ROWS = 30


class Measured(NamedTuple):
    """Bias is that of coverage for quantiles; the loss is the squared error, or the pinball loss."""

    bias: float
    worst_group: float
    group_month: float
    loss: float


def measured(stream: Stream, served: Any) -> Measured:
    """All four of what was served."""
    y = stream.y
    if stream.kind == "quantile":
        errors = (y <= served) - LEVEL
        losses = np.maximum(LEVEL * (y - served), (LEVEL - 1.0) * (y - served))
    else:
        errors, losses = served - y, (served - y) ** 2
    _, group = np.unique(stream.group, return_inverse=True)
    months = stream.month - stream.month.min()
    by_month = biases(group * (months.max() + 1) + months, errors)
    by_group = biases(group, errors)
    return Measured(
        abs(float(errors.mean())),
        float(by_group.max(initial=0.0)),
        float(by_month.mean()) if len(by_month) else 0.0,
        float(losses.mean()),
    )


def biases(cells: Any, errors: Any) -> Any:
    """The size of the mean error of every cell that has enough rows."""
    rows, sums = np.bincount(cells), np.bincount(cells, errors)
    return np.abs(sums[rows >= ROWS] / rows[rows >= ROWS])
