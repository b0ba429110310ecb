"""The keys of many series, and their table: bias or coverage, loss, parameter and certificate of every key."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    """Keys, and for each the parameters of the layer's own names (``own``).

    Without groups and features a key is its parameter; else parameters are coded as key * SPAN + place in ``own``.
    """

    __slots__ = (
        "alone", "book", "clock_per", "clocked", "features", "groups", "own", "pairs", "places", "size", "together",
    )  # fmt: skip

    def __init__(self, own: Roster) -> None:
        self.own, self.book, self.pairs = own, Codebook(), Codebook()
        self.groups, self.features, self.together = own.groups, own.features, own.together
        self.clocked, self.clock_per, self.size = own.clocked, own.clock_per, own.size
        # Of the key and names of a row, as they are asked for.
        self.places: dict[tuple[str | None, tuple[str, ...]], Place] = {}
        # Row and place of a key and its type, without groups and features.
        self.alone: dict[tuple[Key, type], tuple[Row, Place]] = {}

    @property
    def count(self) -> int:
        return len(self.book) if self.own.scalar else len(self.pairs)

    @property
    def keys(self) -> int:
        return len(self.book)

    @property
    def names(self) -> list[str]:
        """The parameters by name: the key, with groups "key, group"."""
        if self.own.scalar:
            return self.book.names
        groups, keys = self.own.names, self.book.names
        return [f"{keys[k]}, {groups[j]}" for k, j in self.split()]

    def split(self) -> list[tuple[int, int]]:
        return [divmod(int(pair), SPAN) for pair in self.pairs.names]

    def row(
        self, key: Key, groups: Mapping[str, object] | None, features: Mapping[str, SupportsFloat] | None
    ) -> tuple[Row, Place | None]:
        """Where one event belongs, by name and, if it is remembered, by place; nothing is entered."""
        if not self.own.scalar or is_given(groups) or is_given(features):
            (names, values, _), _ = self.own.row(groups, features)
            own = name_of(key)
            return new(Row, (names, values, own)), self.places.get((own, names))
        kind = type(key)
        found = self.alone.get((key, kind)) if kind in EXACT else None
        if found is not None:
            return found
        row = copy_with(SCALAR, key=name_of(key))
        place = self.places.get((row.key, row.names))
        if place is not None and kind in EXACT:
            remember(self.alone, (key, kind), (row, place))
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
        if not self.own.scalar:
            own = self.own.place(row)
            codes = self.pairs.of_keys(np.array([k * SPAN + j for j in own.params], dtype=np.int64))
            params = tuple(codes.tolist())
        clock = params[0] if self.own.disjoint else k
        place = Place(params, (k,) if self.own.together else params, clock, k)
        remember(self.places, (row.key, row.names), place)
        return place

    def knows(self, row: Row) -> None:
        if row.key is None:
            raise BadInput("a row without a key is not one of this layer's; post it where it was served")
        self.own.knows(copy_with(row, key=None))

    def code(self, key: Key) -> int:
        found = self.book.find(name_of(key))
        if found is None:
            raise BadInput(f"key {key!r} was never seen here")
        return found

    def mark(self) -> tuple[int, int, Any]:
        return len(self.book), len(self.pairs), self.own.mark()

    def forget(self, mark: tuple[int, int, Any]) -> None:
        """Forget the keys and groups entered since ``mark`` was taken."""
        keys, pairs, own = mark
        self.places.clear()
        self.alone.clear()
        if len(self.book) > keys:
            self.book = Codebook(self.book.names[:keys])
        if len(self.pairs) > pairs:
            self.pairs = Codebook(self.pairs.names[:pairs])
        self.own.forget(own)

    def columns(self, key: ColumnLike, n: int, groups: Sequence[Codes], features: list[Floats]) -> Placed:
        """Whole columns in row order, never sorted by key; keys and groups not seen before are entered."""
        code = coded(key, "key", self.book)
        same_length(n, len(code), "key")
        if self.own.scalar:
            rows = single(code)
            return Placed(rows, rows, code, code, None)
        own = self.own.columns(n, groups, features)
        params = self.pairs.of_keys(np.repeat(code, np.diff(own.rows.starts)) * SPAN + own.rows.params)
        rows = copy_with(own.rows, params=params)
        first = np.ascontiguousarray(params.reshape(n, -1)[:, 0]) if n else params
        clock = first if self.own.disjoint else code
        return Placed(rows, single(code) if self.own.together else rows, clock, code, own.norms)

    def row_at(self, params: Sequence[int], values: Sequence[float], key: int) -> Row:
        name = self.book.names[key]
        if self.own.scalar:
            return copy_with(self.own.row_at([0], values, 0), key=name)
        own = [int(self.pairs.names[j]) % SPAN for j in params]
        return copy_with(self.own.row_at(own, values, 0), key=name)

    def state(self) -> Saved:
        keys: Saved = {"keys": list(self.book.names)}
        if self.own.scalar:
            return keys
        return keys | self.own.state() | {"pairs": [int(pair) for pair in self.pairs.names]}

    def restore(self, state: Saved) -> Renamed:
        """Take up saved keys and names; those that were spelled otherwise by then, and how they are spelled now."""
        keys = respelled(state["keys"], text_name)
        self.book = Codebook(keys.get(key, key) for key in state["keys"])
        self.places.clear()
        self.alone.clear()
        if self.own.scalar:
            return Renamed({}, keys)
        renamed = copy_with(self.own.restore(state), keys=keys)
        pairs = [int(pair) for pair in state["pairs"]]
        if any(k >= len(self.book) or j >= self.own.count or k < 0 for k, j in (divmod(p, SPAN) for p in pairs)):
            raise StateError("the state is damaged: a parameter belongs to no key or no group")
        self.pairs = Codebook(str(pair) for pair in pairs)
        return renamed

    def served_from(self, rows: Floats) -> NDArray[np.bool_]:
        """Which parameters some row was served from, given the rows of every cell."""
        if not self.together:
            return rows > 0.0
        return (rows > 0.0)[[k for k, _ in self.split()]]

    def rows_by_key(self, rows: Floats, served: int) -> Floats:
        """How many rows each key was served, given those of every cell: one row has a cell for each group column."""
        if self.own.scalar or self.together:
            return np.array(rows)
        keys = np.array([k for k, _ in self.split()], dtype=np.int64)
        return np.bincount(keys, rows, self.keys) / len(self.groups)

    def merged(self, other: Keys) -> tuple[list[int], list[int]]:
        keys = self.book.of_cells(other.book.names).tolist()
        if self.own.scalar:
            return keys, keys
        places, _ = self.own.merged(other.own)
        own = [keys[k] * SPAN + places[j] for k, j in other.split()]
        return self.pairs.of_keys(np.array(own, dtype=np.int64)).tolist(), keys


SHOWN = 10  # series that a notebook shows


class KeyTable(NamedTuple):
    """The certificate of every key, column by column (numpy arrays of one length; of several levels a column each).

    ``rows`` are labels learned from. For quantiles ``bias`` is the coverage less the level; ``target``: the coverage
    of an interval; ``more`` and ``more_loss``: what the limits of a support add to the coverage and to the loss (None
    without one). ``relative``: with link exp errors are divided by the prediction, and bias and loss are of these.
    ``replaced``: predictions of each key that were replaced before a label came; None where there are none, or keys
    have groups of their own.
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
        """What is left of each key's error, with its sign; of several levels the one that is farthest off."""
        return self._left(self.bias_after)

    @property
    def error_before(self) -> Floats:
        return self._left(self.bias_before)

    @property
    def loss(self) -> Floats:
        """The mean loss of each key as served, inside the limits of a support, over its levels."""
        loss = self.loss_after if self.more_loss is None else self.loss_after + self.more_loss
        means: Floats = loss if loss.ndim == 1 else loss.mean(axis=1)
        return means

    def _left(self, bias: Floats) -> Floats:
        if bias.ndim == 1:
            return bias
        if self.target is not None:
            return np.subtract(bias[:, 1], bias[:, 0])
        return bias[np.arange(len(bias)), self.farthest]

    @property
    def farthest(self) -> Ints:
        """The place of each key's level that is farthest off as served."""
        places: Ints = np.argmax(np.abs(np.nan_to_num(self.bias_after)), axis=1)
        return places

    def columns(self) -> dict[str, Floats | Ints | list[str]]:
        """The table by the names of its columns: of several levels each has its own, of an interval the ends."""
        found: dict[str, Floats | Ints | list[str]] = {"key": list(self.keys), "rows": self.rows}
        marks = [""] if self.theta.ndim == 1 else [f"_{tau:g}" for tau in self.levels]
        if self.target is not None:
            marks = ["_lower", "_upper"]
            for when, bias in (("before", self.bias_before), ("after", self.bias_after)):
                found[f"coverage_{when}"] = shares(bias[:, 1] - bias[:, 0], self.target)
            if self.more is not None:
                shift = self.bias_after + self.more
                found["coverage_clipped"] = shares(shift[:, 1] - shift[:, 0], self.target)
            found["loss_before"] = self.loss_before.mean(axis=1)
            found["loss_after"] = self.loss_after.mean(axis=1)
            if self.more_loss is not None:
                found["loss_clipped"] = self.loss
        else:
            found |= self._by_level(marks)
        for name, column in (("theta", self.theta), ("from_state", self.from_state)):
            found |= {f"{name}{mark}": _level(column, k) for k, mark in enumerate(marks)}
        if self.replaced is not None:
            found["replaced"] = self.replaced
        return found

    def _by_level(self, marks: list[str]) -> dict[str, Floats]:
        found: dict[str, Floats] = {}
        kind = "relative_" if self.relative else ""
        for k, mark in enumerate(marks):
            before, after = (_level(bias, k) for bias in (self.bias_before, self.bias_after))
            if not self.levels:
                found |= {f"{kind}bias_before{mark}": before, f"{kind}bias_after{mark}": after}
            else:
                tau = self.levels[k]
                found[f"coverage_before{mark}"] = shares(before, tau)
                found[f"coverage_after{mark}"] = shares(after, tau)
                if self.more is not None:
                    found[f"coverage_clipped{mark}"] = shares(after + _level(self.more, k), tau)
            found[f"{kind}loss_before{mark}"] = _level(self.loss_before, k)
            found[f"{kind}loss_after{mark}"] = _level(self.loss_after, k)
            if self.more_loss is not None:
                found[f"loss_clipped{mark}"] = _level(self.loss_after + self.more_loss, k)
        return found

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
        left = np.nan_to_num(np.abs(self.error), nan=-1.0)
        worst = np.argsort(-left, kind="stable")[:SHOWN].tolist()
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
    table, wanted = (sums.reshape(-1, COLUMNS), (ROWS, WEIGHT, BEFORE, GRADIENT, LOSS_BEFORE, LOSS_AFTER))
    found = np.empty((len(wanted), len(table)))
    for first in range(0, len(table), CACHED):
        part = slice(first, first + CACHED)
        for column, at in zip(found, wanted, strict=True):
            column[part] = table[part, at]
    return found


def shares(error: Floats | float, target: float) -> Floats:
    """Coverages: errors and their target; what long sums lost in the last digits is rounded away."""
    coverage: Floats = np.round(error + target, 10) + 0.0
    return coverage


def _level(column: Floats, k: int) -> Floats:
    return column if column.ndim == 1 else column[:, k]


def key_table(layer: Layer, keys: Sequence[str] | None = None) -> KeyTable:
    """The table of a layer of many keys, read from its state: nothing is made key by key.

    ``keys``: their names, if the layer's own need not be spelled out.
    """
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
    if counts and names.own.scalar:
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
