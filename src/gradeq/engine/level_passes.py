"""Whole batches through the head of several levels: one pass serves, learns and keeps the accounts."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.engine.batch import Batch, Floats
from gradeq.engine.events import one_by_one
from gradeq.engine.passes import check_finite, stepped
from gradeq.kernels import level_loops as loops
from gradeq.kernels.call import run_loop

if TYPE_CHECKING:
    from gradeq.engine.levels import Levels


class Memos(Sequence[Any]):
    """The memo of each row, made when it is asked for."""

    def __init__(self, served: Floats, etas: Floats, scales: Floats) -> None:
        self.served, self.etas, self.scales = served, etas, scales

    def __len__(self) -> int:
        return len(self.etas)

    def __getitem__(self, i: Any) -> Any:
        return self.served[i].tolist(), float(self.etas[i]), float(self.scales[i]), None


def run_levels(head: Levels, batch: Batch) -> tuple[Floats, Any]:
    """Serve and learn from the batch; nothing of the head has changed if this raises."""
    from gradeq.engine.levels import COLUMN_NAMES, SINH

    if head.penalty is not None and not batch.at_once:
        return one_by_one(head, batch)  # each ticket carries the slopes of all parameters
    n, count = len(batch.labels), head.count
    pace = deepcopy(head.pace)
    etas = stepped(head.schedule, head.limit, pace, batch)
    served, scales = np.empty((n, count)), np.empty(n)
    for k in range(batch.first):
        served[k], etas[k], scales[k], _ = batch.memos[k]
    columns = {name: np.array(getattr(head, name)) for name in COLUMN_NAMES}
    base = np.ascontiguousarray(batch.base).reshape(-1)
    taus = np.array(head.taus)
    scratch = [np.empty(count) for _ in range(3)]
    flat = served.reshape(-1)
    arrays = (
        head.curved, count, taus, base, batch.labels, batch.weights, etas, batch.rows.starts,
        batch.rows.params, batch.rows.value, batch.units,
        *(columns[name] for name in ("u", "nums", "dens", "sums", "gaps", "total", "widest")),
        *scratch, flat,
    )  # fmt: skip
    if head.penalty is not None:
        slopes = np.empty(len(columns["u"]))
        extra = (columns["pulls"], columns["drags"], slopes)
        run_loop(loops.penalised, (SINH, head.penalty), (*arrays, *extra), n * count)
    elif batch.at_once:
        run_loop(loops.at_once, (SINH,), arrays, n * count)
    else:
        order = (scales, batch.first, batch.cuts, batch.posts)
        run_loop(loops.late, (SINH,), (*arrays, *order), n * count)
    check_finite(columns["u"], float(etas.max(initial=0.0)))
    for name, column in columns.items():
        if len(column):
            np.frombuffer(getattr(head, name))[:] = column
    head.pace = pace
    memos: Any = [] if batch.at_once else Memos(served, etas, scales)
    return served[:, 0] if count == 1 else served, memos
