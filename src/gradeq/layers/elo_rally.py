"""Games that are scored at once, one after the other: only ratings move, and the rest is entered together.

Nothing but two ratings is needed to serve a plain game and to learn from it. Accounts, counts and facts of the games
since are those of a run over them as columns, which gives the same bits as one game at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradeq.engine.columns import Columns
from gradeq.engine.players import Players
from gradeq.kernels.rating import move, win_chance
from gradeq.ledger.pairs import Pairs
from gradeq.rules.rating import COIN

MANY = 10_000  # games, then they are entered


class Rally(dict[int, float]):
    """The ratings of those who played since ``u`` was written, by number, and their ``games``."""

    __slots__ = ("eta", "games", "u")

    def __init__(self, u: Any, eta: float) -> None:
        self.u, self.eta = u, eta
        self.games: list[tuple[int, int, float]] = []

    def __missing__(self, j: int) -> float:
        rating: float = self.u[j]
        self[j] = rating
        return rating

    def chance(self, a: int, b: int) -> float:
        """The probability that a wins."""
        return win_chance(self[a] - self[b])

    def play(self, a: int, b: int, y: float) -> bool:
        """Move both ratings; whether it is time to enter the games."""
        move(self, a, b, 0, 0.0, self.eta, win_chance(self[a] - self[b]) - y, 1.0)
        self.games.append((a, b, y))
        return len(self.games) >= MANY

    def columns(self, names: Players) -> Columns:
        """The games as columns."""
        a, b, y = np.array(self.games).T.copy()
        pairs = Pairs(a.astype(np.int64), b.astype(np.int64), np.zeros(names.count))
        np.add.at(pairs.counts, pairs.params, 1.0)
        return Columns(np.broadcast_to(COIN, len(y)), y, None, names.columns(pairs, None))
