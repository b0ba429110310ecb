"""Whole columns through a learner.

Plain descent with one constant step and every label there is one quick loop, which also notices what it should
not have been given. Everything else, and what the quick loop turned down, goes block by block: check, choose the
loop that fits, run it. A run may be cut anywhere without changing a bit, so blocks also serve to take the trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gradeq.engine.door import (
    Floats,
    check_finite,
    check_labels,
    check_range,
    check_weights,
    floats,
    same_length,
)
from gradeq.engine.state import Run, State, moved_on
from gradeq.engine.table import Table, table
from gradeq.errors import BadInput, Diverging
from gradeq.kernels.call import run_loop, unsigned
from gradeq.kernels.finite import is_finite
from gradeq.kernels.learning import timed, varied
from gradeq.kernels.proximal import Unpenalised, proximal
from gradeq.schedules import Power

if TYPE_CHECKING:
    from gradeq.engine.learner import Learner

BLOCK = 1 << 16  # rows; long enough to hide the calls, short enough for the cache


def run_rows(
    learner: Learner,
    state: State,
    rows: Any,
    labels: Any,
    offsets: Any,
    weights: Any,
    trace: int | None,
) -> Run:
    """``Learner.run``."""
    if trace is not None and not (isinstance(trace, int) and trace >= 1):
        raise BadInput(
            f"trace={trace!r}: give a whole number, to keep theta before every so-many-th row"
        )
    y = floats("labels", labels, missing=True)
    columns = table(rows, state.dimension, len(y))
    same_length("labels", y, len(columns))
    f = None if offsets is None else floats("offsets", offsets)
    w = None if weights is None else floats("weights", weights)
    for name, column in (("offsets", f), ("weights", w)):
        if column is not None:
            same_length(name, column, len(y))
    columns.check(0, 0, state.dimension)
    served = np.empty(len(y))
    if learner.plain and learner.exact and w is None and trace is None:
        quick = Pass(learner, state, len(y))
        if quick.whole(columns, f, y, served):
            return Run(served, quick.state(), None)
    progress = Pass(learner, state, len(y))
    traced = []
    for first in range(0, len(y), trace or BLOCK):
        cut = slice(first, min(first + (trace or BLOCK), len(y)))
        if trace is not None:
            traced.append(progress.theta.copy())
        progress.block(
            columns,
            cut,
            y[cut],
            None if f is None else f[cut],
            None if w is None else w[cut],
            served[cut],
        )
    thetas = np.array(traced).reshape(-1, state.dimension) if trace is not None else None
    return Run(served, progress.state(), thetas)


class Pass:
    """A learner's state while a run is under way; the state it came from is never touched."""

    def __init__(self, learner: Learner, state: State, total: int) -> None:
        self.learner, self.before, self.total = learner, state, total
        self.u, self.sums = state.u.copy(), state.gradients.copy()
        self.theta, self.pulls, self.normals, self.moves = (
            self.u,
            state.penalties,
            state.normals,
            state.moves,
        )
        if not learner.plain:  # plain descent moves only u, and theta is the same
            self.theta, self.pulls = state.theta.copy(), self.pulls.copy()
            self.normals = self.normals.copy()
        if not learner.exact:
            self.moves = self.moves.copy()
        self.n, self.t, self.weight = state.n, state.t, state.weight
        self.last = np.array([state.step])
        self.moved = np.zeros(len(self.u)) if learner.exact else self.moves
        self.nothing = np.zeros(0)

    def whole(self, columns: Table, f: Floats | None, y: Floats, served: Floats) -> bool:
        """Run all rows at once; False if some number was not as it should be, and nothing is to be kept."""
        learner = self.learner
        loop, own = columns.quick(len(self.u))
        check_range(y, 0, *learner.label_range)
        base = f if f is not None else np.zeros(len(y))
        eta = learner.schedule.step(self.t + 1)
        arrays = (*sealed(base, y), eta, *sealed(*own), self.u, self.sums, served)
        try:
            bad = run_loop(loop, (learner.link, learner.loss), arrays, self.total)
        except OverflowError:
            return False
        if bad or not np.isfinite(self.u).all():
            return False
        if len(y):
            self.last[0] = eta
        self._count(y, None, True)
        return True

    def block(
        self,
        columns: Table,
        cut: slice,
        y: Floats,
        f: Floats | None,
        w: Floats | None,
        served: Floats,
    ) -> None:
        """Check and run the rows of one block."""
        learner, rows = self.learner, len(y)
        columns.check(cut.start, cut.stop, len(self.u))
        complete = check_labels(y, cut.start, *learner.label_range, self.total)
        if f is not None:
            check_finite("offsets", f, cut.start, total=self.total)
        if w is not None:
            check_weights(w, cut.start)
        base = f if f is not None else self._zeros(rows)
        try:
            self._general(columns, cut, base, y, w, served)
        except OverflowError:
            self.u[0] = np.nan  # Python raises where compiled code gives inf
        check_moved(self.u, float(self.last[0]))
        if not is_finite(served, self.total):
            i = int(np.argmax(~np.isfinite(served)))
            raise Diverging(
                f"row {cut.start + i} would be served {served[i]}; use a smaller step, or check the link"
            )
        self._count(y, w, complete)

    def _general(
        self, columns: Table, cut: slice, base: Floats, y: Floats, w: Floats | None, served: Floats
    ) -> None:
        learner, rows, d = self.learner, len(y), len(self.u)
        weights = w if w is not None else np.ones(rows)
        etas = self._steps(rows)
        starts, params, value = columns.entries(cut.start, cut.stop)
        entries = sealed(*unsigned(starts, params), value)
        shared = sealed(base, y, weights, etas)
        parts = (learner.link, learner.loss)
        if learner.plain:
            plain = (self.u, self.sums, self.moved, served)
            run_loop(varied, parts, (*shared, *entries, *plain), self.total)
            learned = np.flatnonzero((y == y) & (weights > 0.0))
            if len(learned):
                self.last[0] = etas[learned[-1]]
            return
        sums = (self.sums, self.pulls, self.normals, self.moved)
        moving = (self.last, self.u, self.theta, *sums, served)
        run_loop(
            proximal,
            (*parts, learner.penalty or Unpenalised(), learner.geometry),
            (*shared, learner.sums, *entries, *moving, np.empty(d), np.empty(d)),
            self.total,
        )

    def _steps(self, rows: int) -> Floats:
        schedule = self.learner.schedule
        if self.learner.exact:
            return np.full(rows, schedule.step(self.t + 1))
        etas = np.empty(rows)
        compiles = self.total if isinstance(schedule, Power) else 0
        run_loop(timed, (schedule,), (self.t, etas), compiles)
        return etas

    def _zeros(self, rows: int) -> Floats:
        if len(self.nothing) < rows:
            self.nothing = np.zeros(rows)
        return self.nothing[:rows]

    def _count(self, y: Floats, w: Floats | None, complete: bool) -> None:
        self.t += len(y)
        if w is None:
            learned = len(y) if complete else int(np.count_nonzero(y == y))
            self.n += learned
            self.weight += learned
            return
        used = w[(y == y) & (w > 0.0)]
        self.n += len(used)
        # One after the other, as events would add them: a pairwise sum depends on where a run is cut.
        self.weight = float(np.add.accumulate(np.concatenate(([self.weight], used)))[-1])

    def state(self) -> State:
        """The state after the blocks so far."""
        vectors = (self.u, self.theta, self.sums, self.pulls, self.normals, self.moves)
        return moved_on(self.before, vectors, self.n, self.t, self.weight, float(self.last[0]))


def sealed(*arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """The arrays as views that nobody can write to: a loop reads columns, and they belong to the caller."""
    views = tuple(array.view() for array in arrays)
    for view in views:
        view.flags.writeable = False
    return views


def check_moved(u: Floats, eta: float) -> None:
    """Refuse a state that is no longer finite."""
    if not np.isfinite(u).all():
        raise Diverging(f"the parameters are no longer finite at step {eta}; use a smaller step")
