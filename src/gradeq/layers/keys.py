"""Names of many series: every key has the parameters of one layer, in one table that grows as keys appear."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradeq.engine.names import (
    EXACT,
    SCALAR,
    Placed,
    Renamed,
    Roster,
    is_given,
    remember,
    respelled,
)
from gradeq.errors import BadInput, StateError
from gradeq.files.codebook import Codebook
from gradeq.ledger.batch import Floats, Ints, Rows, single
from gradeq.ledger.values import Place, Row, new
from gradeq.naming import name_of, text_name

SPAN = 1 << 31  # more parameters than any layer has


class Keys:
    """Keys, and for each the parameters of the layer's own names (``own``).

    Without groups and features a key is its parameter; else parameters are coded as key * SPAN + place in ``own``.
    """

    __slots__ = ("alone", "book", "own", "pairs", "places")

    def __init__(self, own: Roster) -> None:
        self.own, self.book, self.pairs = own, Codebook(), Codebook()
        self.places: dict[Any, Place] = {}  # of the key and names of a row, as they are asked for
        # Row and place of a key and its type, without groups and features.
        self.alone: dict[Any, tuple[Row, Place]] = {}

    @property
    def groups(self) -> tuple[str, ...]:
        """The group columns."""
        return self.own.groups

    @property
    def features(self) -> tuple[str, ...]:
        """The feature columns."""
        return self.own.features

    @property
    def together(self) -> bool:
        """Whether lateness is counted for all rows of a key."""
        return self.own.together

    @property
    def clocked(self) -> str:
        """The column that counts time."""
        return self.own.clocked

    @property
    def clock_per(self) -> str:
        """Whether there is a clock for each parameter or for each key."""
        return self.own.clock_per

    @property
    def size(self) -> float:
        """The squared norm of a row without features."""
        return self.own.size

    @property
    def count(self) -> int:
        """How many parameters there are."""
        return len(self.book) if self.own.scalar else len(self.pairs)

    @property
    def keys(self) -> int:
        """How many keys there are."""
        return len(self.book)

    @property
    def names(self) -> list[str]:
        """The parameters by name: the key, with groups "key, group"."""
        if self.own.scalar:
            return self.book.names
        groups, keys = self.own.names, self.book.names
        return [f"{keys[k]}, {groups[j]}" for k, j in self.split()]

    def split(self) -> list[tuple[int, int]]:
        """The key of every parameter, and its place among the layer's own names."""
        return [divmod(int(pair), SPAN) for pair in self.pairs.names]

    def row(
        self, key: Any, groups: Mapping[str, Any] | None, features: Mapping[str, Any] | None
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
        row = SCALAR._replace(key=name_of(key))
        place = self.places.get((row.key, row.names))
        if place is not None and kind in EXACT:
            remember(self.alone, (key, kind), (row, place))
        return row, place

    def known(self, row: Row) -> Place | None:
        """Where a row belongs, None if its key and groups were not asked for before (or are forgotten)."""
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
        """Refuse a row that cannot be one of this layer's."""
        if row.key is None:
            raise BadInput(
                "a row without a key is not one of this layer's; post it where it was served"
            )
        self.own.knows(row._replace(key=None))

    def code(self, key: Any) -> int:
        """The place of a key that was seen."""
        found = self.book.find(name_of(key))
        if found is None:
            raise BadInput(f"key {key!r} was never seen here")
        return found

    def mark(self) -> Any:
        """What ``forget`` goes back to."""
        return len(self.book), len(self.pairs), self.own.mark()

    def forget(self, mark: Any) -> None:
        """Forget the keys and groups entered since ``mark`` was taken."""
        keys, pairs, own = mark
        self.places.clear()
        self.alone.clear()
        if len(self.book) > keys:
            self.book = Codebook(self.book.names[:keys])
        if len(self.pairs) > pairs:
            self.pairs = Codebook(self.pairs.names[:pairs])
        self.own.forget(own)

    def columns(self, key: Any, n: int, groups: Any, features: list[Floats]) -> Placed:
        """Whole columns in row order, never sorted by key; keys and groups not seen before are entered."""
        from gradeq import frames
        from gradeq.layers.columns import same_length

        code = frames.coded(key, "key", self.book)
        same_length(n, len(code), "key")
        if self.own.scalar:
            rows = single(code)
            return Placed(rows, rows, code, code, None)
        own = self.own.columns(n, groups, features)
        params = self._params(code, own.rows)
        rows = own.rows._replace(params=params)
        first = np.ascontiguousarray(params.reshape(n, -1)[:, 0]) if n else params
        clock = first if self.own.disjoint else code
        return Placed(rows, single(code) if self.own.together else rows, clock, code, own.norms)

    def _params(self, code: Ints, rows: Rows) -> Ints:
        each = np.diff(rows.starts)
        return self.pairs.of_keys(np.repeat(code, each) * SPAN + rows.params)

    def row_at(self, params: Any, values: Any, key: int) -> Row:
        """The row of these places, by name."""
        name = self.book.names[key]
        if self.own.scalar:
            return self.own.row_at([0], values, 0)._replace(key=name)
        own = [int(self.pairs.names[j]) % SPAN for j in params]
        return self.own.row_at(own, values, 0)._replace(key=name)

    def state(self) -> dict[str, Any]:
        """Keys and names, ready for the codec."""
        found: dict[str, Any] = {"keys": list(self.book.names)}
        if not self.own.scalar:
            found |= self.own.state() | {"pairs": [int(pair) for pair in self.pairs.names]}
        return found

    def restore(self, state: dict[str, Any]) -> Renamed:
        """Take up saved keys and names; those that were spelled otherwise by then, and how they are spelled now."""
        keys = respelled(state["keys"], text_name)
        self.book = Codebook(keys.get(key, key) for key in state["keys"])
        self.places.clear()
        self.alone.clear()
        if self.own.scalar:
            return Renamed({}, keys)
        renamed = self.own.restore(state)._replace(keys=keys)
        pairs = [int(pair) for pair in state["pairs"]]
        if any(
            k >= len(self.book) or j >= self.own.count or k < 0 for k, j in map(self._pair, pairs)
        ):
            raise StateError("the state is damaged: a parameter belongs to no key or no group")
        self.pairs = Codebook(str(pair) for pair in pairs)
        return renamed

    @staticmethod
    def _pair(pair: int) -> tuple[int, int]:
        return divmod(pair, SPAN)

    def served_from(self, rows: Any) -> Any:
        """Which parameters some row was served from, given the rows of every cell."""
        if not self.together:
            return rows > 0.0
        return (rows > 0.0)[[k for k, _ in self.split()]]

    def rows_by_key(self, rows: Any, served: int) -> Any:
        """How many rows each key was served, given those of every cell: one row has a cell for each group column."""
        if self.own.scalar or self.together:
            return np.array(rows)
        keys = np.array([k for k, _ in self.split()], dtype=np.int64)
        return np.bincount(keys, rows, self.keys) / len(self.groups)

    def merged(self, other: Keys) -> tuple[list[int], list[int]]:
        """Enter another partition's names: where its parameters and keys are here."""
        keys = self.book.of_cells(other.book.names).tolist()
        if self.own.scalar:
            return keys, keys
        places, _ = self.own.merged(other.own)
        own = [keys[k] * SPAN + places[j] for k, j in other.split()]
        return self.pairs.of_keys(np.array(own, dtype=np.int64)).tolist(), keys
