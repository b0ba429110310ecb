"""Geometries: constraint sets, and how a step that leaves the set is taken back (paper Appendix B).

A geometry is a frozen value with two methods that fill a list or an array: ``dual(theta, out)``, the mirror map, and
``primal(z, eta, out)``, the proximal step from a dual point to parameters. With r the indicator of the set, or the
penalty of a proximal form,

    primal(z, eta) = argmin over x of  D(x, dual^-1(z)) + eta r(x)

where D is the Bregman distance of the mirror map: half the squared distance, or Kullback-Leibler.
The greedy form applies it after each step, and then the average of gradient plus normal part is a displacement
(prop:pmd_simple). The lazy form stores the plain sum of steps and serves its projection; it is available if
``lazy_is_sound``, for the reason in ``lazy_because``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from gradeq.errors import BadInput
from gradeq.inputs.arguments import take_float_between, take_floats

Floats = Any  # a list of floats when interpreted, a float64 array when compiled


class Geometry(Protocol):
    """A set or a proximal penalty, with its mirror map."""

    lazy_is_sound: ClassVar[bool]
    lazy_because: ClassVar[str]

    def check(self, dimension: int) -> None:
        """Raise if the geometry does not fit this number of parameters."""

    def dual(self, theta: Floats, out: Floats) -> None:
        """Fill ``out`` with the mirror map of theta."""

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        """Fill ``out`` with the parameters of the dual point z after a step of size eta."""


def copy(source: Floats, out: Floats) -> None:
    """Fill ``out`` with ``source``: the mirror map of every Euclidean geometry."""
    for j in range(len(source)):
        out[j] = source[j]


class _EuclideanMap:
    """The mirror map of the Euclidean distance, theta itself; any number of parameters fits."""

    lazy_is_sound: ClassVar[bool]
    lazy_because: ClassVar[str]

    def check(self, dimension: int) -> None:
        """Any number of parameters fits."""

    def dual(self, theta: Floats, out: Floats) -> None:
        copy(theta, out)


@dataclass(frozen=True)
class Euclidean(_EuclideanMap):
    """All of R^d: plain gradient descent, whose average gradient itself is the displacement (prop:gd_simple).

    >>> out = [0.0, 0.0]
    >>> Euclidean().primal([3.0, -1.0], 0.1, out)
    >>> out
    [3.0, -1.0]
    """

    lazy_is_sound = True
    lazy_because = "there is nothing to project: lazy and greedy are the same"

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        copy(z, out)


@dataclass(frozen=True)
class Box(_EuclideanMap):
    """low <= theta_j <= high for every j; in equilibrium the gradient averages to zero off the two ends.

    Either end may be infinite. Projection: clip.

    >>> out = [0.0, 0.0]
    >>> Box(0.0, 1.0).primal([3.0, 0.5], 0.1, out)
    >>> out
    [1.0, 0.5]
    """

    low: float
    high: float
    lazy_is_sound = True
    lazy_because = "sound when the flow points inward at the ends, as with labels inside the box (result 8.7)"

    def __post_init__(self) -> None:
        take_floats(self, "low", "high")  # 0 and 0.0 must compile alike
        if not self.low < self.high:
            raise BadInput(f"Box(low={self.low}, high={self.high}): needs low < high")

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        for j in range(len(z)):
            out[j] = min(self.high, max(self.low, z[j]))


@dataclass(frozen=True)
class NonNegative(_EuclideanMap):
    """theta_j >= 0 for every j; in equilibrium the gradient averages to zero where theta stays positive.

    >>> out = [0.0, 0.0]
    >>> NonNegative().primal([3.0, -0.5], 0.1, out)
    >>> out
    [3.0, 0.0]
    """

    lazy_is_sound = True
    lazy_because = "sound when the flow points inward at zero, as with labels that are not negative (result 8.7)"

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        for j in range(len(z)):
            out[j] = max(0.0, z[j])


@dataclass(frozen=True)
class Ball(_EuclideanMap):
    """||theta|| <= radius; in equilibrium the gradient averages to zero inside, to a radial rest on the sphere.

    Projection: scale back to the sphere.

    >>> out = [0.0, 0.0]
    >>> Ball(1.0).primal([3.0, 4.0], 0.1, out)
    >>> out
    [0.6, 0.8]
    """

    radius: float
    lazy_is_sound = True
    lazy_because = (
        "sound when the loss is restorative at the sphere, as with a radius beyond its horizon (result 8.7)"
    )

    def __post_init__(self) -> None:
        take_float_between(self, "radius", 0.0, math.inf)

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        """z, scaled to the sphere where it lies outside."""
        square = 0.0
        for j in range(len(z)):
            square = square + z[j] * z[j]
        norm = math.sqrt(square)
        for j in range(len(z)):
            out[j] = z[j] * self.radius / norm if norm > self.radius else z[j]


Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Affine(_EuclideanMap):
    """{theta : A theta = b}; in equilibrium the average gradient vanishes along the null space of A.

    Projection: z -> P z + x_0, P the projector onto the null space and x_0 the least solution. The normal cone
    is the row space of A (result 7.4). A and b may be any arrays; they become tuples.

    >>> out = [0.0, 0.0]
    >>> Affine([[1.0, 1.0]], [1.0]).primal([0.5, 0.25], 0.1, out)
    >>> out
    [0.625, 0.375]
    """

    A: Matrix
    b: tuple[float, ...]
    projector: Matrix = field(init=False, repr=False, compare=False)
    origin: tuple[float, ...] = field(init=False, repr=False, compare=False)
    lazy_is_sound = False
    lazy_because = "the sum may grow without limit across the constraint: nothing there turns it back (result 8.7)"

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
            raise BadInput(f"Affine: A has {len(self.origin)} columns, but there are {dimension} parameters")

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        for i in range(len(z)):
            total = self.origin[i]
            for j in range(len(z)):
                total = total + self.projector[i][j] * z[j]
            out[i] = total


def _finite(name: str, values: object) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind not in "iufO":
            raise TypeError
        array = numbers.astype(np.float64)
    except (TypeError, ValueError, ArithmeticError):
        raise BadInput(f"Affine: {name} is not a table of numbers") from None
    if array.size == 0 or not np.isfinite(array).all():
        raise BadInput(f"Affine: {name} must be finite and not empty")
    return array


def _rows(matrix: NDArray[np.float64]) -> Matrix:
    return tuple(tuple(row) for row in matrix.tolist())


@dataclass(frozen=True)
class Isotonic(_EuclideanMap):
    """theta_1 <= theta_2 <= ... <= theta_d: quantile levels that never cross.

    Projection in the Euclidean distance with equal weights, by pooling adjacent violators. Sorting is another map,
    and has no guarantee.

    >>> out = [0.0, 0.0, 0.0]
    >>> Isotonic().primal([1.0, 3.0, 2.0], 0.1, out)
    >>> out
    [1.0, 2.5, 2.5]
    """

    lazy_is_sound = True
    lazy_because = (
        "sound for quantile levels in increasing order, every level then keeps its own coverage (result 8.6)"
    )

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        pool(z, out)


def pool(z: Floats, out: Floats) -> None:
    """Fill ``out`` with the increasing sequence nearest to z: neighbours in the wrong order share their mean.

    >>> out = [0.0, 0.0]
    >>> pool([2.0, 1.0], out)
    >>> out
    [1.5, 1.5]
    """
    sizes = [0.0] * len(z)
    copy(z, sizes)
    pool_within(sizes, out)


def pool_within(z: Floats, out: Floats) -> None:
    """As ``pool``, without a buffer: z is overwritten with the sizes of the pooled blocks."""
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


@dataclass(frozen=True)
class _Proximal(_EuclideanMap):
    """A penalty taken at the end of each step."""

    strength: float
    lazy_is_sound = False
    lazy_because = "the penalty belongs to each step: taken once on the sum it would hardly count"

    def __post_init__(self) -> None:
        take_float_between(self, "strength", 0.0, math.inf)


@dataclass(frozen=True)
class SoftThreshold(_Proximal):
    """The lasso in proximal form, r = strength ||theta||_1: each step ends with a threshold of eta strength.

    >>> out = [0.0, 0.0]
    >>> SoftThreshold(1.0).primal([3.0, -0.25], 0.5, out)
    >>> out
    [2.5, 0.0]
    """

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        """z moved towards zero by eta strength, and to zero if it is nearer."""
        cut = eta * self.strength
        for j in range(len(z)):
            out[j] = max(0.0, z[j] - cut) + min(0.0, z[j] + cut)


@dataclass(frozen=True)
class Shrink(_Proximal):
    """The ridge in proximal form, r = (strength / 2) ||theta||^2: each step ends divided by 1 + eta strength.

    >>> out = [0.0]
    >>> Shrink(1.0).primal([3.0], 0.5, out)
    >>> out
    [2.0]
    """

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        for j in range(len(z)):
            out[j] = z[j] / (1.0 + eta * self.strength)


SMALLEST = 1e-300  # a weight below this would lose its digits, and at 0 could never return


@dataclass(frozen=True)
class Simplex(_EuclideanMap):
    """Weights that are >= 0 and sum to 1; in equilibrium the gradients of weights in use average alike.

    Projection in the Euclidean distance: max(0, z - tau) with the tau that makes the sum 1.

    >>> out = [0.0, 0.0, 0.0]
    >>> Simplex().primal([1.0, 0.5, -3.0], 0.1, out)
    >>> out
    [0.75, 0.25, 0.0]
    """

    lazy_is_sound = False
    lazy_because = "the sum drifts across the simplex with every gradient that has a mean (result 8.7)"

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        top = z[0]
        for j in range(len(z)):
            top = max(top, z[j])
        total = 0.0
        for j in range(len(z)):  # measured from the largest, so that no digits are lost far away
            out[j] = z[j] - top
            total = total + out[j]
        active = len(z)
        tau = (total - 1.0) / active
        settled = False
        while not settled:
            count = 0
            total = 0.0
            for j in range(len(z)):
                if out[j] > tau:
                    count = count + 1
                    total = total + out[j]
            settled = count >= active
            if not settled:
                active = count
                tau = (total - 1.0) / active
        for j in range(len(z)):
            out[j] = max(0.0, out[j] - tau)


@dataclass(frozen=True)
class EntropicSimplex:
    """Weights >= ``floor`` that sum to 1, by exponentiated gradient and the exact Kullback-Leibler projection.

        dual = log theta        primal = max(floor, s e^z) with the s that makes the sum 1

    In equilibrium the gradients of weights above the floor average alike. With a floor the average of gradient
    plus normal part is at most D / (eta T) (result 7.3). ``floor=0`` is allowed, keeps weights above 1e-300 so
    that they can return, and has no guarantee: the mirror map is unbounded on the whole simplex.

    >>> out = [0.0, 0.0]
    >>> EntropicSimplex(0.1).primal([0.0, -50.0], 0.1, out)
    >>> out
    [0.9, 0.1]
    """

    floor: float = 0.0
    lazy_is_sound: ClassVar[bool] = False
    lazy_because: ClassVar[str] = "the sum of logarithms grows without limit, floor or no floor (result 8.7)"

    def __post_init__(self) -> None:
        take_floats(self, "floor")
        if not 0.0 <= self.floor <= 0.5:
            raise BadInput(f"EntropicSimplex(floor={self.floor}): floor must lie in [0, 1/d] for d weights")

    @property
    def has_guarantee(self) -> bool:
        """Whether a bound holds: only with a floor (result 7.3)."""
        return self.floor > 0.0

    def check(self, dimension: int) -> None:
        """At most 1 / floor weights."""
        if dimension * self.floor > 1.0:
            raise BadInput(
                f"EntropicSimplex(floor={self.floor}): {dimension} weights of at least the floor exceed 1; "
                f"use a floor of at most {1.0 / dimension:.6g}"
            )

    def dual(self, theta: Floats, out: Floats) -> None:
        for j in range(len(theta)):
            out[j] = math.log(max(SMALLEST, theta[j]))

    def primal(self, z: Floats, eta: float, out: Floats) -> None:
        floor = max(SMALLEST, self.floor)
        top = z[0]
        for j in range(len(z)):
            top = max(top, z[j])
        total = 0.0
        for j in range(len(z)):  # the largest becomes 1: no overflow, and the rest may vanish
            out[j] = math.exp(z[j] - top)
            total = total + out[j]
        active = len(z)
        s = 1.0 / total
        settled = False
        while not settled:
            count = 0
            total = 0.0
            for j in range(len(z)):
                if s * out[j] > floor:
                    count = count + 1
                    total = total + out[j]
            settled = count >= active or count == 0
            if not settled:
                active = count
                s = (1.0 - (len(z) - active) * floor) / total
        for j in range(len(z)):
            out[j] = max(floor, s * out[j])
