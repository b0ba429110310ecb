"""The head of the quantile ensemble: trackers, weights on the simplex, and a final head that restores coverage."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradeq.engine.margin import EMPTY, empty_account
from gradeq.errors import StateError
from gradeq.geometries import EntropicSimplex
from gradeq.kernels import ensemble as loops
from gradeq.kernels.loops import COLUMNS, HIGH, LOW, cap, enter
from gradeq.links import Identity
from gradeq.losses import Quantile

if TYPE_CHECKING:
    from gradeq.engine.batch import Batch, Floats

IDENTITY = Identity()
COLUMN_NAMES = ("thetas", "zs", "ws", "sums")

# What is noted at serving: the ensemble's quantile, the trackers, Q of the late-label cap, the final head's memo.
Memo = tuple[float, list[float], float, Any]


class Ensemble:
    """Trackers with steps ``nus``, weights with step ``nu``, and a final head (or None) on f + w'theta."""

    __slots__ = (
        *COLUMN_NAMES,
        "final",
        "geometry",
        "limit",
        "loss",
        "nu",
        "nus",
        "scratch",
        "total",
    )

    def __init__(
        self,
        level: float,
        nus: Sequence[float],
        nu: float,
        limit: float,
        floor: float,
        final: Any,
    ) -> None:
        self.loss, self.geometry = Quantile(level), EntropicSimplex(floor)
        self.geometry.check(len(nus))
        self.nus, self.nu, self.limit, self.final = list(nus), nu, limit, final
        self.scratch = [[0.0] * len(self.nus) for _ in range(2)]
        self.thetas: Any = array("d")
        self.zs: Any = array("d")  # logarithms of the weights, up to a constant
        self.ws: Any = array("d")
        self.sums: Any = array("d")  # the account of the ensemble itself, unit by unit
        self.total: Any = array("d")

    @property
    def count(self) -> int:
        """How many trackers."""
        return len(self.nus)

    def grow(self, count: int) -> None:
        """Room for ``count`` units; new ones start at zero with equal weights."""
        more = count - len(self.sums) // COLUMNS
        if more > 0:
            self.thetas.extend([0.0] * (more * self.count))
            self.zs.extend([0.0] * (more * self.count))
            self.ws.extend([1.0 / self.count] * (more * self.count))
            self.sums.extend(EMPTY * more)
        if self.final is not None:
            self.final.grow(count)

    def state(self) -> dict[str, Any]:
        """All that learning has changed, ready for the codec."""
        own = {name: getattr(self, name) for name in COLUMN_NAMES}
        return {**own, "final": None if self.final is None else self.final.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        units = len(state["sums"]) // COLUMNS
        for name in COLUMN_NAMES:
            length = units * (COLUMNS if name == "sums" else self.count)
            if not isinstance(state[name], array) or len(state[name]) != length:
                raise StateError(f"the state is damaged: {name} does not fit {self.count} trackers")
            setattr(self, name, state[name])
        if self.final is not None:
            self.final.restore(state["final"])

    def serve(
        self, unit: int, index: Sequence[int], value: Sequence[float], f: Any, t: int, crowd: float
    ) -> tuple[float, Memo]:
        """The ensemble's quantile, moved by the final head."""
        held = [0.0] * self.count
        q = loops.blend(self.count, f, self.ws, self.thetas, unit * self.count, held, 0)
        if self.final is None:
            return q, (q, held, crowd, None)
        served, last = self.final.serve(unit, index, value, q, t, crowd)
        return served, (q, held, crowd, last)

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
        """Every tracker learns from its own miss, the weights from the ensemble's, then the final head."""
        q, held, crowd, last = memo
        if self.final is not None:
            self.final.post(unit, index, value, q, last, w, y)
        z, out = self.scratch
        loops.learn(
            self.loss, self.geometry, self.geometry.floor > 0.0, self.count, self.nus, self.nu,
            self.limit, crowd, f, q, y, w, held, 0, self.thetas, self.zs, self.ws,
            unit * self.count, z, out,
        )  # fmt: skip
        enter(IDENTITY, self.loss, self.sums, unit * COLUMNS, f, q, y, w, 1.0, 0.0)

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
        """Replace a label in every tracker; the weights keep what they learned from the old one."""
        q, held, crowd, last = memo
        if self.final is not None:
            self.final.amend(unit, index, value, q, last, w, old, new)
        for k, nu in enumerate(self.nus):
            step, at = cap(nu, self.limit, crowd), unit * self.count + k
            change = self.loss.slope(f + held[k], new) - self.loss.slope(f + held[k], old)
            self.thetas[at] = self.thetas[at] - step * (w * change)
        before, after = empty_account(), empty_account()
        enter(IDENTITY, self.loss, before, 0, f, q, old, w, 1.0, 0.0)
        enter(IDENTITY, self.loss, after, 0, f, q, new, w, 1.0, 0.0)
        for c in range(COLUMNS):
            if c not in (LOW, HIGH):
                at = unit * COLUMNS + c
                self.sums[at] = self.sums[at] + (after[c] - before[c])

    def run(self, batch: Batch) -> tuple[Floats, Any]:
        """Two passes: the ensemble, then the final head."""
        from gradeq.engine.ensemble_passes import run_ensemble

        return run_ensemble(self, batch)
