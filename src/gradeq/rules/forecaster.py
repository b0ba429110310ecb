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
from gradeq.kernels.forecaster import DRIFTS, FILTERS, MEMO, NEWCOMER
from gradeq.kernels.rating import STRIDE, gap, offset, win_chance
from gradeq.ledger.batch import Batch
from gradeq.ledger.meetings import tally
from gradeq.ledger.state import LEAST, MEAN, MOVE, Column, State, column
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
PRIOR = (0.5,) + (0.5 / (FILTERS - 1),) * (FILTERS - 1)  # that strengths are constant: one half


@dataclass(frozen=True)
class Forecaster:
    """``drop``: a score of 1/2 is no game. The step, and what the late-label cap may hold back, is the final one."""

    drop: bool = False

    width = 1
    stride = STRIDE
    penalty = None
    schedule = Constant(FINAL)

    @cached_property
    def final(self) -> Rating:
        """The step that carries the certificate."""
        return Rating(self.schedule, drop=self.drop)

    def columns(self) -> list[Column]:
        """Those of the final step; what each filter knows, how much it was taught, and the filters' losses."""
        return [
            *self.final.columns(),
            column("experts", "parameter", (0.0,) * FILTERS, MEAN, by="taught"),
            column("spreads", "parameter", (NEWCOMER,) * FILTERS, LEAST),
            column("taught", "parameter", (0.0,)),
            column("losses", "layer", (-math.log(share) for share in PRIOR), MOVE),
        ]

    def weights(self, state: State) -> Any:
        """The share of each filter in the mix; the first is the one that expects no drift."""
        losses = state.view("losses")
        shares = np.exp(losses.min() - losses)
        return shares / shares.sum()

    def shown(self, state: State) -> Any:
        """The strengths by the heaviest filter."""
        return state.view("experts")[int(np.argmax(self.weights(state))) :: FILTERS]

    def now(self, state: State) -> tuple[Any, Any, float]:
        """Strengths and variances by the heaviest filter that expects drift, and the drift it expects."""
        k = 1 + int(np.argmax(self.weights(state)[1:]))
        return state.view("experts")[k::FILTERS], state.view("spreads")[k::FILTERS], DRIFTS[k]

    def tracked(self, state: State) -> Any:
        """The parameters that carry the certificate."""
        return state.view("u")

    def glance(self, state: State, a: int, b: int, h: float) -> tuple[float, tuple[float, ...]]:
        """The mix, moved by the final step; noted are what the filters said and their mix."""
        memo = [0.0] * MEMO
        o = offset(loops.speak(DRIFTS, state, a, b, h, memo))
        return win_chance(o + gap(state.u, a, b, 0, h)), tuple(memo)

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: float
    ) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        """The same: a late score needs no more."""
        return (*self.glance(state, *sides(place, values)), ())

    def judge(self, served: float, base: float, y: float, memo: tuple[float, ...]) -> Judged:
        """The error and log loss of what was served, and of a coin."""
        return self.final.judge(served, base, y, memo)

    def add(self, state: State, place: Place, posting: Posting) -> None:
        """The final step is taken; a first score also teaches the filters, a correction their losses alone."""
        memo = posting.memo
        if len(memo) != MEMO:
            raise BadInput("this game does not say what was mixed; post it where it was served")
        if self.drop and posting.y == COIN:
            return
        game = game_of(place, posting)
        if posting.first:
            self.play(state, game, posting.served, memo)
            return
        self.final.amend(state, game, posting)
        for k in range(FILTERS):
            state.losses[k] += posting.sign * posting.weight * JUDGE.value(memo[k], posting.y)

    def play(self, state: State, game: Game, p: float, memo: Any) -> None:
        """Learn from a game served as p, of which the filters said ``memo``."""
        check_reach(state.u, game, 1.0)
        loops.forecast(JUDGE, DRIFTS, state, game, p, memo)
        tally(state, game)

    def written(self, state: State) -> State:
        """A copy whose log loss is what it means."""
        return self.final.written(state)

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """One pass; the caller undoes it if this raises."""
        games, n = games_of(batch), len(batch.base)
        memos = np.empty((1 if batch.at_once else max(n, 1), MEMO))
        for k, ticket in enumerate(batch.carried):
            memos[k] = ticket.memo
        kept = kept_of(state)._replace(memos=memos)
        play_all((loops.Filters(DRIFTS), self.final.pull, IDLE), batch, games, kept, 8 * WORK)
        check(kept.u, FINAL)
        tally_batch(state, batch, games)
        return games.served, memos
