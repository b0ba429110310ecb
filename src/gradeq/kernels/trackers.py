"""Loops of the automatic step for quantiles, and of quantile ensembles."""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

from gradeq.geometries import EntropicSimplex, pool_within
from gradeq.kernels.account import Floats
from gradeq.kernels.choice import PassRows, waited
from gradeq.kernels.levels import FADE, SINH, One, SeveralLevels, fade, place, post_row, scale_at, serve_row
from gradeq.kernels.means import LARGEST, LATENESS, ready, settle
from gradeq.losses import Quantile, pinball, pinball_slope
from gradeq.penalties import Penalty

FARTHEST = 1e300
COMMON = 10.0  # labels after which a common step is no longer that of a mean, if its rate is 0
OWN = 30.0  # the same for the offset of a group
STRIDE = 0.3  # asinh units: however heavy, no label moves an expert by more
SPAN = math.log(2.0) / 4.0  # the experts' scale halves its past in 100 labels, or in four times their mean lateness


def bounded(x: float) -> float:
    return min(FARTHEST, max(-FARTHEST, x))


class Trackers(
    namedtuple(
        "Trackers",
        "u nums dens sums gaps total pulls drags "
        "offsets losses hedge heard scale_num scale_den own_offsets own_heard",
    )
):
    """What the final tracker learns, then the experts and their weights; a column that is not kept is empty."""


class TrackersScratch(
    namedtuple("Room", "count scales served a wish theta errors losses slopes apart memos mixes width b weights lost")
):
    """As that of levels, with what was said and mixed, and scratch for it.

    ``apart``: numbers from what was said of one row to that of the next, 0 when every label comes at once;
    ``width``: offsets of one group.
    """


