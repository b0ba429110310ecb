"""Quantile tracking: K levels that never cross, straight or through the sinh link.

Each parameter has one u per level. One label moves every level by its own miss, 1{y <= served_k} - tau_k, and the
served values are the isotonic projection of forecasts plus z'u (results 8.6, B3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradeq.errors import BadInput
from gradeq.kernels import levels as loops
from gradeq.kernels.account import COLUMNS
from gradeq.kernels.call import run_loop
from gradeq.ledger.batch import Batch
from gradeq.ledger.state import MOST as LARGER
from gradeq.ledger.state import Column, State, column
from gradeq.ledger.values import Place, Posting, Ticket
from gradeq.links import Sinh
from gradeq.penalties import Penalty, Ridge
from gradeq.rules.descent import common_columns, dragged
from gradeq.rules.rule import MOST, diverging, posting_of
from gradeq.schedules import Schedule

SINH = Sinh()
IDLE = Ridge(1.0)  # stands where a compiled loop expects a penalty that it does not use


@dataclass(frozen=True)
class Levels:
    """``taus`` are the levels, ``start`` is u_1 of each; a forecast is one number for one level, else a sorted tuple.

    ``curved``: the sinh link, with a running scale for each series; else forecast plus margin. A penalty goes with
    one level. ``totals``: keep an account of all rows beside those of the parameters.
    """

    taus: tuple[float, ...]
    schedule: Schedule
    curved: bool = True
    start: tuple[float, ...] = (0.0,)
    penalty: Penalty | None = None
    totals: bool = False

    @property
    def width(self) -> int:
        """One u for each level."""
        return len(self.taus)

    @property
    def stride(self) -> int:
        """One account for each level."""
        return len(self.taus) * COLUMNS

    def columns(self) -> list[Column]:
        """u, accounts, the running scale of each series, the widest gaps of neighbouring forecasts."""
        found = common_columns(self.start, self.penalty is not None, self.totals)
        found = [each._replace(last=False) for each in found]  # accounts are entered row by row
        if self.curved:
            found += [column("nums", "key", (0.0,)), column("dens", "key", (0.0,))]
        if self.width > 1:
            found.append(column("gaps", "parameter", (0.0,) * (self.width - 1), LARGER))
        return found

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: Any
    ) -> tuple[Any, tuple[float, ...], tuple[float, ...]]:
        """Forecasts plus z'u, projected; the scale is noted."""
        count, base = len(self.taus), listed(f)
        m, scale = base[count // 2], 1.0
        if self.curved:
            scale = loops.scale_at(state.nums[place.key], state.dens[place.key], m)
        a, wish, theta, served = [0.0] * count, [0.0] * count, [0.0] * count, [0.0] * count
        loops.place(SINH, self.curved, count, base, 0, m, scale, a)
        loops.serve(
            SINH, self.curved, count, state.u, place.params, values, 0, len(values), base, 0, m, scale, a,
            wish, theta, served,
        )  # fmt: skip
        slopes = () if self.penalty is None else tuple(self.penalty.slope(x) for x in state.u)
        return served[0] if count == 1 else tuple(served), (scale,), slopes

    def judge(
        self, ticket: Ticket | Posting, y: float, eta: float, late: tuple[int, ...]
    ) -> Posting:
        """The miss and the pinball loss of each level, then of each base forecast."""
        count = self.width
        errors, losses = [0.0] * (2 * count), [0.0] * (2 * count)
        base, served = listed(ticket.base), listed(ticket.served)
        if not len(base) == len(served) == count or len(ticket.memo) != 1:
            raise BadInput(
                "this ticket has other levels than this layer; post it where it was served"
            )
        loops.judge(count, self.taus, base, served, 0, y, errors, losses)
        return posting_of(ticket, y, eta, late, tuple(errors), tuple(losses))

    def add(self, state: State, place: Place, posting: Posting) -> None:
        """u_k <- u_k - eta (w e_k) z, the accounts, and (for a first label) the running scale."""
        count, y, (scale,) = self.width, posting.y, posting.memo
        base = listed(posting.base)
        m = base[count // 2]
        self._move(state, place.params, posting)
        a = [0.0] * count
        loops.place(SINH, self.curved, count, base, 0, m, scale, a)
        loops.tally(
            count, a, loops.target_of(SINH, self.curved, y, m, scale), posting.errors, posting.losses,
            posting.weight, posting.eta, posting.sign, place.params, posting.row.values, 0,
            len(place.params), state.sums, state.gaps if count > 1 else (),
            state.total if self.totals else (),
        )  # fmt: skip
        if self.curved and posting.first:
            loops.fade(state.nums, state.dens, place.key, m, y)

    def _move(self, state: State, params: tuple[int, ...], posting: Posting) -> None:
        count, u, eta, values = self.width, state.u, posting.eta, posting.row.values
        w = posting.sign * posting.weight
        if self.penalty is not None and posting.first:
            dragged(state, params, values, posting, w * posting.errors[0], MOST)
            return
        old = [u[j * count : (j + 1) * count] for j in params]
        loops.learn(count, u, params, values, 0, len(params), posting.errors, eta, w)
        for j in params:
            for x in u[j * count : (j + 1) * count]:
                if not -MOST <= x <= MOST:
                    for k, own in zip(params, old, strict=True):
                        u[k * count : (k + 1) * count] = own
                    raise diverging(eta)

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """One pass serves, learns and keeps the accounts; the caller undoes it if this raises."""
        n, count, rows = len(batch.base), self.width, batch.rows
        served, scales = np.empty((n, count)), np.ones(n)
        for k, ticket in enumerate(batch.carried):
            served[k], scales[k] = ticket.served, ticket.memo[0]
        nothing = np.empty(0)
        u = state.view("u")

        def kept(name: str, wanted: bool) -> Any:
            return state.view(name) if wanted else nothing

        penalised = self.penalty is not None
        arrays = (
            self.curved, np.array(self.taus), np.ascontiguousarray(batch.base).reshape(-1),
            batch.labels, batch.weights, batch.etas, rows.starts, rows.params, rows.values, batch.keys,
            batch.first, batch.cuts, batch.posts, u, kept("nums", self.curved), kept("dens", self.curved),
            state.view("sums"), kept("gaps", count > 1), kept("total", self.totals),
            kept("pulls", penalised), kept("drags", penalised), np.empty(len(u) if penalised else 0),
            *(np.empty(count) for _ in range(3)), np.empty(2 * count), np.empty(2 * count), scales,
            served.reshape(-1),
        )  # fmt: skip
        parts = (SINH, self.penalty or IDLE, loops.One() if count == 1 else loops.Several())
        run_loop(loops.tracked, parts, arrays, n * count)
        touched = u.reshape(-1, count)[rows.params] if len(rows.params) * count < len(u) else u
        if not (np.isfinite(touched).all() and np.isfinite(served).all()):
            raise diverging(float(batch.etas.max(initial=0.0)))
        return served[:, 0] if count == 1 else served, scales[:, None]


def listed(values: Any) -> Sequence[float]:
    """The values of all levels: one level has a plain number."""
    return values if isinstance(values, tuple) else (values,)
