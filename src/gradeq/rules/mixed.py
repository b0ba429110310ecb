"""The automatic step: the raw prediction and running means of the residuals, mixed by their loss, then descent.

Eight means of the known residuals (overall and by group, memories of 10 to 30,000 labels) and the raw prediction are
averaged with weights earned by past loss; the final layer moves that mix by the error of what was really served, and
its certificate is the layer's. Means and weights only choose what is served next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gradeq.errors import BadInput
from gradeq.kernels import means as loops
from gradeq.kernels.account import COLUMNS
from gradeq.kernels.choice import PassRow, driven, run_loop
from gradeq.kernels.means import EXPERTS, GAPS, HEDGE, SAID, SILENT, room_for, weigh
from gradeq.ledger.batch import Batch, alike
from gradeq.ledger.state import LEAST, MEAN, MOST, SUM, Column, State, column
from gradeq.ledger.values import Place, Posting
from gradeq.links import ClippedLogit, Logit
from gradeq.records import copy_with
from gradeq.rules.descent import Descent
from gradeq.rules.rule import Entries, Judged, Measured, diverging, rows_of, views
from gradeq.rules.rule import as_column as numbers
from gradeq.schedules import Schedule

MEMORIES = (10, 30, 100, 300, 1000, 3000, 10000, 30000)  # labels of the layer
KEEPS = tuple(1.0 - 1.0 / memory for memory in MEMORIES)
FADES = tuple(math.log(keep) for keep in KEEPS)
FADED = tuple(math.exp(fade * gap) for gap in range(GAPS) for fade in FADES)
WORK = 12  # a row is worth so many of a plain layer when the compiler is weighed
FARTHEST = 1e300  # a residual beyond it would leave the finite numbers


def mixing_columns(experts: int) -> list[Column]:
    """The columns behind the weights of the experts: their losses; Delta and the mean lateness; how many labels."""
    return [
        column("losses", "layer", (0.0,) * experts),
        Column("hedge", "layer", (0.0,) * HEDGE, (SUM, MOST), low=0.0),
        column("heard", "layer", (0.0,), low=0.0),
    ]


def weights_of(state: State) -> list[float]:
    """The weights that the next prediction would be mixed with, the raw prediction's first."""
    weights = [0.0] * len(state.losses)
    weigh(state.losses, state.hedge[0], SILENT, weights)
    return weights


def add_squares(state: State, params: Any, each: Any, rows: Any) -> None:
    """Add what the mix left of each row, squared, to that of its parameters and of all rows, one by one."""
    with np.errstate(over="ignore"):
        np.add.at(state.view("mix_squares"), params, each)
        if hasattr(state, "total_mix_squares"):
            np.add.at(state.view("total_mix_squares"), np.zeros(len(rows), dtype=np.int64), rows)


def listing(size: int) -> list[float]:
    return [0.0] * size


