"""The server: socket, store, desk, and a shutdown that loses nothing."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from types import FrameType

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from gradeq.errors import BadInput
from gradeq.records import copy_with
from gradeq.service.app import Service
from gradeq.service.auth import SCOPES, add_key, new_key, read_keys
from gradeq.service.desk import Desk
from gradeq.service.store import open_store
from gradeq.service.store.journal_store import Store
from gradeq.service.telemetry import Limits, Log, forward_uvicorn_log
from gradeq.service.witness import Witness

MAX_HEADER_BYTES = 64_000  # bytes of one request before its body
SHUTDOWN_SECONDS = 30  # seconds to answer the last calls when the server shuts down


class TimedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection with limits on the time and size of a request; uvicorn has none."""

    within = 10.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle | None = self.loop.call_later(self.within, self._give_up)
        self._received = 0

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._received = 0
            self._stop_timer()
            return
        self._received += len(data)
        if self._received > MAX_HEADER_BYTES:
            self.transport.close()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.within, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


class Server(uvicorn.Server):
    """uvicorn's server; on a signal it first ends streams, which would never end on their own."""

    service: Service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self.service.begin_shutdown()


@dataclass(frozen=True)
class ServerSettings:
    """Where and what to serve.

    ``witness``: a file that records what was acknowledged; a layer that lacks some of it does not learn. ``keep``:
    seconds after which closed rows of the journals are folded into their sums; None: never.
    """

    url: str
    host: str
    port: int
    read_only: bool
    limits: Limits
    witness: str | None = None
    keep: float | None = None


def serve(settings: ServerSettings, log: Log, greet: Callable[[Service, str, str | None], object]) -> None:
    """Serve a store until a signal ends it; ``greet`` gets the address and the first key, if there is one."""
    # Compiling loops would block all callers for seconds and take 100 MB; calls are too small to profit.
    os.environ.setdefault("GRADEQ_COMPILE", "0")
    host, limits = settings.host, settings.limits
    with (
        bind_socket(host, settings.port) as listening,
        closing(open_store(settings.url, settings.read_only)) as store,
    ):
        first = first_key(store, host)
        desk = Desk(store, waiting=limits.queue)
        desk.start()
        if settings.witness is not None and not settings.read_only:
            desk.witness = open_witness(settings.witness, desk, log)
        service = Service(store, desk, limits, log)
        service.watch.retention = settings.keep
        service.watch.start()
        name = f"[{host}]" if ":" in host else host
        greet(service, f"http://{name}:{listening.getsockname()[1]}", first)
        forward_uvicorn_log(log)
        server = Server(config_of(service))
        server.service = service
        log("started", store=store.url, layers=len(desk.layers))
        with suppress(KeyboardInterrupt):  # uvicorn raises its signals again at the end
            server.run(sockets=[listening])


def open_witness(path: str, desk: Desk, log: Log) -> Witness:
    witness = Witness(path, desk.store)
    lost = witness.check(desk.store)
    for runtime in desk.layers:
        runtime.head = copy_with(runtime.head, stopped=desk.store.head(runtime.number).stopped)
        if runtime.number in lost:
            log("lost", "error", layer=runtime.row.name, tenant=runtime.row.tenant, why=lost[runtime.number])
    if witness.damaged:
        log("witness", "warning", path=path, why=f"{witness.damaged} lines are damaged")
    return witness


def config_of(service: Service) -> uvicorn.Config:
    limits = service.limits
    protocol = type("LimitedProtocol", (TimedProtocol,), {"within": limits.headers_within})
    return uvicorn.Config(
        service.application(), http=protocol, ws="none", lifespan="on",
        log_config=None, log_level=logging.WARNING, access_log=False, server_header=False, proxy_headers=False,
        limit_concurrency=limits.connections, timeout_keep_alive=int(max(5.0, 2 * limits.headers_within)),
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )  # fmt: skip


def bind_socket(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)  # asyncio sends at once only if it knows that this is TCP
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"cannot listen on {host}:{port}: {reason}; give another --port or --host") from None
    return bound


def is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def first_key(store: Store, host: str) -> str | None:
    """A key with every scope for a store without keys; on loopback only, since it is printed."""
    if read_keys(store):
        return None
    if not is_loopback(host):
        why = f"{store.url} has no keys, and {host} can be reached from other machines"
        raise BadInput(f"{why}; run `gradeq keys create --store {store.url}` first")
    if store.read_only:
        raise BadInput(f"{store.url} has no keys; run `gradeq keys create` first, without --read-only")
    text, key = new_key("default", "first", SCOPES)
    add_key(store, key)
    return text
