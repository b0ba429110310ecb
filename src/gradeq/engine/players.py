"""The players of a game: any name, numbered as they first appear; number 0 is kept for the first side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradeq.engine.names import Placed, Renamed, respelled
from gradeq.engine.scalars import as_number
from gradeq.errors import BadInput, StateError
from gradeq.inputs.arguments import MISSING_NAME, name_of, text_name
from gradeq.ledger.batch import Floats, Ints, Rows, constant, first_rows, single
from gradeq.ledger.pair_table import MET, PAIR, GamePairs
from gradeq.ledger.values import Place, Row, new

HOME = "(first side)"


def player_name(player: object) -> str:
    """The name of a player as text: 7 and "7" are one; an absent name is refused."""
    name = name_of(player)
    if name == MISSING_NAME:
        raise BadInput(f"player {player!r} has no name; drop the game or name the player")
    if name == HOME:
        raise BadInput(f"player {player!r} has the name reserved for the first side's parameter; rename it")
    return name


class Players:
    """Names of players and their parameters; ``home``: the first side has one of its own, at place 0.

    ``together``: scores' lateness is counted for the whole layer, as it is with a penalty. ``scale``: the first side
    enters rows as h times this, so that its step is ``scale`` squared times that of the players.
    """

    __slots__ = ("home", "index", "names", "scale", "together")

    keys = 1
    size = 2.0  # the squared norm of a game, but for the first side
    clocked = "total"  # time is counted in games learned from, the first number of that account

    def __init__(self, home: bool, together: bool = False, scale: float = 1.0) -> None:
        self.home, self.together, self.scale = home, together, scale
        self.index = {HOME: 0}
        self.names = [HOME]

    @property
    def count(self) -> int:
        return len(self.names)

    @property
    def players(self) -> list[str]:
        """The players by name, in the order of their parameters from 1 on."""
        return self.names[1:]

    def side(self, home: float) -> float:
        """Where the first side is: 1 at home, 0 on neutral ground, -1 when the second side is at home; scaled."""
        if not self.home:
            if as_number(home, "home") != 1.0:
                raise BadInput(f"home={home!r}: this Elo has no advantage of the first side; use home_advantage=True")
            return 0.0
        value = as_number(home, "home")
        if not -1.0 <= value <= 1.0:
            raise BadInput(f"home={value}: give 1 (a at home), 0 (neutral) or -1 (b at home)")
        return value * self.scale

    def row(self, a: Any, b: Any, home: float) -> Row:
        """Where one game belongs, by name; nothing is entered."""
        h = self.side(home)
        one, two = player_name(a), player_name(b)
        if one == two:
            raise BadInput(f"player {one!r} cannot play itself; leave this game out")
        return Row((one, two, HOME), (*PAIR, h)) if h else Row((one, two), PAIR)

    def pair(self, a: object, b: object) -> tuple[int, int] | None:
        """The numbers of two players that were seen before, None for any others."""
        j = self.index.get(a if type(a) is str else str(a) if type(a) is int else "")
        k = self.index.get(b if type(b) is str else str(b) if type(b) is int else "")
        return (j, k) if j and k and j != k else None  # number 0 is the first side, no player

    def place(self, row: Row) -> Place:
        """Where a game belongs; players not seen before are entered."""
        for name in row.names:
            self.number_of(name)
        place = self.known(row)
        assert place is not None
        return place

    def known(self, row: Row) -> Place | None:
        """Where a game belongs, or None if one of its players has not been seen before."""
        try:
            params = tuple(map(self.index.__getitem__, row.names))
        except KeyError:
            return None
        # The first side is no cell: lateness is counted in the games of the two players.
        return new(Place, (params, (0,) if self.together else params[:2], 0, 0))

    def number_of(self, name: str) -> int:
        """The parameter of a player, who is entered if new."""
        number = self.index.get(name)
        if number is None:
            number = self.index[name] = len(self.names)
            self.names.append(name)
        return number

    def knows(self, row: Row) -> None:
        """Refuse a row that cannot be one of this layer's."""
        players = row.names[:2]
        # On neutral ground there is no first side.
        sided = (*players, HOME) if self.home else players
        if (
            row.key is not None
            or row.names not in (players, sided)
            or len(set(players) - {HOME}) != 2
            or row.values[:2] != PAIR
        ):
            raise BadInput(f"a row of {row.names} is not one of this layer's; post it where it was served")

    def mark(self) -> Any:
        return len(self.names)

    def forget(self, mark: Any) -> None:
        while len(self.names) > mark:
            del self.index[self.names.pop()]

    def entered(self, own: Sequence[tuple[Ints, list[str]]]) -> GamePairs:
        """Two columns of players (codes and names); new ones are numbered as they would be one game at a time."""
        fresh: dict[str, int] = {}
        games = [np.bincount(codes, minlength=len(names)) for codes, names in own]
        for side, (codes, names) in enumerate(own):
            new = {name for name in names if name == HOME or name not in self.index}
            for code, row in first_rows(codes, len(names)) if new else ():
                if names[code] in new:
                    name, place = player_name(names[code]), 2 * row + side
                    fresh[name] = min(place, fresh.get(name, place))
        for name in sorted(fresh, key=fresh.__getitem__):
            self.number_of(name)
        counts = np.zeros(self.count)
        sides: list[Ints] = []
        for (codes, names), count in zip(own, games, strict=True):
            table = np.array([self.index.get(name, 0) for name in names], dtype=np.int64)
            np.add.at(counts, table, count)
            sides.append(table.take(codes) if len(table) else codes)
        a, b = sides
        return GamePairs(a, b, counts)

    def columns(self, pairs: GamePairs, home: Floats | None) -> Placed:
        """Whole columns of games as places."""
        n = len(pairs.a)
        nothing = constant(n, 0)
        cells: Any = single(nothing) if self.together else pairs
        if home is None:
            rows: Any = pairs
            return Placed(rows, cells, nothing, nothing, None)
        home = home * self.scale
        there = np.stack([np.ones(n), np.ones(n), home], axis=1).ravel() != 0.0
        index = np.stack([pairs.a, pairs.b, nothing], axis=1).ravel()[there]
        values = np.stack([np.ones(n), -np.ones(n), home], axis=1).ravel()[there]
        entries = 2 + (home != 0.0)
        starts = np.concatenate([[0], np.cumsum(entries)])
        return Placed(Rows(starts, index, values), cells, nothing, nothing, entries.astype(float))

    def row_at(self, params: Sequence[int], values: Sequence[float], key: int) -> Row:
        return Row(tuple([self.names[j] for j in params]), tuple(values))

    def state(self) -> dict[str, Any]:
        return {"names": self.players}

    def restore(self, state: dict[str, Any]) -> Renamed:
        """Take up saved names; those that were spelled otherwise by then, and how they are spelled now."""
        names = [HOME, *state["names"]]
        if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
            raise StateError("the state is damaged: a player appears twice or has no name")
        renamed = respelled(names, text_name)
        self.names = names = [renamed.get(name, name) for name in names]
        self.index = {name: j for j, name in enumerate(names)}
        met = np.frombuffer(state["columns"]["met"]).reshape(-1, MET)
        one, two = met[:, 0], met[:, 1]
        if not ((one < two) & (two < len(names)) & (np.floor(met[:, :2]) == met[:, :2]).all(axis=1)).all():
            raise StateError("the state is damaged: a pair of players that nobody knows has met")
        if len(np.unique(met, axis=0)) < len(met):
            raise StateError("the state is damaged: a pair of players stands twice")
        return Renamed(renamed, {})

    def served_from(self, rows: Any) -> Any:
        """Which parameters some game was served from, given the games of every cell; any may be the first side's."""
        found = np.broadcast_to(rows > 0.0, self.count).copy()
        found[0] = found.any()
        return found

    def rows_by_key(self, rows: object, served: int) -> Any:
        return np.array([float(served)])

    def merged(self, other: Players) -> tuple[list[int], list[int]]:
        """Enter another partition's players: where its parameters and series are here."""
        return [self.number_of(name) for name in other.names], [0]
