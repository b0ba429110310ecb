"""Streams in bounded memory: trailing means, histograms, and where the labels changed."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradeq.errors import BadInput
from gradeq.report.story import Axis, Histogram, Rolling, RollingError, Span

if TYPE_CHECKING:
    from gradeq.certificates.contracts import LayerLike

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

POINTS = 420
"""Most points of a drawn series."""

SUMMABLE = 1e280  # sums of larger numbers may overflow
SURE = 1e-12  # probabilities nearer to 0 or 1 are drawn as this


class RollingMeans(NamedTuple):
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


def numbers(values: Floats) -> tuple[float | None, ...]:
    """Turn an array into a story's series: rounded to six digits, None where not finite."""
    return tuple(float(f"{value:.6g}") if np.isfinite(value) else None for value in values.tolist())


class Blocks:
    """Running sums of named columns over blocks of rows: of a whole stream, or of each group in it.

    A block has one row until ``capacity`` blocks are full; then neighbours are merged, again and again. Group codes
    count from 0 in the order of first appearance; groups from ``groups`` on are not followed, so memory is bounded.

    >>> blocks = Blocks(("label",))
    >>> blocks.add({"label": np.array([0.0, 1.0, 1.0])})
    >>> blocks.trailing(2).means["label"].tolist()
    [0.5, 1.0]
    """

    def __init__(self, names: Sequence[str], groups: int = 1, capacity: int = 8192) -> None:
        if capacity < 2 or capacity % 2:
            raise BadInput(f"capacity {capacity}: it must be even and at least 2")
        self.names = tuple(names)
        self.groups = groups
        self.size = 1
        self.rows = 0
        self._sums = np.zeros((len(self.names) + 1, 1, capacity))  # the first are counts of rows
        self._first = np.zeros(capacity)
        self._last = np.zeros(capacity)

    def add(self, columns: Mapping[str, Floats], x: Floats | None = None, codes: Integers | None = None) -> None:
        """Take the next rows; ``x`` (default: row numbers from 1) must not fall."""
        length = len(columns[self.names[0]])
        places = np.arange(self.rows + 1, self.rows + length + 1) if x is None else np.asarray(x)
        stack = [np.asarray(columns[name], dtype=np.float64) for name in self.names]
        if any(len(column) != length for column in (*stack, places)):
            raise BadInput(f"columns of different lengths: all must have {length} rows")
        kinds, followed_groups, capacity = self._sums.shape
        needed = 1 if codes is None else min(int(codes.max(initial=-1)) + 1, self.groups)
        if needed > followed_groups:
            larger = np.zeros((kinds, min(max(needed, 2 * followed_groups), self.groups), capacity))
            larger[:, :followed_groups] = self._sums
            self._sums = larger
        start = 0
        while start < length:
            if self.rows == self.size * capacity:  # full: neighbours are merged
                half = capacity // 2
                self._sums[:, :, :half] = self._sums[:, :, 0::2] + self._sums[:, :, 1::2]
                self._sums[:, :, half:] = 0.0
                self._first[:half] = self._first[0::2]
                self._last[:half] = self._last[1::2]
                self.size *= 2
            stop = min(length, start + self.size * capacity - self.rows)
            part, (block, within) = slice(start, stop), divmod(self.rows, self.size)
            index = np.arange(self.rows, self.rows + stop - start) // self.size
            flat: Integers = index
            followed: NDArray[np.bool_] | slice = slice(None)
            if codes is not None:
                followed = (codes[part] >= 0) & (codes[part] < self.groups)
                flat = codes[part][followed].astype(np.int64) * capacity + index[followed]
            # One row after the other, so that the cuts of a stream change no bit.
            np.add.at(self._sums[0].reshape(-1), flat, 1.0)
            for sums, column in zip(self._sums[1:], stack, strict=True):
                np.add.at(sums.reshape(-1), flat, column[part][followed])
            firsts = places[part][-within % self.size :: self.size]
            lasts = places[part][self.size - 1 - within :: self.size]
            self._first[block + (within > 0) :][: len(firsts)] = firsts
            self._last[block:][: len(lasts)] = lasts
            self._last[index[-1]] = places[stop - 1]
            self.rows += stop - start
            start = stop

    def trailing(self, width: int, points: int = POINTS) -> RollingMeans:
        """Trailing means of a stream over about ``width`` rows, from the first full window on, thinned.

        The window used is a whole number of blocks and stands in the result; it is exactly
        ``width`` while a block is one row. A file shorter than the window gives an empty series.
        """
        blocks = max(round(width / self.size), 1)
        whole = self.rows // self.size
        picked = thin(max(whole - blocks + 1, 0), points)
        sums = dict(zip(self.names, self._sums[1:, 0, :whole], strict=True))
        means = {name: rolling(column, blocks)[picked] / self.size for name, column in sums.items()}
        return RollingMeans(self._last[picked + blocks - 1], blocks * self.size, means)

    def group_trailing(self, code: int, width: int | None = None, points: int = 60) -> RollingMeans:
        """Trailing means over the last ``width`` rows of a group, or the few more a block holds.

        ``width``: by default a twentieth of the group's rows, at least 60. Nothing before the first full window;
        empty for a group that is not followed.
        """
        filled = -(-self.rows // self.size)
        known = 0 <= code < self._sums.shape[1]
        counts, *sums = self._sums[:, code, :filled] if known else np.zeros((len(self.names) + 1, filled))
        rows = np.concatenate(([0.0], np.cumsum(counts)))
        width = max(int(rows[-1]) // 20, 60) if width is None else width
        ends = np.flatnonzero((counts > 0) & (rows[1:] >= width)) + 1
        ends = ends[thin(len(ends), points)]
        starts = np.searchsorted(rows, rows[ends] - width, side="right") - 1
        means = {}
        for name, column in zip(self.names, sums, strict=True):
            total = np.concatenate(([0.0], np.cumsum(column)))
            means[name] = (total[ends] - total[starts]) / (rows[ends] - rows[starts])
        return RollingMeans(self._last[ends - 1], width, means)

    def blocks(self) -> tuple[Integers, Floats, dict[str, Floats]]:
        """Rows of the stream in each block, x of its first row, and the sums by name."""
        filled = -(-self.rows // self.size)
        counts, *sums = self._sums[:, 0, :filled].copy()
        return counts.astype(np.int64), self._first[:filled].copy(), dict(zip(self.names, sums, strict=True))


def rolling_chart(
    series: RollingMeans,
    tracked: Sequence[tuple[str, float, Floats, Floats]],
    ends: str,
    axis: tuple[Axis, str] = ("row", "row"),
    begin: float | None = 1.0,
    span: Span | None = None,
) -> Rolling:
    """Trailing means as a chart. ``tracked``: name, target, errors before and after. ``ends``: levels, interval."""
    mean = series.means
    errors = tuple(RollingError(name, aim, numbers(b), numbers(a)) for name, aim, b, a in tracked)
    before, after, labels = (numbers(mean[name]) for name in ("before", "after", "label"))
    x = tuple(series.x.tolist())
    chart = Rolling(*axis, series.window, x, before, after, labels, errors, begin=begin, span=span)
    if not ends:
        return chart
    before, after = (numbers(mean[f"upper_{when}"]) for when in ("before", "after"))
    chart = replace(chart, before_upper=before, after_upper=after)
    if ends == "levels":
        return chart
    before, after = (numbers(mean[f"upper_{when}"] - mean[when]) for when in ("before", "after"))
    return replace(chart, width_before=before, width_after=after)


def corrections(layer: "LayerLike", base: Floats, served: Floats) -> Floats:
    """What was added to the predictions: in log-odds for probabilities, otherwise in the unit of the labels."""
    clip = layer.terms.clip if layer.kind == "debias" else None  # None: not in log-odds
    if clip is None:
        return served - base
    raw, now = np.clip(base, clip, 1.0 - clip), np.clip(served, SURE, 1.0 - SURE)
    added: Floats = np.log(now / (1.0 - now)) - np.log(raw / (1.0 - raw))
    return added


_BARS = 48
_CAPACITY = 4096  # bins
_FINE = 6  # the finest bins are a millionth of the first value's size
_TAIL = 0.001
_WIDTHS = tuple(n * 10**power for power in range(320) for n in (1, 5))  # of bins, in finest ones
_LARGEST = 1e290  # larger values share its bin: counted in the finest bins they would overflow


@dataclass
class StreamHistogram:
    """Counts of values in bins of 1, 5, 10, 50, ... times a power of ten.

    Each width divides the next, so bins are merged exactly. The result does not depend on how the
    stream is cut. Values that are not finite are left out.

    >>> tally = StreamHistogram(low=0.0, high=1.0)
    >>> tally.add(np.array([0.1, 0.5, 0.5, 1.2]))
    >>> tally.histogram().above, sum(tally.histogram().counts)
    (1, 4)
    """

    low: float | None = None
    high: float | None = None
    minimum: float = math.inf
    maximum: float = -math.inf
    below: int = 0
    above: int = 0
    _counts: Counter[int] = field(default_factory=Counter)
    _exponent: int | None = None
    _level: int = 0
    _ends: tuple[float, float] = (math.inf, -math.inf)  # of all values, in finest bins

    def add(self, values: Floats) -> None:
        values = np.asarray(values, dtype=np.float64)
        values = values[np.isfinite(values)]
        if not values.size:
            return
        if self._exponent is None:
            self._exponent = math.floor(math.log10(max(abs(float(values[0])), 1e-6))) - _FINE
        self.minimum = min(self.minimum, float(values.min()))
        self.maximum = max(self.maximum, float(values.max()))
        self.below += 0 if self.low is None else int((values < self.low).sum())
        self.above += 0 if self.high is None else int((values > self.high).sum())
        values, unit = np.clip(values, -_LARGEST, _LARGEST), 10.0 ** abs(self._exponent)
        # The small amount added puts 0.15 in the bin that begins at 0.15 in spite of rounding.
        fine = np.floor((values * unit if self._exponent < 0 else values / unit) + 1e-6)
        low, high = self._ends = min(self._ends[0], float(fine.min())), max(self._ends[1], float(fine.max()))
        level = self._level
        while math.floor(high / _WIDTHS[level]) - math.floor(low / _WIDTHS[level]) >= _CAPACITY:
            level += 1
        if level > self._level:
            ratio = _WIDTHS[level] // _WIDTHS[self._level]
            finer, self._counts, self._level = self._counts, Counter(), level
            for index, n in finer.items():
                self._counts[index // ratio] += n
        indices = np.floor(fine / float(_WIDTHS[level])).astype(np.int64)
        first = int(indices.min())
        counts = np.bincount(indices - first)
        self._counts.update({first + i: int(counts[i]) for i in np.flatnonzero(counts).tolist()})

    def histogram(self) -> Histogram:
        """The counts in at most 48 bars, round in width; the outer 0.1 % may share the end bars."""
        if self._exponent is None:
            return Histogram((), (), 0.0, 0.0, self.low, self.high)
        used = np.array(sorted(self._counts))
        counts = np.array([self._counts[index] for index in used.tolist()])
        first, last = int(used[0]), int(used[-1])
        if last - first >= _BARS:
            total = np.cumsum(counts)
            tail = _TAIL * float(total[-1])
            first = int(used[np.searchsorted(total, tail, side="right")])
            last = int(used[np.searchsorted(total, total[-1] - tail)])
        level, ratio = self._level, 1
        while last // ratio - first // ratio >= _BARS:
            level += 1
            ratio = _WIDTHS[level] // _WIDTHS[self._level]
        start, stop = first // ratio, last // ratio + 1
        index = np.clip(used // ratio, start, stop - 1) - start
        bars = np.bincount(index, weights=counts, minlength=stop - start)
        # An edge is the decimal's nearest float: 3 with exponent -1 is 0.3, not 0.30000000000000004.
        edges = tuple(float(f"{i * _WIDTHS[level]}e{self._exponent}") for i in range(start, stop + 1))
        extremes = (self.minimum, self.maximum, self.low, self.high, self.below, self.above)
        return Histogram(edges, tuple(int(n) for n in bars), *extremes)


class Change(NamedTuple):
    """A cut of the stream: rows on both sides, x of the first row after it, means by column."""

    x: float
    rows_before: int
    rows_after: int
    before: dict[str, float]
    after: dict[str, float]


def label_change(blocks: Blocks) -> Change | None:
    """Find a lasting jump of the mean of ``label`` (with ``label_squared`` beside it), or None.

    The cut maximises the between-parts sum of squares (least squares with one step). It counts
    as a change when each part has a twentieth of the rows, at least 100, and the means differ
    by a standard deviation *within* the parts. Seasons and drift of ordinary size
    stay below one deviation; a collection fault is far above. A cut lies between blocks, so it
    is exact to the row while a block is one row.
    """
    counts, first, sums = blocks.blocks()
    label, square = sums["label"], sums["label_squared"]
    rows = float(counts.sum())
    left = np.cumsum(counts)[:-1].astype(np.float64)
    right = rows - left
    least = max(100.0, 0.05 * rows)
    # Rows of one time stay together: a cut lies where x moves on.
    moves = first[1:] > first[:-1]
    if not moves.any():
        return None
    total = np.cumsum(label)
    mean_left = total[:-1] / left
    mean_right = (total[-1] - total[:-1]) / right
    between = np.where(moves, left * right / rows * (mean_right - mean_left) ** 2, -1.0)
    cut = int(np.argmax(between))
    allowed = moves & (left >= least) & (right >= least)
    if not allowed[cut]:
        return None
    spread = float(square.sum()) - float(total[-1]) ** 2 / rows - float(between[cut])
    within = np.sqrt(max(spread, 0.0) / rows)
    if abs(float(mean_right[cut] - mean_left[cut])) <= within:
        return None
    # If nearly all that follows is one constant, the change is where the constant begins.
    steady = label * float(counts[-1]) == counts * float(label[-1])
    steady &= square * counts == label**2
    start = len(steady) - int(np.argmin(steady[::-1])) - 1
    moved = np.flatnonzero(allowed[start:])
    if not steady.all() and len(moved) and right[start + moved[0]] >= 0.95 * right[cut]:
        cut = start + int(moved[0])
    before = {name: float(column[: cut + 1].sum() / left[cut]) for name, column in sums.items()}
    after = {name: float(column[cut + 1 :].sum() / right[cut]) for name, column in sums.items()}
    return Change(float(first[cut + 1]), int(left[cut]), int(right[cut]), before, after)
