"""Gradient descent on one margin a row, plain or proximal: s = link(f, z'u), u <- u - eta (w e) z."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradeq.errors import Diverging, TicketError
from gradeq.geometries import Geometry
from gradeq.kernels import descent as loops
from gradeq.kernels.account import COLUMNS, EMPTY, HIGH, LEAN, LOW, MERGED, PATH, ROUND, ROWS, SMALLEST, STEPS
from gradeq.kernels.choice import run_loop, unsigned
from gradeq.kernels.descent import Full, Later, Lean, Unpenalised, gather, margin, proximal, step
from gradeq.ledger.batch import Batch, spelled
from gradeq.ledger.facts import CORRECTED, HEAVIEST, LATEST
from gradeq.ledger.facts import MERGED as JOINED
from gradeq.ledger.state import MOST as LARGER
from gradeq.ledger.state import MOVE, SUM, Column, State, column
from gradeq.ledger.values import Place, Posting
from gradeq.links import Link
from gradeq.losses import Loss
from gradeq.penalties import Penalty
from gradeq.records import copy_with
from gradeq.rules import rule
from gradeq.rules.rule import (
    IDLE,
    LARGEST_FINITE,
    LEAN_COLUMNS,
    PENALTY_COLUMNS,
    STEP,
    Entries,
    Judged,
    Measured,
    counted,
    diverging,
    entered,
    forms_of,
    pass_buffers,
    pass_inputs,
    slopes_at,
    tallied,
)
from gradeq.rules.rule import as_column as numbers
from gradeq.schedules import Schedule


def account(name: str, per: str, levels: int = 1) -> Column:
    """The column of accounts, one for each level; with one level a run enters them last."""
    low = SMALLEST * levels
    return Column(name, per, EMPTY * levels, MERGED * levels, last=levels == 1, low=low)


def common_columns(start: tuple[float, ...], penalty: bool, totals: bool) -> list[Column]:
    """What every rule keeps: u, accounts by parameter and in all, how steps varied, what a penalty did."""
    levels = len(start)
    found = [
        column("u", "parameter", start, MOVE),
        account("sums", "parameter", levels),
        Column("path", "parameter", (0.0,) * PATH, (LARGER, SUM, LARGER), lazy=True, low=0.0),
        Column("total_path", "layer", (0.0,) * PATH, (LARGER, SUM, LARGER), lazy=True, low=0.0),
        Column("steps", "parameter", (0.0,) * STEPS, (SUM,) * STEPS, lazy=True, low=0.0, later=True),
        Column("total_steps", "layer", (0.0,) * STEPS, (SUM,) * STEPS, lazy=True, low=0.0, later=True),
    ]
    if totals:
        found.append(account("total", "layer", levels))
    if penalty:
        found.append(column("pulls", "parameter", (0.0,) * levels))
        found.append(column("drags", "parameter", (0.0,) * levels))
    return found


NEAR = 10.0  # times the largest residual: a parameter within has not left its range
FARTHEST = LARGEST_FINITE / NEAR


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
        u, params = state.u, place[0]
        if len(params) == 1:  # the margin of one entry, without a loop
            s = self.link.serve(f, 0.0 + u[params[0]] * values[0])
        else:
            s = self.link.serve(f, margin(u, params, values, 0, len(params)))
        return s, (), () if self.penalty is None else slopes_at(self.penalty, u)

    @property
    def later(self) -> bool:
        return not self.lean

    def measure(self, s: float, f: float, y: float, memo: tuple[float, ...]) -> Measured:
        return self.loss.slope(s, y), memo

    def judge(self, s: Any, f: Any, y: Any, memo: tuple[float, ...]) -> Judged:
        """The errors and losses of what was served and of the base prediction."""
        loss = self.loss
        if self.lean:
            return (loss.slope(s, y),), ()
        return (loss.slope(s, y), loss.slope(f, y)), (loss.value(s, y), loss.value(f, y))

    def add(
        self, state: State, place: Place, posting: Posting, error: float,
        about: tuple[float, float] | None = None,
    ) -> None:  # fmt: skip
        """u <- u - eta (w e) z; ``about``: what z'u moves and the label, if others than those of the posting."""
        _, row, centre, _, w, _, eta, late, y, _, _, _, slopes, sign, _ = posting
        if about is not None:
            centre, y = about
        params, values, u, e = place[0], row[1], state.u, sign * (w * error)
        near = NEAR * state.farthest if self.ranged else LARGEST_FINITE  # no range is smaller than this
        if self.penalty is not None and sign > 0.0 and late:
            dragged(state, params, values, eta, slopes, e)
        elif len(params) == 1:  # the move of one entry, without a loop
            j = params[0]
            x = u[j] - eta * (e * values[0])
            if not -near <= x <= near:
                self._hold(state, posting, abs(y - centre), x)
            u[j] = x
        else:
            moved = []
            try:
                for j, z in zip(params, values):  # noqa: B905 - to ask for strictness takes as long as the rest
                    old = u[j]
                    x = old - eta * (e * z)
                    if not -near <= x <= near:
                        self._hold(state, posting, abs(y - centre), x)
                    moved.append((j, old))  # the same j may come again
                    u[j] = x
            except Diverging:
                for j, old in reversed(moved):
                    u[j] = old
                raise
        if self.lean:
            entered(state, params, posting, error)

    def account(self, state: State, own: rule.Entries) -> None:
        """Enter labels into the accounts, in order."""
        f, s, y, link = numbers(own.base), numbers(own.served), numbers(own.y), self.link
        centre = f if own.centre is own.base else numbers(own.centre)
        reach = own.w
        if hasattr(link, "clip"):  # others of a layer have no offset, and reach 1
            reach = own.w * np.array([link.reach(x) for x in centre.tolist()])
        blur = ROUND * (abs(centre) + abs(y))
        judged = self.judge(s, f, y, ())
        rule.enter(state, own, judged, (link.tracked(centre, y),), (blur,), reach)

    def _hold(self, state: State, entry: Posting, residual: float, x: float) -> None:
        """Refuse a move to x that leaves the proven range."""
        state.farthest = max(state.farthest, min(residual, FARTHEST))
        if -NEAR * state.farthest <= x <= NEAR * state.farthest:
            return
        posting = Posting(*entry)
        widest = self.widest(state, posting, residual)
        if not -widest <= x <= widest:
            raise diverging(posting.eta)

    def widest(self, state: State, posting: Posting, residual: float) -> float:
        """How far a parameter may go before the layer counts as diverging; any finite number unless ``ranged``.

        10 D b (times sqrt n where groups overlap), D the largest lateness so far: well beyond every radius that is
        proven for the squared error.
        """
        if not self.ranged or not posting.first or corrected(state):
            return LARGEST_FINITE
        residual = widest_residual(state, residual)
        state.farthest = min(residual, FARTHEST)
        late, heavy = max(posting.late, default=1), max(1.0, posting.weight)
        return min(LARGEST_FINITE, self._radius(state, 1.0) * late * heavy * residual)

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
            values = np.ascontiguousarray(rows.values)
            batch = copy_with(batch, rows=copy_with(rows, values=values, single=False, width=0))
        account = Lean() if self.lean else Full() if state.remembers("sums") else Later()
        pull = loops.Free() if penalty is None else loops.Pulled()
        rows, terms = forms_of(batch, state.counts["parameter"])
        parts = (self.link, self.loss, penalty or IDLE, rows, terms, pull, account)
        records = (pass_inputs(batch, served), pass_buffers(state))
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

    def tally(self, state: State, batch: Batch, served: object, centre: object = None) -> None:
        """Enter the posted rows into the accounts; ``centre`` is what z'u moved, if not the base prediction."""
        columns = pass_inputs(batch, served, centre)
        tallied(self.link, self.loss, Full(), batch, columns, pass_buffers(state))

    def check(self, state: State, batch: Batch, entered: bool) -> None:
        """Raise ``Diverging`` when a parameter left its range, or the finite numbers.

        ``entered``: whether the accounts know the residuals of this batch already.
        """
        u = state.view("u")
        params = batch.rows.params
        some = self.penalty is None and not batch.rows.dense
        # To look at all is quicker than to pick some, unless these are very few.
        farthest = largest(u[params] if some and 16 * len(params) < len(u) else u)
        if not math.isfinite(farthest):
            raise diverging(float(batch.etas.max(initial=0.0)))
        posts = batch.posts
        if not self.ranged or not len(posts) or corrected(state):
            return
        weight = 1.0 if batch.plain else max(1.0, float(batch.weights.max(initial=1.0)))
        radius = self._radius(state, len(posts) + 1.0) * weight
        own = 0.0
        if not entered:
            every = len(posts) == len(batch.base)
            apart = batch.labels - batch.base if every else batch.labels[posts] - batch.base[posts]
            own = largest(apart)
        if farthest <= radius * own:  # the account of all rows need not be looked through
            return
        limit = radius * widest_residual(state, own)
        if not farthest <= limit and not (some and largest(u[params]) <= limit):
            raise diverging(float(batch.etas.max(initial=0.0)))


