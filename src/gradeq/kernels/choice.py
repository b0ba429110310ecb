"""Decides whether a loop is compiled or interpreted, and calls it."""

from __future__ import annotations

import dataclasses
import math
import os
import time
from collections import namedtuple
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradeq.kernels.compile import Key, compiled, fields, in_memory, is_cached, key_of, text_of


def run_loop(loop: Callable[..., object], parts: tuple[object, ...], arrays: tuple[object, ...], rows: int) -> Any:
    """Call ``loop(*parts, *arrays)``; arrays that the loop writes are written in place either way.

    Arrays may come together in records, named tuples, among the parts.

    Interpreted, columns become lists, since Python reads those quickest; an array much longer than the
    batch (the state of a million keys) is read and written where it lies. A part that the compiler refuses (a
    user's own loss that looks something up) is interpreted from then on.
    """
    fast = kernel(loop, parts, rows)
    if fast is not None:
        try:
            return fast(*(fields(part) for part in parts), *arrays)
        except Exception as error:
            if not is_refusal(error):
                raise
            refuse(loop, parts)
    start, short = clock(), 4 * rows + 1024
    values = (*parts, *arrays)
    plain = [_readable(a, short) for a in values]
    result = loop(*plain)
    _write_back(values, plain)
    # Of a record the names of its arrays are remembered, not the arrays.
    note(loop, tuple([p._make(p._fields) if isinstance(p, tuple) else p for p in parts]), clock() - start)  # type: ignore[attr-defined]
    return result


def unsigned(*indices: NDArray[np.int64]) -> tuple[NDArray[np.uint64], ...]:
    """Indices as unsigned: compiled, a signed one could count from the end, and looking for that costs a third."""
    return tuple(index.view(np.uint64) for index in indices)


def is_refusal(error: Exception) -> bool:
    """Whether the compiler refused the text, which is before any of it ran."""
    return type(error).__module__.split(".")[0] == "numba"


def _write_back(arrays: Any, plain: Any) -> None:
    for array, values in zip(arrays, plain, strict=True):
        if isinstance(array, tuple):
            _write_back(array, values)
        elif isinstance(values, list) and array.flags.writeable:
            array[...] = values


def _readable(array: object, short: int) -> Any:
    if isinstance(array, tuple):  # a record of arrays
        return array._make(_readable(each, short) for each in array)  # type: ignore[attr-defined]
    if not isinstance(array, np.ndarray):
        return array
    return array.tolist() if array.size <= short or array.ndim > 1 else array.data


# Seconds of CPU, as measured on one machine; only their ratio to interpreted rows matters.
START = 0.5  # importing numba and its first call, once in a process
LOAD, LOAD_LETTER = 0.01, 1e-5  # machine code from the disk, and for each letter of the text
BUILD, BUILD_LETTER = 0.25, 7e-5  # making it
LOOK = 0.08  # making the text of a loop, which its price needs
GUESS = 1e-6  # a row of a loop that was never timed; on the low side, so that compiling is no loss
GUESS_RUN = 2e-6  # a row of all loops of a run of which none was

REUSE_FROM = 50  # rows; a kernel that is already in memory pays from here at the latest

clock = time.thread_time  # CPU of this thread: other work on the machine does not count


class Lap(NamedTuple):
    """A loop that was interpreted, and for how long."""

    loop: Callable[..., Any]
    parts: tuple[object, ...]
    seconds: float


class LoopRun(NamedTuple):
    """The run that is under way: loops already decided on, what is interpreted, what starting costs a new loop."""

    decided: frozenset[Key]
    laps: dict[Key, Lap]
    start: float
    rows: int


_plans: dict[Hashable, dict[Key, Lap]] = {}  # of each kind of run: seconds a row
_spent: dict[Key, float] = {}
_prices: dict[Key, float] = {}
_chosen: set[Key] = set()
_refused: set[Key] = set()
_run: ContextVar[LoopRun | None] = ContextVar("run", default=None)
_ahead: ContextVar[int] = ContextVar("ahead", default=0)


def kind_of(rule: object, *more: Hashable) -> Hashable:
    """Runs of one kind take the same loops: the types of a rule and its parts, and what else tells them apart."""
    if not dataclasses.is_dataclass(rule):
        return (type(rule), *more)
    return (type(rule), *(kind_of(part) for part in vars(rule).values()), *more)


@contextmanager
def expecting(rows: int) -> Iterator[None]:
    """Of the runs inside, each is a piece of something longer: so many rows are still to come after it."""
    token = _ahead.set(rows)
    try:
        yield
    finally:
        _ahead.reset(token)


@contextmanager
def one_run(kind: Hashable, rows: int, ahead: int = 0) -> Iterator[None]:
    """Decide for a run of ``rows`` (and so many more of the kind ahead), and note what it interprets."""
    plan = _plans.setdefault(kind, {})
    total = rows + max(ahead, _ahead.get())
    known = dict(plan)  # another thread may add to it
    choose({key: lap._replace(seconds=lap.seconds * total) for key, lap in known.items()}, START)
    # In a long run of which nothing is known several loops share the start.
    shared = not known and GUESS_RUN * total > START
    run = LoopRun(frozenset(known), {}, START * GUESS / GUESS_RUN if shared else START, rows)
    token = _run.set(run)
    try:
        yield
    finally:
        _run.reset(token)
        if rows >= REUSE_FROM:
            for key, lap in run.laps.items():
                plan[key] = lap._replace(seconds=lap.seconds / rows)


