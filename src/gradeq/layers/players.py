"""The players of a game: any name, numbered as they first appear; number 0 is kept for the first side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradeq.engine.desk import Row
from gradeq.errors import BadInput
from gradeq.layers.door import number

if TYPE_CHECKING:
    from gradeq.engine.batch import Ints

HOME = "(first side)"


def player_name(player: Any) -> str:
    """The name of a player as text: 7 and "7" are one; an absent name is refused."""
    if type(player) is str and player:
        return player
    from gradeq.files.codebook import MISSING_NAME, name_of

    name = name_of(player)
    if name == MISSING_NAME:
        raise BadInput(f"player {player!r} has no name; drop the game or name the player")
    return name


class Players:
    """Names of players and their parameters; ``home`` says whether the first side has one of its own."""

    __slots__ = ("home", "names")

    def __init__(self, home: bool) -> None:
        self.home = home
        self.names: dict[str, int] = {}

    @property
    def count(self) -> int:
        """How many parameters there are, the first side's included."""
        return len(self.names) + 1

    def known(self, a: Any, b: Any) -> tuple[int | None, int | None]:
        """The parameters of two players, None for one never seen; the two must differ."""
        first, second = player_name(a), player_name(b)
        if first == second:
            raise BadInput(f"player {first!r} against itself is no game; leave it out")
        return self.names.get(first), self.names.get(second)

    def pair(self, a: Any, b: Any) -> tuple[int, int]:
        """The parameters of two players, made when they are new."""
        names = self.names
        if type(a) is str and type(b) is str:
            j, k = names.get(a), names.get(b)
            if j is not None and k is not None and j != k:
                return j, k
        j, k = self.known(a, b)
        if j is None:
            j = names[player_name(a)] = len(names) + 1
        if k is None:
            k = names[player_name(b)] = len(names) + 1
        return j, k

    def side(self, home: float) -> float:
        """The feature of the first side: 1 at home, 0 on neutral ground, -1 when the second side is at home."""
        if not self.home:
            if home != 1.0:
                raise BadInput(
                    f"home={home!r}: this Elo has no advantage of the first side; use home_advantage=True"
                )
            return 0.0
        value = number(home, "home")
        if not -1.0 <= value <= 1.0:
            raise BadInput(f"home={value}: give 1 (a at home), 0 (neutral) or -1 (b at home)")
        return value

    def row(self, j: int, k: int, h: float) -> Row:
        """Where one game belongs; the late-label cap counts the two players (and the first side if it has one)."""
        if self.home:
            return Row(0, (j, k, 0), (1.0, -1.0, h), (j, k, 0), 0, 1.0)
        return Row(0, (j, k), (1.0, -1.0), (j, k), 0, 1.0)

    def coded(self, a: Any, b: Any) -> tuple[Ints, Ints]:
        """The parameters of two columns of players; new ones are numbered as they would be one game at a time."""
        import numpy as np

        from gradeq.layers.coding import coded

        own = [coded(column, f"player {what}") for column, what in ((a, "a"), (b, "b"))]
        if len(own[0][0]) != len(own[1][0]):
            raise BadInput(
                f"a has {len(own[0][0])} rows, b has {len(own[1][0])}; give columns of one length"
            )
        self.enter(own)
        tables = [np.array([self.names.get(name, 0) for name in names]) for _, names in own]
        left, right = (
            table[codes] if len(table) else codes
            for table, (codes, _) in zip(tables, own, strict=True)
        )
        return left, right

    def enter(self, own: list[tuple[Ints, list[str]]]) -> None:
        """Number the players not seen before in the order of their first game, a before b."""
        fresh: dict[str, int] = {}
        for side, (codes, names) in enumerate(own):
            if all(name in self.names for name in names):
                continue
            for code, row in first_rows(codes, len(names)):
                if names[code] not in self.names:
                    place = 2 * row + side
                    fresh[names[code]] = min(place, fresh.get(names[code], place))
        for name in sorted(fresh, key=fresh.__getitem__):
            self.names[name] = len(self.names) + 1


def first_rows(codes: Ints, count: int) -> list[tuple[int, int]]:
    """Each code that has a row, and its first; most are found near the beginning."""
    import numpy as np

    first = np.full(count, -1, dtype=np.int64)
    present = np.flatnonzero(np.bincount(codes, minlength=count))
    stop = min(len(codes), 16 * count + 1024)
    while True:
        first[codes[:stop][::-1]] = np.arange(stop - 1, -1, -1)
        if stop == len(codes) or (first[present] >= 0).all():
            return list(zip(present.tolist(), first[present].tolist(), strict=True))
        stop = len(codes)
