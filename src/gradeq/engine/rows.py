"""The forms that a learner's rows can take: all ones, one active index, a table, sparse entries, pairs.

All of them become ``Rows``. The margin is summed in the same order either way, so the form of a row does not show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gradeq.engine.scalars import Ints, as_array, check_finite, check_index, floats, integers
from gradeq.errors import BadInput
from gradeq.ledger.batch import Rows, constant, single
from gradeq.records import copy_with

NOTHING = np.empty(0, dtype=np.int64)
NO_VALUES = np.empty(0)


class Sparse(NamedTuple):
    """Sparse rows (CSR): entries starts[i] to starts[i + 1] of ``index`` and ``value`` belong to row i."""

    starts: Any
    index: Any
    value: Any


class PairRows(NamedTuple):
    """Two players a row: -1 at ``a``, +1 at ``b``, so that the margin is theta_b - theta_a."""

    a: Any
    b: Any


@dataclass(frozen=True)
class RowTable:
    """Rows over ``width`` parameters, converted but not yet looked at; single ones have only their index so far."""

    rows: Rows
    width: int

    def __len__(self) -> int:
        if self.rows.dense:
            return len(self.rows.values) // self.width
        return len(self.rows.params) if self.rows.single else len(self.rows.starts) - 1

    def cut(self, first: int, stop: int) -> Rows:
        """Rows first to stop."""
        rows = self.rows
        if rows.single:
            return single(rows.params[first:stop])
        if rows.dense:
            own = slice(first * self.width, stop * self.width)
            return copy_with(rows, values=rows.values[own])
        own = slice(rows.starts[first], rows.starts[stop])
        starts = rows.starts[first : stop + 1] - rows.starts[first]
        return Rows(starts, rows.params[own], rows.values[own])

    def check(self, first: int, stop: int) -> None:
        """Refuse indices out of range and values that are not finite."""
        rows = self.cut(first, stop)
        if rows.dense:
            check_finite(rows.values.reshape(-1, self.width), "rows", first)
        elif rows.single:
            check_index(rows.params, "rows", self.width, first)
        else:
            entry = int(self.rows.starts[first])
            check_index(rows.params, "rows.index", self.width, entry, "entry")
            check_finite(rows.values, "rows.value", entry, "entry")


def table(rows: object, width: int, count: int) -> RowTable:
    """Any form of rows: None is one parameter with z = 1, integers are one active index, else as they are."""
    if rows is None:
        if width != 1:
            raise BadInput(f"rows=None serves one parameter, not {width}; give rows")
        return _indexed(constant(count, 0), 1)
    if isinstance(rows, Sparse):
        return RowTable(_sparse(rows), width)
    if isinstance(rows, PairRows):
        return RowTable(_pairs(rows), width)
    array = as_array(rows, "rows")
    if array.ndim == 1 and (array.dtype.kind in "iu" or not array.size):
        return _indexed(integers(array, "rows"), width)
    if array.ndim == 1:
        raise BadInput(
            f"rows: a column of {array.dtype}; give a table (rows, parameters), or integers for one active index"
        )
    matrix = floats(array, "rows", dimensions=2)
    if matrix.shape[1] != width:
        raise BadInput(f"rows: {matrix.shape[1]} columns for {width} parameters; give one each")
    return RowTable(Rows(NOTHING, NOTHING, matrix.reshape(-1), dense=True), width)


def one_row(row: object, width: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The entries of one row: None, an index, a dense row, or Sparse / Pairs of one row."""
    if row is None and width == 1:
        return (0,), (1.0,)
    if isinstance(row, (int, np.integer)) and not isinstance(row, bool):
        check_index(np.array([row], dtype=np.int64), "row", width)
        return (int(row),), (1.0,)
    if isinstance(row, PairRows):
        row = PairRows(np.atleast_1d(row.a), np.atleast_1d(row.b))
    elif row is not None and not isinstance(row, Sparse):
        row = floats(row, "row")[None, :]
    made = table(row, width, 1)
    if len(made) != 1:
        raise BadInput(f"row: {len(made)} rows where one is served; use run for more")
    made.check(0, 1)
    params = range(width) if made.rows.dense else made.rows.params.tolist()
    return tuple(params), tuple(made.rows.values.tolist())


def _indexed(index: Ints, width: int) -> RowTable:
    return RowTable(Rows(NOTHING, index, NO_VALUES, single=True), width)


def _sparse(rows: Sparse) -> Rows:
    starts = integers(rows.starts, "rows.starts")
    index = integers(rows.index, "rows.index")
    value = floats(rows.value, "rows.value")
    if not len(starts) or starts[0] != 0 or (np.diff(starts) < 0).any():
        raise BadInput("rows.starts: must begin with 0 and never fall; entry i + 1 ends row i")
    if not len(index) == len(value) == starts[-1]:
        raise BadInput(
            f"rows: starts end at {starts[-1]}, but there are {len(index)} indices and {len(value)} values; "
            "give one of each for every entry"
        )
    return Rows(starts, index, value)


def _pairs(rows: PairRows) -> Rows:
    a, b = integers(rows.a, "rows.a"), integers(rows.b, "rows.b")
    if len(a) != len(b):
        raise BadInput(f"rows: {len(a)} values of a and {len(b)} of b; give one of each for a row")
    if (a == b).any():
        i = int(np.argmax(a == b))
        raise BadInput(f"rows: row {i} pairs {a[i]} with itself; drop such rows")
    index = np.stack((a, b), axis=1).ravel()
    return Rows(np.arange(len(a) + 1) * 2, index, np.tile(np.array([-1.0, 1.0]), len(a)))
