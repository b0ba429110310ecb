"""The quantile ensemble: trackers of several steps, weights on the simplex, and a final tracker for the coverage.

Trackers and weights do not depend on the final tracker, so a batch is one pass after the other. The certificate is
the final tracker's; without one there is an account of what was served, and nothing is guaranteed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gradeq.errors import BadInput
from gradeq.geometries import EntropicSimplex
from gradeq.kernels import trackers as loops
from gradeq.kernels.account import BEFORE, COLUMNS, LOSS_BEFORE, ROUND, enter
from gradeq.kernels.choice import PassRow, driven, run_loop
from gradeq.kernels.descent import Full
from gradeq.ledger.batch import Batch
from gradeq.ledger.state import MEAN, Column, State, column
from gradeq.ledger.values import Place, Posting
from gradeq.links import Identity
from gradeq.losses import Quantile
from gradeq.records import copy_with
from gradeq.rules.descent import Descent
from gradeq.rules.levels import Levels
from gradeq.rules.rule import (
    LARGEST_FINITE,
    Entries,
    Judged,
    Measured,
    diverging,
    pass_buffers,
    pass_inputs,
    rows_of,
    tallied,
    views,
)
from gradeq.schedules import Constant, Schedule


@dataclass(frozen=True)
class Ensemble:
    """Trackers with steps ``nus``, weights with step ``nu`` and ``floor``, a final tracker (or None) on f + w'theta.

    Where labels come late or weigh much, every step is cut by as much as the final tracker's (the weights', without
    one). A memo is
    the final tracker's, the ensemble's quantile, and where each tracker stood.
    """

    level: float
    nus: tuple[float, ...]
    nu: float
    floor: float
    final: Levels | Descent | None

    width = 1
    stride = COLUMNS
    penalty = None

    def __post_init__(self) -> None:
        self._geometry.check(len(self.nus))

    @cached_property
    def _loss(self) -> Quantile:
        return Quantile(self.level)

    @cached_property
    def _geometry(self) -> EntropicSimplex:
        return EntropicSimplex(self.floor)

    @cached_property
    def _blend(self) -> loops.Blend:
        return loops.Blend(self.floor > 0.0, self.nus, self.nu)

    @cached_property
    def _plain(self) -> Descent:
        return Descent(Identity(), self._loss, Constant(self.nu))

    @property
    def schedule(self) -> Schedule:
        return (self.final or self._plain).schedule

    @property
    def _last(self) -> int:
        return int(isinstance(self.final, Levels))

    def columns(self) -> list[Column]:
        """Trackers, logarithms of the weights up to a constant, the weights; the certified columns."""
        count = len(self.nus)
        return [
            *(self.final or self._plain).columns(),
            column("thetas", "layer", (0.0,) * count, MEAN, by="heard"),
            column("zs", "layer", (0.0,) * count, MEAN, by="heard"),
            column("ws", "layer", (1.0 / count,) * count, MEAN, by="heard", low=0.0),
            column("heard", "layer", (0.0,), low=0.0),
        ]

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: float
    ) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        """The ensemble's quantile, moved by the final tracker."""
        room = loops.EnsembleScratch(0, [0.0] * len(self.nus), [0.0])
        self._blend.serve(self._loss, self._geometry, PassRow((f,)), state, room, 0)
        held, q = room.held, room.mixed[0]
        if self.final is None:
            return q, (q, *held), ()
        served, memo, slopes = self.final.serve(state, place, values, q)
        return served, (*memo, q, *held), slopes

    @property
    def later(self) -> bool:
        """As for the final tracker; without one accounts are entered at once."""
        return self.final is not None

    def measure(self, served: float, base: float, y: float, memo: tuple[float, ...]) -> Measured:
        """The miss of what was served."""
        last = self._last
        if len(memo) != last + 1 + len(self.nus):
            raise BadInput("this ticket has other trackers than this layer; post it where it was served")
        return (self.final or self._plain).measure(served, base, y, memo[:last])[0], memo

    def judge(self, served: object, base: object, y: object, memo: tuple[float, ...]) -> Judged:
        """The miss and loss of what was served, and of the base forecast."""
        return (self.final or self._plain).judge(served, base, y, memo[: self._last])

    def account(self, state: State, own: Entries) -> None:
        """As for the final tracker, which moved the ensemble's quantile."""
        if self.final is not None:
            centre = [memo[self._last] for memo in own.memo]
            self.final.account(state, replace(own, centre=centre))

    def add(self, state: State, place: Place, posting: Posting, error: float) -> None:
        """The final tracker moves; a first label also teaches trackers and weights."""
        _, _, f, s, w, _, eta, late, y, _, _, memo, _, sign, _ = posting
        first, last = sign > 0.0 and len(late) > 0, self._last
        q, learned = memo[last], loops.Learned(state.thetas[:], state.zs[:], state.ws[:])
        if first:
            row = PassRow((f,), (y,), (w,), (eta / self.schedule.step(1),))
            room = loops.EnsembleScratch(0, memo[last + 1 :], (q,))
            self._blend.post(self._loss, self._geometry, row, learned, room, 0, 0, False)
            if not all(-LARGEST_FINITE <= x <= LARGEST_FINITE for own in learned for x in own):
                raise diverging(max(self.nus))
        if self.final is not None:
            self.final.add(state, place, posting, error, (q, y))
        else:
            (_, raw), (after, before) = self._plain.judge(s, f, y, ())
            r, blur = y - f, ROUND * (abs(f) + abs(y))  # type: ignore[arg-type]
            enter(state.sums, 0, error, raw, after, before, r, blur, w, w, 1.0, 0.0, sign)
        if first:
            state.thetas, state.zs, state.ws = learned
            state.heard[0] += 1.0

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """Two passes: trackers and weights, then the final tracker; the caller undoes both if this raises."""
        n, count, last = len(batch.base), len(self.nus), self._last
        mixed, held = np.empty(n), np.empty((1 if batch.at_once else n, count))
        carried = []
        for k, ticket in enumerate(batch.carried):
            mixed[k], held[k] = ticket.memo[last], ticket.memo[last + 1 :]
            carried.append(copy_with(ticket, base=ticket.memo[last], memo=ticket.memo[:last]))
        room = loops.EnsembleScratch(0 if batch.at_once else count, held.reshape(-1), mixed)
        rows = copy_with(rows_of(state, batch), etas=batch.etas / self.schedule.step(1))
        parts = (self._blend, self._loss, self._geometry, rows, views(loops.Learned, state), room)
        run_loop(driven, parts, (), n * count)
        state.heard[0] += float(len(batch.posts))
        if not all(np.isfinite(state.view(name)).all() for name in ("thetas", "zs", "ws")):
            raise diverging(max(self.nus))
        served, memos = mixed, np.empty((n, 0))
        account = np.array(state.sums)
        if self.final is not None:
            served, found = self.final.run(state, copy_with(batch, base=mixed, carried=carried))
            memos = memos if found is None else found
        still, sums = copy_with(batch, etas=np.zeros(n)), state.view("sums")
        own = copy_with(pass_buffers(state), sums=account)
        tallied(Identity(), self._loss, Full(), still, pass_inputs(still, served), own)
        # What was before is the base forecast, not the mix that the final tracker moved.
        whole = slice(COLUMNS) if self.final is None else [BEFORE, LOSS_BEFORE]
        sums[whole] = account[whole]
        return served, None if batch.at_once else np.column_stack([memos, mixed, held])
