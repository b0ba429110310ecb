"""The quantile ensemble: trackers with their own errors, weights by exponentiated gradient.

alg:quantile-ensembling, corrected: tracker k moves by its OWN miss 1{y <= f + theta_k} - tau, the weights by the miss
of the ensemble, with exponent -nu theta_k times that miss.
"""

from __future__ import annotations

from gradeq.geometries import EntropicSimplex
from gradeq.kernels.account import Floats, Ints
from gradeq.losses import Quantile


def blend(f: float, ws: Floats, thetas: Floats, held: Floats, to: int) -> float:
    """f + w'theta, the trackers copied to ``held`` for the label to come."""
    q = 0.0
    for k in range(len(thetas)):
        held[to + k] = thetas[k]
        q = q + ws[k] * thetas[k]
    return f + q


def learn(
    loss: Quantile,
    geometry: EntropicSimplex,
    floored: bool,
    nus: Floats,
    nu: float,
    share: float,
    f: float,
    q: float,
    y: float,
    w: float,
    held: Floats,
    to: int,
    thetas: Floats,
    zs: Floats,
    ws: Floats,
) -> None:
    """Trackers by their own misses, logarithms of the weights by the ensemble's, all as they were served.

    ``share``: how much of its step the late-label cap leaves to this label, of every step alike.
    """
    miss = w * loss.slope(q, y)
    rate = nu * share
    for k in range(len(thetas)):
        own = w * loss.slope(f + held[to + k], y)
        thetas[k] = thetas[k] - (nus[k] * share) * own
        zs[k] = zs[k] - rate * (held[to + k] * miss)
    geometry.primal(zs, rate, ws)
    if floored:
        geometry.dual(ws, zs)


def blended(
    loss: Quantile,
    geometry: EntropicSimplex,
    floored: bool,
    nus: Floats,
    nu: float,
    base: Floats,
    labels: Floats,
    weights: Floats,
    steps: Floats,
    etas: Floats,
    first: int,
    cuts: Ints,
    posts: Ints,
    thetas: Floats,
    zs: Floats,
    ws: Floats,
    apart: int,
    held: Floats,
    mixed: Floats,
) -> None:
    """Labels at once or in any order: before row i is served, posts[: cuts[i]] have been posted.

    ``held`` keeps the trackers of every row as they were when it was served, ``apart`` numbers from one row to the
    next: 0 when every label comes at once.
    """
    p = 0
    for i in range(first, len(base) + 1):
        due = cuts[i] if i < len(base) else len(posts)
        while p < due:
            r = posts[p]
            learn(
                loss, geometry, floored, nus, nu, etas[r] / steps[r], base[r], mixed[r], labels[r],
                weights[r], held, r * apart, thetas, zs, ws,
            )  # fmt: skip
            p += 1
        if i < len(base):
            mixed[i] = blend(base[i], ws, thetas, held, i * apart)
