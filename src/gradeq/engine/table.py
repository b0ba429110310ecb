"""The forms that rows can take: all ones, one active index, dense, sparse, pairs.

Every form can be read as sparse entries, and each has a quicker loop of its own for plain descent. The margin is
summed in the same order either way, so the form of a row does not show in the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from gradeq.engine.door import (
    Floats,
    Ints,
    as_array,
    check_finite,
    check_index,
    floats,
    integers,
)
from gradeq.errors import BadInput
from gradeq.kernels import learning
from gradeq.kernels.call import unsigned


class Entries(NamedTuple):
    """Rows as entries: row i has entries starts[i] to starts[i + 1] of ``params`` and ``value``."""

    starts: Ints
    params: Ints
    value: Floats


class Table(Protocol):
    """Rows in one of the forms."""

    def __len__(self) -> int:
        """How many rows there are."""
        ...

    def check(self, first: int, stop: int, dimension: int) -> None:
        """Refuse rows first to stop if they do not fit that many parameters."""
        ...

    def entries(self, first: int, stop: int) -> Entries:
        """Rows first to stop as sparse entries."""
        ...

    def quick(self, dimension: int) -> tuple[Callable[..., int], tuple[Any, ...]]:
        """The loop of plain descent for this form, and what it reads of the rows; indices are in range."""
        ...


class Sparse(NamedTuple):
    """Sparse rows (CSR): entries starts[i] to starts[i + 1] of ``index`` and ``value`` belong to row i."""

    starts: Any
    index: Any
    value: Any


class Pairs(NamedTuple):
    """Two players a row: -1 at ``a``, +1 at ``b``, so that the margin is theta_b - theta_a."""

    a: Any
    b: Any


def table(rows: Any, dimension: int, count: int) -> Table:
    """Rows at the door: None is one parameter with z = 1, integers are one active index, else as they are."""
    if rows is None:
        return Ones(count)
    if isinstance(rows, Sparse):
        return _sparse(rows)
    if isinstance(rows, Pairs):
        return _pairs(rows)
    array = as_array("rows", rows)
    if array.ndim == 1 and (array.dtype.kind in "iu" or not array.size):
        return Active(integers("rows", array))
    if array.ndim == 1:
        raise BadInput(
            f"rows: a column of {array.dtype}; give a table (rows, parameters), or integers for one active index"
        )
    matrix = floats("rows", array, dimensions=2)
    if matrix.shape[1] != dimension:
        raise BadInput(f"rows: {matrix.shape[1]} columns for {dimension} parameters; give one each")
    return Dense(matrix)


def single(row: Any, dimension: int) -> Table:
    """One row at the door: None, an index, a dense row, or Sparse / Pairs of one row."""
    if row is None:
        return Ones(1)
    if isinstance(row, Sparse):
        return _sparse(row)
    if isinstance(row, Pairs):
        return _pairs(Pairs(np.atleast_1d(row.a), np.atleast_1d(row.b)))
    if isinstance(row, (int, np.integer)) and not isinstance(row, bool):
        return Active(np.array([row], dtype=np.int64))
    column = floats("row", row)
    return table(column[None, :], dimension, 1)


@dataclass(frozen=True)
class Ones:
    """One parameter, z = 1."""

    count: int

    def __len__(self) -> int:
        return self.count

    def check(self, first: int, stop: int, dimension: int) -> None:
        """Only one parameter needs no rows."""
        if dimension != 1:
            raise BadInput(f"rows=None serves one parameter, not {dimension}; give rows")

    def entries(self, first: int, stop: int) -> Entries:
        """Index 0 with value 1."""
        n = stop - first
        return Entries(np.arange(n + 1), np.zeros(n, dtype=np.int64), np.ones(n))

    def quick(self, dimension: int) -> tuple[Callable[..., int], tuple[Any, ...]]:
        """The scalar loop."""
        return learning.scalar, ()


@dataclass(frozen=True)
class Active:
    """One active parameter a row, z = 1 there: disjoint groups, or keyed series."""

    index: Ints

    def __len__(self) -> int:
        return len(self.index)

    def check(self, first: int, stop: int, dimension: int) -> None:
        """Indices lie in range."""
        check_index("rows", self.index[first:stop], dimension, first)

    def entries(self, first: int, stop: int) -> Entries:
        """One entry a row."""
        n = stop - first
        return Entries(np.arange(n + 1), self.index[first:stop], np.ones(n))

    def quick(self, dimension: int) -> tuple[Callable[..., int], tuple[Any, ...]]:
        """The loop over one active index, which looks at the range itself."""
        return learning.indexed, (self.index,)


@dataclass(frozen=True)
class Dense:
    """A table (rows, parameters)."""

    rows: Floats

    def __len__(self) -> int:
        return len(self.rows)

    def check(self, first: int, stop: int, dimension: int) -> None:
        """All entries are finite."""
        check_finite("rows", self.rows[first:stop], first, total=len(self))

    def entries(self, first: int, stop: int) -> Entries:
        """Every parameter is an entry."""
        n, d = stop - first, self.rows.shape[1]
        index = np.tile(np.arange(d), n)
        return Entries(np.arange(n + 1) * d, index, self.rows[first:stop].ravel())

    def quick(self, dimension: int) -> tuple[Callable[..., int], tuple[Any, ...]]:
        """The dense loop."""
        return learning.dense, (self.rows,)


@dataclass(frozen=True)
class Listed:
    """Sparse rows, checked and converted."""

    starts: Ints
    index: Ints
    value: Floats

    def __len__(self) -> int:
        return len(self.starts) - 1

    def check(self, first: int, stop: int, dimension: int) -> None:
        """Indices lie in range, values are finite."""
        cut = slice(self.starts[first], self.starts[stop])
        check_index("rows.index", self.index[cut], dimension, int(cut.start), "entry")
        check_finite("rows.value", self.value[cut], int(cut.start), "entry", len(self))

    def entries(self, first: int, stop: int) -> Entries:
        """The entries of these rows alone."""
        cut = slice(self.starts[first], self.starts[stop])
        starts = self.starts[first : stop + 1] - self.starts[first]
        return Entries(starts, self.index[cut], self.value[cut])

    def quick(self, dimension: int) -> tuple[Callable[..., int], tuple[Any, ...]]:
        """The sparse loop."""
        check_index("rows.index", self.index, dimension, unit="entry")
        return learning.sparse, (*unsigned(self.starts, self.index), self.value)


def _sparse(rows: Sparse) -> Listed:
    starts = integers("rows.starts", rows.starts)
    index = integers("rows.index", rows.index)
    value = floats("rows.value", rows.value)
    if not len(starts) or starts[0] != 0 or (np.diff(starts) < 0).any():
        raise BadInput("rows.starts: must begin with 0 and never fall; entry i + 1 ends row i")
    if not len(index) == len(value) == starts[-1]:
        raise BadInput(
            f"rows: starts end at {starts[-1]}, but there are {len(index)} indices and {len(value)} values; "
            "give one of each for every entry"
        )
    return Listed(starts, index, value)


def _pairs(rows: Pairs) -> Listed:
    a, b = integers("rows.a", rows.a), integers("rows.b", rows.b)
    if len(a) != len(b):
        raise BadInput(f"rows: {len(a)} values of a and {len(b)} of b; give one of each for a row")
    if (a == b).any():
        i = int(np.argmax(a == b))
        raise BadInput(f"rows: row {i} pairs {a[i]} with itself; drop such rows")
    index = np.stack((a, b), axis=1).ravel()
    return Listed(np.arange(len(a) + 1) * 2, index, np.tile(np.array([-1.0, 1.0]), len(a)))
