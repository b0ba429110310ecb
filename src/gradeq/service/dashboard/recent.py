"""What the last labels say: trailing means before and after, how long labels were waited for, how many wait."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradeq.report.story import Axis, Pair, Spark, Values
from gradeq.report.thin import Floats, numbers, rolling, thin, window
from gradeq.service.live import Heard

LAST = 1_000
"""Labels of the figure beside the one since the start."""

_SPARK = 60
_HOUR = 3600.0


@dataclass(frozen=True)
class Moving:
    """Trailing means over ``window`` labels: of the bias or a coverage, and of the loss; x is a time or a count."""

    axis: Axis
    window: int
    begin: float
    x: tuple[float, ...]
    before: Values
    after: Values
    loss_before: Values
    loss_after: Values
    more: tuple[tuple[str, Values], ...] = ()  # further levels, by name, as served


@dataclass(frozen=True)
class Stretch:
    """Means over the last labels."""

    labels: int
    error: Pair
    loss: Pair


@dataclass(frozen=True)
class Delays:
    """How long the last labels were waited for, in seconds; counts between ``edges``, in ``unit`` seconds."""

    median: float
    most: float  # 99 % came within this
    unit: float
    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Waiting:
    """How many predictions waited for their label over time."""

    x: tuple[float, ...]
    open: Values
    peak: int


class Recent:
    """The last labels as columns, oldest first; those of weight 0 are left out, as they are from every average.

    So are labels that came while learning was frozen; they count where it is about how long labels take.
    """

    def __init__(self, labels: Iterable[Heard], kind: str, targets: Sequence[float]) -> None:
        came = [one for one in labels if one.posting.weight > 0.0 and one.posting.sign >= 0.0]
        kept = [one for one in came if one.posting.sign > 0.0]
        self.kind, self.targets = kind, list(targets)
        self.at = np.array([one.at for one in kept], dtype=np.float64)
        self.came = np.array([one.at for one in came], dtype=np.float64)
        self.late = np.array([one.waited for one in came], dtype=np.float64)
        self.names = [one.posting.row.names for one in kept]
        self.weight = np.array([one.posting.weight for one in kept], dtype=np.float64)
        self._error, self._loss = _measured([one.posting for one in kept], kind, self.targets)

    def __len__(self) -> int:
        return len(self.at)

    def last(self, labels: int = LAST) -> Stretch | None:
        """Means over the last labels, as many as there are."""
        if not len(self):
            return None
        part = slice(-labels, None)
        w = self.weight[part]
        means = [
            float(np.average(column[part], weights=w)) for column in (*self._error[0], *self._loss)
        ]
        return Stretch(len(w), Pair(*means[:2]), Pair(*means[2:]))

    def moving(self, total: int) -> Moving | None:
        """Trailing means of these labels, the last of ``total``; None while there are too few to draw."""
        width = window(len(self))
        if len(self) < max(2 * width, 8):
            return None
        weight = rolling(self.weight, width)
        ends = thin(len(weight))
        x, axis = self._axis(total, width - 1 + ends)

        def mean(column: Floats) -> Values:
            return numbers((rolling(column * self.weight, width) / weight)[ends])

        (before, after), *levels = self._error
        further = tuple(
            (f"{target:g}", mean(own[1]))
            for target, own in zip(self.targets[1:], levels, strict=True)
        )
        loss_before, loss_after = (mean(column) for column in self._loss)
        begin = float(self.at[0]) if axis == "date" else float(total - len(self) + 1)
        return Moving(
            axis, width, begin, tuple(x), mean(before), mean(after), loss_before, loss_after, further
        )  # fmt: skip

    def spark(self, total: int, name: str | None = None) -> Spark | None:
        """The error before and after of a group, or of all, small."""
        own = np.arange(len(self))
        if name is not None:
            own = np.array([i for i, names in enumerate(self.names) if name in names], dtype=int)
        width = max(len(own) // 20, min(60, len(own) // 3), 1)
        if len(own) < 12:
            return None
        before, after = (rolling(column[own], width) for column in self._error[0])
        ends = thin(len(after), _SPARK)
        x = (total - len(self) + 1 + own[width - 1 + ends]).astype(float).tolist()
        return Spark(tuple(x), numbers(before[ends]), numbers(after[ends]))

    def delays(self) -> Delays | None:
        """How long these labels were waited for; None where none is known to have been."""
        late = self.late[np.isfinite(self.late)]
        if len(late) < 2 or late.max() <= 0.0:
            return None
        median, most = (float(np.quantile(late, share)) for share in (0.5, 0.99))
        unit = unit_of(most)
        top = max(most * 1.25, 1e-9) / unit
        wide = _bar(top)
        edges = wide * np.arange(math.ceil(top / wide) + 1)
        inside = np.clip(late / unit, 0.0, edges[-1])  # the few beyond are in the last bar
        counts = np.histogram(inside, edges)[0]
        return Delays(median, most, unit, tuple(edges.tolist()), tuple(counts.tolist()))

    def waiting(self, opened: Sequence[float], now: float) -> Waiting | None:
        """How many waited, from the first of these labels on; ``opened``: when those were served that still do.

        From then on it is exact: every label that came is among these, every other prediction still waits.
        """
        known = np.isfinite(self.late)
        if not known.any() or len(self.came) < 8:
            return None
        came = np.sort(self.came[known])
        served = (self.came - self.late)[known]
        served = np.sort(np.concatenate([served, np.asarray(opened, float)]))
        x = np.linspace(came[0], max(now, came[-1]), 240)
        open_then = np.searchsorted(served, x, "right") - np.searchsorted(came, x, "right")
        if not open_then.any() or x[-1] <= x[0]:
            return None
        at_events = np.searchsorted(served, came, "right") - np.arange(len(came))
        peak = int(max(at_events.max(initial=0), open_then.max()))
        return Waiting(tuple(x.tolist()), tuple(open_then.astype(float).tolist()), peak)

    def _axis(self, total: int, ends: Any) -> tuple[list[float], Axis]:
        """Times, where labels came over some hours and no two drawn points have the same; else their count."""
        times = self.at[ends]
        if times[-1] - times[0] > 2 * _HOUR and (np.diff(times) > 0.0).all():
            return times.tolist(), "date"
        return (total - len(self) + 1 + ends).astype(float).tolist(), "row"


def unit_of(seconds: float) -> float:
    """The unit in which a wait reads well, in seconds."""
    return next((u for u in (86400.0, 3600.0, 60.0, 1.0) if seconds >= 2.0 * u), 1e-3)


def _bar(top: float) -> float:
    """A round width that cuts ``top`` in about 14."""
    raw = top / 14.0
    power = 10.0 ** math.floor(math.log10(raw))
    return next((m * power for m in (1.0, 2.0, 5.0) if m * power >= raw), 10.0 * power)


def _measured(
    postings: list[Any], kind: str, targets: list[float]
) -> tuple[list[tuple[Floats, Floats]], tuple[Floats, Floats]]:
    """Errors by level and losses, each before and after, as the certificate counts them.

    An error is a bias; of a level (or an interval) it is 1 where the label was covered, else 0.
    """
    if not postings:
        nothing = np.empty(0)
        return [(nothing, nothing)] * max(len(targets), 1), (nothing, nothing)
    after, before = _halves([p.errors for p in postings])
    loss_after, loss_before = (half.mean(axis=1) for half in _halves([p.losses for p in postings]))
    if kind == "debias":  # shown as squared errors, of which the loss is half
        loss_before, loss_after = before[:, 0] ** 2, after[:, 0] ** 2
    if kind == "interval":
        errors = [(targets[0] + own[:, -1] - own[:, 0]) for own in (before, after)]
        return [(errors[0], errors[1])], (loss_before, loss_after)
    shifts = targets or [0.0]
    errors_by_level = [(before[:, k] + t, after[:, k] + t) for k, t in enumerate(shifts)]
    return errors_by_level, (loss_before, loss_after)


def _halves(pairs: list[tuple[float, ...]]) -> tuple[Floats, Floats]:
    """What was served, then the base prediction, one column a level."""
    both = np.array(pairs, dtype=np.float64)
    half = both.shape[1] // 2
    return both[:, :half], both[:, half:]
