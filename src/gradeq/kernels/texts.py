"""Texts to codes: one hash table over bytes, so that a million names need not become Python objects.

Eight bytes are read at a time: ``words[k]`` are those from byte k on (``files.texts.eights``), as one number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gradeq.kernels.account import Ints

Bytes = Any  # bytes as numbers

# Products are cut to 62 bits, so that compiled (where they wrap) and interpreted hashes are the same.
FACTOR = 0x2545F4914F6CDD1D
LOW = (1 << 62) - 1
LONG = (1 << 20) - 1  # bytes; of a longer text only these bits of its length fit into its slot


class Texts(NamedTuple):
    """The texts to be coded: text i is bytes[starts[i]:ends[i]]."""

    starts: Ints
    ends: Ints
    bytes: Bytes
    words: Ints


class Table(NamedTuple):
    """All texts so far: code c is spelled bytes[bounds[c]:bounds[c + 1]], and bounds[0] is 8.

    ``slots`` are pairs, as many as a power of 2: 0 where free, else the hash of a text above its code plus 1, and
    where it begins above its length.
    """

    slots: Ints
    bounds: Ints
    bytes: Bytes
    words: Ints


RECORDS = (Texts._make(Texts._fields), Table._make(Table._fields))  # what the loop is compiled for


def code_texts(
    texts: Texts, table: Table, old: Ints, codes: Ints, marks: Ints, places: Ints, count: int
) -> int:
    """Write the codes of the texts; new ones are entered in order. How many codes there are.

    ``count`` codes are there, in the slots ``old`` if these are not empty: a shorter table, which is moved into the
    slots first. There must be room for all texts as if they were new. ``marks`` and ``places`` are scratch for texts
    that are looked up together.
    """
    n, mask = len(texts.starts), len(table.slots) // 2 - 1
    for k in range(0, len(old), 2):
        if old[k] != 0:
            slot = old[k] >> 32 & mask
            while table.slots[2 * slot] != 0:
                slot = slot + 1 & mask
            table.slots[2 * slot] = old[k]
            table.slots[2 * slot + 1] = old[k + 1]
    for begin in range(0, n, len(marks)):
        end = min(begin + len(marks), n)
        for i in range(begin, end):
            marks[i - begin] = hash_of(texts, texts.starts[i], texts.ends[i])
        # Read what the texts will be compared with before it is needed: the misses of many rows then overlap.
        for i in range(begin, end):
            places[i - begin] = table.slots[2 * (marks[i - begin] & mask) + 1] >> 20
        for i in range(begin, end):
            codes[i] = table.bytes[places[i - begin]]
        for i in range(begin, end):
            mark, start, length = marks[i - begin], texts.starts[i], texts.ends[i] - texts.starts[i]
            slot, code, brief = mark & mask, -1, length & LONG
            while code < 0:
                held, where = table.slots[2 * slot], table.slots[2 * slot + 1]
                if held == 0:
                    first = table.bounds[count]
                    table.slots[2 * slot] = mark << 32 | count + 1
                    table.slots[2 * slot + 1] = first << 20 | brief
                    for k in range(length):
                        table.bytes[first + k] = texts.bytes[start + k]
                    code = count
                    count = count + 1
                    table.bounds[count] = first + length
                elif held >> 32 == mark and where & LONG == brief:
                    known = (held & 0xFFFFFFFF) - 1
                    alike = same(texts, table, start, where >> 20, length, known)
                    code = known if alike else -1
                slot = slot + 1 & mask
            codes[i] = code
    return count


def same(texts: Texts, table: Table, start: int, first: int, length: int, code: int) -> bool:
    """Whether a text is spelled as this code, which begins at ``first`` and is as long, if not very long."""
    if length < 8:
        mine = short(texts.bytes, texts.words, start, length)
        theirs = short(table.bytes, table.words, first, length)
        return mine == theirs  # type: ignore[no-any-return]
    if length > LONG and table.bounds[code + 1] - first != length:
        return False
    k = 0
    while k + 8 < length and texts.words[start + k] == table.words[first + k]:
        k = k + 8
    rest = length - 8
    return k >= rest and texts.words[start + rest] == table.words[first + rest]


def short(text: Bytes, words: Ints, start: int, length: int) -> Any:
    """A text of less than eight bytes as one number."""
    word = 0
    if start + length >= 8:  # read with what stands before it
        word = words[start + length - 8] >> 8 * (7 - length) >> 8 & (1 << 8 * length) - 1
    else:
        for k in range(length):
            word = word | text[start + k] << 8 * k
    return word


def hash_of(texts: Texts, start: int, end: int) -> int:
    """31 bits that depend on every byte."""
    length = end - start
    mark = length
    if length < 8:
        word = short(texts.bytes, texts.words, start, length)
        mark = mixed(mark, word)
    else:
        k = start
        while k + 8 < end:
            mark = mixed(mark, texts.words[k])
            k = k + 8
        mark = mixed(mark, texts.words[end - 8])
    return mark >> 31


def mixed(mark: int, word: int) -> int:
    """The hash with eight more bytes: the two highest bits of a word would be cut off, so they are added below."""
    mark = (mark ^ word ^ word >> 32) * FACTOR & LOW
    return mark ^ mark >> 29
