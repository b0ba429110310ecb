"""Columns of any kind in, checked once, float64 or codes out; results go back in the caller's own type.

numpy arrays, lists and tuples are handled here; pandas, polars and pyarrow through narwhals, which is imported only
when such a column comes.
"""

from __future__ import annotations

import datetime as dt
import numbers as abstract
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from gradeq.engine import scalars
from gradeq.engine.names import check_known, is_given
from gradeq.errors import BadInput
from gradeq.files.cells import from_decimals
from gradeq.files.codebook import Codebook, names_of
from gradeq.files.times import Times
from gradeq.inputs.arguments import MISSING_NAME, as_shown, is_absent
from gradeq.inputs.column_types import Column, ColumnsByName
from gradeq.inputs.durations import NAIVE, NUMBERS, ZONED, comparable, remedy
from gradeq.kernels.account import is_finite
from gradeq.ledger.batch import Floats, Ints
from gradeq.numerics import FAINT, SMALLEST

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa

    from gradeq.engine.tickets import TicketBook
    from gradeq.layers.run import ColumnLayer

Moment = float | dt.date | np.datetime64  # a datetime is a date
Cells = NDArray[Any]  # an array of any kind of cell
Bools = NDArray[np.bool_]
PLAIN = ("builtins", "numpy", "array", "gradeq")  # packages whose columns need no dataframe library


class Codes(NamedTuple):
    """A column of group values as dense codes, and the name of each code."""

    codes: Ints
    names: list[str]


class Clocks(NamedTuple):
    """When rows are served and when their labels are known (None if not passed), and which labels never come."""

    times: Cells | None
    label_times: Cells | None
    never: Bools


# Numbers


def floats(column: object, name: str, *, missing: bool = False) -> Floats:
    """The column as float64; with ``missing`` (labels) an absent value is nan, else it is refused.

    Integers and booleans are promoted before any arithmetic, Decimals converted once. Text, dates and infinite values
    are refused, with the row (from 0).

    >>> floats([True, 2, None], "label", missing=True)
    array([ 1.,  2., nan])
    """
    cells = _array(column, name)
    if cells.dtype.kind in "biuf":
        values: Floats = cells.astype(np.float64, copy=False)
    elif cells.dtype.kind == "O":
        values = np.array([_float(cell, i, name) for i, cell in enumerate(cells.tolist())], np.float64)
    else:
        what = "text" if cells.dtype.kind in "US" else str(cells.dtype)
        raise BadInput(f"{name} holds {what}; convert it to numbers first")
    if is_finite(values):
        return values
    wrong = np.isinf(values) if missing else ~np.isfinite(values)
    if wrong.any():
        i, count = int(np.argmax(wrong)), int(wrong.sum())
        what = "is infinite" if np.isinf(values[i]) else "is missing"
        more = f" ({count} such rows)" if count > 1 else ""
        raise BadInput(f"{name}[{i}] {what}{more}; drop or impute it first")
    return values


def _float(cell: object, i: int, name: str) -> float:
    if isinstance(cell, abstract.Real | Decimal | np.bool_):
        try:
            return float(cell)
        except (OverflowError, ValueError):
            raise BadInput(f"{name}[{i}] is beyond the range of float64; rescale it") from None
    if is_absent(cell):
        return np.nan
    raise BadInput(f"{name}[{i}] is {_kind(cell)}, not a number; convert it first")


def weights(column: object, n: int) -> Floats:
    """A column of n weights, 0 or more."""
    values = floats(column, "weight")
    refuse(values < 0.0, values, "weight", "is negative; weights are 0 (do not learn) or more")
    refuse((values > 0.0) & (values < SMALLEST), values, "weight", FAINT)
    same_length(n, len(values), "weights")
    return values


def same_length(n: int, length: int, what: str) -> None:
    """Refuse columns of other lengths; nothing is ever broadcast."""
    if n != length:
        raise BadInput(f"{what} has {length} rows, predictions have {n}; give columns of one length")


def refuse(bad: Bools, column: Floats, what: str, rule: str) -> None:
    """One line for the first bad row, with how many there are."""
    count = int(np.count_nonzero(bad))
    if count:
        row = int(np.argmax(bad))
        others = f" ({count} such rows)" if count > 1 else ""
        raise BadInput(f"row {row}: {what} {column[row]} {rule}{others}")


