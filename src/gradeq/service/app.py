"""The service as one ASGI application: the parts that calls need, and the routes to them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.routing import Route, Router

from gradeq.service import audit_calls, item_calls, layer_calls, site_calls
from gradeq.service.bell import Bell
from gradeq.service.calls import Endpoint
from gradeq.service.dashboard import calls as dashboard
from gradeq.service.dashboard.screens import Screens
from gradeq.service.dashboard.stream import Broadcast
from gradeq.service.desk import Desk
from gradeq.service.gate import Nowhere, Place
from gradeq.service.keys import Key, KeyRing
from gradeq.service.limits import Bucket, Limits
from gradeq.service.live import Live
from gradeq.service.logs import Log
from gradeq.service.metrics import Metrics
from gradeq.service.sessions import Sessions
from gradeq.service.store.api_keys import keys_of
from gradeq.service.store.failures import StoreUnavailable
from gradeq.service.store.rows import LayerRow
from gradeq.service.store.store import Store
from gradeq.service.tally import Audited
from gradeq.service.watch import Watch

ENDPOINTS: tuple[Endpoint, ...] = (
    *item_calls.ENDPOINTS,
    *layer_calls.ENDPOINTS,
    *audit_calls.ENDPOINTS,
    *site_calls.ENDPOINTS,
    *dashboard.ENDPOINTS,
)

ASK_EVERY = 0.05  # seconds between two readings of the keys because of keys that nobody knows


class Service:
    """All that calls share."""

    def __init__(
        self,
        store: Store,
        desk: Desk,
        limits: Limits | None = None,
        log: Log | None = None,
        endpoints: tuple[Endpoint, ...] = ENDPOINTS,
    ) -> None:
        self.store, self.desk = store, desk
        self.limits, self.log = limits or Limits(), log or Log()
        self.endpoints = endpoints
        self.metrics, self.sessions = Metrics(), Sessions(store.secret)
        self.bell = Bell()
        self.ring = KeyRing(lambda: keys_of(store))
        self.watch = Watch(desk, self._audited)
        self.watch.folded = self._folded
        self.screens, self.broadcast = Screens(desk, self.watch.found), Broadcast(desk)
        self.began, self.closing = time.time(), False
        self.ending = asyncio.Event()
        desk.alarm = self._diverged
        self._buckets: dict[int, Bucket] = {}
        self._asking: asyncio.Future[None] | None = None  # a reading of the keys

    def _audited(self, found: Audited) -> None:
        """Tell of a layer whose books do not balance."""
        if found.faults:
            self.log("audit", "error", layer=found.name, tenant=found.tenant, why=found.faults[0])

    def _folded(self, row: LayerRow, gone: int, why: str) -> None:
        """Tell of rows that were folded, or why a layer's cannot be."""
        level = "warning" if why else "info"
        self.log("fold", level, layer=row.name, tenant=row.tenant, entries=gone, why=why or None)

    def _diverged(self, live: Live) -> None:
        """Tell of a layer that left its proven range and learns no more."""
        self.log("diverged", "error", layer=live.row.name, tenant=live.row.tenant, why=live.stopped)

    def bucket(self, number: int) -> Bucket:
        """What is left of the rate of a key."""
        found = self._buckets.get(number)
        if found is None:
            found = self._buckets[number] = Bucket(self.limits.rate, self.limits.burst)
        return found

    async def holder(self, text: str) -> Key | None:
        """The key with this text. One that was never heard of may be new: the store is asked before it is refused."""
        await self.fresh_keys()
        found = self.ring.holder(text)
        for _ in range(2):  # a reading that is under way may have begun before the key was made
            if found is None and self.ring.unheard(text):
                await self._ask()
                found = self.ring.holder(text)
        return found

    async def _ask(self) -> None:
        """Read the keys, together with all who wait for that; so a flood of wrong keys costs 20 readings a second."""
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._asked())
        await asyncio.shield(self._asking)

    async def _asked(self) -> None:
        await asyncio.sleep(max(0.0, ASK_EVERY - self.ring.age))
        try:
            await self._read_keys()
        finally:
            self._asking = None

    async def fresh_keys(self) -> None:
        """Read the keys again when it is time to; those in memory do while the store cannot be read."""
        if self.ring.stale:
            await self._read_keys()

    async def _read_keys(self) -> None:
        self.ring.touch()
        try:
            await asyncio.to_thread(self.ring.reload)
        except StoreUnavailable as error:
            self.log("keys", "warning", why=str(error))

    def end(self) -> None:
        """The server is about to end: it is no longer ready, and answers without an end stop."""
        self.closing = True
        self.ending.set()

    def application(self) -> Any:
        """The ASGI application; its end is that of the desk: what waits is done first."""
        paths: dict[str, dict[str, Endpoint]] = {}
        for endpoint in self.endpoints:
            paths.setdefault(endpoint.path, {})[endpoint.method] = endpoint
        routes = [Route(path, Place(self, path, own)) for path, own in paths.items()]

        @asynccontextmanager
        async def life(_: Any) -> AsyncIterator[None]:
            yield
            self.end()
            await asyncio.to_thread(self.watch.stop)
            await asyncio.to_thread(self.desk.stop)
            self.log("stopped", commits=self.desk.health.commits)

        return Router(routes, redirect_slashes=False, default=Nowhere(self), lifespan=life)
