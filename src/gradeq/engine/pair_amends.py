"""A corrected score: what the old one did to ratings and accounts is taken back, what the new one does is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradeq.engine.pairs import JUDGE
from gradeq.kernels import rating
from gradeq.kernels.rating import (
    ALL_GAMES,
    ALL_WEIGHT,
    BEFORE,
    COLUMNS,
    ERROR,
    GAMES,
    GRADIENT,
    LOSS,
    MOVED,
    TIES,
    WEIGHT,
    WINS,
)

if TYPE_CHECKING:
    from gradeq.engine.pairs import Memo, Pairs


def amend(
    head: Pairs,
    index: Sequence[int],
    value: Sequence[float],
    memo: Memo,
    w: float,
    old: float,
    new: float,
) -> None:
    """Post the difference; a dropped tie counts as no game, so it may begin or end one."""
    enter(head, index, value, memo, w, old, -1.0)
    enter(head, index, value, memo, w, new, 1.0)


def enter(
    head: Pairs,
    index: Sequence[int],
    value: Sequence[float],
    memo: Memo,
    w: float,
    y: float,
    sign: float,
) -> None:
    """Add (sign 1) or take back (sign -1) one game at the step and probability it was served with."""
    if head.drop and y == 0.5:
        return
    p, eta = memo[0], memo[1]
    e = sign * (w * (p - y))
    h = value[2] if len(value) > 2 else 0.0
    sides = [(index[0], 1.0, y), (index[1], -1.0, 1.0 - y)]
    if h != 0.0:
        sides.append((0, h, y))
    for j, z, own in sides:
        rating.shift(
            head.rule, head.u, head.drags, head.pulls, head.marks, head.notes, j, eta * (e * z)
        )
        at = j * COLUMNS
        head.sums[at + GAMES] += sign
        head.sums[at + WEIGHT] += sign * w
        head.sums[at + GRADIENT] += e * z
        head.sums[at + MOVED] += eta * (e * z)
        head.sums[at + WINS] += sign * (w * own)
    head.total[ALL_GAMES] += sign
    head.total[ALL_WEIGHT] += sign * w
    head.total[ERROR] += e
    head.total[BEFORE] += sign * (w * (0.5 - y))
    head.total[TIES] += sign if y == 0.5 else 0.0
    head.total[LOSS] += sign * (w * JUDGE.value(p, y))
