"""Games as rows: two players each, z = 1 and -1, kept as two columns; the entries of rows are made when asked for."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gradeq.ledger.batch import Floats, Ints, Rows

PAIR = (1.0, -1.0)


class Pairs:
    """Stands where ``Rows`` do; most runs never ask for more than a and b. ``counts``: games of each parameter."""

    single = False

    def __init__(self, a: Ints, b: Ints, counts: Floats) -> None:
        self.a, self.b, self.counts = a, b, counts

    @cached_property
    def starts(self) -> Ints:
        """Two entries a row."""
        return np.arange(0, 2 * len(self.a) + 1, 2)

    @cached_property
    def params(self) -> Ints:
        """a and b of each row."""
        return np.stack([self.a, self.b], axis=1).ravel()

    @cached_property
    def values(self) -> Floats:
        """1 and -1 for each row."""
        return np.tile(PAIR, len(self.a))


def games_of(rows: Rows | Pairs) -> tuple[Ints, Ints, Floats | None]:
    """The two players of each row, and where the first side is (None: nowhere)."""
    if isinstance(rows, Pairs):
        return rows.a, rows.b, None
    at, last = rows.starts[:-1], len(rows.params) - 1
    a, b = (np.ascontiguousarray(rows.params[at + k]) for k in (0, 1))
    sided = np.diff(rows.starts) > 2
    if not sided.any():
        return a, b, None
    return a, b, np.where(sided, rows.values[np.minimum(at + 2, last)], 0.0)
