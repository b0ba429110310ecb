"""Plain descent on one margin a row: s = link(f, z'u), u <- u - eta (w e) z.

Debiasing, generalised linear models, linear quantile tracking and risk control are this rule with other parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradeq.kernels import descent as loops
from gradeq.kernels.account import COLUMNS, EMPTY, HIGH, LEAN, LOW, MERGED, PATH, ROUND, enter
from gradeq.kernels.call import run_loop, unsigned
from gradeq.ledger.batch import Batch, Rows, single, spelled
from gradeq.ledger.constants import zeros
from gradeq.ledger.facts import CORRECTED, HEAVIEST, LATEST
from gradeq.ledger.facts import MERGED as JOINED
from gradeq.ledger.state import MOST as LARGER
from gradeq.ledger.state import MOVE, SUM, Column, State, column
from gradeq.ledger.values import Place, Posting, Ticket
from gradeq.links import Link
from gradeq.losses import Loss
from gradeq.penalties import Penalty
from gradeq.rules.lean import LEAN_COLUMNS, PENALTY_COLUMNS, counted, entered, judged, tallied
from gradeq.rules.rule import MOST, diverging, posting_of, slopes_at
from gradeq.schedules import Schedule


def account(name: str, per: str, levels: int = 1) -> Column:
    """The column of accounts, one for each level; with one level a run enters them last."""
    return Column(name, per, EMPTY * levels, MERGED * levels, last=levels == 1)


def common_columns(start: tuple[float, ...], penalty: bool, totals: bool) -> list[Column]:
    """What every rule keeps: u, accounts by parameter and in all, how steps varied, what a penalty did."""
    levels = len(start)
    found = [
        column("u", "parameter", start, MOVE),
        account("sums", "parameter", levels),
        Column("path", "parameter", (0.0,) * PATH, (LARGER, SUM, LARGER), lazy=True),
        Column("total_path", "layer", (0.0,) * PATH, (LARGER, SUM, LARGER), lazy=True),
    ]
    if totals:
        found.append(account("total", "layer", levels))
    if penalty:
        found.append(column("pulls", "parameter", (0.0,) * levels))
        found.append(column("drags", "parameter", (0.0,) * levels))
    return found


NEAR = 10.0  # times the largest residual: a parameter within has not left its range


def corrected(state: State) -> bool:
    """Whether labels were changed afterwards or partitions joined: then no range is proven that could be left."""
    return bool(state.facts[CORRECTED] or state.facts[JOINED])


@dataclass(frozen=True)
class Descent:
    """One margin a row. ``totals``: keep an account of all rows beside those of the parameters.

    ``leash``: a parameter that leaves every proven range counts as diverging (squared error, link identity).
    ``lean``: keep the accounts of a ``Learner``, which know nothing of the base prediction.
    """

    link: Link
    loss: Loss
    schedule: Schedule
    penalty: Penalty | None = None
    totals: bool = False
    leash: bool = False
    lean: bool = False

    width = 1

    @property
    def stride(self) -> int:
        """Numbers of an account."""
        return LEAN if self.lean else COLUMNS

    def columns(self) -> list[Column]:
        """u, accounts, and what a penalty did."""
        if self.lean:
            return [*LEAN_COLUMNS, *(PENALTY_COLUMNS if self.penalty is not None else ())]
        return common_columns((0.0,), self.penalty is not None, self.totals)

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: float
    ) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        """link(f, z'u)."""
        s = self.link.serve(f, loops.margin(state.u, place.params, values, 0, len(values)))
        return s, (), () if self.penalty is None else slopes_at(self.penalty, state.u)

    def judge(
        self, ticket: Ticket | Posting, y: float, eta: float, late: tuple[int, ...]
    ) -> Posting:
        """The error and loss of what was served, and of the base prediction."""
        if self.lean:
            return judged(self.loss, ticket, y, eta, late)
        loss, s, f = self.loss, ticket.served, ticket.base
        errors = (loss.slope(s, y), loss.slope(f, y))
        return posting_of(ticket, y, eta, late, errors, (loss.value(s, y), loss.value(f, y)))

    def add(self, state: State, place: Place, posting: Posting) -> None:
        """u <- u - eta (w e) z, and the accounts."""
        _, row, f, _, w, _, eta, _, y, errors, losses, _, _, sign = posting
        params, values, residual, error = place.params, row.values, y - f, errors[0]
        u, e = state.u, sign * (w * error)
        if self.penalty is not None and posting.first:
            widest = self.widest(state, params, posting, abs(residual))
            dragged(state, params, values, posting, e, widest)
        else:
            old = list(map(u.__getitem__, params))
            loops.move(u, params, values, 0, len(params), eta, e)
            near = min(MOST, NEAR * abs(residual))  # the leash is never shorter
            for j in params:
                if not -near <= u[j] <= near:
                    self._hold(state, params, posting, old)
        if self.lean:
            entered(state, params, posting)
            return
        raw, (after, before), reach = errors[1], losses, w * self.link.reach(f)
        r, blur = self.link.tracked(f, y), ROUND * (abs(f) + abs(y))
        sums = state.sums
        for j, z in zip(params, values, strict=True):
            at = j * COLUMNS
            enter(sums, at, error, raw, after, before, r, blur, reach, w, z, eta, sign)
        if self.totals:
            enter(state.total, 0, error, raw, after, before, r, blur, reach, w, 1.0, eta, sign)

    def _hold(
        self, state: State, params: tuple[int, ...], posting: Posting, old: list[float]
    ) -> None:
        """Refuse a move beyond the leash, and take it back."""
        u, widest = state.u, self.widest(state, params, posting, abs(posting.y - posting.base))
        if not all(-widest <= u[j] <= widest for j in params):
            for j, x in zip(params, old, strict=True):
                u[j] = x
            raise diverging(posting.eta)

    def widest(
        self, state: State, params: tuple[int, ...], posting: Posting, residual: float
    ) -> float:
        """How far a parameter may go before the layer counts as diverging; any finite number without a leash.

        10 D b (times sqrt n where groups overlap), D the largest lateness so far: well beyond every radius that is
        proven for the squared error.
        """
        if not self.leash or not posting.first or corrected(state):
            return MOST
        sums = state.sums
        for j in params:
            residual = max(residual, sums[j * COLUMNS + HIGH], -sums[j * COLUMNS + LOW])
        late, heavy = max(posting.late, default=1), max(1.0, posting.weight)
        return min(MOST, self._leash(state, 1.0) * late * heavy * residual)

    def _leash(self, state: State, more: float) -> float:
        spread = math.sqrt(state.total[0] + more) if self.totals else 1.0
        step = min(1.99, self.schedule.step(1))
        over = max(1.0, step / (2.0 - step))
        facts = state.facts
        return float(NEAR * max(facts[LATEST], 1.0) * facts[HEAVIEST] * over * spread)

    def run(self, state: State, batch: Batch) -> tuple[Any, None]:
        """One pass serves and learns, a second keeps the accounts; the caller undoes both if this raises."""
        n = len(batch.base)
        served = np.empty(n)
        for k, ticket in enumerate(batch.carried):
            served[k] = ticket.served
        u, parts = state.view("u"), (self.link, self.loss)
        plain, rows = batch.plain and self.penalty is None, batch.rows
        eta = float(batch.etas[0]) if n else 1.0
        columns = (batch.base, batch.labels, eta)
        if plain and rows.dense:
            table = rows.values.reshape(n, len(u))
            run_loop(loops.dense, parts, (*columns, table, u, state.view("sums"), served), n)
        elif plain and rows.single and len(u) == 1:
            u[0] = run_loop(loops.scalar, parts, (*columns, float(u[0]), served), n)
        elif plain and rows.single:
            run_loop(loops.indexed, parts, (*columns, *unsigned(rows.params), u, served), n)
        else:
            batch = batch._replace(rows=spelled(rows, len(u)))
            self._varied(state, batch, u, served)
            eta = float(batch.etas.max(initial=0.0))
        self.check(state, batch, eta)
        if self.lean:
            if not batch.rows.dense:
                tallied(self.loss, state, batch, served, batch.rows)
            counted(state, batch)
        elif plain and rows.single:
            self._tally_plain(state, "sums", columns, served, rows.params)
            if self.totals:
                self._tally_plain(state, "total", columns, served, zeros(n))
        else:
            self.tally(state, "sums", batch, served, rows)
            if self.totals:
                self.tally(state, "total", batch, served, single(zeros(n)))
        return served, None

    def _varied(self, state: State, batch: Batch, u: Any, served: Any) -> None:
        n, parts = len(batch.base), (self.link, self.loss)
        rows = batch.rows
        entries = (*unsigned(rows.starts, rows.params), rows.values)
        shared = (batch.base, batch.labels, batch.weights, batch.etas, *entries)
        if self.penalty is not None:
            own = (u, state.view("pulls"), state.view("drags"), np.empty(len(u)), served)
            run_loop(loops.penalised, (*parts, self.penalty), (*shared, *own), n)
        elif batch.at_once:
            run_loop(loops.sparse, parts, (*shared, u, served), n)
        else:
            order = (batch.first, batch.cuts, batch.posts)
            run_loop(loops.late, parts, (*shared, *order, u, served), n)

    def _tally_plain(self, state: State, name: str, columns: Any, served: Any, index: Any) -> None:
        arrays = (*columns, served, index, state.view(name))
        run_loop(loops.tally_indexed, (self.link, self.loss), arrays, len(served))

    def tally(
        self, state: State, name: str, batch: Batch, served: Any, rows: Rows, centre: Any = None
    ) -> None:
        """Enter the posted rows into accounts; ``centre`` is what z'u moved, if not the base prediction."""
        centre = batch.base if centre is None else centre
        columns = (batch.base, centre, batch.labels, batch.weights, batch.etas, served, batch.posts)
        arrays = (*columns, rows.starts, rows.params, rows.values, state.view(name))
        run_loop(loops.tally, (self.link, self.loss), arrays, len(served))

    def check(self, state: State, batch: Batch, eta: float) -> None:
        """Raise ``Diverging`` when a parameter left its range, or the finite numbers."""
        u = state.view("u")
        params = batch.rows.params
        few = len(params) < len(u) and self.penalty is None and not batch.rows.dense
        touched = u[params] if few else u
        if not np.isfinite(touched).all():
            raise diverging(eta)
        if not self.leash or not len(batch.posts) or corrected(state):
            return
        posts = batch.posts
        whole = len(posts) == len(batch.base)
        y, f = (batch.labels, batch.base) if whole else (batch.labels[posts], batch.base[posts])
        weight = max(1.0, float(batch.weights.max(initial=1.0)))
        leash = self._leash(state, len(posts) + 1.0) * weight
        farthest = float(np.abs(touched).max())
        if farthest <= leash * float(np.abs(y - f).max()):
            return
        sums = state.view("sums").reshape(-1, COLUMNS)
        spread = np.maximum(sums[:, HIGH], -sums[:, LOW])
        if not farthest <= leash * float(spread.max(initial=0.0)):
            raise diverging(eta)


def dragged(
    state: State,
    params: tuple[int, ...],
    values: tuple[float, ...],
    posting: Posting,
    e: float,
    widest: float,
) -> None:
    """u <- u - eta (e z + the penalty's slopes at serving); raises ``Diverging`` with nothing changed."""
    u = state.u
    # Parameters born since the row was served pull at nothing.
    slopes = [*posting.slopes, *([0.0] * (len(u) - len(posting.slopes)))]
    kept = (u[:], state.pulls[:], state.drags[:])
    loops.drag(u, params, values, 0, len(params), posting.eta, e, slopes, state.pulls, state.drags)
    if not all(-widest <= x <= widest for x in u):
        state.u, state.pulls, state.drags = kept
        raise diverging(posting.eta)
