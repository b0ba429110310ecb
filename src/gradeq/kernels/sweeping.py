"""Many step sizes in one pass over the rows: what each would have served, and at what bias and loss."""

from __future__ import annotations

from gradeq.kernels.loops import Floats, Ints, margin, move
from gradeq.links import Link
from gradeq.losses import Loss


def swept(
    link: Link,
    loss: Loss,
    etas: Floats,
    base: Floats,
    labels: Floats,
    weights: Floats,
    starts: Ints,
    params: Ints,
    value: Floats,
    u: Floats,
    errors: Floats,
    losses: Floats,
) -> None:
    """As ``sparse`` with a constant step, for every step at once; u[k] are the parameters under step k."""
    for i in range(len(base)):
        y = labels[i]
        if y == y and weights[i] > 0.0:
            start, stop = starts[i], starts[i + 1]
            for k in range(len(etas)):
                s = link.serve(base[i], margin(u[k], params, value, start, stop))
                e = weights[i] * loss.slope(s, y)
                move(u[k], params, value, start, stop, etas[k], e)
                errors[k] = errors[k] + e
                losses[k] = losses[k] + weights[i] * loss.value(s, y)
