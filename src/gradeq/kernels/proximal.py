"""The loop of proximal mirror descent and of its lazy form (paper Appendix B), written once.

The state is the dual point u before it is brought back, theta = primal(u). The greedy step starts again from
dual(theta), u <- dual(theta) - eta g; what the bringing back changed, n = (u - dual(theta)) / eta, lies in the
normal cone (or is the proximal penalty's slope). So eta (g + n) = u - u', and the sum telescopes (prop:pmd_simple).
The lazy step is u <- u - eta g: then g alone telescopes.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradeq.geometries import Geometry
from gradeq.kernels.loops import Floats, Ints, margin
from gradeq.links import Link
from gradeq.losses import Loss
from gradeq.penalties import Penalty


@dataclass(frozen=True)
class Unpenalised:
    """No penalty: the part that stands in a loop where a penalty would."""

    def value(self, theta: float) -> float:
        """0."""
        return 0.0

    def slope(self, theta: float) -> float:
        """0."""
        return 0.0


def proximal(
    link: Link,
    loss: Loss,
    penalty: Penalty,
    geometry: Geometry,
    base: Floats,
    labels: Floats,
    weights: Floats,
    etas: Floats,
    lazy: bool,
    starts: Ints,
    index: Ints,
    value: Floats,
    last: Floats,
    u: Floats,
    theta: Floats,
    sums: Floats,
    pulls: Floats,
    normals: Floats,
    moves: Floats,
    served: Floats,
    gradient: Floats,
    anchor: Floats,
) -> None:
    """Sparse rows, labels at once or missing (nan), own step and weight for each row.

    ``sums``, ``pulls`` and ``normals`` gather the gradient, the penalty's slope and the normal part; ``moves`` the
    displacement as it was applied; ``last`` holds the step before. ``gradient`` and ``anchor`` are scratch space.
    """
    for i in range(len(base)):
        start, stop = starts[i], starts[i + 1]
        s = link.serve(base[i], margin(theta, index, value, start, stop))
        served[i] = s
        y = labels[i]
        if y == y and weights[i] > 0.0:
            e = weights[i] * loss.slope(s, y)
            for j in range(len(u)):
                gradient[j] = penalty.slope(theta[j])
            gather(index, value, start, stop, e, gradient, sums, pulls)
            step(geometry, gradient, etas[i], lazy, last, u, theta, normals, moves, anchor)


def gather(
    index: Ints,
    value: Floats,
    start: int,
    stop: int,
    e: float,
    gradient: Floats,
    sums: Floats,
    pulls: Floats,
) -> None:
    """Add g = e z to ``gradient``, which holds the penalty's slope, and both to their sums."""
    for j in range(len(gradient)):
        pulls[j] = pulls[j] + gradient[j]
    for a in range(start, stop):
        j = index[a]
        g = e * value[a]
        gradient[j] = gradient[j] + g
        sums[j] = sums[j] + g


def step(
    geometry: Geometry,
    gradient: Floats,
    eta: float,
    lazy: bool,
    last: Floats,
    u: Floats,
    theta: Floats,
    normals: Floats,
    moves: Floats,
    anchor: Floats,
) -> None:
    """One step of size eta along ``gradient``, the penalty's slope included."""
    if lazy:
        for j in range(len(u)):
            move = eta * gradient[j]
            u[j] = u[j] - move
            moves[j] = moves[j] + move
    else:
        geometry.dual(theta, anchor)
        for j in range(len(u)):
            back = u[j] - anchor[j]
            if last[0] > 0.0:
                normals[j] = normals[j] + back / last[0]
            move = eta * gradient[j]
            u[j] = anchor[j] - move
            moves[j] = moves[j] + (back + move)
    geometry.primal(u, eta, theta)
    last[0] = eta
