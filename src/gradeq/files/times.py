"""A time column as numbers that sort: plain numbers, or nanoseconds since 1970 for dates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.errors import BadInput
from gradeq.files.arrays import integers
from gradeq.files.cells import row_name, shown
from gradeq.files.failures import using
from gradeq.files.numbers import absent_cells, blanked, is_text, numeric, plain, read_number
from gradeq.spans import NAIVE, NUMBERS, ZONED, comparable, remedy

if TYPE_CHECKING:
    import pyarrow as pa

_FIRST, _LAST = "1677-09-22", "2262-04-11"  # days of 64-bit nanoseconds
_TURNS, _HALF_AN_HOUR = 50, 1800 * 10**9
# Above this size not every integer is a float64.
_EXACT = 2**53
_ISO = "write numbers, dates (2024-01-31) or timestamps (2024-01-31T17:05:00)"


class Times(NamedTuple):
    """Times that sort and compare, and which rows have none (their value then means nothing)."""

    values: npt.NDArray[Any]
    missing: npt.NDArray[np.bool_]
    kind: str | None = (
        None  # numbers, dates with or without a zone; None: not to be compared with others
    )


@dataclass
class Clock:
    """Reads one time column batch by batch; the first batch decides what kind of time it is.

    kind: "number" (float64), "integer" (int64, exact) or "time" (int64 nanoseconds since 1970,
    UTC where a zone is given). ``zoned``: whether its dates have a zone.
    """

    name: str
    kind: str | None = None
    zoned: bool | None = None
    decimal: str = "."

    def read(
        self, column: pa.Array, first_row: int = 1, *, file: str = "", missing: bool = False
    ) -> Times:
        """The times of a batch; an absent one is refused unless ``missing`` (label times)."""
        with using(f"column {self.name!r} holds {column.type} values", _ISO):
            times = self._read(plain(column), first_row, file)
        if not missing and times.missing.any():
            row = first_row + int(np.argmax(times.missing))
            raise BadInput(
                f"{row_name(row, file)}: column {self.name!r} has no time; "
                "drop the row or fill in the time"
            )
        return times

    def _read(self, column: pa.Array, first_row: int, file: str) -> Times:
        absent = absent_cells(column)
        if absent.all():
            return Times(np.zeros(len(column), np.int64), absent)
        if self.kind is None:
            self._decide(column)
        return Times(self._values(column, first_row, file), absent)

    @property
    def holds(self) -> str | None:
        """The kind of its times in words; None before the first one was read."""
        if self.kind is None:
            return None
        return NUMBERS if self.kind != "time" else ZONED if self.zoned else NAIVE

    def check_comparable(self, other: Clock) -> None:
        """Refuse a column whose times cannot be compared with these."""
        if not comparable(self.holds, other.holds):
            raise BadInput(
                f"{self.name!r} and {other.name!r} cannot be compared: {self.name!r} holds {self.holds}, "
                f"{other.name!r} {other.holds}; {remedy(self.holds, other.holds)}"
            )

    def _decide(self, column: pa.Array) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = column.type
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            self.kind, self.zoned = "time", getattr(kind, "tz", None) is not None
        elif pa.types.is_integer(kind):
            self.kind = "integer"
        elif is_text(kind):
            present = blanked(column).drop_null()
            try:
                low_high = pc.min_max(pc.cast(present, pa.int64()))
                extremes = [abs(v) for v in low_high.as_py().values()]
                self.kind = "integer" if max(extremes) > _EXACT else "number"
            except pa.ArrowInvalid:
                first = read_number(present[0].as_py(), self.decimal)
                self.kind = "time" if first is None else "number"
        elif pa.types.is_time(kind) or pa.types.is_duration(kind):
            raise BadInput(
                f"column {self.name!r} holds {kind} values, which are no moments; "
                "give dates, timestamps or numbers"
            )
        else:
            self.kind = "number"

    def _values(self, column: pa.Array, first_row: int, file: str) -> npt.NDArray[Any]:
        if self.kind == "time":
            return self._nanoseconds(column, first_row, file)
        if self.kind == "integer":
            import pyarrow as pa
            import pyarrow.compute as pc

            if is_text(column.type):
                column = blanked(column)
            try:
                whole = pc.cast(column, pa.int64())
            except pa.ArrowInvalid:
                numeric(column, self.name, first_row, file=file, missing=True, decimal=self.decimal)
                raise BadInput(
                    f"column {self.name!r} mixes large whole numbers with fractions or numbers "
                    "beyond 64 bits, which cannot be ordered exactly; use one of the two"
                ) from None
            return integers(whole)
        return numeric(column, self.name, first_row, file=file, missing=True, decimal=self.decimal)

    def _nanoseconds(self, column: pa.Array, first_row: int, file: str) -> npt.NDArray[np.int64]:
        import pyarrow as pa
        import pyarrow.compute as pc

        if is_text(column.type):
            column = self._parsed(blanked(column), first_row, file)
        if not (pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)):
            raise BadInput(
                f"column {self.name!r} holds {column.type} values after dates; {_ISO}, one kind"
            )
        zone = getattr(column.type, "tz", None)
        try:
            return integers(pc.cast(pc.cast(column, pa.timestamp("ns", zone)), pa.int64()))
        except pa.ArrowInvalid:
            raise BadInput(
                f"column {self.name!r} has a date outside 1677-09-22 to 2262-04-11, "
                "the range of 64-bit nanoseconds; use numbers for such times"
            ) from None

    def _parsed(self, column: pa.Array, first_row: int, file: str) -> pa.Array:
        """Text cells as timestamps: all with a zone, or all without."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kinds = {False: pa.timestamp("ns"), True: pa.timestamp("ns", "UTC")}
        for zoned in (False, True) if self.zoned is None else (self.zoned,):
            try:
                parsed = pc.cast(column, kinds[zoned])
            except pa.ArrowInvalid:
                continue
            if parsed.null_count < len(parsed):
                self.zoned = zoned
            wrong = _wrapped(column, integers(pc.cast(parsed, pa.int64())))
            if wrong.any():
                i = int(np.argmax(wrong))
                raise self._no_time(first_row + i, file, column[i].as_py())
            return parsed
        raise self._unreadable(column, kinds, first_row, file)

    def _unreadable(
        self, column: pa.Array, kinds: dict[bool, Any], first_row: int, file: str
    ) -> BadInput:
        """Which row it was: cells are tried one by one, which happens once."""
        import pyarrow as pa
        import pyarrow.compute as pc

        zoned = self.zoned
        for i, cell in enumerate(column):
            if not cell.is_valid:
                continue
            fits = []
            for with_zone, kind in kinds.items():
                try:
                    pc.cast(cell, kind)
                    fits.append(with_zone)
                except pa.ArrowInvalid:
                    continue
            row = f"{row_name(first_row + i, file)}: column {self.name!r} has {shown(cell.as_py())}"
            if not fits:
                return self._no_time(first_row + i, file, cell.as_py())
            if zoned is not None and zoned not in fits:
                other = "without" if zoned else "with"
                return BadInput(f"{row}, a time {other} a zone among others; use one kind")
            zoned = fits[0]
        return BadInput(f"column {self.name!r} cannot be read as times; {_ISO}")

    def _no_time(self, row: int, file: str, cell: str) -> BadInput:
        where = f"{row_name(row, file)}: column {self.name!r} has {shown(cell)}"
        return BadInput(f"{where}, which is not a time between 1677 and 2262; {_ISO}")


