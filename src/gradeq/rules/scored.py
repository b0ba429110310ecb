"""A rule on scores: serves a threshold, and learns from s(x, y), where x is what was given to be served."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradeq.errors import BadInput
from gradeq.ledger.batch import Batch
from gradeq.ledger.state import Column, State
from gradeq.ledger.values import Place, Posting
from gradeq.rules.entries import Entries
from gradeq.rules.rule import Judged, Measured
from gradeq.schedules import Schedule


@dataclass(frozen=True)
class Scored:
    """``inner`` tracks a quantile of the scores, its base forecast 0; a posting notes the score last in its memo."""

    inner: Any
    score: Callable[[Any, Any], float]

    penalty = None

    @property
    def schedule(self) -> Schedule:
        """That of the tracker."""
        found: Schedule = self.inner.schedule
        return found

    @property
    def width(self) -> int:
        """That of the tracker."""
        return int(self.inner.width)

    @property
    def stride(self) -> int:
        """That of the tracker."""
        return int(self.inner.stride)

    def columns(self) -> list[Column]:
        """Those of the tracker."""
        return list(self.inner.columns())

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: Any
    ) -> tuple[Any, tuple[float, ...], tuple[float, ...]]:
        """The threshold; x waits on the ticket for its label."""
        served: tuple[Any, tuple[float, ...], tuple[float, ...]]
        served = self.inner.serve(state, place, values, 0.0)
        return served

    @property
    def later(self) -> bool:
        """As for the tracker."""
        return bool(self.inner.later)

    def measure(self, served: Any, base: Any, y: Any, memo: tuple[float, ...]) -> Measured:
        """The score of the label against the threshold."""
        own = memo if len(memo) == self.inner.notes else memo[:-1]  # a posting's has the old score
        s = finite(self.score(base, y), y)
        error, _ = self.inner.measure(served, 0.0, s, own)
        return error, (*own, s)

    def judge(self, served: Any, base: Any, y: Any, memo: tuple[float, ...]) -> Judged:
        """By the score that was noted."""
        found: Judged = self.inner.judge(served, 0.0, memo[-1], memo[:-1])
        return found

    def add(self, state: State, place: Place, posting: Posting, error: Any) -> None:
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
        found: tuple[Any, Any]
        found = self.inner.run(state, batch._replace(base=np.zeros(n), labels=scores))
        return found


def finite(value: Any, y: Any) -> float:
    """A score as a finite float."""
    result = float(value)
    if not math.isfinite(result):
        raise BadInput(f"the score of label {y!r} is {result}; it must be a finite number")
    return result
