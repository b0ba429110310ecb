"""The head with one margin a row: s = link(f, z'u), learning by u <- u - eta (w e) z.

Debiasing, generalised linear models, linear quantile tracking and Elo are this head with other parts.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradeq.engine.pace import Pace
from gradeq.errors import Diverging, StateError
from gradeq.kernels import loops
from gradeq.kernels.lane import MOST
from gradeq.kernels.loops import COLUMNS, HIGH, LOW
from gradeq.links import Link
from gradeq.losses import Loss
from gradeq.penalties import Penalty
from gradeq.schedules import Schedule

if TYPE_CHECKING:
    from gradeq.engine.batch import Batch, Floats

# What a head notes at serving for the label to come: the value served, its step, and with a penalty its slopes
# at the parameters that served.
Memo = tuple[float, float, list[float] | None]


def empty_account() -> list[float]:
    """The sums of a parameter that has seen no label."""
    account = [0.0] * COLUMNS
    account[LOW], account[HIGH] = math.inf, -math.inf
    return account


def account(sums: Any, j: int) -> list[float]:
    """The sums of parameter j."""
    return list(sums[j * COLUMNS : (j + 1) * COLUMNS])


EMPTY = empty_account()


class Margin:
    """Parameters u, their accounts, and the parts that serve and move them."""

    __slots__ = (
        "drags",
        "leash",
        "limit",
        "link",
        "loss",
        "pace",
        "penalty",
        "pulls",
        "schedule",
        "size",
        "sums",
        "total",
        "u",
    )

    def __init__(
        self,
        link: Link,
        loss: Loss,
        schedule: Schedule,
        limit: float,
        penalty: Penalty | None = None,
        totals: bool = False,
    ) -> None:
        self.link, self.loss, self.schedule, self.limit = link, loss, schedule, limit
        self.penalty = penalty
        self.pace = Pace()
        self.leash: float | None = None
        self.size: float | None = (
            None  # steps are divided by the largest squared norm so far; None: they are not
        )
        self.u: Any = array("d")
        self.sums: Any = array("d")  # COLUMNS sums for each parameter, one after the other
        self.total: Any = array("d", EMPTY if totals else [])  # the account of all rows together
        self.pulls: Any = array("d")  # sum of the penalty's slopes
        self.drags: Any = array("d")  # sum of eta times the penalty's slopes

    def grow(self, count: int) -> None:
        """Room for ``count`` parameters in all; new ones start at zero."""
        more = count - len(self.u)
        if more > 0:
            self.u.frombytes(bytes(8 * more))
            self.sums.extend(array("d", EMPTY) * more)
            if self.penalty is not None:
                self.pulls.frombytes(bytes(8 * more))
                self.drags.frombytes(bytes(8 * more))

    def state(self) -> dict[str, Any]:
        """All that learning has changed, ready for the codec."""
        return {
            "u": self.u,
            "sums": self.sums,
            "total": self.total,
            "pulls": self.pulls,
            "drags": self.drags,
            "pace": self.pace.as_list(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        for name in ("u", "sums", "total", "pulls", "drags"):
            if not isinstance(state[name], array) or len(state["sums"]) != COLUMNS * len(
                state["u"]
            ):
                raise StateError("the state is damaged: parameters and accounts differ in number")
            setattr(self, name, state[name])
        self.pace = Pace(*state["pace"])

    def serve(
        self,
        unit: int,
        index: Sequence[int],
        value: Sequence[float],
        f: float,
        t: int,
        crowd: float,
    ) -> tuple[float, Memo]:
        """The served value, and the memo that its label will need."""
        s = self.link.serve(f, loops.margin(self.u, index, value, 0, len(index)))
        eta = self.pace.step(self.schedule, t, self.limit, crowd, self.size or 1.0)
        slopes = None if self.penalty is None else [self.penalty.slope(x) for x in self.u]
        return s, (s, eta, slopes)

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
        """Learn from the label of a served row; raises ``Diverging`` with nothing changed."""
        s, eta, slopes = memo
        u = self.u
        e = w * self.loss.slope(s, y)
        touched: Sequence[int] = index if slopes is None else range(len(u))
        if slopes is None:
            moved = [u[j] - eta * (e * z) for j, z in zip(index, value, strict=True)]
        else:
            # Parameters born since the row was served pull at nothing.
            pull = [*slopes, *([0.0] * (len(u) - len(slopes)))]
            for j, z in zip(index, value, strict=True):
                pull[j] = pull[j] + e * z
            moved = [u[j] - eta * pull[j] for j in touched]
        widest = self.widest(touched, abs(y - f))
        for new in moved:
            if not -widest <= new <= widest:
                raise diverging(eta)
        for j, new in zip(touched, moved, strict=True):
            u[j] = new
        for j, slope in enumerate(slopes or ()):
            self.pulls[j] = self.pulls[j] + slope
            self.drags[j] = self.drags[j] + eta * slope
        for j, z in zip(index, value, strict=True):
            loops.enter(self.link, self.loss, self.sums, j * COLUMNS, f, s, y, w, z, eta)
        if self.total:
            loops.enter(self.link, self.loss, self.total, 0, f, s, y, w, 1.0, eta)

    def widest(self, index: Sequence[int], residual: float = 0.0) -> float:
        """How far a parameter may go before the layer counts as diverging.

        ``leash`` is 10 P (times sqrt n where groups overlap), P the most tickets ever open: well beyond every radius
        that is proven for the squared error, (2 P + 1) b at most (results A3a, 5.2). None: any finite number.
        """
        if self.leash is None:
            return MOST
        sums = self.sums
        for j in index:
            low, high = sums[j * COLUMNS + LOW], sums[j * COLUMNS + HIGH]
            if high > residual:
                residual = high
            if -low > residual:
                residual = -low
        leash = self.leash * (math.sqrt(self.total[0] + 1.0) if self.total else 1.0)
        return float(min(MOST, leash * residual))

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
        """Replace a posted label by another: the difference of the two gradients is posted."""
        s, eta, _ = memo
        e = w * self.loss.slope(s, new) - w * self.loss.slope(s, old)
        loops.move(self.u, index, value, 0, len(index), eta, e)
        for j, z in zip(index, value, strict=True):
            self._reenter(self.sums, j * COLUMNS, f, memo, w, z, old, new)
        if self.total:
            self._reenter(self.total, 0, f, memo, w, 1.0, old, new)

    def _reenter(
        self, sums: Any, at: int, f: float, memo: Memo, w: float, z: float, old: float, new: float
    ) -> None:
        s, eta, _ = memo
        before, after = empty_account(), empty_account()
        loops.enter(self.link, self.loss, before, 0, f, s, old, w, z, eta)
        loops.enter(self.link, self.loss, after, 0, f, s, new, w, z, eta)
        for c in range(COLUMNS):
            if c == LOW:
                sums[at + c] = min(sums[at + c], after[c])
            elif c == HIGH:
                sums[at + c] = max(sums[at + c], after[c])
            else:
                sums[at + c] = sums[at + c] + (after[c] - before[c])

    def run(self, batch: Batch) -> tuple[Floats, list[Memo]]:
        """Serve and learn from a whole batch: the served values, and the memo of each row."""
        from gradeq.engine.passes import run_margin

        return run_margin(self, batch)


def diverging(eta: float) -> Diverging:
    """The refusal of a step that would leave the proven range."""
    return Diverging(
        f"a parameter leaves its proven range with a step of {eta:g}: the layer is diverging; "
        "use a smaller eta (weights scale it), or the late-label cap where labels come late"
    )
