"""A histogram of a stream whose range is not known: bins widen as values come, memory is fixed."""

import math

import numpy as np

from gradeq.report.story import Histogram
from gradeq.report.thin import Floats

_BARS = 48
_FINE = 6  # the finest bins are a millionth of the first value's size
_TAIL = 0.001


class Tally:
    """Counts of values in bins of 1, 5, 10, 50, ... times a power of ten.

    Each width divides the next, so bins are merged exactly. The result does not depend on how the
    stream is cut. Values that are not finite are left out.

    >>> tally = Tally(low=0.0, high=1.0)
    >>> tally.add(np.array([0.1, 0.5, 0.5, 1.2]))
    >>> tally.histogram().above, sum(tally.histogram().counts)
    (1, 4)
    """

    def __init__(
        self, low: float | None = None, high: float | None = None, capacity: int = 4096
    ) -> None:
        self.low, self.high = low, high
        self.minimum, self.maximum = math.inf, -math.inf
        self.below = self.above = 0
        self._counts = np.zeros(capacity, dtype=np.int64)
        self._exponent: int | None = None
        self._level = 0
        self._offset = 0

    def add(self, values: Floats) -> None:
        """Count the next values."""
        values = np.asarray(values, dtype=np.float64)
        values = values[np.isfinite(values)]
        if not values.size:
            return
        if self._exponent is None:
            size = max(abs(float(values[0])), 1e-6)
            self._exponent = math.floor(math.log10(size)) - _FINE
            self._offset = self._fine(values[:1]).astype(np.int64).item()
        self.minimum = min(self.minimum, float(values.min()))
        self.maximum = max(self.maximum, float(values.max()))
        self.below += 0 if self.low is None else int((values < self.low).sum())
        self.above += 0 if self.high is None else int((values > self.high).sum())
        fine = self._fine(values)
        ends = self._fine(np.array([self.minimum, self.maximum]))
        while self._span(ends, self._level) > self._counts.size:
            self._widen(ends)
        self._shift(ends)
        index = np.floor(fine / _factor(self._level)) - self._offset
        self._counts += np.bincount(index.astype(np.int64), minlength=self._counts.size)

    def histogram(self) -> Histogram:
        """The counts in at most 48 bars, round in width; the outer 0.1 % may share the end bars."""
        if self._exponent is None:
            return Histogram((), (), 0.0, 0.0, self.low, self.high)
        used = np.flatnonzero(self._counts)
        total = np.cumsum(self._counts)
        first, last = int(used[0]), int(used[-1])
        if self._bars(first, last, self._level) > _BARS:
            tail = _TAIL * float(total[-1])
            first = int(np.searchsorted(total, tail, side="right"))
            last = int(np.searchsorted(total, total[-1] - tail))
        level = self._level
        while self._bars(first, last, level) > _BARS:
            level += 1
        ratio = _factor(level) // _factor(self._level)
        start = (self._offset + first) // ratio
        stop = (self._offset + last) // ratio + 1
        index = np.clip((self._offset + used) // ratio, start, stop - 1) - start
        counts = np.bincount(index, weights=self._counts[used], minlength=stop - start)
        step = _factor(level)
        edges = tuple(_scaled((start + i) * step, self._exponent) for i in range(stop - start + 1))
        return Histogram(
            edges,
            tuple(int(n) for n in counts),
            self.minimum,
            self.maximum,
            self.low,
            self.high,
            self.below,
            self.above,
        )

    def _fine(self, values: Floats) -> Floats:
        # The small amount added puts 0.15 in the bin that begins at 0.15 in spite of rounding.
        assert self._exponent is not None
        if self._exponent < 0:
            return np.floor(values * 10.0**-self._exponent + 1e-6)
        return np.floor(values / 10.0**self._exponent + 1e-6)

    def _span(self, ends: Floats, level: int) -> float:
        low, high = np.floor(ends / _factor(level))
        return float(high - low + 1)

    def _bars(self, first: int, last: int, level: int) -> int:
        ratio = _factor(level) // _factor(self._level)
        return (self._offset + last) // ratio - (self._offset + first) // ratio + 1

    def _widen(self, ends: Floats) -> None:
        level = self._level + 1
        while self._span(ends, level) > self._counts.size:
            level += 1
        ratio = _factor(level) // _factor(self._level)
        used = np.flatnonzero(self._counts)
        counts = self._counts[used]
        self._counts[:] = 0
        moved = [(self._offset + int(i)) // ratio for i in used]
        self._offset = moved[0] if moved else math.floor(ends[0] / _factor(level))
        for i, n in zip(moved, counts, strict=True):
            self._counts[i - self._offset] += n
        self._level = level

    def _shift(self, ends: Floats) -> None:
        """Move the window of bins so that both ends lie in it."""
        start = math.floor(ends[0] / _factor(self._level))
        stop = math.floor(ends[1] / _factor(self._level)) + 1
        if start >= self._offset and stop <= self._offset + self._counts.size:
            return
        spare = (self._counts.size - (stop - start)) // 2
        move = start - spare - self._offset
        used = np.flatnonzero(self._counts)
        counts = self._counts[used]
        self._counts[:] = 0
        self._counts[used - move] = counts
        self._offset += move


def _factor(level: int) -> int:
    """Width of a level in finest bins: 1, 5, 10, 50, 100, ..."""
    return int(10 ** (level // 2) * (5 if level % 2 else 1))


def _scaled(multiple: int, exponent: int) -> float:
    """A decimal edge as the nearest float: 3 with exponent -1 is 0.3, not 0.30000000000000004."""
    return float(f"{multiple}e{exponent}")