def _wrapped(column: pa.Array, parsed: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Text cells beyond 64-bit nanoseconds, which arrow may read as another time (1066 as 2235)."""
    import pyarrow.compute as pc

    days = pc.utf8_slice_codeunits(column, 0, 10)
    span = pc.min_max(days)
    first, last = (span[name].as_py() for name in ("min", "max"))
    if first is None or (first > _FIRST and last < _LAST):
        return np.zeros(len(column), bool)
    day = np.array([day or "1970" for day in days.to_pylist()])
    wrong: npt.NDArray[np.bool_] = (
        (day < _FIRST) | (day > _LAST) | ((day >= "1970") != (parsed >= 0))
    )
    return wrong


class Turns:
    """Looks for clocks that were turned back: times without a zone that are in order but for an hour or two."""

    def __init__(self, counted_from: int = 0) -> None:
        self.counted_from = counted_from  # of rows in what is said
        self.back: list[tuple[int, int]] = []  # row (from 0) and nanoseconds, of every step back
        self._last: int | None = None
        self._first = self._end = 0

    def look(self, times: npt.NDArray[np.int64], start: int = 0) -> Turns:
        """Take times of rows that follow each other, from row ``start`` on."""
        if not len(times) or len(self.back) > _TURNS:
            return self
        before = np.concatenate([times[:1] if self._last is None else [self._last], times[:-1]])
        for i in np.flatnonzero(times < before)[: _TURNS + 1].tolist():
            self.back.append((start + i, int(before[i]) - int(times[i])))
        self._first = int(times[0]) if self._last is None else self._first
        self._last = self._end = int(times[-1])
        return self

    @property
    def told(self) -> str | None:
        """By how much and where the clock went back; None where the order has other reasons."""
        years = 1 + abs(self._end - self._first) // (365 * 86400 * 10**9)
        if not 0 < len(self.back) <= min(_TURNS, 1 + years):
            return None
        if any(not _HALF_AN_HOUR <= size <= 2 * _HALF_AN_HOUR for _, size in self.back):
            return None
        row, size = self.back[0]
        return f"{round(size / 6e10)} minutes at row {row + self.counted_from}"