def kernel(loop: Callable[..., object], parts: tuple[object, ...], rows: int) -> Callable[..., Any] | None:
    """The compiled loop for these parts, or None when interpreting is the better choice."""
    told, key, run = os.environ.get("GRADEQ_COMPILE"), key_of(loop, parts), _run.get()
    if told == "0" or rows == 0 or key in _refused:
        return None
    if told != "1":
        if in_memory(key):
            return compiled(loop, parts) if rows >= REUSE_FROM else None
        if run is None or key not in run.decided:
            coming = GUESS * rows * (1.0 + _ahead.get() / max(1, rows if run is None else run.rows))
            choose({key: Lap(loop, parts, coming)}, START if run is None else run.start)
        if key not in _chosen:
            return None
    return compiled(loop, parts)


def choose(wanted: dict[Key, Lap], start: float) -> None:
    """Choose which of these loops to compile, given the seconds that interpreting each would take.

    ``start``: the seconds of starting the compiler that they have to make up for, unless it runs already.
    """
    if os.environ.get("GRADEQ_COMPILE") == "0":
        return
    start = 0.0 if in_memory() else start
    seconds = {
        key: max(lap.seconds, _spent.get(key, 0.0))
        for key, lap in wanted.items()
        if not (in_memory(key) or key in _refused)
    }
    if sum(seconds.values()) <= start + LOOK * len(seconds):  # the usual end: nothing to gain
        return
    if sum(max(0.0, own - cheapest(wanted[key].loop)) for key, own in seconds.items()) <= start:
        return
    gains = {key: own - price(*wanted[key][:2]) for key, own in seconds.items()}
    gainful = {key: gain for key, gain in gains.items() if gain > 0.0}
    if sum(gainful.values()) > start:
        _chosen.update(gainful)


def cheapest(loop: Callable[..., object]) -> float:
    """What no text of the loop can be had for less than: none has to be made to know this."""
    return LOAD if is_cached(None, loop.__name__) else BUILD


def price(loop: Callable[..., object], parts: tuple[object, ...]) -> float:
    """Seconds until the loop is in memory, compiled; looked up once."""
    key = key_of(loop, parts)
    if key not in _prices:
        text = text_of(loop, parts)
        if text is None or find_spec("numba") is None:
            _prices[key] = math.inf
        elif is_cached(text, loop.__name__):
            _prices[key] = LOAD + LOAD_LETTER * len(text)
        else:
            _prices[key] = BUILD + BUILD_LETTER * len(text)
    return _prices[key]


def note(loop: Callable[..., object], parts: tuple[object, ...], seconds: float) -> None:
    """The loop was interpreted for so long."""
    key, run = key_of(loop, parts), _run.get()
    _spent[key] = _spent.get(key, 0.0) + seconds
    if run is not None:
        before = run.laps[key].seconds if key in run.laps else 0.0
        run.laps[key] = Lap(loop, parts, before + seconds)


def refuse(loop: Callable[..., object], parts: tuple[object, ...]) -> None:
    """The compiler refused the loop with these parts: it is interpreted from now on."""
    _refused.add(key_of(loop, parts))


class PassRows(
    namedtuple("Rows", "base labels weights etas starts index value keys first end cuts posts numbers before")
):
    """The rows of a batch: entries starts[i] to starts[i + 1] of ``index`` and ``value`` belong to row i.

    Rows before ``first`` were served in an earlier run, as rows ``numbers`` of the layer; ``before`` rows were served
    before row ``first``. ``end``: one more than there are rows, since labels may come after the last.
    """


class PassRow(namedtuple("Row", "base labels weights etas starts index keys", defaults=((), (), (), (), (), ()))):
    """One row as ``Rows`` has it, for an event: of each column what the event knows."""


def driven(model: Any, one: Any, other: Any, rows: PassRows, state: Any, room: Any) -> None:
    """Labels at once or late, in any order; a label is ``fresh`` if nothing was posted since its row was served."""
    p = 0
    latest = rows.end
    for i in range(rows.first, rows.end):
        while p < rows.cuts[i]:
            r = rows.posts[p]
            model.post(one, other, rows, state, room, i, r, r == latest)
            latest = rows.end
            p += 1
        if i < len(rows.labels):
            model.serve(one, other, rows, state, room, i)
            latest = i


def waited(rows: PassRows, i: int, r: int) -> float:
    """How many rows were served between row r and its label, which is posted before row i is served."""
    number = rows.numbers[r] if r < rows.first else rows.before + (r - rows.first) + 1.0
    ago: float = max(0.0, rows.before + (i - rows.first) - number)
    return ago
