"""Elo without a given step: filters mixed by their log loss, and one small constant step on the logit of the mix.

The filters expect strengths to drift, each at another speed, the first not at all; their weights say what the games
say about drift. The certificate is that of the step alone (result B5); filters and weights only choose what is served
next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gradeq.errors import BadInput
from gradeq.kernels import forecaster as loops
from gradeq.kernels.rating import STRIDE, gap, offset, win_chance
from gradeq.ledger.batch import Batch
from gradeq.ledger.state import Column, State
from gradeq.ledger.values import Place, Posting
from gradeq.records import copy_with
from gradeq.rules.drift import NO_DATES, WORK, Drift, enter_scores
from gradeq.rules.rating import (
    COIN,
    JUDGE,
    Rating,
    check,
    check_reach,
    entry,
    game_of,
    games_of,
    kept_of,
    leave_unread,
    play_all,
    sides,
)
from gradeq.rules.rule import IDLE, Entries, Judged, Measured
from gradeq.schedules import Constant

FINAL = 0.01


@dataclass(frozen=True)
class Forecaster:
    """``drop``: a score of 1/2 is left out. The step, and what the late-label cap may hold back, is the final one."""

    drop: bool = False
    drift: Drift = NO_DATES

    width = 1
    stride = STRIDE
    later = False
    penalty = None
    schedule = Constant(FINAL)

    @cached_property
    def final(self) -> Rating:
        return Rating(self.schedule, drop=self.drop, drift=self.drift)

    def columns(self) -> list[Column]:
        return self.final.columns()

    def enter(self, state: State, unread: list[object]) -> None:
        """Enter games into the pair table; the filters have heard them."""
        enter_scores(state, unread)

    def ratings(self, state: State) -> Any:
        return self.drift.heaviest(state)

    def tracked(self, state: State) -> Any:
        return state.view("u")

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: float, time: float | None = None
    ) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        """The mix, moved by the final step; noted are what the filters said, their mix, and the time."""
        (a, b, h), drifts = sides(place, values), self.drift.filters
        memo = [0.0] * (self.drift.count + 2)
        mix = loops.speak(drifts.games, drifts.years, state, a, b, h, self.drift.year(time), memo)
        return win_chance(offset(mix) + gap(state.u, a, b, 0, h)), tuple(memo), ()

    def measure(self, served: float, base: float, y: float, memo: tuple[float, ...]) -> Measured:
        return self.final.measure(served, base, y, memo)

    def judge(self, served: float, base: float, y: float, memo: tuple[float, ...]) -> Judged:
        return self.final.judge(served, base, y, memo)

    def account(self, state: State, own: Entries) -> None:
        """Never: games are entered at once."""

    def add(self, state: State, place: Place, posting: Posting, error: float) -> None:
        """The final step is taken; a first score also teaches the filters, a correction their shares alone."""
        posting = Posting(*posting)
        memo, count, drifts = posting.memo, self.drift.count, self.drift.filters
        if len(memo) != count + 2:
            raise BadInput("this game does not say what was mixed; post it where it was served")
        if self.drop and posting.y == COIN:
            return
        p: Any = posting.served
        game = game_of(place, posting)
        if posting.first:
            check_reach(state.u, game, 1.0)
            loops.forecast(JUDGE, drifts.games, drifts.years, state, game, p, memo)
        else:
            self.final.amend(state, game, posting)
            loops.amend(JUDGE, count, state, game[3], game[4], posting.sign, memo)
        state.wait(entry(game, memo[-1], posting))

    def written(self, state: State) -> State:
        return self.final.written(state)

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """One pass; the caller undoes it if this raises."""
        games, n = games_of(batch), len(batch.base)
        memos = np.empty((1 if batch.at_once else max(n, 1), self.drift.count + 2))
        for k, ticket in enumerate(batch.carried):
            memos[k] = ticket.memo
        when = self.drift.years(batch.times, n)
        kept = copy_with(kept_of(state), memos=memos, when=when)
        play_all((self.drift.filters, self.final.pull, IDLE), batch, games, kept, WORK)
        check(kept.u, FINAL)
        leave_unread(state, batch, games, when)
        return games.served, memos
