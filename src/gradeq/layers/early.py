"""Labels that are held back because their delay seems to depend on their value: see ``engine.early_labels``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.engine.columns import serving_order
from gradeq.engine.early_labels import BLOCK, COMPLETE, HELD, EarlyLabels
from gradeq.engine.keeping import Kept
from gradeq.engine.tickets import Opened, Waiting
from gradeq.ledger.values import Posting, new

if TYPE_CHECKING:
    from gradeq.layers.layer import Layer


def screen(layer: Layer, opened: Opened, y: Any) -> str | None:
    """What became of a label that is held back (``waiting``) or was learned with others; None: learn it now."""
    book, now = layer._book, int(layer._state.number)
    early, (number, _, f, _, weight, *_) = book.early, opened[0]
    assert early is not None
    if weight == 0.0 or layer._frozen:
        return None
    if number == now:
        if early.since is not None:
            note_learned(early, [number])
        return None
    looks = early.count(y, middle(f), float(now - number + 1), number)
    if early.since is None and looks:
        waiting = [own for own in book.opened if own != number]
        waiting += [own.ticket.number for own in book.waiting.values() if own.due != HELD]
        if sum(own < early.newest for own in waiting) > early.sums[0]:
            early.hold_back(now, waiting)
    if early.since is None:
        return None
    book.wait(opened, y, HELD)
    for k in ready(early, number, book.is_held_back, lambda: book.held_back):
        own = book.waiting[k]
        if early.since is not None:
            note_learned(early, [k])
        posting = layer._post(own.ticket, layer._entered(own.ticket.row), own.y)
        book.hold((), (own,))
        if own.id is not None:
            book.shut(own.id, new(Posting, posting))
    layer._doubts.say(early.warning)
    return "applied" if number not in book.waiting else "waiting"


def ready(
    early: EarlyLabels, number: int, held: Callable[[int], bool], every: Callable[[], list[int]]
) -> list[int]:
    """The rows whose labels are learned now that the one of this row has come, oldest first.

    ``held``: whether the label of a row is held back; ``every``: all rows of which that is true.
    """
    if early.agrees:
        early.since, early.known, early.why = None, {}, ""
        return every()
    block = (number - 1) // BLOCK
    found = [k for k in range(block * BLOCK + 1, (block + 1) * BLOCK + 1) if held(k)]
    return found if early.known.get(block, 0) + len(found) >= COMPLETE else []


def note_learned(early: EarlyLabels, numbers: Iterable[int]) -> None:
    """Count labels that are learned while others are held back."""
    for number in numbers:
        block = (number - 1) // BLOCK
        early.known[block] = early.known.get(block, 0) + 1


def middle(f: Any) -> float:
    """A forecast; of several levels the one in the middle."""
    return float(f[len(f) // 2]) if isinstance(f, (tuple, list)) else float(f)


def screen_columns(
    layer: Any, base: Any, y: Any, weights: Any, times: Any, due: Any, kept: Kept | None
) -> tuple[Any, list[Waiting]]:
    """When labels of a run are learned; those that waited before and are moved, as they were."""
    book, early = layer._book, layer._book.early
    late = due is not None or bool(book.waiting)
    if early is None or times is None or not len(times) or not late or layer._frozen:
        return due, []
    order = serving_order(times)
    order = np.arange(len(times)) if order is None else order
    clock, wanted = times[order], (times if due is None else due)[order]
    n, first = len(order), int(layer._state.number)
    rows = np.arange(n)
    learns = ~np.isnan(y[order]) & (True if weights is None else weights[order] > 0.0)
    turn = np.maximum(rows + 1, np.searchsorted(clock, wanted, side="left"))
    f = base if base.ndim == 1 else base[:, base.shape[1] // 2]
    earlier = [own for own in book.waiting.values() if own.due != HELD]
    turns = np.searchsorted(clock, np.array([own.due for own in earlier], dtype=wanted.dtype))
    ends: tuple[Any, ...] = (turn, turns)
    if book.ttl is not None:  # a label that comes after its ticket has expired is none
        before = (clock, np.array([own.time for own in earlier], dtype=clock.dtype))
        gone = (np.searchsorted(clock, served + book.ttl, side="right") for served in before)
        ends = tuple(np.where(own > end, n, own) for own, end in zip(ends, gone, strict=True))
    came, old = np.flatnonzero(learns & (ends[0] < n)), np.flatnonzero(ends[1] < n)
    number = np.concatenate([[earlier[k].ticket.number for k in old], first + came + 1]).astype(int)
    moment = np.concatenate([[earlier[k].due for k in old], wanted[came]])
    when = np.concatenate([turns[old], turn[came]]).astype(int)
    label = np.concatenate([[earlier[k].y for k in old], y[order][came]])
    forecast = np.concatenate([[middle(earlier[k].ticket.base) for k in old], f[order][came]])
    each = np.lexsort((number, moment, when))
    delay = (first + when - number + 1)[each]
    after = delay > 1
    waits = learns if kept is None else learns | np.isnan(y[order])
    open_rows = np.sort(
        np.concatenate(
            [list(book.opened), [own.ticket.number for own in earlier], first + 1 + rows[waits]]
        ).astype(int)
    )
    label, forecast, number, when = label[each], forecast[each], number[each], when[each]
    start = 0
    if early.since is None:
        start = first_suspicion(early, label, forecast, delay, number, after, open_rows)
        if start == len(each):
            return due, []
    places: list[int | Waiting] = [*(earlier[k] for k in old), *order[came].tolist()]
    labels = zip(
        [places[k] for k in each], number.tolist(), label.tolist(), forecast.tolist(), delay.tolist(),
        moment[each].tolist(), (first + when).tolist(), strict=True,
    )  # fmt: skip
    return held_columns(
        layer, (times if due is None else due).copy(), list(labels), start, open_rows
    )


def held_columns(
    layer: Any, due: Any, labels: list[Any], start: int, open_rows: Any
) -> tuple[Any, list[Waiting]]:
    """The same once labels are held back, one after the other in the order in which they come.

    ``labels``: where each stands, the number of its row, what it says and what was predicted, how late it is, when it
    comes, and how many rows were served by then. ``open_rows``: the numbers of all rows that wait at some time.
    """
    book, early = layer._book, layer._book.early
    held: dict[int, int | Waiting] = {k: book.waiting[k] for k in book.held_back}
    moved: dict[int, Waiting] = {}
    before: list[Waiting] = []

    def put(number: int, place: int | Waiting, when: float) -> None:
        if not isinstance(place, Waiting):
            due[place] = when
            return
        if number not in moved:
            before.append(book.waiting[number])
        moved[number] = place._replace(due=when)

    arrived = {number for _, number, *_ in labels[:start]}
    for place, number, y, f, delay, when, served in labels[start:]:
        arrived.add(number)
        if delay > 1:
            looks = early.count(y, f, float(delay), number)
            if early.since is None and looks:
                waiting = [k for k in open_rows.tolist() if k not in arrived and k <= served]
                if sum(k < early.newest for k in waiting) > early.sums[0]:
                    early.hold_back(served, waiting)
        if early.since is None:
            continue
        if delay == 1:
            note_learned(early, [number])
            continue
        held[number] = place
        put(number, place, HELD)
        for k in ready(early, number, held.__contains__, lambda: sorted(held)):
            if early.since is not None:
                note_learned(early, [k])
            put(k, held.pop(k), when)
    book.hold(moved.values())
    return due, before


def first_suspicion(
    early: EarlyLabels, label: Any, f: Any, delay: Any, number: Any, late: Any, open_rows: Any
) -> int:
    """Which label is the first to be held back, counted up to the one before; all are counted where none is."""
    before, at, own = early.state(), np.flatnonzero(late), number[late]
    # Only labels by which more rows wait than have one are looked at: later than a few there are none as a rule.
    newest = np.maximum(np.maximum.accumulate(own), early.newest) if len(own) else own
    sofar = np.minimum(np.cumsum(~late)[at], np.searchsorted(number[~late], newest, side="right"))
    arrived = np.arange(1, len(at) + 1) + sofar
    waiting = np.searchsorted(open_rows, newest, side="left") - (arrived - 1)
    more_wait = waiting > before["sums"][0] + np.arange(1, len(at) + 1)
    most = int(np.flatnonzero(more_wait).max(initial=-1)) + 1
    looks = early.count_all(label[late], f[late], delay[late].astype(float), own, most)
    found = looks & more_wait[: len(looks)]
    if not found.any():
        return len(label)
    k = int(np.argmax(found))
    counted = EarlyLabels.restored(before, early.means)
    counted.count_all(label[late][:k], f[late][:k], delay[late][:k].astype(float), number[late][:k])
    early.sums, early.origin, early.newest = counted.sums, counted.origin, counted.newest
    early.probable = counted.probable
    return int(at[k])
