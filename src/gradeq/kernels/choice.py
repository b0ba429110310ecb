"""Compile or interpret: decided by seconds, once for all loops of a run; the answers are the same bits either way.

Interpreted loops are timed, so what a row takes is known after the first run of a kind, and guessed before. A loop
is compiled when interpreting it for this run would take longer than compiling it (or loading it, where the machine
code is cached on disk), and when all that is gained so outweighs starting the compiler. Many short runs add up: what
was spent on interpreting a loop counts as if it lay ahead.

``GRADEQ_COMPILE=0`` always interprets, ``GRADEQ_COMPILE=1`` always compiles.
"""

from __future__ import annotations

import dataclasses
import math
import os
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any, NamedTuple

from gradeq.kernels.compile import Key, compiled, in_memory, is_cached, key_of, text_of

# Seconds of CPU, as measured on one machine; only their ratio to interpreted rows matters.
START = 0.75  # importing numba and its first call, once in a process
LOAD, LOAD_LETTER = 0.01, 1e-5  # machine code from the disk, and for each letter of the text
BUILD, BUILD_LETTER = 0.3, 3e-4  # making it
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


class Run(NamedTuple):
    """The run that is under way: loops already decided on, what is interpreted, what starting costs a new loop."""

    decided: frozenset[Key]
    laps: dict[Key, Lap]
    start: float


_plans: dict[Hashable, dict[Key, Lap]] = {}  # of each kind of run: seconds a row
_spent: dict[Key, float] = {}
_prices: dict[Key, float] = {}
_chosen: set[Key] = set()
_refused: set[Key] = set()
_run: ContextVar[Run | None] = ContextVar("run", default=None)
_ahead: ContextVar[int] = ContextVar("ahead", default=0)


def kind_of(rule: Any, *more: Hashable) -> Hashable:
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
    run = Run(frozenset(known), {}, START * GUESS / GUESS_RUN if shared else START)
    token = _run.set(run)
    try:
        yield
    finally:
        _run.reset(token)
        if rows >= REUSE_FROM:
            for key, lap in run.laps.items():
                plan[key] = lap._replace(seconds=lap.seconds / rows)


def kernel(
    loop: Callable[..., Any], parts: tuple[object, ...], rows: int
) -> Callable[..., Any] | None:
    """The compiled loop for these parts, or None when interpreting is the better choice."""
    told, key, run = os.environ.get("GRADEQ_COMPILE"), key_of(loop, parts), _run.get()
    if told == "0" or rows == 0 or key in _refused:
        return None
    if told != "1":
        if in_memory(key):
            return compiled(loop, parts) if rows >= REUSE_FROM else None
        if run is None or key not in run.decided:
            coming = GUESS * (rows + _ahead.get())
            choose({key: Lap(loop, parts, coming)}, START if run is None else run.start)
        if key not in _chosen:
            return None
    return compiled(loop, parts)


def choose(wanted: dict[Key, Lap], start: float) -> None:
    """Choose which of these loops to compile, given the seconds that interpreting each would take.

    ``start``: the seconds of starting the compiler that they have to make up for, unless it runs already.
    """
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


def cheapest(loop: Callable[..., Any]) -> float:
    """What no text of the loop can be had for less than: none has to be made to know this."""
    return LOAD if is_cached(None, loop.__name__) else BUILD


def price(loop: Callable[..., Any], parts: tuple[object, ...]) -> float:
    """Seconds until the loop is in memory, compiled; looked up once."""
    key = key_of(loop, parts)
    if key not in _prices:
        _prices[key] = _price(loop, parts)
    return _prices[key]


def _price(loop: Callable[..., Any], parts: tuple[object, ...]) -> float:
    text = text_of(loop, parts)
    if text is None or find_spec("numba") is None:
        return math.inf
    if is_cached(text, loop.__name__):
        return LOAD + LOAD_LETTER * len(text)
    return BUILD + BUILD_LETTER * len(text)


def note(loop: Callable[..., Any], parts: tuple[object, ...], seconds: float) -> None:
    """The loop was interpreted for so long."""
    key, run = key_of(loop, parts), _run.get()
    _spent[key] = _spent.get(key, 0.0) + seconds
    if run is not None:
        before = run.laps[key].seconds if key in run.laps else 0.0
        run.laps[key] = Lap(loop, parts, before + seconds)


def refuse(loop: Callable[..., Any], parts: tuple[object, ...]) -> None:
    """The compiler refused the loop with these parts: it is interpreted from now on."""
    _refused.add(key_of(loop, parts))
