"""What a run adds up for its summary: means over the labelled rows, and over those of each group.

The certificate is the layer's own; these figures are about the rows of this run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradeq.files.numbers import Floats

WEIGHT = "weight"


class Sums:
    """Sums of named columns over rows, compensated from piece to piece.

    ``weighted``: each row counts as much as its weight, and so do the means.
    """

    def __init__(self, names: Sequence[str], weighted: bool = False) -> None:
        self.rows = 0
        self.weighted = weighted
        self._sums = dict.fromkeys([*names, WEIGHT] if weighted else names, 0.0)
        self._rests = dict.fromkeys(self._sums, 0.0)

    def add(self, columns: Mapping[str, Floats], rows: int, weights: Floats | None = None) -> None:
        """Take the next rows, with their weights where sums are weighted."""
        self.rows += rows
        for name in self._sums:
            part = float(scaled(columns, name, weights if self.weighted else None).sum())
            total = self._sums[name]
            new = total + part
            # What rounding lost of the smaller of the two (Neumaier).
            small, large = sorted((total, part), key=abs)
            self._rests[name] += (large - new) + small
            self._sums[name] = new

    def total(self, name: str) -> float:
        """The sum of a column."""
        return self._sums[name] + self._rests[name]

    def mean(self, name: str) -> float:
        """The mean of a column, 0 over no rows."""
        whole = self.total(WEIGHT) if self.weighted else self.rows
        return self.total(name) / whole if whole else 0.0


def scaled(columns: Mapping[str, Floats], name: str, weights: Floats | None) -> Floats:
    """A column times the weights; as it is without them."""
    if weights is None:
        return columns[name]
    return weights if name == WEIGHT else weights * columns[name]


class GroupSums:
    """The same for each code of a column of codes, growing as codes appear."""

    def __init__(self, names: Sequence[str], weighted: bool = False) -> None:
        self.weighted = weighted
        self.names = (*names, WEIGHT) if weighted else tuple(names)
        self.rows: Any = np.zeros(0, np.int64)
        self._sums: Any = np.zeros((len(self.names), 0))

    def add(
        self,
        codes: Any,
        columns: Mapping[str, Floats],
        groups: int,
        weights: Floats | None = None,
    ) -> None:
        """Take the next rows with their codes, all below ``groups``."""
        if groups > len(self.rows):
            more = groups - len(self.rows)
            self.rows = np.concatenate([self.rows, np.zeros(more, np.int64)])
            self._sums = np.concatenate([self._sums, np.zeros((len(self.names), more))], axis=1)
        places: Any = slice(None)
        if len(self.rows) > 4 * len(codes):  # many groups: only those of these rows are touched
            places, codes = self._occurring(codes)
        size = len(self.rows[places])
        self.rows[places] += np.bincount(codes, minlength=size)
        for row, name in zip(self._sums, self.names, strict=True):
            values = scaled(columns, name, weights if self.weighted else None)
            row[places] += np.bincount(codes, values, size)

    def _occurring(self, codes: Any) -> tuple[Any, Any]:
        """The codes that occur, ascending, and the place of each row's among them."""
        here = np.zeros(len(self.rows), bool)
        here[codes] = True
        places = np.flatnonzero(here)
        order = np.empty(len(self.rows), np.int64)
        order[places] = np.arange(len(places))
        return places, order[codes]

    def totals(self, name: str) -> Floats:
        """Every group's sum of a column."""
        found: Floats = self._sums[self.names.index(name)]
        return found

    def total(self, code: int, name: str) -> float:
        """A group's sum of a column."""
        return float(self._sums[self.names.index(name), code])

    def mean(self, code: int, name: str) -> float:
        """A group's mean of a column, 0 over no rows."""
        whole = self.total(code, WEIGHT) if self.weighted else int(self.rows[code])
        return self.total(code, name) / whole if whole else 0.0
