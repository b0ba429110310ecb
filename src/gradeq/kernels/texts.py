"""Texts to codes: one hash table over bytes, so that a million names need not become Python objects."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]

# Factors and masks that keep every product within 63 bits, so that compiled and interpreted hashes are the same.
FACTOR = 0x2C1B3D
LOW = (1 << 41) - 1


def code_texts(
    starts: Int64s,
    ends: Int64s,
    text: Bytes,
    codes: Int64s,
    marks: Int64s,
    found: Int64s,
    slots: Int64s,
    entered: int,
    count: int,
    bounds: Int64s,
    names: Bytes,
) -> int:
    """Write the codes of the texts text[starts[i]:ends[i]]; new ones are entered in order. How many codes there are.

    Code c is spelled names[bounds[c]:bounds[c + 1]]. ``slots`` is the table (its length a power of 2): 0 where free,
    else a code plus 1 below the upper bits of its hash. Codes from ``entered`` on are not in it yet. There must be
    room for all texts as if they were new. ``marks`` and ``found`` are scratch for texts that are looked up together.
    """
    n, mask = len(starts), len(slots) - 1
    for code in range(entered, count):
        mark = hash_of(names, bounds[code], bounds[code + 1])
        slot = mark & mask
        while slots[slot] != 0:
            slot = slot + 1 & mask
        slots[slot] = mark >> 10 << 32 | code + 1
    for begin in range(0, n, len(marks)):
        end = min(begin + len(marks), n)
        for i in range(begin, end):
            marks[i - begin] = hash_of(text, starts[i], ends[i])
        # Read what the texts will be compared with before it is needed: the misses of many rows then overlap.
        for i in range(begin, end):
            codes[i] = slots[marks[i - begin] & mask]
        for i in range(begin, end):
            slot, mark = marks[i - begin] & mask, marks[i - begin] >> 10
            while slots[slot] != 0 and slots[slot] >> 32 != mark:
                slot = slot + 1 & mask
            found[i - begin] = slot
        for i in range(begin, end):
            codes[i] = bounds[max((slots[found[i - begin]] & 0xFFFFFFFF) - 1, 0)]
        for i in range(begin, end):
            codes[i] = names[codes[i]]
        for i in range(begin, end):
            mark, start, length = marks[i - begin], starts[i], ends[i] - starts[i]
            slot = found[i - begin]
            while True:
                held = slots[slot]
                if held == 0:
                    slots[slot] = mark >> 10 << 32 | count + 1
                    first = bounds[count]
                    for k in range(length):
                        names[first + k] = text[start + k]
                    codes[i] = count
                    count = count + 1
                    bounds[count] = first + length
                    break
                if held >> 32 == mark >> 10:
                    code = (held & 0xFFFFFFFF) - 1
                    first = bounds[code]
                    same_length = bounds[code + 1] - first == length
                    if same_length and same(names, first, text, start, length):
                        codes[i] = code
                        break
                slot = slot + 1 & mask
    return count


def same(one: Bytes, first: int, other: Bytes, start: int, length: int) -> bool:
    """Whether two texts of one length have the same bytes."""
    k = 0
    while k < length and one[first + k] == other[start + k]:
        k = k + 1
    return k == length


def hash_of(text: Bytes, start: int, end: int) -> int:
    """41 bits that depend on every byte, four of which are taken at a time."""
    mark = end - start
    k = start
    while k + 4 <= end:
        four = text[k] | text[k + 1] << 8 | text[k + 2] << 16 | text[k + 3] << 24
        mark = (mark ^ four) * FACTOR & LOW
        mark = mark ^ mark >> 20
        k = k + 4
    while k < end:
        mark = (mark ^ text[k]) * FACTOR & LOW
        k = k + 1
    mark = (mark ^ mark >> 20) * FACTOR & LOW
    return mark ^ mark >> 23
