"""Risk control: descent on an error of yours, computed from what was served when its label comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

from gradeq.errors import BadInput
from gradeq.kernels.account import COLUMNS
from gradeq.ledger.batch import Batch
from gradeq.ledger.state import Column, State
from gradeq.ledger.values import Place, Posting
from gradeq.links import Identity
from gradeq.rules.descent import Descent
from gradeq.rules.entries import Entries
from gradeq.rules.rule import Judged, Measured
from gradeq.schedules import Schedule


@dataclass(frozen=True)
class Shortfall:
    """Slope target - error: in equilibrium the errors average to the target. The value reported is the error."""

    target: float

    def value(self, u: float, y: float) -> float:
        """The error itself."""
        return y

    def slope(self, u: float, y: float) -> float:
        """target - error."""
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
        """Those of descent."""
        return self._inner.columns()

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: float
    ) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        """The knob."""
        return self._inner.serve(state, place, values, f)

    @property
    def later(self) -> bool:
        """As for descent."""
        return self._inner.later

    def measure(self, served: float, base: float, y: Any, memo: tuple[float, ...]) -> Measured:
        """The error of what was served."""
        e = float(self.error(served, y))
        if not 0.0 <= e <= self.most:
            raise BadInput(f"the error of label {y!r} is {e}; it must lie in [0, {self.most:g}]")
        return self._inner.measure(served, base, e, (e,))

    def judge(self, served: Any, base: Any, y: Any, memo: tuple[float, ...]) -> Judged:
        """By the error that was noted."""
        return self._inner.judge(served, base, memo[0], memo)

    def add(self, state: State, place: Place, posting: Posting, error: float) -> None:
        """Learn from the error that was noted."""
        f, memo = posting[2], posting[11]
        self._inner.add(state, place, posting, error, (f, memo[0]))

    def account(self, state: State, own: Entries) -> None:
        """As for descent, with the errors that were noted for labels."""
        self._inner.account(state, replace(own, y=[memo[0] for memo in own.memo]))

    def run(self, state: State, batch: Batch) -> NoReturn:
        """Never: see ``by_events``."""
        raise NotImplementedError
