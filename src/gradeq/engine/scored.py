"""Heads that learn from a function of the label: a score s(x, y), or an error of what was served."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradeq.engine.events import one_by_one
from gradeq.errors import BadInput

if TYPE_CHECKING:
    from gradeq.engine.batch import Batch, Floats


class Scored:
    """A quantile head on scores: serves a threshold, and learns from s(x, y) where x is what predict was given."""

    __slots__ = ("inner", "score")

    def __init__(self, inner: Any, score: Callable[[Any, Any], float]) -> None:
        self.inner, self.score = inner, score

    def grow(self, count: int) -> None:
        """Room for ``count`` parameters."""
        self.inner.grow(count)

    def state(self) -> dict[str, Any]:
        """All that learning has changed."""
        state: dict[str, Any] = self.inner.state()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        self.inner.restore(state)

    def serve(
        self, unit: int, index: Sequence[int], value: Sequence[float], f: Any, t: int, crowd: float
    ) -> tuple[Any, Any]:
        """The threshold."""
        served: tuple[Any, Any] = self.inner.serve(unit, index, value, 0.0, t, crowd)
        return served

    def post(
        self,
        unit: int,
        index: Sequence[int],
        value: Sequence[float],
        f: Any,
        memo: Any,
        w: float,
        y: Any,
    ) -> None:
        """Learn from the score of the label."""
        s = finite(self.score(f, y), "score", y)
        self.inner.post(unit, index, value, 0.0, memo, w, s)

    def amend(
        self,
        unit: int,
        index: Sequence[int],
        value: Sequence[float],
        f: Any,
        memo: Any,
        w: float,
        old: Any,
        new: Any,
    ) -> None:
        """Replace a label."""
        before, after = self.score(f, old), finite(self.score(f, new), "score", new)
        self.inner.amend(unit, index, value, 0.0, memo, w, before, after)

    def run(self, batch: Batch) -> tuple[Floats, Any]:
        """All scores first (they do not depend on what is served), then one pass of the head."""
        import numpy as np

        scores = np.full(len(batch.labels), np.nan)
        for i, (x, y) in enumerate(zip(batch.base.tolist(), batch.labels.tolist(), strict=True)):
            if y == y:
                scores[i] = finite(self.score(x, y), "score", y)
        served: tuple[Floats, Any] = self.inner.run(
            batch._replace(base=np.zeros(len(scores)), labels=scores)
        )
        return served


class Risky:
    """A head that learns from error(served, y): the served knob moves until the error averages to its target."""

    __slots__ = ("error", "inner")

    def __init__(self, inner: Any, error: Callable[[float, Any], float]) -> None:
        self.inner, self.error = inner, error

    def grow(self, count: int) -> None:
        """Room for ``count`` parameters."""
        self.inner.grow(count)

    def state(self) -> dict[str, Any]:
        """All that learning has changed."""
        state: dict[str, Any] = self.inner.state()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        self.inner.restore(state)

    def serve(
        self, unit: int, index: Sequence[int], value: Sequence[float], f: Any, t: int, crowd: float
    ) -> tuple[Any, Any]:
        """The knob."""
        served: tuple[Any, Any] = self.inner.serve(unit, index, value, f, t, crowd)
        return served

    def post(
        self,
        unit: int,
        index: Sequence[int],
        value: Sequence[float],
        f: Any,
        memo: Any,
        w: float,
        y: Any,
    ) -> None:
        """Learn from the error of what was served."""
        self.inner.post(unit, index, value, f, memo, w, finite(self.error(memo[0], y), "error", y))

    def amend(
        self,
        unit: int,
        index: Sequence[int],
        value: Sequence[float],
        f: Any,
        memo: Any,
        w: float,
        old: Any,
        new: Any,
    ) -> None:
        """Replace a label."""
        before = self.error(memo[0], old)
        after = finite(self.error(memo[0], new), "error", new)
        self.inner.amend(unit, index, value, f, memo, w, before, after)

    def run(self, batch: Batch) -> tuple[Floats, Any]:
        """Event by event: the error needs what was served."""
        return one_by_one(self, batch)


def finite(value: Any, what: str, y: Any) -> float:
    """A score or error as a finite float."""
    result = float(value)
    if not math.isfinite(result):
        raise BadInput(f"the {what} of label {y!r} is {result}; it must be a finite number")
    return result
