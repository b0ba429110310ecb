"""A whole batch one event at a time: for heads whose formulas cannot be compiled, or whose tickets carry too much."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from gradeq.engine.batch import Batch, Floats


def one_by_one(head: Any, batch: Batch) -> tuple[Floats, list[Any]]:
    """Serve and learn from the batch; nothing of the head (with ``__slots__``) has changed if this raises."""
    trial = deepcopy(head)
    served, memos = [], []
    for value, memo in _events(trial, batch):
        served.append(value)
        memos.append(memo)
    for name in trial.__slots__:
        setattr(head, name, getattr(trial, name))
    width = batch.base.shape[1:]
    return np.array(served, dtype=np.float64).reshape(len(served), *width), memos


def _events(head: Any, batch: Batch) -> Iterator[tuple[Any, Any]]:
    starts, units = batch.rows.starts.tolist(), batch.units.tolist()
    index, value = batch.rows.params.tolist(), batch.rows.value.tolist()
    base, labels, weights = batch.base.tolist(), batch.labels.tolist(), batch.weights.tolist()
    memos = list(batch.memos[: batch.first])
    yield from ((np.nan if batch.base.ndim == 1 else [np.nan] * len(base[0]), m) for m in memos)

    def post(k: int) -> None:
        a, b = starts[k], starts[k + 1]
        head.post(units[k], index[a:b], value[a:b], base[k], memos[k], weights[k], labels[k])

    posts, done = batch.posts.tolist(), 0
    for i in range(batch.first, len(base)):
        while done < batch.cuts[i]:
            post(posts[done])
            done += 1
        a, b = starts[i], starts[i + 1]
        t, crowd = int(batch.ticks[i]), float(batch.crowd[i])
        served, memo = head.serve(units[i], index[a:b], value[a:b], base[i], t, crowd)
        memos.append(memo)
        yield served, memo
    for k in posts[done:]:
        post(k)
