"""A batch of rows in the order of serving, and the order in which their labels are posted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradeq.engine.constants import numbers, ones

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Rows(NamedTuple):
    """Sparse rows: entries starts[i] to starts[i + 1] of ``params`` and ``value`` belong to row i."""

    starts: Ints
    params: Ints
    value: Floats


class Batch(NamedTuple):
    """Everything a head needs to serve and learn from many rows in one pass.

    The first ``first`` rows were served in an earlier run and only wait for their label; ``memos`` is what
    their heads noted then. ``crowd`` is Q of the late-label cap (0: no cap). ``plain``: labels at once, all there,
    no weights, and no row is capped.
    """

    base: Floats
    labels: Floats
    weights: Floats
    ticks: Ints
    crowd: Floats
    rows: Rows
    units: Ints
    first: int
    cuts: Ints
    posts: Ints
    memos: list[Any]
    at_once: bool
    plain: bool
    sizes: Floats | None = None  # with features, the largest squared norm so far, at least 1


def single(index: Ints) -> Rows:
    """One active entry a row, with value 1: groups, keys, or all zeros for a layer of one parameter."""
    n = len(index)
    return Rows(numbers(n + 1), index, ones(n))


def joined(columns: list[Ints], features: Floats | None, feature_index: Ints | None) -> Rows:
    """Rows of one group entry from each column, then the features (zeros included, in order)."""
    n = len(columns[0]) if columns else len(features) if features is not None else 0
    blocks: list[NDArray[Any]] = [column[:, None] for column in columns]
    values: list[Floats] = [np.ones((n, len(columns)))] if columns else []
    if features is not None and feature_index is not None:
        blocks.append(np.broadcast_to(feature_index, (n, len(feature_index))))
        values.append(features)
    width = sum(block.shape[1] for block in blocks)
    index = np.concatenate(blocks, axis=1).astype(np.int64).ravel()
    value = np.concatenate(values, axis=1).astype(np.float64).ravel()
    return Rows(np.arange(n + 1) * width, index, value)


def stacked(above: Rows, below: Rows) -> Rows:
    """The rows of both, one after the other."""
    shift = above.starts[-1]
    return Rows(
        np.concatenate([above.starts, below.starts[1:] + shift]),
        np.concatenate([above.params, below.params]),
        np.concatenate([above.value, below.value]),
    )


class Posting(NamedTuple):
    """When labels are posted: posts[: cuts[i]] before row i is served; ``leaves`` also counts expiries."""

    cuts: Ints
    posts: Ints
    leave_cuts: Ints
    leaves: Ints
    waiting: Ints
    expired: Ints


def posted_at_once(labelled: NDArray[np.bool_]) -> Posting:
    """Each label right after its row was served; rows without a label never open a ticket."""
    nothing = np.empty(0, dtype=np.int64)
    if labelled.all():
        each = numbers(len(labelled))
        return Posting(each, each, each, each, nothing, nothing)
    posts = np.flatnonzero(labelled)
    cuts = np.concatenate([[0], np.cumsum(labelled)[:-1]]).astype(np.int64)
    return Posting(cuts, posts, cuts, posts, nothing, nothing)


def posted_when_due(
    times: NDArray[Any],
    label_times: NDArray[Any],
    opens: NDArray[np.bool_],
    first: int,
    ttl: float | None,
    served_times: NDArray[Any] | None = None,
) -> Posting:
    """Before a row of time t is served, the labels due by t of rows served before it, in order of label time.

    ``times`` are those of the rows in serving order, rows before ``first`` being carried over (they are served
    before all others); labels not due by the last row stay in ``waiting``.
    """
    n = len(times)
    tickets = np.flatnonzero(opens)
    clock = times[first:]
    turn = first + np.searchsorted(clock, label_times[tickets], side="left")
    turn = np.maximum(turn, np.maximum(tickets + 1, first))
    if ttl is None:
        gone = np.full(len(tickets), n, dtype=np.int64)
    else:
        born = (served_times if served_times is not None else times)[tickets]
        gone = first + np.searchsorted(clock, born + ttl, side="right")
        gone = np.maximum(gone, np.maximum(tickets + 1, first))
    due = (turn < n) & (turn <= gone)
    lapsed = ~due & (gone < n)
    order = np.lexsort((tickets[due], label_times[tickets[due]], turn[due]))
    posts, turns = tickets[due][order], turn[due][order]
    out = np.concatenate([turns, gone[lapsed]])
    leave_order = np.argsort(out, kind="stable")
    leaves = np.concatenate([posts, tickets[lapsed]])[leave_order]
    positions = np.arange(n)
    return Posting(
        np.searchsorted(turns, positions, side="right"),
        posts,
        np.searchsorted(out[leave_order], positions, side="right"),
        leaves,
        tickets[~due & ~lapsed],
        tickets[lapsed],
    )
