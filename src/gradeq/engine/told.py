"""The labels of a whole batch in short: what its facts are read from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradeq.kernels.flight import NO_LABELS
from gradeq.ledger.batch import Batch, Order


class Told(NamedTuple):
    """What a pass tells of its labels, in short (``kernels.flight``)."""

    low: float
    high: float
    held: float
    heaviest: float
    late: float
    waited: float
    longest: float


def at_once(batch: Batch) -> Told:
    """In short what labels are like that come right after their rows."""
    etas, weights, posts = batch.steps, batch.weights, batch.posts
    if not len(posts):
        return Told(*NO_LABELS)
    if batch.plain:
        etas, weights = etas[:1], weights[:1]
    elif len(posts) < len(batch.base):
        etas, weights = etas[posts], weights[posts]
    return Told(float(etas.min()), float(etas.max()), 0.0, float(weights.max()), 1.0, 0.0, 0.0)


def unlearned(batch: Batch, order: Order, before: float) -> dict[str, float]:
    """How long labels were waited for that are heard and not learned from."""
    if batch.at_once or not len(order.posts):
        return {}
    own, rows = order.posts, np.arange(len(order.cuts) + 1)
    turns = np.repeat(rows, np.diff(order.cuts, prepend=0, append=len(own)))
    numbers = before + (own - batch.first) + 1.0
    for k, ticket in enumerate(batch.carried):
        numbers[own == k] = ticket.number
    ago = np.maximum(0.0, before + (turns - batch.first) - numbers)
    return {"waited": float(ago.sum()), "longest": float(ago.max())}