# Times


def moments(column: object, name: str, *, missing: bool = False) -> Times:
    """The column as times that sort: numbers as they are, dates in nanoseconds since 1970."""
    if isinstance(column, Times):
        return column
    series = None if _module(column) in PLAIN else _series(column)
    zoned = getattr(getattr(series, "dtype", None), "time_zone", None) is not None
    values = _array(column, name)
    if values.dtype.kind == "O":
        first = next((cell for cell in values if not is_absent(cell)), None)
        if hasattr(first, "isoformat") or isinstance(first, np.datetime64):
            values, zoned = _datetimes(values, name)
    if values.dtype.kind == "M":
        times = Times(_nanoseconds(values, name), np.isnat(values), ZONED if zoned else NAIVE)
    elif values.dtype.kind in "iu":
        times = Times(values.astype(np.int64), np.zeros(len(values), bool), NUMBERS)
    else:
        exact = floats(column, name, missing=True)
        absent = np.isnan(exact)
        times = Times(exact, absent, None if absent.all() else NUMBERS)
    if not missing and times.missing.any():
        raise BadInput(f"{name}[{int(np.argmax(times.missing))}] has no time; drop the row")
    return times


def times(column: object, n: int, what: str, book: TicketBook, missing: bool = False) -> Times:
    """A column of times, of the same kind as the layer's times so far."""
    checked = moments(column, what, missing=missing)
    same_length(n, len(checked.values), what)
    book.check_clock(checked.kind, what)
    return checked


def clocks(served_at: object, label_times: object, n: int, book: TicketBook, row: str = "row") -> Clocks:
    """The times of rows and of their labels, which must be of one kind."""
    never = np.zeros(n, dtype=bool)
    if served_at is None:
        if label_times is not None:
            raise BadInput(f"label_times needs times as well: when each {row} was served")
        return Clocks(None, None, never)
    when = times(served_at, n, "times", book)
    if label_times is None:
        return Clocks(when.values, None, never)
    due = times(label_times, n, "label_times", book, missing=True)
    if not comparable(when.kind, due.kind):
        raise BadInput(
            f"times and label_times cannot be compared: times holds {when.kind}, label_times {due.kind}; "
            f"{remedy(when.kind, due.kind)}"
        )
    return Clocks(when.values, due.values, due.missing)


def moment(value: object, book: TicketBook) -> float:
    """One time of the same kind as the layer's times so far: a number, or a date in nanoseconds since 1970."""
    if hasattr(value, "isoformat") or isinstance(value, np.datetime64):
        date = moments([value], "time")
        book.check_clock(date.kind, "time")
        return float(date.values[0])
    number = scalars.as_number(value, "time")
    book.check_clock(NUMBERS, "time" if book.clock_before == NUMBERS else f"time={as_shown(value)}")
    return number


def _datetimes(values: Cells, name: str) -> tuple[Cells, bool]:
    """Python dates and datetimes in UTC, and whether they have a zone: all of them must, or none."""
    zones: set[bool] = set()
    nanoseconds = np.full(len(values), np.datetime64("NaT", "ns")).view(np.int64)
    for i, cell in enumerate(values):
        if is_absent(cell):  # NaT is a date to Python
            continue
        if not isinstance(cell, dt.date | np.datetime64):
            raise BadInput(f"{name}[{i}] is {_kind(cell)} among dates; use one kind of time")
        zoned = isinstance(cell, dt.datetime) and cell.utcoffset() is not None
        zones.add(zoned)
        if len(zones) > 1:
            raise BadInput(
                f"{name}[{i}] is a time {'with' if zoned else 'without'} a zone among others; use one kind"
            )
        if hasattr(cell, "to_datetime64"):  # pandas: nanoseconds, in UTC
            cell = cell.to_datetime64()
        elif isinstance(cell, dt.datetime) and zoned:
            cell = cell.astimezone(dt.UTC).replace(tzinfo=None)
        nanoseconds[i] = _nanoseconds(np.array([np.datetime64(cell)]), name)[0]
    return nanoseconds.view("datetime64[ns]"), True in zones


