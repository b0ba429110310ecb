"""Names: which parameters a row touches, by name, growing as new groups and series appear.

Without groups and features a layer has one parameter, "(all)". Each group column adds one indicator for each of its
values ("race=Caucasian"), each feature one parameter with its name; no intercept is added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from math import isfinite
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import numpy as np

from gradeq.engine.scalars import as_number, iterable
from gradeq.errors import BadInput, StateError
from gradeq.inputs.arguments import as_shown, column_name, name_of, text_name
from gradeq.ledger.batch import Floats, Ints, Rows, constant, featured, first_rows, joined, single
from gradeq.ledger.values import Place, Row, new
from gradeq.records import copy_with

ALL = "(all)"
REMEMBERED = 100_000  # rows and places that are not made anew at every event
EXACT = {str, int, bool}  # equal values of one of these types have one name; -0.0 and 0.0 have two


class Placed(NamedTuple):
    """Whole columns as places: entries of each row, its cells, its clock, its series, squared norms of features."""

    rows: Rows
    cells: Rows
    clock: Ints
    keys: Ints
    norms: Floats | None


class Renamed(NamedTuple):
    """Parameters and keys of a saved state that are spelled otherwise now, and how."""

    names: dict[str, str]
    keys: dict[str, str]

    def row(self, row: Row) -> Row:
        """A row with names as they are spelled now."""
        names = tuple([self.names.get(name, name) for name in row.names])
        return copy_with(row, names=names, key=self.keys.get(row.key, row.key) if row.key else row.key)


def respelled(names: Sequence[str], spell: Callable[[str], str]) -> dict[str, str]:
    """The names that are spelled otherwise now, and how; where another has that name they stay as they are."""
    taken, renamed = set(names), {}
    for name in names:
        now = spell(name)
        if now not in taken:
            renamed[name] = now
            taken.add(now)
    return renamed


class ParameterNames(Protocol):
    """Names of one kind of layer, and where each belongs in the state."""

    @property
    def count(self) -> int:
        """How many parameters there are."""
        ...

    @property
    def keys(self) -> int:
        """How many series there are."""
        ...

    def known(self, row: Row) -> Place | None:
        """Where a row belongs, None if one of its names was never seen."""
        ...

    def place(self, row: Row) -> Place:
        """Where a row belongs; names not seen before are entered."""
        ...

    def forget(self, mark: object) -> None:
        """Forget the names entered since ``mark`` was taken."""
        ...


def as_names(names: Sequence[str] | str) -> Sequence[str]:
    """Names of columns; a text is one name."""
    if isinstance(names, str):
        return (str(names),)
    given = iterable(names, "groups or features", "names")
    return [str(name) if isinstance(name, str) else name for name in given]


class Roster:
    """Names of groups and features, and the place of each parameter.

    ``together``: labels' lateness is counted for the whole layer, as it is with features and with a penalty.
    """

    __slots__ = (
        "clocked", "disjoint", "features", "groups", "index", "listed", "ones", "own", "picked", "places", "prefixes",
        "rows", "scalar", "size", "together",
    )  # fmt: skip

    keys = 1

    def __init__(
        self, groups: Sequence[str] | str = (), features: Sequence[str] | str = (), together: bool = False
    ) -> None:
        groups, features = as_names(groups), as_names(features)
        for name in (*groups, *features):
            if not isinstance(name, str) or not name:
                raise BadInput(f"{as_shown(name)} is not a column name; groups and features are lists of names")
        if len(set(groups)) < len(groups) or len(set(features)) < len(features):
            raise BadInput(f"a name appears twice in groups {list(groups)} or features {list(features)}")
        self.groups, self.features = tuple(groups), tuple(features)
        self.prefixes = tuple(f"{column_name(group)}=" for group in groups)
        self.own = tuple(map(column_name, features))  # the parameters of features
        self.together = bool(features) or (together and bool(groups))
        self.scalar = not self.groups and not self.features  # one parameter for all rows
        self.disjoint = len(self.groups) == 1 and not self.features  # each row in exactly one group
        # Time is counted with the rows of a cell where every row has just one, else by a clock of its own.
        self.clocked = "rows" if self.scalar or self.disjoint != self.together else "clock"
        self.ones = (1.0,) * len(self.groups)
        self.size = float(max(1, len(self.groups)))  # c^2 as far as it is known in advance
        self.index: dict[str, int] = {}
        self.listed: list[str] = []  # the same names in order, as far as somebody asked for them
        self.places: dict[tuple[str, ...], Place] = {}  # of the names of a row, as they are asked for
        # Row and place (None with features) of the values of the group columns and their types.
        self.rows: dict[Any, tuple[Row, Place | None]] = {}
        # The values of all group columns, one of them twice: a tuple also where there is just one.
        self.picked: Any = itemgetter(*self.groups, self.groups[0]) if self.groups else None
        if self.scalar:
            self.index[ALL] = 0
        for name in self.own:
            self.index[name] = len(self.index)

    @property
    def count(self) -> int:
        return len(self.index)

    @property
    def names(self) -> list[str]:
        return list(self.spelled)

    @property
    def clock_per(self) -> str:
        """Whether there is a clock for each parameter (disjoint groups) or one for each series."""
        return "parameter" if self.disjoint else "key"

    def row(
        self, groups: Mapping[str, Any] | None = None, features: Mapping[str, Any] | None = None
    ) -> tuple[Row, Place | None]:
        """Where one event belongs, by name and, if it is remembered, by place; nothing is entered."""
        if self.scalar:
            if is_given(groups) or is_given(features):
                raise BadInput("this layer has no groups or features; name them when you make it")
            return ALONE
        row, place = self._grouped(groups) if self.groups or is_given(groups) else (NO_GROUP, None)
        if not self.features and not is_given(features):
            return row, place
        own = named(features, self.features, "feature")
        values = [
            x if type(x) is float and isfinite(x) else as_number(x, f"feature {name}")
            for name, x in zip(self.features, own, strict=True)
        ]
        names = row.names + self.own
        return new(Row, (names, row.values + tuple(values), None)), self.places.get(names)

    def _grouped(self, groups: Mapping[str, Any] | None) -> tuple[Row, Place | None]:
        """The row of these groups, without features, and its place if that is remembered."""
        try:
            if type(groups) is not dict or len(groups) != len(self.groups):
                raise KeyError
            values = self.picked(groups)
        except KeyError:
            values = tuple(named(groups, self.groups, "group"))
        key = (values, tuple(map(type, values)))
        try:
            found = self.rows.get(key)
        except TypeError:  # a list, say: that is no name
            found = None
        if found is None:
            pairs = zip(self.prefixes, values, strict=False)
            names = tuple([prefix + name_of(value) for prefix, value in pairs])
            found = new(Row, (names, self.ones, None)), self.places.get(names)
            if EXACT.issuperset(key[1]) and (found[1] is not None or self.features):
                remember(self.rows, key, found)
        return found

    def known(self, row: Row) -> Place | None:
        """Where a row belongs, None if one of its groups was never seen."""
        place = self.places.get(row.names)
        if place is not None:
            return place
        try:
            params = tuple(map(self.index.__getitem__, row.names))
        except KeyError:
            return None
        clock = params[0] if self.disjoint else 0
        place = Place(params, (0,) if self.together else params, clock, 0)
        remember(self.places, row.names, place)
        return place

    def place(self, row: Row) -> Place:
        """Where a row belongs; groups not seen before are entered."""
        for name in row.names:
            self.index.setdefault(name, len(self.index))
        place = self.known(row)
        assert place is not None
        return place

    def knows(self, row: Row) -> None:
        """Refuse a row that cannot be one of this layer's."""
        groups = len(row.names) - len(self.features)
        wanted = (ALL,) if self.scalar else self.own
        if (
            row.key is not None
            or (row.names if self.scalar else row.names[groups:]) != wanted
            or (not self.scalar and groups != len(self.groups))
            or not all(map(str.startswith, row.names, self.prefixes))
        ):
            raise BadInput(f"a row of {row.names} is not one of this layer's; post it where it was served")

    def mark(self) -> Any:
        return len(self.index)

    def forget(self, mark: Any) -> None:
        """Forget the groups entered since ``mark`` was taken."""
        self.places.clear()
        self.rows.clear()
        del self.listed[mark:]
        while len(self.index) > mark:
            self.index.popitem()

    def columns(self, n: int, groups: Sequence[tuple[Ints, list[str]]], features: list[Floats]) -> Placed:
        """Whole columns (groups as codes and names); groups not seen before are entered."""
        nothing = constant(n, 0)
        if self.scalar:
            rows = single(nothing)
            return Placed(rows, rows, nothing, nothing, None)
        columns = self.entered(groups)
        if not features:
            rows = joined(columns)
            clock = rows.params if self.disjoint else nothing
            return Placed(rows, single(nothing) if self.together else rows, clock, nothing, None)
        places = np.array([self.index[name] for name in self.own], dtype=np.int64)
        rows, norms = featured(columns, features, places)
        return Placed(rows, single(nothing), nothing, nothing, norms)

    def entered(self, groups: Sequence[tuple[Ints, list[str]]]) -> list[tuple[Ints, Ints]]:
        """The codes of group columns and the parameter of each code; new groups are numbered as one row at a time."""
        fresh = []
        spelled = []
        for c, (codes, labels) in enumerate(groups):
            names = [self.prefixes[c] + label for label in labels]
            spelled.append(names)
            if not all(map(self.index.__contains__, names)):
                for code, row in first_rows(codes, len(names)):
                    fresh.append((row, c, names[code]))
        for _, _, name in sorted(fresh):
            self.index.setdefault(name, len(self.index))
        places = ([self.index.get(name, -1) for name in names] or [-1] for names in spelled)
        own = (np.array(place, dtype=np.int64) for place in places)
        return [(codes, place) for (codes, _), place in zip(groups, own, strict=True)]

    def row_at(self, params: Sequence[int], values: Sequence[float], key: int) -> Row:
        return Row(tuple([self.spelled[j] for j in params]), tuple(values))

    @property
    def spelled(self) -> list[str]:
        """The names in order, kept: those that were entered since are added."""
        more = len(self.index) - len(self.listed)
        if more:
            self.listed += [*islice(reversed(self.index), more)][::-1]
        return self.listed

    def state(self) -> dict[str, Any]:
        return {"names": self.names}

    def restore(self, state: dict[str, Any]) -> Renamed:
        """Take up saved names; those that were spelled otherwise by then, and how they are spelled now."""
        names, count = state["names"], len(self.features)
        if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
            raise StateError("the state is damaged: a name appears twice or is empty")
        wrong = tuple(names[:count]) not in (self.features, self.own)
        if wrong or (self.scalar and names != [ALL]):
            raise StateError("the state is damaged: its names are not those of this layer")
        renamed = dict(zip(names, self.own, strict=False)) if count else {}
        if not self.scalar:
            renamed |= respelled(names[count:], self._respelled)
        self.index = {renamed.get(name, name): j for j, name in enumerate(names)}
        self.listed = []
        self.places.clear()
        self.rows.clear()
        return Renamed(renamed, {})

    def _respelled(self, name: str) -> str:
        """The name of a group as it is spelled now; columns were not marked, nor values of one kind, once."""
        for prefix in self.prefixes:
            if name.startswith(prefix):
                return prefix + text_name(name.removeprefix(prefix))
        known = zip(self.groups, self.prefixes, strict=True)
        found = [(old, new) for old, new in known if name.startswith(f"{old}=")]
        if len(found) != 1:
            raise StateError("the state is damaged: its names are not those of this layer")
        old, new = found[0]
        return new + text_name(name.removeprefix(f"{old}="))

    def served_from(self, rows: Any) -> Any:
        """Which parameters some row was served from, given the rows of every cell."""
        return np.broadcast_to(rows > 0.0, self.count)

    def rows_by_key(self, rows: object, served: int) -> Any:
        """How many rows each series was served, given those of every cell and of all."""
        return np.array([float(served)])

    def merged(self, other: Roster) -> tuple[list[int], list[int]]:
        """Enter another partition's names: where its parameters and series are here."""
        return [self.index.setdefault(name, len(self.index)) for name in other.index], [0]


