"""Did the labels change along the way? The one cut where their mean jumps most, if it jumps far."""

from typing import NamedTuple

import numpy as np

from gradeq.report.thin import Blocks


class Change(NamedTuple):
    """A cut of the stream: rows on both sides, x of the first row after it, means by column."""

    x: float
    rows_before: int
    rows_after: int
    before: dict[str, float]
    after: dict[str, float]


def label_change(
    blocks: Blocks,
    label: str = "label",
    square: str = "label_squared",
    least_share: float = 0.05,
    least_jump: float = 1.0,
) -> Change | None:
    """Find a lasting jump of the mean label, or None.

    The cut maximises the between-parts sum of squares (least squares with one step). It counts
    as a change when each part has ``least_share`` of the rows, at least 100, and the means differ
    by ``least_jump`` standard deviations *within* the parts. Seasons and drift of ordinary size
    stay below one deviation; a collection fault is far above. A cut lies between blocks, so it
    is exact to the row while a block is one row.
    """
    counts, first, sums = blocks.blocks()
    rows = float(counts.sum())
    left = np.cumsum(counts)[:-1].astype(np.float64)
    right = rows - left
    least = max(100.0, least_share * rows)
    # Rows of one time stay together: a cut lies where x moves on.
    moves = first[1:] > first[:-1]
    if not moves.any():
        return None
    total = np.cumsum(sums[label])
    mean_left = total[:-1] / left
    mean_right = (total[-1] - total[:-1]) / right
    between = np.where(moves, left * right / rows * (mean_right - mean_left) ** 2, -1.0)
    cut = int(np.argmax(between))
    allowed = moves & (left >= least) & (right >= least)
    if not allowed[cut]:
        return None
    spread = float(sums[square].sum()) - float(total[-1]) ** 2 / rows - float(between[cut])
    within = np.sqrt(max(spread, 0.0) / rows)
    if abs(float(mean_right[cut] - mean_left[cut])) <= least_jump * within:
        return None
    # If nearly all that follows is one constant, the change is where the constant begins.
    steady = sums[label] * float(counts[-1]) == counts * float(sums[label][-1])
    steady &= sums[square] * counts == sums[label] ** 2
    start = len(steady) - int(np.argmin(steady[::-1])) - 1
    moved = np.flatnonzero(allowed[start:])
    if not steady.all() and len(moved) and right[start + moved[0]] >= 0.95 * right[cut]:
        cut = start + int(moved[0])
    before = {name: float(column[: cut + 1].sum() / left[cut]) for name, column in sums.items()}
    after = {name: float(column[cut + 1 :].sum() / right[cut]) for name, column in sums.items()}
    return Change(float(first[cut + 1]), int(left[cut]), int(right[cut]), before, after)
