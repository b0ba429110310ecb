"""Average errors of a stream: in its worst window of 500 rows, in its worst group of 200 rows or more."""

from __future__ import annotations

from typing import Any

import numpy as np

WINDOW, GROUP = 500, 200


def worst_window(errors: Any) -> float:
    """The largest size of the mean error over any 500 rows in a row; over all of them where there are fewer."""
    length = min(WINDOW, len(errors))
    sums = np.concatenate([[0.0], np.cumsum(errors)])
    return float(np.abs(sums[length:] - sums[:-length]).max() / length)


def worst_group(group: Any, errors: Any) -> float | None:
    """The largest size of the mean error of any group with enough rows; None where no group has."""
    _, codes = np.unique(group, return_inverse=True)
    rows, own = np.bincount(codes), np.bincount(codes, errors)
    enough = rows >= GROUP
    return float(np.abs(own[enough] / rows[enough]).max()) if enough.any() else None
