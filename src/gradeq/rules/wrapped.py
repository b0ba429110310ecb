"""Rules around another rule: clipped to limits, on scores, on relative errors, on a user's own error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from gradeq.errors import BadInput
from gradeq.kernels.account import CHANGES, COLUMNS, Posted, ShownLimits, enter_limited
from gradeq.kernels.choice import run_loop, unsigned
from gradeq.ledger.batch import Batch
from gradeq.ledger.state import Column, State, column
from gradeq.ledger.values import Place, Posting
from gradeq.links import Identity
from gradeq.penalties import Penalty
from gradeq.records import copy_with
from gradeq.rules.descent import Descent
from gradeq.rules.levels import Levels, listed
from gradeq.rules.mixed_levels import MixedLevels
from gradeq.rules.rule import Entries, Judged, Measured, Rule, as_column, diverging
from gradeq.schedules import Schedule


@dataclass(frozen=True)
class Clipped:
    """``inner`` serves and learns as if there were no limits; ``totals``: all rows are counted together as well."""

    inner: Rule
    limits: ShownLimits
    totals: bool = False

    @property
    def schedule(self) -> Schedule:
        return self.inner.schedule

    @property
    def penalty(self) -> Penalty | None:
        return self.inner.penalty

    @property
    def width(self) -> int:
        return len(self.limits.taus)

    @property
    def stride(self) -> int:
        return self.inner.stride

    def columns(self) -> list[Column]:
        """Those of the tracker, and what the limits change at each level."""
        nothing = (0.0,) * (CHANGES * self.width)
        columns = [*self.inner.columns(), column("limited", "parameter", nothing)]
        return [*columns, column("total_limited", "layer", nothing)] if self.totals else columns

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: object
    ) -> tuple[Any, tuple[float, ...], tuple[float, ...]]:
        """What the tracker serves; the layer shows it inside the limits."""
        return self.inner.serve(state, place, values, f)

    @property
    def later(self) -> bool:
        return self.inner.later

    def measure(self, served: object, base: object, y: float, memo: tuple[float, ...]) -> Measured:
        return self.inner.measure(served, base, y, memo)

    def judge(self, served: object, base: object, y: object, memo: tuple[float, ...]) -> Judged:
        return self.inner.judge(served, base, y, memo)

    def account(self, state: State, own: Entries) -> None:
        self.inner.account(state, own)

    def add(self, state: State, place: Place, posting: Posting, error: object) -> None:
        """The tracker learns, and what the limits changed for this label is counted."""
        self.inner.add(state, place, posting, error)
        _, _, _, served, w, _, _, _, y, _, _, _, _, sign, _ = posting
        limits, width = self.limits, CHANGES * self.width
        for k, s in enumerate(listed(served)):
            for j in place.params:
                limits.enter(k, s, y, w, sign, state.limited, j * width + CHANGES * k)
            if self.totals:
                limits.enter(k, s, y, w, sign, state.total_limited, CHANGES * k)

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """One pass of the tracker, another over its labels for what the limits changed."""
        served, memos = self.inner.run(state, batch)
        starts, params, posts = unsigned(batch.rows.starts, batch.rows.params, batch.posts)
        total = state.view("total_limited") if self.totals else np.empty(0)
        rows = Posted(
            self.width, served.reshape(-1), batch.labels, batch.weights, starts, params, posts,
            state.view("limited"), total,
        )  # fmt: skip
        run_loop(enter_limited, (self.limits, rows), (), len(served))
        return served, memos


@dataclass(frozen=True)
class Scored:
    """``inner`` tracks a quantile of the scores, its base forecast 0; a posting notes the score last in its memo."""

    inner: Levels | MixedLevels
    score: Callable[[Any, Any], float]

    penalty = None

    @property
    def schedule(self) -> Schedule:
        return self.inner.schedule

    @property
    def width(self) -> int:
        return self.inner.width

    @property
    def stride(self) -> int:
        return self.inner.stride

    def columns(self) -> list[Column]:
        return list(self.inner.columns())

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: object
    ) -> tuple[Any, tuple[float, ...], tuple[float, ...]]:
        return self.inner.serve(state, place, values, 0.0)

    @property
    def later(self) -> bool:
        return self.inner.later

    def measure(self, served: object, base: object, y: object, memo: tuple[float, ...]) -> Measured:
        """The score of the label against the threshold."""
        own = memo if len(memo) == self.inner.notes else memo[:-1]  # a posting's has the old score
        s = finite(self.score(base, y), y)
        error, _ = self.inner.measure(served, 0.0, s, own)
        return error, (*own, s)

    def judge(self, served: object, base: object, y: object, memo: tuple[float, ...]) -> Judged:
        return self.inner.judge(served, 0.0, memo[-1], memo[:-1])

    def add(self, state: State, place: Place, posting: Posting, error: object) -> None:
        """Learn from the score that was noted."""
        memo = posting[11]
        self.inner.add(state, place, posting, error, (0.0, memo[-1]))

    def account(self, state: State, own: Entries) -> None:
        """As for the tracker, with the scores that were noted for labels."""
        scores, memos, nothing = zip(*((m[-1], m[:-1], 0.0) for m in own.memo), strict=True)
        own = replace(own, base=nothing, centre=nothing, y=scores, memo=memos)
        self.inner.account(state, own)

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """All scores first (they do not depend on what is served), then one pass of the tracker."""
        n = len(batch.base)
        scores = np.full(n, np.nan)
        for i in batch.posts.tolist():
            x, y = batch.base[i].tolist(), float(batch.labels[i])
            scores[i] = finite(self.score(tuple(x) if isinstance(x, list) else x, y), y)
        return self.inner.run(state, copy_with(batch, base=np.zeros(n), labels=scores))


def finite(value: Any, y: Any) -> float:
    """A score as a finite float."""
    result = float(value)
    if not math.isfinite(result):
        raise BadInput(f"the score of label {y!r} is {result}; it must be a finite number")
    return result


@dataclass(frozen=True)
class Shortfall:
    """Slope target - error: in equilibrium the errors average to the target. The value reported is the error."""

    target: float

    def value(self, u: float, y: float) -> float:
        return y

    def slope(self, u: float, y: float) -> float:
        return self.target - y


@dataclass(frozen=True)
class Risk:
    """A knob moved by target - error(served, y), ``error`` in [0, ``most``]; a posting notes the error in its memo.

    ``by_events``: the error needs what was served, so whole columns go row by row.
    """

    error: Callable[[float, Any], float]
    target: float
    most: float
    schedule: Schedule

    width = 1
    stride = COLUMNS
    penalty = None
    by_events = True

    @cached_property
    def _inner(self) -> Descent:
        return Descent(Identity(), Shortfall(self.target), self.schedule)

    def columns(self) -> list[Column]:
        return self._inner.columns()

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: float
    ) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        return self._inner.serve(state, place, values, f)

    @property
    def later(self) -> bool:
        return self._inner.later

    def measure(self, served: float, base: float, y: object, memo: tuple[float, ...]) -> Measured:
        """The error of what was served."""
        e = float(self.error(served, y))
        if not 0.0 <= e <= self.most:
            raise BadInput(f"the error of label {y!r} is {e}; it must lie in [0, {self.most:g}]")
        return self._inner.measure(served, base, e, (e,))

    def judge(self, served: object, base: object, y: object, memo: tuple[float, ...]) -> Judged:
        return self._inner.judge(served, base, memo[0], memo)

    def add(self, state: State, place: Place, posting: Posting, error: float) -> None:
        """Learn from the error that was noted."""
        f, memo = posting[2], posting[11]
        self._inner.add(state, place, posting, error, (f, memo[0]))  # type: ignore[arg-type]

    def account(self, state: State, own: Entries) -> None:
        """As for descent, with the errors that were noted for labels."""
        self._inner.account(state, replace(own, y=[memo[0] for memo in own.memo]))

    def run(self, state: State, batch: Batch) -> NoReturn:
        raise NotImplementedError


FACTOR = 1e100  # no correction is so large: the layer is diverging
RATIO = 1e280  # of a label and its prediction: sums of larger ones may overflow


@dataclass(frozen=True)
class Relative:
    """``inner`` serves the factor exp(z'u), which is noted on the ticket, and learns from y / f."""

    inner: Descent

    width = 1

    @property
    def stride(self) -> int:
        return self.inner.stride

    @property
    def schedule(self) -> Schedule:
        return self.inner.schedule

    @property
    def penalty(self) -> Penalty | None:
        return self.inner.penalty

    def columns(self) -> list[Column]:
        return self.inner.columns()

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: float
    ) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        """f times the factor."""
        factor, _, slopes = self.inner.serve(state, place, values, 1.0)
        if factor > FACTOR:
            raise diverging(self.schedule.step(1))
        return f * factor, (factor,), slopes

    @property
    def later(self) -> bool:
        return self.inner.later

    def measure(self, served: float, base: float, y: float, memo: tuple[float, ...]) -> Measured:
        """The error relative to the prediction."""
        ratio = y / base
        if not ratio <= RATIO:
            raise BadInput(f"label {y} is too large beside a prediction of {base}: drop the row")
        return self.inner.measure(memo[0], 1.0, ratio, memo)

    def judge(self, served: Any, base: Any, y: Any, memo: tuple[float, ...]) -> Judged:
        """The error and the squared error, both relative to the prediction."""
        return self.inner.judge(memo[0], 1.0, y / base, memo)

    def add(self, state: State, place: Place, posting: Posting, error: float) -> None:
        """Learn from the relative error."""
        f, y = posting[2], posting[8]
        self.inner.add(state, place, posting, error, (1.0, y / f))

    def account(self, state: State, own: Entries) -> None:
        """In units of the predictions."""
        units, factors = np.ones(len(own)), as_column([memo[0] for memo in own.memo])
        ratios = as_column(own.y) / as_column(own.base)
        own = replace(own, base=units, centre=units, served=factors, y=ratios)
        self.inner.account(state, own)

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """One pass in units of the predictions."""
        with np.errstate(over="ignore"):
            ratios = batch.labels / batch.base
        bad = np.flatnonzero(ratios > RATIO)
        if len(bad):
            i = int(bad[0])
            raise BadInput(
                f"label {batch.labels[i]} is too large beside a prediction of {batch.base[i]}: drop the row"
            )
        carried = [copy_with(ticket, base=1.0, served=ticket.memo[0]) for ticket in batch.carried]
        own = copy_with(batch, base=np.ones(len(batch.base)), labels=ratios, carried=carried)
        factors, _ = self.inner.run(state, own)
        with np.errstate(over="ignore"):
            served = batch.base * factors
        if not np.isfinite(served).all() or (factors > FACTOR).any():
            raise diverging(float(batch.etas.max()))
        return served, factors[:, None]
