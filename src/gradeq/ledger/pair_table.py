"""The pair table of a leaderboard: for each pair of players that met, sums over their games."""

from __future__ import annotations

import math
from array import array
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gradeq.kernels.account import ROWS
from gradeq.ledger.batch import Floats, Ints, Rows
from gradeq.ledger.state import KEEP, MOST, SUM, Column, State

GRID = 33  # bits, one less than those that a weight of 1 is rounded to
MET = 3  # numbers that name a cell
COLUMNS = (
    Column("met", "pair", (0.0,) * MET, (KEEP,) * MET, low=(1.0, 1.0, -math.inf)),
    Column("tally", "pair", (0.0,) * 3, (SUM,) * 3),
    Column("squares", "pair", (0.0,) * 3, (SUM,) * 3, lazy=True),
    Column("crowded", "layer", (0.0,), (MOST,), low=0.0, later=True),
)
MOST_CELLS = 5_000_000


class PairTable(NamedTuple):
    """The table as columns. ``V``, ``VS``, ``VQ``: the sums with w^2 for w."""

    i: Ints
    j: Ints
    h: Floats
    W: Floats
    S: Floats
    Q: Floats
    V: Floats
    VS: Floats
    VQ: Floats


def turned(w: Any, s: Any, q: Any) -> tuple[Any, Any, Any]:
    return w, w - s, w - 2.0 * s + q


def bear_squares(state: State) -> None:
    """Keep the sums with squared weights from now on: all weights so far were 1."""
    if not state.has_column("squares"):
        state.squares = state.tally[:]


def tally(state: State, a: Any, b: Any, h: Floats, y: Floats, w: Floats, sign: Floats | None = None) -> None:
    """Enter games, new cells in the order of their first game; those of sign -1 are taken back."""
    if state.crowded[0]:
        return
    swap, many = a > b, state.counts["parameter"]
    low, high = np.where(swap, b, a), np.where(swap, a, b)
    side, where = np.zeros(1), np.zeros(1, dtype=np.int64)
    if h.any():
        side, where = np.unique(np.where(swap, 0.0 - h, h), return_inverse=True)
    code, size = (low * many + high) * len(side) + where, many * many * len(side)
    if size > 8 * len(a) + 65536:  # too many cells that might be: number those that are
        present, code = np.unique(code, return_inverse=True)
        size = len(present)
    else:
        present = np.arange(size)
    first = np.full(size, -1, dtype=np.int64)
    first[code[::-1]] = np.arange(len(code) - 1, -1, -1)
    there = np.flatnonzero(first >= 0)
    there = there[np.argsort(first[there])]
    cells = present[there]
    pairs, sides = np.divmod(cells, len(side))
    named = np.stack([*np.divmod(pairs, many), side[sides]], axis=1).astype(float)
    at = places(state, named)
    if state.counts["pair"] > MOST_CELLS:
        give_up(state)
        return
    if not (w == 1.0).all():
        bear_squares(state)
    plain, where_of = not state.has_column("squares"), np.zeros(size, dtype=np.int64)
    where_of[there] = at
    for name, weight in (("tally", w), ("squares", w * w)):
        if state.has_column(name):
            unit = np.ldexp(1.0, np.frexp(weight)[1] - GRID)
            own = [np.rint(x / unit) * unit for x in (weight, weight * y, weight * y * y)]
            if sign is not None:
                own = [sign * x for x in own]
            table = state.view(name).reshape(-1, 3)
            for k, other in enumerate(turned(*own)):
                mine = np.where(swap, other, own[k])
                if plain:  # whole numbers, quickest
                    table[at, k] += np.bincount(code, mine, size)[there]
                else:  # one game after the other: so wide a range of weights may be that a sum rounds
                    np.add.at(table[:, k], where_of[code], mine)


def give_up(state: State) -> None:
    """Keep no table any more."""
    for name in ("met", "tally", "squares"):
        setattr(state, name, array("d"))
    state.counts["pair"], state.index, state.crowded[0] = 0, {}, 1.0


