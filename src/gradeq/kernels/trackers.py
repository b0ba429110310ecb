"""Experts that track quantiles of the known residuals, mixed by their pinball loss, under a final tracker.

An expert is an offset in asinh units for each level, common and by group; its unit is the running scale of |y - f|.
It learns from a label as if it had come at once: by whether its PRESENT state, the scale included, covers it. Judged
in the scale of its ticket it would answer a rise of the scale twice, and without end where the ticket had none.
Entry (j * trackers + e) * count + k belongs to group j, tracker e and level k. A row's memo is what each
expert said level by level (raw first, where there is one).
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

from gradeq.geometries.isotonic import pool_within
from gradeq.kernels.account import Floats, Ints
from gradeq.kernels.driver import Rows, waited
from gradeq.kernels.levels import SINH, One, Several, fade, place, post_row, scale_at, serve_row
from gradeq.kernels.mixing import DELTA, LARGEST, settle, weigh
from gradeq.losses import pinball, pinball_slope
from gradeq.penalties import Penalty

FARTHEST = 1e300
COMMON = 10.0  # labels after which a common step is no longer that of a mean, if its rate is 0
OWN = 30.0  # the same for the offset of a group


def bounded(x: float) -> float:
    """x, kept well inside the finite numbers."""
    return min(FARTHEST, max(-FARTHEST, x))


class Trackers(
    namedtuple(
        "Trackers",
        "u nums dens sums gaps total pulls drags "
        "offsets losses hedge heard scale_num scale_den own_offsets own_heard",
    )
):
    """What the final tracker learns, then the experts and their weights; a column that is not kept is empty."""


class Room(
    namedtuple(
        "Room",
        "count scales served a wish theta errors losses slopes apart memos mixes b weights lost",
    )
):
    """As that of levels, with what was said and mixed, and scratch for it.

    ``apart``: numbers from what was said of one row to that of the next, 0 when every label comes at once.
    """


@dataclass(frozen=True)
class Mix:
    """The model of ``driven``: ``groups`` is the number of group columns, ``raw`` 1 if forecasts are an expert."""

    taus: tuple[float, ...]
    raw: int
    groups: float
    rates: tuple[float, ...]

    def said(
        self, count: int, state: Any, base: Floats, at: int, scale: float, b: Floats, c: int, k: int, index: Ints,
        start: int, stop: int,
    ) -> float:  # fmt: skip
        """What a tracker says at level k (its entry c) with this scale: the forecast while there is none."""
        if scale == 0.0:
            f: float = base[at + k]
            return f
        x = state.offsets[c]
        if self.groups > 0.0:
            for i in range(start, stop):
                x = x + state.own_offsets[index[i] * len(state.offsets) + c]
        return bounded(SINH.serve(base[at + count // 2], b[k] + x, scale))

    def speak(
        self, count: int, state: Any, base: Floats, at: int, index: Ints, start: int, stop: int, weights: Floats,
        memo: Floats, to: int, b: Floats, wish: Floats, theta: Floats, mixes: Floats,
    ) -> None:  # fmt: skip
        """What each expert says of one row, level by level, and their mix, projected so that levels do not cross.

        One forecast for several levels is a quantile of none of them: raw then says what the others say together,
        which leaves the mix to them.
        """
        f, raw = base[at + count // 2], self.raw
        scale = scale_at(state.scale_num[0], state.scale_den[0], f)
        place(SINH, True, count, base, at, f, scale, b)
        weigh(state.losses, state.hedge[DELTA], weights)
        others = 0.0
        for e in range(raw, len(weights)):
            others = others + weights[e]
        asleep = raw > 0 and count > 1 and base[at] == base[at + count - 1] and others > 0.0
        rising = True
        for k in range(count):
            m = 0.0
            for e in range(raw, len(weights)):
                x = self.said(
                    count, state, base, at, scale, b, (e - raw) * count + k, k, index, start, stop
                )
                memo[to + e * count + k] = x
                m = m + weights[e] * x
            if raw > 0:
                memo[to + k] = m / others if asleep else base[at + k]
                m = m + weights[0] * memo[to + k]
            wish[k] = m if scale > 0.0 else base[at + k]
            theta[k] = wish[k]
            if k > 0 and wish[k - 1] > wish[k]:
                rising = False
        if not rising:
            pool_within(wish, theta)
        for k in range(count):
            mixes[at + k] = theta[k]

    def hear(
        self, count: int, state: Any, base: Floats, at: int, y: float, w: float, late: float, fresh: bool,
        memo: Floats, to: int, index: Ints, start: int, stop: int, b: Floats, weights: Floats, lost: Floats,
    ) -> None:  # fmt: skip
        """One label, ``late`` rows late: weights learn from what was said when its row was served, experts from now.

        The first label to differ from its forecast makes the scale that it is judged in; before it there is nothing
        to learn. Of a fresh label nothing has changed since. ``b``, ``weights`` and ``lost`` are scratch.
        """
        f, labels = base[at + count // 2], state.heard[0]
        weighed(count, self.taus, memo, to, w, y, lost)
        settle(state, late, lost, weights, fresh)
        scale = scale_at(state.scale_num[0], state.scale_den[0], f)
        fade(state.scale_num, state.scale_den, 0, f, y)
        known = fresh and scale > 0.0
        if scale == 0.0:
            scale = scale_at(state.scale_num[0], state.scale_den[0], f)
        if not known:
            place(SINH, True, count, base, at, f, scale, b)
        for e in range(len(self.rates) if scale > 0.0 else 0):
            common = max(self.rates[e], 1.0 / (labels + COMMON))
            for k in range(count):
                c = e * count + k
                if known:
                    x = memo[to + self.raw * count + c]
                else:
                    x = self.said(count, state, base, at, scale, b, c, k, index, start, stop)
                miss = w * pinball_slope(self.taus[k], x, y)
                state.offsets[c] = bounded(state.offsets[c] - common * miss)
                if self.groups > 0.0:
                    for i in range(start, stop):
                        j = index[i]
                        own = max(self.rates[e], 1.0 / (state.own_heard[j] + OWN)) / self.groups
                        d = j * len(state.offsets) + c
                        state.own_offsets[d] = bounded(state.own_offsets[d] - own * miss)
        if self.groups > 0.0:
            for i in range(start, stop):
                state.own_heard[index[i]] = state.own_heard[index[i]] + 1.0

    def post(
        self, size: One | Several, penalty: Penalty, rows: Rows, state: Trackers, room: Room, i: int, r: int,
        fresh: bool,
    ) -> None:  # fmt: skip
        """The final tracker moves by what was served, then weights and experts learn."""
        count = size.count(room)
        post_row(True, count, self.taus, penalty, rows, state, room, room.mixes, r, fresh)
        self.hear(
            count, state, rows.base, r * count, rows.labels[r], rows.weights[r], waited(rows, i, r), fresh,
            room.memos, r * room.apart, rows.index, rows.starts[r], rows.starts[r + 1], room.b, room.weights,
            room.lost,
        )  # fmt: skip

    def serve(
        self, size: One | Several, penalty: Penalty, rows: Rows, state: Trackers, room: Room, i: int
    ) -> None:
        """The mix of row i, moved by the final tracker."""
        count = size.count(room)
        self.speak(
            count, state, rows.base, i * count, rows.index, rows.starts[i], rows.starts[i + 1], room.weights,
            room.memos, i * room.apart, room.b, room.wish, room.theta, room.mixes,
        )  # fmt: skip
        serve_row(True, count, rows, state, room, room.mixes, i)


def weighed(
    count: int, taus: Floats, memo: Floats, at: int, w: float, y: float, lost: Floats
) -> None:
    """What each expert lost by what it said when the row was served, added over the levels."""
    for e in range(len(lost)):
        total = 0.0
        for k in range(count):
            total = total + pinball(taus[k], memo[at + e * count + k], y)
        lost[e] = min(LARGEST, w * total)
