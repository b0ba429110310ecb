"""Whole columns at the door: any array or dataframe column in, float64 or codes out, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.engine import checks
from gradeq.errors import BadInput
from gradeq.ledger.constants import ones
from gradeq.numerics import FAINT, SMALLEST

if TYPE_CHECKING:
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


def times(values: Any, n: int, what: str, missing: bool = False) -> Any:
    """A column of times that sort (numbers, or timestamps as integer nanoseconds) and which rows have none."""
    from gradeq import frames

    if values is None:
        return None, np.zeros(n, dtype=bool)
    column, absent = frames.moments(values, what, missing=missing)
    same_length(n, len(column), what)
    return column, absent


def cells(column: Any, what: str) -> list[Any]:
    """The cells of any column, as Python has them."""
    from gradeq import frames

    return list(column) if type(column) in (list, tuple) else frames.cells(column, what)


def moment(value: Moment) -> float:
    """One time: a number as it is, a date in nanoseconds since 1970."""
    from gradeq import frames

    if hasattr(value, "isoformat") or isinstance(value, np.datetime64):
        return float(frames.moments([value], "time").values[0])
    return checks.number(value, "time")


def named(given: Any, wanted: Sequence[str], what: str) -> list[tuple[str, Any]]:
    """The wanted columns of a mapping or dataframe, in order."""
    if not wanted:
        if given is not None and len(given):
            raise BadInput(f"this layer has no {what}s; name them when you make it")
        return []
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
