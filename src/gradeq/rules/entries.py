"""Labels of single events, entered many at a time: the same sums as one by one, to the last bit.

Events leave them in the state (``State.leave``): what was posted, its place, and how many rows were served by then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress
from operator import itemgetter
from typing import Any

import numpy as np

from gradeq.kernels.account import enter_many
from gradeq.ledger.state import LEFT, Floats, State

PARAMS, VALUES = itemgetter(0), itemgetter(1)  # of a place, of a row


@dataclass(frozen=True)
class Entries:
    """Labels in the order of posting, each a column, or a list where rules have more than numbers.

    ``centre``: what z'u moves; ``now``: the rows served by then, ``FACTS_KNOWN`` where a label is for the accounts
    alone.
    """

    places: Any
    rows: Any
    base: Any
    served: Any
    centre: Any
    y: Any
    memo: Any
    w: Floats
    eta: Floats
    sign: Floats
    step: Floats
    number: Floats
    now: Floats
    lates: Any

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def params(self) -> tuple[Any, Any]:
        """The parameters of all labels one after the other, and where those of each begin."""
        if alike(self.places):
            own, n = np.array(self.places[0][0], dtype=np.int64), len(self)
            return np.tile(own, n), np.arange(n + 1) * len(own)
        each = list(map(PARAMS, self.places))
        flat = list(chain.from_iterable(each))
        wide = len(each[0])
        same = len(flat) == wide * len(
            each
        )  # players with a home side and those without may make up for it
        starts = np.arange(0, len(flat) + 1, wide) if same else np.cumsum([0, *map(len, each)])
        return steady(flat).astype(np.int64), starts

    @property
    def index(self) -> Any:
        """The parameters, a column for each entry of a row."""
        return self.params[0].reshape(len(self), -1).T

    @cached_property
    def z(self) -> Floats:
        """Their values, a column each."""
        first, n, same = self.rows[0][1], len(self), alike(self.rows)
        each = [] if same else list(map(VALUES, self.rows))
        if same or each.count(first) == n:
            return np.repeat(first, n).reshape(-1, n)
        return column(list(chain.from_iterable(each))).reshape(n, -1).T

    @cached_property
    def late(self) -> Floats:
        """The largest lateness of each label."""
        first, n = self.lates[0], len(self)
        if self.lates.count(first) == n:
            return np.full(n, float(max(first)))
        return column([max(late, default=0) for late in self.lates])


def read(log: list[Any]) -> Entries:
    """The labels that were left."""
    number, rows, base, served, w, step, eta, late, y, _, _, memo, _, sign, _, places, now = (
        log[k::LEFT] for k in range(LEFT)
    )
    return Entries(
        places, rows, base, served, base, y, memo, steady(w), steady(eta), steady(sign), steady(step),
        column(number), column(now), late,
    )  # fmt: skip


def alike(values: list[Any]) -> bool:
    """Whether all are one and the same, as the places of a layer without groups are."""
    return values[0] is values[-1] and values.count(values[0]) == len(values)


def column(values: Any) -> Floats:
    """Numbers as a column."""
    if isinstance(values, np.ndarray):
        return values
    return np.fromiter(values, np.float64, len(values))


def steady(values: Any) -> Floats:
    """The same for numbers that are often all one."""
    first, count = values[0], len(values)
    return np.full(count, first) if values.count(first) == count else column(values)


def columns(values: Any, levels: int) -> tuple[Floats, ...]:
    """Numbers of several levels, a column each."""
    return (column(values),) if levels == 1 else tuple(map(column, zip(*values, strict=True)))


def picked(own: Entries, chosen: Any) -> Entries:
    """Some of the labels, as far as their facts go."""
    few = {name: getattr(own, name)[chosen] for name in ("w", "eta", "step", "number", "now")}
    lists = {
        name: list(compress(getattr(own, name), chosen)) for name in ("places", "rows", "lates")
    }
    return replace(own, **few, **lists)


def enter(
    state: State, own: Entries, judged: tuple[Any, Any], residuals: Any, blurs: Any, reach: Any
) -> None:
    """Enter labels into the accounts of their parameters, and into that of all rows where there is one.

    ``judged``: errors and losses, of what was served before the base; all have a column for each level.
    """
    (errors, losses), levels, terms = judged, len(residuals), (own.w, own.eta, own.sign)
    whole = hasattr(state, "total")
    for k in range(levels):
        seen = (*errors[k::levels], *losses[k::levels])
        label = (*seen, residuals[k], blurs[k], reach)
        for index, z in zip(own.index, own.z, strict=True):  # none is in two places of a row
            enter_many(state.view("sums"), index * levels + k, z, terms, label)
        if whole:
            at = np.full(len(own), k)
            enter_many(state.view("total"), at, np.ones(1), terms, label)