def _nanoseconds(values: Cells, name: str) -> Ints:
    """Dates in nanoseconds since 1970; numpy itself would wrap around beyond the range."""
    exact = values.astype("datetime64[ns]")
    wrapped = (exact.astype(values.dtype) != values) & ~np.isnat(values)
    if wrapped.any():
        i = int(np.argmax(wrapped))
        raise BadInput(
            f"{name}[{i}] is {values[i]}, outside 1677-09-22 to 2262-04-11, the range of 64-bit nanoseconds; "
            "use numbers for such times"
        )
    return exact.view(np.int64)


# Groups, features, names


def grouped(
    layer: ColumnLayer, base: Floats, groups: ColumnsByName | None, features: ColumnsByName | None
) -> tuple[list[Codes], list[Floats]]:
    """Codes and names of every group column of a layer, the bins of ``base`` included, and the feature columns."""
    roster, bins, n = layer.internals.names, getattr(layer, "bins", None), len(base)
    if bins is not None:
        groups = bins.added_columns(groups, roster.groups, base)
    group_codes: list[Codes] = []
    numbers: list[Floats] = []
    for name, column in needed_columns("group", groups, roster.groups):
        group_codes.append(codes(column, name))
        same_length(n, len(group_codes[-1].codes), f"group {name!r}")
    for name, column in needed_columns("feature", features, roster.features):
        numbers.append(floats(column, f"feature {name}"))
        same_length(n, len(numbers[-1]), f"feature {name!r}")
    return group_codes, numbers


def needed_columns(what: str, columns: ColumnsByName | None, names: Sequence[str]) -> Iterator[tuple[str, object]]:
    """The columns that a layer needs, in the order of its names."""
    if not names and is_given(columns):
        raise BadInput(f"this layer has no {what}s; name them when you make it")
    if names and isinstance(columns, Mapping):  # a data frame may have other columns
        check_known(columns, names, what)
    for name in names:
        try:
            yield name, cast(ColumnsByName, columns)[name]
        except (KeyError, TypeError, IndexError):
            raise BadInput(f"{what} {name!r} is missing; this layer needs {list(names)}") from None


def codes(column: object, name: str) -> Codes:
    """The column's values as codes in order of first appearance, absent ones as "(missing)".

    Categoricals and arrow dictionaries are taken as they are, without spelling out their rows.

    >>> codes(["b", "a", None, "b"], "race")
    Codes(codes=array([0, 1, 2, 0]), names=['b', 'a', '(missing)'])
    """
    book = Codebook()
    return Codes(coded(column, name, book), book.names)


def coded(column: object, name: str, book: Codebook) -> Ints:
    """The codes of a column in ``book``, which learns new names: a million names are not copied for every batch."""
    if isinstance(column, list | tuple):
        texts = book.of_texts(column)
        if texts is not None:
            return texts
        _array(column, name)  # rows of several values are refused
        return book.of_cells(column)  # not the array: there, True beside 1 is 1
    if isinstance(column, np.ma.MaskedArray):
        _array(column, name)
        return book.of_cells(column.tolist())
    if _module(column) in PLAIN:
        return book.of_array(_array(column, name))
    import pyarrow as pa

    arrow, series = column, None if isinstance(column, pa.Array | pa.ChunkedArray) else _series(column)
    if series is not None:
        import narwhals as nw

        try:
            arrow = nw.maybe_reset_index(series).to_arrow()  # pyarrow looks for a row labelled 0
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # objects of several kinds in one column
            arrow = None
        # Objects that arrow brought to one kind would change their names: 1 beside 0.5 is "1.0".
        if arrow is not None and series.dtype == nw.Object and not pa.types.is_string(arrow.type):
            arrow = None
    if not isinstance(arrow, pa.Array | pa.ChunkedArray):
        return book.of_cells(_array(column, name).tolist())
    return book.codes(arrow)


def player_codes(column: object, what: str) -> Codes:
    """The code of each row and the name of each code (some may have no row); an absent name is refused."""
    players = None
    if isinstance(column, np.ndarray) and column.ndim == 1:
        if column.dtype.kind in "iu" and column.dtype != np.uint64:
            players = _integer_codes(column)
    elif _module(column) == "pyarrow":
        players = _dictionary_codes(column)
    players = players or codes(column, what)
    if MISSING_NAME in players.names:
        absent = np.flatnonzero(players.codes == players.names.index(MISSING_NAME))
        if len(absent):
            raise BadInput(f"row {absent[0]}: {what} has no name; drop the game or name the player")
    return players


