"""Elo ratings: Elo, "The rating of chessplayers, past and present" (1978), with a constant K and no home advantage.

    p = 1 / (1 + 10^((r_b - r_a) / 400)),    r_a <- r_a + K (score - p),    r_b <- r_b - K (score - p)

K = 4: the notebook of the Chatbot Arena. K = 16: usual between strong chess players. K = 32: the textbook's, and the
default of many packages.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def elo(a: Any, b: Any, score: Any, k: float) -> Any:
    """The chance of a before each game; players are numbers from 0."""
    ratings, found = [0.0] * (1 + int(max(a.max(), b.max()))), []
    for one, other, won in zip(a.tolist(), b.tolist(), score.tolist(), strict=True):
        p = 1.0 / (1.0 + 10.0 ** ((ratings[other] - ratings[one]) / 400.0))
        found.append(p)
        ratings[one] += k * (won - p)
        ratings[other] -= k * (won - p)
    return np.array(found)