@dataclass(frozen=True)
class Mixed:
    """Raw and eight running means under ``final``; ``groups`` is the number of group columns, 0 without any.

    A memo is what each expert said, the raw prediction first, and their mix.
    """

    final: Descent
    groups: float
    mix: loops.MeansMix = field(init=False, repr=False, compare=False)
    schedule: Schedule = field(init=False, repr=False, compare=False)  # these two are those of ``final``
    later: bool = field(init=False, repr=False, compare=False)

    width = 1
    stride = COLUMNS
    penalty = None
    memories = (0.0, *map(float, MEMORIES))  # of every expert; the raw prediction has none

    def __post_init__(self) -> None:
        link = self.final.link
        edge = link.clip if isinstance(link, (Logit, ClippedLogit)) else 0.0
        mix = loops.MeansMix(edge > 0.0, edge, self.groups, KEEPS, FADES, FADED)
        vars(self).update(mix=mix, schedule=self.final.schedule, later=self.final.later)

    def columns(self) -> list[Column]:
        """Those of the final layer; offsets and precisions of the means; the weights'."""
        nothing = (0.0,) * EXPERTS
        found = [
            *self.final.columns(),
            *mixing_columns(SAID),
            column("offsets", "layer", nothing, MEAN, by="precisions"),
            column("precisions", "layer", nothing, low=0.0),
            Column("guard", "layer", (0.0, 0.0), (LEAST, MOST)),
        ]
        if self.final.ranged:  # the squared error of a mean
            squares = Column("mix_squares", "parameter", (0.0,), (SUM,), low=0.0, later=True, unknown=math.inf)
            found.append(squares)
            if self.final.totals:
                found.append(copy_with(squares, name="total_mix_squares", per="layer"))
        if not self.groups:
            return found
        return [
            *found,
            column("own_offsets", "parameter", nothing, MEAN, by="own_precisions"),
            column("own_precisions", "parameter", nothing, low=0.0),
            column("own_last", "parameter", (0.0,)),
        ]

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: float
    ) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        """The mix, moved by the final layer."""
        memo = listing(SAID)
        room = room_for(memo, (), (), 0, listing)
        row = PassRow((f,), (), (), (), (0, len(place.params)), place.params)
        m = self.mix.speak(self.final.link, row, state, room, 0)
        s, _, slopes = self.final.serve(state, place, values, m)
        return s, (*memo, m), slopes

    def measure(self, served: float, base: float, y: float, memo: tuple[float, ...]) -> Measured:
        """The error of what was served."""
        if len(memo) != SAID + 1:
            raise BadInput("this ticket does not say what was mixed; post it where it was served")
        return self.final.measure(served, base, y, memo)

    def judge(self, served: object, base: object, y: object, memo: tuple[float, ...]) -> Judged:
        """The error and loss of what was served, and of the raw prediction."""
        return self.final.judge(served, base, y, memo)

    def account(self, state: State, own: Entries) -> None:
        """As for the final layer, which moved the mix."""
        own = replace(own, centre=numbers([memo[SAID] for memo in own.memo]))
        self.final.account(state, own)
        if self.final.ranged:
            square = (own.sign * own.w) * (numbers(own.y) - own.centre) ** 2
            params, starts = own.params
            add_squares(state, params, np.repeat(square, np.diff(starts)), square)

    def add(self, state: State, place: Place, posting: Posting, error: float) -> None:
        """The final layer moves; a first label also teaches weights and means, a correction the losses alone."""
        number, _, f, _, w, _, eta, late, y, _, _, memo, _, sign, _ = posting
        if not -FARTHEST <= y - f <= FARTHEST:
            raise diverging(eta)
        self.final.add(state, place, posting, error, (memo[SAID], y))
        loss = self.final.loss
        if not (sign > 0.0 and late):
            lost = listing(SAID)
            loops.judge(loss, memo, 0, w, y, lost)
            for k, own in enumerate(lost):
                state.losses[k] = state.losses[k] + sign * own
            return
        since = max(0.0, float(state.number - number))
        row = PassRow((f,), (y,), (w,), (), (0, len(place.params)), place.params)
        room = room_for(memo, (), (), 0, listing)
        self.mix.hear(self.final.link, loss, row, state, room, 0, since, False)

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """One pass serves and learns, a second keeps the accounts; the caller undoes both if this raises."""
        n, posts = len(batch.base), batch.posts
        with np.errstate(over="ignore"):
            residuals = batch.labels[posts] - batch.base[posts]
        if not (np.abs(residuals) <= FARTHEST).all():
            raise diverging(self.schedule.step(1))
        served, mixes = np.empty(n), np.empty(n)
        memos = np.empty((1 if batch.at_once else n, SAID + 1))  # the mix comes last
        for k, ticket in enumerate(batch.carried):
            served[k], memos[k], mixes[k] = ticket.served, ticket.memo, ticket.memo[SAID]
        room = room_for(memos.reshape(-1), mixes, served, 0 if batch.at_once else SAID + 1, np.empty)
        parts = (self.mix, self.final.link, self.final.loss)
        run_loop(driven, (*parts, rows_of(state, batch), views(loops.Means, state), room), (), WORK * n)
        top = float(batch.etas.max(initial=0.0))
        if not np.isfinite(served).all():
            raise diverging(top)
        self.final.check(state, batch._replace(base=mixes), False)
        self.final.tally(state, batch, served, mixes)
        if self.final.ranged and len(posts):
            with np.errstate(over="ignore", invalid="ignore"):  # rows of weight 0 are not picked
                square = batch.weights * (batch.labels - mixes) ** 2
            own = alike(posts, (batch.rows.starts, batch.rows.params), square)
            add_squares(state, own.params, own.weights, own.rows)
        if batch.at_once:
            return served, None
        memos[:, SAID] = mixes
        return served, memos
