"""The cone of parameters in increasing order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gradeq.geometries.geometry import Floats, copy


@dataclass(frozen=True)
class Isotonic:
    """theta_1 <= theta_2 <= ... <= theta_d: quantile levels that never cross.

    Projection in the Euclidean distance with equal weights, by pooling adjacent violators. Sorting is another map,
    and has no guarantee.

    >>> out = [0.0, 0.0, 0.0]
    >>> Isotonic().primal([1.0, 3.0, 2.0], 0.1, out)
    >>> out
    [1.0, 2.5, 2.5]
    """

    lazy_is_sound: ClassVar[bool] = True
    lazy_because: ClassVar[str] = (
        "sound for quantile levels in increasing order, every level then keeps its own coverage (result 8.6)"
    )

    def check(self, dimension: int) -> None:
        """Any number of parameters fits."""

    def dual(self, theta: Floats, out: Floats) -> None:
        """theta."""
        copy(theta, out)

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        """The nearest increasing sequence."""
        pool(z, out)


def pool(z: Floats, out: Floats) -> None:
    """Fill ``out`` with the increasing sequence nearest to z: neighbours in the wrong order share their mean.

    >>> out = [0.0, 0.0]
    >>> pool([2.0, 1.0], out)
    >>> out
    [1.5, 1.5]
    """
    level = [0.0] * len(z)
    size = [0] * len(z)
    blocks = 0
    for j in range(len(z)):
        level[blocks] = z[j]
        size[blocks] = 1
        blocks = blocks + 1
        while blocks > 1 and level[blocks - 2] > level[blocks - 1]:
            a, b = size[blocks - 2], size[blocks - 1]
            level[blocks - 2] = (a * level[blocks - 2] + b * level[blocks - 1]) / (a + b)
            size[blocks - 2] = a + b
            blocks = blocks - 1
    j = 0
    for k in range(blocks):
        for _ in range(size[k]):
            out[j] = level[k]
            j = j + 1
