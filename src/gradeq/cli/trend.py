"""The run over time: trailing means for the charts, and whether the labels changed on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradeq.cli.measure import WEIGHT
from gradeq.cli.task import Parsed, Task
from gradeq.files.numbers import Floats
from gradeq.report.story import Axis
from gradeq.report.thin import Blocks

TRACKED = 3  # levels whose coverage is drawn
WEIGHTED_LABEL = "weighted_label"


class Trend:
    """Sums of values, labels and losses over blocks of labelled rows, in bounded memory."""

    def __init__(self, task: Task) -> None:
        names = ["before", "after", "label", "label_squared", "loss_before", "loss_after"]
        if task.command == "quantile":
            names += ["upper_before", "upper_after", *tracked(task)]
        if task.common.weight is not None:
            names += [WEIGHT, WEIGHTED_LABEL]
        self.names = tuple(names)
        self.blocks = Blocks(self.names)
        self.begin: float | None = None
        self.end: float | None = None

    def add(
        self,
        x: Floats,
        base: Floats,
        served: Floats,
        y: Floats,
        judged: Mapping[str, Floats],
        weights: Floats | None,
    ) -> None:
        """Take labelled rows; the labels stay unweighted too, a change of theirs is found in them."""
        columns: dict[str, Floats] = {
            "before": base[:, 0],
            "after": served[:, 0],
            "upper_before": base[:, -1],
            "upper_after": served[:, -1],
            **judged,
        }
        if weights is not None:
            columns = {name: weights * column for name, column in columns.items()}
            columns |= {WEIGHT: weights, WEIGHTED_LABEL: weights * y}
        columns |= {"label": y, "label_squared": y * y}
        if len(x):
            self.begin = float(x[0]) if self.begin is None else self.begin
            self.end = float(x[-1])
            self.blocks.add({name: columns[name] for name in self.names}, x)


def weighted(means: Mapping[str, Any]) -> dict[str, Any]:
    """Means of weighted columns divided by that of the weights; other means as they are."""
    found = dict(means)
    if WEIGHT not in found:
        return found
    weight = found.pop(WEIGHT)
    if WEIGHTED_LABEL in found:
        found["label"] = found.pop(WEIGHTED_LABEL)
    return {name: mean / weight for name, mean in found.items()}


def tracked(task: Task) -> list[str]:
    """The coverages that are followed: of the interval, or of the first levels."""
    return [f"{own}_{when}" for own in task.errors[:TRACKED] for when in ("before", "after")]


def axis_of(reading: Any) -> tuple[Axis, str]:
    """How x reads, and its name."""
    if reading.time is None:
        return "row", "row"
    return ("date" if reading.time.kind == "time" else "number"), reading.time.name


def positions(rows: Parsed, axis: Axis) -> Floats:
    """x of each row of a piece: seconds since 1970, the time as a number, or the row number."""
    import numpy as np

    piece = rows.piece
    if axis == "row":
        return np.arange(piece.start + 1, piece.start + piece.length + 1, dtype=float)
    times: Floats = piece.times.astype(float)
    return times / 1e9 if axis == "date" else times
