"""The loop of proximal mirror descent and of its lazy form (paper Appendix B), written once.

The state is the dual point u before it is brought back, theta = primal(u). The greedy step starts again from
dual(theta), u <- dual(theta) - eta g; what the bringing back changed, n = (u - dual(theta)) / eta, lies in the
normal cone (or is the proximal penalty's slope). So eta (g + n) = u - u', and the sum telescopes (prop:pmd_simple).
The lazy step is u <- u - eta g: then g alone telescopes.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradeq.geometries import Geometry
from gradeq.kernels.account import Floats, Ints
from gradeq.kernels.descent import gather
from gradeq.kernels.forms import margin
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
    link: Link, loss: Loss, penalty: Penalty, geometry: Geometry, base: Floats, labels: Floats, weights: Floats,
    etas: Floats, lazy: bool, starts: Ints, index: Ints, value: Floats, last: Floats, u: Floats, theta: Floats,
    pulls: Floats, drags: Floats, normals: Floats, returned: Floats, served: Floats, gradient: Floats, anchor: Floats,
) -> None:  # fmt: skip
    """Sparse rows, labels at once or missing (nan), own step and weight for each row.

    ``last`` holds the step before. ``gradient`` and ``anchor`` are scratch space.
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
            gather(index, value, start, stop, etas[i], e, gradient, pulls, drags)
            step(geometry, gradient, etas[i], lazy, last, u, theta, normals, returned, anchor)


def step(
    geometry: Geometry, gradient: Floats, eta: float, lazy: bool, last: Floats, u: Floats, theta: Floats,
    normals: Floats, returned: Floats, anchor: Floats,
) -> None:  # fmt: skip
    """One step of size eta along ``gradient``, the penalty's slope included.

    ``normals`` sums up the normal parts, ``returned`` what was brought back as it was: eta times them.
    """
    if lazy:
        for j in range(len(u)):
            u[j] = u[j] - eta * gradient[j]
    else:
        geometry.dual(theta, anchor)
        for j in range(len(u)):
            back = u[j] - anchor[j]
            if last[0] > 0.0:
                normals[j] = normals[j] + back / last[0]
            returned[j] = returned[j] + back
            u[j] = anchor[j] - eta * gradient[j]
    geometry.primal(u, eta, theta)
    last[0] = eta
