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
    own = [0.0] * len(z)
    copy(z, own)
    pool_within(own, out)


def pool_within(z: Floats, out: Floats) -> None:
    """As ``pool``, without room of its own: z is used up (it comes to hold the sizes of the pooled blocks)."""
    blocks = 0
    for j in range(len(z)):
        level, size = z[j], 1.0
        while blocks > 0 and out[blocks - 1] > level:
            blocks = blocks - 1
            more = z[blocks]
            level = (more * out[blocks] + size * level) / (more + size)
            size = more + size
        out[blocks] = level
        z[blocks] = size
        blocks = blocks + 1
    j = len(z) - 1
    for k in range(blocks - 1, -1, -1):  # from the end: a mean is read before it is written over
        level = out[k]
        for _ in range(int(z[k])):
            out[j] = level
            j = j - 1
