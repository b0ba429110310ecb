"""What a learner has learned, as a value: its state, and what a run served."""

from __future__ import annotations

import math
from array import array
from typing import Any, NamedTuple

import numpy as np

from gradeq.engine.checks import Floats
from gradeq.engine.observed import OBSERVED
from gradeq.errors import StateError
from gradeq.kernels.account import LEAN, ROWS, WEIGHT
from gradeq.ledger.state import MOST, column
from gradeq.ledger.state import State as Columns
from gradeq.rules.lean import LEAN_COLUMNS, PENALTY_COLUMNS, STEP
from gradeq.rules.proximal import PROXIMAL_COLUMNS

OWN_COLUMNS = (
    column("first", "parameter", (0.0,), MOST),
    column("served", "layer", (0.0,)),
    OBSERVED,
)
_KNOWN = (*OWN_COLUMNS, *LEAN_COLUMNS, *PENALTY_COLUMNS, *PROXIMAL_COLUMNS)


class State:
    """Where a learner stands, with exactly what its certificates need; nothing can change it.

    ``u`` is the dual point and ``first`` the one it began from; ``theta`` the parameters that serve. The sums run
    over the rows learned from: ``gradients`` (w e z, without penalty), ``penalties`` (its slopes), ``normals`` (what
    the geometry brought back, divided by the step), and ``moves`` (u_1 - u as it was applied). ``n`` counts these
    rows, ``weight`` sums their weights, ``t`` counts the rows served, ``step`` is the last step taken (0 before the
    first). Two states are equal when all their numbers are.
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def __eq__(self, other: object) -> bool:
        return self._columns == other._columns if isinstance(other, State) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.n, self.t, self.u.tobytes()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{x:.6g}" for x in self.theta[:4])
        more = ", ..." if len(self.theta) > 4 else ""
        return f"State(n={self.n}, t={self.t}, theta=[{shown}{more}])"

    @property
    def dimension(self) -> int:
        """How many parameters there are."""
        return len(self._columns.u)

    @property
    def u(self) -> Floats:
        """The dual point."""
        return self._vector("u")

    @property
    def first(self) -> Floats:
        """The dual point before any row."""
        return self._vector("first")

    @property
    def theta(self) -> Floats:
        """The parameters that serve."""
        return self._vector("theta" if hasattr(self._columns, "theta") else "u")

    @property
    def gradients(self) -> Floats:
        """The sum of w e z."""
        return self._vector("sums", 0, LEAN)

    @property
    def penalties(self) -> Floats:
        """The sum of the penalty's slopes."""
        return self._vector("pulls")

    @property
    def normals(self) -> Floats:
        """The sum of what the geometry brought back, each divided by its step."""
        return self._vector("normals")

    @property
    def moves(self) -> Floats:
        """u_1 - u, summed up as it was applied."""
        moved = self._vector("sums", 1, LEAN) + self._vector("drags") + self._vector("returned")
        moved.flags.writeable = False
        return moved

    @property
    def n(self) -> int:
        """Rows learned from."""
        return int(self._columns.heard[ROWS])

    @property
    def weight(self) -> float:
        """Their weights, added up."""
        return float(self._columns.heard[WEIGHT])

    @property
    def step(self) -> float:
        """The last step taken."""
        return float(self._columns.heard[STEP])

    @property
    def t(self) -> int:
        """Rows served."""
        return int(self._columns.served[0])

    def _vector(self, name: str, at: int = 0, stride: int = 1) -> Floats:
        """A column that nobody can write to; zeros where this learner keeps none."""
        kept = hasattr(self._columns, name)
        found: Floats = self._columns.view(name)[at::stride] if kept else np.zeros(self.dimension)
        found.flags.writeable = False
        return found

    def after_serving(self) -> State:
        """The same, one row later."""
        columns = object.__new__(Columns)
        columns.__dict__.update(self._columns.__dict__)  # shares all that is the same
        columns.served = array("d", [columns.served[0] + 1.0])
        return State(columns)

    def as_dict(self) -> dict[str, list[float]]:
        """All columns as lists of numbers, for JSON."""
        return {name: list(values) for name, values in self._columns.saved().items()}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> State:
        """The state that ``as_dict`` wrote; anything else is refused."""
        needed = {each.name for each in (*OWN_COLUMNS, *LEAN_COLUMNS) if not each.later}
        if not needed <= set(saved) <= {each.name for each in _KNOWN}:
            raise StateError("not a learner's state: columns are missing or unknown")
        try:
            values = {name: array("d", numbers) for name, numbers in saved.items()}
        except (TypeError, ValueError):
            raise StateError("not a learner's state: a column is not made of numbers") from None
        if not all(math.isfinite(x) for numbers in values.values() for x in numbers):
            raise StateError("not a learner's state: a number is not finite")
        columns = Columns([each for each in _KNOWN if each.later or each.name in saved])
        columns.restore(values, len(values["u"]), 1)
        state = cls(columns)
        if not (0 <= state.n <= state.t and state.weight >= 0.0 and state.step >= 0.0):
            raise StateError("not a learner's state: impossible counts or weights")
        return state


class Run(NamedTuple):
    """What a batch served, the state after it, and theta before every k-th row if a trace was asked for."""

    served: Floats
    state: State
    trace: Floats | None
