"""``gradeq serve --demo``: nine months of flights through the running server, over HTTP, in two minutes."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.client import Client, Patience
from gradeq.datasets import flights
from gradeq.errors import GradeqError
from gradeq.service.keys import SCOPES, new_key
from gradeq.service.store.api_keys import add_key

if TYPE_CHECKING:
    from gradeq.service.app import Service

LAYER = "flights"
GROUPS = ["carrier", "origin"]
SECONDS = 120.0
TICKS = 20  # spans a second: of some three hours, so that labels keep their lateness
SLACK = 600.0  # seconds that a slow machine may take longer
PATIENCE = Patience(seconds=30.0, first=0.05, longest=0.2)  # until the server listens
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


class Demo:
    """The demo beside a server: it begins when the address is known, and ends with the block."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, service: Service, address: str) -> None:
        """Stream the flights to the server at this address, with a key that ends soon after."""
        text, key = new_key("default", "demo", SCOPES)
        add_key(service.store, key._replace(revoked=time.time() + self.seconds + SLACK))
        service.ring.reload()

        def stream() -> None:
            try:
                with Client(address, text, patience=PATIENCE) as client:
                    labels = play(client, self.seconds, self._stop)
                service.log("demo", layer=LAYER, labels=labels)
            except GradeqError as error:
                if not service.closing:
                    service.log("demo", "warning", layer=LAYER, why=str(error))

        self._thread = threading.Thread(target=stream, name="demo", daemon=True)
        self._thread.start()

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(0.5)  # it may be asking a server that is gone