def places(state: State, named: Any) -> Any:
    """Cells by name, entered where new."""
    known = state.counts["pair"]
    if not known:
        state.index, at = {}, np.arange(len(named))
    else:
        index = state.index
        if len(index) != known:
            cells = state.view("met").reshape(-1, MET).tolist()
            index = state.index = {(i, j, h): k for k, (i, j, h) in enumerate(cells)}
        own = [index.setdefault((i, j, h), len(index)) for i, j, h in named.tolist()]
        at = np.array(own, dtype=np.int64)
    state.grow(0, 0, int(at.max(initial=-1)) + 1)
    state.view("met").reshape(-1, MET)[at] = named
    return at


def joined(state: State, other: State, parameters: object) -> Any:
    """Where the cells of another partition are here, once its own are turned to the numbers of players here."""
    state.read()
    other.read()
    if state.crowded[0] or other.crowded[0]:
        give_up(state)
        give_up(other)
        return ()
    named = other.view("met").reshape(-1, MET).copy()
    here = np.asarray(parameters, dtype=float)
    named[:, :2] = here[named[:, :2].astype(np.int64)]
    swap = named[:, 0] > named[:, 1]
    named[swap] = np.stack([named[swap, 1], named[swap, 0], 0.0 - named[swap, 2]], axis=1)
    for name in ("tally", "squares"):
        table = other.view(name).reshape(-1, 3)
        if len(table):
            table[swap] = np.stack(turned(*table[swap].T), axis=1)
    at = places(state, named)
    for mine, theirs in ((state, other), (other, state)):
        if theirs.has_column("squares"):
            bear_squares(mine)
    return at


def cells_of(state: State, rank: Any) -> PairTable:
    """The table for players by rank (that of parameter k is rank[k]), sorted: the same for games in any order.

    Weights are relative to their mean.
    """
    met = state.read().view("met").reshape(-1, MET)
    sums = state.view("tally").reshape(-1, 3).T
    squares = state.view("squares").reshape(-1, 3).T if state.has_column("squares") else sums
    i, j = (rank[met[:, k].astype(np.int64)] for k in (0, 1))
    swap = i > j
    turn = [np.where(swap, t, o) for own in (sums, squares) for o, t in zip(own, turned(*own), strict=True)]
    i, j, h = np.where(swap, j, i), np.where(swap, i, j), np.where(swap, 0.0 - met[:, 2], met[:, 2])
    order = np.lexsort((h, j, i))
    order = order[turn[0][order] > 0.0]  # games taken back leave empty cells
    cells = PairTable(*(column[order] for column in (i, j, h, *turn)))
    if squares is sums:
        return cells
    mean = math.fsum(cells.W) / state.total[ROWS]
    relative = [column / mean for column in cells[3:6]]
    return PairTable(*cells[:3], *relative, *(column / mean / mean for column in cells[6:]))


PAIR = (1.0, -1.0)


class GamePairs:
    """Stands where ``Rows`` do; most runs never ask for more than a and b. ``counts``: games of each parameter."""

    single = False

    def __init__(self, a: Ints, b: Ints, counts: Floats) -> None:
        self.a, self.b, self.counts = a, b, counts

    @cached_property
    def starts(self) -> Ints:
        return np.arange(0, 2 * len(self.a) + 1, 2)

    @cached_property
    def params(self) -> Ints:
        return np.stack([self.a, self.b], axis=1).ravel()

    @cached_property
    def values(self) -> Floats:
        return np.tile(PAIR, len(self.a))


def games_of(rows: Rows | GamePairs) -> tuple[Ints, Ints, Floats | None]:
    """The two players of each row, and where the first side is (None: nowhere)."""
    if isinstance(rows, GamePairs):
        return rows.a, rows.b, None
    at, last = rows.starts[:-1], len(rows.params) - 1
    a, b = (np.ascontiguousarray(rows.params[at + k]) for k in (0, 1))
    sided = np.diff(rows.starts) > 2
    if not sided.any():
        return a, b, None
    return a, b, np.where(sided, rows.values[np.minimum(at + 2, last)], 0.0)
