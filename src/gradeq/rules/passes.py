"""A batch and a state as the compiled passes of descent take them: the parts that fit, and two records."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradeq.kernels.call import run_loop, unsigned
from gradeq.kernels.descent import Given, Kept, tally
from gradeq.kernels.forms import Alone, Dense, Listed, Own, Same, Several, Single
from gradeq.ledger.batch import Batch
from gradeq.ledger.state import State
from gradeq.links import Link
from gradeq.losses import Loss
from gradeq.penalties import Ridge

IDLE = Ridge(1.0)  # stands where a compiled loop expects a penalty that it does not use
NOTHING = np.empty(0)


def forms_of(batch: Batch, parameters: int) -> tuple[Any, Any]:
    """The form of the rows of a batch, and whether they share one weight and step."""
    rows = batch.rows
    terms = Same() if batch.plain else Own()
    if rows.dense:
        return Dense(), terms
    if rows.single:
        return Alone() if parameters == 1 else Single(), terms
    return Several(rows.width) if rows.width else Listed(), terms


def given(batch: Batch, served: Any, centre: Any = None) -> Given:
    """What a pass reads of a batch; ``centre`` is what z'u moves, if not the base prediction."""
    rows, same = batch.rows, slice(1 if batch.plain else None)
    starts, params = unsigned(rows.starts, rows.params)
    values = NOTHING if rows.width else rows.values  # the former are known
    if rows.dense:
        values = values.reshape(len(served), -1)
    return Given(
        batch.base, batch.base if centre is None else centre, batch.labels, batch.weights[same],
        batch.etas[same], starts, params, values, served,
    )  # fmt: skip


def kept(state: State) -> Kept:
    """What a pass writes of a state; what is not kept is empty."""
    names = ("u", "sums", "total", "pulls", "drags")
    found = [state.view(name) if hasattr(state, name) else NOTHING for name in names]
    return Kept._make([*found, np.empty(len(found[-1]))])


def tallied(link: Link, loss: Loss, account: Any, batch: Batch, columns: Given, sums: Kept) -> None:
    """Enter the posted rows of a batch into accounts: a pass of its own."""
    parts = (link, loss, *forms_of(batch, len(sums.u)), account, columns, sums)
    run_loop(tally, parts, unsigned(batch.posts), len(batch.base))
