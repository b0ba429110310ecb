"""Recalibration as it is mostly done: a fit to the first labels for ever, or to the last ones, renewed now and then.

A fit takes predictions and labels and gives the function that is then applied to new predictions. Until there is a
fit, predictions are served as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Fit = Callable[[Any, Any], Callable[[Any], Any]]

LENGTH, EVERY = 500, 50


def once(fit: Fit, f: Any, y: Any, warm: int) -> Any:
    """Fitted to the first ``warm`` labels, never renewed."""
    return np.concatenate([f[:warm], fit(f[:warm], y[:warm])(f[warm:])])


def rolling(fit: Fit, f: Any, y: Any) -> Any:
    """Fitted to the last 500 labels, every 50 rows."""
    served = f.astype(float)
    for now in range(EVERY, len(f), EVERY):
        known, coming = slice(max(0, now - LENGTH), now), slice(now, now + EVERY)
        served[coming] = fit(f[known], y[known])(f[coming])
    return served


def in_groups(rule: Callable[[Any, Any], Any], f: Any, y: Any, group: Any) -> Any:
    """The same rule in every group by itself."""
    served = np.empty(len(f))
    for name in np.unique(group):
        rows = np.flatnonzero(group == name)
        served[rows] = rule(f[rows], y[rows])
    return served
