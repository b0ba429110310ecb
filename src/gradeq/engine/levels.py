"""The head of quantile tracking: K levels that never cross, straight or through the sinh link.

Each parameter has one u per level (entry j * K + k). One label moves every level by its own miss,
1{y <= served_k} - tau_k, and the served values are the isotonic projection of forecasts plus z'u (results 8.6, B3).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradeq.engine.margin import EMPTY, diverging, empty_account
from gradeq.engine.pace import Pace
from gradeq.errors import StateError
from gradeq.kernels import levels as loops
from gradeq.kernels.loops import COLUMNS, HIGH, LOW
from gradeq.links import Sinh
from gradeq.penalties import Penalty
from gradeq.schedules import Schedule

if TYPE_CHECKING:
    from gradeq.engine.batch import Batch, Floats

SINH = Sinh()
COLUMN_NAMES = ("u", "sums", "total", "gaps", "widest", "nums", "dens", "pulls", "drags")

# What is noted at serving: the values served, the step, the scale, and with a penalty its slopes.
Memo = tuple[list[float], float, float, list[float] | None]


class Levels:
    """Parameters u by level, their accounts, the running scale of each unit, and the parts that serve them.

    ``start`` is u_1 of each level, for every parameter. A forecast is one number for one level, else a sorted list.
    """

    __slots__ = (
        *COLUMN_NAMES, "count", "curved", "limit", "pace", "penalty", "schedule", "scratch", "start", "taus",
    )  # fmt: skip

    def __init__(
        self,
        taus: Sequence[float],
        schedule: Schedule,
        limit: float,
        *,
        curved: bool = True,
        start: Sequence[float] | None = None,
        penalty: Penalty | None = None,
        totals: bool = False,
    ) -> None:
        self.taus, self.schedule, self.limit, self.curved = list(taus), schedule, limit, curved
        self.start = [0.0] * len(self.taus) if start is None else list(start)
        self.penalty = penalty
        self.pace = Pace()
        self.count = count = len(self.taus)  # how many levels
        self.scratch = [[0.0] * count for _ in range(3)]
        self.u: Any = array("d")
        self.sums: Any = array("d")  # COLUMNS sums for each parameter and level
        self.total: Any = array("d", EMPTY * count if totals else [])  # all rows together
        self.gaps: Any = array("d")  # the widest distance of neighbouring forecasts, tracked unit
        self.widest: Any = array("d", [0.0] * count if totals else [])  # the same for all rows
        self.nums: Any = array("d")  # the running scale of each unit is num / den
        self.dens: Any = array("d")
        self.pulls: Any = array("d")  # sum of the penalty's slopes
        self.drags: Any = array("d")  # sum of eta times the penalty's slopes

    def grow(self, count: int) -> None:
        """Room for ``count`` parameters in all, and as many units (every unit has a parameter of its own)."""
        more = count - len(self.nums)
        if more > 0:
            self.u.extend(self.start * more)
            self.sums.extend(EMPTY * (more * self.count))
            self.gaps.extend([0.0] * (more * self.count))
            self.nums.extend([0.0] * more)
            self.dens.extend([0.0] * more)
            if self.penalty is not None:
                self.pulls.extend([0.0] * (more * self.count))
                self.drags.extend([0.0] * (more * self.count))

    def state(self) -> dict[str, Any]:
        """All that learning has changed, ready for the codec."""
        columns = {name: getattr(self, name) for name in COLUMN_NAMES}
        return {**columns, "pace": self.pace.as_list()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        units = len(state["nums"])
        for name, width in (("u", 1), ("sums", COLUMNS), ("gaps", 1)):
            if len(state[name]) != units * self.count * width:
                raise StateError("the state is damaged: parameters and accounts differ in number")
        for name in COLUMN_NAMES:
            if not isinstance(state[name], array):
                raise StateError(f"the state is damaged: {name} is not a column")
            setattr(self, name, state[name])
        self.pace = Pace(*state["pace"])

    def serve(
        self, unit: int, index: Sequence[int], value: Sequence[float], f: Any, t: int, crowd: float
    ) -> tuple[Any, Memo]:
        """The served values (one number for one level), and the memo that their label will need."""
        count = self.count
        base = [f] if count == 1 else f
        m = base[count // 2]
        scale = loops.scale_at(self.nums[unit], self.dens[unit], m) if self.curved else 1.0
        a, wish, theta = self.scratch
        served = [0.0] * count
        loops.place(SINH, self.curved, count, base, 0, m, scale, a)
        loops.serve(
            SINH, self.curved, count, self.u, index, value, 0, len(index), base, 0, m, scale, a,
            wish, theta, served, 0,
        )  # fmt: skip
        eta = self.pace.step(self.schedule, t, self.limit, crowd)
        slopes = None if self.penalty is None else [self.penalty.slope(x) for x in self.u]
        return served[0] if count == 1 else served, (served, eta, scale, slopes)

    def post(
        self,
        unit: int,
        index: Sequence[int],
        value: Sequence[float],
        f: Any,
        memo: Memo,
        w: float,
        y: float,
    ) -> None:
        """Learn from the label of a served row; raises ``Diverging`` with nothing changed."""
        served, eta, scale, slopes = memo
        count = self.count
        base = [f] if count == 1 else f
        m = base[count // 2]
        a = self.scratch[0]
        if not eta * w * max(map(abs, value), default=0.0) < 1e300:
            raise diverging(eta)
        loops.place(SINH, self.curved, count, base, 0, m, scale, a)
        row = (index, value, 0, len(index))
        if slopes is None:
            loops.learn(count, self.taus, self.u, *row, served, 0, eta, w, y)
        else:  # parameters born since the row was served pull at nothing
            pull = [*slopes, *([0.0] * (len(self.u) - len(slopes)))]
            loops.drag(
                count, self.taus, self.u, *row, served, 0, eta, w, y, pull, self.pulls, self.drags
            )
        loops.tally(
            SINH, self.curved, count, self.taus, base, 0, m, scale, a, served, 0, eta, w, y, *row,
            self.sums, self.gaps, self.total, self.widest,
        )  # fmt: skip
        if self.curved:
            loops.fade(self.nums, self.dens, unit, m, y)

    def amend(
        self,
        unit: int,
        index: Sequence[int],
        value: Sequence[float],
        f: Any,
        memo: Memo,
        w: float,
        old: float,
        new: float,
    ) -> None:
        """Replace a posted label by another: the difference of the two gradients is posted.

        The running scale keeps what it learned: it only chooses what is served next.
        """
        served, eta, _, _ = memo
        row = (index, value, 0, len(index))
        loops.learn(self.count, self.taus, self.u, *row, served, 0, eta, w, new)
        loops.learn(self.count, self.taus, self.u, *row, served, 0, -eta, w, old)
        for j, z in zip(index, value, strict=True):
            self._reenter(self.sums, self.gaps, j, f, memo, w, z, old, new)
        if self.total:
            self._reenter(self.total, self.widest, 0, f, memo, w, 1.0, old, new)

    def _reenter(
        self,
        sums: Any,
        gaps: Any,
        j: int,
        f: Any,
        memo: Memo,
        w: float,
        z: float,
        old: float,
        new: float,
    ) -> None:
        before, after = self._fresh(f, memo, w, z, old), self._fresh(f, memo, w, z, new)
        at = j * self.count * COLUMNS
        for c in range(self.count * COLUMNS):
            if c % COLUMNS == LOW:
                sums[at + c] = min(sums[at + c], after[c])
            elif c % COLUMNS == HIGH:
                sums[at + c] = max(sums[at + c], after[c])
            else:
                sums[at + c] = sums[at + c] + (after[c] - before[c])

    def _fresh(self, f: Any, memo: Memo, w: float, z: float, y: float) -> list[float]:
        """The account of this one row."""
        served, eta, scale, _ = memo
        count = self.count
        base = [f] if count == 1 else f
        m = base[count // 2]
        a = self.scratch[0]
        sums = empty_account() * count
        loops.place(SINH, self.curved, count, base, 0, m, scale, a)
        loops.enter(
            SINH, self.curved, count, self.taus, base, 0, m, scale, a, served, 0, eta, w, y, z,
            sums, [0.0] * count, 0,
        )  # fmt: skip
        return sums

    def run(self, batch: Batch) -> tuple[Floats, Any]:
        """Serve and learn from a whole batch: the served values, and the memo of each row."""
        from gradeq.engine.level_passes import run_levels

        return run_levels(self, batch)


class PinballJudge:
    """Judges served quantiles by their pinball loss, added over the levels."""

    def __init__(self, taus: Sequence[float]) -> None:
        self.taus = list(taus)

    def one(self, served: Any, y: float) -> float:
        """The loss of one row."""
        out = [0.0]
        loops.judged(
            len(self.taus), self.taus, [served] if len(self.taus) == 1 else served, [y], out
        )
        return out[0]

    def many(self, served: Floats, labels: Floats) -> Floats:
        """The losses of many rows; 0 where there is no label."""
        import numpy as np

        from gradeq.kernels.call import run_loop

        losses, flat = np.empty(len(labels)), np.ascontiguousarray(served).reshape(-1)
        taus = np.array(self.taus)
        run_loop(loops.judged, (), (len(taus), taus, flat, labels, losses), len(labels))
        return losses
