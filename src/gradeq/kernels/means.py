"""Experts that are running means of the known residuals, mixed by their loss, under a final layer of descent.

An expert forgets over a number of labels of the whole layer. It says link(f, a + d of the row's groups) and learns
from a label as if it had come at once: by the error of its PRESENT state, so nothing is fed back through the delay.
Entry j * EXPERTS + k belongs to group j and expert k.
"""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

from gradeq.kernels.account import Floats, Ints
from gradeq.kernels.driver import Rows, waited
from gradeq.kernels.forms import margin, move
from gradeq.kernels.mixing import DELTA, LARGEST, blend, settle, weigh
from gradeq.links import Link
from gradeq.losses import Loss

EXPERTS = 8
SAID = EXPERTS + 1  # the raw prediction comes first
PRIOR = 3.0  # the precision that an offset of 0 has before any label
FLATTEST = 1e-3  # the least curvature of a probability
HEAVIEST = 1e300  # of a weight: above it a precision would no longer be finite


class Means(
    namedtuple(
        "Means",
        "u offsets precisions losses hedge heard guard own_offsets own_precisions own_last",
    )
):
    """What the final layer, the means and their weights learn; without groups there is nothing by group."""


class Room(namedtuple("Room", "apart memos mixes served weights lost")):
    """What was said, mixed and served, row by row (given for rows before the first), and scratch of one row.

    ``apart``: numbers from what was said of one row to that of the next, 0 when every label comes at once.
    """


@dataclass(frozen=True)
class Mix:
    """The model of ``driven``: ``groups`` is the number of group columns, 0 without any.

    ``bounded``: predictions are probabilities. ``keeps``: 1 - 1 / memory of each expert, ``fades`` their logarithms.
    """

    bounded: bool
    groups: float
    keeps: tuple[float, ...]
    fades: tuple[float, ...]

    def offset(self, state: Any, k: int, index: Ints, start: int, stop: int) -> float:
        """Where expert k stands for one row: its common offset, and those of the row's groups."""
        x: float = state.offsets[k]
        if self.groups > 0.0:
            for a in range(start, stop):
                x = x + state.own_offsets[index[a] * EXPERTS + k]
        return x

    def speak(
        self, link: Link, state: Any, f: float, index: Ints, start: int, stop: int, weights: Floats, memo: Floats,
        to: int,
    ) -> float:  # fmt: skip
        """What each expert says of one row, raw first, and their mix, which is given back.

        Where labels have no bounds an expert's offset stays within the residuals seen, and the mix with it.
        """
        memo[to] = f
        for k in range(EXPERTS):
            x = self.offset(state, k, index, start, stop)
            if not self.bounded:
                x = min(max(x, state.guard[0]), state.guard[1])
            memo[to + 1 + k] = link.serve(f, x)
        weigh(state.losses, state.hedge[DELTA], weights)
        return blend(weights, memo, to)

    def hear(
        self, link: Link, loss: Loss, state: Any, f: float, y: float, w: float, late: float, fresh: bool,
        memo: Floats, at: int, index: Ints, start: int, stop: int, weights: Floats, lost: Floats,
    ) -> None:  # fmt: skip
        """One label, ``late`` rows late: weights learn from what was said when its row was served, experts from now.

        Of a fresh label nothing has changed since. ``weights`` and ``lost`` are scratch.
        """
        state.guard[0] = min(state.guard[0], y - f)
        state.guard[1] = max(state.guard[1], y - f)
        judge(loss, memo, at, w, y, lost)
        settle(state, late, lost, weights, fresh)
        labels, w = state.heard[0], min(HEAVIEST, w)
        for k in range(EXPERTS):
            if self.bounded and fresh:
                q = memo[at + 1 + k]
            else:
                q = link.serve(f, self.offset(state, k, index, start, stop))
            e = q - y
            v = w * max(q * (1.0 - q), FLATTEST) if self.bounded else w
            state.precisions[k] = self.keeps[k] * state.precisions[k] + v
            state.offsets[k] = state.offsets[k] - e * (w / (state.precisions[k] + PRIOR))
            if self.groups > 0.0:
                for a in range(start, stop):
                    j = index[a]
                    c = j * EXPERTS + k
                    faded = (
                        math.exp(self.fades[k] * (labels - state.own_last[j]))
                        * state.own_precisions[c]
                    )
                    state.own_precisions[c] = faded + v
                    step = e * (w / (state.own_precisions[c] + PRIOR)) / self.groups
                    state.own_offsets[c] = state.own_offsets[c] - step
        if self.groups > 0.0:
            for a in range(start, stop):
                state.own_last[index[a]] = labels

    def post(
        self,
        link: Link,
        loss: Loss,
        rows: Rows,
        state: Means,
        room: Room,
        i: int,
        r: int,
        fresh: bool,
    ) -> None:
        """The final layer moves by the error of what was served, then weights and experts learn."""
        y, w, start, stop = rows.labels[r], rows.weights[r], rows.starts[r], rows.starts[r + 1]
        e = w * loss.slope(room.served[r], y)
        move(state.u, rows.index, rows.value, start, stop, rows.etas[r], e)
        self.hear(
            link, loss, state, rows.base[r], y, w, waited(rows, i, r), fresh, room.memos, r * room.apart,
            rows.index, start, stop, room.weights, room.lost,
        )  # fmt: skip

    def serve(self, link: Link, loss: Loss, rows: Rows, state: Means, room: Room, i: int) -> None:
        """The mix of row i, moved by the final layer."""
        start, stop = rows.starts[i], rows.starts[i + 1]
        room.mixes[i] = self.speak(
            link,
            state,
            rows.base[i],
            rows.index,
            start,
            stop,
            room.weights,
            room.memos,
            i * room.apart,
        )
        room.served[i] = link.serve(
            room.mixes[i], margin(state.u, rows.index, rows.value, start, stop)
        )


def judge(loss: Loss, memo: Floats, at: int, w: float, y: float, lost: Floats) -> None:
    """What each expert lost by what it said when the row was served."""
    for k in range(SAID):
        lost[k] = min(LARGEST, w * loss.value(memo[at + k], y))
