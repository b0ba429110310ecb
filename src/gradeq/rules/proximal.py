"""Proximal mirror descent, greedy or lazy: u is the dual point, theta = primal(u) serves (paper Appendix B)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gradeq.errors import TicketError
from gradeq.geometries import Geometry
from gradeq.kernels.account import LEAN, ROWS
from gradeq.kernels.call import run_loop, unsigned
from gradeq.kernels.descent import gather
from gradeq.kernels.forms import Lean, margin
from gradeq.kernels.proximal import Unpenalised, proximal, step
from gradeq.ledger.batch import Batch, spelled
from gradeq.ledger.state import MOVE, Column, State, column
from gradeq.ledger.values import Place, Posting
from gradeq.links import Link
from gradeq.losses import Loss
from gradeq.penalties import Penalty
from gradeq.rules.entries import Entries
from gradeq.rules.lean import LEAN_COLUMNS, PENALTY_COLUMNS, STEP, counted, entered
from gradeq.rules.passes import given, kept, tallied
from gradeq.rules.rule import MOST, Judged, Measured, diverging
from gradeq.schedules import Schedule

PROXIMAL_COLUMNS = (
    column("theta", "parameter", (0.0,), MOVE),
    column("normals", "parameter", (0.0,)),
    column("returned", "parameter", (0.0,)),
)
MOVING = ("u", "theta", "pulls", "drags", "normals", "returned")  # what a step changes


@dataclass(frozen=True)
class Proximal:
    """Descent on a set, or with a penalty in proximal form.

    The greedy form starts each step from dual(theta), so it takes labels only in the order of serving; ``lazy``
    keeps the plain sum of steps, and labels may come in any order.
    """

    link: Link
    loss: Loss
    schedule: Schedule
    geometry: Geometry
    penalty: Penalty | None = None
    lazy: bool = False

    width = 1
    stride = LEAN
    later = False

    def columns(self) -> list[Column]:
        """u, lean accounts, theta, and what penalty and geometry did."""
        return [*LEAN_COLUMNS, *PENALTY_COLUMNS, *PROXIMAL_COLUMNS]

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: float
    ) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        """link(f, z'theta); how many labels came before is noted."""
        theta, penalty = state.theta, self.penalty
        s = self.link.serve(f, margin(theta, place.params, values, 0, len(values)))
        slopes = () if penalty is None else tuple(penalty.slope(x) for x in theta)
        return s, (state.heard[ROWS],), slopes

    def measure(self, served: float, base: float, y: float, memo: tuple[float, ...]) -> Measured:
        """The error of what was served."""
        return self.loss.slope(served, y), memo

    def judge(self, served: Any, base: Any, y: Any, memo: tuple[float, ...]) -> Judged:
        """The same; what was lost is nobody's business."""
        return (self.loss.slope(served, y),), ()

    def add(self, state: State, place: Place, posting: Posting, error: float) -> None:
        """One step of mirror descent, and the accounts."""
        between = state.heard[ROWS] - posting.memo[0]
        if between and not self.lazy:
            raise TicketError(
                f"{self.geometry!r} in greedy form takes labels in the order of serving, but {between:g} "
                "came in between; post each before the next update, or be lazy"
            )
        u, theta, pulls, drags, normals, returned = (getattr(state, name)[:] for name in MOVING)
        gradient, scratch = list(posting.slopes) or [0.0] * len(u), [0.0] * len(u)
        e, eta = posting.sign * (posting.weight * error), posting.eta
        values = posting.row.values
        gather(place.params, values, 0, len(values), eta, e, gradient, pulls, drags)
        last = [state.heard[STEP]]
        step(self.geometry, gradient, eta, self.lazy, last, u, theta, normals, returned, scratch)
        if not all(-MOST <= x <= MOST for x in u):
            raise diverging(eta)
        state.u, state.theta, state.pulls, state.drags = u, theta, pulls, drags
        state.normals, state.returned = normals, returned
        entered(state, place.params, posting, error)

    def account(self, state: State, own: Entries) -> None:
        """Never: lean accounts are entered at once."""

    def run(self, state: State, batch: Batch) -> tuple[Any, None]:
        """One pass serves and learns, a second keeps the accounts; the caller undoes both if this raises."""
        n, parameters = len(batch.base), len(state.u)
        served = np.empty(n)
        rows = spelled(batch.rows, parameters)
        columns = (batch.base, batch.labels, batch.weights, batch.etas, self.lazy)
        entries = (*unsigned(rows.starts, rows.params), rows.values)
        moving = (np.array(state.heard[STEP:]), *(state.view(name) for name in MOVING))
        scratch = (np.empty(parameters), np.empty(parameters))
        parts = (self.link, self.loss, self.penalty or Unpenalised(), self.geometry)
        run_loop(proximal, parts, (*columns, *entries, *moving, served, *scratch), n)
        if not np.isfinite(state.view("u")).all():
            raise diverging(float(batch.etas.max(initial=0.0)))
        own = batch._replace(rows=rows, plain=False)
        tallied(self.link, self.loss, Lean(), own, given(own, served), kept(state))
        counted(state, batch)
        return served, None
