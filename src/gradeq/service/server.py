"""The server: a socket, the store and its desk behind it, and an end that loses nothing."""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from gradeq.errors import BadInput
from gradeq.service.app import Service
from gradeq.service.desk import Desk
from gradeq.service.keys import SCOPES, new_key
from gradeq.service.limits import Limits
from gradeq.service.logs import Log, forward
from gradeq.service.store import open_store
from gradeq.service.store.api_keys import add_key, keys_of
from gradeq.service.store.store import Store
from gradeq.service.witness import Witness

HEADERS = 64_000  # bytes of one request before its body
ENDING = 30  # seconds that calls have to be answered when the server is told to end


class Patient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection that waits for a request only so long and so much; uvicorn waits for ever."""

    within = 10.0

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._waiting: Any = self.loop.call_later(self.within, self._give_up)
        self._heard = 0

    def data_received(self, data: bytes) -> None:
        """Take bytes; a request that is whole ends the waiting."""
        super().data_received(data)
        if self._busy():
            self._heard = 0
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None
            return
        self._heard += len(data)
        if self._heard > HEADERS:
            self.transport.close()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(self.within, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _give_up(self) -> None:
        self._waiting = None
        if not self._busy():
            self.transport.close()


class Server(uvicorn.Server):
    """uvicorn's server; told to end, it first lets streams end, which would never end by themselves."""

    service: Service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Hear a signal."""
        super().handle_exit(sig, frame)
        self.service.end()


def serve(
    url: str,
    host: str,
    port: int,
    read_only: bool,
    limits: Limits,
    log: Log,
    greet: Callable[[Service, str, str | None], Any],
    witness: str | None = None,
    keep: float | None = None,
) -> None:
    """Serve a store until a signal ends it; ``greet`` is told the address and the first key, if there is one.

    ``witness``: the file that says what was acknowledged; a layer that lacks some of it does not learn. ``keep``:
    seconds after which closed rows of the journals are folded into their sums.
    """
    # To compile loops would hold up all callers for seconds once and take 100 MB; items come a thousand at the most.
    os.environ.setdefault("GRADEQ_COMPILE", "0")
    listening = bound(host, port)
    try:
        store = open_store(url, read_only)
        try:
            first = first_key(store, host)
            desk = Desk(store, waiting=limits.queue)
            desk.start()
            if witness is not None and not read_only:
                desk.witness = witnessed(witness, desk, log)
            service = Service(store, desk, limits, log)
            service.watch.keep = keep
            service.watch.start()
            greet(service, address(host, listening), first)
            run(service, listening)
        finally:
            store.close()
    finally:
        listening.close()


def witnessed(path: str, desk: Desk, log: Log) -> Witness:
    """The witness of a store, once it was asked what the store lacks."""
    witness = Witness(path, desk.store)
    lost = witness.check(desk.store)
    for live in desk.layers:
        live.head = live.head._replace(stopped=desk.store.head(live.number).stopped)
        if live.number in lost:
            log("lost", "error", layer=live.row.name, tenant=live.row.tenant, why=lost[live.number])
    if witness.damaged:
        log("witness", "warning", path=path, why=f"{witness.damaged} lines are damaged")
    return witness


def run(service: Service, listening: socket.socket) -> None:
    """Answer calls until a signal comes."""
    forward(service.log)
    server = Server(config_of(service))
    server.service = service
    service.log("started", store=service.store.url, layers=len(service.desk.layers))
    with suppress(KeyboardInterrupt):  # uvicorn raises its signals again, after all is done
        server.run(sockets=[listening])


def config_of(service: Service) -> uvicorn.Config:
    """How uvicorn serves: our log, our patience, no headers that tell too much."""
    limits = service.limits
    waiting = type("Waiting", (Patient,), {"within": limits.headers_within})
    return uvicorn.Config(
        service.application(),
        http=waiting,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=limits.connections,
        timeout_keep_alive=int(max(5.0, 2 * limits.headers_within)),
        timeout_graceful_shutdown=ENDING,
    )


def bound(host: str, port: int) -> socket.socket:
    """A socket at this address, before anything else is touched."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[
            0
        ]
        made = socket.socket(
            family, kind, protocol
        )  # asyncio sends at once only if it knows that this is TCP
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(where)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(
            f"cannot listen on {host}:{port}: {reason}; give another --port or --host"
        ) from None
    return made


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def first_key(store: Store, host: str) -> str | None:
    """A key with every scope where a store has none; only for this machine, since it is printed."""
    if keys_of(store):
        return None
    if not is_loopback(host):
        raise BadInput(
            f"{store.url} has no keys, and {host} can be reached from other machines; "
            f"run `gradeq keys create --store {store.url}` first"
        )
    if store.read_only:
        raise BadInput(
            f"{store.url} has no keys; run `gradeq keys create` first, without --read-only"
        )
    text, key = new_key("default", "first", SCOPES)
    add_key(store, key)
    return text


def address(host: str, listening: socket.socket) -> str:
    """The address to open in a browser."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listening.getsockname()[1]}"
