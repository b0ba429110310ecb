"""The one order of serving and posting in columns: before row i is served, posts[: cuts[i]] have been posted.

A model is a part with two methods, ``post`` and ``serve``. ``one`` and ``other`` are whatever parts it works with,
``state`` is what it learns and ``room`` what it notes of each row and scratch: records, of its own kind.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any


class Rows(
    namedtuple(
        "Rows",
        "base labels weights etas starts index value keys first end cuts posts numbers before",
    )
):
    """The rows of a batch: entries starts[i] to starts[i + 1] of ``index`` and ``value`` belong to row i.

    Rows before ``first`` were served in an earlier run, as rows ``numbers`` of the layer; ``before`` rows were served
    before row ``first``. ``end``: one more than there are rows, since labels may come after the last.
    """


class Row(
    namedtuple(
        "Row", "base labels weights etas starts index keys", defaults=((), (), (), (), (), ())
    )
):
    """One row as ``Rows`` has it, for an event: of each column what the event knows."""


def driven(model: Any, one: Any, other: Any, rows: Rows, state: Any, room: Any) -> None:
    """Labels at once or late, in any order; a label is ``fresh`` if nothing was posted since its row was served."""
    p = 0
    latest = rows.end
    for i in range(rows.first, rows.end):
        while p < rows.cuts[i]:
            r = rows.posts[p]
            model.post(one, other, rows, state, room, i, r, r == latest)
            latest = rows.end
            p += 1
        if i < len(rows.labels):
            model.serve(one, other, rows, state, room, i)
            latest = i


def waited(rows: Rows, i: int, r: int) -> float:
    """How many rows were served between row r and its label, which is posted before row i is served."""
    number = rows.numbers[r] if r < rows.first else rows.before + (r - rows.first) + 1.0
    ago: float = max(0.0, rows.before + (i - rows.first) - number)
    return ago
