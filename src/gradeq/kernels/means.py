"""Loops of the automatic step for means: running means of residuals, mixed by their loss."""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

from gradeq.kernels.account import Floats
from gradeq.kernels.choice import PassRows, waited
from gradeq.kernels.descent import margin, move
from gradeq.links import Link
from gradeq.losses import Loss

# Numbers of ``hedge``: Delta, and the mean lateness.
DELTA, LATENESS = range(2)
HEDGE = 2
ROUNDING = 1e-9
LARGEST = 1e280  # of a loss: above it sums would no longer be finite
SILENT = 40.0  # an expert whose weight is e^-40 of the best's changes no digit of the mix,
SHARP = 4.0  # nor of the mix loss, unless a label costs e^4: then no expert is silent
UNKNOWN = -1.0  # stands for the first weight until they are asked for
RECENT = 1000.0  # labels (or four times the mean lateness, if that is more) over which lateness is averaged


def learning_rate(delta: float, experts: int) -> float:
    """ln K / Delta; 0, that is equal weights, while mixing has cost nothing."""
    return min(1e300, math.log(experts) / delta) if delta > 0.0 else 0.0


def weigh(losses: Floats, delta: float, silent: float, weights: Floats) -> None:
    """The weights that the next row is mixed with; 0 for who is e^-silent of the best."""
    experts = len(losses)
    rate = learning_rate(delta, experts)
    least = losses[0]
    for k in range(1, experts):
        if losses[k] < least:
            least = losses[k]
    mass = 0.0
    for k in range(experts):
        behind = rate * (losses[k] - least)
        weights[k] = math.exp(-behind) if behind < silent else 0.0
        mass = mass + weights[k]
    for k in range(experts):
        weights[k] = weights[k] / mass


def ready(state: Any, weights: Floats) -> None:
    """See that the weights are those of the losses by now: many rows may be served between two labels."""
    if weights[0] == UNKNOWN:
        weigh(state.losses, state.hedge[DELTA], SILENT, weights)


def settle(state: Any, waited: float, lost: Floats, weights: Floats) -> None:
    """Enter what each expert lost by one label, and what mixing cost beyond the mix loss.

    ``waited``: rows served between the label's row and the label.

    Losses beyond 700 / rate count as no more in the mix loss: a label far larger than all before it ends a rate that
    was far too sharp for it.
    """
    state.heard[0] = state.heard[0] + 1.0
    mean = state.hedge[LATENESS]
    mean = mean + (waited - mean) / min(state.heard[0], max(RECENT, 4.0 * mean))
    state.hedge[LATENESS] = mean
    delta = state.hedge[DELTA]
    rate = learning_rate(delta, len(state.losses))
    least, most = lost[0], lost[0]
    for k in range(1, len(lost)):
        if lost[k] < least:
            least = lost[k]
        elif lost[k] > most:
            most = lost[k]
    if rate * most > SHARP:
        weigh(state.losses, delta, math.inf, weights)
    else:
        ready(state, weights)
    h = 0.0
    mass = 0.0
    for k in range(len(weights)):
        if weights[k] > 0.0:
            h = h + weights[k] * lost[k]
            mass = mass + weights[k] * math.exp(-min(700.0, rate * lost[k]))
    more = h - (-math.log(mass + 1e-300) / rate if rate > 0.0 else least)
    if more > ROUNDING * h:  # else it is no more than rounding
        state.hedge[DELTA] = delta + more * (1.0 + 2.0 * mean)
    for k in range(len(state.losses)):
        state.losses[k] = state.losses[k] + lost[k]
    weights[0] = UNKNOWN


EXPERTS = 8
SAID = EXPERTS + 1  # the raw prediction comes first
PRIOR = 3.0  # the precision that an offset of 0 has before any label
FLATTEST = 1e-3  # the least curvature of a probability
GAPS = 256  # labels since a group's last: for fewer, what is left of its past is looked up
HEAVIEST = 1e300  # of a weight: above it a precision would no longer be finite


class Means(namedtuple("Means", "u offsets precisions losses hedge heard guard own_offsets own_precisions own_last")):
    """What the final layer, the means and their weights learn; without groups there is nothing by group."""


class MeansScratch(namedtuple("Room", "apart memos mixes served weights lost stands errors curves")):
    """What was said, mixed and served, row by row (given for rows before the first), and scratch of one row.

    ``apart``: numbers from what was said of one row to that of the next, 0 when every label comes at once.
    """


@dataclass(frozen=True)
class MeansMix:
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
        """Each expert's offset for row i: the common one, and those of the row's groups."""
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
        m = 0.0
        for k in range(len(room.weights)):
            m = m + room.weights[k] * room.memos[to + k]
        return m

    def hear(
        self, link: Link, loss: Loss, rows: Any, state: Any, room: Any, r: int, waited: float, fresh: bool
    ) -> None:  # fmt: skip
        """One label: weights learn from what was said when its row was served, experts from what they say now.

        ``waited``: rows served between its row and it.

        Of a fresh label nothing has changed since.
        """
        f, y, w, at = rows.base[r], rows.labels[r], rows.weights[r], r * room.apart
        state.guard[0] = min(state.guard[0], y - f)
        state.guard[1] = max(state.guard[1], y - f)
        judge(loss, room.memos, at, w, y, room.lost)
        settle(state, waited, room.lost, room.weights)
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
                c, gap = j * EXPERTS, labels - state.own_last[j]
                for k in range(EXPERTS):
                    faded = self.faded[int(gap) * EXPERTS + k] if gap < GAPS else math.exp(self.fades[k] * gap)
                    state.own_precisions[c + k] = state.own_precisions[c + k] * faded
                    state.own_precisions[c + k] = state.own_precisions[c + k] + room.curves[k]
                    step = w / ((state.own_precisions[c + k] + PRIOR) * self.groups)
                    state.own_offsets[c + k] = state.own_offsets[c + k] - room.errors[k] * step
                state.own_last[j] = labels

    def post(
        self, link: Link, loss: Loss, rows: PassRows, state: Means, room: MeansScratch, i: int, r: int, fresh: bool
    ) -> None:  # fmt: skip
        """The final layer moves by the error of what was served, then weights and experts learn."""
        e = rows.weights[r] * loss.slope(room.served[r], rows.labels[r])
        start, stop = rows.starts[r], rows.starts[r + 1]
        move(state.u, rows.index, rows.value, start, stop, rows.etas[r], e)
        self.hear(link, loss, rows, state, room, r, waited(rows, i, r), fresh)

    def serve(self, link: Link, loss: Loss, rows: PassRows, state: Means, room: MeansScratch, i: int) -> None:
        """The mix of row i, moved by the final layer."""
        m = self.speak(link, rows, state, room, i)
        x = margin(state.u, rows.index, rows.value, rows.starts[i], rows.starts[i + 1])
        room.mixes[i] = m
        room.served[i] = link.serve(m, x)


def judge(loss: Loss, memo: Floats, at: int, w: float, y: float, lost: Floats) -> None:
    """What each expert lost by what it said when the row was served."""
    for k in range(SAID):
        lost[k] = min(LARGEST, w * loss.value(memo[at + k], y))


def room_for(memos: Floats, mixes: Floats, served: Floats, apart: int, empty: Any) -> MeansScratch:
    """Room for the rows of a run or for one event; ``empty`` makes a list or an array of a size."""
    weights, lost = empty(SAID), empty(SAID)
    weights[0] = UNKNOWN
    stands, errors, curves = empty(EXPERTS), empty(EXPERTS), empty(EXPERTS)
    return MeansScratch(apart, memos, mixes, served, weights, lost, stands, errors, curves)
