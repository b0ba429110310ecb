"""The quantile ensemble: trackers with their own errors, weights by exponentiated gradient.

alg:quantile-ensembling, corrected: tracker k moves by its OWN miss 1{y <= f + theta_k} - tau, the weights by the miss
of the ensemble, with exponent -nu theta_k times that miss.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

from gradeq.geometries import EntropicSimplex
from gradeq.losses import Quantile


class Learned(namedtuple("Learned", "thetas zs ws")):
    """The trackers, the logarithms of the weights, and the weights."""


class Room(namedtuple("Room", "apart held mixed")):
    """The trackers of every row as they were when it was served, and the ensemble's quantile.

    ``apart``: numbers from the trackers of one row to those of the next, 0 when every label comes at once.
    """


@dataclass(frozen=True)
class Blend:
    """The model of ``driven``: trackers with steps ``nus``, weights with step ``nu``; ``floored``: none is below one.

    The steps of its rows are shares: how much of its step the late-label cap leaves to a label, of every step alike.
    """

    floored: bool
    nus: tuple[float, ...]
    nu: float

    def serve(
        self, loss: Quantile, geometry: EntropicSimplex, rows: Any, state: Any, room: Any, i: int
    ) -> None:
        """f + w'theta, the trackers copied to ``held`` for the label to come."""
        q = 0.0
        for k in range(len(self.nus)):
            room.held[i * room.apart + k] = state.thetas[k]
            q = q + state.ws[k] * state.thetas[k]
        room.mixed[i] = rows.base[i] + q

    def post(
        self, loss: Quantile, geometry: EntropicSimplex, rows: Any, state: Any, room: Any, i: int, r: int, fresh: bool
    ) -> None:  # fmt: skip
        """Trackers by their own misses, logarithms of the weights by the ensemble's, all as they were served."""
        f, y, w, share, to = (
            rows.base[r],
            rows.labels[r],
            rows.weights[r],
            rows.etas[r],
            r * room.apart,
        )
        miss = w * loss.slope(room.mixed[r], y)
        rate = self.nu * share
        for k in range(len(self.nus)):
            own = w * loss.slope(f + room.held[to + k], y)
            state.thetas[k] = state.thetas[k] - (self.nus[k] * share) * own
            state.zs[k] = state.zs[k] - rate * (room.held[to + k] * miss)
        geometry.primal(state.zs, rate, state.ws)
        if self.floored:
            geometry.dual(state.ws, state.zs)
