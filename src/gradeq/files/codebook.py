"""Names to dense codes, batch by batch: hash tables for integers and texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
import numpy.typing as npt

from gradeq.errors import BadInput
from gradeq.files.cells import integers, is_text, plain, text_bytes, texts, valid
from gradeq.inputs.arguments import MISSING_NAME, name_of
from gradeq.kernels.choice import clock, kernel, note
from gradeq.kernels.texts import HEAD, code_texts
from gradeq.ledger.batch import first_rows

if TYPE_CHECKING:
    import pyarrow as pa


Int64s = npt.NDArray[np.int64]
Number = TypeVar("Number", bound=np.generic)
Codes = npt.NDArray[np.signedinteger]  # as short as they are stored

# 2^64 over the golden ratio: multiplying by it spreads keys that lie close together.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
SMALL = 1 << 22
HEAD_KEYS = 4096  # keys


class IntegerCodes:
    """Codes of integers, in order of first appearance.

    Keys from 0 to 4 million index an array. Others use open addressing: all keys of a call probe together, and only
    those whose slot has another key go on to the next.
    """

    def __init__(self) -> None:
        self.count = 0
        self._small = np.full(1 << 10, -1, np.int32)  # the code of each small key
        self._clear(10)

    def __call__(self, keys: Int64s, first_code: int) -> tuple[Int64s, Int64s]:
        """Codes of the keys, and the new keys in order; these get first_code, first_code + 1, ..."""
        codes = np.empty(len(keys), np.int64)
        added = []
        start, stop = 0, HEAD_KEYS
        while True:  # in growing parts: only the unknown keys of a part are sorted
            codes[start:stop], new = self._enter(keys[start:stop], first_code)
            added.append(new)
            first_code += len(new)
            if stop >= len(keys):
                return codes, np.concatenate(added)
            start, stop = stop, 2 * stop if len(new) else len(keys)

    def _enter(self, keys: Int64s, first_code: int) -> tuple[Codes, Int64s]:
        codes, unknown = self._find(keys)
        if not len(unknown):
            return codes, keys[:0]
        keys = keys[unknown]
        new: Int64s  # without duplicates, in order of appearance
        if keys.min() >= 0 and keys.max() < SMALL:
            # A mark below -1 is not a code either. The earliest is written last, and stays.
            marks = np.arange(-2, -2 - len(keys), -1, dtype=np.int32)
            self._small[keys[::-1]] = marks[::-1]
            new = keys[self._small[keys] == marks]
        else:
            distinct, first = np.unique(keys, return_index=True)
            new = distinct[np.argsort(first, kind="stable")]
        self.insert(new, np.arange(first_code, first_code + len(new)))
        codes[unknown] = self._find(keys)[0]
        return codes, new

    def _clear(self, bits: int) -> None:
        self._bits = bits
        self._slot_key = np.zeros(1 << bits, np.int64)
        self._slot_code = np.full(1 << bits, -1, np.int64)

    def _home(self, keys: Int64s) -> Int64s:
        spread = keys.view(np.uint64) * _SPREAD
        home: Int64s = (spread >> np.uint64(64 - self._bits)).view(np.int64)
        return home

    def _find(self, keys: Int64s) -> tuple[Codes, Int64s]:
        """Codes (-1 if unknown), and the positions of unknown keys."""
        low, high = (int(keys.min()), int(keys.max())) if len(keys) else (0, 0)
        codes: Codes
        if low >= 0 and high < SMALL:
            self._grow_small(high)
            codes = self._small.take(keys, mode="clip")  # quickest
        elif low >= SMALL or high < 0:
            codes = self._probe(keys)
        else:
            codes = np.empty(len(keys), np.int64)
            small = (keys >= 0) & (keys < SMALL)
            self._grow_small(int(keys[small].max(initial=0)))
            codes[small] = self._small[keys[small]]
            codes[~small] = self._probe(keys[~small])
        return codes, np.flatnonzero(codes < 0) if codes.min(initial=0) < 0 else keys[:0]

    def _grow_small(self, key: int) -> None:
        if key >= len(self._small):
            grown = np.full(1 << key.bit_length(), -1, np.int32)
            grown[: len(self._small)] = self._small
            self._small = grown

    def _probe(self, keys: Int64s) -> Int64s:
        mask = (1 << self._bits) - 1
        slots = self._home(keys)
        codes = self._slot_code[slots]
        # Positions whose slot is taken by another key.
        searching = np.flatnonzero((self._slot_key[slots] != keys) & (codes >= 0))
        slots = slots[searching]
        while len(searching):
            slots = (slots + 1) & mask
            codes[searching] = in_slot = self._slot_code[slots]
            taken = (self._slot_key[slots] != keys[searching]) & (in_slot >= 0)
            searching, slots = searching[taken], slots[taken]
        return codes

    def insert(self, keys: Int64s, codes: Int64s) -> None:
        small = (keys >= 0) & (keys < SMALL)
        if small.any():
            self._grow_small(int(keys[small].max()))
            self._small[keys[small]] = codes[small]
            keys, codes = keys[~small], codes[~small]
        self.count += len(keys)
        if 2 * self.count > 1 << self._bits:
            taken = self._slot_code >= 0
            keys = np.concatenate([self._slot_key[taken], keys])
            codes = np.concatenate([self._slot_code[taken], codes])
            self._clear(int(4 * self.count - 1).bit_length())
        mask = (1 << self._bits) - 1
        slots = self._home(keys)
        while len(keys):
            free = self._slot_code[slots] < 0
            # Of several keys that want one free slot the last writer wins; the others go on.
            self._slot_code[slots[free]] = codes[free]
            self._slot_key[slots[free]] = keys[free]
            lost = self._slot_code[slots] != codes
            keys, codes, slots = keys[lost], codes[lost], (slots[lost] + 1) & mask


Bytes = npt.NDArray[np.uint8]

_FIRST_BYTES = np.isin(np.arange(256), list(b"-0123456789tTfF"))  # of texts that may have another name
_LOOKED_UP_TOGETHER = 64  # texts; what they are compared with fits into the cache


class TextCodes:
    """Codes of texts, in order of first appearance."""

    def __init__(self) -> None:
        self.count = 0
        self._entered = 0  # codes that are in the table; the others are entered with the next text
        self._slots = np.zeros(1, np.int64)
        self._bounds = np.zeros(1, np.int64)
        self._records = np.zeros(1, np.uint32)

    def __call__(self, starts: Int64s, ends: Int64s, text: Bytes, loop: Callable[..., int]) -> Int64s:
        codes = np.empty(len(starts), np.int64)
        self._reserve(len(starts), int((ends - starts).sum()))
        scratch, table = np.empty((2, _LOOKED_UP_TOGETHER), np.int64), (self._slots, self._entered, self.count)
        self.count = self._entered = loop(starts, ends, text, codes, *scratch, *table, self._bounds, self._records)
        return codes

    def spelled(self, codes: range) -> list[str]:
        begins = self._bounds[codes.start : codes.stop]
        lengths = self._records[begins + 1].tolist()
        text = self._records[: self._bounds[codes.stop]].astype("<u4", copy=False).view(np.uint8)
        bounds = zip((4 * (begins + HEAD)).tolist(), lengths, strict=True)
        return [str(text.data[at : at + n], "utf-8", "surrogatepass") for at, n in bounds]

    def _reserve(self, more: int, size: int) -> None:
        self._bounds = _longer(self._bounds, self.count + 1 + more)
        words = (HEAD + 1) * more + size // 4
        self._records = _longer(self._records, int(self._bounds[self.count]) + words)
        wanted = 3 * (self.count + more) // 2
        if wanted > len(self._slots):
            self._slots = np.zeros(1 << wanted.bit_length(), np.int64)
            self._entered = 0


def may_be_renamed(starts: Int64s, ends: Int64s, text: Bytes) -> bool:
    """Whether the name of some text may differ from it (see ``text_name``), by a few bytes; may be wrongly True."""
    if not len(text):
        return False
    some = np.flatnonzero(_FIRST_BYTES[text[np.minimum(starts, len(text) - 1)]] & (ends > starts + 1))
    if not len(some):
        return False
    starts, ends = starts[some], ends[some]
    first, last, length = text[starts], text[ends - 1], ends - starts
    word = first > ord("9")
    if ((length < 6) & ((last | 32) == ord("e")) & word).any():  # true, false
        return True
    if ((length == 2) & (first == ord("-")) & (last == ord("0"))).any():  # -0
        return True
    for back in (4, 5):  # 1e+15, 1e-300
        if (text[ends[length > back] - back] == ord("e")).any():
            return True
    dated = starts[length > 12]
    if (text[dated + 4] == ord("-")).any():  # 2024-01-01 00:00
        return True
    zeros = np.flatnonzero((last == ord("0")) & ~word)
    at = ends[zeros] - 2
    while len(zeros):  # back over zeros to a point
        if (text[at] == ord(".")).any():
            return True
        on = (text[at] == ord("0")) & (at - 1 > starts[zeros])
        zeros, at = zeros[on], at[on] - 1
    return False


def _longer(values: npt.NDArray[Number], length: int) -> npt.NDArray[Number]:
    if length <= len(values):
        return values
    grown = np.empty(length + length // 2, values.dtype)
    grown[: len(values)] = values
    return grown


MANY = 1024  # cells; fewer are looked up one by one, without arrow
SAMPLE = 4096  # texts; when half of them differ, there are many


class Codebook:
    """Codes of the distinct values of a column, in order of first appearance.

    The cut into batches does not matter. 7 and "7" have one name; null and empty text are "(missing)". ``names``
    continues an earlier book. Names, integers and texts have a table each, updated when it is used.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: list[str] = list(names)
        self._unspelled: list[Int64s | range] = []  # integers, or codes of texts
        self._length = len(self._names)
        self._codes: dict[str, int] = {}
        self._integers, self._texts = IntegerCodes(), TextCodes()
        self._integers_known = 0  # how many names the table of integers has
        if len(set(self._names)) < self._length:
            raise BadInput("a codebook's names must be distinct; drop the repeated ones")

    def __len__(self) -> int:
        return self._length

    @property
    def names(self) -> list[str]:
        for new in self._unspelled:
            self._names.extend(self._texts.spelled(new) if isinstance(new, range) else map(str, new.tolist()))
        self._unspelled.clear()
        return self._names

    def code(self, name: str) -> int:
        return int(self._codes_of_names([name])[0])

    def find(self, name: str) -> int | None:
        self._codes_of_names(())  # the table then has all names
        return self._codes.get(name)

    def codes(self, column: pa.Array) -> Int64s:
        """Codes of a column; new names are added."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_dictionary(column.type):
            return self._codes_of_dictionary(column)
        column = plain(column)
        if pa.types.is_integer(column.type) and column.type != pa.uint64():
            keys = integers(pc.cast(column, pa.int64()))
            if not column.null_count:
                return self.of_keys(keys)
            present = valid(column)
            first_null = int(np.argmin(present))
            codes = np.empty(len(keys), np.int64)
            codes[:first_null] = self.of_keys(keys[:first_null])
            codes[~present] = self.code(MISSING_NAME)
            present[:first_null] = False
            codes[present] = self.of_keys(keys[present])
            return codes
        if is_text(column.type):
            return self._codes_of_texts(column)
        if pa.types.is_float16(column.type):
            column = pc.cast(column, pa.float32())
        return self._codes_of_distinct(column)

    def of_cells(self, cells: Sequence[object]) -> Int64s:
        """Codes of plain Python values."""
        codes = self.of_texts(cells)
        return self._codes_of_names(map(name_of, cells)) if codes is None else codes

    def of_texts(self, cells: Sequence[object]) -> Int64s | None:
        """Codes of many cells that are all text or None; None if they are not."""
        if len(cells) < MANY:
            return None
        import pyarrow as pa

        try:
            column = pa.array(cells, pa.large_string())
        except (TypeError, ValueError):
            return None
        return self._codes_of_texts(column)

    def of_array(self, values: npt.NDArray[np.generic]) -> Int64s:
        """Codes of a numpy array; values with the same bytes have one name."""
        if values.dtype.kind in "iu" and values.dtype != np.uint64:
            return self.of_keys(np.ascontiguousarray(values, np.int64))
        if values.dtype.hasobject or len(values) < MANY:
            return self.of_cells(cells_of(values))
        import pyarrow as pa

        data = pa.py_buffer(np.ascontiguousarray(values))
        column = pa.Array.from_buffers(pa.binary(values.dtype.itemsize), len(values), [None, data])
        encoded = column.dictionary_encode()
        distinct = np.frombuffer(encoded.dictionary.buffers()[1], values.dtype, len(encoded.dictionary))
        return self._codes_of_names(map(name_of, cells_of(distinct)))[integers(encoded.indices)]

    def of_keys(self, keys: Int64s) -> Int64s:
        """Codes of an array of integers."""
        if self._integers_known < self._length:
            known = enumerate(self.names[self._integers_known :], self._integers_known)
            pairs = [(int(name), code) for code, name in known if _is_integer(name)]
            if pairs:
                self._integers.insert(*np.array(pairs, np.int64).T.copy())
        codes, new = self._integers(keys, self._length)
        if len(new):
            self._unspelled.append(new)
            self._length += len(new)
        self._integers_known = self._length
        return codes

    def _codes_of_names(self, names: Iterable[str]) -> Int64s:
        known = self._codes
        if len(known) < self._length:
            known.update(zip(self.names[len(known) :], range(len(known), self._length), strict=True))
        codes = np.array([known.setdefault(name, len(known)) for name in names], np.int64)
        new = len(known) - self._length
        if new:  # they are the last ones of the dictionary
            self.names.extend([*islice(reversed(known), new)][::-1])
            self._length += new
        return codes

    def _codes_of_dictionary(self, column: pa.DictionaryArray) -> Int64s:
        """Codes by first use: a dictionary may be in any order, with repeated or unused values."""
        import pyarrow as pa
        import pyarrow.compute as pc

        names = [*names_of(column.dictionary), MISSING_NAME]
        rows = integers(pc.cast(column.indices, pa.int64()), len(names) - 1)
        used = [k for k, _ in sorted(first_rows(rows, len(names)), key=itemgetter(1))]
        codes = np.empty(len(names), np.int64)
        codes[used] = self._codes_of_names(names[k] for k in used)
        result: Int64s = codes[rows]
        return result

    def _codes_of_distinct(self, column: pa.Array) -> Int64s:
        """Codes of values that arrow can tell apart: each distinct one becomes a Python object."""
        import pyarrow as pa

        try:
            encoded = column.dictionary_encode(null_encoding="encode")
        except (pa.ArrowInvalid, NotImplementedError):
            raise BadInput(f"a column of {column.type} values cannot name groups") from None
        return self._codes_of_names(names_of(encoded.dictionary))[integers(encoded.indices)]

    def _codes_of_texts(self, column: pa.Array) -> Int64s:
        import pyarrow.compute as pc

        many, begun = len(column) > SAMPLE and 2 * len(column[:SAMPLE].unique()) > SAMPLE, clock()
        # Names that become Python objects take about as long as two rows of a loop.
        loop = kernel(code_texts, (), 2 * len(column)) if many else None
        if loop is None or may_be_renamed(*text_bytes(column)):
            codes = self._codes_of_distinct(column)
            if many and loop is None:
                note(code_texts, (), clock() - begun)
            return codes
        if self._texts.count < self._length:
            self._texts(*text_bytes(texts(self.names[self._texts.count :], "surrogatepass")), loop)
        starts, ends, text = text_bytes(column)
        if column.null_count or (starts == ends).any():
            absent = pc.equal(pc.fill_null(pc.binary_length(column), 0), 0)
            starts, ends, text = text_bytes(pc.if_else(absent, texts([MISSING_NAME])[0], column))
        codes = self._texts(starts, ends, text, loop)
        if self._texts.count > self._length:
            self._unspelled.append(range(self._length, self._texts.count))
            self._length = self._texts.count
        return codes


def names_of(values: pa.Array) -> list[str]:
    """Names of distinct values, "(missing)" for null and empty ones."""
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


def cells_of(values: npt.NDArray[np.generic]) -> list[object]:
    if values.dtype.kind == "M":
        moments = np.datetime_as_string(cast(npt.NDArray[np.datetime64], values)).tolist()
        return [None if moment == "NaT" else moment for moment in moments]
    if values.dtype.kind == "m" or (values.dtype.kind == "f" and values.dtype.itemsize < 8):
        return list(values)
    cells: list[object] = values.tolist()
    return cells


def _is_integer(name: str) -> bool:
    return re.fullmatch(r"0|-?[1-9][0-9]{0,18}", name) is not None and -(2**63) <= int(name) < 2**63
