"""Several columns as one prediction: K forecasts a row in, K served values out in the same form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.errors import BadInput
from gradeq.layers import columns as door

if TYPE_CHECKING:
    from gradeq.ledger.batch import Floats


def forecasts(predictions: Any, count: int) -> Floats:
    """One forecast for all levels, or one each, as (n, count), sorted within each row; (n,) for one level.

    Takes one column, a list of ``count`` columns, an (n, count) array, or a dataframe of ``count`` columns.
    """
    if is_table(predictions, count) and np.isfinite(predictions).all():
        return in_order(predictions)  # one look at all of it; what is wrong is told by column
    columns = split(predictions)
    if columns is None:
        one = door.numbers(predictions, "prediction")
        return one if count == 1 else np.repeat(one[:, None], count, axis=1)
    if len(columns) not in (1, count):
        raise BadInput(
            f"{len(columns)} prediction columns for {count} levels; give one, or one for each level"
        )
    checked = [door.numbers(column, "prediction") for column in columns]
    for column in checked:
        door.same_length(len(checked[0]), len(column), "a prediction column")
    if count == 1:
        return checked[0]
    checked = checked * count if len(checked) == 1 else checked
    return in_order(np.stack(checked, axis=1))


def is_table(predictions: Any, count: int) -> bool:
    """Whether this is an array of float64 with a column for each of several levels."""
    array = isinstance(predictions, np.ndarray) and predictions.dtype == np.float64
    return array and predictions.ndim == 2 and predictions.shape[1] == count > 1


def in_order(table: Floats) -> Floats:
    """Each row sorted: mostly it is already, and looking costs a fraction of sorting."""
    return table if (table[:, 1:] >= table[:, :-1]).all() else np.sort(table, axis=1)


def split(predictions: Any) -> list[Any] | None:
    """The columns of a two-dimensional input; None when it is one column."""
    if isinstance(predictions, np.ndarray):
        return list(predictions.T) if predictions.ndim == 2 else None
    if isinstance(predictions, (list, tuple)):
        return list(predictions) if len(predictions) and is_column(predictions[0]) else None
    if hasattr(predictions, "columns"):
        frame = framed(predictions)
        return [frame[name].to_native() for name in frame.columns]
    return None


def answer(predictions: Any, served: Floats) -> Any:
    """Served values in the form of the predictions: a column for a column, columns for columns."""
    from gradeq import frames

    if served.ndim == 1:
        return frames.like(predictions, served)
    columns = split(predictions)
    if columns is None or isinstance(predictions, np.ndarray) or len(columns) != served.shape[1]:
        return served
    if isinstance(predictions, (list, tuple)):
        return type(predictions)(
            frames.like(column, values) for column, values in zip(columns, served.T, strict=True)
        )
    import narwhals as nw

    frame = framed(predictions)
    return frame.with_columns(
        nw.new_series(name, values, nw.Float64(), backend=frame.implementation)
        if not hasattr(predictions, "index")
        else nw.from_native(frames.like(column, values), series_only=True).alias(name)
        for name, column, values in zip(frame.columns, columns, served.T, strict=True)
    ).to_native()


def is_column(value: Any) -> bool:
    """Whether a value is a column rather than a number or a name."""
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes))


def framed(predictions: Any) -> Any:
    """The dataframe as narwhals sees it."""
    import narwhals as nw

    return nw.from_native(predictions, eager_only=True)
