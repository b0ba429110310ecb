"""A time column as sortable numbers: plain, or nanoseconds since 1970 for dates."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.errors import BadInput
from gradeq.files.cells import (
    Ints,
    Mask,
    absent_cells,
    integers,
    is_text,
    numeric,
    plain,
    read_number,
    row_name,
    show_cell,
    trimmed,
)
from gradeq.files.paths import system_errors
from gradeq.inputs.durations import NAIVE, NUMBERS, ZONED, comparable, remedy

if TYPE_CHECKING:
    import pyarrow as pa

_FIRST, _LAST = "1677-09-22", "2262-04-11"  # the range of 64-bit nanoseconds
_CHANGES, _HALF_AN_HOUR = 50, 1800 * 10**9
# Larger integers may have no exact float64.
_EXACT = 2**53
_ISO = "write numbers, dates (2024-01-31) or timestamps (2024-01-31T17:05:00)"
_NO_TIME = f"which is not a time between 1677 and 2262; {_ISO}"


Moments = npt.NDArray[np.float64 | np.int64]


class Times(NamedTuple):
    """Sortable times; the values of ``missing`` rows are arbitrary."""

    values: Moments
    missing: Mask
    kind: str | None = None  # numbers, or dates with or without a zone; None: not checked


@dataclass
class Clock:
    """Reads a time column batch by batch; the first batch decides its kind.

    kind: "number" (float64), "integer" (int64) or "time" (int64 nanoseconds since 1970, UTC if ``zoned``).
    """

    name: str
    kind: str | None = None
    zoned: bool | None = None
    decimal: str = "."

    def read(self, column: pa.Array, first_row: int = 1, *, file: str = "", missing: bool = False) -> Times:
        """The times of a batch; raises for a missing time unless ``missing`` is true."""
        with system_errors(f"column {self.name!r} holds {column.type} values that cannot be used", _ISO, ValueError):
            column = plain(column)
            absent = absent_cells(column)
            if absent.all():
                values: Moments = np.zeros(len(column), np.int64)
            else:
                if self.kind is None:
                    self._decide(column)
                if self.kind == "time":
                    values = self._nanoseconds(column, first_row, file)
                elif self.kind == "integer":
                    values = self._integers(column, first_row, file)
                else:
                    values = numeric(column, self.name, first_row, file=file, missing=True, decimal=self.decimal)
        if not missing and absent.any():
            row = row_name(first_row + int(np.argmax(absent)), file)
            raise BadInput(f"{row}: column {self.name!r} has no time; drop the row or fill in the time")
        return Times(values, absent)

    @property
    def description(self) -> str | None:
        """The kind of time in words; None before the first batch."""
        if self.kind is None:
            return None
        return NUMBERS if self.kind != "time" else ZONED if self.zoned else NAIVE

    def check_comparable(self, other: Clock) -> None:
        mine, theirs = self.description, other.description
        if not comparable(mine, theirs):
            raise BadInput(
                f"{self.name!r} and {other.name!r} cannot be compared: {self.name!r} holds {mine}, "
                f"{other.name!r} {theirs}; {remedy(mine, theirs)}"
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
            present = trimmed(column).drop_null()
            try:
                ends = pc.min_max(pc.cast(present, pa.int64())).as_py().values()
                self.kind = "integer" if max(map(abs, ends)) > _EXACT else "number"
            except pa.ArrowInvalid:
                first = read_number(present[0].as_py(), self.decimal)
                self.kind = "time" if first is None else "number"
        elif pa.types.is_time(kind) or pa.types.is_duration(kind):
            raise BadInput(f"column {self.name!r} holds {kind} values; use dates, timestamps or numbers")
        else:
            self.kind = "number"

    def _integers(self, column: pa.Array, first_row: int, file: str) -> Ints:
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            return integers(pc.cast(trimmed(column) if is_text(column.type) else column, pa.int64()))
        except pa.ArrowInvalid:
            numeric(column, self.name, first_row, file=file, missing=True, decimal=self.decimal)
            raise BadInput(
                f"column {self.name!r} mixes large whole numbers with fractions or numbers "
                "beyond 64 bits, which cannot be ordered exactly; use 64-bit whole numbers only"
            ) from None

    def _nanoseconds(self, column: pa.Array, first_row: int, file: str) -> Ints:
        import pyarrow as pa
        import pyarrow.compute as pc

        if is_text(column.type):
            column = self._parse(trimmed(column), first_row, file)
        if not (pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)):
            raise BadInput(
                f"column {self.name!r} holds {column.type} values after a batch of dates; {_ISO}, all of one kind"
            )
        zone = getattr(column.type, "tz", None)
        try:
            return integers(pc.cast(pc.cast(column, pa.timestamp("ns", zone)), pa.int64()))
        except pa.ArrowInvalid:
            raise BadInput(
                f"column {self.name!r} has a date outside 1677-09-22 to 2262-04-11, "
                "the range of 64-bit nanoseconds; use numbers for such times"
            ) from None

    def _parse(self, column: pa.Array, first_row: int, file: str) -> pa.Array:
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
            wrong = _out_of_range(column, integers(pc.cast(parsed, pa.int64())))
            if wrong.any():
                i = int(np.argmax(wrong))
                raise self._refusal(column, i, first_row, file, _NO_TIME)
            return parsed
        zone = self.zoned
        for i, cell in enumerate(column):  # find the row that cannot be parsed
            if not cell.is_valid:
                continue
            fits = []
            for with_zone, kind in kinds.items():
                with suppress(pa.ArrowInvalid):
                    pc.cast(cell, kind)
                    fits.append(with_zone)
            if not fits:
                raise self._refusal(column, i, first_row, file, _NO_TIME)
            if zone is not None and zone not in fits:
                other = "without" if zone else "with"
                raise self._refusal(column, i, first_row, file, f"a time {other} a zone among others; use one kind")
            zone = fits[0]
        raise BadInput(f"column {self.name!r} cannot be read as times; {_ISO}")

    def _refusal(self, column: pa.Array, i: int, first_row: int, file: str, rule: str) -> BadInput:
        cell = show_cell(column[i].as_py())
        return BadInput(f"{row_name(first_row + i, file)}: column {self.name!r} has {cell}, {rule}")


def _out_of_range(column: pa.Array, parsed: Ints) -> Mask:
    """Which dates lie outside the range of 64-bit nanoseconds; arrow may misread them (1066 as 2235)."""
    import pyarrow.compute as pc

    days = pc.utf8_slice_codeunits(column, 0, 10)
    span = pc.min_max(days)
    first, last = (span[name].as_py() for name in ("min", "max"))
    if first is None or (first > _FIRST and last < _LAST):
        return np.zeros(len(column), bool)
    day = np.array([day or "1970" for day in days.to_pylist()])
    wrong: Mask = (day < _FIRST) | (day > _LAST) | ((day >= "1970") != (parsed >= 0))
    return wrong


@dataclass
class ClockChanges:
    """Detects clock changes: naive times that are in order except for jumps back of 30 to 60 minutes."""

    counted_from: int = 0  # number of the first row, for the description
    back: list[tuple[int, int]] = field(default_factory=list)  # row (from 0) and nanoseconds of each jump back
    _first: int | None = None
    _last: int = 0

    def look(self, times: Moments, start: int = 0) -> ClockChanges:
        if not len(times) or len(self.back) > _CHANGES:
            return self
        before = np.concatenate([times[:1] if self._first is None else [self._last], times[:-1]])
        for i in np.flatnonzero(times < before)[: _CHANGES + 1].tolist():
            self.back.append((start + i, int(before[i]) - int(times[i])))
        self._first = int(times[0]) if self._first is None else self._first
        self._last = int(times[-1])
        return self

    @property
    def description(self) -> str | None:
        years = 1 + abs(self._last - (self._first or 0)) // (365 * 86400 * 10**9)
        if not 0 < len(self.back) <= min(_CHANGES, 1 + years):
            return None
        if any(not _HALF_AN_HOUR <= size <= 2 * _HALF_AN_HOUR for _, size in self.back):
            return None
        row, size = self.back[0]
        return f"{round(size / 6e10)} minutes at row {row + self.counted_from}"
