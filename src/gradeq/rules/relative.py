"""Descent on relative errors: f exp(z'u) is served, and (served - y) / f must average to zero.

In units of f this is descent from 1 on the label y / f (Poisson regression), so a step means the same for forecasts
of cents and of millions (result 3.5).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradeq.errors import BadInput
from gradeq.ledger.batch import Batch
from gradeq.ledger.state import Column, State
from gradeq.ledger.values import Place, Posting
from gradeq.penalties import Penalty
from gradeq.rules.descent import Descent
from gradeq.rules.entries import Entries, column
from gradeq.rules.rule import Judged, Measured, diverging
from gradeq.schedules import Schedule

FACTOR = 1e100  # no correction is so large: the layer is diverging
RATIO = 1e280  # of a label and its prediction: sums of larger ones may overflow


@dataclass(frozen=True)
class Relative:
    """``inner`` serves the factor exp(z'u), which is noted on the ticket, and learns from y / f."""

    inner: Descent

    width = 1

    @property
    def stride(self) -> int:
        """That of descent."""
        return self.inner.stride

    @property
    def schedule(self) -> Schedule:
        """That of descent."""
        return self.inner.schedule

    @property
    def penalty(self) -> Penalty | None:
        """That of descent."""
        return self.inner.penalty

    def columns(self) -> list[Column]:
        """Those of descent."""
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
        """As for descent."""
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
        units, factors = np.ones(len(own)), column([memo[0] for memo in own.memo])
        ratios = column(own.y) / column(own.base)
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
        carried = [ticket._replace(base=1.0, served=ticket.memo[0]) for ticket in batch.carried]
        own = batch._replace(base=np.ones(len(batch.base)), labels=ratios, carried=carried)
        factors, _ = self.inner.run(state, own)
        with np.errstate(over="ignore"):
            served = batch.base * factors
        if not np.isfinite(served).all() or (factors > FACTOR).any():
            raise diverging(float(batch.etas.max()))
        return served, factors[:, None]
