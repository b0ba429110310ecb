"""Whole batches through the quantile ensemble: trackers and weights in one pass, the final head in the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.engine.batch import Batch, Floats
from gradeq.engine.passes import check_finite
from gradeq.kernels import ensemble as loops
from gradeq.kernels.call import run_loop

if TYPE_CHECKING:
    from gradeq.engine.ensemble import Ensemble


class Memos(Sequence[Any]):
    """The memo of each row, made when it is asked for."""

    def __init__(self, mixed: Floats, held: Floats, crowd: Floats, last: Any) -> None:
        self.mixed, self.held, self.crowd, self.last = mixed, held, crowd, last

    def __len__(self) -> int:
        return len(self.mixed)

    def __getitem__(self, i: Any) -> Any:
        last = None if self.last is None else self.last[i]
        return float(self.mixed[i]), self.held[i].tolist(), float(self.crowd[i]), last


def run_ensemble(head: Ensemble, batch: Batch) -> tuple[Floats, Any]:
    """Serve and learn from the batch; nothing of the head has changed if this raises."""
    from gradeq.engine.ensemble import COLUMN_NAMES, IDENTITY

    n, count = len(batch.base), head.count
    columns = {name: np.array(getattr(head, name)) for name in COLUMN_NAMES}
    mixed, crowd = np.empty(n), batch.crowd.copy()
    held = np.empty((1 if batch.at_once else n, count))
    for k in range(batch.first):
        mixed[k], held[k], crowd[k], _ = batch.memos[k]
    arrays = (
        head.geometry.floor > 0.0, count, np.array(head.nus), head.nu, head.limit, crowd,
        batch.base, batch.labels, batch.weights, batch.units,
        *(columns[name] for name in COLUMN_NAMES),
        held.reshape(-1), np.empty(count), np.empty(count), mixed,
    )  # fmt: skip
    parts = (IDENTITY, head.loss, head.geometry)
    if batch.at_once:
        run_loop(loops.at_once, parts, arrays, n * count)
    else:
        order = (batch.first, batch.cuts, batch.posts)
        run_loop(loops.late, parts, (*arrays, *order), n * count)
    check_finite(columns["thetas"], max(head.nus))
    served, last = mixed, None
    if head.final is not None:
        carried = [memo[3] for memo in batch.memos[: batch.first]]
        served, last = head.final.run(batch._replace(base=mixed, memos=carried))
    for name, column in columns.items():
        np.frombuffer(getattr(head, name))[:] = column
    return served, [] if batch.at_once else Memos(mixed, held, crowd, last)
