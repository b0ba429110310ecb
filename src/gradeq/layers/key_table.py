"""The keys of many series, and their table: bias or coverage, loss, parameter and certificate of every key."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from gradeq.engine.names import EXACT, SCALAR, Placed, Renamed, Roster, is_given, remember, respelled
from gradeq.equilibrium import figure
from gradeq.errors import BadInput, StateError
from gradeq.files.codebook import Codebook
from gradeq.inputs.arguments import name_of, text_name
from gradeq.inputs.column_types import ColumnLike
from gradeq.kernels.account import BEFORE, CHANGES, COLUMNS, GRADIENT, LOSS_AFTER, LOSS_BEFORE, ROWS, WEIGHT
from gradeq.layers.columns import Codes, coded, same_length
from gradeq.layers.serialization import Saved
from gradeq.ledger import facts as fact
from gradeq.ledger.batch import Floats, Ints, single
from gradeq.ledger.state import CACHED
from gradeq.ledger.values import Place, Row, new
from gradeq.records import copy_with
from gradeq.tables import frame_of, html_table, some

if TYPE_CHECKING:
    from gradeq.layers.layer import Layer

Key = str | int
SPAN = 1 << 31  # more parameters than any layer has


class Keys:
    """Keys, and for each of them the parameters of the pattern's ``roster``.

    Without groups and features a key is its parameter; else parameters are coded as key * SPAN + place in ``roster``.
    """

    __slots__ = (
        "book", "clock_per", "clocked", "features", "groups", "pairs", "places", "roster", "size", "together",
        "typed",
    )  # fmt: skip

    def __init__(self, roster: Roster) -> None:
        self.roster, self.book, self.pairs = roster, Codebook(), Codebook()
        self.groups, self.features, self.together = roster.groups, roster.features, roster.together
        self.clocked, self.clock_per, self.size = roster.clocked, roster.clock_per, roster.size
        # Caches: the place of a key and its groups; row and place of a key and its type, without groups and features.
        self.places: dict[tuple[str | None, tuple[str, ...]], Place] = {}
        self.typed: dict[tuple[Key, type], tuple[Row, Place]] = {}

    @property
    def count(self) -> int:
        return len(self.book) if self.roster.scalar else len(self.pairs)

    @property
    def keys(self) -> int:
        return len(self.book)

    @property
    def names(self) -> list[str]:
        """The parameters by name: the key, with groups "key, group"."""
        if self.roster.scalar:
            return self.book.names
        groups, keys = self.roster.names, self.book.names
        return [f"{keys[k]}, {groups[j]}" for k, j in self.split()]

    def split(self) -> list[tuple[int, int]]:
        return [divmod(int(pair), SPAN) for pair in self.pairs.names]

    def row(
        self, key: Key, groups: Mapping[str, object] | None, features: Mapping[str, SupportsFloat] | None
    ) -> tuple[Row, Place | None]:
        """The row of one event and, if it is cached, its place; nothing is entered."""
        if not self.roster.scalar or is_given(groups) or is_given(features):
            (names, values, _), _ = self.roster.row(groups, features)
            name = name_of(key)
            return new(Row, (names, values, name)), self.places.get((name, names))
        kind = type(key)
        cached = self.typed.get((key, kind)) if kind in EXACT else None
        if cached is not None:
            return cached
        row = copy_with(SCALAR, key=name_of(key))
        place = self.known(row)
        if place is not None and kind in EXACT:
            remember(self.typed, (key, kind), (row, place))
        return row, place

    def known(self, row: Row) -> Place | None:
        return self.places.get((row.key, row.names))

    def place(self, row: Row) -> Place:
        """Where a row belongs; a key and groups not seen before are entered."""
        place = self.known(row)
        if place is not None:
            return place
        assert row.key is not None
        k = self.book.code(row.key)
        params: tuple[int, ...] = (k,)
        if not self.roster.scalar:
            pairs = [k * SPAN + j for j in self.roster.place(row).params]
            params = tuple(self.pairs.of_keys(np.array(pairs, dtype=np.int64)).tolist())
        clock = params[0] if self.roster.disjoint else k
        place = Place(params, (k,) if self.together else params, clock, k)
        remember(self.places, (row.key, row.names), place)
        return place

    def knows(self, row: Row) -> None:
        if row.key is None:
            raise BadInput("a row without a key does not belong to this layer; post it where it was served")
        self.roster.knows(copy_with(row, key=None))

    def code(self, key: Key) -> int:
        code = self.book.find(name_of(key))
        if code is None:
            raise BadInput(f"key {key!r} was never seen here")
        return code

    def mark(self) -> tuple[int, int, Any]:
        return len(self.book), len(self.pairs), self.roster.mark()

    def forget(self, mark: tuple[int, int, Any]) -> None:
        """Forget the keys and groups entered since ``mark`` was taken."""
        keys, pairs, groups = mark
        self.places.clear()
        self.typed.clear()
        if len(self.book) > keys:
            self.book = Codebook(self.book.names[:keys])
        if len(self.pairs) > pairs:
            self.pairs = Codebook(self.pairs.names[:pairs])
        self.roster.forget(groups)

    def columns(self, key: ColumnLike, n: int, groups: Sequence[Codes], features: list[Floats]) -> Placed:
        """Whole columns in row order, never sorted by key; keys and groups not seen before are entered."""
        code = coded(key, "key", self.book)
        same_length(n, len(code), "key")
        if self.roster.scalar:
            rows = single(code)
            return Placed(rows, rows, code, code, None)
        placed = self.roster.columns(n, groups, features)
        params = self.pairs.of_keys(np.repeat(code, np.diff(placed.rows.starts)) * SPAN + placed.rows.params)
        rows = copy_with(placed.rows, params=params)
        first = np.ascontiguousarray(params.reshape(n, -1)[:, 0]) if n else params
        clock = first if self.roster.disjoint else code
        return Placed(rows, single(code) if self.together else rows, clock, code, placed.norms)

    def row_at(self, params: Sequence[int], values: Sequence[float], key: int) -> Row:
        places = [0] if self.roster.scalar else [int(self.pairs.names[j]) % SPAN for j in params]
        return copy_with(self.roster.row_at(places, values, 0), key=self.book.names[key])

    def state(self) -> Saved:
        keys: Saved = {"keys": list(self.book.names)}
        if self.roster.scalar:
            return keys
        return keys | self.roster.state() | {"pairs": [int(pair) for pair in self.pairs.names]}

    def restore(self, state: Saved) -> Renamed:
        """Restore saved keys and names; returns those that an earlier version spelled in another way."""
        keys = respelled(state["keys"], text_name)
        self.book = Codebook(keys.get(key, key) for key in state["keys"])
        self.places.clear()
        self.typed.clear()
        if self.roster.scalar:
            return Renamed({}, keys)
        renamed = copy_with(self.roster.restore(state), keys=keys)
        pairs = [int(pair) for pair in state["pairs"]]
        if any(k >= len(self.book) or j >= self.roster.count or k < 0 for k, j in (divmod(p, SPAN) for p in pairs)):
            raise StateError("the state is damaged: a parameter belongs to no key or no group")
        self.pairs = Codebook(str(pair) for pair in pairs)
        return renamed

    def served_from(self, rows: Floats) -> NDArray[np.bool_]:
        """Which parameters served at least one row; ``rows``: of every cell."""
        return (rows > 0.0)[[k for k, _ in self.split()]] if self.together else rows > 0.0

    def rows_by_key(self, rows: Floats, served: int) -> Floats:
        """Rows served to each key, from those of every cell: one row has a cell for each group column."""
        if self.roster.scalar or self.together:
            return np.array(rows)
        keys = np.array([k for k, _ in self.split()], dtype=np.int64)
        return np.bincount(keys, rows, self.keys) / len(self.groups)

    def merged(self, other: Keys) -> tuple[list[int], list[int]]:
        keys = self.book.of_cells(other.book.names).tolist()
        if self.roster.scalar:
            return keys, keys
        places, _ = self.roster.merged(other.roster)
        pairs = [keys[k] * SPAN + places[j] for k, j in other.split()]
        return self.pairs.of_keys(np.array(pairs, dtype=np.int64)).tolist(), keys


SHOWN = 10  # series that a notebook shows


class KeyTable(NamedTuple):
    """The certificate of every key, column by column (numpy arrays of one length; of several levels a column each).

    ``rows`` are labels learned from. For quantiles ``bias`` is the coverage less the level; ``target``: the coverage
    of an interval; ``more`` and ``more_loss``: what the limits of a support add to the coverage and to the loss (None
    without one). ``relative``: with link exp, bias and loss are those of errors divided by the prediction.
    ``replaced``: predictions of each key that were replaced before a label came; None without any, or if keys have
    groups.
    """

    keys: Sequence[str]
    rows: Ints
    theta: Floats
    bias_before: Floats
    bias_after: Floats
    loss_before: Floats
    loss_after: Floats
    from_state: Floats
    levels: tuple[float, ...] = ()
    target: float | None = None
    more: Floats | None = None
    more_loss: Floats | None = None
    relative: bool = False
    replaced: Ints | None = None

    @property
    def error(self) -> Floats:
        """The remaining error of each key, with its sign; of several levels the largest."""
        return self._error(self.bias_after)

    @property
    def error_before(self) -> Floats:
        return self._error(self.bias_before)

    @property
    def loss(self) -> Floats:
        """The mean loss of each key as served, inside the limits of a support, over its levels."""
        loss = self.loss_after if self.more_loss is None else self.loss_after + self.more_loss
        return loss if loss.ndim == 1 else mean_of(loss)

    def _error(self, bias: Floats) -> Floats:
        if bias.ndim == 1:
            return bias
        return bias[np.arange(len(bias)), self.farthest] if self.target is None else width_of(bias)

    @property
    def farthest(self) -> Ints:
        """The place of each key's level with the largest error."""
        places: Ints = np.argmax(np.abs(np.nan_to_num(self.bias_after)), axis=1)
        return places

    def columns(self) -> dict[str, Floats | Ints | list[str]]:
        """The table by the names of its columns: of several levels each has its own, of an interval the ends."""
        table: dict[str, Floats | Ints | list[str]] = {"key": list(self.keys), "rows": self.rows}
        marks = [""] if self.theta.ndim == 1 else [f"_{tau:g}" for tau in self.levels]
        if self.target is None:
            for k, mark in enumerate(marks):
                level = self.levels[k] if self.levels else None
                table |= self._errors_and_losses(mark, level, partial(_level, k=k), partial(_level, k=k))
        else:
            marks = ["_lower", "_upper"]
            table |= self._errors_and_losses("", self.target, width_of, mean_of)
        for name, column in (("theta", self.theta), ("from_state", self.from_state)):
            table |= {f"{name}{mark}": _level(column, k) for k, mark in enumerate(marks)}
        if self.replaced is not None:
            table["replaced"] = self.replaced
        return table

    def _errors_and_losses(
        self, mark: str, target: float | None, error: Callable[[Floats], Floats], loss: Callable[[Floats], Floats]
    ) -> dict[str, Floats]:
        """Errors (or coverages of a target) and losses, before, after and clipped, of one level or of an interval."""
        kind = "relative_" if self.relative else ""
        table: dict[str, Floats] = {}
        for when, bias in (("before", self.bias_before), ("after", self.bias_after)):
            if target is None:
                table[f"{kind}bias_{when}{mark}"] = error(bias)
            else:
                table[f"coverage_{when}{mark}"] = coverage_of(error(bias), target)
        if target is not None and self.more is not None:
            table[f"coverage_clipped{mark}"] = coverage_of(error(self.bias_after + self.more), target)
        table[f"{kind}loss_before{mark}"] = loss(self.loss_before)
        table[f"{kind}loss_after{mark}"] = loss(self.loss_after)
        if self.more_loss is not None:
            table[f"loss_clipped{mark}"] = loss(self.loss_after + self.more_loss)
        return table

    def to_frame(self, kind: str | None = None) -> Any:
        """One row for each key, as a data frame of ``kind`` "pandas", "polars" or "pyarrow".

        Without one it is the first of these that your program has imported, whatever the columns of a run were.
        """
        return frame_of(self.columns(), kind)

    def __repr__(self) -> str:
        """How many series and labels; a table of thousands is looked at as a frame."""
        keys, labels = len(self.rows), int(np.sum(self.rows))
        return f"KeyTable of {keys:,} series with {some(labels, 'label')}; to_frame() has a row for each"

    def _repr_html_(self) -> str:
        """The same for notebooks, with the series that are farthest off."""
        sizes = np.nan_to_num(np.abs(self.error), nan=-1.0)
        worst = np.argsort(-sizes, kind="stable")[:SHOWN].tolist()
        what = "coverage off by" if self.levels else "relative bias" if self.relative else "bias"
        before, after, loss = self.error_before, self.error, self.loss
        rows = [
            [str(self.keys[k]), f"{self.rows[k]:,}", *(figure(c[k]) for c in (before, after, loss))] for k in worst
        ]
        more = len(self.rows) - len(rows)
        head = ["series", "labels", f"{what}, before", "after", "loss after"]
        return html_table(repr(self), head, rows, f"... and {more:,} with less" if more else "")


