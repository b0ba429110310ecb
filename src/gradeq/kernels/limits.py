"""What limits on the shown value change for quantiles that are judged before: coverage and loss, label by label.

Entry j * CHANGES * count + CHANGES * k of ``limited`` is how many labels of parameter j are covered more (or fewer)
at level k, the next one what is added to their loss, both weighted.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

from gradeq.kernels.account import Floats
from gradeq.losses import pinball
from gradeq.numerics import within

CHANGES = 2


@dataclass(frozen=True)
class Limits:
    """``interval``: the first level is the lower end of an interval.

    That end is inclusive where it lies at a limit; else a label there would count as outside.
    """

    taus: tuple[float, ...]
    low: float
    high: float
    interval: bool

    def covers(self, k: int, shown: float, y: float) -> float:
        """1 if a label counts as at or below what is shown at level k, else 0."""
        if self.interval and k == 0 and (shown == self.low or shown == self.high):
            return 1.0 if y < shown else 0.0
        return 1.0 if y <= shown else 0.0

    def enter(
        self, k: int, s: float, y: float, w: float, sign: float, changes: Floats, at: int
    ) -> None:
        """Enter what the limits change at level k for one label; the value before them is s."""
        shown, tau = within(s, self.low, self.high), self.taus[k]
        more = self.covers(k, shown, y) - (1.0 if y <= s else 0.0)
        changes[at] = changes[at] + sign * (w * more)
        lost = pinball(tau, shown, y) - pinball(tau, s, y)
        changes[at + 1] = changes[at + 1] + sign * (w * lost)


class Posted(
    namedtuple("Posted", "count served labels weights starts index posts limited total_limited")
):
    """The labels of a run in the order of posting, and where they are entered; ``served`` is flat, row after row."""


def enter_limited(limits: Limits, rows: Posted) -> None:
    """Enter the labels of a run in the order of posting."""
    width = CHANGES * rows.count
    for p in range(len(rows.posts)):
        i = rows.posts[p]
        y, w = rows.labels[i], rows.weights[i]
        for k in range(rows.count):
            s = rows.served[i * rows.count + k]
            for a in range(rows.starts[i], rows.starts[i + 1]):
                limits.enter(k, s, y, w, 1.0, rows.limited, rows.index[a] * width + CHANGES * k)
            if len(rows.total_limited) > 0:
                limits.enter(k, s, y, w, 1.0, rows.total_limited, CHANGES * k)
