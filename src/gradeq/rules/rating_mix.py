"""Elo's automatic step: seven rates mixed by their log loss, and one small step on the logit of the mix.

Each expert is a plain rating that moves by its own error. The certificate is that of the final step alone (result
B5); experts and weights only choose what is served next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gradeq.errors import BadInput
from gradeq.kernels import rating_mix as loops
from gradeq.kernels.rating import STRIDE, gap, offset, win_chance
from gradeq.kernels.rating_mix import EXPERTS, MEMO, SHOWN
from gradeq.ledger.batch import Batch
from gradeq.ledger.state import MOVE, Column, State, column
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
)
from gradeq.rules.rule import Judged, diverging
from gradeq.schedules import Constant

RATES = (0.003, 0.01, 0.023, 0.05, 0.1, 0.2, 0.4)
FINAL = 0.03


@dataclass(frozen=True)
class RatingMix:
    """``drop``: a score of 1/2 is no game. A label's step is the largest that any part may take: the largest rate, or
    less where scores are late; each part takes its own rate if that is smaller."""

    drop: bool = False

    width = 1
    stride = STRIDE
    penalty = None
    schedule = Constant(RATES[-1])

    @cached_property
    def final(self) -> Rating:
        """The step that carries the certificate."""
        return Rating(Constant(FINAL), drop=self.drop)

    def columns(self) -> list[Column]:
        """Those of the final step; the experts' ratings, the variances of the one shown, the experts' losses."""
        return [
            *self.final.columns(),
            column("experts", "parameter", (0.0,) * EXPERTS, MOVE),
            column("variances", "parameter", (0.0,)),
            column("losses", "layer", (0.0,) * EXPERTS),
        ]

    def shown(self, state: State) -> Any:
        """The ratings by the expert whose ratings are shown."""
        return state.view("experts")[SHOWN::EXPERTS]

    def tracked(self, state: State) -> Any:
        """The parameters that carry the certificate."""
        return state.view("u")

    def variances(self, state: State) -> Any:
        """The variances of the ratings shown."""
        return state.view("variances")

    def glance(self, state: State, a: int, b: int, h: float) -> tuple[float, tuple[float, ...]]:
        """The mix, moved by the final step; noted are what the experts said and their mix."""
        memo = [0.0] * MEMO
        o = offset(loops.speak(state, a, b, h, [0.0] * EXPERTS, memo))
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
        """The final step is taken; a first score also teaches the experts, a correction their losses alone."""
        memo = posting.memo
        if len(memo) != MEMO:
            raise BadInput("this game does not say what was mixed; post it where it was served")
        if self.drop and posting.y == COIN:
            return
        game = game_of(place, posting)
        if posting.first:
            self.play(state, game, posting.served, memo)
            return
        self._check_reach(state, game)
        final = (*game[:5], min(FINAL, posting.eta))
        self.final.amend(state, final, posting)
        for k in range(EXPERTS):
            state.losses[k] += posting.sign * JUDGE.value(memo[k], posting.y)

    def play(self, state: State, game: Game, p: float, memo: Any) -> None:
        """Learn from a game served as p, of which the experts said ``memo``."""
        self._check_reach(state, game)
        loops.mixed(JUDGE, RATES, FINAL, state, game, p, memo)

    def _check_reach(self, state: State, game: Game) -> None:
        """The same of the final step, and of the expert that goes farthest."""
        (a, b, _, _, w, eta), experts = game, state.experts
        farthest = sum(abs(experts[j * EXPERTS + EXPERTS - 1]) for j in (0, a, b))
        if not math.isfinite(farthest + eta * w):
            raise diverging(eta)
        check_reach(state.u, (*game[:5], min(FINAL, eta)), 1.0)

    def written(self, state: State) -> State:
        """A copy whose log loss is what it means."""
        return self.final.written(state)

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """One pass; the caller undoes it if this raises."""
        games, n = games_of(batch), len(batch.base)
        memos = np.empty((1 if batch.at_once else max(n, 1), MEMO))
        for k, ticket in enumerate(batch.carried):
            memos[k] = ticket.memo
        kept = kept_of(state)._replace(shares=np.empty(EXPERTS), memos=memos)
        parts = (loops.Mix(RATES, FINAL), self.final.pull, IDLE)
        play_all(parts, batch, games, kept, 8 * WORK)
        check(kept.u, FINAL)
        check(kept.experts, RATES[-1])
        return games.served, memos
