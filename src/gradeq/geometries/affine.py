"""The solutions of a linear system."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gradeq.errors import BadInput
from gradeq.geometries.geometry import Floats, copy

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Affine:
    """{theta : A theta = b}; in equilibrium the average gradient vanishes along the null space of A.

    Projection: z -> P z + x_0, P the projector onto the null space and x_0 the least solution. The normal cone
    is the row space of A (result 7.4). A and b may be given as any arrays; they are kept as tuples.

    >>> out = [0.0, 0.0]
    >>> Affine([[1.0, 1.0]], [1.0]).primal([0.5, 0.25], 0.1, out)
    >>> out
    [0.625, 0.375]
    """

    A: Matrix
    b: tuple[float, ...]
    projector: Matrix = field(init=False, repr=False, compare=False)
    origin: tuple[float, ...] = field(init=False, repr=False, compare=False)
    lazy_is_sound: ClassVar[bool] = False
    lazy_because: ClassVar[str] = (
        "the sum may grow without limit across the constraint: nothing there turns it back (result 8.7)"
    )

    def __post_init__(self) -> None:
        matrix = _finite("A", self.A)
        right = _finite("b", self.b)
        if matrix.ndim != 2 or right.shape != matrix.shape[:1]:
            raise BadInput(
                f"Affine: A of shape {matrix.shape} and b of shape {right.shape}; "
                "needs a matrix (rows, parameters) and one entry of b for each row"
            )
        inverse = np.linalg.pinv(matrix)
        origin = inverse @ right
        if not np.allclose(matrix @ origin, right, rtol=1e-9, atol=1e-9):
            raise BadInput("Affine: A theta = b has no solution; drop the rows that contradict")
        projector = np.eye(matrix.shape[1]) - inverse @ matrix
        object.__setattr__(self, "A", _rows(matrix))
        object.__setattr__(self, "b", tuple(right.tolist()))
        object.__setattr__(self, "projector", _rows(projector))
        object.__setattr__(self, "origin", tuple(origin.tolist()))

    def check(self, dimension: int) -> None:
        """One parameter for each column of A."""
        if dimension != len(self.origin):
            raise BadInput(
                f"Affine: A has {len(self.origin)} columns, but there are {dimension} parameters"
            )

    def dual(self, theta: Floats, out: Floats) -> None:
        """theta."""
        copy(theta, out)

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        """P z + x_0."""
        for i in range(len(z)):
            total = self.origin[i]
            for j in range(len(z)):
                total = total + self.projector[i][j] * z[j]
            out[i] = total


def _finite(name: str, values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"Affine: {name} is not a table of numbers") from None
    if array.size == 0 or not np.isfinite(array).all():
        raise BadInput(f"Affine: {name} must be finite and not empty")
    return array


def _rows(matrix: np.ndarray[Any, np.dtype[np.float64]]) -> Matrix:
    return tuple(tuple(row) for row in matrix.tolist())
