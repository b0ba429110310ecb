"""A hash table from 64-bit integers to codes, all of it in numpy: many keys at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.signedinteger]  # as short as they are stored

# 2^64 over the golden ratio: multiplying by it spreads keys that lie close together.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
SMALL = 1 << 22
HEAD = 4096  # keys


class IntegerCodes:
    """Code of each integer, counted in order of first appearance; grows as keys come.

    Small keys (0 to 4 million) are looked up where they lie. For others, open addressing: a key's
    slot is its hash or the next free one after it. All keys of a call probe together, and only
    those whose slot holds another key go on to the next slot.
    """

    def __init__(self) -> None:
        self.count = 0
        self._small = np.full(1 << 10, -1, np.int32)  # the code of each small key
        self._clear(10)

    def __call__(self, keys: Int64s, first_code: int) -> tuple[Int64s, Int64s]:
        """Codes of the keys, and the new keys in order; these get first_code, first_code + 1, ..."""
        codes = np.empty(len(keys), np.int64)
        added = []
        start, stop = 0, HEAD
        while True:  # in growing parts: only the unknown keys of a part are sorted
            codes[start:stop], new = self._entered(keys[start:stop], first_code)
            added.append(new)
            first_code += len(new)
            if stop >= len(keys):
                return codes, np.concatenate(added)
            start, stop = stop, 2 * stop if len(new) else len(keys)

    def _entered(self, keys: Int64s, first_code: int) -> tuple[Codes, Int64s]:
        codes, unknown = self._find(keys)
        if not len(unknown):
            return codes, keys[:0]
        new = self._firsts(keys[unknown])
        self.insert(new, np.arange(first_code, first_code + len(new)))
        codes[unknown] = self._find(keys[unknown])[0]
        return codes, new

    def _firsts(self, keys: Int64s) -> Int64s:
        """Unknown keys, each once, in order of first appearance."""
        if keys.min() >= 0 and keys.max() < SMALL:
            # A mark below -1 is no code either. The earliest is written last, and stays.
            marks = np.arange(-2, -2 - len(keys), -1, dtype=np.int32)
            self._small[keys[::-1]] = marks[::-1]
            new: Int64s = keys[self._small[keys] == marks]
            return new
        distinct, first = np.unique(keys, return_index=True)
        return distinct[np.argsort(first, kind="stable")]

    def _clear(self, bits: int) -> None:
        self._bits = bits
        self._slot_key = np.zeros(1 << bits, np.int64)
        self._slot_code = np.full(1 << bits, -1, np.int64)

    def _home(self, keys: Int64s) -> Int64s:
        spread = keys.view(np.uint64) * _SPREAD
        home: Int64s = (spread >> np.uint64(64 - self._bits)).view(np.int64)
        return home

    def _find(self, keys: Int64s) -> tuple[Codes, Int64s]:
        """Codes, -1 where unknown, and the positions of the unknown."""
        low, high = (int(keys.min()), int(keys.max())) if len(keys) else (0, 0)
        codes: Codes
        if low >= 0 and high < SMALL:
            self._make_room(high)
            codes = self._small.take(keys, mode="clip")  # quickest
        elif low >= SMALL or high < 0:
            codes = self._probe(keys)
        else:
            codes = np.empty(len(keys), np.int64)
            small = (keys >= 0) & (keys < SMALL)
            self._make_room(int(keys[small].max(initial=0)))
            codes[small] = self._small[keys[small]]
            codes[~small] = self._probe(keys[~small])
        return codes, np.flatnonzero(codes < 0) if codes.min(initial=0) < 0 else keys[:0]

    def _make_room(self, key: int) -> None:
        if key >= len(self._small):
            grown = np.full(1 << key.bit_length(), -1, np.int32)
            grown[: len(self._small)] = self._small
            self._small = grown

    def _probe(self, keys: Int64s) -> Int64s:
        mask = (1 << self._bits) - 1
        slots = self._home(keys)
        codes = self._slot_code[slots]
        # Positions whose slot is taken by another key.
        on = np.flatnonzero((self._slot_key[slots] != keys) & (codes >= 0))
        slots = slots[on]
        while len(on):
            slots = (slots + 1) & mask
            found = self._slot_code[slots]
            codes[on] = found
            further = (self._slot_key[slots] != keys[on]) & (found >= 0)
            on, slots = on[further], slots[further]
        return codes

    def insert(self, keys: Int64s, codes: Int64s) -> None:
        """Add distinct keys that are not there yet."""
        small = (keys >= 0) & (keys < SMALL)
        if small.any():
            self._make_room(int(keys[small].max()))
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
