"""Bradley-Terry strengths in batch: Bradley and Terry (1952), p = sigmoid(strength_a - strength_b).

Maximum likelihood by Newton's method. Each player also has one drawn game against a player of strength 0, which keeps
strengths finite and gives players never seen 0. Fitted once to the first games, or every 500 games to all so far or
to the last 10,000.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.online.platt import sigmoid

EVERY, LAST = 500, 10_000
STEPS, CLOSE = 100, 1e-8


def once(a: Any, b: Any, score: Any, first: int) -> Any:
    """Fitted to the first games, never renewed; a coin before that."""
    strength = fitted(a[:first], b[:first], score[:first], players(a, b))
    return np.where(np.arange(len(a)) < first, 0.5, sigmoid(strength[a] - strength[b]))


def refitted(a: Any, b: Any, score: Any, last: int | None = None) -> Any:
    """Fitted every 500 games, to all so far or to the ``last`` ones."""
    served, strength = np.full(len(a), 0.5), np.zeros(players(a, b))
    for now in range(EVERY, len(a), EVERY):
        known = slice(0 if last is None else max(0, now - last), now)
        strength = fitted(a[known], b[known], score[known], len(strength), strength)
        coming = slice(now, now + EVERY)
        served[coming] = sigmoid(strength[a[coming]] - strength[b[coming]])
    return served


def fitted(a: Any, b: Any, score: Any, count: int, start: Any = None) -> Any:
    """The strengths of ``count`` players; Newton steps of at most 1, from ``start`` if there is one."""
    pairs, place = np.unique(a * count + b, return_inverse=True)
    one, other = pairs // count, pairs % count
    games, wins = np.bincount(place).astype(float), np.bincount(place, score)
    strength = np.zeros(count) if start is None else start.copy()
    for _ in range(STEPS):
        p = sigmoid(strength[one] - strength[other])
        draw = sigmoid(strength)
        off, bend = games * p - wins, games * p * (1.0 - p)
        slope = np.bincount(one, off, count) - np.bincount(other, off, count) + draw - 0.5
        matrix = np.diag(np.bincount(one, bend, count) + np.bincount(other, bend, count))
        matrix[np.diag_indices(count)] += draw * (1.0 - draw)
        np.subtract.at(matrix, (one, other), bend)
        np.subtract.at(matrix, (other, one), bend)
        step = np.linalg.solve(matrix, slope)
        strength -= step / max(1.0, np.abs(step).max())
        if np.abs(step).max() < CLOSE:
            break
    return strength


def players(a: Any, b: Any) -> int:
    """How many there are, by the largest number."""
    return 1 + int(max(a.max(), b.max()))
