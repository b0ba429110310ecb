"""What the games say about drift: filters that expect strengths to drift at various speeds, the first not at all.

Their shares in a mixture by log loss are the evidence; the heaviest that expects drift gives the strengths of the
moment. A forecaster serves from them; with a step of its own, Elo only reads them, on demand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, TypedDict

import numpy as np

from gradeq.kernels.choice import run_loop
from gradeq.kernels.forecaster import NEWCOMER, NO_DATE, Filters, FilterWatch, ScoredGames, watched
from gradeq.ledger import pair_table
from gradeq.ledger.state import LEAST, MEAN, MOST, TIMES, Column, State, column
from gradeq.losses import Loss

A_GAME = (0.0, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)  # the first: strengths are constant
A_YEAR = (3e-3, 1e-2, 3e-2, 1e-1, 3e-1)  # where games have dates
YEAR = 365.25 * 86400e9  # in nanoseconds, the unit of dates
BY_GAME = Filters(A_GAME, (0.0,) * len(A_GAME))
BY_DATE = Filters(A_GAME + (0.0,) * len(A_YEAR), BY_GAME.years + A_YEAR)
WORK = 40  # a game is worth so many rows of a plain layer when the compiler is weighed


class DriftWeights(TypedDict):
    """The weight of each speed of drift by name, and that of none."""

    weights: dict[str, float]
    constant: float


@dataclass(frozen=True)
class Drift:
    """``dates``: games have dates, and strengths may drift by the year."""

    dates: bool = False

    @cached_property
    def filters(self) -> Filters:
        return BY_DATE if self.dates else BY_GAME

    @cached_property
    def count(self) -> int:
        return len(self.filters.games)

    def columns(self) -> list[Column]:
        """What each filter knows, what it was taught and when, and the filters' shares."""
        rest = self.count - 1
        return [
            column("experts", "parameter", (0.0,) * self.count, MEAN, by="taught"),
            column("spreads", "parameter", (NEWCOMER,) * self.count, LEAST, low=0.0),
            column("taught", "parameter", (0.0,), low=0.0),
            column("last", "parameter", (NO_DATE,), MOST),
            column("shares", "layer", (0.5,) + (0.5 / rest,) * rest, TIMES, low=0.0),
        ]

    def weights(self, state: State) -> Any:
        """The share of each filter in the mix; the first is the one that expects no drift."""
        shares = state.read().view("shares")
        return shares / shares.sum()

    def heaviest(self, state: State) -> Any:
        return self.strengths(state, int(np.argmax(self.weights(state))))

    def strengths(self, state: State, k: int) -> Any:
        return state.view("experts")[k :: self.count]

    def drifting(self, state: State) -> int:
        return 1 + int(np.argmax(self.weights(state)[1:]))

    def now(self, state: State) -> tuple[Any, Any]:
        """Strengths by the heaviest filter that expects drift, and their variances at the time of the last game."""
        k, last = self.drifting(state), state.view("last")
        more = self.filters.years[k] * (last.max(initial=NO_DATE) - last)
        more[0] = 0.0  # the first side drifts by the game
        spreads = np.minimum(NEWCOMER, state.view("spreads")[k :: self.count] + more)
        return self.strengths(state, k), spreads

    def speed(self, k: int) -> tuple[float, str]:
        """What filter k expects: the variance that a strength gains, and in what."""
        a_game, a_year = self.filters.games[k], self.filters.years[k]
        return (a_year, "year") if a_year else (a_game, "game")

    def evidence(self, state: State) -> DriftWeights:
        """The weight of each speed by name, and of none."""
        weights = self.weights(state).tolist()
        speeds = ["constant", *("{:g} a {}".format(*self.speed(k)) for k in range(1, self.count))]
        return {"weights": dict(zip(speeds, weights, strict=True)), "constant": weights[0]}

    def year(self, time: float | None) -> float:
        return NO_DATE if time is None or not self.dates else time / YEAR

    def years(self, times: object, n: int) -> Any:
        return np.full(n, NO_DATE) if times is None or not self.dates else np.asarray(times) / YEAR

    def watch(self, loss: Loss, state: State, games: ScoredGames) -> None:
        """Let the filters hear games that were served without them."""
        kept = FilterWatch._make([state.view(n) for n in FilterWatch._fields[:-1]] + [np.empty(self.count + 2)])
        run_loop(watched, (self.filters, loss, games, kept), (), WORK * len(games.a))


NO_DATES = Drift()


def enter_scores(state: State, unread: list[Any]) -> ScoredGames:
    """Enter unread games, one (a, b, h, y, w, year, sign, given) each or columns of them, into the pair table.

    The table takes weights as they were given: relative ones depend on the order of games, and it does not. A sign
    of 0 marks a correction of another. Returned are the first scores of games, in order.
    """
    parts: list[Any] = []
    for many, own in groupby(unread, lambda entry: isinstance(entry[0], np.ndarray)):
        entries = list(own)
        parts += entries if many else [np.array(entries).T]
    a, b, h, y, w, year, sign, given = (np.concatenate(column) for column in zip(*parts, strict=True))
    a, b = a.astype(np.int64), b.astype(np.int64)
    pair_table.tally(state, a, b, h, y, given, np.where(sign < 0.0, -1.0, 1.0))
    games = ScoredGames(a, b, h, y, w, year)
    first = sign > 0.0
    return games if first.all() else ScoredGames(*(column[first] for column in games))