def widest_residual(state: State, own: float) -> float:
    """The largest residual in the accounts; ``own`` is one that they may not hold yet."""
    sums = state.view("sums").reshape(-1, COLUMNS)
    return float(np.maximum(sums[:, HIGH], -sums[:, LOW]).max(initial=own))


def largest(values: Any) -> float:
    return max(-float(values.min(initial=0.0)), float(values.max(initial=0.0)))


def dragged(
    state: State, params: tuple[int, ...], values: tuple[float, ...], eta: float, pulling: tuple[float, ...], e: float
) -> None:
    """u <- u - eta (e z + the penalty's slopes at serving); raises ``Diverging`` with nothing changed."""
    u = state.u
    # Parameters born since the row was served pull at nothing.
    slopes = [*pulling, *([0.0] * (len(u) - len(pulling)))]
    kept = (u[:], state.pulls[:], state.drags[:])
    loops.drag(u, params, values, 0, len(params), eta, e, slopes, state.pulls, state.drags)
    if not all(-LARGEST_FINITE <= x <= LARGEST_FINITE for x in u):
        state.u, state.pulls, state.drags = kept
        raise diverging(eta)


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
        return self.loss.slope(served, y), memo

    def judge(self, served: Any, base: Any, y: Any, memo: tuple[float, ...]) -> Judged:
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
        if not all(-LARGEST_FINITE <= x <= LARGEST_FINITE for x in u):
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
        own = copy_with(batch, rows=rows, plain=False)
        tallied(self.link, self.loss, Lean(), own, pass_inputs(own, served), pass_buffers(state))
        counted(state, batch)
        return served, None
