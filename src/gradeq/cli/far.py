"""Values of a run that lie far outside everything seen before: a wrong unit, a time stamp in the wrong column.

Magnitudes are counted by their power of two, so a column of any length costs a small table. A value is far if it is
more than a hundred thousand times as large as 99 % of all others, those that the state remembers among them. A served
value is astray if it is a thousand times as large as its own forecast and as every one and label that is not far.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from gradeq.engine.flight import LABELS
from gradeq.kernels.account import COLUMNS, HIGH, LOW
from gradeq.ledger import facts as fact
from gradeq.report.story import Notice
from gradeq.report.surprises import (
    ABSOLUTE_WEIGHTS,
    FAR_LABEL,
    FAR_PREDICTION,
    LATE_UNCAPPED,
    UNKNOWN,
    Cause,
    far_value,
    large_features,
    large_step,
    served_astray,
)

DOUBLINGS = 18  # at least 131,072 times: one of them is lost to where a power begins
ASTRAY = 11  # at least 1,024 times
FEWEST = 20  # values: fewer say nothing about what is usual
REMEMBERED = 10_000  # tickets of the state that are looked at
POWERS = 2048  # of two that a float can have
ZERO = 1023  # the one of numbers from 1 to 2


class Far(NamedTuple):
    """How many values lie far outside, and the largest of them."""

    many: int
    value: float
    where: str


class Magnitudes:
    """How large the values of one column are, and where its largest is."""

    def __init__(self, doublings: int = DOUBLINGS) -> None:
        self.doublings = doublings
        self.counts = np.zeros(POWERS, dtype=np.int64)
        self.own = np.zeros(POWERS, dtype=np.int64)  # of this run
        self.largest, self.where = 0.0, ""

    def remember(self, values: list[float]) -> None:
        """Values of earlier runs."""
        self.counts += powers(np.abs(np.asarray(values, dtype=float)))

    def add(
        self, values: Any, where: Callable[[int], str], beside: Any = None, sizes: Any = None
    ) -> None:
        """Values of this run; nan is none. ``where`` names the row of a place in them.

        ``beside``: only a value that is far from this size as well may be called far. ``sizes`` of the values, where
        they are known.
        """
        sizes = np.abs(values) if sizes is None else sizes
        largest = sizes.max(initial=0.0)
        rows = None if largest == largest else np.flatnonzero(~np.isnan(sizes))
        seen = powers(sizes if rows is None else sizes[rows])
        self.counts += seen
        if beside is not None:
            rows = np.flatnonzero(sizes > 2.0 ** (self.doublings - 1) * beside)
            seen = powers(sizes[rows])
        own = sizes if rows is None else sizes[rows]
        self.own += seen
        if own.max(initial=0.0) > abs(self.largest):
            at = int(np.argmax(own) if rows is None else rows[np.argmax(own)])
            self.largest, self.where = float(values[at]), where(at)

    @property
    def far(self) -> Far | None:
        """What of this run lies far outside, if anything does."""
        usual = self.usual
        return self.above(usual) if usual else None

    @property
    def usual(self) -> int:
        """The power of two that 99 % of the values do not exceed; 0 if they are zeros, or too few to tell."""
        total = int(self.counts.sum())
        if total < FEWEST:
            return 0
        rank = min(total - 1, -(-99 * total // 100))
        return int(np.searchsorted(np.cumsum(self.counts), rank))

    def above(self, power: int) -> Far | None:
        """What of this run lies so many doublings above a power of two."""
        beyond = int(self.own[power + self.doublings :].sum())
        return Far(beyond, self.largest, self.where) if beyond else None


def powers(sizes: Any) -> Any:
    """How many of these numbers, none below 0, there are of each power of two, zeros first: read from their bits."""
    return np.bincount(sizes.view(np.int64) >> 52, minlength=POWERS)


def each(base: Any) -> tuple[Any, ...]:
    """The forecasts of a ticket: one, or one for each level."""
    return tuple(base) if isinstance(base, (tuple, list)) else (base,)


def each_of(column: Any, width: int) -> Any:
    """The column, each of its values so many times."""
    return column if width == 1 else np.repeat(column, width)


def farthest_residual(layer: Any) -> float:
    """The farthest that a label ever was from its prediction, if the layer keeps that in the unit of labels."""
    terms, state = layer._terms, layer._state
    if terms.task not in ("mean", "quantile") or terms.sinh:
        return 0.0
    sums = state.view("sums").reshape(-1, COLUMNS)
    known = sums[:, LOW] <= sums[:, HIGH]
    return float(np.abs(sums[known][:, [LOW, HIGH]]).max(initial=0.0))


class Watch:
    """The predictions and labels of a run beside those that the state remembers."""

    def __init__(self, layer: Any) -> None:
        self.predictions, self.labels, self.served = Magnitudes(), Magnitudes(), Magnitudes(ASTRAY)
        self.layer = layer
        # A probability cannot be served astray, however rare what it is about.
        self.bounded = getattr(getattr(layer, "layer", layer), "outcome", "real") == "binary"
        book = layer._book
        closed = list(islice(reversed(book.closed.values()), REMEMBERED))
        opened = [ticket for ticket, _, _ in islice(book.tickets(latest=True), REMEMBERED)]
        bases = [float(f) for own in (*closed, *opened) for f in each(own.base)]
        self.predictions.remember(bases)
        # A label is held against predictions too: on the first day there is no other.
        self.labels.remember([*bases, *(own.y for own in closed if type(own.y) is float)])

    def look(self, bases: Any, y: Any, where: Callable[[int], str], keyed: bool) -> Any:
        """A piece of a run: a row of forecasts for each label; the size of each (of several the largest).

        Series of keys may have any scale of their own, so there a label is also held against its forecast, and a
        forecast against its label.
        """
        width, sizes, labels = bases.shape[1], np.abs(bases), np.abs(y)
        forecasts = sizes[:, 0] if width == 1 else sizes.max(axis=1)
        beside = (each_of(labels, width), forecasts) if keyed else (None, None)
        self.predictions.add(bases.ravel(), lambda i: where(i // width), beside[0], sizes.ravel())
        self.labels.add(y, where, beside[1], labels)
        return forecasts

    def look_at_served(self, served: Any, forecasts: Any, where: Callable[[int], str]) -> None:
        """Values that were served, and the size of the forecast of each row."""
        width = served.shape[1]
        self.served.add(served.ravel(), lambda i: where(i // width), each_of(forecasts, width))

    @property
    def astray(self) -> Far | None:
        """Served values that are out of all proportion to the forecasts and labels that are not far themselves."""
        seen = self.predictions.counts + self.labels.counts
        usual = self.labels.usual or self.predictions.usual
        if not usual or self.bounded:
            return None
        return self.served.above(int(np.flatnonzero(seen[: usual + DOUBLINGS])[-1]))

    def cause(self) -> Cause:
        """What the data show of why served values are astray."""
        layer, facts = self.layer, self.layer._state.facts
        if self.labels.far is not None or farthest_residual(layer) > self.far_from_usual:
            return FAR_LABEL
        if self.predictions.far is not None:
            return FAR_PREDICTION
        if facts[fact.HEAVIEST] > facts[fact.SERVED]:  # relative to the mean none is
            return ABSOLUTE_WEIGHTS
        if layer._flight.limit is None and facts[fact.LATEST] > 1.0:
            return LATE_UNCAPPED
        usual = 2.0 ** (self.labels.usual - ZERO)
        if facts[fact.STEP_HIGH] > (usual if layer._sizing == LABELS else 1.0):
            return large_step(facts[fact.STEP_HIGH])
        if layer._flight.featured and facts[fact.LARGEST] > 2.0**ASTRAY:
            return large_features(facts[fact.LARGEST])
        return UNKNOWN

    @property
    def far_from_usual(self) -> float:
        """How large a number must be to be far outside, by the labels."""
        return float(2.0 ** min(1000, self.labels.usual + DOUBLINGS - ZERO))

    def notices(self) -> list[Notice]:
        """A warning for each column with values far outside, after that of served values that are astray."""
        found = (("prediction", self.predictions.far), ("label", self.labels.far))
        astray = [] if self.astray is None else [served_astray(*self.astray, self.cause())]
        return [*astray, *(far_value(noun, *far) for noun, far in found if far is not None)]
