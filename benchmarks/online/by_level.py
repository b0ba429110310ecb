"""Every level tracked by itself: a rule for thresholds follows label - forecast at each level; levels may cross."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def by_level(rule: Callable[[Sequence[float], float, int], Any], f: Any, y: Any, levels: Any, warm: int) -> Any:
    """One column for each level. Where a threshold is infinite: the largest |label - forecast| so far instead."""
    served = np.empty(f.shape)
    for k, tau in enumerate(levels):
        scores = y - f[:, k]
        most = np.concatenate([[0.0], np.maximum.accumulate(np.abs(scores))[:-1]])
        q = np.array(rule(scores.tolist(), float(tau), warm))
        served[:, k] = f[:, k] + np.where(np.isfinite(q), q, np.copysign(most, q))
    return served
