"""MultiQT: Ding, Gibbs and Tibshirani, "Calibrated multi-level quantile forecasting" (2025, arXiv 2512.23671).

    served = isotonic projection of forecasts + u,    u_k <- u_k + step (1{y > served_k} - (1 - tau_k))

The step is that of their experiments, one for all levels: 0.1 times the 0.9 quantile of |label - forecast| over the
last 50 rows and all levels. Their code keeps it at 0.1 or more in the unit of deaths; labels here come in any unit,
so that floor is left out. gradeq tracks the same lazily projected levels; its step has no unit (link sinh).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

SHARE, QUANTILE, LAST = 0.1, 0.9, 50
AT_ONCE = 5000  # rows whose windows are sorted together, so that they fit into memory


def multiqt(f: Any, y: Any, levels: Any) -> Any:
    """The quantiles that are served, one column for each level."""
    u, found = [0.0] * len(levels), []
    rows = zip(f.tolist(), y.tolist(), steps(f, y).tolist(), strict=True)
    for forecasts, label, step in rows:
        served = increasing([base + own for base, own in zip(forecasts, u, strict=True)])
        found.append(served)
        u = [own + step * ((label > q) - (1.0 - tau)) for own, q, tau in zip(u, served, levels, strict=True)]
    return np.array(found)


def steps(f: Any, y: Any) -> Any:
    """The step that is taken after each row: it depends on forecasts and labels only."""
    sizes = np.abs(y[:, None] - f)
    first = [np.quantile(sizes[: t + 1], QUANTILE) for t in range(min(LAST - 1, len(y)))]
    if len(y) < LAST:
        return SHARE * np.array(first)
    windows = sliding_window_view(sizes, LAST, axis=0)
    parts = (windows[t : t + AT_ONCE] for t in range(0, len(windows), AT_ONCE))
    rest = [np.quantile(part, QUANTILE, axis=(1, 2)) for part in parts]
    return SHARE * np.concatenate([first, *rest])


def increasing(values: list[float]) -> list[float]:
    """The closest increasing sequence in squared distance: neighbours in the wrong order are pooled."""
    means: list[float] = []
    counts: list[int] = []
    for value in values:
        mean, count = value, 1
        while means and means[-1] > mean:
            before, many = means.pop(), counts.pop()
            mean, count = (before * many + mean * count) / (many + count), many + count
        means.append(mean)
        counts.append(count)
    return [mean for mean, count in zip(means, counts, strict=True) for _ in range(count)]
