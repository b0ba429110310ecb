"""Loops over text and sorting keys."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradeq.kernels.account import Floats, Ints

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
    """41 bits that depend on every byte, read four at a time."""
    mark = end - start
    for k in range(start, end, 4):
        four = word(text, k, end)
        mark = mixed(mark, four)
    return spread(mark)


def word(text: Bytes, k: int, end: int) -> int:
    """Four bytes from k on, 0 beyond the end."""
    if k + 4 <= end:
        return int(text[k]) | int(text[k + 1]) << 8 | int(text[k + 2]) << 16 | int(text[k + 3]) << 24
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


SMALL = 32  # labels of one turn that are sorted by hand


def found_from(clock: Floats, start: int, wanted: float, beyond: bool, rate: float) -> int:
    """The first row from ``start`` on whose time has reached ``wanted`` (``beyond``: has passed it).

    ``rate`` rows come in a unit of time: looked for where that would put it, then in growing steps from there.
    """
    last = len(clock) - 1
    if start > last or clock[last] < wanted or (beyond and clock[last] == wanted):
        return len(clock)
    guess = start + int(min(max(0.0, (wanted - clock[start]) * rate), float(last - start)))
    low, high, reach = start, guess, 1
    if clock[guess] < wanted or (beyond and clock[guess] == wanted):
        while clock[high] < wanted or (beyond and clock[high] == wanted):
            low, high, reach = high + 1, min(high + reach, last), 2 * reach
    else:
        low = guess
        while low > start and not (clock[low] < wanted or (beyond and clock[low] == wanted)):
            high, low, reach = low, max(low - reach, start), 2 * reach
    while low < high:
        middle = (low + high) // 2
        if clock[middle] < wanted or (beyond and clock[middle] == wanted):
            low = middle + 1
        else:
            high = middle
    return low


def turned(clock: Floats, tickets: Ints, wanted: Floats, beyond: bool, first: int, rate: float, turns: Ints) -> None:
    """Before which row each ticket's time comes, at the earliest the one after its own; rows begin at ``first``."""
    for k in range(len(tickets)):
        start = max(tickets[k] + 1 - first, 0)
        turns[k] = first + found_from(clock, start, wanted[k], beyond, rate)


def arranged(
    turns: Ints, tickets: Ints, label_times: Floats, cuts: Ints, slots: Ints, posts: Ints, when: Floats
) -> bool:
    """Tickets by turn, then label time, then number: posts[: cuts[i]] have their turn by row i; others are left out.

    False if too many labels of one turn are out of order: the caller has to sort them. ``slots`` (rows + 1) and
    ``when`` are scratch.
    """
    n = len(cuts)
    for k in range(len(turns)):
        if turns[k] < n:
            slots[turns[k] + 1] = slots[turns[k] + 1] + 1
    for i in range(n):
        slots[i + 1] = slots[i + 1] + slots[i]
        cuts[i] = slots[i + 1]
    for k in range(len(turns)):
        turn = turns[k]
        if turn < n:
            p = slots[turn]
            begin = 0 if turn == 0 else cuts[turn - 1]
            t = label_times[k]
            slots[turn] = p + 1
            if p > begin and when[p - 1] > t and p - begin >= SMALL:
                return False
            while p > begin and when[p - 1] > t:
                posts[p] = posts[p - 1]
                when[p] = when[p - 1]
                p = p - 1
            posts[p] = tickets[k]
            when[p] = t
    return True
