"""The quantile ensemble: trackers with their own errors, weights by exponentiated gradient.

alg:quantile-ensembling, corrected: tracker k moves by its OWN miss 1{y <= f + theta_k} - tau, the weights by the miss
of the ensemble, with exponent -nu theta_k times that miss.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

from gradeq.geometries import EntropicSimplex
from gradeq.kernels.account import Floats
from gradeq.kernels.driver import Rows
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

    def blend(self, state: Any, f: float, held: Floats, to: int) -> float:
        """f + w'theta, the trackers copied to ``held`` for the label to come."""
        q = 0.0
        for k in range(len(self.nus)):
            held[to + k] = state.thetas[k]
            q = q + state.ws[k] * state.thetas[k]
        return f + q

    def learn(
        self, loss: Quantile, geometry: EntropicSimplex, state: Any, share: float, f: float, q: float, y: float,
        w: float, held: Floats, to: int,
    ) -> None:  # fmt: skip
        """Trackers by their own misses, logarithms of the weights by the ensemble's, all as they were served."""
        miss = w * loss.slope(q, y)
        rate = self.nu * share
        for k in range(len(self.nus)):
            own = w * loss.slope(f + held[to + k], y)
            state.thetas[k] = state.thetas[k] - (self.nus[k] * share) * own
            state.zs[k] = state.zs[k] - rate * (held[to + k] * miss)
        geometry.primal(state.zs, rate, state.ws)
        if self.floored:
            geometry.dual(state.ws, state.zs)

    def post(
        self, loss: Quantile, geometry: EntropicSimplex, rows: Rows, state: Learned, room: Room, i: int, r: int,
        fresh: bool,
    ) -> None:  # fmt: skip
        """Trackers and weights learn from the label of row r."""
        self.learn(
            loss, geometry, state, rows.etas[r], rows.base[r], room.mixed[r], rows.labels[r], rows.weights[r],
            room.held, r * room.apart,
        )  # fmt: skip

    def serve(
        self,
        loss: Quantile,
        geometry: EntropicSimplex,
        rows: Rows,
        state: Learned,
        room: Room,
        i: int,
    ) -> None:
        """The ensemble's quantile of row i."""
        room.mixed[i] = self.blend(state, rows.base[i], room.held, i * room.apart)
