"""What people write by hand: the quantile of the first scores, for ever, or of the last ones."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.online.window import Window


def once(scores: Sequence[float], level: float, warm: int) -> list[float]:
    """Split conformal prediction: the quantile of the first ``warm`` scores, never renewed."""
    window = Window(warm)
    for score in scores[:warm]:
        window.add(score)
    return [window.quantile(level)] * len(scores)


def rolling(scores: Sequence[float], level: float, warm: int) -> list[float]:
    """The quantile of the last 500 scores."""
    window, found = Window(), []
    for score in scores:
        found.append(window.quantile(level))
        window.add(score)
    return found
