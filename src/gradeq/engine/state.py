"""The learner's state, tickets and runs, as values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from gradeq.engine.door import Floats
from gradeq.errors import StateError

MOVING = ("u", "theta", "gradients", "penalties", "normals", "moves")  # what a step changes
_VECTORS = ("first", *MOVING)


@dataclass(frozen=True, eq=False)
class State:
    """Where a learner stands, with exactly what its certificates need.

    ``u`` is the dual point and ``first`` the one it began from; ``theta`` the parameters that serve. The sums run
    over the rows learned from: ``gradients`` (w e z, without penalty), ``penalties`` (its slopes), ``normals`` (what
    the geometry brought back, divided by the step), and ``moves`` (u_1 - u as it was applied; with a constant step
    it is eta times the other sums and is not kept). ``n`` counts these rows, ``weight`` sums their weights, ``t``
    counts the rows served, ``step`` is the last step taken (0 before the first). Two states are equal when all
    their numbers are.
    """

    u: Floats
    first: Floats
    theta: Floats
    gradients: Floats
    penalties: Floats
    normals: Floats
    moves: Floats
    n: int
    t: int
    weight: float
    step: float

    def __post_init__(self) -> None:
        for array in (getattr(self, name) for name in _VECTORS):
            array.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash((self.n, self.t, self.u.tobytes()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{x:.6g}" for x in self.theta[:4])
        more = ", ..." if len(self.theta) > 4 else ""
        return f"State(n={self.n}, t={self.t}, theta=[{shown}{more}])"

    @property
    def dimension(self) -> int:
        """How many parameters there are."""
        return len(self.u)

    def as_dict(self) -> dict[str, Any]:
        """The state as plain numbers and lists, for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> State:
        """The state that ``as_dict`` wrote; anything else is refused."""
        names = {field.name for field in fields(cls)}
        if set(saved) != names:
            wrong = ", ".join(sorted(names.symmetric_difference(saved)))
            raise StateError(f"not a learner's state: missing or unknown {wrong}")
        try:
            first, *vectors = (np.array(saved[name], dtype=np.float64) for name in _VECTORS)
            n, t = int(saved["n"]), int(saved["t"])
            weight, step = float(saved["weight"]), float(saved["step"])
        except (TypeError, ValueError):
            raise StateError("not a learner's state: a field is not made of numbers") from None
        if first.ndim != 1 or any(
            v.shape != first.shape or not np.isfinite(v).all() for v in (first, *vectors)
        ):
            raise StateError("not a learner's state: vectors of unequal length or not finite")
        if not (0 <= n <= t and 0.0 <= weight < math.inf and 0.0 <= step < math.inf):
            raise StateError("not a learner's state: counts or weights that cannot be")
        return moved_on(initial(first, first), vectors, n, t, weight, step)


def initial(u: Floats, theta: Floats) -> State:
    """The state before any row."""
    zeros = np.zeros(len(u))
    return State(u.copy(), u.copy(), theta, zeros, zeros, zeros, zeros, 0, 0, 0.0, 0.0)


def moved_on(
    state: State, vectors: Sequence[Floats], n: int, t: int, weight: float, step: float
) -> State:
    """A later state from the same beginning; ``vectors`` are in the order of MOVING."""
    u, theta, gradients, penalties, normals, moves = vectors
    return State(u, state.first, theta, gradients, penalties, normals, moves, n, t, weight, step)


class Ticket(NamedTuple):
    """All that a late label needs: the row, the value served, its step, and the penalty's slope at serving."""

    params: tuple[int, ...]
    value: tuple[float, ...]
    served: float
    eta: float
    slopes: tuple[float, ...] | None
    after: int


class Run(NamedTuple):
    """What a batch served, the state after it, and theta before every k-th row if a trace was asked for."""

    served: Floats
    state: State
    trace: Floats | None
