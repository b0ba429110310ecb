"""Whole batches through the mix: experts, then weights and mix, then the final head."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.engine.batch import Batch, Floats
from gradeq.kernels import mixing
from gradeq.kernels.call import run_loop

if TYPE_CHECKING:
    from gradeq.engine.mix import Mix


def run_mix(head: Mix, batch: Batch) -> tuple[Floats, list[Any]]:
    """Serve and learn from the batch; nothing of the head has changed if this raises."""
    saved = deepcopy((head.experts, head.final, head.totals, head.deltas))
    try:
        return _run_mix(head, batch)
    except Exception:
        head.experts, head.final, head.totals, head.deltas = saved
        raise


def _run_mix(head: Mix, batch: Batch) -> tuple[Floats, list[Any]]:
    n, first, count = len(batch.base), batch.first, head.count
    carried = batch.memos[:first]
    served, notes = [batch.base] if head.raw else [], []
    for k, expert in enumerate(head.experts):
        s, memos = expert.run(batch._replace(memos=[memo[0][k] for memo in carried]))
        served.append(s)
        notes.append(memos)
    if (
        head.raw and carried
    ):  # what was raw then may have been clipped by the head: take what was mixed
        served[0] = served[0].copy()
        for i, memo in enumerate(carried):
            served[0][i] = memo[6][0]
    values = np.stack(served, axis=1)
    losses = np.stack([head.judge.many(s, batch.labels) for s in served], axis=1).ravel()
    weights, rates, crowd = np.empty(n * count), np.empty(n), batch.crowd.copy()
    for i, memo in enumerate(carried):
        weights[i * count : (i + 1) * count], rates[i], crowd[i] = memo[1], memo[2], memo[3]
    totals, deltas = np.frombuffer(head.totals), np.frombuffer(head.deltas)
    run_loop(
        mixing.hedged,
        (),
        (head.adaptive, count, batch.units, first, batch.cuts, batch.posts, crowd, losses, totals,
         deltas, rates, weights),
        n,
    )  # fmt: skip
    mixed = blended(count, weights, values)
    for i, memo in enumerate(carried):
        mixed[i] = memo[4]
    out, last = head.final.run(batch._replace(base=mixed, memos=[memo[5] for memo in carried]))
    if batch.at_once:
        return out, []
    table = weights.reshape(n, count)
    return out, [
        (
            [note[i] for note in notes], table[i].tolist(), float(rates[i]), float(crowd[i]),
            mixed[i].tolist(), last[i], [s[i].tolist() for s in served],
        )
        for i in range(n)
    ]  # fmt: skip


def blended(count: int, weights: Floats, values: Floats) -> Floats:
    """The mix of each row, level by level where there are several."""
    n = len(values)
    flat = values.reshape(n, count, -1)
    mixed = np.empty((n, flat.shape[2]))
    for level in range(flat.shape[2]):
        column = np.empty(n)
        own = np.ascontiguousarray(flat[:, :, level]).ravel()
        run_loop(mixing.blended, (), (count, weights, own, column), n)
        mixed[:, level] = column
    return mixed[:, 0] if values.ndim == 2 else mixed