def _integer_codes(column: Cells) -> Codes | None:
    """Numbers that lie close together are their own codes, counted from the smallest."""
    if not len(column):
        return None
    low, high = int(column.min()), int(column.max())
    if high - low > 2 * len(column) + 1000:
        return None
    return Codes(column.astype(np.int64) - low, [str(low + code) for code in range(high - low + 1)])


def _dictionary_codes(column: pa.Array) -> Codes | None:
    """An arrow dictionary without absent values as it is."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return None
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            return None
    names = names_of(column.dictionary)
    if column.null_count or len(set(names)) < len(names):
        return None
    return Codes(column.indices.to_numpy(zero_copy_only=False).astype(np.int64), names)


# Any column


def cells(column: object, name: str) -> list[Any]:
    """The cells of a column as Python has them: text, whole numbers, floats, None."""
    if isinstance(column, list | tuple):
        return list(column)
    plain = _module(column) in PLAIN and not isinstance(column, np.ma.MaskedArray)
    series = None if plain else _series(column)
    return list(_array(column, name).tolist() if series is None else series.to_list())


def same_index(**columns: object) -> None:
    """Refuse pandas columns with different indexes: rows are joined by position, and pandas would join by index.

    Columns of groups or features may come in a mapping.
    """
    indexes: dict[str, Any] = {}
    for name, value in columns.items():
        several = {f"{name}[{key!r}]": column for key, column in value.items()} if isinstance(value, Mapping) else {}
        for each, column in (several or {name: value}).items():
            if _module(column) == "pandas" and hasattr(column, "index"):
                indexes[each] = column.index
    first = next(iter(indexes), "")
    for name, index in indexes.items():
        if len(index) == len(indexes[first]) and not index.equals(indexes[first]):
            raise BadInput(
                f"{first} and {name} are pandas columns with different indexes; give {name} the index of "
                f"{first} (reindex), or its .to_numpy() to join rows by position"
            )


def _module(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _array(column: object, name: str) -> Cells:
    """The column as a one-dimensional numpy array, absent values as nan, NaT or None."""
    if isinstance(column, str | bytes) or not hasattr(column, "__len__"):
        raise BadInput(f"{name} is {_kind(column)}; a column of values is needed")
    if isinstance(column, dict | set | frozenset):
        raise BadInput(f"{name} is {_kind(column)}; a column of values in order is needed")
    values = None if _module(column) in PLAIN else _native_array(column)
    if values is not None:
        pass
    elif isinstance(column, np.ma.MaskedArray) and column.dtype.kind in "biuf":
        values = np.asarray(np.ma.filled(column.astype(np.float64), np.nan))
    elif isinstance(column, np.ma.MaskedArray):
        values = np.asarray(column.tolist(), object)
    else:
        try:
            values = np.asarray(column)
        except (ValueError, OverflowError):
            raise BadInput(f"{name} holds rows of different lengths; one value per row") from None
        if values.dtype.kind in "US" and isinstance(column, list | tuple):
            # numpy turns everything into text if there is one text among the numbers
            values = np.empty(len(column), object)
            values[:] = column
    if values.ndim != 1:
        raise BadInput(f"{name} has shape {values.shape}; one column of values is needed")
    return values


def _native_array(column: object) -> Cells | None:
    import narwhals as nw

    series = _series(column)
    if series is None:
        return None
    if series.dtype == nw.Decimal:
        return from_decimals(nw.maybe_reset_index(series).to_arrow())
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        exact = series.dtype.is_integer() and not series.null_count()
        return np.asarray((series if exact else series.cast(nw.Float64)).to_numpy())
    if series.dtype == nw.Date or series.dtype == nw.Datetime:
        if getattr(series.dtype, "time_zone", None):
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        values = np.asarray(series.to_numpy())
        return values if values.dtype.kind == "M" else np.asarray(values, object)
    return np.asarray(series.to_list() or [], dtype=object)


def _series(column: object) -> nw.Series[Any] | None:
    """The column as narwhals sees it; a pyarrow array becomes a chunked one first."""
    import narwhals as nw

    if _module(column) == "pyarrow":
        import pyarrow as pa

        if isinstance(column, pa.Array):
            column = pa.chunked_array([column])
        if isinstance(column, pa.ChunkedArray) and pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
    series = nw.from_native(cast(Any, column), series_only=True, pass_through=True)
    return series if isinstance(series, nw.Series) else None


def _kind(value: object) -> str:
    return f"{'text' if isinstance(value, str) else type(value).__name__} ({as_shown(value)})"


# Several forecasts, and results in the type of the input


def forecasts(predictions: object, count: int) -> Floats:
    """One forecast for all levels, or one each, as (n, count), sorted within each row; (n,) for one level.

    Takes one column, a list of ``count`` columns, an (n, count) array, or a dataframe of ``count`` columns.
    """
    table = predictions if isinstance(predictions, np.ndarray) and predictions.ndim == 2 else None
    if table is not None and table.dtype == np.float64 and table.shape[1] == count > 1 and np.isfinite(table).all():
        return _sorted_rows(table)  # fast path; errors are reported by column below
    columns = split(predictions)
    if columns is None:
        one = floats(predictions, "prediction")
        return one if count == 1 else np.repeat(one[:, None], count, axis=1)
    if len(columns) not in (1, count):
        raise BadInput(f"{len(columns)} prediction columns for {count} levels; give one, or one for each level")
    checked = [floats(column, "prediction") for column in columns]
    for column in checked:
        same_length(len(checked[0]), len(column), "a prediction column")
    if count == 1:
        return checked[0]
    return _sorted_rows(np.stack(checked * count if len(checked) == 1 else checked, axis=1))


def _sorted_rows(table: Floats) -> Floats:
    """Each row sorted; most tables are already, and checking is much quicker than sorting."""
    return table if (table[:, 1:] >= table[:, :-1]).all() else np.sort(table, axis=1)


def split(predictions: object) -> list[object] | None:
    """The columns of a two-dimensional input; None when it is one column."""
    if isinstance(predictions, np.ndarray):
        return list(predictions.T) if predictions.ndim == 2 else None
    if isinstance(predictions, (list, tuple)):
        first = predictions[0] if len(predictions) else ""
        return list(predictions) if hasattr(first, "__len__") and not isinstance(first, (str, bytes)) else None
    if hasattr(predictions, "columns"):
        frame = as_frame(predictions)
        return [frame[name].to_native() for name in frame.columns]
    return None


def as_frame(frame: object) -> nw.DataFrame[Any]:
    import narwhals as nw

    return nw.from_native(cast(Any, frame), eager_only=True)


def with_columns(frame: nw.DataFrame[Any], new: Mapping[str, object]) -> object:
    """A frame, as narwhals sees it, with columns added or replaced, in the caller's own type."""
    import narwhals as nw

    one: Any = frame[frame.columns[0]].to_native()
    series = [nw.from_native(like(one, np.asarray(values)), series_only=True) for values in new.values()]
    return frame.with_columns(column.alias(name) for name, column in zip(new, series, strict=True)).to_native()


