"""Elo: rate players from games, so that each wins as often as predicted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, cast, overload

import numpy as np

from gradeq.engine import scalars
from gradeq.engine.columns import Ran, RowColumns
from gradeq.engine.players import Players
from gradeq.engine.tickets import warn_replaced
from gradeq.errors import BadInput, warn_deprecated
from gradeq.inputs.column_types import Column, ColumnLike, FloatArray
from gradeq.kernels.rating import move, win_chance
from gradeq.layers import columns
from gradeq.layers.board import Standings
from gradeq.layers.columns import Moment, moment
from gradeq.layers.internals import Internals, Serve
from gradeq.layers.layer import Id, Layer, RowArguments
from gradeq.layers.locking import locked, together
from gradeq.layers.merging import check_partition
from gradeq.layers.options import LateCap, LateLabels, check_together
from gradeq.layers.replay import uncounter
from gradeq.layers.run import OUTSIDE, EloRun, GameColumns, checked_ids, run_elo
from gradeq.layers.serialization import Saved
from gradeq.ledger.pair_table import GamePairs
from gradeq.ledger.state import UNREAD, State
from gradeq.ledger.values import Ticket
from gradeq.penalties import Penalty, check_strength
from gradeq.rules.drift import Drift
from gradeq.rules.forecaster import FINAL, Forecaster
from gradeq.rules.rating import COIN, NOT_LATE, Rating
from gradeq.schedules import Constant, Schedule
from gradeq.theory.features import step_from_k

if TYPE_CHECKING:
    from gradeq.layers.sweep import EloFrontier


Ties = Literal["half", "drop"]
Player = str | int

CAP = 0.3  # c of the late-label cap
FINITE = 1e6  # smaller steps keep ratings finite over any number of games
PLAIN_ETA = 0.1  # the constant step of --eta plain


class EloInternals(Internals):
    """The parts of an Elo. Games that only move two ratings are buffered in a rally until the state is read."""

    rule: Any  # a Rating or a Forecaster
    names: Players
    ledger: State  # the state without the buffered games
    rally: Rally | None

    @property
    def state(self) -> State:
        if self.rally is not None:
            self.end_rally()
        return self.ledger

    @state.setter
    def state(self, state: State) -> None:
        self.ledger, self.rally = state, None

    def end_rally(self) -> None:
        """Enter the buffered games into the state."""
        rally, self.rally = self.rally, None
        if rally is None:
            return
        if len(rally.games) > FEW:
            self.run(lambda: rally.columns(self.names))
            return
        names = self.names.names
        for a, b, y in rally.games:
            row = self.names.row(names[a], names[b], 1.0)
            ticket, place = self.issue(row, self.names.known(row), COIN, 1.0)
            self.post(ticket, place, y)

    def run(self, columns: Callable[[], RowColumns]) -> tuple[Ran, RowColumns]:
        """One pass over columns; the pair table is brought up to date once many pairs are pending."""
        outcome = super().run(columns)
        if sum(np.size(entry[0]) for entry in self.ledger.unread) > 16 * UNREAD:
            self.ledger.read()
        return outcome


class Elo(Standings, Layer):
    """Ratings of players in natural log-odds: P(a wins) = sigmoid(rating_a - rating_b), before every game.

    >>> elo = Elo()
    >>> elo.predict("ann", "bob"), elo.update(1)
    (0.5, 'applied')
    >>> elo.play("ann", "bob", 1), round(elo.peek("ann", "bob"), 3)
    ('applied', 0.666)
    >>> [(row.player, row.wins, round(row.bias, 3)) for row in elo.leaderboard()]
    [('ann', 2.0, -0.451), ('bob', 0.0, 0.451)]

    In equilibrium each player's mean predicted win rate equals the actual one. For a constant step without penalty,
    the bias of a player is exactly -tracked / (eta games), whatever the games. This is the SIGNED bias from the
    player's side; the unsigned error, which the paper's introduction prints, does not vanish.
    For any sequence of games |bias| <= R / (eta games), where R is of order sqrt(T) and of order players x log T
    (result 8.5). The bound is vacuous for players with few games. The leaderboard's Elo, intervals and ranks are
    statistical estimates: a Bradley-Terry fit of all games in any order, or current strengths if strengths drift.

    - ``eta`` defaults to "auto": a mixture of filters for six speeds of drift makes the forecast, and a constant step
      of 0.01 on its logit carries the certificate (result B5). A number means plain Elo with that step.
    - ``k``: the chess K-factor, eta = K ln 10 / 400. ``schedule``: any other steps; t counts the games learned from.
    - ``ties``: "half" a win, or "drop" the game.
    - ``penalty`` (needs a step): ``Lasso`` (the paper's subgradient, every player at every game) or ``Ridge``.
    - ``proximal`` (needs a step): strength of a proximal lasso. It sets ratings to exactly zero at no extra cost.
    - ``home_advantage``: a parameter for the first side; ``home_step``: its step, by default a tenth of the players'.
    - ``dates``: times are dates, numbers are nanoseconds since 1970, and strengths drift by the year.
    - ``late_cap``, ``in_flight``, ``ttl``, ``queue``: late scores, as for every layer; groups are the two players.

    Paper: sec:pairwise_preference, fig:elo_scores_chatbot; the bounds are results 8.5, 6.1, 6.3 and A1.
    """

    kind = "elo"
    _labels = (0.0, 1.0)
    internals: EloInternals
    _internals_type = EloInternals

    def __init__(
        self,
        eta: float | Literal["auto"] | None = None,
        *,
        k: float | None = None,
        ties: Ties = "half",
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        proximal: float | None = None,
        home_advantage: bool = False,
        home_step: float | None = None,
        dates: bool = False,
        late_cap: LateCap = "auto",
        in_flight: int = 1,
        ttl: float | str | None = None,
        queue: bool = False,
    ) -> None:
        scalars.word(ties, "ties", ("half", "drop"), "half (half a win) or drop (no game)")
        if proximal is not None:
            proximal = scalars.option(proximal, "proximal")
            check_strength("proximal", proximal)
        self.ties, self.penalty, self.proximal = ties, penalty, proximal
        self._learns = None if ties == "half" else has_winner
        self.eta, self.schedule = resolve_step(eta, k, schedule, penalty, proximal)
        self._takes_auto = penalty is None and proximal is None
        self.dates = scalars.flag(dates, "dates")
        self.home_step = None if home_step is None else scalars.step(home_step, "home_step")
        step = FINAL if self.schedule is None else self.schedule.step(1)
        share = HOME_STEP if self.home_step is None else self.home_step / step
        if not 0.0 < share <= 1.0:
            raise BadInput(f"home_step={home_step!r}: must be above 0 and at most the players' step {step:g}")
        home = scalars.flag(home_advantage, "home_advantage")
        names = Players(home, penalty is not None, math.sqrt(share))
        drop, drift = ties == "drop", Drift(self.dates)
        rule: Rating | Forecaster = Forecaster(drop, drift)
        if self.schedule is not None:
            rule = Rating(self.schedule, penalty, proximal, drop, drift)
            rule.check_step(step)
        self._build(rule, names, LateLabels(late_cap, in_flight, ttl, queue=queue), CAP)
        self.internals.ledger.enter = rule.enter

    @locked
    def open(
        self, a: Player, b: Player, *, home: float = 1.0, weight: float = 1.0, time: Moment | None = None
    ) -> Ticket:
        """Predict a game and return its ticket; ``ticket.served`` is the probability that a wins."""
        ticket = self._ticket(*self._row_arguments(a, b, home, weight), self._serve(time))
        if time is not None:
            self.internals.tickets.note_clock()
        return ticket

    def _row_arguments(self, a: Player, b: Player, home: float, weight: float) -> RowArguments:
        """Validated arguments of a call: the row of the game, its place and its weight."""
        w = 1.0 if type(weight) is float and weight == 1.0 else scalars.weight(weight)
        row = self.internals.names.row(a, b, home)
        return row, self.internals.names.known(row), COIN, w

    def _serve(self, time: Moment | None) -> Serve:
        serve: Serve = self.internals.rule.serve
        return partial(serve, time=moment(time, self.internals.tickets)) if self.dates and time is not None else serve

    def predict(
        self,
        a: Player,
        b: Player,
        *,
        home: float = 1.0,
        weight: float = 1.0,
        id: Id | None = None,
        time: Moment | None = None,
    ) -> float:
        """The probability that a wins; the prediction stays open until ``update`` posts the score.

        ``home``: 1 when a is at home, 0 on neutral ground, -1 when b is (with ``home_advantage``). New players
        have rating 0.
        """
        lock = self.lock
        try:
            lock.acquire()
            if id is not None and self.proximal is not None:
                raise BadInput(NOT_LATE)
            p: float = self._open(*self._row_arguments(a, b, home, weight), id, time, self._serve(time))
            return p
        finally:
            lock.release()

    def peek(self, a: Player, b: Player, *, home: float = 1.0, time: Moment | None = None) -> float:
        """The probability that ``predict`` would serve now; the layer does not change."""
        lock = self.lock
        try:
            lock.acquire()
            parts = self.internals
            if parts.rally is not None and type(home) is float and home == 1.0:
                pair = parts.names.pair(a, b)
                if pair is not None:
                    return win_chance(parts.rally[pair[0]] - parts.rally[pair[1]])
            row, serve, mark = parts.names.row(a, b, home), self._serve(time), None
            place = parts.names.known(row)
            if place is None:
                mark = parts.names.mark()
                place = parts.enter(row)
            p: float = serve(parts.state, place, row.values, COIN)[0]
            parts.forget(mark)
            return p
        finally:
            lock.release()

    @overload
    def update(self, score: object, id: Id | None = None, *, time: Moment | None = None) -> str: ...

    @overload
    def update(
        self,
        a: Player,
        b: Player,
        score: float,
        weight: float = 1.0,
        *,
        home: float = 1.0,
        time: Moment | None = None,
    ) -> str: ...

    def update(self, *args: object, **named: object) -> str:
        """Learn from the score of the game predicted under this id, or of the open one without an id.

        a's score is 1, 0, or between (1/2 for a tie). Returns ``applied``, ``dropped`` for a tie when ties are
        dropped, or ``duplicate`` when this very score was posted before; another score for the same id raises
        ``LabelConflict``. ``None``: no score will come (see ``skip``). ``update(a, b, score)`` is deprecated and will
        be removed in the next version; use ``play(a, b, score)``.
        """
        with self.lock:
            if len(args) > 2 or "b" in named or (len(args) == 2 and "score" in named):
                warn_deprecated("Elo.update(a, b, score)", "Elo.play(a, b, score)")
                self._withdraw_last()
                return self.play(*cast(Any, args), **cast(Any, named))
            return self._update_by_id(*cast(Any, args), **cast(Any, named))

    def _update_by_id(self, score: object, id: Id | None = None, *, time: Moment | None = None) -> str:
        return self._update(score, id, time=time)

    def _update(
        self, y: object, id: Id | None = None, key: str | None = None, batch: bool = False, time: Moment | None = None
    ) -> str:
        outcome = super()._update(y, id, key, batch, time)
        learns = self._learns is None or self._learns(y)
        return outcome if learns or outcome != "applied" else "dropped"

    def settle(self, score: object, id: Id | None = None) -> str:
        """Deprecated: use ``update(score, id)``. It will be removed in the next version."""
        warn_deprecated("Elo.settle(score, id)", "Elo.update(score, id)")
        with self.lock:
            return self._update(score, id)

    def _withdraw_last(self) -> None:
        """Withdraw the latest prediction if it has no id, because ``predict`` used to open no ticket."""
        parts = self.internals
        state, tickets, lateness = parts.state, parts.tickets, parts.lateness
        number = tickets.single(None)
        if number is None or number != state.number:
            return
        del tickets.singles[None]
        ticket = tickets.withdraw(number)[0]
        if state.weighed:
            lateness.unweigh(state)
        lateness.unserve(state, parts.enter(ticket[1]).cells)

    def play(
        self,
        a: Player,
        b: Player,
        score: float,
        weight: float = 1.0,
        *,
        home: float = 1.0,
        time: Moment | None = None,
    ) -> str:
        """Predict a game and learn from its score at once: ``predict`` and ``update`` in one call.

        Returns ``applied``, ``dropped`` for a tie when ties are dropped, ``ignored`` while frozen or for weight 0.
        """
        y = self.validate_label(score)
        learns = self._learns is None or self._learns(y)
        lock = self.lock
        try:
            lock.acquire()
            parts = self.internals
            rally = parts.rally
            plain = type(weight) is float is type(home) and weight == home == 1.0
            if rally is not None and learns and plain:
                pair = parts.names.pair(a, b)
                if pair is not None:
                    if rally.play(pair[0], pair[1], y):
                        parts.end_rally()
                    return "applied"
            return self._play_one(a, b, y, weight, home, time)
        finally:
            lock.release()

    def _play_one(self, a: Player, b: Player, y: float, weight: float, home: float, time: Moment | None) -> str:
        """Play a game with any options, and start a rally if the next games can be buffered."""
        parts = self.internals
        uncount = uncounter(parts)
        ticket, place = parts.issue(*self._row_arguments(a, b, home, weight), self._serve(time))
        if time is not None:
            parts.tickets.note_clock()
        try:
            parts.post(ticket, place, y)
        except Exception:
            uncount(ticket[1])
            raise
        if self._plain and not parts.frozen and not parts.ledger.late and not parts.ledger.weighed:
            parts.rally = Rally(parts.ledger.u, self.step)
        if self._learns is not None and not self._learns(y):
            return "dropped"
        return "ignored" if parts.frozen or ticket[4] == 0.0 else "applied"

    @property
    def _plain(self) -> bool:
        """Whether a game played at once needs only two ratings and one constant step."""
        step = self.internals.constant_step
        if self.eta == "auto" or step is None or step > FINITE:
            return False
        return not (self.internals.names.home or self.dates or self.internals.rule.penalised)

    @locked
    def freeze(self) -> None:
        """Stop learning until ``resume``; scores still close their tickets."""
        self.internals.end_rally()
        super().freeze()

    @overload
    def run(
        self,
        a: ColumnLike,
        b: ColumnLike,
        score: Column,
        *,
        weights: ColumnLike | None = None,
        home: ColumnLike | None = None,
        times: ColumnLike | None = None,
        label_times: ColumnLike | None = None,
        skip_self: bool = False,
        ids: ColumnLike | None = None,
    ) -> EloRun[Column]: ...

    @overload
    def run(
        self,
        a: ColumnLike,
        b: ColumnLike,
        score: None = None,
        *,
        weights: ColumnLike | None = None,
        home: ColumnLike | None = None,
        times: ColumnLike | None = None,
        skip_self: bool = False,
        ids: ColumnLike | None = None,
    ) -> EloRun[ColumnLike]: ...

    @locked
    def run(
        self,
        a: ColumnLike,
        b: ColumnLike,
        score: ColumnLike | None = None,
        *,
        weights: ColumnLike | None = None,
        home: ColumnLike | None = None,
        times: ColumnLike | None = None,
        label_times: ColumnLike | None = None,
        skip_self: bool = False,
        ids: ColumnLike | None = None,
    ) -> EloRun[ColumnLike]:
        """Play whole columns of games, bit-for-bit identical to one game at a time.

        ``run.served`` is the probability before each game that a wins, including dropped ties and games without a
        score. With ``ids``, games without a score stay open until ``update``. A player cannot play itself: such a
        game raises, or with ``skip_self`` is skipped and served nan. If this raises, the layer has not changed.
        """
        games = GameColumns(a, b, score, weights, home, times, label_times, ids)
        return run_elo(self, games, skip_self)

    @locked
    def predict_many(
        self,
        a: ColumnLike,
        b: ColumnLike,
        *,
        home: ColumnLike | None = None,
        weights: ColumnLike | None = None,
        ids: ColumnLike | None = None,
        times: ColumnLike | None = None,
    ) -> Sequence[float] | FloatArray:
        """For every game the probability that a wins, as from ``predict``; the same type of column as ``a``.

        Every prediction stays open until ``update_many`` (or ``update`` by id) posts its score.
        """
        columns.same_index(a=a, b=b, home=home, weights=weights, ids=ids, times=times)
        parts, book = self.internals, self.internals.tickets
        first, second = columns.cells(a, "a"), columns.cells(b, "b")
        n = len(first)
        columns.same_length(n, len(second), "b")
        if self.proximal is not None:
            raise BadInput(NOT_LATE)
        sides = [1.0] * n if home is None else columns.floats(home, "home").tolist()
        columns.same_length(n, len(sides), "home")
        row_weights = [1.0] * n if weights is None else columns.weights(weights, n).tolist()
        moments: list[float | None] = [None] * n
        if times is not None:
            moments = [float(time) for time in columns.times(times, n, "times", book).values.tolist()]
        games, names = [], checked_ids(book, ids, n)
        for k, row in enumerate(zip(first, second, sides, strict=True)):
            try:  # check every game before serving the first
                games.append(parts.names.row(*row))
            except BadInput as error:
                raise BadInput(f"row {k}: {error}") from None
        if n and ids is None and book.single(None) is not None:
            if not book.replaced:
                warn_replaced(None)
            book.replace_single(None)
        chances = []
        for row, weight, id, time in zip(games, row_weights, names, moments, strict=True):
            serve = partial(parts.rule.serve, time=time) if self.dates and time is not None else parts.rule.serve
            ticket, place = parts.issue(row, parts.names.known(row), COIN, weight, serve)
            book.put(ticket, id, time, place)
            if time is not None:
                book.expire(time)
            chances.append(ticket[3])
        return cast("Sequence[float] | FloatArray", columns.like(a, np.array(chances)))

    @staticmethod
    def sweep(
        etas: Sequence[float], a: ColumnLike, b: ColumnLike, score: ColumnLike, ties: Ties = "half"
    ) -> EloFrontier:
        """Log loss and player bias of several constant steps on these games, in one pass (in hindsight)."""
        from gradeq.layers.sweep import sweep_elo

        return sweep_elo(etas, a, b, score, ties)

    @locked
    def set_step(self, eta: float) -> None:
        """Change the constant step; the certificate then rests on the stored sums."""
        if self.eta == "auto":
            raise BadInput("eta='auto' chooses its own steps; make a new Elo with a fixed eta")
        step = Constant(scalars.step(eta))
        self.internals.rule.check_step(step.eta)
        self._take_step(step)

    def merge(self, other: Self) -> None:
        """Merge the state of another partition of the games: its sums are added and its open tickets taken over."""
        check_partition(self, other)
        with together(self, other):
            mine, theirs = self.copy(), other.copy()
            for layer in (mine, theirs):  # factors and products cannot be added
                layer.internals.state = layer.internals.rule.written(layer.internals.state)
            Layer.merge(mine, theirs)
            self.__setstate__(mine.__getstate__())

    @property
    def _other_settings(self) -> Saved:
        return super()._other_settings | {"home_advantage": self.internals.names.home}

    def validate_label(self, y: object) -> float:
        if type(y) is float and 0.0 <= y <= 1.0:
            return y
        score = scalars.as_number(y, "score")
        if not 0.0 <= score <= 1.0:
            raise BadInput(f"score {score} {OUTSIDE}")
        return score


def has_winner(score: object) -> bool:
    return score != 0.5


HOME_STEP = 0.1  # step of the home advantage, relative to the players' step


def resolve_step(
    eta: float | str | None,
    k: float | None,
    schedule: Schedule | None,
    penalty: Penalty | None,
    proximal: float | None,
) -> tuple[float | str | None, Schedule | None]:
    """The setting ``eta`` and the schedule (None for "auto")."""
    scalars.schedule(schedule)
    scalars.penalty(penalty)
    auto = (eta is None and k is None and schedule is None) or (isinstance(eta, str) and eta == "auto")
    values = {"k": k, "schedule": schedule, "penalty": penalty, "proximal": proximal, "eta": None if auto else eta}
    check_together("elo", {"auto": auto} | {name: value is not None for name, value in values.items()})
    if schedule is not None:
        schedule.step(1)
        return None, schedule
    if auto:
        return "auto", None
    step = step_from_k(scalars.step(k, "k")) if k is not None else scalars.step(eta)
    return step, Constant(step)


FEW, MANY = 100, 10_000  # up to FEW games are entered one by one; a rally ends after MANY


class Rally(dict[int, float]):
    """Buffered games: current ratings by player number, and the ``games`` not yet entered into the state."""

    __slots__ = ("eta", "games", "u")

    def __init__(self, u: Sequence[float], eta: float) -> None:
        self.u, self.eta = u, eta
        self.games: list[tuple[int, int, float]] = []

    def __missing__(self, j: int) -> float:
        rating: float = self.u[j]
        self[j] = rating
        return rating

    def play(self, a: int, b: int, y: float) -> bool:
        """Move both ratings; returns whether the buffer is full."""
        move(self, a, b, 0, 0.0, self.eta, win_chance(self[a] - self[b]) - y, 1.0)
        self.games.append((a, b, y))
        return len(self.games) >= MANY

    def columns(self, names: Players) -> RowColumns:
        a, b, y = np.array(self.games).T.copy()
        pairs = GamePairs(a.astype(np.int64), b.astype(np.int64), np.zeros(names.count))
        np.add.at(pairs.counts, pairs.params, 1.0)
        return RowColumns(np.broadcast_to(COIN, len(y)), y, None, names.columns(pairs, None))