def picked(sums: Floats) -> Floats:
    """The columns of the accounts that the table needs; each account is read once."""
    accounts, places = sums.reshape(-1, COLUMNS), (ROWS, WEIGHT, BEFORE, GRADIENT, LOSS_BEFORE, LOSS_AFTER)
    columns = np.empty((len(places), len(accounts)))
    for first in range(0, len(accounts), CACHED):
        part = slice(first, first + CACHED)
        for column, at in zip(columns, places, strict=True):
            column[part] = accounts[part, at]
    return columns


def width_of(ends: Floats) -> Floats:
    return np.subtract(ends[:, 1], ends[:, 0])


def mean_of(levels: Floats) -> Floats:
    means: Floats = levels.mean(axis=1)
    return means


def coverage_of(error: Floats, target: float) -> Floats:
    """Coverages from their errors, rounded: long sums lose the last digits."""
    coverage: Floats = np.round(error + target, 10) + 0.0
    return coverage


def _level(column: Floats, k: int) -> Floats:
    return column if column.ndim == 1 else column[:, k]


def key_table(layer: Layer, keys: Sequence[str] | None = None) -> KeyTable:
    """The table of a layer of many keys, read from its state as columns; ``keys``: other names for the keys."""
    state, width, terms, pattern = layer.internals.state, layer.internals.rule.width, layer.terms, layer.pattern
    shape = (-1,) if width == 1 else (-1, width)
    u = state.view("u").copy()
    rows, weight, *sums = picked(state.view("sums"))
    weight[~(weight > 0.0)] = math.nan
    high = state.facts[fact.STEP_HIGH]
    constant = state.facts[fact.STEP_LOW] >= high > 0.0
    certified = sums[1] / weight
    if constant:
        certified = (np.array(terms.start) - u.reshape(-1, width)).reshape(-1) / high / weight
    for column, scale in zip(sums, (1.0, 1.0, terms.loss_scale, terms.loss_scale), strict=True):
        column *= scale
        column /= weight
    before, after, loss_before, loss_after = (column.reshape(shape) for column in sums)
    more = more_loss = None
    if hasattr(state, "limited"):
        more, more_loss = ((state.view("limited")[change::CHANGES] / weight).reshape(shape) for change in (0, 1))
    names, counts, replaced = layer.internals.names, layer.internals.tickets.replaced, None
    if counts and names.roster.scalar:
        replaced = np.array([counts.get(key, 0) for key in names.book.names], dtype=np.int64)
    return KeyTable(
        list(names.names) if keys is None else keys,
        rows[::width].astype(np.int64),
        u.reshape(shape),
        before,
        after,
        loss_before,
        loss_after,
        certified.reshape(shape),
        tuple(terms.levels),
        getattr(pattern, "target", None),
        more,
        more_loss,
        getattr(pattern, "link_name", None) == "exp",
        replaced,
    )