def like(original: Column, values: Cells) -> Column:
    """The values in the type of the original column or columns: a pandas Series keeps index and name.

    >>> like([1, 2], np.array([0.5, 1.5]))
    [0.5, 1.5]
    """
    column: Any = original
    result: Any = values
    if values.ndim == 2:
        columns = split(column)
        if columns is None or isinstance(column, np.ndarray) or len(columns) != values.shape[1]:
            return cast(Column, values)
        if isinstance(column, (list, tuple)):
            each = zip(columns, values.T, strict=True)
            return cast(Column, type(column)(like(cast(Any, one), part) for one, part in each))
        frame = as_frame(column)
        return cast(Column, with_columns(frame, dict(zip(frame.columns, values.T, strict=True))))
    if isinstance(column, list | tuple):
        result = type(column)(values.tolist()) if type(column) in (list, tuple) else values
    elif _module(column) not in PLAIN:
        from narwhals import dependencies as known

        if known.is_pandas_like_series(column):
            result = type(column)(values, index=column.index, name=column.name)
        elif known.is_polars_series(column):
            result = type(column)(column.name, values)
        elif _module(column) == "pyarrow":
            import pyarrow as pa

            array = pa.array(values)
            result = pa.chunked_array([array]) if isinstance(column, pa.ChunkedArray) else array
    return cast(Column, result)
