"""Labels of single events, entered into the accounts many at a time: the same sums as one by one, to the last bit.

The numbers of a label are how many parameters it touches, these and their z; the errors and losses of its posting;
what its rule notes of it; its weight, step and sign. Events leave them in the state (``State.postpone``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradeq.kernels.account import enter_many
from gradeq.ledger.state import Floats, State


class Entries(NamedTuple):
    """Labels in the order of posting, by column; ``index`` and ``z`` have one for each entry of a row, errors and
    losses one for each level, what was served before the base, ``notes`` one for each number that the rule noted."""

    index: Any
    z: Floats
    errors: Floats
    losses: Floats
    notes: Floats
    terms: tuple[Floats, Floats, Floats]


def read(numbers: list[float], levels: int, notes: int) -> Entries:
    """The columns of labels that were postponed."""
    width = int(numbers[0])
    stops = np.cumsum([1, width, width, 2 * levels, 2 * levels, notes, 3])
    table = np.fromiter(numbers, np.float64, len(numbers)).reshape(-1, stops[-1]).T
    _, index, z, errors, losses, noted, terms = np.split(table, stops[:-1])
    return Entries(index.astype(np.int64), z, errors, losses, noted, tuple(terms))


def enter(state: State, own: Entries, residuals: Any, blurs: Any, reach: Any) -> None:
    """Enter labels into the accounts of their parameters, and into that of all rows where there is one.

    ``residuals`` and ``blurs``: a column for each level.
    """
    levels = len(residuals)
    whole = hasattr(state, "total")
    for k in range(levels):
        seen = (*own.errors[k::levels], *own.losses[k::levels])
        label = (*seen, residuals[k], blurs[k], reach)
        for index, z in zip(own.index, own.z, strict=True):  # none is in two places of a row
            enter_many(state.view("sums"), index * levels + k, z, own.terms, label)
        if whole:
            at = np.full(len(reach), k)
            enter_many(state.view("total"), at, np.ones(1), own.terms, label)
