"""How the time of each corner grows with its size: the slope of CPU time over size, both in logarithms.

1 is linear; a call that costs what it touches has about 0 beside many groups, keys or tickets that it does not touch.
"""

from __future__ import annotations

import copy
import gc
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gradeq as gq
from benchmarks.timing import Row, Took, once

SIZES = (5_000, 10_000, 20_000, 40_000)
ROUNDS = 2
PIECE = 1_000  # rows of a file read in pieces
SHORT = np.arange(10)
CALLS = range(20)  # short calls that are timed together
GOAL = 1.1  # for what is done to all
BESIDE = 0.3  # for what is done beside many: the noise of a short call

Job = Callable[[], Any]
rng = np.random.default_rng(0)


def pieces(layer: Any, n: int, named: Callable[[slice], dict[str, Any]] = lambda part: {}) -> Job:
    """A file read in pieces; every label waits over half of it."""
    f, y, times = rng.normal(size=n), rng.normal(size=n), np.arange(n)

    def job() -> None:
        for a in range(0, n, PIECE):
            part = slice(a, a + PIECE)
            when = {"times": times[part], "label_times": times[part] + n // 2}
            layer.run(f[part], y[part], **named(part), **when)

    return job


def waiting_scalar(n: int) -> Job:
    return pieces(gq.Debiaser("plain"), n)


def waiting_ids(n: int) -> Job:
    return pieces(gq.Debiaser("plain"), n, lambda part: {"ids": np.arange(n)[part]})


def waiting_groups(n: int) -> Job:
    groups = rng.integers(0, n, n)
    return pieces(gq.Debiaser(0.05, groups=["g"]), n, lambda part: {"groups": {"g": groups[part]}})


def waiting_penalty(n: int) -> Job:
    layer = gq.Debiaser(0.05, groups=["g"], penalty=gq.Ridge(0.1))
    return pieces(layer, n, lambda part: {"groups": {"g": np.arange(n)[part] % 10}})


def waiting_elo(n: int) -> Job:
    layer, times = gq.Elo(), np.arange(n)

    def job() -> None:
        for a in range(0, n, PIECE):
            own = times[a : a + PIECE]
            layer.run(own % 50, own % 49 + 50, np.ones(len(own)), times=own, label_times=own + n // 2)

    return job


def keyed(n: int) -> Any:
    """n series, each with an open ticket."""
    layer = gq.Keyed(gq.Debiaser("plain"))
    layer.predict_many(rng.normal(size=n), key=np.arange(n))
    return layer


def keys_in_reverse(n: int) -> Job:
    layer = keyed(n)
    return lambda: [layer.update(0.5, key=k) for k in range(n - 1, -1, -1)]


def opened(n: int, **named: Any) -> Any:
    """n open tickets."""
    layer = gq.Debiaser("plain", **named)
    layer.predict_many(rng.normal(size=n), ids=np.arange(n))
    return layer


def ids_in_reverse(n: int) -> Job:
    layer = opened(n)
    return lambda: [layer.update(0.5, id=k) for k in range(n - 1, -1, -1)]


def expiring(n: int) -> Job:
    layer = gq.Debiaser("plain", ttl=n / 2)
    return lambda: [layer.predict(0.1, time=float(k), id=k) for k in range(n)]


def copied(n: int) -> Job:
    layer = opened(n)
    return lambda: copy.deepcopy(layer)


def saved(n: int) -> Job:
    layer = opened(n)
    return lambda: layer.to_json()


def loaded(n: int) -> Job:
    text = opened(n).to_json()
    return lambda: gq.from_json(text)


def grouped(n: int, first: int = 0) -> Any:
    """n groups with a label each."""
    layer, f = gq.Debiaser(0.05, groups=["g"]), rng.normal(size=n)
    layer.run(f, f, groups={"g": np.arange(first, first + n)})
    return layer


def new_groups(n: int) -> Job:
    return lambda: grouped(n)


def merged(n: int) -> Job:
    mine, theirs = grouped(n), grouped(n, n)
    return lambda: mine.merge(theirs)


def many_players(n: int) -> Job:
    a = rng.integers(0, n, n)
    return lambda: gq.Elo().run(a, a + n, np.ones(n))


def run_beside_groups(n: int) -> Job:
    layer, f = grouped(n), rng.normal(size=len(SHORT))
    return lambda: [layer.run(f, f, groups={"g": SHORT}) for _ in CALLS]


def late_beside_groups(n: int) -> Job:
    layer, f = grouped(n), rng.normal(size=len(SHORT))

    def job() -> None:
        for k in CALLS:
            when = {"times": SHORT + 10 * k, "label_times": SHORT + 10 * k + 3}
            layer.run(f, f, groups={"g": SHORT}, **when)

    return job


def served_beside_groups(n: int) -> Job:
    layer, f = grouped(n), rng.normal(size=len(SHORT))
    return lambda: [layer.predict_many(f, groups={"g": SHORT}) for _ in CALLS]


def event_beside_groups(n: int) -> Job:
    layer = grouped(n)
    return lambda: [(layer.predict(0.5, {"g": n + k}), layer.update(0.1)) for k in range(200)]


def run_beside_tickets(n: int) -> Job:
    layer, f = opened(n), rng.normal(size=len(SHORT))
    return lambda: [layer.run(f, f, ids=SHORT + n + 10 * k) for k in CALLS]


def run_beside_waiting(n: int) -> Job:
    layer, times, f = gq.Debiaser("plain"), np.arange(n), rng.normal(size=n)
    layer.run(f, f, times=times, label_times=times + 10 * n)

    def job() -> None:
        for k in CALLS:
            own = n + 10 * k + SHORT
            layer.run(f[:10], f[:10], times=own, label_times=own + 3)

    return job


def key_beside_tickets(n: int) -> Job:
    layer = keyed(n)
    layer.update(0.5, key=0)  # the first call sorts all tickets by key
    return lambda: [layer.update(0.5, key=n - 1 - k) for k in range(200)]


ALL: dict[str, Callable[[int], Job]] = {
    "labels wait over pieces of a file": waiting_scalar,
    "labels wait over pieces, with ids": waiting_ids,
    "labels wait over pieces, many groups": waiting_groups,
    "labels wait over pieces, a penalty": waiting_penalty,
    "games wait over pieces": waiting_elo,
    "keys posted in reverse": keys_in_reverse,
    "ids posted in reverse": ids_in_reverse,
    "tickets that expire": expiring,
    "copy of open tickets": copied,
    "open tickets saved": saved,
    "open tickets loaded": loaded,
    "new groups": new_groups,
    "two partitions merged": merged,
    "new players": many_players,
}
ASIDE: dict[str, Callable[[int], Job]] = {
    "short run beside groups": run_beside_groups,
    "short late run beside groups": late_beside_groups,
    "short predict_many beside groups": served_beside_groups,
    "events of new groups beside groups": event_beside_groups,
    "short run beside open tickets": run_beside_tickets,
    "short run beside waiting labels": run_beside_waiting,
    "update(key=) beside open tickets": key_beside_tickets,
}


def main() -> Iterator[Row]:
    before = os.environ.get("GRADEQ_COMPILE")
    os.environ["GRADEQ_COMPILE"] = "0"  # when a loop is compiled would bend the line
    for corners, goal in ((ALL, GOAL), (ASIDE, BESIDE)):
        for name, corner in corners.items():
            yield measured(name, corner, goal)
    if before is None:
        del os.environ["GRADEQ_COMPILE"]
    else:
        os.environ["GRADEQ_COMPILE"] = before


def measured(name: str, corner: Callable[[int], Job], goal: float) -> Row:
    """The slope over all sizes, and what the largest takes."""
    corner(1_000)()
    times = [min((took(corner, n) for _ in range(ROUNDS)), key=lambda own: own.cpu) for n in SIZES]
    slope = float(np.polyfit(np.log(SIZES), np.log([own.cpu for own in times]), 1)[0])
    told = "met" if slope <= goal else "missed"
    return Row(name, times[-1], {}, f"<= {goal}: {told}", f"slope {slope:.2f}")


def took(corner: Callable[[int], Job], n: int) -> Took:
    """What one job of this size takes, made before; garbage is not collected meanwhile."""
    job = corner(n)
    gc.collect()
    gc.disable()
    try:
        return once(job, 1)
    finally:
        gc.enable()
