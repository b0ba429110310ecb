"""The automatic step for quantiles: the raw forecasts and quantile trackers of several rates, mixed, then tracked.

Five trackers of the known residuals (overall and by group) and the raw forecasts are averaged with weights earned by
past pinball loss; the final tracker moves that mix by whether what was really served covered the label, and its
certificate is the layer's. Trackers and weights only choose what is served next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gradeq.errors import BadInput
from gradeq.kernels import trackers as loops
from gradeq.kernels.choice import PassRow, driven, run_loop
from gradeq.kernels.means import UNKNOWN
from gradeq.ledger.batch import Batch
from gradeq.ledger.state import MEAN, Column, State, column
from gradeq.ledger.values import Place, Posting
from gradeq.rules.levels import Levels, listed, room_of, size_of
from gradeq.rules.mixed import listing, mixing_columns
from gradeq.rules.rule import IDLE, Entries, Judged, Measured, diverging, rows_of, views
from gradeq.schedules import Schedule

RATES = (0.0003, 0.001, 0.01, 0.1, 0.3)
WORK = 10  # a level of a row is worth so many rows of a plain layer when the compiler is weighed
SCALE = 1  # a memo begins with the scale of the final tracker


@dataclass(frozen=True)
class MixedLevels:
    """Trackers under ``final``; ``groups`` is the number of group columns, ``raw`` whether forecasts are an expert.

    ``start``: where the trackers begin at each level, in asinh units (scores have no forecast to begin from). A memo
    is the scale of the final tracker, what each expert said level by level, and their mix.
    """

    final: Levels
    groups: float
    raw: bool
    start: tuple[float, ...] = ()

    penalty = None

    @property
    def schedule(self) -> Schedule:
        return self.final.schedule

    @property
    def width(self) -> int:
        return self.final.width

    @property
    def stride(self) -> int:
        return self.final.stride

    @cached_property
    def _mix(self) -> loops.TrackersMix:
        return loops.TrackersMix(self.final.taus, int(self.raw), self.groups, RATES)

    @property
    def memories(self) -> tuple[float, ...]:
        """How many labels every expert remembers; the raw forecast has no memory."""
        return (0.0,) * self.raw + tuple(1.0 / rate for rate in RATES)

    @property
    def experts(self) -> int:
        return len(RATES) + int(self.raw)

    @property
    def noted(self) -> int:
        return SCALE + self.experts * self.width

    def columns(self) -> list[Column]:
        """Those of the final tracker; offsets and labels of the experts, their scale; the weights'."""
        width, trackers = self.width, len(RATES)
        found = [
            *self.final.columns(),
            column("offsets", "layer", (self.start or (0.0,) * width) * trackers, MEAN, by="heard"),
            *mixing_columns(self.experts),
            column("scale_num", "key", (0.0,), low=0.0),
            column("scale_den", "key", (0.0,), low=0.0),
        ]
        if not self.groups:
            return found
        nothing = (0.0,) * (trackers * width)
        return [
            *found,
            column("own_offsets", "parameter", nothing, MEAN, by="own_heard"),
            column("own_heard", "parameter", (0.0,), low=0.0),
        ]

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: object
    ) -> tuple[Any, tuple[float, ...], tuple[float, ...]]:
        """The mix, moved by the final tracker."""
        count, base = self.width, listed(f)
        said, mix = listing(self.experts * count), listing(count)
        row = PassRow(base, starts=(0, len(place.params)), index=place.params, keys=(place.key,))
        self._mix.speak(count, row, state, self._room((), (), 0, said, mix, listing), 0)
        centre = mix[0] if count == 1 else tuple(mix)
        served, last, slopes = self.final.serve(state, place, values, centre)
        return served, (*last, *said, *mix), slopes

    @property
    def notes(self) -> int:
        return self.noted + self.width

    @property
    def later(self) -> bool:
        return self.final.later

    def measure(self, served: object, base: object, y: float, memo: tuple[float, ...]) -> Measured:
        """The miss of each level."""
        if len(memo) != self.notes:
            raise BadInput("this ticket does not say what was mixed; post it where it was served")
        return self.final.measure(served, base, y, memo[:SCALE])[0], memo

    def judge(self, served: object, base: object, y: object, memo: tuple[float, ...]) -> Judged:
        """The miss and the pinball loss of each level, then of each raw forecast."""
        return self.final.judge(served, base, y, memo[:SCALE])

    def account(self, state: State, own: Entries) -> None:
        self.final.account(state, replace(own, centre=[self._mixed(memo) for memo in own.memo]))

    def _mixed(self, memo: tuple[float, ...]) -> Any:
        """The mix of a memo: a number, or one for each level."""
        mix = memo[self.noted : self.noted + self.width]
        return mix[0] if self.width == 1 else mix

    def add(
        self, state: State, place: Place, posting: Posting, error: object,
        about: tuple[object, float] | None = None,
    ) -> None:  # fmt: skip
        """The final tracker moves; a first label also teaches weights and experts, a correction the losses alone.

        ``about``: the base forecasts and the label, if others than those of the posting.
        """
        number, _, base, _, w, _, _, late, y, _, _, memo, _, sign, _ = posting
        if about is not None:
            base, y = about
        count = self.width
        self.final.add(state, place, posting, error, (self._mixed(memo), y))
        if not (sign > 0.0 and late):
            lost = listing(self.experts)
            loops.weighed(count, self.final.taus, memo, SCALE, w, y, lost)
            for e, loss in enumerate(lost):
                state.losses[e] = state.losses[e] + sign * loss
            return
        since = max(0.0, float(state.number - number))
        row = PassRow(listed(base), (y,), (w,), (), (0, len(place.params)), place.params, (place.key,))
        room = self._room((), (), 0, memo[SCALE:], (), listing)
        self._mix.hear(count, row, state, room, 0, since, False)

    def _room(
        self, scales: Any, served: Any, apart: int, memos: Any, mixes: Any, empty: Any
    ) -> loops.TrackersScratch:
        """Room for the rows of a run or for one event; ``empty`` makes a list or an array of a size."""
        count = self.width
        notes = (apart, memos, mixes, count * len(RATES), empty(count))
        weights, lost = empty(self.experts), empty(self.experts)
        weights[0] = UNKNOWN
        return loops.TrackersScratch(*room_of(count, scales, served, 0, empty), *notes, weights, lost)

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """One pass serves, learns and keeps the accounts; the caller undoes it if this raises."""
        n, count = len(batch.base), self.width
        served, mixes, scales = np.empty((n, count)), np.empty((n, count)), np.empty(n)
        said = self.experts * count
        memos = np.empty((1 if batch.at_once else n, said))
        for k, ticket in enumerate(batch.carried):
            served[k], scales[k] = ticket.served, ticket.memo[0]
            memos[k], mixes[k] = ticket.memo[SCALE : self.noted], ticket.memo[self.noted :]
        apart, flat = 0 if batch.at_once else said, mixes.reshape(-1)
        room = self._room(scales, served.reshape(-1), apart, memos.reshape(-1), flat, np.empty)
        parts = (self._mix, size_of(count), IDLE)
        records = (rows_of(state, batch), views(loops.Trackers, state), room)
        run_loop(driven, (*parts, *records), (), WORK * n * count)
        if not (np.isfinite(state.view("u")).all() and np.isfinite(served).all()):
            raise diverging(float(batch.etas.max(initial=0.0)))
        table = None if batch.at_once else np.column_stack([scales, memos, mixes])
        return served[:, 0] if count == 1 else served, table
