"""Loops of the quantile ensemble: trackers with their own errors, weights by exponentiated gradient.

alg:quantile-ensembling, corrected: tracker k moves by its OWN miss 1{y <= f + theta_k} - tau, the weights by the miss
of the ensemble, with exponent -nu theta_k times that miss. Entry unit * count + k belongs to tracker k.
"""

from __future__ import annotations

from gradeq.geometries import EntropicSimplex
from gradeq.kernels.loops import COLUMNS, Floats, Ints, cap, enter
from gradeq.links import Identity
from gradeq.losses import Quantile


def blend(
    count: int, f: float, ws: Floats, thetas: Floats, at: int, held: Floats, to: int
) -> float:
    """f + w'theta, the trackers copied to ``held`` for the label to come."""
    q = 0.0
    for k in range(count):
        held[to + k] = thetas[at + k]
        q = q + ws[at + k] * thetas[at + k]
    return f + q


def learn(
    loss: Quantile,
    geometry: EntropicSimplex,
    floored: bool,
    count: int,
    nus: Floats,
    nu: float,
    limit: float,
    crowd: float,
    f: float,
    q: float,
    y: float,
    w: float,
    held: Floats,
    to: int,
    thetas: Floats,
    zs: Floats,
    ws: Floats,
    at: int,
    z: Floats,
    out: Floats,
) -> None:
    """Trackers by their own misses, logarithms of the weights by the ensemble's, all as they were served."""
    miss = w * loss.slope(q, y)
    rate = cap(nu, limit, crowd)
    for k in range(count):
        own = w * loss.slope(f + held[to + k], y)
        thetas[at + k] = thetas[at + k] - cap(nus[k], limit, crowd) * own
        z[k] = zs[at + k] - rate * (held[to + k] * miss)
    geometry.primal(z, rate, out)
    if floored:
        geometry.dual(out, z)
    for k in range(count):
        zs[at + k] = z[k]
        ws[at + k] = out[k]


def at_once(
    link: Identity,
    loss: Quantile,
    geometry: EntropicSimplex,
    floored: bool,
    count: int,
    nus: Floats,
    nu: float,
    limit: float,
    crowd: Floats,
    base: Floats,
    labels: Floats,
    weights: Floats,
    units: Ints,
    thetas: Floats,
    zs: Floats,
    ws: Floats,
    sums: Floats,
    held: Floats,
    z: Floats,
    out: Floats,
    mixed: Floats,
) -> None:
    """Every label right after its row, or missing (nan); ``held`` is scratch."""
    for i in range(len(base)):
        f, y, w, at = base[i], labels[i], weights[i], units[i] * count
        q = blend(count, f, ws, thetas, at, held, 0)
        mixed[i] = q
        if y == y and w > 0.0:
            learn(
                loss, geometry, floored, count, nus, nu, limit, crowd[i], f, q, y, w, held, 0, thetas,
                zs, ws, at, z, out,
            )  # fmt: skip
            enter(link, loss, sums, units[i] * COLUMNS, f, q, y, w, 1.0, 0.0)


def late(
    link: Identity,
    loss: Quantile,
    geometry: EntropicSimplex,
    floored: bool,
    count: int,
    nus: Floats,
    nu: float,
    limit: float,
    crowd: Floats,
    base: Floats,
    labels: Floats,
    weights: Floats,
    units: Ints,
    thetas: Floats,
    zs: Floats,
    ws: Floats,
    sums: Floats,
    held: Floats,
    z: Floats,
    out: Floats,
    mixed: Floats,
    first: int,
    cuts: Ints,
    posts: Ints,
) -> None:
    """Labels in any order; ``held`` keeps the trackers of every row as they were when it was served."""
    p = 0
    for i in range(first, len(base) + 1):
        due = cuts[i] if i < len(base) else len(posts)
        while p < due:
            r = posts[p]
            f, y, w, q = base[r], labels[r], weights[r], mixed[r]
            learn(
                loss, geometry, floored, count, nus, nu, limit, crowd[r], f, q, y, w, held, r * count,
                thetas, zs, ws, units[r] * count, z, out,
            )  # fmt: skip
            enter(link, loss, sums, units[r] * COLUMNS, f, q, y, w, 1.0, 0.0)
            p += 1
        if i < len(base):
            mixed[i] = blend(count, base[i], ws, thetas, units[i] * count, held, i * count)
