"""The roster: which parameters a row touches, by name, growing as new groups appear.

Without groups and features a layer has one parameter, "(all)". Each group column adds one indicator for each of
its values ("race=Caucasian"), each feature one parameter with its name; no intercept is added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradeq.engine.desk import Row
from gradeq.errors import BadInput
from gradeq.layers.door import number

if TYPE_CHECKING:
    from gradeq.engine.batch import Floats, Ints, Rows

ALL = "(all)"


def group_name(value: Any) -> str:
    """The name of a group value; an absent one is a group of its own, "(missing)"."""
    if type(value) is str and value:
        return value
    if type(value) is int:
        return str(value)
    from gradeq.files.codebook import name_of

    return name_of(value)


class Roster:
    """Names of groups and features, and the index of each parameter."""

    __slots__ = ("features", "groups", "names")

    def __init__(self, groups: Sequence[str], features: Sequence[str]) -> None:
        for name in (*groups, *features):
            if not isinstance(name, str) or not name:
                raise BadInput(
                    f"{name!r} is not a column name; groups and features are lists of names"
                )
        if len(set(groups)) < len(groups) or len(set(features)) < len(features):
            raise BadInput(
                f"a name stands twice in groups {list(groups)} or features {list(features)}"
            )
        self.groups, self.features = tuple(groups), tuple(features)
        self.names: dict[str, int] = {}
        if not self.groups and not self.features:
            self.names[ALL] = 0
        for name in self.features:
            self.names[name] = len(self.names)

    @property
    def scalar(self) -> bool:
        """One parameter for all rows."""
        return not self.groups and not self.features

    @property
    def disjoint(self) -> bool:
        """Every row in exactly one group."""
        return len(self.groups) == 1 and not self.features

    @property
    def size(self) -> float:
        """c^2 as far as it is known in advance: the number of group columns, at least 1."""
        return float(max(1, len(self.groups)))

    def group(self, column: str, value: Any) -> int:
        """The parameter of one group, made when it is new."""
        name = f"{column}={group_name(value)}"
        index = self.names.get(name)
        if index is None:
            index = self.names[name] = len(self.names)
        return index

    def row(self, groups: Mapping[str, Any] | None, features: Mapping[str, Any] | None) -> Row:
        """Where one event belongs."""
        if self.scalar:
            if groups or features:
                raise BadInput("this layer has no groups or features; name them when you make it")
            return SCALAR
        given = self.named(groups, self.groups, "group")
        params = [
            self.group(column, value) for column, value in zip(self.groups, given, strict=True)
        ]
        value = [1.0] * len(params)
        if not self.features:
            clock = params[0] if len(params) == 1 else 0
            return Row(0, params, value, params, clock, 1.0)
        for name, x in zip(
            self.features, self.named(features, self.features, "feature"), strict=True
        ):
            params.append(self.names[name])
            value.append(number(x, f"feature {name}"))
        return Row(0, params, value, (0,), 0, sum((z * z for z in value), 0.0))

    def named(
        self, given: Mapping[str, Any] | None, wanted: tuple[str, ...], what: str
    ) -> list[Any]:
        """The values of all wanted columns, in order; a missing or unknown column is refused."""
        given = given or {}
        if len(given) == len(wanted) and all(name in given for name in wanted):
            return [given[name] for name in wanted]
        extra = sorted(set(given) - set(wanted))
        if extra:
            raise BadInput(f"{what} {extra[0]!r} is not one of this layer's: {list(wanted)}")
        absent = [name for name in wanted if name not in given]
        if absent:
            raise BadInput(f"{what} {absent[0]!r} is missing; this layer needs {list(wanted)}")
        return [given[name] for name in wanted]

    def cell_count(self) -> int:
        """Counters of open tickets: one for each group, or one for the layer."""
        return 1 if self.scalar or self.features else len(self.names)

    def clock_count(self) -> int:
        """Clocks: one for each of disjoint groups, else one."""
        return len(self.names) if self.disjoint else 1

    def columns(
        self, n: int, groups: Sequence[tuple[Ints, list[str]]], features: Floats | None
    ) -> tuple[Rows, Rows, Ints, Floats | None]:
        """Parameter rows, counter rows, clocks and squared norms of whole columns (groups as codes and names)."""
        import numpy as np

        from gradeq.engine.batch import joined, single
        from gradeq.engine.constants import zeros

        nothing = zeros(n)
        if self.scalar:
            rows = single(nothing)
            return rows, rows, nothing, None
        indices = self.entered(groups)
        if features is None:
            rows = joined(indices, None, None)
            return rows, rows, indices[0] if self.disjoint else nothing, None
        places = np.array([self.names[name] for name in self.features], dtype=np.int64)
        rows = joined(indices, features, places)
        norms = np.full(n, float(len(indices)))
        for k in range(features.shape[1]):  # added in the order of one event, to the last bit
            norms = norms + features[:, k] * features[:, k]
        return rows, single(nothing), nothing, norms

    def entered(self, groups: Sequence[tuple[Ints, list[str]]]) -> list[Ints]:
        """Parameter indices of group columns; new groups are numbered as they would be one row at a time."""
        import numpy as np

        fresh = []
        for c, (codes, labels) in enumerate(groups):
            seen, first = np.unique(codes, return_index=True)
            for code, row in zip(seen.tolist(), first.tolist(), strict=True):
                if f"{self.groups[c]}={labels[code]}" not in self.names:
                    fresh.append((row, c, labels[code]))
        for _, c, label in sorted(fresh):
            self.group(self.groups[c], label)
        indices = []
        for c, (codes, labels) in enumerate(groups):
            table = np.array(
                [self.names.get(f"{self.groups[c]}={label}", -1) for label in labels],
                dtype=np.int64,
            )
            indices.append(table[codes] if len(table) else codes.astype(np.int64))
        return indices


SCALAR = Row(0, (0,), (1.0,), (0,), 0, 1.0)
