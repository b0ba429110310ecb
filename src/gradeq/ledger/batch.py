"""Columns on their way through a rule: rows in the order of serving, and when their labels are posted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradeq.kernels.choice import run_loop
from gradeq.kernels.texts import arranged, turned
from gradeq.ledger.values import Ticket

KEPT = 1 << 20  # rows; longer columns are made when they are needed and forgotten


def constant(n: int, value: float) -> NDArray[Any]:
    """n times the same number, integers of an integer; do not write to them."""
    return _constant(n, value) if n <= KEPT else np.full(n, value)


def multiples(n: int, step: int = 1) -> NDArray[np.int64]:
    """The first n multiples of a number, from 0 on; do not write to them."""
    return _multiples(n, step) if n <= KEPT else np.arange(n) * step


_constant = lru_cache(maxsize=6, typed=True)(np.full)
_multiples = lru_cache(maxsize=4)(lambda n, step: np.arange(0, n * step, step))


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


CACHED = 1 << 16  # entries; what is written of them column by column stays in the cache


class Rows(NamedTuple):
    """Sparse rows: entries starts[i] to starts[i + 1] of ``params`` and ``values`` belong to row i.

    ``single``: every row has one entry, of value 1; ``width``: the entries of every row, of value 1 each (0: they
    may differ). ``dense``: every row has every parameter, in order; only the values are there then, until the entries
    are ``spelled`` out.
    """

    starts: Ints
    params: Ints
    values: Floats
    single: bool = False
    dense: bool = False
    width: int = 0


class Batch(NamedTuple):
    """All that a rule needs to serve and learn from many rows in one pass.

    The first ``first`` rows are the tickets ``carried`` over from an earlier run: they only wait for their label.
    posts[: cuts[i]] are posted before row i is served, the rest at the end. ``steps`` are the scheduled ones,
    ``etas`` those that labels are given. ``at_once``: each label right after its row. ``plain``: besides, every row
    has one, all weights are 1 and all steps ``etas[0]``. ``times``: of the rows, carried ones too, if they have any.
    ``weights`` are those that are learned with, ``given`` as they came (None: all 1).
    """

    base: Floats
    labels: Floats
    weights: Floats
    steps: Floats
    etas: Floats
    rows: Rows
    keys: Ints
    first: int
    cuts: Ints
    posts: Ints
    carried: list[Ticket]
    at_once: bool
    plain: bool
    times: Any = None
    given: Floats | None = None


def single(index: Ints) -> Rows:
    """One active entry a row, with value 1: groups, keys, or all zeros for a layer of one parameter."""
    n = len(index)
    return Rows(multiples(n + 1), index, constant(n, 1.0), True)


def joined(columns: list[tuple[Ints, Ints]]) -> Rows:
    """Rows of one group entry from each column (codes, and the parameter of each code)."""
    if len(columns) == 1:
        codes, params = columns[0]
        return single(params.take(codes, mode="clip"))
    n, width = len(columns[0][0]), len(columns)
    index = np.empty((n, width), dtype=np.int64)
    for part in parts(n, width):
        entered(index[part], columns, part)
    return Rows(multiples(n + 1, width), index.reshape(-1), np.broadcast_to(1.0, n * width), width=width)


def featured(columns: list[tuple[Ints, Ints]], features: list[Floats], places: Ints) -> tuple[Rows, Floats]:
    """Rows of the group entries, then the features at their places; and the squared norm of each row."""
    n, groups = len(features[0]), len(columns)
    width = groups + len(features)
    index, value = np.empty((n, width), dtype=np.int64), np.empty((n, width))
    norms = np.full(n, float(groups))
    for part in parts(n, width):
        entered(index[part], columns, part)
        index[part, groups:] = places
        value[part, :groups] = 1.0
        for k, feature in enumerate(features):  # added in the order of one event, to the last bit
            own = feature[part]
            value[part, groups + k] = own
            norms[part] += own * own
    return Rows(multiples(n + 1, width), index.reshape(-1), value.reshape(-1)), norms


def entered(index: Ints, columns: list[tuple[Ints, Ints]], part: slice) -> None:
    for k, (codes, params) in enumerate(columns):
        index[:, k] = params.take(codes[part], mode="clip")  # quickest


def parts(n: int, width: int) -> Iterator[slice]:
    """Parts of the rows, small enough to stay in the cache while they are written column by column."""
    rows = max(1, CACHED // width)
    return (slice(first, first + rows) for first in range(0, n, rows))


def spelled(rows: Rows, parameters: int) -> Rows:
    """The same rows, the entries of dense ones spelled out."""
    if not rows.dense:
        return rows
    n = len(rows.values) // parameters
    return Rows(np.arange(n + 1) * parameters, np.tile(np.arange(parameters), n), rows.values)


def listed(params: list[Any], values: list[Any]) -> Rows:
    """Rows from a list of parameters and one of values each."""
    starts = np.concatenate([[0], np.cumsum([len(own) for own in params])]).astype(np.int64)
    index = np.array([j for own in params for j in own], dtype=np.int64)
    return Rows(starts, index, np.array([z for own in values for z in own], dtype=np.float64))


def stacked(above: Rows, below: Rows) -> Rows:
    return Rows(
        np.concatenate([above.starts, below.starts[1:] + above.starts[-1]]),
        np.concatenate([above.params, below.params]),
        np.concatenate([above.values, below.values]),
    )


def reordered(rows: Rows, order: Ints) -> Rows:
    """The same rows in another order."""
    if rows.single:
        return single(rows.params[order])
    lengths = np.diff(rows.starts)[order]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    first = np.repeat(rows.starts[order] - starts[:-1], lengths)
    take = first + np.arange(starts[-1])
    return Rows(starts, rows.params[take], rows.values[take], rows.single)


class Alike(NamedTuple):
    """Some rows entry by entry: the parameters, a number of the row beside each; and that of each row."""

    params: Ints
    weights: Floats
    rows: Floats


def alike(posts: Ints, rows: tuple[Ints, Ints], weights: Floats) -> Alike:
    """The entries of these rows, each with the weight of its row."""
    starts, params = rows
    lengths, own = starts[posts + 1] - starts[posts], weights[posts]
    first = np.repeat(starts[posts] - (np.cumsum(lengths) - lengths), lengths)
    return Alike(params[first + np.arange(len(first))], np.repeat(own, lengths), own)


def first_rows(codes: Ints, count: int) -> list[tuple[int, int]]:
    """Each of ``count`` codes that has a row, and its first; most are found near the beginning."""
    first = np.full(count, -1, dtype=np.int64)
    stop = min(len(codes), 16 * count + 1024)
    while True:
        first[codes[:stop][::-1]] = np.arange(stop - 1, -1, -1)
        if stop == len(codes) or first.min() >= 0:
            break
        present = np.flatnonzero(np.bincount(codes, minlength=count))
        if first[present].min() >= 0:
            break
        stop = len(codes)
    found = np.flatnonzero(first >= 0)
    return list(zip(found.tolist(), first[found].tolist(), strict=True))


class Order(NamedTuple):
    """When labels are posted: posts[: cuts[i]] before row i is served, the rest after the last one."""

    cuts: Ints
    posts: Ints
    waiting: Ints
    expired: Ints


def posted_at_once(labelled: NDArray[np.bool_]) -> Order:
    """Each label right after its row was served; rows without a label never open a ticket."""
    nothing = np.empty(0, dtype=np.int64)
    if labelled.all():
        each = multiples(len(labelled))
        return Order(each, each, nothing, nothing)
    posts = np.flatnonzero(labelled)
    cuts = np.concatenate([[0], np.cumsum(labelled)[:-1]]).astype(np.int64)
    return Order(cuts[: len(labelled)], posts, nothing, nothing)


def posted_when_due(
    times: NDArray[Any], label_times: NDArray[Any], opens: NDArray[np.bool_], first: int, ttl: float | None
) -> Order:
    """Before a row of time t is served, the labels due by t of rows served before it, in order of label time.

    ``times`` are those of the rows in serving order, rows before ``first`` being carried over (they are served
    before all others); labels not due by the last row stay in ``waiting``.
    """
    n = len(times)
    every = bool(opens.all())
    tickets = multiples(n) if every else np.flatnonzero(opens)
    clock, wanted = times[first:], label_times if every else label_times[tickets]
    turn = turns_of(clock, tickets, wanted, False, first)
    waits, lapsed = turn == n, tickets[:0]
    if ttl is not None:
        gone = turns_of(clock, tickets, times[tickets] + ttl, True, first)
        never = waits | (turn > gone)
        waits, lapsed = never & (gone >= n), tickets[never & (gone < n)]
        turn[never] = n
    cuts, posts = in_turn(turn, tickets, wanted, n)
    return Order(cuts, posts, tickets[waits], lapsed)


def turns_of(clock: Any, tickets: Ints, wanted: Any, beyond: bool, first: int) -> Ints:
    """Before which row each ticket's time comes."""
    turns = np.empty(len(tickets), dtype=np.int64)
    span = float(clock[-1]) - float(clock[0]) if len(clock) else 0.0
    rate = len(clock) / span if 0.0 < span < math.inf else 0.0
    run_loop(turned, (), (clock, tickets, wanted, beyond, first, rate, turns), len(tickets))
    return turns


def in_turn(turns: Ints, tickets: Ints, label_times: Any, n: int) -> tuple[Ints, Ints]:
    """How many labels are posted by each row, and the tickets in the order of posting; turn n is none."""
    cuts, slots = np.empty(n, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    posts, when = np.empty(len(turns), dtype=np.int64), np.empty_like(label_times)
    arrays = (turns, tickets, label_times, cuts, slots, posts, when)
    if not run_loop(arranged, (), arrays, len(turns)):
        posts = tickets[np.lexsort((tickets, label_times, turns))]
    return cuts, posts[: cuts[-1] if n else 0]
