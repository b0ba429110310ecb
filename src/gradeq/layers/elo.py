"""Elo: ratings of players from games, so that everyone wins as often as was predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradeq.engine.desk import Desk
from gradeq.engine.mix import Mix, PointJudge
from gradeq.engine.pairs import JUDGE, Pairs
from gradeq.errors import BadInput
from gradeq.kernels.rating import win_chance
from gradeq.layers import door
from gradeq.layers.layer import Layer, late_limit
from gradeq.layers.players import HOME, Players
from gradeq.penalties import Penalty, check_strength
from gradeq.schedules import Constant, Schedule
from gradeq.theory.elo import step_from_k

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.elo_run import EloRun
    from gradeq.layers.elo_sweep import EloFrontier
    from gradeq.layers.standings import Standing
    from gradeq.theory import HarmCap

DEFAULT_ETA = 0.1
RATES = (0.003, 0.01, 0.023, 0.05, 0.1, 0.2, 0.4)
SHOWN = RATES.index(DEFAULT_ETA)  # whose ratings the leaderboard shows with eta="auto"
FINAL = 0.03
CAP = 0.3
FINAL_CAP = 0.1  # as for any probability
TIES = ("half", "drop")


class Elo(Layer):
    """Ratings of players in natural log-odds: P(a wins) = sigmoid(rating_a - rating_b), before every game.

    >>> elo = Elo()
    >>> elo.update("ann", "bob", 1)
    'applied'
    >>> round(elo.predict("ann", "bob"), 3)
    0.525
    >>> [(row.player, row.wins, round(row.bias, 3)) for row in elo.leaderboard()]
    [('ann', 1.0, -0.5), ('bob', 0.0, 0.5)]

    In equilibrium each player's mean predicted win rate equals the actual one: the bias of a player is exactly
    -rating / (eta games) for a constant step without penalty, whatever the games. It is the SIGNED bias from the
    player's own side; an unsigned error does not vanish (the paper's introduction prints it so).
    Guaranteed for any sequence: |bias| <= R / (eta games), R of order sqrt(T) and of order players x log T (result
    8.5); vacuous for players with few games.

    ``eta``: 0.1 (K = 17) left out; ``k``: the chess K-factor, eta = K ln 10 / 400; ``schedule``: any other steps,
    t counts the games learned from; ``eta="auto"``: seven rates mixed by log loss, and one small step on the logit of
    the mix that carries the certificate (result B5; the leaderboard then shows the ratings of the plain 0.1, bias and
    predicted win rate of what was served). ``ties``: "half" a win, or "drop" (no game). ``penalty``: ``Lasso`` (the
    paper's subgradient, every player at every game) or ``Ridge``; ``proximal``: strength of a lasso in proximal form,
    which sets ratings to exactly zero and costs no more than no penalty. ``home_advantage``: a parameter for the
    first side. ``late_cap``, ``in_flight``, ``ttl``: late scores, as for every layer; groups are the two players.

    Paper: sec:pairwise_preference, fig:elo_scores_chatbot; the bounds are results 8.5, 6.1, 6.3 and A1.
    """

    kind = "elo"

    def __init__(
        self,
        eta: float | str | None = None,
        *,
        k: float | None = None,
        ties: str = "half",
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        proximal: float | None = None,
        home_advantage: bool = False,
        late_cap: str | float | None = "auto",
        in_flight: int = 1,
        ttl: float | None = None,
    ) -> None:
        if ties not in TIES:
            raise BadInput(f"ties={ties!r}: must be half (half a win) or drop (no game)")
        if penalty is not None and proximal is not None:
            raise BadInput("give a penalty or a proximal strength, not both")
        if proximal is not None:
            check_strength("proximal", proximal)
        self.ties, self.penalty, self.proximal = ties, penalty, proximal
        self.late_cap, self.shadow = late_cap, False
        self.players = Players(bool(home_advantage))
        self.eta, self.schedule = self._chosen_step(eta, k, schedule)
        limit = late_limit(late_cap, CAP)
        step = self.schedule
        head = self._mix() if step is None else self._pairs(step, limit or 0.0)
        self.desk = Desk(head, capped=limit is not None, in_flight=in_flight, ttl=ttl)
        self._grow()
        if step is not None:
            self.certified.check_step(step.step(1))

    def predict(
        self,
        a: Any,
        b: Any,
        *,
        home: float = 1.0,
        weight: float = 1.0,
        id: str | int | None = None,
        time: float | None = None,
    ) -> float:
        """The probability that a wins. With an ``id`` a ticket stays open until ``settle`` brings the score.

        Without one nothing is changed; a player never seen has rating 0. ``home``: 1 when a is at home, 0 on neutral
        ground, -1 when b is (with ``home_advantage``).
        """
        h = self.players.side(home)
        if id is None:
            j, k = self.players.known(a, b)
            return self._chance(j, k, h)
        if self.proximal is not None:
            raise BadInput(
                "the proximal lasso needs scores at once; use penalty=Lasso(...) for late ones"
            )
        w = door.weight(weight)
        j, k = self.players.pair(a, b)
        self._grow()
        served: float = self.desk.open(self.players.row(j, k, h), 0.0, w, id, time)
        return served

    def update(  # type: ignore[override]  # a game is two players and a score
        self, a: Any, b: Any, score: Any, weight: float = 1.0, *, home: float = 1.0
    ) -> str:
        """Learn from a game that was not predicted under an id: a's score is 1, 0, or between (1/2 for a tie).

        Returns ``applied``, ``dropped`` for a tie when ties are dropped, ``ignored`` while frozen or for weight 0.
        """
        y = self.label(score)
        w = 1.0 if weight == 1.0 else door.weight(weight)
        h = self.players.side(home)
        j, k = self.players.pair(a, b)
        desk = self.desk
        self._grow()
        if self.ties == "drop" and y == 0.5:
            return "dropped"
        if desk.frozen or w == 0.0:
            return "ignored"
        row = self.players.row(j, k, h)
        head = desk.head
        peaks, open_now = desk.peaks, desk.open_now
        calm = all([peaks[c] < 2 and open_now[c] == 0 for c in row.cells])
        if calm and type(head) is Pairs:
            if head.plain and w == 1.0 and h == 0.0:
                head.play(j, k, y)
            else:
                p = head.chance(row.params, row.value)
                head.learn(row.params, row.value, p, head.step(0.0), 0.0, w, y)
            desk.served += 1
            desk.clocks[0] += 1
            desk.tops[0] = desk.largest = 1.0
            if w > desk.heaviest:
                desk.heaviest = w
        else:
            desk.open(row, 0.0, w)
            ticket = desk.queue[-1]
            try:
                head.post(0, row.params, row.value, 0.0, ticket.memo, w, y)
            finally:
                desk.queue.pop()
                for c in row.cells:
                    open_now[c] -= 1
        desk.posted += 1
        return "applied"

    def settle(self, score: Any, id: str | int | None = None) -> str:
        """Learn from the score of the game that was predicted under this id, or of the oldest open one.

        Returns ``applied``, ``dropped``, or ``duplicate`` when this very score was settled before; another score for
        the same id raises ``LabelConflict``.
        """
        y = self.label(score)
        desk = self.desk
        if self.ties == "drop" and y == 0.5 and not (id is not None and id in desk.closed):
            ticket = desk.find(id)
            desk.close(ticket)
            if ticket.id is not None:
                desk.closed[ticket.id] = (y, ticket)
            return "dropped"
        return desk.post(y, id)

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
    ) -> EloRun:
        """Play whole columns of games, with the same bits as one game at a time.

        ``run.served`` is the probability before each game that a wins, also of dropped ties and of games without a
        score. A game against oneself is refused; with ``skip_self`` it is left out and served nan. Nothing has
        changed if this raises.
        """
        from gradeq.layers.elo_run import run_elo

        return run_elo(self, a, b, score, weights, home, times, label_times, skip_self)

    def leaderboard(self) -> list[Standing]:
        """Everyone who has played, highest rating first, with games, win rates, bias, bound, interval and rank."""
        from gradeq.layers.standings import standings

        return standings(self)

    def equilibrium(self) -> Equilibrium:
        """Exact averages for each player, the certificate from the ratings, the proven bound, bias and log loss."""
        from gradeq.layers.elo_certify import certify

        return certify(self)

    def labels_until(self, bound: float) -> int | None:
        """How many more games until every player's proven bound is below this, if things go on as they were."""
        from gradeq.layers.elo_certify import games_until

        return games_until(self, bound)

    def harm_cap(self) -> HarmCap:
        """Most that the step can cost in log loss against a coin, whatever comes; its sentence says when unproven."""
        from gradeq.layers.elo_certify import capped_harm

        return capped_harm(self)

    @staticmethod
    def sweep(etas: Sequence[float], a: Any, b: Any, score: Any, ties: str = "half") -> EloFrontier:
        """Log loss and player bias of many constant steps in one pass, in hindsight on these same games."""
        from gradeq.layers.elo_sweep import sweep

        return sweep(etas, a, b, score, ties)

    def label(self, y: Any) -> float:
        """The score, checked."""
        score = door.number(y, "score")
        if not 0.0 <= score <= 1.0:
            raise BadInput(
                f"score {score} lies outside [0, 1]; a's score is 1 for a win, 0 for a loss, 0.5 for a tie"
            )
        return score

    def set_step(self, eta: float) -> None:
        """Use another constant step from now on; the certificate goes on with the exact sums."""
        head = self.desk.head
        if not isinstance(head, Pairs):
            raise BadInput("eta='auto' chooses its own steps; make a new Elo with a fixed eta")
        step = Constant(door.number(eta, "eta"))
        head.check_step(step.eta)
        self.desk.log.append((f"step {head.schedule} to {step}", self.desk.served))
        self.eta, self.schedule, head.schedule = step.eta, step, step

    @property
    def ratings(self) -> dict[str, float]:
        """The rating of each player in natural log-odds; with ``auto`` those of the plain Elo of step 0.1."""
        head = self.shown
        return {name: head.rating(j) for name, j in self.players.names.items()}

    @property
    def theta(self) -> dict[str, float]:
        """The parameters that carry the certificate, by name; with ``auto`` the corrections of the final step."""
        head = self.certified
        named = {HOME: 0, **self.players.names} if self.players.home else self.players.names
        return {name: head.rating(j) for name, j in named.items()}

    @property
    def certified(self) -> Pairs:
        """The head that carries the certificate."""
        head = self.desk.head
        return head.final if isinstance(head, Mix) else head  # type: ignore[return-value]

    @property
    def shown(self) -> Pairs:
        """The head whose ratings the leaderboard shows."""
        head = self.desk.head
        return head.experts[SHOWN] if isinstance(head, Mix) else head  # type: ignore[return-value]

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew."""
        return {
            "eta": self.eta,
            "ties": self.ties,
            "schedule": None if self.eta is not None else self.schedule,
            "penalty": self.penalty,
            "proximal": self.proximal,
            "home_advantage": self.players.home,
            "late_cap": self.late_cap,
            "in_flight": self.desk.in_flight,
            "ttl": self.desk.ttl,
        }

    def state(self) -> dict[str, Any]:
        """All that has changed since the layer was made."""
        return {"names": list(self.players.names), **self.desk.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        self.players.names = {name: j + 1 for j, name in enumerate(state["names"])}
        self.desk.restore(state)
        self._grow()

    def _chosen_step(
        self, eta: float | str | None, k: float | None, schedule: Schedule | None
    ) -> tuple[float | str | None, Schedule | None]:
        if sum(given is not None for given in (eta, k, schedule)) > 1:
            raise BadInput("give one of eta, k and a schedule")
        if schedule is not None:
            schedule.step(1)
            return None, schedule
        if eta == "auto":
            if self.penalty is not None or self.proximal is not None:
                raise BadInput("eta='auto' does not go with a penalty; give a number for eta")
            return "auto", None
        if k is not None:
            eta = step_from_k(door.number(k, "k"))
        step = DEFAULT_ETA if eta is None else door.number(eta, "eta")
        return step, Constant(step)

    def _pairs(self, schedule: Schedule, limit: float, offset: bool = False) -> Pairs:
        drop = self.ties == "drop"
        return Pairs(schedule, limit, self.penalty, self.proximal, drop=drop, offset=offset)

    def _mix(self) -> Mix:
        experts = [self._pairs(Constant(rate), CAP) for rate in RATES]
        final = self._pairs(Constant(FINAL), FINAL_CAP, offset=True)
        return Mix(experts, final, PointJudge(JUDGE), adaptive=False, raw=False)

    def _grow(self) -> None:
        count = self.players.count
        desk = self.desk
        if len(desk.peaks) < count:
            desk.head.grow(count)
            desk.grow(1, count)

    def _chance(self, j: int | None, k: int | None, h: float) -> float:
        """The probability that j beats k; None stands for a player with rating 0."""
        head: Any = self.desk.head

        def margin(own: Pairs) -> float:
            first = 0.0 if j is None else own.rating(j)
            second = 0.0 if k is None else own.rating(k)
            return (first - second) + h * own.rating(0)

        if not isinstance(head, Mix):
            return win_chance(margin(head))
        from gradeq.kernels.mixing import blend

        chances = [win_chance(margin(expert)) for expert in head.experts]
        blended = blend(head.weights(), 0, chances, 0, head.count)
        return win_chance(head.final.shifted(blended) + margin(head.final))
