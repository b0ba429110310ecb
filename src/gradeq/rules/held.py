"""Quantiles that are shown inside limits and judged before: what the limits change is counted beside the accounts.

Labels often lie at a limit (no demand at all). Judged by the value at the limit, such ties would count as covered
however low the tracked value falls, and drive the state away; so the value before decides, and nothing about the
certificate changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gradeq.kernels.call import run_loop, unsigned
from gradeq.kernels.limits import CHANGES, Limits, Posted, enter_limited
from gradeq.ledger.batch import Batch
from gradeq.ledger.state import Column, State, column
from gradeq.ledger.values import Place, Posting
from gradeq.penalties import Penalty
from gradeq.rules.entries import Entries
from gradeq.rules.levels import listed
from gradeq.rules.rule import Judged, Measured
from gradeq.schedules import Schedule


@dataclass(frozen=True)
class Held:
    """``inner`` serves and learns as if there were no limits; ``totals``: all rows are counted together as well."""

    inner: Any
    limits: Limits
    totals: bool = False

    @property
    def schedule(self) -> Schedule:
        """That of the tracker."""
        found: Schedule = self.inner.schedule
        return found

    @property
    def penalty(self) -> Penalty | None:
        """That of the tracker."""
        found: Penalty | None = self.inner.penalty
        return found

    @property
    def width(self) -> int:
        """One u for each level."""
        return len(self.limits.taus)

    @property
    def stride(self) -> int:
        """That of the tracker."""
        return int(self.inner.stride)

    def columns(self) -> list[Column]:
        """Those of the tracker, and what the limits change at each level."""
        nothing = (0.0,) * (CHANGES * self.width)
        found = [*self.inner.columns(), column("limited", "parameter", nothing)]
        return [*found, column("total_limited", "layer", nothing)] if self.totals else found

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: Any
    ) -> tuple[Any, tuple[float, ...], tuple[float, ...]]:
        """What the tracker serves; the layer shows it inside the limits."""
        found: tuple[Any, tuple[float, ...], tuple[float, ...]]
        found = self.inner.serve(state, place, values, f)
        return found

    @property
    def later(self) -> bool:
        """As for the tracker."""
        return bool(self.inner.later)

    def measure(self, served: Any, base: Any, y: float, memo: tuple[float, ...]) -> Measured:
        """The miss of the value before the limits."""
        found: Measured = self.inner.measure(served, base, y, memo)
        return found

    def judge(self, served: Any, base: Any, y: Any, memo: tuple[float, ...]) -> Judged:
        """The miss and the loss of the value before the limits."""
        found: Judged = self.inner.judge(served, base, y, memo)
        return found

    def account(self, state: State, own: Entries) -> None:
        """As for the tracker."""
        self.inner.account(state, own)

    def add(self, state: State, place: Place, posting: Posting, error: Any) -> None:
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
