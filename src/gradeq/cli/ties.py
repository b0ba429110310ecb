"""Whether many labels are one value (no demand at all), and what that and limits mean for coverage."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradeq.files.numbers import Floats
from gradeq.report.limits import clipped_coverage, tied_labels
from gradeq.report.story import Notice

OFTEN = 0.05  # of the labels: a level inside such a tie has no value of its own
MOSTLY = 0.2  # of the labels: worth saying whatever the levels


class Ties:
    """Counts of the most common label: which it is shows in the first piece, how often over all of them."""

    def __init__(self) -> None:
        self.value: float | None = None
        self.labels = self.below = self.equal = 0

    def add(self, y: Floats) -> None:
        """Take the labels of a piece, none of them missing."""
        if not len(y):
            return
        if self.value is None:
            values, counts = np.unique(y, return_counts=True)
            self.value = float(values[np.argmax(counts)])
        self.labels += len(y)
        self.below += int(np.count_nonzero(y < self.value))
        self.equal += int(np.count_nonzero(y == self.value))


def tie_notices(outcome: Any, ties: Ties) -> list[Notice]:
    """What limits and ties mean for the coverage of this run."""
    task = outcome.task
    if task.command != "quantile" or not outcome.counted:
        return []
    found = []
    low, high = task.support or (None, None)
    if task.support is not None:
        from gradeq.cli.summary import coverages

        found.append(clipped_coverage(low, high, coverages(outcome), outcome.used("loss")[1]))
    if ties.value is None or ties.labels < 1:
        return found
    below, equal = ties.below / ties.labels, ties.equal / ties.labels
    inside = [level for level in task.levels if below < float(level) < below + equal]
    if equal >= MOSTLY or (inside and equal >= OFTEN):
        ends = task.interval is not None
        found.append(tied_labels(ties.value, below, equal, inside, ties.value == low, ends))
    return found
