"""Names to dense codes, growing from batch to batch: the index of a group, player or key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gradeq.errors import BadInput
from gradeq.files.arrays import integers, valid
from gradeq.files.integers import IntegerCodes
from gradeq.files.numbers import is_text
from gradeq.naming import MISSING_NAME, name_of

if TYPE_CHECKING:
    import pyarrow as pa

Int64s = npt.NDArray[np.int64]


class Codebook:
    """Code of each distinct value of a column, counted in order of first appearance.

    Batches in any cut give the codes of the whole column. Text and integers may be mixed: 7 and
    "7" are one name. An absent value, and an empty text cell, is the name "(missing)".
    ``names`` continues a book that was kept.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: list[str] = list(names)
        self._new_integers: list[Int64s] = []  # names not yet spelled out
        self._length = len(self._names)
        self._codes: dict[str, int] | None = None
        self._integers: IntegerCodes | None = None
        self._missing: int | None = None
        if len(set(self._names)) < self._length:
            raise BadInput("a codebook's names must be distinct; drop the repeated ones")

    def __len__(self) -> int:
        return self._length

    @property
    def names(self) -> list[str]:
        """The name of each code."""
        for keys in self._new_integers:
            self._names.extend(map(str, keys.tolist()))
        self._new_integers.clear()
        return self._names

    def codes(self, column: pa.Array) -> Int64s:
        """The codes of a column's rows; names not seen before are added."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_integer(column.type) and column.type != pa.uint64():
            return self._of_integers(pc.cast(column, pa.int64()))
        if pa.types.is_dictionary(column.type):
            return self._of_dictionary(column)
        if pa.types.is_null(column.type):
            column = pc.cast(column, pa.string())
        try:
            column = column.dictionary_encode(null_encoding="encode")
        except (pa.ArrowInvalid, NotImplementedError):
            raise BadInput(f"a column of {column.type} values cannot name groups") from None
        # Arrow's own dictionary is in order of first appearance, an absent value included.
        codes = np.array([self._code(name) for name in _names(column.dictionary)], np.int64)
        result: Int64s = codes[integers(column.indices)]
        return result

    def of_cells(self, cells: Iterable[object]) -> Int64s:
        """The same for plain Python values, such as a list."""
        return np.array([self._code(name_of(cell)) for cell in cells], np.int64)

    def of_keys(self, keys: Int64s) -> Int64s:
        """The same for an array of integers."""
        if self._integers is None:
            self._integers = _integer_names(self.names)
        codes, new = self._integers(keys, self._length)
        if len(new):
            self._new_integers.append(new)
            self._length += len(new)
            self._codes = None
        return codes

    def _of_dictionary(self, column: pa.DictionaryArray) -> Int64s:
        """A dictionary that came with the data may be in any order and hold unused values."""
        import pyarrow as pa
        import pyarrow.compute as pc

        names = [*_names(column.dictionary), MISSING_NAME]
        rows = integers(pc.cast(column.indices, pa.int64()), len(names) - 1)
        present, first = np.unique(rows, return_index=True)
        codes = np.full(len(names), -1, np.int64)
        for k in present[np.argsort(first, kind="stable")].tolist():
            codes[k] = self._code(names[k])
        result: Int64s = codes[rows]
        return result

    def find(self, name: str) -> int | None:
        """The code of a name, None if it was never seen."""
        return self._by_name().get(name)

    def _by_name(self) -> dict[str, int]:
        if self._codes is None:
            self._codes = {known: code for code, known in enumerate(self.names)}
        return self._codes

    def _code(self, name: str) -> int:
        codes = self._by_name()
        code = codes.get(name)
        if code is None:
            code = codes[name] = self._length
            self.names.append(name)
            self._length += 1
            if self._integers is not None and _is_integer(name):
                self._integers.insert(np.array([int(name)]), np.array([code]))
        return code

    def _of_integers(self, column: pa.Array) -> Int64s:
        if not column.null_count:
            return self.of_keys(integers(column))
        absent = ~valid(column)
        keys = integers(column)
        codes = np.empty(len(keys), np.int64)
        # Rows before the first absent one are coded before it, so that order is as in one piece.
        first = int(np.argmax(absent))
        codes[:first] = self.of_keys(keys[:first])
        if self._missing is None:
            self._missing = self._code(MISSING_NAME)
        codes[absent] = self._missing
        rest = np.flatnonzero(~absent[first:]) + first
        codes[rest] = self.of_keys(keys[rest])
        return codes


def _names(values: pa.Array) -> list[str]:
    """The names of distinct values, "(missing)" for absent and empty ones."""
    cells = values.to_pylist()
    if is_text(values.type):
        return [cell or MISSING_NAME for cell in cells]
    return [MISSING_NAME if cell is None else name_of(cell) for cell in cells]


def _integer_names(names: list[str]) -> IntegerCodes:
    """The table of those names that spell an integer as str() does."""
    table = IntegerCodes()
    found = [(int(name), code) for code, name in enumerate(names) if _is_integer(name)]
    if found:
        keys, codes = np.array(found, np.int64).T
        table.insert(np.ascontiguousarray(keys), np.ascontiguousarray(codes))
    return table


def _is_integer(name: str) -> bool:
    digits = name.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return False
    value = int(name)
    return str(value) == name and -(2**63) <= value < 2**63
