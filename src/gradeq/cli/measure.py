"""What a run adds up: means over all labelled rows, over each group, and the gradient of each parameter.

These sums are taken from the rows themselves, apart from those that the layer keeps in its state;
the certificate compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradeq.engine.batch import posted_when_due
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
        self.rows += np.bincount(codes, minlength=len(self.rows))
        for row, name in zip(self._sums, self.names, strict=True):
            values = scaled(columns, name, weights if self.weighted else None)
            row += np.bincount(codes, values, len(self.rows))

    def total(self, code: int, name: str) -> float:
        """A group's sum of a column."""
        return float(self._sums[self.names.index(name), code])

    def mean(self, code: int, name: str) -> float:
        """A group's mean of a column, 0 over no rows."""
        whole = self.total(code, WEIGHT) if self.weighted else int(self.rows[code])
        return self.total(code, name) / whole if whole else 0.0


class Gradients:
    """The sum of weight times gradient over the rows that were learned from, by coordinate.

    ``groups`` columns of codes and ``features`` columns of numbers; without either there is one
    coordinate. An error may have several parts (levels), each summed by itself.
    """

    def __init__(self, parts: int, groups: int, features: int) -> None:
        self.weight = Sums(["weight"])
        self._all = [Sums(["g"]) for _ in range(parts)]
        self._groups = [[GroupSums(["g"]) for _ in range(groups)] for _ in range(parts)]
        self._features = [Sums([str(k) for k in range(features)]) for _ in range(parts)]

    def add(
        self, errors: Floats, weights: Floats, codes: Sequence[Any], sizes: Sequence[int], x: Any
    ) -> None:
        """Take rows that were learned from; ``errors`` has one column for each part."""
        n = len(errors)
        self.weight.add({"weight": weights}, n)
        for k in range(len(self._all)):
            g = weights * errors[:, k]
            self._all[k].add({"g": g}, n)
            for sums, code, size in zip(self._groups[k], codes, sizes, strict=True):
                sums.add(code, {"g": g}, size)
            if x is not None:
                columns = {str(j): g * x[:, j] for j in range(x.shape[1])}
                self._features[k].add(columns, n)

    def averages(
        self, names: Sequence[Sequence[str]], features: Sequence[str], part: int = 0
    ) -> dict[str, float]:
        """The average gradient by parameter name, over all weight learned from."""
        weight = self.weight.total("weight") or 1.0
        if not names and not features:
            return {"(all)": self._all[part].total("g") / weight}
        found = {
            name: sums.total(code, "g") / weight if code < len(sums.rows) else 0.0
            for sums, column in zip(self._groups[part], names, strict=True)
            for code, name in enumerate(column)
        }
        for j, name in enumerate(features):
            found[name] = self._features[part].total(str(j)) / weight
        return found


class Late:
    """Which rows were learned from when labels have times of their own: a second look at the rule.

    Rows wait here until their label is due, or for ever; memory is that of the labels in flight.
    """

    def __init__(self, ttl: float | None) -> None:
        self.ttl = ttl
        self._times: Any = None
        self._due: Any = None
        self._columns: list[Any] = []

    @property
    def waiting(self) -> int:
        """Labels that are not due yet."""
        return 0 if self._times is None else len(self._times)

    def settle(self, times: Any, due: Any, opens: Any, columns: Sequence[Any]) -> list[Any]:
        """Take served rows with their columns; the columns of all rows now learned from."""
        waiting = 0 if self._times is None else len(self._times)
        if waiting:
            times = np.concatenate([self._times, times])
            due = np.concatenate([self._due, due])
            opens = np.concatenate([np.ones(waiting, bool), opens])
            columns = [np.concatenate([a, b]) for a, b in zip(self._columns, columns, strict=True)]
        posting = posted_when_due(times, due, opens, waiting, self.ttl)
        kept = posting.waiting
        self._times, self._due = times[kept], due[kept]
        self._columns = [column[kept] for column in columns]
        return [column[posting.posts] for column in columns]
