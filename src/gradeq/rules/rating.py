"""Elo: p = sigmoid(u_a - u_b), both ratings moved by the same step against the error; a penalty may move all others.

t of the schedule counts the games learned from. With a penalty, its slope is taken at the ratings that served the
game: a game is told apart from one that others were learned from in between by the count of moves on its ticket.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gradeq.errors import BadInput, StepTooLarge
from gradeq.kernels import rating as loops
from gradeq.kernels import rating as quick
from gradeq.kernels.account import SMALLEST
from gradeq.kernels.choice import run_loop, unsigned
from gradeq.kernels.forecaster import NO_DATE
from gradeq.kernels.rating import (
    DECIDED,
    LOSS,
    MARKS,
    NOTES,
    STRIDE,
    TIED,
    LazyLasso,
    PassGames,
    Pull,
    RatingBuffers,
    ScaledRidge,
    UnpenalisedRatings,
)
from gradeq.ledger import pair_table
from gradeq.ledger.batch import Batch, constant
from gradeq.ledger.pair_table import GamePairs
from gradeq.ledger.pair_table import games_of as players_of
from gradeq.ledger.state import MOST as LARGEST
from gradeq.ledger.state import MOVE, SUM, Column, State, column
from gradeq.ledger.values import Place, Posting
from gradeq.losses import LogLoss
from gradeq.penalties import Penalty, Ridge
from gradeq.records import copy_with
from gradeq.rules.descent import common_columns
from gradeq.rules.drift import NO_DATES, Drift, enter_scores
from gradeq.rules.rule import IDLE, LARGEST_FINITE, NOTHING, Entries, Judged, Measured, diverging, slopes_at
from gradeq.schedules import Schedule

JUDGE = LogLoss(loops.CLIP)
TINY = 5e-324  # the smallest positive number: products of likelihoods stay above 0
COIN = 0.5  # the base prediction of every game, of log loss
LN2 = math.log(2.0)
WORK = 5  # a game is worth so many rows of a plain layer when the compiler is weighed
Game = tuple[int, int, float, float, float, float]  # a, b, h, y, w, eta
NOT_LATE = "the proximal lasso needs scores at once; use penalty=Lasso(...) for late ones"


@dataclass(frozen=True)
class Rating:
    """Ratings u (parameter 0: the first side). ``proximal``: strength of a lasso in proximal form.

    ``drop``: a score of 1/2 is left out. ``drift``: the filters of the leaderboard.
    """

    schedule: Schedule
    penalty: Penalty | None = None
    proximal: float | None = None
    drop: bool = False
    drift: Drift = NO_DATES

    width = 1
    stride = STRIDE
    later = False

    @cached_property
    def pull(self) -> Pull:
        """How ratings are read and moved under this penalty."""
        if self.proximal is not None:
            return LazyLasso(self.proximal)
        return ScaledRidge(self.penalty.strength) if isinstance(self.penalty, Ridge) else UnpenalisedRatings()

    @cached_property
    def penalised(self) -> bool:
        return self.penalty is not None or self.proximal is not None

    @property
    def dense(self) -> bool:
        return self.penalty is not None and not isinstance(self.penalty, Ridge)

    def columns(self) -> list[Column]:
        """u and accounts; with a penalty what it did, how far it is carried out, and how often ratings moved."""
        common = common_columns((0.0,), self.penalised, False)
        found = [
            *(each for each in common if each.name != "sums"),
            column("sums", "parameter", (0.0,) * STRIDE),
            Column(
                "total",
                "layer",
                (0.0,) * 6 + (1.0, 1.0, 0.0),
                (SUM,) * 6 + (MOVE, MOVE, LARGEST),
                low=(*SMALLEST[:6], TINY, TINY, 0.0),
            ),
        ]
        found += [*pair_table.COLUMNS, *self.drift.columns()]
        if not self.penalised:
            return found
        return [
            *found,
            column("marks", "parameter", (0.0,) * MARKS),
            Column(
                "notes",
                "layer",
                (1.0,) + (0.0,) * (NOTES - 1),
                (MOVE,) * NOTES,
                low=(TINY, *(-math.inf,) * (NOTES - 1)),
            ),
            column("moves", "layer", (0.0,)),
        ]

    def ratings(self, state: State) -> Any:
        """The ratings in natural log-odds, of a state that was ``written``; those that carry the certificate too."""
        return state.view("u")

    tracked = ratings

    def enter(self, state: State, unread: list[object]) -> None:
        self.drift.watch(JUDGE, state, enter_scores(state, unread))

    def glance(self, state: State, a: int, b: int, h: float) -> float:
        """The probability that the first of the two wins."""
        if self.penalised:
            return loops.win_chance(loops.margin(self.pull, state, a, b, h))
        return loops.win_chance(loops.gap(state.u, a, b, 0, h))

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: float, time: float | None = None
    ) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        """The same, with the slopes of a penalty; noted are the moves so far with one, and with dates the year."""
        moves = tuple(state.moves) if self.penalised else ()
        dated = (self.drift.year(time),) if self.drift.dates else ()
        slopes = () if self.penalty is None else self._slopes(state)
        return self.glance(state, *sides(place, values)), moves + dated, slopes

    def measure(self, served: float, base: float, y: float, memo: tuple[float, ...]) -> Measured:
        return served - y, memo

    def judge(self, served: float, base: float, y: float, memo: tuple[float, ...]) -> Judged:
        return (served - y, base - y), (JUDGE.value(served, y), LN2)

    def account(self, state: State, own: Entries) -> None:
        """Never: games are entered at once."""

    def add(self, state: State, place: Place, posting: Posting, error: float) -> None:
        """Move the two ratings (with a penalty all), and enter the game."""
        posting = Posting(*posting)
        memo, dated = posting.memo, self.drift.dates
        if len(memo) != int(self.penalised) + int(dated):
            raise BadInput("this game was served under another penalty; post it where it was served")
        if self.drop and posting.y == COIN:
            return
        game = game_of(place, posting)
        if not posting.first:
            self.amend(state, game, posting)
        elif self.penalised:
            at_once = memo[0] == state.moves[0]
            p: Any = posting.served
            self._play(state, game, p, None if at_once else posting.slopes)
        else:
            check_reach(state.u, game, 1.0)
            loops.step(JUDGE, state, game, 0.0, posting.served)  # type: ignore[arg-type]
        state.wait(entry(game, memo[-1] if dated else NO_DATE, posting))

    def _play(self, state: State, game: Game, p: float, slopes: Any) -> None:
        """Learn from a game served as p; ``slopes``: the penalty's at serving, if others were learned from since."""
        check_reach(state.u, game, self.pull.unit(state))
        self.check_step(game[5])
        if self.proximal is not None and slopes is not None:
            raise BadInput(NOT_LATE)
        if slopes is None and not self.dense:
            loops.learn(self.pull, JUDGE, state, game, p)
        else:
            slopes = list(self._slopes(state) if slopes is None else slopes)
            slopes += [0.0] * (len(state.u) - len(slopes))  # players who came since pull at nothing
            loops.write_out(self.pull, state)
            loops.learn_dense(JUDGE, slopes, state, game, p)
        state.moves[0] += 1.0

    def amend(self, state: State, game: Game, posting: Posting) -> None:
        """Take a score back, or put one in its place."""
        check_reach(state.u, game, self.pull.unit(state))
        p: Any = posting.served
        loops.amend(self.pull, JUDGE, state, game, p, posting.sign)
        if self.penalised:
            state.moves[0] += 1.0

    def check_step(self, eta: float) -> None:
        """A ridge step of eta strength >= 1 would flip every rating at each game."""
        if isinstance(self.penalty, Ridge) and eta * self.penalty.strength >= 1.0:
            raise StepTooLarge(
                f"eta {eta:g} times ridge strength {self.penalty.strength:g} is not below 1; "
                f"use eta < {1.0 / self.penalty.strength:g}"
            )

    def written(self, state: State) -> State:
        """A copy whose ratings and log loss are what they mean: nothing left to be multiplied, taken or logged."""
        twin = state.copy()
        if self.penalised:
            loops.write_out(self.pull, twin)
        total = twin.total
        total[LOSS] = total[LOSS] - loops.surprise(total[DECIDED], total[TIED])
        total[DECIDED] = total[TIED] = 1.0
        return twin

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """One pass (two for the plain case); the caller undoes it if this raises."""
        when = self.drift.years(batch.times, len(batch.base))
        games, kept, n = games_of(batch), kept_of(state), len(batch.base)
        if batch.plain and isinstance(batch.rows, GamePairs) and not self.penalised:
            (_, a, b, scores, _, _, served), eta = games, float(batch.etas[0]) if n else 1.0
            run_loop(quick.rated, (), (*unsigned(a, b), scores, eta, kept.u, served), n // 2)
            check(kept.u, eta)
            arrays = (a, b, scores, eta, served, kept.sums, kept.total)
            run_loop(quick.accounted, (JUDGE,), arrays, n)
            leave_unread(state, batch, games, when)
            return served, None
        largest = float(batch.etas[batch.posts].max(initial=0.0))
        self.check_step(largest)
        if self.penalised:
            state.moves[0] += float(len(batch.posts))
        if self.dense:
            way: Any = loops.DensePenalty()
            kept = copy_with(kept, slopes=np.empty(len(kept.u)))
        else:
            way = loops.PulledRatings()
        play_all((way, self.pull, self.penalty or IDLE), batch, games, kept, WORK)
        check(kept.u, largest)
        leave_unread(state, batch, games, when)
        return games.served, when[:, None] if self.drift.dates else None

    def _slopes(self, state: State) -> tuple[float, ...]:
        read = self.pull.read
        return slopes_at(self.penalty, [read(state, j) for j in range(len(state.u))])


def games_of(batch: Batch) -> PassGames:
    """What a pass reads of a batch; games carried over were served before."""
    (a, b, home), served = players_of(batch.rows), np.empty(len(batch.base))
    for k, ticket in enumerate(batch.carried):
        served[k] = ticket.served
    sided = np.zeros(len(served)) if home is None else home
    return PassGames(sided, a, b, batch.labels, batch.weights, batch.etas, served)


def kept_of(state: State) -> RatingBuffers:
    return RatingBuffers(*(state.view(name) if hasattr(state, name) else NOTHING for name in RatingBuffers._fields))


def entry(game: Game, year: float, posting: Posting) -> tuple[float, ...]:
    """What is left of a posting for the leaderboard; sign 0: a score in the place of another."""
    sign = posting.sign if posting.first or posting.sign < 0.0 else 0.0
    return (*game[:5], year, sign, posting.given)


def leave_unread(state: State, batch: Batch, games: PassGames, when: object) -> None:
    """Leave the games whose scores were posted for when the leaderboard is read; the caller may reuse its columns."""
    n = len(games.a)
    given = constant(n, 1.0) if batch.given is None else batch.given.copy()
    own: tuple[Any, ...] = (
        games.a, games.b, games.home, games.scores.copy(), games.weights.copy(), when, constant(n, 1.0), given,
    )  # fmt: skip
    if not batch.at_once or len(batch.posts) < len(games.a):
        own = tuple(column[batch.posts] for column in own)
    if len(own[0]):
        state.unread.append(own)


def play_all(parts: tuple[object, ...], batch: Batch, games: PassGames, kept: RatingBuffers, work: int) -> None:
    """Serve and learn from all games of a batch."""
    order = (batch.first, batch.cuts, batch.posts)
    run_loop(loops.played, (*parts, JUDGE, games, kept), order, work * len(batch.base))


def check_reach(u: Any, game: Game, unit: float) -> None:
    """Raise ``Diverging`` when a step would take the ratings out of the finite numbers."""
    a, b, _, _, w, eta = game
    if not abs(u[0]) + abs(u[a]) + abs(u[b]) + eta * w / unit <= LARGEST_FINITE:
        raise diverging(eta)


def game_of(place: Place, posting: Posting) -> Game:
    """The game of a posting: both players, the first side, score, weight and step."""
    return (*sides(place, posting.row.values), posting.y, posting.weight, posting.eta)


def sides(place: Place, values: tuple[float, ...]) -> tuple[int, int, float]:
    """The two players, and where the first side is (0: neutral ground, or it has no parameter)."""
    return place.params[0], place.params[1], values[2] if len(values) > 2 else 0.0


def check(u: Any, eta: float) -> None:
    if not np.isfinite(u).all():
        raise diverging(eta)
