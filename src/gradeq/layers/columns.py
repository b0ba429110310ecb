"""Whole columns at the door: any array or dataframe column in, float64 or codes out, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.engine import checks
from gradeq.engine.names import check_known, is_given
from gradeq.errors import BadInput
from gradeq.ledger.constants import ones
from gradeq.numerics import FAINT, SMALLEST
from gradeq.spans import NUMBERS, comparable, remedy

if TYPE_CHECKING:
    from gradeq.engine.tickets import Book
    from gradeq.files.times import Times
    from gradeq.ledger.batch import Floats, Ints

Moment = float | date | np.datetime64  # a datetime is a date


def numbers(values: Any, what: str) -> Floats:
    """A column of finite numbers."""
    from gradeq import frames

    return frames.floats(values, what)


def labels(values: Any, n: int) -> Floats:
    """A column of labels: numbers, or missing (nan); None stands for no labels at all."""
    from gradeq import frames

    if values is None:
        return np.full(n, np.nan)
    return frames.floats(values, "label", missing=True)


def weights(values: Any, n: int) -> Floats:
    """A column of weights, 0 or more; None stands for weights of 1."""
    if values is None:
        return ones(n)
    column = numbers(values, "weight")
    if len(column) and column.min() < 0.0:
        rule = "is negative; weights are 0 (do not learn) or more"
        refuse(column < 0.0, column, "weight", rule)
    faint = (column > 0.0) & (column < SMALLEST)
    if faint.any():
        refuse(faint, column, "weight", FAINT)
    return column


def groups(
    given: Mapping[str, Any] | None, wanted: Sequence[str], n: int
) -> list[tuple[Ints, list[str]]]:
    """Codes and names of every group column."""
    from gradeq import frames

    result = []
    for name in named(given, wanted, "group"):
        codes, names = frames.codes(name[1], name[0])
        same_length(n, len(codes), f"group {name[0]!r}")
        result.append((codes, names))
    return result


def features(given: Mapping[str, Any] | None, wanted: Sequence[str], n: int) -> list[Floats]:
    """The feature columns."""
    columns = []
    for name, values in named(given, wanted, "feature"):
        column = numbers(values, f"feature {name}")
        same_length(n, len(column), f"feature {name!r}")
        columns.append(column)
    return columns


def times(values: Any, n: int, what: str, book: Book, missing: bool = False) -> Times:
    """A column of times, of the kind that the layer's rows had so far."""
    from gradeq import frames

    column = frames.moments(values, what, missing=missing)
    same_length(n, len(column.values), what)
    book.check_clock(column.kind, what)
    return column


def clocks(
    given: Any, label_times: Any, n: int, book: Book, row: str = "row"
) -> tuple[Any, Any, Any]:
    """When rows are served, when their labels are known (None where that is not given), and which never are."""
    if given is None:
        if label_times is not None:
            raise BadInput(f"label_times needs times as well: when each {row} was served")
        return None, None, np.zeros(n, dtype=bool)
    when = times(given, n, "times", book)
    if label_times is None:
        return when.values, None, np.zeros(n, dtype=bool)
    due = times(label_times, n, "label_times", book, missing=True)
    if not comparable(when.kind, due.kind):
        raise BadInput(
            f"times and label_times cannot be compared: times holds {when.kind}, label_times {due.kind}; "
            f"{remedy(when.kind, due.kind)}"
        )
    return when.values, due.values, due.missing


def cells(column: Any, what: str) -> list[Any]:
    """The cells of any column, as Python has them."""
    from gradeq import frames

    return list(column) if type(column) in (list, tuple) else frames.cells(column, what)


def moment(value: Moment, book: Book) -> float:
    """One time: a number as it is, a date in nanoseconds since 1970; of the kind that the layer's rows had so far."""
    from gradeq import frames

    if isinstance(value, frames.Times):  # one of a column that was read before
        book.check_clock(value.kind, "time")
        return float(value.values)
    if hasattr(value, "isoformat") or isinstance(value, np.datetime64):
        own = frames.moments([value], "time")
        book.check_clock(own.kind, "time")
        return float(own.values[0])
    number = checks.number(value, "time")
    book.check_clock(NUMBERS, "time")
    return number


def named(given: Any, wanted: Sequence[str], what: str) -> list[tuple[str, Any]]:
    """The wanted columns of a mapping or dataframe, in order."""
    if not wanted:
        if is_given(given):
            raise BadInput(f"this layer has no {what}s; name them when you make it")
        return []
    if isinstance(given, Mapping):  # a data frame may have other columns
        check_known(given, wanted, what)
    result = []
    for name in wanted:
        try:
            result.append((name, given[name]))
        except (KeyError, TypeError, IndexError):
            raise BadInput(f"{what} {name!r} is missing; this layer needs {list(wanted)}") from None
    return result


def same_length(n: int, length: int, what: str) -> None:
    """Refuse columns of other lengths; nothing is ever broadcast."""
    if n != length:
        raise BadInput(
            f"{what} has {length} rows, predictions have {n}; give columns of one length"
        )


def refuse(bad: Any, column: Floats, what: str, rule: str) -> None:
    """One line for the first bad row, with how many there are."""
    count = int(np.count_nonzero(bad))
    if count:
        row = int(np.argmax(bad))
        others = f" ({count} such rows)" if count > 1 else ""
        raise BadInput(f"row {row}: {what} {column[row]} {rule}{others}")
