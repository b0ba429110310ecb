"""Elo without a given step: filters mixed by their log loss, and one small constant step on the logit of the mix.

The filters expect strengths to drift, each at another speed, the first not at all; their weights say what the games
say about drift. The certificate is that of the step alone (result B5); filters and weights only choose what is served
next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gradeq.errors import BadInput
from gradeq.kernels import forecaster as loops
from gradeq.kernels.forecaster import NEWCOMER, NO_DATE, Filters
from gradeq.kernels.rating import STRIDE, gap, offset, win_chance
from gradeq.ledger.batch import Batch
from gradeq.ledger.meetings import tally
from gradeq.ledger.state import LEAST, MEAN, MOST, MOVE, Column, State, column
from gradeq.ledger.values import Place, Posting
from gradeq.rules.passes import IDLE
from gradeq.rules.rating import (
    COIN,
    JUDGE,
    WORK,
    Game,
    Rating,
    check,
    check_reach,
    game_of,
    games_of,
    kept_of,
    play_all,
    sides,
    tally_batch,
)
from gradeq.rules.rule import Judged
from gradeq.schedules import Constant

FINAL = 0.01
A_GAME = (0.0, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)  # the first: strengths are constant
A_YEAR = (3e-3, 1e-2, 3e-2, 1e-1, 3e-1)  # where games have dates
YEAR = 365.25 * 86400e9  # in nanoseconds, the unit of dates
BY_GAME = Filters(A_GAME, (0.0,) * len(A_GAME))
BY_DATE = Filters(A_GAME + (0.0,) * len(A_YEAR), BY_GAME.years + A_YEAR)


@dataclass(frozen=True)
class Forecaster:
    """``drop``: a score of 1/2 is no game. The step, and what the late-label cap may hold back, is the final one.

    ``dates``: games have dates, and strengths may drift by the year.
    """

    drop: bool = False
    dates: bool = False

    width = 1
    stride = STRIDE
    penalty = None
    schedule = Constant(FINAL)

    @cached_property
    def final(self) -> Rating:
        """The step that carries the certificate."""
        return Rating(self.schedule, drop=self.drop)

    @cached_property
    def drifts(self) -> Filters:
        """What the filters expect of drift."""
        return BY_DATE if self.dates else BY_GAME

    @property
    def _speeds(self) -> tuple[Any, Any]:
        return self.drifts.games, self.drifts.years

    @property
    def filters(self) -> int:
        """How many there are."""
        return len(self.drifts.games)

    def columns(self) -> list[Column]:
        """Those of the final step; what each filter knows, what it was taught and when, and the filters' losses."""
        prior = (0.5,) + (0.5 / (self.filters - 1),) * (self.filters - 1)  # constant: one half
        return [
            *self.final.columns(),
            column("experts", "parameter", (0.0,) * self.filters, MEAN, by="taught"),
            column("spreads", "parameter", (NEWCOMER,) * self.filters, LEAST),
            column("taught", "parameter", (0.0,)),
            column("last", "parameter", (NO_DATE,), MOST),
            column("losses", "layer", (-math.log(share) for share in prior), MOVE),
        ]

    def weights(self, state: State) -> Any:
        """The share of each filter in the mix; the first is the one that expects no drift."""
        losses = state.view("losses")
        shares = np.exp(losses.min() - losses)
        return shares / shares.sum()

    def shown(self, state: State) -> Any:
        """The strengths by the heaviest filter."""
        return state.view("experts")[int(np.argmax(self.weights(state))) :: self.filters]

    def now(self, state: State) -> tuple[Any, Any]:
        """Strengths by the heaviest filter that expects drift, and their variances at the time of the last game."""
        k, last = self.drifting(state), state.view("last")
        more = self.drifts.years[k] * (last.max(initial=NO_DATE) - last)
        more[0] = 0.0  # the first side drifts by the game
        spreads = np.minimum(NEWCOMER, state.view("spreads")[k :: self.filters] + more)
        return state.view("experts")[k :: self.filters], spreads

    def drifting(self, state: State) -> int:
        """The heaviest filter that expects drift."""
        return 1 + int(np.argmax(self.weights(state)[1:]))

    def speed(self, k: int) -> tuple[float, str]:
        """What filter k expects: the variance that a strength gains, and in what."""
        a_game, a_year = self.drifts.games[k], self.drifts.years[k]
        return (a_year, "year") if a_year else (a_game, "game")

    def tracked(self, state: State) -> Any:
        """The parameters that carry the certificate."""
        return state.view("u")

    def year(self, time: float | None) -> float:
        """A time in years, if games have dates."""
        return NO_DATE if time is None or not self.dates else time / YEAR

    def glance(
        self, state: State, a: int, b: int, h: float, time: float | None = None
    ) -> tuple[float, tuple[float, ...]]:
        """The mix, moved by the final step; noted are what the filters said, their mix, and the time."""
        memo = [0.0] * (self.filters + 2)
        o = offset(loops.speak(*self._speeds, state, a, b, h, self.year(time), memo))
        return win_chance(o + gap(state.u, a, b, 0, h)), tuple(memo)

    def serve(
        self,
        state: State,
        place: Place,
        values: tuple[float, ...],
        f: float,
        time: float | None = None,
    ) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        """The same: a late score needs no more."""
        return (*self.glance(state, *sides(place, values), time), ())

    def judge(self, served: float, base: float, y: float, memo: tuple[float, ...]) -> Judged:
        """The error and log loss of what was served, and of a coin."""
        return self.final.judge(served, base, y, memo)

    def add(self, state: State, place: Place, posting: Posting) -> None:
        """The final step is taken; a first score also teaches the filters, a correction their losses alone."""
        memo = posting.memo
        if len(memo) != self.filters + 2:
            raise BadInput("this game does not say what was mixed; post it where it was served")
        if self.drop and posting.y == COIN:
            return
        game = game_of(place, posting)
        if posting.first:
            self.play(state, game, posting.served, memo)
            return
        self.final.amend(state, game, posting)
        for k in range(self.filters):
            state.losses[k] += posting.sign * posting.weight * JUDGE.value(memo[k], posting.y)

    def play(self, state: State, game: Game, p: float, memo: Any) -> None:
        """Learn from a game served as p, of which the filters said ``memo``."""
        check_reach(state.u, game, 1.0)
        loops.forecast(JUDGE, *self._speeds, state, game, p, memo)
        tally(state, game)

    def written(self, state: State) -> State:
        """A copy whose log loss is what it means."""
        return self.final.written(state)

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """One pass; the caller undoes it if this raises."""
        games, n = games_of(batch), len(batch.base)
        memos = np.empty((1 if batch.at_once else max(n, 1), self.filters + 2))
        for k, ticket in enumerate(batch.carried):
            memos[k] = ticket.memo
        dated = self.dates and batch.times is not None
        when = np.asarray(batch.times) / YEAR if dated else np.full(n, NO_DATE)
        kept = kept_of(state)._replace(memos=memos, when=when)
        play_all((self.drifts, self.final.pull, IDLE), batch, games, kept, 8 * WORK)
        check(kept.u, FINAL)
        tally_batch(state, batch, games)
        return games.served, memos
