"""A hash table from texts to codes, over their bytes as arrow holds them: many at once, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gradeq.kernels.texts import HEAD, code_texts

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_BEGINS = np.isin(np.arange(256), list(b"-0123456789tTfF"))  # what may be spelled otherwise
_TOGETHER = 64  # texts; what they are compared with fits into the cache


class TextCodes:
    """Code of each text, counted in order of first appearance; grows as texts come."""

    def __init__(self) -> None:
        self.count = 0
        self._entered = 0  # codes that are in the table; the others are entered with the next text
        self._slots = np.zeros(1, np.int64)
        self._bounds = np.zeros(1, np.int64)
        self._records = np.zeros(1, np.uint32)

    def __call__(
        self, starts: Int64s, ends: Int64s, text: Bytes, loop: Callable[..., Any] = code_texts
    ) -> Int64s:
        """Codes of the texts text[starts[i]:ends[i]]; ``loop`` is code_texts, or the same compiled."""
        codes = np.empty(len(starts), np.int64)
        self._make_room(len(starts), int((ends - starts).sum()))
        self.count = self._entered = loop(
            starts, ends, text, codes, *np.empty((2, _TOGETHER), np.int64),
            self._slots, self._entered, self.count, self._bounds, self._records,
        )  # fmt: skip
        return codes

    def spelled(self, codes: range) -> list[str]:
        """The names of codes that follow each other."""
        begins = self._bounds[codes.start : codes.stop]
        lengths = self._records[begins + 1].tolist()
        text = self._records[: self._bounds[codes.stop]].astype("<u4", copy=False).view(np.uint8)
        bounds = zip((4 * (begins + HEAD)).tolist(), lengths, strict=True)
        return [str(text.data[at : at + n], "utf-8", "surrogatepass") for at, n in bounds]

    def _make_room(self, more: int, size: int) -> None:
        self._bounds = _longer(self._bounds, self.count + 1 + more)
        words = (HEAD + 1) * more + size // 4
        self._records = _longer(self._records, int(self._bounds[self.count]) + words)
        wanted = 3 * (self.count + more) // 2
        if wanted > len(self._slots):
            self._slots = np.zeros(1 << wanted.bit_length(), np.int64)
            self._entered = 0


def spelled_otherwise(starts: Int64s, ends: Int64s, text: Bytes) -> bool:
    """Whether some of these texts may have the name of another: see ``naming.text_name``.

    Told from a few of their bytes, as names are many where this is asked; now and then one is suspected wrongly.
    """
    if not len(text):
        return False
    some = np.flatnonzero(_BEGINS[text[np.minimum(starts, len(text) - 1)]])
    starts, ends = starts[some], ends[some]
    long = ends > starts + 1
    if not long.all():
        starts, ends = starts[long], ends[long]
    if not len(starts):
        return False
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


def _longer(values: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """The same values with room for so many, and for half as many again."""
    if length <= len(values):
        return values
    grown = np.empty(length + length // 2, values.dtype)
    grown[: len(values)] = values
    return grown
