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

from gradeq.kernels.account import Floats
from gradeq.kernels.driver import Rows, waited
from gradeq.kernels.forms import margin, move
from gradeq.kernels.mixing import LARGEST, UNKNOWN, blend, ready, settle
from gradeq.links import Link
from gradeq.losses import Loss

EXPERTS = 8
SAID = EXPERTS + 1  # the raw prediction comes first
PRIOR = 3.0  # the precision that an offset of 0 has before any label
FLATTEST = 1e-3  # the least curvature of a probability
GAPS = 256  # labels since a group's last: for fewer, what is left of its past is looked up
HEAVIEST = 1e300  # of a weight: above it a precision would no longer be finite


class Means(
    namedtuple(
        "Means",
        "u offsets precisions losses hedge heard guard own_offsets own_precisions own_last",
    )
):
    """What the final layer, the means and their weights learn; without groups there is nothing by group."""


class Room(namedtuple("Room", "apart memos mixes served weights lost stands errors curves")):
    """What was said, mixed and served, row by row (given for rows before the first), and scratch of one row.

    ``apart``: numbers from what was said of one row to that of the next, 0 when every label comes at once.
    """


@dataclass(frozen=True)
class Mix:
    """The model of ``driven``: ``groups`` is the number of group columns, 0 without any.

    ``bounded``: predictions are probabilities, kept ``edge`` away from 0 and 1, the raw one too: weights begin
    to move with the first difference. ``keeps``: 1 - 1 / memory of each expert, ``fades`` its logarithm; ``faded``:
    entry g * EXPERTS + k is the g-th power of keep k.
    """

    bounded: bool
    edge: float
    groups: float
    keeps: tuple[float, ...]
    fades: tuple[float, ...]
    faded: tuple[float, ...]

    def stand(self, rows: Any, state: Any, room: Any, i: int) -> None:
        """Where each expert stands for row i: its common offset, and those of the row's groups."""
        for k in range(EXPERTS):
            room.stands[k] = state.offsets[k]
        if self.groups > 0.0:
            for a in range(rows.starts[i], rows.starts[i + 1]):
                c = rows.index[a] * EXPERTS
                for k in range(EXPERTS):
                    room.stands[k] = room.stands[k] + state.own_offsets[c + k]

    def speak(self, link: Link, rows: Any, state: Any, room: Any, i: int) -> float:
        """What each expert says of row i, raw first, and their mix, which is given back.

        Where labels have no bounds an expert's offset stays within the residuals seen, and the mix with it.
        """
        f, to = rows.base[i], i * room.apart
        self.stand(rows, state, room, i)
        room.memos[to] = min(1.0 - self.edge, max(self.edge, f)) if self.bounded else f
        low, high = state.guard[0], state.guard[1]
        for k in range(EXPERTS):
            x = room.stands[k]
            if not self.bounded:
                if x < low:
                    x = low
                elif x > high:
                    x = high
            room.memos[to + 1 + k] = link.serve(f, x)
        ready(state, room.weights)
        if state.heard[0] == 0.0:  # all say the same, and no mean of it may round a digit away
            return float(room.memos[to])
        return blend(room.weights, room.memos, to)

    def hear(
        self, link: Link, loss: Loss, rows: Any, state: Any, room: Any, r: int, late: float, fresh: bool
    ) -> None:  # fmt: skip
        """One label, ``late`` rows late: weights learn from what was said when its row was served, experts from now.

        Of a fresh label nothing has changed since.
        """
        f, y, w, at = rows.base[r], rows.labels[r], rows.weights[r], r * room.apart
        state.guard[0] = min(state.guard[0], y - f)
        state.guard[1] = max(state.guard[1], y - f)
        judge(loss, room.memos, at, w, y, room.lost)
        settle(state, late, room.lost, room.weights)
        labels, w = state.heard[0], min(HEAVIEST, w)
        if not fresh:
            self.stand(rows, state, room, r)
        for k in range(EXPERTS):
            x = room.stands[k]
            q = room.memos[at + 1 + k] if self.bounded and fresh else link.serve(f, x)
            room.errors[k] = q - y
            room.curves[k] = w * max(q * (1.0 - q), FLATTEST) if self.bounded else w
        for k in range(EXPERTS):
            state.precisions[k] = self.keeps[k] * state.precisions[k] + room.curves[k]
            step = w / (state.precisions[k] + PRIOR)
            state.offsets[k] = state.offsets[k] - room.errors[k] * step
        if self.groups > 0.0:
            for a in range(rows.starts[r], rows.starts[r + 1]):
                j = rows.index[a]
                self.own(state, room, j * EXPERTS, w, labels - state.own_last[j])
                state.own_last[j] = labels

    def own(self, state: Any, room: Any, c: int, w: float, gap: float) -> None:
        """The means of one group, from entry c on, learn from a label, ``gap`` labels after their last."""
        if gap < GAPS:
            for k in range(EXPERTS):
                faded = self.faded[int(gap) * EXPERTS + k]
                state.own_precisions[c + k] = state.own_precisions[c + k] * faded
        else:
            for k in range(EXPERTS):
                faded = math.exp(self.fades[k] * gap)
                state.own_precisions[c + k] = state.own_precisions[c + k] * faded
        for k in range(EXPERTS):
            state.own_precisions[c + k] = state.own_precisions[c + k] + room.curves[k]
            step = w / ((state.own_precisions[c + k] + PRIOR) * self.groups)
            state.own_offsets[c + k] = state.own_offsets[c + k] - room.errors[k] * step

    def post(
        self, link: Link, loss: Loss, rows: Rows, state: Means, room: Room, i: int, r: int, fresh: bool
    ) -> None:  # fmt: skip
        """The final layer moves by the error of what was served, then weights and experts learn."""
        e = rows.weights[r] * loss.slope(room.served[r], rows.labels[r])
        start, stop = rows.starts[r], rows.starts[r + 1]
        move(state.u, rows.index, rows.value, start, stop, rows.etas[r], e)
        late = waited(rows, i, r)
        self.hear(link, loss, rows, state, room, r, late, fresh)

    def serve(self, link: Link, loss: Loss, rows: Rows, state: Means, room: Room, i: int) -> None:
        """The mix of row i, moved by the final layer."""
        m = self.speak(link, rows, state, room, i)
        x = margin(state.u, rows.index, rows.value, rows.starts[i], rows.starts[i + 1])
        room.mixes[i] = m
        room.served[i] = link.serve(m, x)


def judge(loss: Loss, memo: Floats, at: int, w: float, y: float, lost: Floats) -> None:
    """What each expert lost by what it said when the row was served."""
    for k in range(SAID):
        lost[k] = min(LARGEST, w * loss.value(memo[at + k], y))


def room_for(memos: Floats, mixes: Floats, served: Floats, apart: int, empty: Any) -> Room:
    """Room for the rows of a run or for one event; ``empty`` makes a list or an array of a size."""
    weights, lost = empty(SAID), empty(SAID)
    weights[0] = UNKNOWN
    stands, errors, curves = empty(EXPERTS), empty(EXPERTS), empty(EXPERTS)
    return Room(apart, memos, mixes, served, weights, lost, stands, errors, curves)
