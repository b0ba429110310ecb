"""Names to dense codes, growing from batch to batch: the index of a group, player or key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gradeq.errors import BadInput
from gradeq.files.arrays import integers, joined_texts, sized_bytes, text_bytes, texts, valid
from gradeq.files.integers import IntegerCodes
from gradeq.files.numbers import is_text
from gradeq.files.texts import TextCodes, spelled_otherwise
from gradeq.kernels.choice import clock, kernel, note
from gradeq.kernels.texts import code_texts
from gradeq.ledger.batch import first_rows
from gradeq.naming import MISSING_NAME, name_of, text_name

if TYPE_CHECKING:
    import pyarrow as pa

Int64s = npt.NDArray[np.int64]

MANY = 1024  # cells; fewer are looked up one by one, without arrow
SAMPLE = 4096  # texts; when half of them differ, there are many


class Codebook:
    """Code of each distinct value of a column, counted in order of first appearance.

    Batches in any cut give the codes of the whole column. Text and integers may be mixed: 7 and
    "7" are one name. An absent value, and an empty text cell, is the name "(missing)".
    ``names`` continues a book that was kept.

    Single names, integers and texts have a table each; one is told what the others entered only
    when it is used itself.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: list[str] = list(names)
        self._unspelled: list[Int64s | range] = []  # integers, or codes of texts
        self._length = len(self._names)
        self._codes: dict[str, int] = {}
        self._integers, self._integers_told = IntegerCodes(), 0
        self._texts = TextCodes()
        if len(set(self._names)) < self._length:
            raise BadInput("a codebook's names must be distinct; drop the repeated ones")

    def __len__(self) -> int:
        return self._length

    @property
    def names(self) -> list[str]:
        """The name of each code."""
        for new in self._unspelled:
            known = self._texts.spelled(new) if isinstance(new, range) else map(str, new.tolist())
            self._names.extend(known)
        self._unspelled.clear()
        return self._names

    def name(self, code: int) -> str:
        """The name of one code, without spelling out the others."""
        at = code - len(self._names)
        if at < 0:
            return self._names[code]
        for new in self._unspelled:
            if at < len(new):
                own = int(new[at])
                known = isinstance(new, range)
                return self._texts.spelled(range(own, own + 1))[0] if known else str(own)
            at -= len(new)
        raise IndexError(code)

    def code(self, name: str) -> int:
        """The code of one name, which is added if it is new."""
        return self._entered([name])[0]

    def find(self, name: str) -> int | None:
        """The code of a name, None if it was never seen."""
        return self._by_name().get(name)

    def codes(self, column: pa.Array) -> Int64s:
        """The codes of a column's rows; names not seen before are added."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_integer(column.type) and column.type != pa.uint64():
            present = valid(column) if column.null_count else None
            return self._around(present, self.of_keys, integers(pc.cast(column, pa.int64())))
        if pa.types.is_dictionary(column.type):
            names = [*names_of(column.dictionary), MISSING_NAME]
            rows = integers(pc.cast(column.indices, pa.int64()), len(names) - 1)
            return self.of_places(rows, names)
        if pa.types.is_null(column.type):
            column = pc.cast(column, pa.string())
        if is_text(column.type):
            return self._of_texts(column, 0)
        if pa.types.is_float16(column.type):
            column = pc.cast(column, pa.float32())
        try:
            column = column.dictionary_encode(null_encoding="encode")
        except (pa.ArrowInvalid, NotImplementedError):
            raise BadInput(f"a column of {column.type} values cannot name groups") from None
        return self._of_distinct(column.indices, names_of(column.dictionary))

    def of_cells(self, cells: Sequence[object]) -> Int64s:
        """The same for plain Python values, such as a list."""
        found = self.of_texts(cells)
        if found is not None:
            return found
        return np.array(self._entered(map(name_of, cells)), np.int64)

    def of_texts(self, cells: Sequence[object]) -> Int64s | None:
        """The same for many cells that are all text or None; None where they are not."""
        column = joined_texts(cells) if len(cells) >= MANY else None
        return None if column is None else self._of_texts(column, 1)

    def of_array(self, values: npt.NDArray[Any]) -> Int64s:
        """The same for an array of values of one size: those of the same bytes have one name."""
        if values.dtype.kind in "iu" and values.dtype != np.uint64:
            return self.of_keys(np.ascontiguousarray(values, np.int64))
        if values.dtype.hasobject or len(values) < MANY:
            return self.of_cells(cells_of(values))
        found = sized_bytes(values).dictionary_encode()
        distinct = np.frombuffer(found.dictionary.buffers()[1], values.dtype, len(found.dictionary))
        return self._of_distinct(found.indices, list(map(name_of, cells_of(distinct))))

    def of_keys(self, keys: Int64s) -> Int64s:
        """The same for an array of integers."""
        if self._integers_told < self._length:
            known = enumerate(self.names[self._integers_told :], self._integers_told)
            found = [(int(name), code) for code, name in known if _is_integer(name)]
            if found:
                self._integers.insert(*np.array(found, np.int64).T.copy())
        codes, new = self._integers(keys, self._length)
        if len(new):
            self._unspelled.append(new)
            self._length += len(new)
        self._integers_told = self._length
        return codes

    def of_places(self, rows: Int64s, names: Sequence[str]) -> Int64s:
        """The same for places in a list of names, which may be in any order, repeated or unused."""
        present = sorted(first_rows(rows, len(names)), key=itemgetter(1))
        codes = np.empty(len(names), np.int64)
        codes[[k for k, _ in present]] = self._entered(names[k] for k, _ in present)
        result: Int64s = codes[rows]
        return result

    def _by_name(self) -> dict[str, int]:
        known = self._codes
        told = len(known)
        if told < self._length:
            known.update(zip(self.names[told:], range(told, self._length), strict=True))
        return known

    def _entered(self, names: Iterable[str]) -> list[int]:
        """The codes of names one after the other; new ones are added."""
        known = self._by_name()
        codes = [known.setdefault(name, len(known)) for name in names]
        new = len(known) - self._length
        if new:  # they are the last that the dictionary holds
            self.names.extend([*islice(reversed(known), new)][::-1])
            self._length += new
        return codes

    def _of_distinct(self, indices: pa.Array, names: Iterable[str]) -> Int64s:
        """The same for what arrow made distinct, which is in order of first appearance."""
        codes = np.array(self._entered(names), np.int64)
        result: Int64s = codes[integers(indices)]
        return result

    def _of_texts(self, column: pa.Array, gap: int) -> Int64s:
        """The same for texts, each followed by ``gap`` bytes that do not belong to it."""
        many, begun = _many(column), clock()
        # Names that become Python objects take about as long as two rows of a loop.
        loop = kernel(code_texts, (), 2 * len(column)) if many else None
        if loop is None or spelled_otherwise(*text_bytes(column, gap)):
            found = column.dictionary_encode(null_encoding="encode")
            names = [cell and cell[: len(cell) - gap] for cell in found.dictionary.to_pylist()]
            codes = self._of_distinct(found.indices, [text_name(name or "") for name in names])
            if many and loop is None:
                note(code_texts, (), clock() - begun)
            return codes
        told = self._texts.count
        if told < self._length:
            self._texts(*text_bytes(texts(self.names[told:], "surrogatepass"), 0), loop)
        starts, ends, text = text_bytes(column, gap)
        empty = starts == ends
        if column.null_count:
            empty |= ~valid(column)

        def coded(starts: Int64s, ends: Int64s) -> Int64s:
            known = self._length
            codes = self._texts(starts, ends, text, loop)
            self._length = count = self._texts.count
            if count > known:
                self._unspelled.append(range(known, count))
            return codes

        return self._around(~empty if empty.any() else None, coded, starts, ends)

    def _around(self, present: Any, coded: Callable[..., Int64s], *columns: Int64s) -> Int64s:
        """The codes of rows some of which are absent, in the order of one row at a time."""
        if present is None:
            return coded(*columns)
        codes = np.empty(len(present), np.int64)
        first = int(np.argmin(present))
        codes[:first] = coded(*(column[:first] for column in columns))
        codes[~present] = self.code(MISSING_NAME)
        rest = np.flatnonzero(present[first:]) + first
        codes[rest] = coded(*(column[rest] for column in columns))
        return codes


class Names(Sequence[str]):
    """The names that a book has by now, each spelled out when it is looked at."""

    def __init__(self, book: Codebook) -> None:
        self._book, self._length = book, len(book)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return self._book.names[: self._length][at]
        return self._book.name(range(self._length)[at])

    def __iter__(self) -> Iterator[str]:
        return iter(self[:])


def _many(column: pa.Array) -> bool:
    """Whether texts differ so often that arrow's own dictionary of each batch does not pay."""
    return len(column) > SAMPLE and 2 * len(column[:SAMPLE].unique()) > SAMPLE


