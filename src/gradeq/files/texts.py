"""A hash table from texts to codes, over their bytes as arrow holds them: many at once, compiled."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gradeq.kernels.compile import fields
from gradeq.kernels.texts import Table, Texts

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_EIGHT = 8
_TOGETHER = 32  # texts; what they are compared with fits into the cache


class TextCodes:
    """Code of each text, counted in order of first appearance; grows as texts come."""

    def __init__(self) -> None:
        self.count = 0
        self._slots = np.zeros(2, np.int64)
        self._bounds = np.full(1, _EIGHT, np.int64)
        self._names = np.zeros(_EIGHT, np.uint8)

    def __call__(
        self, starts: Int64s, ends: Int64s, text: Bytes, loop: Callable[..., Any]
    ) -> Int64s:
        """Codes of the texts text[starts[i]:ends[i]]; ``loop`` is code_texts, compiled."""
        codes = np.empty(len(starts), np.int64)
        old = self._make_room(len(starts), int((ends - starts).sum()))
        texts = fields(Texts(starts, ends, text, eights(text)))
        table = fields(Table(self._slots, self._bounds, self._names, eights(self._names)))
        scratch = np.empty((2, _TOGETHER), np.int64)
        self.count = loop(texts, table, old, codes, *scratch, self.count)
        return codes

    def spelled(self, codes: range) -> list[str]:
        """The names of codes that follow each other."""
        bounds = self._bounds[codes.start : codes.stop + 1].tolist()
        text = self._names[: bounds[-1]].data
        return [str(text[a:b], "utf-8", "surrogatepass") for a, b in pairwise(bounds)]

    def _make_room(self, more: int, size: int) -> Int64s:
        """Room for so many texts and bytes more; the slots as they were, where there are new ones."""
        self._bounds = _longer(self._bounds, self.count + 1 + more)
        self._names = _longer(self._names, int(self._bounds[self.count]) + size)
        wanted = 3 * (self.count + more) // 2
        if 2 * wanted <= len(self._slots):
            return self._slots[:0]
        old, self._slots = self._slots, np.zeros(2 << wanted.bit_length(), np.int64)
        return old


def eights(text: Bytes) -> Int64s:
    """The eight bytes from each byte on, as one number; the last seven bytes begin none."""
    count = max(0, len(text) - _EIGHT + 1)
    return np.ndarray((count,), np.int64, text, strides=(1,))


def _longer(values: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """The same values with room for so many, and for half as many again."""
    if length <= len(values):
        return values
    grown = np.empty(length + length // 2, values.dtype)
    grown[: len(values)] = values
    return grown
