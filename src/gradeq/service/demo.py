"""``gradeq serve --demo``: nine months of flights through the running server, over HTTP, in two minutes."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gradeq.client import Client, Patience
from gradeq.datasets import flights
from gradeq.errors import GradeqError
from gradeq.service.auth import SCOPES, add_key, new_key

if TYPE_CHECKING:
    from gradeq.service.app import Service

LAYER = "flights"
GROUPS = ["carrier", "origin"]
SECONDS = 120.0
TICKS = 20  # spans a second: of some three hours, so that labels keep their lateness
SLACK = 600.0  # seconds that a slow machine may take longer
PATIENCE = Patience(seconds=30.0, first=0.05, longest=0.2)  # until the server listens
Rows = npt.NDArray[np.intp]


def ticks(data: flights.Flights, count: int) -> Iterator[tuple[Rows, Rows]]:
    """The flights announced and landed in ``count`` spans of equal length, from the first to the last."""
    served, landed = data.served.astype(np.int64), data.landed.astype(np.int64)
    ends = np.linspace(served.min() - 1, landed.max(), count + 1)
    by_landing = np.argsort(landed, kind="stable")
    start, done = 0, 0
    for until in ends[1:]:
        stop = int(np.searchsorted(served, until, side="right"))
        labelled = int(np.searchsorted(landed[by_landing], until, side="right"))
        yield np.arange(start, stop), by_landing[done:labelled]
        start, done = stop, labelled


def play(client: Client, seconds: float, stop: threading.Event | None = None) -> int:
    """Stream the flights, each with its label when the plane lands; how many labels were sent.

    A flight is announced three hours before departure, so labels arrive as late as they did. Every run has its own
    ids, so a store that saw the demo before goes on learning.
    """
    stop = threading.Event() if stop is None else stop
    data, run, sent = flights.sample(), secrets.token_hex(3), 0
    client.create(LAYER, groups=GROUPS)
    count = max(1, round(seconds * TICKS))
    began = time.monotonic()
    for number, (announced, landed) in enumerate(ticks(data, count)):
        if stop.wait(max(0.0, began + seconds * number / count - time.monotonic())):
            break
        if len(announced):
            groups = {"carrier": data.carrier[announced].tolist(), "origin": data.origin[announced].tolist()}
            ids = [f"{run}-{row}" for row in announced]
            client.predict_many(LAYER, data.prediction[announced].tolist(), ids=ids, groups=groups)
        if len(landed):
            client.label_many(LAYER, data.delay[landed].tolist(), ids=[f"{run}-{row}" for row in landed])
            sent += len(landed)
    return sent


class Demo:
    """Runs the demo beside a server, from the moment its address is known until the block ends."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, service: Service, address: str) -> None:
        """Stream the flights to this server, with a key that expires soon after."""
        text, key = new_key("default", "demo", SCOPES)
        add_key(service.store, replace(key, revoked=time.time() + self.seconds + SLACK))
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
            self._thread.join(0.5)  # it may be calling a server that has stopped
