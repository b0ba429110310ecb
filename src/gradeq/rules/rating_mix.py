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
from gradeq.kernels.call import run_loop
from gradeq.kernels.rating import STRIDE, offset, win_chance
from gradeq.kernels.rating_mix import EXPERTS, MEMO, SHOWN
from gradeq.ledger.batch import Batch
from gradeq.ledger.pairs import games_of
from gradeq.ledger.state import MOVE, Column, State, column
from gradeq.ledger.values import Place, Posting, Ticket
from gradeq.rules.rating import JUDGE, WORK, Rating, check, sides
from gradeq.rules.rule import diverging
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

    def shown(self, state: State, j: int) -> float:
        """The rating of j by the expert whose ratings are shown."""
        return float(state.experts[j * EXPERTS + SHOWN])

    def tracked(self, state: State, j: int) -> float:
        """The parameter of j that carries the certificate."""
        return float(state.u[j])

    def variance(self, state: State, j: int) -> float:
        """The variance of the rating shown."""
        return float(state.variances[j])

    def chance(self, state: State, place: Place, values: tuple[float, ...]) -> float:
        """The probability that the first of the two wins, now."""
        return self.serve(state, place, values, 0.5)[0]

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: float
    ) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        """The mix, moved by the final step; noted are what the experts said and their mix."""
        a, b, h = sides(place, values)
        memo, weights = [0.0] * MEMO, [0.0] * EXPERTS
        m = loops.speak(state.experts, state.losses, a, b, h, weights, memo, 0)
        p = win_chance(offset(m) + self.final.margin(state, place, values))
        return p, tuple(memo), ()

    glance = serve

    def judge(
        self, ticket: Ticket | Posting, y: float, eta: float, late: tuple[int, ...]
    ) -> Posting:
        """The error and log loss of what was served, and of a coin."""
        return self.final.judge(ticket, y, eta, late)

    def add(self, state: State, place: Place, posting: Posting) -> None:
        """The final step is taken; a first score also teaches the experts, a correction their losses alone."""
        y, w, memo = posting.y, posting.weight, posting.memo
        if len(memo) != MEMO:
            raise BadInput("this game does not say what was mixed; post it where it was served")
        if self.drop and y == 0.5:
            return
        a, b, h = sides(place, posting.row.values)
        experts = state.experts
        farthest = sum(abs(experts[j * EXPERTS + EXPERTS - 1]) for j in (0, a, b))
        if not math.isfinite(farthest + posting.eta * w):
            raise diverging(posting.eta)
        step = min(FINAL, posting.eta)
        self.final.learn(state, place, posting, step, offset(memo[EXPERTS]))
        if posting.first:
            learned = (experts, state.variances, state.losses)
            loops.hear(JUDGE, RATES, a, b, h, y, w, posting.eta, memo, 0, *learned)
        else:
            for k in range(EXPERTS):
                state.losses[k] += posting.sign * JUDGE.value(memo[k], y)

    def write_out(self, state: State) -> None:
        """Make the stored log loss what it means."""
        self.final.write_out(state)

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """One pass; the caller undoes it if this raises."""
        n = len(batch.base)
        a, b, home = games_of(batch.rows)
        served = np.empty(n)
        apart = 0 if batch.at_once else MEMO
        memos = np.empty((max(n, 1) if apart else 1, MEMO))
        for k, ticket in enumerate(batch.carried):
            served[k], memos[k] = ticket.served, ticket.memo
        u = state.view("u")
        names = ("sums", "total", "experts", "variances", "losses")
        arrays = (
            np.array(RATES), FINAL, np.zeros(n) if home is None else home, a, b, batch.labels,
            batch.weights, batch.etas, batch.first, batch.cuts, batch.posts, u,
            *(state.view(name) for name in names), np.empty(0), np.empty(EXPERTS), apart,
            memos.reshape(-1), served,
        )  # fmt: skip
        run_loop(loops.mixed, (self.final.way, JUDGE), arrays, 8 * WORK * n)
        check(u, FINAL)
        check(state.view("experts"), RATES[-1])
        return served, memos
