"""Elo: p = sigmoid(u_a - u_b), both ratings moved by the same step against the error; a penalty may move all others.

t of the schedule counts the games learned from. With a penalty, its slope is taken at the ratings that served the
game: a game is told apart from one that others were learned from in between by the count of moves on its ticket.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gradeq.errors import BadInput, StepTooLarge
from gradeq.kernels import rating as loops
from gradeq.kernels import rating_plain as quick
from gradeq.kernels.call import run_loop, unsigned
from gradeq.kernels.rating import DECIDED, LOSS, STRIDE, TIED
from gradeq.kernels.rating_rules import MARKS, NOTES, Free, LazyLasso, ScaledRidge
from gradeq.ledger.batch import Batch
from gradeq.ledger.pairs import games_of
from gradeq.ledger.state import MOST, MOVE, SUM, Column, State, column
from gradeq.ledger.values import Place, Posting, Ticket
from gradeq.losses import LogLoss
from gradeq.penalties import Penalty, Ridge
from gradeq.rules.descent import common_columns
from gradeq.rules.rule import diverging, posting_of
from gradeq.schedules import Schedule

JUDGE = LogLoss(loops.CLIP)
COIN = 0.5  # the base prediction of every game, of log loss
LN2 = math.log(2.0)
WORK = 5  # a game is worth so many rows of a plain layer when the compiler is weighed
NOTHING = array("d")
# The columns of a penalty where there is none.
FREE: tuple[Any, Any, Any, Any] = (NOTHING, NOTHING, NOTHING, NOTHING)
AT_ONCE = "the proximal lasso needs scores at once; use penalty=Lasso(...) for late ones"


@dataclass(frozen=True)
class Rating:
    """Ratings u (parameter 0: the first side). ``proximal``: strength of a lasso in proximal form.

    ``drop``: a score of 1/2 is no game and adds nothing.
    """

    schedule: Schedule
    penalty: Penalty | None = None
    proximal: float | None = None
    drop: bool = False

    width = 1
    stride = STRIDE

    @cached_property
    def way(self) -> Free | ScaledRidge | LazyLasso:
        """How ratings are read and moved under this penalty."""
        if self.proximal is not None:
            return LazyLasso(self.proximal)
        return ScaledRidge(self.penalty.strength) if isinstance(self.penalty, Ridge) else Free()

    @cached_property
    def penalised(self) -> bool:
        """Whether a game moves others than its two players."""
        return self.penalty is not None or self.proximal is not None

    @property
    def dense(self) -> bool:
        """Whether every game moves every rating, each on its own."""
        return self.penalty is not None and not isinstance(self.penalty, Ridge)

    def columns(self) -> list[Column]:
        """u and accounts; with a penalty what it did, how far it is carried out, and how often ratings moved."""
        common = common_columns((0.0,), self.penalised, False)
        found = [
            *(each for each in common if each.name != "sums"),
            column("sums", "parameter", (0.0,) * STRIDE),
            Column("total", "layer", (0.0,) * 6 + (1.0, 1.0, 0.0), (SUM,) * 6 + (MOVE, MOVE, MOST)),
        ]
        if not self.penalised:
            return found
        return [
            *found,
            column("marks", "parameter", (0.0,) * MARKS),
            column("notes", "layer", (1.0,) + (0.0,) * (NOTES - 1), MOVE),
            column("moves", "layer", (0.0,)),
        ]

    def rating(self, state: State, j: int) -> float:
        """The rating of j in natural log-odds."""
        _, _, marks, notes = self._penalty_columns(state)
        return self.way.read(state.u, j, marks, notes)

    tracked = shown = rating

    def variance(self, state: State, j: int) -> float:
        """The variance of the rating of j."""
        unit = self.way.unit(self._penalty_columns(state)[3])
        return unit * unit * float(state.sums[j * STRIDE + loops.VARIANCE])

    def chance(self, state: State, place: Place, values: tuple[float, ...]) -> float:
        """The probability that the first of the two wins, now."""
        return self.glance(state, place, values, COIN)[0]

    def margin(self, state: State, place: Place, values: tuple[float, ...]) -> float:
        """u_a - u_b + h u_0."""
        _, _, marks, notes = self._penalty_columns(state)
        return loops.margin(self.way, state.u, marks, notes, *sides(place, values))

    def glance(
        self, state: State, place: Place, values: tuple[float, ...], f: float
    ) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        """As ``serve``, for a score that comes at once: the slopes of a penalty are not needed."""
        if not self.penalised and len(values) == 2:  # quicker, the same bits
            (a, b), u = place.params, state.u
            return loops.win_chance(u[a] - u[b]), (), ()
        p = loops.win_chance(self.margin(state, place, values))
        return p, tuple(state.moves) if self.penalised else (), ()

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: float
    ) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        """The probability that the first wins; with a penalty the moves so far, and its slopes."""
        p, memo, _ = self.glance(state, place, values, f)
        return p, memo, () if self.penalty is None else tuple(self._slopes(state))

    def judge(
        self, ticket: Ticket | Posting, y: float, eta: float, late: tuple[int, ...]
    ) -> Posting:
        """The error and log loss of what was served, and of a coin."""
        p, f = ticket.served, ticket.base
        return posting_of(ticket, y, eta, late, (p - y, f - y), (JUDGE.value(p, y), LN2))

    def add(self, state: State, place: Place, posting: Posting) -> None:
        """Move the two ratings (with a penalty all), and enter the game."""
        if len(posting.memo) != int(self.penalised):
            raise BadInput(
                "this game was served under another penalty; post it where it was served"
            )
        self.learn(state, place, posting, posting.eta, 0.0)

    def learn(self, state: State, place: Place, posting: Posting, eta: float, o: float) -> None:
        """The same with another step, and an offset o of the margin that served."""
        _, row, _, p, w, _, _, late, y, _, _, memo, _, sign = posting
        if self.drop and y == 0.5:
            return
        a, b, h = sides(place, row.values)
        u, sums, total, penalised = state.u, state.sums, state.total, self.penalised
        own = self._penalty_columns(state) if penalised else FREE
        unit = self.way.unit(own[3]) if penalised else 1.0
        if not math.isfinite(abs(u[0]) + abs(u[a]) + abs(u[b]) + eta * w / unit):
            raise diverging(eta)
        if not (late and sign > 0.0):
            loops.amend(self.way, JUDGE, u, sums, total, *own, a, b, h, p, y, w, eta, sign)
        elif not penalised and w == 1.0 and h == o == 0.0:  # quicker, the same bits
            quick.move(u, a, b, eta * (p - y))
            quick.accounted(JUDGE, (a,), (b,), (y,), eta, (p,), sums, total)
        else:
            self.check_step(eta)
            at_once = not penalised or memo[0] == state.moves[0]
            if self.proximal is not None and not at_once:
                raise BadInput(AT_ONCE)
            if at_once and not self.dense:
                loops.learn(self.way, JUDGE, u, sums, total, *own, a, b, h, o, p, y, w, eta)
            else:
                slopes = self._slopes(state) if at_once else list(posting.slopes)
                slopes += [0.0] * (len(u) - len(slopes))  # players who came since pull at nothing
                loops.write_out(self.way, u, sums, *own)
                drags, pulls = own[:2]
                loops.learn_dense(
                    JUDGE, slopes, u, sums, total, drags, pulls, a, b, h, p, y, w, eta
                )
        if penalised:
            state.moves[0] += 1.0

    def check_step(self, eta: float) -> None:
        """A ridge step of eta strength >= 1 would flip every rating at each game."""
        if isinstance(self.penalty, Ridge) and eta * self.penalty.strength >= 1.0:
            raise StepTooLarge(
                f"eta {eta:g} times ridge strength {self.penalty.strength:g} is not below 1; "
                f"use eta < {1.0 / self.penalty.strength:g}"
            )

    def write_out(self, state: State) -> None:
        """Make the stored ratings and the log loss what they mean: nothing left to be multiplied, taken or logged."""
        own = self._penalty_columns(state)
        if self.penalised:
            loops.write_out(self.way, state.u, state.sums, *own)
        total = state.total
        total[LOSS] = total[LOSS] - loops.surprise(total[DECIDED], total[TIED])
        total[DECIDED] = total[TIED] = 1.0

    def run(self, state: State, batch: Batch) -> tuple[Any, None]:
        """One pass (two for the plain case); the caller undoes it if this raises."""
        n, posts = len(batch.base), batch.posts
        a, b, home = games_of(batch.rows)
        served = np.empty(n)
        for k, ticket in enumerate(batch.carried):
            served[k] = ticket.served
        u, sums, total = (state.view(name) for name in ("u", "sums", "total"))
        if batch.plain and home is None and not self.penalised:
            eta = float(batch.etas[0]) if n else 1.0
            run_loop(quick.rated, (), (*unsigned(a, b), batch.labels, eta, u, served), WORK * n)
            check(u, eta)
            arrays: Any = (a, b, batch.labels, eta, served, sums, total)
            run_loop(quick.accounted, (JUDGE,), arrays, WORK * n)
            return served, None
        largest = float(batch.etas[posts].max(initial=0.0))
        self.check_step(largest)
        games = (
            np.zeros(n) if home is None else home,
            a,
            b,
            batch.labels,
            batch.weights,
            batch.etas,
        )
        own = [np.empty(0)] * 4
        if self.penalised:
            own = [state.view(name) for name in ("drags", "pulls", "marks", "notes")]
            state.moves[0] += float(len(posts))
        if self.dense:
            arrays = (*games, u, sums, total, *own[:2], np.empty(len(u)), served)
            run_loop(loops.played_dense, (self.penalty, JUDGE), arrays, WORK * n)
        else:
            order = (batch.first, batch.cuts, posts)
            arrays = (*games, *order, u, sums, total, *own, served)
            run_loop(loops.played, (self.way, JUDGE), arrays, WORK * n)
        check(u, largest)
        return served, None

    def _penalty_columns(self, state: State) -> tuple[Any, Any, Any, Any]:
        if not self.penalised:
            return FREE
        return state.drags, state.pulls, state.marks, state.notes

    def _slopes(self, state: State) -> list[float]:
        assert self.penalty is not None
        read, slope, u = self.way.read, self.penalty.slope, state.u
        _, _, marks, notes = self._penalty_columns(state)
        slopes = [slope(read(u, j, marks, notes)) for j in range(len(u))]
        while (
            slopes and not slopes[-1]
        ):  # players to come pull at nothing: whether they are known by now is chance
            slopes.pop()
        return slopes


def sides(place: Place, values: tuple[float, ...]) -> tuple[int, int, float]:
    """The two players, and where the first side is (0: neutral ground, or it has no parameter)."""
    return place.params[0], place.params[1], values[2] if len(values) > 2 else 0.0


def check(u: Any, eta: float) -> None:
    """Raise ``Diverging`` when a rating left the finite numbers."""
    if not np.isfinite(u).all():
        raise diverging(eta)
