"""What every geometry offers."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

Floats = Any  # a list of floats when interpreted, a float64 array when compiled


class Geometry(Protocol):
    """A set or a proximal penalty, with its mirror map."""

    lazy_is_sound: ClassVar[bool]
    lazy_because: ClassVar[str]

    def check(self, dimension: int) -> None:
        """Refuse a number of parameters that this geometry cannot have."""
        ...

    def dual(self, theta: Floats, out: Floats) -> None:
        """Fill ``out`` with the mirror map of theta."""
        ...

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        """Fill ``out`` with the parameters of the dual point z after a step of size eta."""
        ...


def copy(source: Floats, out: Floats) -> None:
    """Fill ``out`` with ``source``: the mirror map of every Euclidean geometry."""
    for j in range(len(source)):
        out[j] = source[j]
