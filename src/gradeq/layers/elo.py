"""Elo: ratings of players from games, so that everyone wins as often as was predicted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from gradeq.engine import checks
from gradeq.engine.players import Players
from gradeq.errors import BadInput
from gradeq.layers.columns import Moment, moment
from gradeq.layers.elo_many import ManyGames
from gradeq.layers.elo_rally import Rally
from gradeq.layers.elo_standings import Standings
from gradeq.layers.elo_steps import chosen_step, home_scale
from gradeq.layers.guard import holds_lock, together
from gradeq.layers.joining import check_partition
from gradeq.layers.layer import Asked, Id, Layer
from gradeq.layers.making import late_limit
from gradeq.ledger.state import UNREAD, State
from gradeq.ledger.values import Ticket
from gradeq.penalties import Penalty, check_strength
from gradeq.rules.drift import Drift
from gradeq.rules.forecaster import Forecaster
from gradeq.rules.rating import COIN, NOT_LATE, Rating
from gradeq.schedules import Constant, Schedule

if TYPE_CHECKING:
    from gradeq.layers.elo_run import EloRun
    from gradeq.layers.elo_sweep import EloFrontier

Ties = Literal["half", "drop"]

CAP = 0.3
FINITE = 1e6  # with smaller steps no number of games takes a rating out of the finite numbers
PLAIN_ETA = 0.1  # a constant step for those who ask for one without a number (--eta plain)

__all__ = ["Elo"]


class Elo(Standings, ManyGames, Layer):
    """Ratings of players in natural log-odds: P(a wins) = sigmoid(rating_a - rating_b), before every game.

    >>> elo = Elo()
    >>> elo.update("ann", "bob", 1)
    'applied'
    >>> round(elo.predict("ann", "bob"), 3)
    0.598
    >>> [(row.player, row.wins, round(row.bias, 3)) for row in elo.leaderboard()]
    [('ann', 1.0, -0.5), ('bob', 0.0, 0.5)]

    In equilibrium each player's mean predicted win rate equals the actual one: the bias of a player is exactly
    -tracked / (eta games) for a constant step without penalty, whatever the games. It is the SIGNED bias from the
    player's own side; an unsigned error does not vanish (the paper's introduction prints it so).
    Guaranteed for any sequence: |bias| <= R / (eta games), R of order sqrt(T) and of order players x log T (result
    8.5); vacuous for players with few games. Elo, intervals and ranks of the leaderboard are statistics: a
    Bradley-Terry fit of all games, the same in any order, or the strengths of the moment where strengths drift.

    ``eta`` left out (or "auto"): forecasts are a mixture of filters that expect strengths to drift at six speeds, and
    one constant step of 0.01 on the logit of the mix that carries the certificate (result B5). ``eta``: plain Elo
    with that step; ``k``: the chess K-factor, eta = K ln 10 / 400; ``schedule``: any other steps, t counts the games
    learned from. ``ties``: "half" a win, or "drop" (no game). With a step, ``penalty``: ``Lasso`` (the paper's
    subgradient, every player at every game) or ``Ridge``; ``proximal``: strength of a lasso in proximal form, which
    sets ratings to exactly zero and costs no more than no penalty. ``home_advantage``: a parameter for the first
    side; ``home_step``: its step, a tenth of the players' if left out. ``dates``: times are dates (numbers are then
    nanoseconds since 1970), and strengths may drift by the year. ``late_cap``, ``in_flight``, ``ttl``: late
    scores, as for every layer; groups are the two players.

    Paper: sec:pairwise_preference, fig:elo_scores_chatbot; the bounds are results 8.5, 6.1, 6.3 and A1.
    """

    kind = "elo"
    _rule: Any
    _rally: Rally | None = None

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
        late_cap: Literal["auto"] | float | None = "auto",
        in_flight: int = 1,
        ttl: float | str | None = None,
    ) -> None:
        if ties not in ("half", "drop"):
            raise BadInput(f"ties={ties!r}: must be half (half a win) or drop (no game)")
        if proximal is not None:
            check_strength("proximal", checks.number(proximal, "proximal"))
        self.ties, self.penalty, self.proximal, self.late_cap = ties, penalty, proximal, late_cap
        self._learns = None if ties == "half" else decided
        self.eta, self.schedule = chosen_step(eta, k, schedule, penalty, proximal)
        self._takes_auto = penalty is None and proximal is None
        self.dates = checks.flag(dates, "dates")
        self.home_step = home_step
        names = Players(
            checks.flag(home_advantage, "home_advantage"),
            penalty is not None,
            home_scale(home_step, self.schedule),
        )
        self._build(self._made_rule(), names, late_limit(late_cap, CAP), in_flight, ttl, queue=True)
        self._held.enter = self._rule.enter

    def _made_rule(self) -> Rating | Forecaster:
        drop, drift = self.ties == "drop", Drift(self.dates)
        if self.schedule is None:
            return Forecaster(drop, drift)
        rule = Rating(self.schedule, self.penalty, self.proximal, drop, drift)
        rule.check_step(self.schedule.step(1))
        return rule

    def open(
        self, a: Any, b: Any, *, home: float = 1.0, weight: float = 1.0, time: Moment | None = None
    ) -> Ticket:
        """Predict a game and leave its ticket with the caller: ``ticket.served`` is the probability that a wins."""
        ticket = self._ticket(*self._asked(a, b, home, weight), self._serve(time))
        if time is not None:
            self._book.note_clock()
        return ticket

    def _asked(self, a: Any, b: Any, home: float, weight: float) -> Asked:
        """What a call asks for, checked: where the game belongs, and its weight."""
        w = 1.0 if type(weight) is float and weight == 1.0 else checks.weight(weight)
        row = self._names.row(a, b, home)
        return row, self._names.known(row), COIN, w

    def _serve(self, time: Moment | None) -> Any:
        """How a game of this time is served."""
        if time is None or not self.dates:
            return self._rule.serve
        return partial(self._rule.serve, time=moment(time, self._book))

    @holds_lock
    def predict(
        self,
        a: Any,
        b: Any,
        *,
        home: float = 1.0,
        weight: float = 1.0,
        id: Id | None = None,
        time: Moment | None = None,
    ) -> float:
        """The probability that a wins. With an ``id`` a ticket stays open until ``settle`` brings the score.

        Without one nothing is changed; a player never seen has rating 0. ``home``: 1 when a is at home, 0 on neutral
        ground, -1 when b is (with ``home_advantage``).
        """
        lock = self._lock
        try:
            lock.acquire()
            if id is None:
                return self._chance(a, b, home, time)
            if self.proximal is not None:
                raise BadInput(NOT_LATE)
            id = self._book.check_new(id)
            when = None if time is None else moment(time, self._book)
            asked = self._asked(a, b, home, weight)
            shown: float = self._open(*asked, id, when, self._serve(time))
            if time is not None:
                self._book.note_clock()
            return shown
        finally:
            lock.release()

    def peek(self, a: Any, b: Any, *, home: float = 1.0, time: Moment | None = None) -> float:
        """The probability that a wins, as ``predict`` would serve it now; nothing is counted or kept."""
        return self._chance(a, b, home, time)

    def _chance(self, a: Any, b: Any, home: float, time: Moment | None) -> float:
        rally = self._rally
        pair = (
            self._names.pair(a, b)
            if rally is not None and type(home) is float and home == 1.0
            else None
        )
        if rally is not None and pair is not None:
            return rally.chance(*pair)
        row, serve, mark = self._names.row(a, b, home), self._serve(time), None
        place = self._names.known(row)
        if place is None:
            mark = self._names.mark()
            place = self._entered(row)
        p: float = serve(self._state, place, row.values, COIN)[0]
        self._forget(mark)
        return p

    @holds_lock
    def update(  # type: ignore[override]  # a game is two players and a score
        self,
        a: Any,
        b: Any,
        score: Any,
        weight: float = 1.0,
        *,
        home: float = 1.0,
        time: Moment | None = None,
    ) -> str:
        """Learn from a game that was not predicted under an id: a's score is 1, 0, or between (1/2 for a tie).

        Returns ``applied``, ``dropped`` for a tie when ties are dropped, ``ignored`` while frozen or for weight 0.
        """
        y = self._label(score)
        learns = self._learns is None or self._learns(y)
        lock = self._lock
        try:
            lock.acquire()
            rally = self._rally
            plain = type(weight) is float is type(home) and weight == home == 1.0
            if rally is not None and learns and plain:
                pair = self._names.pair(a, b)
                if pair is not None:
                    if rally.play(pair[0], pair[1], y):
                        self._end_rally()
                    return "applied"
            return self._played(a, b, y, weight, home, time)
        finally:
            lock.release()

    def _played(
        self, a: Any, b: Any, y: float, weight: float, home: float, time: Moment | None
    ) -> str:
        """What became of a game that may need more than two ratings and one step."""
        mark, self._flight.before = self._names.mark(), None
        ticket, place = self._issue(*self._asked(a, b, home, weight), self._serve(time))
        if time is not None:
            self._book.note_clock()
        try:
            self._post(ticket, place, y)
        except Exception:
            self._flight.unweigh(self._state)
            self._flight.unserve(self._state, place.cells)
            self._forget(mark)
            raise
        if self._plain and not self._frozen and not self._held.late and not self._held.weighed:
            self._rally = Rally(self._held.u, self.step)
        if self._learns is not None and not self._learns(y):
            return "dropped"
        return "ignored" if self._frozen or ticket[4] == 0.0 else "applied"

    @property
    def _plain(self) -> bool:
        """Whether games at once need nothing but two ratings and one step to be served and learned from."""
        if self.eta == "auto" or self._constant is None or self._constant > FINITE:
            return False
        return not (self._names.home or self.dates or self._rule.penalised)

    @property
    def _state(self) -> State:
        """What was learned: games that wait are entered first."""
        if self._rally is not None:
            self._end_rally()
        return self._held

    @_state.setter
    def _state(self, state: State) -> None:
        self._held, self._rally = state, None

    def _end_rally(self) -> None:
        rally, self._rally = self._rally, None
        if rally is not None and rally.games:
            self._run(lambda: rally.columns(self._names))

    def _run(self, columns: Any) -> Any:
        done = super()._run(columns)
        if sum(np.size(entry[0]) for entry in self._held.unread) > 16 * UNREAD:
            self._held.read()
        return done

    def freeze(self) -> None:
        """Stop learning: scores close their tickets but move nothing, until ``resume``."""
        self._end_rally()
        super().freeze()

    def settle(self, score: Any, id: Id | None = None) -> str:
        """Learn from the score of the game that was predicted under this id, or of the oldest open one.

        Returns ``applied``, ``dropped``, or ``duplicate`` when this very score was settled before; another score for
        the same id raises ``LabelConflict``.
        """
        done = super().update(score, id)
        learns = self._learns is None or self._learns(score)
        return done if learns or done != "applied" else "dropped"

    def run(
        self,
        a: Any,
        b: Any,
        score: Any = None,
        *,
        weights: Any = None,
        home: Any = None,
        times: Any = None,
        label_times: Any = None,
        skip_self: bool = False,
        ids: Any = None,
    ) -> EloRun:
        """Play whole columns of games, bit-for-bit identical to one game at a time.

        ``run.served`` is the probability before each game that a wins, also of dropped ties and of games without a
        score (with ``ids`` these keep their tickets until ``settle``). A game against oneself is refused; with
        ``skip_self`` it is left out and served nan. Nothing has changed if this raises.
        """
        from gradeq.layers.elo_run import run_elo

        return run_elo(self, a, b, score, weights, home, times, label_times, skip_self, ids)

    @staticmethod
    def sweep(
        etas: Sequence[float], a: Any, b: Any, score: Any, ties: Ties = "half"
    ) -> EloFrontier:
        """Log loss and player bias of many constant steps in one pass, in hindsight on these same games."""
        from gradeq.layers.elo_sweep import sweep

        return sweep(etas, a, b, score, ties)

    def set_step(self, eta: float) -> None:
        """Use another constant step from now on; the certificate goes on with the exact sums."""
        if self.eta == "auto":
            raise BadInput("eta='auto' chooses its own steps; make a new Elo with a fixed eta")
        step = Constant(checks.step(eta))
        self._rule.check_step(step.eta)
        self._take_step(step)

    @holds_lock
    def merge(self, other: Self) -> None:
        """Join the state of another partition of the games: sums add up; open tickets come along."""
        check_partition(self, other)
        with together(self, other):
            mine, theirs = self.copy(), other.copy()
            for layer in (mine, theirs):  # factors and products do not add up
                layer._state = layer._rule.written(layer._state)
            Layer.merge(mine, theirs)
            self.__setstate__(mine._parts())

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew."""
        return {
            "eta": self.eta,
            "ties": self.ties,
            "schedule": None if self.eta is not None else self.schedule,
            "penalty": self.penalty,
            "proximal": self.proximal,
            "home_advantage": self._names.home,
            "home_step": self.home_step,
            "dates": self.dates,
            "late_cap": self.late_cap,
            "in_flight": self._flight.in_flight,
            "ttl": self._book.ttl,
        }

    def _label(self, y: Any) -> float:
        if type(y) is float and 0.0 <= y <= 1.0:
            return y
        score = checks.number(y, "score")
        if not 0.0 <= score <= 1.0:
            raise BadInput(
                f"score {score} lies outside [0, 1]; a's score is 1 for a win, 0 for a loss, 0.5 for a tie"
            )
        return score


def decided(score: float) -> bool:
    """Whether a game has a winner."""
    return score != 0.5