def names_of(values: pa.Array) -> list[str]:
    """The names of distinct values, "(missing)" for absent and empty ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, cells = values.type, None
    if pa.types.is_timestamp(kind):  # as Python has them, they end at microseconds
        moments = integers(pc.cast(values, pa.int64())).astype(f"datetime64[{kind.unit}]")
        moments[~valid(values)] = "NaT"
        cells = cells_of(moments)
        if kind.tz is not None:
            cells = [cell and f"{cell}Z" for cell in cells]
    elif pa.types.is_float32(kind):
        cells = list(np.array(values.to_pylist(), np.float32))
    return list(map(name_of, values.to_pylist() if cells is None else cells))


def cells_of(values: npt.NDArray[Any]) -> list[Any]:
    """The cells of an array with what names them: moments as text, short floats as short as they are."""
    if values.dtype.kind == "M":
        moments = np.datetime_as_string(values).tolist()
        return [None if moment == "NaT" else moment for moment in moments]
    if values.dtype.kind == "m" or (values.dtype.kind == "f" and values.dtype.itemsize < 8):
        return list(values)
    cells: list[Any] = values.tolist()
    return cells


def _is_integer(name: str) -> bool:
    digits = name.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return False
    value = int(name)
    return str(value) == name and -(2**63) <= value < 2**63
