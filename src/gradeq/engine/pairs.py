"""The head of Elo: two ratings a game, p = sigmoid(u_a - u_b), both moved by the same step against the error.

t counts the games learned from: a game is served with the step of time 1 + games learned from so far. With a
penalty, its slope is taken at the ratings that served the game.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradeq.engine.margin import diverging
from gradeq.engine.pace import Pace
from gradeq.errors import StateError, StepTooLarge
from gradeq.kernels import rating, rating_plain
from gradeq.kernels.rating import COLUMNS, DECIDED, TIED, TOTALS
from gradeq.kernels.rating_rules import MARKS, NOTES, Free, LazyLasso, ScaledRidge
from gradeq.losses import LogLoss
from gradeq.penalties import Penalty, Ridge
from gradeq.schedules import Constant, Schedule

if TYPE_CHECKING:
    from gradeq.engine.batch import Batch, Floats

JUDGE = LogLoss(rating.CLIP)
COLUMNS_OF_STATE = ("u", "sums", "total", "drags", "pulls", "marks", "notes", "path")

# What is noted at serving for the score to come: the probability served, its step, how many games had been learned
# from, the offset, and with a penalty its slopes at the ratings that served.
Memo = Sequence[Any]


class Pairs:
    """Ratings u (parameter 0: the first side), their accounts, and what moves them.

    ``drop``: a score of 1/2 is no game. ``offset``: f is a probability whose logit is added to the margin.
    """

    __slots__ = (
        "drags", "drop", "learned", "limit", "marks", "notes", "offset", "pace", "path", "penalty", "proximal",
        "pulls", "rule", "schedule", "sums", "total", "u",
    )  # fmt: skip

    def __init__(
        self,
        schedule: Schedule,
        limit: float,
        penalty: Penalty | None = None,
        proximal: float | None = None,
        *,
        drop: bool = False,
        offset: bool = False,
    ) -> None:
        self.schedule, self.limit, self.drop, self.offset = schedule, limit, drop, offset
        self.penalty, self.proximal = penalty, proximal
        self.rule = made_rule(penalty, proximal)
        self.pace = Pace()
        self.learned = 0
        self.u: Any = array("d")
        self.sums: Any = array("d")
        self.total: Any = array("d", [0.0] * TOTALS)
        self.total[DECIDED] = self.total[TIED] = 1.0
        self.drags: Any = array("d")
        self.pulls: Any = array("d")
        self.marks: Any = array("d")
        self.notes: Any = array("d", [1.0] + [0.0] * (NOTES - 1))
        self.path: Any = array("d", [0.0, 0.0, 0.0])
        self.grow(1)

    @property
    def dense(self) -> bool:
        """Whether every game moves every rating, each on its own."""
        return self.penalty is not None and not isinstance(self.penalty, Ridge)

    @property
    def plain(self) -> bool:
        """Whether the quick loops fit: one constant step, no penalty, no offset."""
        free = self.penalty is None and self.proximal is None and not self.offset
        return free and type(self.schedule) is Constant

    def grow(self, count: int) -> None:
        """Room for ``count`` parameters in all; new ones start at zero."""
        more = count - len(self.u)
        if more > 0:
            self.u.extend([0.0] * more)
            self.sums.extend([0.0] * (COLUMNS * more))
            self.drags.extend([0.0] * more)
            self.pulls.extend([0.0] * more)
            self.marks.extend([0.0] * (MARKS * more))

    def state(self) -> dict[str, Any]:
        """All that learning has changed, ready for the codec."""
        pace = self.pace
        columns = {name: getattr(self, name) for name in COLUMNS_OF_STATE}
        return {**columns, "pace": [pace.low, pace.high, pace.held], "learned": self.learned}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        count = len(state["u"])
        sizes = (count, count * COLUMNS, TOTALS, count, count, count * MARKS, NOTES, 3)
        for name, size in zip(COLUMNS_OF_STATE, sizes, strict=True):
            if not isinstance(state[name], array) or len(state[name]) != size:
                raise StateError("the state is damaged: ratings and accounts differ in number")
            setattr(self, name, state[name])
        low, high, held = state["pace"]
        self.pace = Pace(float(low), float(high), int(held))
        self.learned = int(state["learned"])

    def rating(self, j: int) -> float:
        """The rating of j in natural log-odds."""
        return self.rule.read(self.u, j, self.marks, self.notes)

    def chance(self, index: Sequence[int], value: Sequence[float], f: float = 0.0) -> float:
        """The probability that the first of the two wins, now."""
        h = value[2] if len(value) > 2 else 0.0
        o = self.shifted(f)
        return rating.win_chance(
            rating.margin(self.rule, self.u, self.marks, self.notes, index[0], index[1], h, o)
        )

    def shifted(self, f: float) -> float:
        """The offset of the margin: the logit of f, or none."""
        return rating.offset(f) if self.offset else 0.0

    def step(self, crowd: float) -> float:
        """The step of a game served now."""
        eta = self.pace.step(self.schedule, self.learned + 1, self.limit, crowd)
        self.check_step(eta)
        rating.varied((eta,), (True,), self.path)
        return eta

    def check_step(self, eta: float) -> None:
        """A ridge step of eta strength >= 1 would flip every rating at each game."""
        if isinstance(self.penalty, Ridge) and eta * self.penalty.strength >= 1.0:
            raise StepTooLarge(
                f"eta {eta:g} times ridge strength {self.penalty.strength:g} is not below 1; "
                f"use eta < {1.0 / self.penalty.strength:g}"
            )

    def serve(
        self,
        unit: int,
        index: Sequence[int],
        value: Sequence[float],
        f: float,
        t: int,
        crowd: float,
    ) -> tuple[float, Memo]:
        """The probability that the first wins, and the memo that the score will need."""
        p = self.chance(index, value, f)
        slopes = None if self.penalty is None else self.slopes()
        return p, (p, self.step(crowd), self.learned, self.shifted(f), slopes)

    def slopes(self) -> list[float]:
        """The penalty's slope at every parameter now."""
        assert self.penalty is not None
        return [self.penalty.slope(self.rating(j)) for j in range(len(self.u))]

    def post(
        self,
        unit: int,
        index: Sequence[int],
        value: Sequence[float],
        f: float,
        memo: Memo,
        w: float,
        y: float,
    ) -> None:
        """Learn from the score of a served game."""
        p, eta, learned, o, slopes = memo
        self.learn(index, value, p, eta, o, w, y, None if learned == self.learned else slopes)

    def learn(
        self,
        index: Sequence[int],
        value: Sequence[float],
        p: float,
        eta: float,
        o: float,
        w: float,
        y: float,
        slopes: list[float] | None = None,
    ) -> None:
        """Move two ratings; ``slopes`` are those of a penalty when other games were learned from since serving."""
        if self.drop and y == 0.5:
            return
        a, b = index[0], index[1]
        h = value[2] if len(value) > 2 else 0.0
        if not math.isfinite(abs(self.u[a]) + abs(self.u[b]) + eta * w):
            raise diverging(eta)
        game: Any = (a, b, h, o, p, y, w, eta)
        accounts: Any = (self.u, self.sums, self.total, self.drags, self.pulls)
        if slopes is None and self.dense:
            slopes = self.slopes()
        if slopes is None:
            rest: Any = (*accounts, self.marks, self.notes, *game)
            rating.learn(self.rule, JUDGE, *rest)
        else:
            self.write_out()
            slopes = [*slopes, *([0.0] * (len(self.u) - len(slopes)))]
            rating.learn_dense(JUDGE, slopes, *accounts, *game)
        self.learned += 1

    def play(self, a: int, b: int, y: float) -> None:
        """One game of weight 1 by the quick loops, which give the same bits as ``learn``."""
        eta = self.schedule.step(1)
        game = ((a,), (b,), (y,), eta)
        if not math.isfinite(abs(self.u[a]) + abs(self.u[b]) + eta):
            raise diverging(eta)
        served = [0.0]
        rating_plain.rated(*game, self.u, served)
        rating_plain.accounted(JUDGE, *game, served, self.sums, self.total)
        if self.path[0] != 1.0 / eta:
            rating.varied((eta,), (True,), self.path)
        self.pace.note(eta, eta, 0)
        self.learned += 1

    def write_out(self) -> None:
        """Make the stored ratings what they mean: no common factor, nothing left to be taken."""
        rating.write_out(
            self.rule, self.u, self.sums, self.drags, self.pulls, self.marks, self.notes
        )

    def amend(
        self,
        unit: int,
        index: Sequence[int],
        value: Sequence[float],
        f: float,
        memo: Memo,
        w: float,
        old: float,
        new: float,
    ) -> None:
        """Replace a posted score by another: the difference of the two gradients is posted."""
        from gradeq.engine.pair_amends import amend

        amend(self, index, value, memo, w, old, new)

    def run(self, batch: Batch) -> tuple[Floats, list[Memo]]:
        """Serve and learn from a whole batch: the probabilities, and the memo of each game."""
        from gradeq.engine.pair_passes import run_pairs

        return run_pairs(self, batch)


def made_rule(penalty: Penalty | None, proximal: float | None) -> Free | ScaledRidge | LazyLasso:
    """How ratings are read and moved under this penalty."""
    if proximal is not None:
        return LazyLasso(proximal)
    return ScaledRidge(penalty.strength) if isinstance(penalty, Ridge) else Free()
