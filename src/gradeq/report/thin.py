"""Trailing means of a stream of unknown length, in bounded memory, thinned for a page.

A stream is summed in blocks of consecutive rows. Blocks hold one row each until there are more
than ``capacity``; then neighbours are added and the block size doubles, so memory is fixed and a
trailing window is a whole number of blocks. A block is added up once it is full, whatever the
chunks that brought it, so the cuts of the stream do not change a bit of the result.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradeq.errors import BadInput

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

POINTS = 420
SUMMABLE = 1e280  # sums of larger numbers may overflow
"""Most points of a drawn series."""


class Series(NamedTuple):
    """Trailing means at chosen rows: the rows' x, the window in rows, one column per name."""

    x: Floats
    window: int
    means: dict[str, Floats]


def window(rows: int) -> int:
    """Rows of a trailing window: about a twentieth of the file, so that a long one gives a line too.

    At least 100, or a quarter of a short file; rounded to 50, from 1,000 on to two digits.

    >>> window(6787), window(900), window(60), window(336_500)
    (300, 100, 15, 16000)
    """
    share = rows // 20
    if share < 1000:
        return max(50 * (share // 50), min(100, rows // 4), 1)
    unit = 10 ** (len(str(share)) - 2)
    return int(share // unit * unit)


def group_window(rows: int) -> int:
    """Rows of a group's trailing window: a twentieth of its rows, at least 60."""
    return max(rows // 20, 60)


def rolling(values: Floats, width: int) -> Floats:
    """Trailing means over ``width`` values; entry i is the mean of values i to i + width - 1.

    >>> rolling(np.array([1.0, 2.0, 6.0]), 2).tolist()
    [1.5, 4.0]
    """
    if width < 1:
        raise BadInput(f"window {width}: a window has at least one row")
    if len(values) < width:
        return np.empty(0)
    largest = float(np.abs(values).max())
    unit = max(1.0, largest / SUMMABLE) if math.isfinite(largest) else 1.0
    sums = np.concatenate(([0.0], np.cumsum(values / unit)))
    means: Floats = (sums[width:] - sums[:-width]) / width
    return means * unit


def thin(length: int, points: int = POINTS) -> Integers:
    """At most ``points`` indices below ``length``, equally spaced, with the first and the last."""
    if length <= points:
        return np.arange(length)
    return np.round(np.linspace(0, length - 1, points)).astype(np.int64)


def numbers(values: Floats, digits: int = 6) -> tuple[float | None, ...]:
    """Turn an array into a story's series: rounded to significant digits, None where not finite."""
    return tuple(
        float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values.tolist()
    )


class Blocks:
    """Running sums of named columns over blocks of rows, for one stream.

    >>> blocks = Blocks(("label",))
    >>> blocks.add({"label": np.array([0.0, 1.0, 1.0])})
    >>> blocks.trailing(2).means["label"].tolist()
    [0.5, 1.0]
    """

    def __init__(self, names: Sequence[str], capacity: int = 8192) -> None:
        if capacity < 2 or capacity % 2:
            raise BadInput(f"capacity {capacity}: it must be even and at least 2")
        self.names = tuple(names)
        self.size = 1
        self.rows = 0
        self._sums = np.zeros((len(self.names), capacity))
        self._held = np.empty((len(self.names), 0))  # rows of the block that is not full yet
        self._first = np.zeros(capacity)
        self._last = np.zeros(capacity)

    def add(self, columns: Mapping[str, Floats], x: Floats | None = None) -> None:
        """Take the next rows; ``x`` (default: row numbers from 1) must not fall."""
        length = len(columns[self.names[0]])
        places = np.arange(self.rows + 1, self.rows + length + 1) if x is None else np.asarray(x)
        stack = [np.asarray(columns[name], dtype=np.float64) for name in self.names]
        if any(len(column) != length for column in (*stack, places)):
            raise BadInput(f"columns of different lengths: all must have {length} rows")
        start = 0
        while start < length:
            if self.rows == self.size * self._last.size:
                self._double()
            block, held = divmod(self.rows, self.size)
            whole = 0 if held else min((length - start) // self.size, self._last.size - block)
            stop = start + whole * self.size if whole else min(length, start + self.size - held)
            part = slice(start, stop)
            if whole:
                self._enter(block, whole, [column[part] for column in stack])
            else:
                rest = np.stack([column[part] for column in stack])
                self._held = np.concatenate([self._held, rest], axis=1)
                if self._held.shape[1] == self.size:
                    self._enter(block, 1, self._held)
                    self._held = self._held[:, :0]
            ends = slice(block, block + max(whole, 1))
            self._last[ends] = (
                places[part][self.size - 1 :: self.size] if whole else places[stop - 1]
            )
            if not held:
                self._first[ends] = places[part][:: self.size]
            self.rows += stop - start
            start = stop

    def _enter(self, block: int, whole: int, columns: Iterable[Floats]) -> None:
        """The sums of so many full blocks, from this one on."""
        for row, column in zip(self._sums, columns, strict=True):
            row[block : block + whole] = column.reshape(whole, self.size).sum(axis=1)

    def trailing(self, width: int, points: int = POINTS) -> Series:
        """Trailing means over about ``width`` rows, from the first full window on, thinned.

        The window used is a whole number of blocks and stands in the result; it is exactly
        ``width`` while a block is one row. A file shorter than the window gives an empty series.
        """
        blocks = max(round(width / self.size), 1)
        used = blocks * self.size
        whole = self.rows // self.size
        first = np.arange(max(whole - blocks + 1, 0))
        picked = first[thin(len(first), points)]
        means = {
            name: rolling(self._sums[i, :whole], blocks)[picked] / self.size
            for i, name in enumerate(self.names)
        }
        return Series(self._last[picked + blocks - 1], used, means)

    def blocks(self) -> tuple[Integers, Floats, dict[str, Floats]]:
        """Rows in each block, x of its first row, and the sums by name."""
        filled = -(-self.rows // self.size)
        counts = np.full(filled, self.size)
        if filled:
            counts[-1] = self.rows - (filled - 1) * self.size
        sums = {name: self._sums[i, :filled].copy() for i, name in enumerate(self.names)}
        if self._held.shape[1]:
            for column, held in zip(sums.values(), self._held, strict=True):
                column[-1] = held.sum()
        return counts, self._first[:filled].copy(), sums

    def _double(self) -> None:
        half = self._last.size // 2
        self._sums[:, :half] = self._sums[:, 0::2] + self._sums[:, 1::2]
        self._sums[:, half:] = 0.0
        self._first[:half] = self._first[0::2]
        self._last[:half] = self._last[1::2]
        self.size *= 2


class GroupBlocks:
    """The same per group of one ``--by`` column, on blocks of the whole stream.

    Codes count from 0 in the order of first appearance; groups from ``groups`` on are not followed
    (they get no sparkline), so memory is bounded whatever the column holds.
    """

    def __init__(self, names: Sequence[str], groups: int = 200, capacity: int = 1024) -> None:
        if capacity < 2 or capacity % 2:
            raise BadInput(f"capacity {capacity}: it must be even and at least 2")
        self.names = tuple(names)
        self.groups = groups
        self.size = 1
        self.rows = 0
        self._sums = np.zeros((len(self.names) + 1, 0, capacity))
        self._last = np.zeros(capacity)

    def add(self, codes: Integers, columns: Mapping[str, Floats], x: Floats | None = None) -> None:
        """Take the next rows with their group codes; ``x`` as in :meth:`Blocks.add`."""
        codes = np.asarray(codes)
        length = len(codes)
        places = np.arange(self.rows + 1, self.rows + length + 1) if x is None else np.asarray(x)
        stack = [np.asarray(columns[name], dtype=np.float64) for name in self.names]
        if any(len(column) != length for column in (*stack, places)):
            raise BadInput(f"columns of different lengths: all must have {length} rows")
        self._grow(min(int(codes.max(initial=-1)) + 1, self.groups))
        capacity = self._last.size
        start = 0
        while start < length:
            if self.rows == self.size * capacity:
                self._double()
            stop = min(length, start + self.size * capacity - self.rows)
            index = np.arange(self.rows, self.rows + stop - start) // self.size
            part = codes[start:stop]
            kept = (part >= 0) & (part < self.groups)
            flat = part[kept].astype(np.int64) * capacity + index[kept]
            for row, column in zip(self._sums, (None, *stack), strict=True):
                values = 1.0 if column is None else column[start:stop][kept]
                np.add.at(row.reshape(-1), flat, values)
            self._last[index] = places[start:stop]
            self.rows += stop - start
            start = stop

    def trailing(self, code: int, width: int, points: int = 60) -> Series:
        """Trailing means over the last ``width`` rows of a group, or the few more a block holds.

        Nothing before the first full window; empty for a group that is not followed.
        """
        filled = -(-self.rows // self.size)
        counts, *sums = self._of(code, filled)
        rows = np.concatenate(([0.0], np.cumsum(counts)))
        ends = np.flatnonzero((counts > 0) & (rows[1:] >= width)) + 1
        ends = ends[thin(len(ends), points)]
        starts = np.searchsorted(rows, rows[ends] - width, side="right") - 1
        means = {}
        for name, column in zip(self.names, sums, strict=True):
            total = np.concatenate(([0.0], np.cumsum(column)))
            means[name] = (total[ends] - total[starts]) / (rows[ends] - rows[starts])
        return Series(self._last[ends - 1], width, means)

    def _of(self, code: int, filled: int) -> Floats:
        if 0 <= code < self._sums.shape[1]:
            return self._sums[:, code, :filled]
        return np.zeros((self._sums.shape[0], filled))

    def _grow(self, groups: int) -> None:
        kinds, have, capacity = self._sums.shape
        if groups > have:
            sums = np.zeros((kinds, min(max(groups, 2 * have), self.groups), capacity))
            sums[:, :have] = self._sums
            self._sums = sums

    def _double(self) -> None:
        half = self._last.size // 2
        self._sums[:, :, :half] = self._sums[:, :, 0::2] + self._sums[:, :, 1::2]
        self._sums[:, :, half:] = 0.0
        self._last[:half] = self._last[1::2]
        self.size *= 2