@dataclass(frozen=True)
class TrackersMix:
    """The model of ``driven``: ``groups`` is the number of group columns, ``raw`` 1 if forecasts are an expert."""

    taus: tuple[float, ...]
    raw: int
    groups: float
    rates: tuple[float, ...]

    def forecast(self, count: int, rows: Any, state: Any, room: Any, r: int, scale: float, c: int, k: int) -> float:
        """What a tracker says of row r at level k (its entry c) with this scale: the forecast while there is none."""
        said: float = rows.base[r * count + k]
        if scale > 0.0:
            x = state.offsets[c]
            if self.groups > 0.0:
                for i in range(rows.starts[r], rows.starts[r + 1]):
                    x = x + state.own_offsets[rows.index[i] * room.width + c]
            m = rows.base[r * count + count // 2]
            said = bounded(SINH.serve(m, room.b[k] + x, scale))
        return said

    def speak(self, count: int, rows: Any, state: Any, room: Any, i: int) -> None:
        """What each expert says of row i, level by level, and their mix, projected so that levels do not cross.

        One forecast for several levels is a quantile of none of them: raw then says what the others say together,
        which leaves the mix to them.
        """
        at, to, raw = i * count, i * room.apart, self.raw
        f, key = rows.base[at + count // 2], rows.keys[i]
        scale = scale_at(state.scale_num[key], state.scale_den[key], f)
        place(SINH, True, count, rows.base, at, f, scale, room.b)
        ready(state, room.weights)
        others = 0.0
        for e in range(raw, len(room.weights)):
            others = others + room.weights[e]
        last = rows.base[at + count - 1]
        asleep = raw > 0 and count > 1 and rows.base[at] == last and others > 0.0
        rising = True
        for k in range(count):
            m = 0.0
            for e in range(raw, len(room.weights)):
                x = self.forecast(count, rows, state, room, i, scale, (e - raw) * count + k, k)
                room.memos[to + e * count + k] = x
                m = m + room.weights[e] * x
            if raw > 0:
                room.memos[to + k] = m / others if asleep else rows.base[at + k]
                m = m + room.weights[0] * room.memos[to + k]
            room.wish[k] = m if scale > 0.0 else rows.base[at + k]
            room.theta[k] = room.wish[k]
            if k > 0 and room.wish[k - 1] > room.wish[k]:
                rising = False
        if not rising:
            pool_within(room.wish, room.theta)
        for k in range(count):
            room.mixes[at + k] = room.theta[k]

    def hear(self, count: int, rows: Any, state: Any, room: Any, r: int, waited: float, fresh: bool) -> None:
        """One label: weights learn from what was said when its row was served, experts from what they say now.

        ``waited``: rows served between its row and it.

        The first label to differ from its forecast makes the scale that it is judged in; before it there is nothing
        to learn. Of a fresh label nothing has changed since.
        """
        y, w, at, to = rows.labels[r], rows.weights[r], r * count, r * room.apart
        f, labels = rows.base[at + count // 2], state.heard[0]
        weighed(count, self.taus, room.memos, to, w, y, room.lost)
        settle(state, waited, room.lost, room.weights)
        key = rows.keys[r]
        scale = scale_at(state.scale_num[key], state.scale_den[key], f)
        keep = max(FADE, 1.0 - SPAN / max(1.0, state.hedge[LATENESS]))
        fade(state.scale_num, state.scale_den, key, keep, f, y)
        known = fresh and scale > 0.0
        if scale == 0.0:
            scale = scale_at(state.scale_num[key], state.scale_den[key], f)
        if not known:
            place(SINH, True, count, rows.base, at, f, scale, room.b)
        for e in range(len(self.rates) if scale > 0.0 else 0):
            common = min(STRIDE, w * max(self.rates[e], 1.0 / (labels + COMMON)))
            for k in range(count):
                c, tau = e * count + k, self.taus[k]
                if known:
                    x = room.memos[to + self.raw * count + c]
                else:
                    x = self.forecast(count, rows, state, room, r, scale, c, k)
                room.errors[k] = pinball_slope(tau, x, y)
                state.offsets[c] = bounded(state.offsets[c] - common * room.errors[k])
            if self.groups > 0.0:
                for i in range(rows.starts[r], rows.starts[r + 1]):
                    j = rows.index[i]
                    own = w * max(self.rates[e], 1.0 / (state.own_heard[j] + OWN))
                    own = min(STRIDE, own) / self.groups
                    d = j * room.width + e * count
                    for k in range(count):
                        x = state.own_offsets[d + k] - own * room.errors[k]
                        state.own_offsets[d + k] = bounded(x)
        if self.groups > 0.0:
            for i in range(rows.starts[r], rows.starts[r + 1]):
                state.own_heard[rows.index[i]] = state.own_heard[rows.index[i]] + 1.0

    def post(
        self,
        size: One | SeveralLevels,
        penalty: Penalty,
        rows: PassRows,
        state: Trackers,
        room: TrackersScratch,
        i: int,
        r: int,
        fresh: bool,
    ) -> None:  # fmt: skip
        """The final tracker moves by what was served, then weights and experts learn."""
        count = size.count(room)
        post_row(True, count, self.taus, penalty, rows, state, room, room.mixes, r, fresh)
        self.hear(count, rows, state, room, r, waited(rows, i, r), fresh)

    def serve(
        self,
        size: One | SeveralLevels,
        penalty: Penalty,
        rows: PassRows,
        state: Trackers,
        room: TrackersScratch,
        i: int,
    ) -> None:
        """The mix of row i, moved by the final tracker."""
        count = size.count(room)
        self.speak(count, rows, state, room, i)
        serve_row(True, count, rows, state, room, room.mixes, i)


def weighed(count: int, taus: Floats, memo: Floats, at: int, w: float, y: float, lost: Floats) -> None:
    """What each expert lost by what it said when the row was served, added over the levels."""
    for e in range(len(lost)):
        total = 0.0
        for k in range(count):
            total = total + pinball(taus[k], memo[at + e * count + k], y)
        lost[e] = min(LARGEST, w * total)


class Learned(namedtuple("Learned", "thetas zs ws")):
    """The trackers, the logarithms of the weights, and the weights."""


class EnsembleScratch(namedtuple("Room", "apart held mixed")):
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

    def serve(self, loss: Quantile, geometry: EntropicSimplex, rows: Any, state: Any, room: Any, i: int) -> None:
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
        f, y, w, share, to = (rows.base[r], rows.labels[r], rows.weights[r], rows.etas[r], r * room.apart)
        miss = w * loss.slope(room.mixed[r], y)
        rate = self.nu * share
        for k in range(len(self.nus)):
            own = w * loss.slope(f + room.held[to + k], y)
            state.thetas[k] = state.thetas[k] - (self.nus[k] * share) * own
            state.zs[k] = state.zs[k] - rate * (room.held[to + k] * miss)
        geometry.primal(state.zs, rate, state.ws)
        if self.floored:
            geometry.dual(state.ws, state.zs)