def is_given(columns: Any) -> bool:
    """Whether groups or features are there at all: what is empty has none."""
    try:
        return columns is not None and len(columns) > 0
    except TypeError:
        return True


def is_mapping(value: object) -> bool:
    """Whether names lead to values: a dictionary, a series or a frame."""
    return hasattr(value, "__getitem__") and (hasattr(value, "keys") or hasattr(value, "columns"))


def named(given: Mapping[str, object] | None, wanted: Sequence[str], what: str) -> list[Any]:
    """The values of all wanted columns, in order; a missing or unknown column is refused."""
    given = {} if given is None else given
    if not is_mapping(given):
        raise BadInput(f"{what}s={as_shown(given)}: give a mapping from columns, {list(wanted)}, to values")
    if len(given) == len(wanted) and all(map(given.__contains__, wanted)):
        return list(map(given.__getitem__, wanted))
    check_known(given, wanted, what)
    absent = [name for name in wanted if name not in given]
    raise BadInput(f"{what} {absent[0]!r} is missing; this layer needs {list(wanted)}")


def remember(found: dict[Any, Any], key: Any, value: Any) -> None:
    """Bounded cache."""
    if len(found) >= REMEMBERED:
        found.clear()
    found[key] = value


SCALAR = Row((ALL,), (1.0,))
ALONE = (SCALAR, Place((0,), (0,), 0, 0))
NO_GROUP = Row((), ())


def check_known(given: Mapping[str, object], wanted: Sequence[str], what: str) -> None:
    """Refuse a column that the layer was not made with."""
    extra = sorted(set(given) - set(wanted), key=str)
    if extra:
        raise BadInput(
            f"{what} {extra[0]!r} is not one of this layer's: {list(wanted)}; leave it out, or make the layer with it"
        )
