"""Texts to codes: one hash table over bytes, so that a million names need not become Python objects."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]

# Factors and masks that keep every product within 63 bits, so that compiled and interpreted hashes are the same.
FACTOR = 0x2C1B3D
LOW = (1 << 41) - 1
HEAD = 2  # words of a record before its text


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
    records: Words,
) -> int:
    """Write the codes of the texts text[starts[i]:ends[i]]; new ones are entered in order. How many codes there are.

    The record of code c is records[bounds[c]:bounds[c + 1]]: the code, the length of its text, and the text, four
    bytes a word. ``slots`` is the table (its length a power of 2): 0 where free, else the place of a record plus 1
    below the upper bits of its hash. Codes from ``entered`` on are not in it yet. There must be room for all texts as
    if they were new. ``marks`` and ``found`` are scratch for texts that are looked up together.
    """
    n, mask = len(starts), len(slots) - 1
    for code in range(entered, count):
        at = bounds[code]
        mark = int(records[at + 1])
        for k in range(at + HEAD, bounds[code + 1]):
            mark = mixed(mark, int(records[k]))
        mark = spread(mark)
        slot = mark & mask
        while slots[slot] != 0:
            slot = slot + 1 & mask
        slots[slot] = mark >> 10 << 32 | at + 1
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
            codes[i] = records[max((slots[found[i - begin]] & 0xFFFFFFFF) - 1, 0)]
        for i in range(begin, end):
            mark, start, stop = marks[i - begin], starts[i], ends[i]
            slot = found[i - begin]
            while True:
                held = slots[slot]
                if held == 0:
                    slots[slot] = mark >> 10 << 32 | bounds[count] + 1
                    codes[i] = count
                    bounds[count + 1] = record(records, bounds[count], count, text, start, stop)
                    count = count + 1
                    break
                if held >> 32 == mark >> 10:
                    at = (held & 0xFFFFFFFF) - 1
                    known = same(records, at, text, start, stop)
                    if known:
                        codes[i] = records[at]
                        break
                slot = slot + 1 & mask
    return count


def record(records: Words, at: int, code: int, text: Bytes, start: int, end: int) -> int:
    """Write the record of a new code; where the next one begins."""
    records[at] = code
    records[at + 1] = end - start
    at = at + HEAD
    for k in range(start, end, 4):
        four = word(text, k, end)
        records[at] = four
        at = at + 1
    return at


def same(records: Words, at: int, text: Bytes, start: int, end: int) -> bool:
    """Whether the record there is of this text."""
    k, alike = start, bool(records[at + 1] == end - start)
    while alike and k < end:
        four = word(text, k, end)
        alike = bool(records[at + HEAD + (k - start >> 2)] == four)
        k = k + 4
    return alike


def hash_of(text: Bytes, start: int, end: int) -> int:
    """41 bits that depend on every byte, four of which are taken at a time."""
    mark = end - start
    for k in range(start, end, 4):
        four = word(text, k, end)
        mark = mixed(mark, four)
    return spread(mark)


def word(text: Bytes, k: int, end: int) -> int:
    """Four bytes from k on, 0 beyond the end."""
    if k + 4 <= end:
        return (
            int(text[k]) | int(text[k + 1]) << 8 | int(text[k + 2]) << 16 | int(text[k + 3]) << 24
        )
    four = int(text[k])
    if k + 1 < end:
        four = four | int(text[k + 1]) << 8
    if k + 2 < end:
        four = four | int(text[k + 2]) << 16
    return four


def mixed(mark: int, four: int) -> int:
    """The mark of a text that goes on with these four bytes."""
    mark = (mark ^ four) * FACTOR & LOW
    return mark ^ mark >> 20


def spread(mark: int) -> int:
    """The mark of a whole text, all of its bits made to depend on each other."""
    mark = mark * FACTOR & LOW
    return mark ^ mark >> 23
