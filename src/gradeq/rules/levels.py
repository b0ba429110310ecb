"""Quantile tracking: K levels that never cross, straight or through the sinh link.

Each parameter has one u per level. One label moves every level by its own miss, 1{y <= served_k} - tau_k, and the
served values are the isotonic projection of forecasts plus z'u (results 8.6, B3).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from gradeq.errors import BadInput
from gradeq.kernels import levels as loops
from gradeq.kernels.account import COLUMNS, ROUND
from gradeq.kernels.choice import driven, run_loop
from gradeq.kernels.descent import margin
from gradeq.kernels.levels import FADE, LOOSE, fade, scale_at, target_of
from gradeq.ledger.batch import Batch
from gradeq.ledger.state import MOST as LARGER
from gradeq.ledger.state import Column, State, column
from gradeq.ledger.values import Place, Posting
from gradeq.losses import pinball, pinball_slope
from gradeq.penalties import Penalty
from gradeq.records import copy_with
from gradeq.rules import rule
from gradeq.rules.descent import common_columns, dragged
from gradeq.rules.rule import IDLE, LARGEST_FINITE, Judged, Measured, diverging, rows_of, slopes_at, views
from gradeq.schedules import Schedule

SINH = loops.SINH
WORK = 3  # a level of a row is worth so many rows of a plain layer when the compiler is weighed
OTHER_LEVELS = "this ticket has other levels than this layer; post it where it was served"


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

    notes = 1  # numbers of a memo: the scale
    later = True

    @property
    def width(self) -> int:
        return len(self.taus)

    @property
    def stride(self) -> int:
        return len(self.taus) * COLUMNS

    def columns(self) -> list[Column]:
        """u, accounts, the running scale of each series, the widest gaps of neighbouring forecasts."""
        found = common_columns(self.start, self.penalty is not None, self.totals)
        found = [copy_with(each, last=False) for each in found]  # accounts are entered row by row
        if self.curved:
            found += [column("nums", "key", (0.0,), low=0.0), column("dens", "key", (0.0,), low=0.0)]
        if self.width > 1:
            found.append(column("gaps", "parameter", (0.0,) * (self.width - 1), LARGER, low=0.0))
        return found

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: Any
    ) -> tuple[Any, tuple[float, ...], tuple[float, ...]]:
        """Forecasts plus z'u, projected; the scale is noted."""
        params, _, _, key = place
        count, curved, u, scale = len(self.taus), self.curved, state.u, 1.0
        slopes = () if self.penalty is None else slopes_at(self.penalty, u)
        if count == 1 and curved:  # the forecast is where its unit begins, and nothing can cross
            scale = scale_at(state.nums[key], state.dens[key], f)
            if scale > 0.0:
                if len(params) == 1:  # the margin of one entry, without a loop
                    f = SINH.serve(f, 0.0 + u[params[0]] * values[0], scale)
                else:
                    f = SINH.serve(f, margin(u, params, values, 0, len(values)), scale)
            return f, (scale,), slopes
        base, m = ((f,), f) if count == 1 else (f, f[count // 2])
        if curved:
            scale = scale_at(state.nums[key], state.dens[key], m)
        a, wish, theta, served = [0.0] * count, [0.0] * count, [0.0] * count, [0.0] * count
        loops.place(SINH, curved, count, base, 0, m, scale, a)
        loops.serve(
            SINH, curved, count, u, params, values, 0, len(values), base, 0, m, scale, a, wish,
            theta, served,
        )  # fmt: skip
        return served[0] if count == 1 else tuple(served), (scale,), slopes

    def measure(self, served: Any, base: Any, y: float, memo: tuple[float, ...]) -> Measured:
        """The miss of each level."""
        taus = self.taus
        if len(memo) != 1:
            raise BadInput(OTHER_LEVELS)
        if len(taus) == 1:
            return pinball_slope(taus[0], served, y), memo
        return tuple([pinball_slope(tau, s, y) for tau, s in zip(taus, served, strict=True)]), memo

    def judge(self, served: Any, base: Any, y: Any, memo: tuple[float, ...]) -> Judged:
        """The miss and the pinball loss of each level, then of each base forecast."""
        missed, lost = [], []
        for values in (listed(served), listed(base)):
            for tau, value in zip(self.taus, values, strict=True):
                missed.append(pinball_slope(tau, value, y))
                lost.append(pinball(tau, value, y))
        return tuple(missed), tuple(lost)

    def add(
        self, state: State, place: Place, posting: Posting, error: Any,
        about: tuple[Any, float] | None = None,
    ) -> None:  # fmt: skip
        """u_k <- u_k - eta (w e_k) z, and (for a first label) the running scale.

        ``about``: the forecasts and the label that z'u tracks, if others than those of the posting.
        """
        _, row, centre, _, w, _, eta, late, y, _, _, _, slopes, sign, _ = posting
        if about is not None:
            centre, y = about
        params, values, count, first = place[0], row[1], len(self.taus), late and sign > 0.0
        if self.penalty is not None and first:
            dragged(state, params, values, eta, slopes, sign * w * error)
        elif count == 1 and len(params) == 1:  # without a loop
            u, j = state.u, params[0]
            x = u[j] - eta * ((sign * w * error) * values[0])
            if not -LARGEST_FINITE <= x <= LARGEST_FINITE:
                raise diverging(eta)
            u[j] = x
        else:
            self._move(state.u, params, values, error, eta, sign * w)
        if self.curved and first:
            m = centre if count == 1 else centre[count // 2]  # type: ignore[index]
            fade(state.nums, state.dens, place[3], FADE, m, y)  # type: ignore[arg-type]

    def account(self, state: State, own: rule.Entries) -> None:
        """Enter labels into the accounts, and the gaps of their forecasts, in order."""
        count, curved, y = len(self.taus), self.curved, rule.as_column(own.y)
        served, below = (rule.columns(each, count) for each in (own.served, own.base))
        judged = self.judge(served, below, y, ())
        base = np.array(rule.columns(own.centre, count))
        places, scale = np.zeros_like(base), rule.as_column([memo[0] for memo in own.memo])
        middle, scales, target, loose = base[count // 2].tolist(), scale.tolist(), y, 0.0
        if curved:
            each = map(target_of, repeat(SINH), y.tolist(), middle, scales)
            target, loose = rule.as_column(list(each)), LOOSE
        if not curved or (base[0] < base[-1]).any():  # else forecasts are where their unit begins
            found, a = [], [0.0] * count
            for row, m, s in zip(base.T.tolist(), middle, scales, strict=True):
                loops.place(SINH, curved, count, row, 0, m, s, a)
                found.append(a[:])
            places = np.array(found).T
        blur = loose + ROUND * (abs(target) + abs(places))
        rule.enter(state, own, judged, target - places, blur, np.isnan(target) * 1.0)
        for k in range(1, count):
            gaps = state.view("gaps").reshape(-1, count - 1)[:, k - 1]
            for index in own.index:
                np.maximum.at(gaps, index, places[k] - places[k - 1])

    def _move(
        self, u: Any, params: tuple[int, ...], values: tuple[float, ...], errors: Any, eta: float, w: float
    ) -> None:  # fmt: skip
        """u_k <- u_k - eta (w e_k) z at every level, or ``Diverging`` with nothing changed."""
        count, moved = len(self.taus), []
        if count == 1:
            errors = (errors,)
        for i, j in enumerate(params):
            z, at = values[i], j * count
            for k in range(count):
                x = u[at + k] - eta * ((w * errors[k]) * z)
                if not -LARGEST_FINITE <= x <= LARGEST_FINITE:
                    raise diverging(eta)
                moved.append((at + k, x))
        for at, x in moved:
            u[at] = x

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """One pass serves, learns and keeps the accounts; the caller undoes it if this raises."""
        n, count, params = len(batch.base), self.width, batch.rows.params
        served, scales, u = np.empty((n, count)), np.ones(n), state.view("u")
        for k, ticket in enumerate(batch.carried):
            served[k], scales[k] = ticket.served, ticket.memo[0]
        parts = (loops.LevelsModel(self.taus, self.curved), size_of(count), self.penalty or IDLE)
        records = (
            rows_of(state, batch),
            views(loops.Tracking, state),
            room_of(count, scales, served.reshape(-1), len(u), np.empty),
        )
        run_loop(driven, (*parts, *records), (), WORK * n * count)
        touched = u.reshape(-1, count)[params] if len(params) * count < len(u) else u
        if not (np.isfinite(touched).all() and np.isfinite(served).all()):
            raise diverging(float(batch.etas.max(initial=0.0)))
        return served[:, 0] if count == 1 else served, scales[:, None]


def size_of(count: int) -> loops.One | loops.SeveralLevels:
    return loops.One() if count == 1 else loops.SeveralLevels()


def room_of(count: int, scales: Any, served: Any, slopes: int, empty: Any) -> loops.LevelsScratch:
    """Where rows are noted, and scratch; ``empty`` makes a list or an array of a size."""
    scratch = map(empty, (count, count, count, 2 * count, 2 * count, slopes))
    return loops.LevelsScratch(count, scales, served, *scratch)


def listed(values: object) -> tuple[float, ...]:
    return values if isinstance(values, tuple) else (values,)
