"""Lean accounts: the two sums of a certificate for each parameter, and how much was heard in all.

A ``Learner`` keeps no more. What the base prediction would have cost is a question for layers.
"""

from __future__ import annotations

import numpy as np

from gradeq.kernels.account import LEAN, ROWS, WEIGHT, enter_lean
from gradeq.ledger.batch import Batch
from gradeq.ledger.state import MOST, MOVE, SUM, Column, State, column
from gradeq.ledger.values import Posting

STEP = 2  # beside ROWS and WEIGHT in the column ``heard``: the last step taken

LEAN_COLUMNS = (
    column("u", "parameter", (0.0,), MOVE),
    column("sums", "parameter", (0.0,) * LEAN),
    Column("heard", "layer", (0.0, 0.0, 0.0), (SUM, SUM, MOST)),
)
PENALTY_COLUMNS = (column("pulls", "parameter", (0.0,)), column("drags", "parameter", (0.0,)))


def entered(state: State, params: tuple[int, ...], posting: Posting, error: float) -> None:
    """Enter one label, whose move was made."""
    w, eta, sign = posting.weight, posting.eta, posting.sign
    e = w * error
    for j, z in zip(params, posting.row.values, strict=True):
        enter_lean(state.sums, j * LEAN, e, z, eta, sign)
    heard = state.heard
    heard[ROWS] += sign
    heard[WEIGHT] += sign * w
    heard[STEP] = eta


def counted(state: State, batch: Batch) -> None:
    """Count the posted rows of a run; weights one after the other, as events add them."""
    posts, heard = batch.posts, state.heard
    if not len(posts):
        return
    heard[ROWS] += float(len(posts))
    if batch.plain and heard[WEIGHT].is_integer():
        heard[WEIGHT] += float(len(posts))
    else:
        heard[WEIGHT] = np.add.accumulate(np.append(heard[WEIGHT], batch.weights[posts]))[-1]
    heard[STEP] = float(batch.etas[posts[-1]])
