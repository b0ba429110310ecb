"""``gradeq serve --demo``: nine months of flights through the running server, over HTTP, in about a minute."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.client import Client
from gradeq.datasets import flights

LAYER = "flights"
GROUPS = ["carrier", "origin"]
TICKS = 20  # spans a second: of some five hours, so that labels keep their lateness
Rows = npt.NDArray[np.intp]


class Tick(NamedTuple):
    """The flights that are announced and those that land within one short span of time."""

    announced: Rows
    landed: Rows


def ticks(data: flights.Flights, count: int) -> Iterator[Tick]:
    """The flights in so many spans of equal length, from the first announcement to the last landing."""
    served, landed = data.served.astype(np.int64), data.landed.astype(np.int64)
    ends = np.linspace(served.min() - 1, landed.max(), count + 1)
    by_landing = np.argsort(landed, kind="stable")
    start, done = 0, 0
    for until in ends[1:]:
        stop = int(np.searchsorted(served, until, side="right"))
        labelled = int(np.searchsorted(landed[by_landing], until, side="right"))
        yield Tick(np.arange(start, stop), by_landing[done:labelled])
        start, done = stop, labelled


def play(client: Client, seconds: float, stop: threading.Event | None = None) -> int:
    """Stream the flights, each with its label when the plane lands; how many labels were sent.

    A flight is announced three hours before departure, so that labels come as late as they did. Every run has ids
    of its own: a store that saw the demo before goes on learning.
    """
    stop = threading.Event() if stop is None else stop
    data, run, sent = flights.sample(), secrets.token_hex(3), 0
    client.create(LAYER, groups=GROUPS)
    count = max(1, round(seconds * TICKS))
    began = time.monotonic()
    for number, tick in enumerate(ticks(data, count)):
        if stop.wait(max(0.0, began + seconds * number / count - time.monotonic())):
            break
        if len(rows := tick.announced):
            groups = {"carrier": data.carrier[rows].tolist(), "origin": data.origin[rows].tolist()}
            ids = [f"{run}-{row}" for row in rows]
            client.predict_many(LAYER, data.prediction[rows].tolist(), ids=ids, groups=groups)
        if len(rows := tick.landed):
            ids = [f"{run}-{row}" for row in rows]
            client.label_many(LAYER, data.delay[rows].tolist(), ids=ids)
            sent += len(rows)
    return sent
