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
from gradeq.kernels.call import run_loop
from gradeq.kernels.forms import Full, Later, Lean, margin, move
from gradeq.ledger.batch import Batch, spelled
from gradeq.ledger.facts import CORRECTED, HEAVIEST, LATEST
from gradeq.ledger.facts import MERGED as JOINED
from gradeq.ledger.state import MOST as LARGER
from gradeq.ledger.state import MOVE, SUM, Column, State, column
from gradeq.ledger.values import Place, Posting
from gradeq.links import Link
from gradeq.losses import Loss
from gradeq.penalties import Penalty
from gradeq.rules.lean import LEAN_COLUMNS, PENALTY_COLUMNS, counted, entered
from gradeq.rules.passes import IDLE, forms_of, given, kept, tallied
from gradeq.rules.rule import MOST, Judged, diverging, slopes_at
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

    ``ranged``: a parameter that leaves every proven range counts as diverging (squared error, link identity).
    ``lean``: keep the accounts of a ``Learner``, which know nothing of the base prediction.
    """

    link: Link
    loss: Loss
    schedule: Schedule
    penalty: Penalty | None = None
    totals: bool = False
    ranged: bool = False
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
        u, params = state.u, place.params
        if len(params) == 1:  # the margin of one entry, without a loop
            s = self.link.serve(f, 0.0 + u[params[0]] * values[0])
        else:
            s = self.link.serve(f, margin(u, params, values, 0, len(params)))
        return s, (), () if self.penalty is None else slopes_at(self.penalty, u)

    def judge(self, s: float, f: float, y: float, memo: tuple[float, ...]) -> Judged:
        """The errors and losses of what was served and of the base prediction."""
        loss = self.loss
        if self.lean:
            return (loss.slope(s, y),), (), memo
        return (loss.slope(s, y), loss.slope(f, y)), (loss.value(s, y), loss.value(f, y)), memo

    def add(
        self, state: State, place: Place, posting: Posting, about: tuple[float, float] | None = None
    ) -> None:
        """u <- u - eta (w e) z, and the accounts; ``about``: the base and the label that z'u tracks, if others."""
        _, row, f, _, w, _, eta, _, y, errors, losses, _, _, sign = posting
        if about is not None:
            f, y = about
        params, values, error, u = place.params, row.values, errors[0], state.u
        e = sign * (w * error)
        near = NEAR * abs(y - f) if self.ranged else MOST  # no range is smaller
        if self.penalty is not None and posting.first:
            widest = self.widest(state, params, posting, abs(y - f))
            dragged(state, params, values, posting, e, widest)
        elif len(params) == 1:  # the move of one entry, without a loop
            j = params[0]
            old = u[j]
            u[j] = x = old - eta * (e * values[0])
            if not -near <= x <= near or near > MOST:
                self._hold(state, params, posting, abs(y - f), [old])
        else:
            kept = [u[j] for j in params]
            move(u, params, values, 0, len(params), eta, e)
            for j in params:
                if not -near <= u[j] <= near or near > MOST:
                    self._hold(state, params, posting, abs(y - f), kept)
        if self.lean:
            entered(state, params, posting)
            return
        link, sums, raw, (after, before) = self.link, state.sums, errors[1], losses
        r, blur, reach = link.tracked(f, y), ROUND * (abs(f) + abs(y)), w * link.reach(f)
        if self.totals:
            enter(state.total, 0, error, raw, after, before, r, blur, reach, w, 1.0, eta, sign)
        for j, z in zip(params, values, strict=True):
            enter(sums, j * COLUMNS, error, raw, after, before, r, blur, reach, w, z, eta, sign)

    def _hold(
        self,
        state: State,
        params: tuple[int, ...],
        posting: Posting,
        residual: float,
        old: list[float],
    ) -> None:
        """Refuse a move that leaves the proven range, and take it back."""
        u, widest = state.u, self.widest(state, params, posting, residual)
        if not all(-widest <= u[j] <= widest for j in params):
            for j, x in zip(params, old, strict=True):
                u[j] = x
            raise diverging(posting.eta)

    def widest(
        self, state: State, params: tuple[int, ...], posting: Posting, residual: float
    ) -> float:
        """How far a parameter may go before the layer counts as diverging; any finite number unless ``ranged``.

        10 D b (times sqrt n where groups overlap), D the largest lateness so far: well beyond every radius that is
        proven for the squared error.
        """
        if not self.ranged or not posting.first or corrected(state):
            return MOST
        sums = state.sums
        for j in params:
            residual = max(residual, sums[j * COLUMNS + HIGH], -sums[j * COLUMNS + LOW])
        late, heavy = max(posting.late, default=1), max(1.0, posting.weight)
        return min(MOST, self._radius(state, 1.0) * late * heavy * residual)

    def _radius(self, state: State, more: float) -> float:
        spread = math.sqrt(state.total[0] + more) if self.totals else 1.0
        step = min(1.99, self.schedule.step(1))
        over = max(1.0, step / (2.0 - step))
        facts = state.facts
        return float(NEAR * max(facts[LATEST], 1.0) * facts[HEAVIEST] * over * spread)

    def run(self, state: State, batch: Batch) -> tuple[Any, None]:
        """One pass serves, learns and keeps the accounts; the caller undoes it if this raises.

        A long account is not remembered for that, so it is entered by a second pass.
        """
        n, penalty = len(batch.base), self.penalty
        served = np.empty(n)
        for k, ticket in enumerate(batch.carried):
            served[k] = ticket.served
        if penalty is not None:  # it moves every parameter, so none can be held
            rows = spelled(batch.rows, state.counts["parameter"])
            batch = batch._replace(rows=rows._replace(single=False))
        account = Lean() if self.lean else Full() if state.remembers("sums") else Later()
        pull = loops.Free() if penalty is None else loops.Pulled()
        rows, terms = forms_of(batch, state.counts["parameter"])
        parts = (self.link, self.loss, penalty or IDLE, rows, terms, pull, account)
        records = (given(batch, served), kept(state))
        if batch.at_once:
            run_loop(loops.at_once, (*parts, *records), (), n)
        else:
            order = (batch.first, batch.cuts, batch.posts)
            run_loop(loops.late, (*parts, *records), order, n)
        del records  # a column that somebody looks at cannot grow
        later = type(account) is Later
        self.check(state, batch, not later)
        if later:
            self.tally(state, batch, served)
        if self.lean:
            counted(state, batch)
        return served, None

    def tally(self, state: State, batch: Batch, served: Any, centre: Any = None) -> None:
        """Enter the posted rows into the accounts; ``centre`` is what z'u moved, if not the base prediction."""
        columns = given(batch, served, centre)
        tallied(self.link, self.loss, Full(), batch, columns, kept(state))

    def check(self, state: State, batch: Batch, entered: bool) -> None:
        """Raise ``Diverging`` when a parameter left its range, or the finite numbers.

        ``entered``: whether the accounts know the residuals of this batch already.
        """
        u = state.view("u")
        params = batch.rows.params
        few = len(params) < len(u) and self.penalty is None and not batch.rows.dense
        touched = u[params] if few else u
        if not np.isfinite(touched).all():
            raise diverging(float(batch.etas.max(initial=0.0)))
        posts = batch.posts
        if not self.ranged or not len(posts) or corrected(state):
            return
        weight = 1.0 if batch.plain else max(1.0, float(batch.weights.max(initial=1.0)))
        radius = self._radius(state, len(posts) + 1.0) * weight
        farthest = float(np.abs(touched).max())
        own = 0.0 if entered else float(np.abs(batch.labels[posts] - batch.base[posts]).max())
        if farthest <= radius * own:  # the account of all rows need not be looked through
            return
        sums = state.view("sums").reshape(-1, COLUMNS)
        widest = float(np.maximum(sums[:, HIGH], -sums[:, LOW]).max(initial=own))
        if not farthest <= radius * widest:
            raise diverging(float(batch.etas.max(initial=0.0)))


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
