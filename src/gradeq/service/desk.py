"""The desk: one thread that takes what is waiting, does it, and answers when all of it is on disk.

Whatever waits is done in one transaction (at most ``AT_ONCE`` items), so commits are shared when many come at once
and nobody waits for others to come. When a commit fails, the layers it touched are read again from the store, nothing
is acknowledged, and predictions are served from the last good state.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gradeq.errors import BadInput, GradeqError
from gradeq.service.at_work import AtWork, Key
from gradeq.service.failures import Busy, LayerExists, LayerStopped, NoSuchLayer
from gradeq.service.items import Answer, Label, Prediction
from gradeq.service.live import CONTROLS, Live
from gradeq.service.moving import merged_spec, write_import
from gradeq.service.page import Page
from gradeq.service.serving import preview_all
from gradeq.service.spec import layer_of
from gradeq.service.store.failures import StoreStopped, StoreTaken, StoreUnavailable
from gradeq.service.store.store import Store, Write
from gradeq.service.undoing import Undone, undo_some

AT_ONCE = 1_000  # items in one transaction, the first request apart
WAITING = 10_000  # items that may wait
STALE = 10.0  # seconds without a look at what others wrote, until answers say so
LOOK_EVERY = 0.2  # seconds between two looks at what other servers wrote
LOOK_FOR_MATURE = 1.0  # seconds between two looks for labels that have become due
SAVE_EVERY = 20_000  # entries of a journal between two snapshots

Unavailable = (StoreUnavailable, StoreTaken)


@dataclass
class Work:
    """Something that a client asked for."""

    key: Key
    do: Callable[[Page], Any]
    size: int
    items: Sequence[
        Prediction
    ] = ()  # of predictions: served without the store when it cannot write
    answer: Future[Any] = field(default_factory=Future)


@dataclass
class Health:
    """How the desk is."""

    writable: bool = True
    why: str = ""
    waiting: int = 0
    commits: int = 0
    items: int = 0
    last_commit: float = 0.0  # seconds that it took
    failures: int = 0


class Desk:
    """Serves and learns for all layers of a store."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float] = time.time,
        witness: Callable[[Sequence[Live]], None] | None = None,
        waiting: int = WAITING,
    ) -> None:
        self.store, self.clock, self._most = store, clock, waiting
        self.witness = witness
        self.layers = AtWork(store)
        self._queue: deque[Work] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        self._broken: StoreStopped | None = None
        self._thread: threading.Thread | None = None
        self._told: list[Callable[[dict[Key, int]], None]] = []
        self.alarm: Callable[[Live], None] = lambda live: None  # told of layers that diverged
        self.health = Health(writable=not store.read_only)

    # Life

    def start(self) -> None:
        """Begin: from now on this server alone writes to a store that cannot be shared."""
        if not self.store.read_only:
            self.store.serve(self.clock())
        self.layers.load_all()
        self._thread = threading.Thread(target=self._run, name="desk", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Do all that waits, save snapshots, end."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()
        if not self.store.read_only and self._broken is None:
            try:
                with self.store.write() as tx:
                    for live in self.layers:
                        self._save(tx, live)
            except GradeqError:
                pass  # the journal has it all

    def subscribe(self, told: Callable[[dict[Key, int]], None]) -> Callable[[], None]:
        """Call this after each commit with the numbers of the journals that grew; what ends it comes back."""
        self._told.append(told)
        return lambda: self._told.remove(told)

    # What can be asked

    def predict(
        self,
        tenant: str,
        name: str,
        items: Sequence[Prediction],
        author: int = 0,
        atomic: bool = False,
    ) -> Future[list[Answer]]:
        """Serve predictions; answered when their tickets are on disk, at once where tickets are signed."""
        live = self.live(tenant, name)
        if live.signed or self.store.read_only:
            stale = self.layers.age > STALE
            return done(preview_all(live, items, self.store, self.clock(), stale=stale))
        work = Work(
            (tenant, name), lambda page: page.predict(items, author, atomic), len(items), items
        )
        return self._put(work)

    def label(
        self, tenant: str, name: str, items: Sequence[Label], author: int = 0, atomic: bool = False
    ) -> Future[list[Answer]]:
        """Learn from labels; answered when their postings are on disk."""
        self.live(tenant, name)
        return self._put(
            Work((tenant, name), lambda page: page.label(items, author, atomic), len(items))
        )

    def control(
        self, tenant: str, name: str, do: str, given: dict[str, Any] | None = None, author: int = 0
    ) -> Future[int]:
        """Freeze, resume, reset_in_flight, set_step: posted like everything else; its number in the journal."""
        self.live(tenant, name)
        if do not in CONTROLS:
            raise BadInput(f"{do!r} is nothing that can be done; give one of {', '.join(CONTROLS)}")
        with_ = given or {}

        def done_or_why(page: Page) -> int | GradeqError:
            try:
                return page.control(do, with_, author)
            except (
                GradeqError
            ) as error:  # refused, and nothing has changed: the commit need not fail for it
                return error

        return self._put(Work((tenant, name), done_or_why, 1))

    def undo(self, tenant: str, name: str, key: int, author: int = 0) -> Undone:
        """Take back every label that a key sent, some in each transaction; those under way go in between."""
        found, after = Undone(), 0
        until = self.live(tenant, name).head.seq
        while after < until:
            work = partial(undo_some, key=key, after=after, until=until, author=author)
            more, after = self._put(Work((tenant, name), work, AT_ONCE)).result()
            found = found.plus(more)
        return found

    def copy(self, tenant: str, name: str) -> Future[tuple[int, str]]:
        """A layer as it is, saved, and the number of the journal that it holds; what is answered is on disk."""
        self.live(tenant, name)
        return self._put(Work((tenant, name), lambda page: page.copy(), 1))

    def create(
        self, tenant: str, name: str, spec: dict[str, Any], state: str | None = None
    ) -> bool:
        """A new layer; False if there is one with the same settings. ``state``: what a library layer saved."""
        self._check_writes()
        if state is None:
            layer_of(spec)
        else:
            spec = merged_spec(spec, state)
        with self.layers.changing:
            known = self.store.layer(tenant, name)
            if known is None:
                with self.store.write() as tx:
                    row = tx.create(tenant, name, spec, self.clock())
                    if state is not None:
                        write_import(tx, row, state, self.clock())
                self.layers.load(row)
                return True
        if known.spec != spec:
            raise LayerExists(
                f"there is a layer {name!r} with other settings; delete it first, or take another name"
            )
        return False

    def remove(self, tenant: str, name: str) -> None:
        """Take a layer out of use; its journal stays in the store."""
        self._check_writes()
        with self.layers.changing:
            live = self.live(tenant, name)
            with self.store.write() as tx:
                tx.remove(live.number, self.clock())
            self.layers.forget((tenant, name))

    def names(self, tenant: str) -> list[str]:
        """The layers of a tenant."""
        return self.layers.names(tenant)

    @contextmanager
    def reading(self, tenant: str, name: str) -> Iterator[Live]:
        """A layer to look at, which nobody changes meanwhile."""
        live = self.live(tenant, name)
        with live.layer._lock:
            yield live

    def live(self, tenant: str, name: str) -> Live:
        """The layer of this name."""
        return self.layers.get((tenant, name))

    # The thread

    def _put(self, work: Work) -> Future[Any]:
        self._check_writes()
        with self._wake:
            if self._stopping:
                raise StoreUnavailable("the server is shutting down; send it again later")
            if self.health.waiting + work.size > self._most and self._queue:
                raise Busy(
                    f"{self.health.waiting:,} items wait to be written; send it again in a second"
                )
            self._queue.append(work)
            self.health.waiting += work.size
            self._wake.notify()
        return work.answer

    def _check_writes(self) -> None:
        if self.store.read_only:
            raise StoreUnavailable("this server only reads; send it to a server that writes")

    def _run(self) -> None:
        looked = time.monotonic()
        while True:
            if self.store.shared and time.monotonic() - looked > LOOK_EVERY:
                with suppress(GradeqError):  # a commit will say so
                    self.layers.refresh()
                looked = time.monotonic()
            with self._wake:
                if not self._queue and not self._stopping:
                    self._wake.wait(self._patience())
                if not self._queue and not self._stopping and not self.store.read_only:
                    self._queue.extend(self._matured())
                if not self._queue:
                    if self._stopping:
                        return
                    continue
                batch = [self._queue.popleft()]
                size = batch[0].size
                while self._queue and size + self._queue[0].size <= AT_ONCE:
                    batch.append(self._queue.popleft())
                    size += batch[-1].size
                self.health.waiting -= size
            self._serve(batch)

    def _patience(self) -> float | None:
        """How long to wait for a call: labels of some layers become due without one."""
        if self.store.shared:
            return LOOK_EVERY
        return LOOK_FOR_MATURE if any(live.maturity for live in self.layers) else None

    def _matured(self) -> list[Work]:
        """Something to do for each layer that has a label which is due by now."""
        now = self.clock()
        due = [
            live for live in self.layers if live.maturity and not live.stopped and live.is_due(now)
        ]
        return [Work(live.key, lambda page: None, 0) for live in due]

    def _serve(self, batch: list[Work]) -> None:
        """Do a batch; if it fails and has several works, each of them alone, so that none spoils another's."""
        began = time.monotonic()
        pages: dict[Key, Page] = {}
        try:
            if self._broken is not None:
                raise self._broken
            results = self._commit(batch, pages)
        except BaseException as error:
            for page in pages.values():
                page.live.stale = True
            if isinstance(error, StoreStopped):
                self._broken = error
            self._failed(batch, error)
            return
        health = self.health
        health.writable, health.why = True, ""
        health.commits, health.items = health.commits + 1, health.items + len(batch)
        health.last_commit = time.monotonic() - began
        for work, result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                work.answer.set_exception(result)
            else:
                work.answer.set_result(result)
        for page in pages.values():
            if page.diverged:
                self.alarm(page.live)
        grown = {key: page.head.seq + len(page.entries) for key, page in pages.items()}
        for told in self._told:
            told(grown)

    def _commit(self, batch: list[Work], pages: dict[Key, Page]) -> list[Any]:
        """All works in one transaction: their answers, or why one of them could not begin."""
        results: list[Any] = []
        with ExitStack() as until_committed, self.store.write() as tx:
            closed = self._open_pages(tx, {work.key for work in batch}, pages)
            for opened in pages.values():
                if opened.live.signed:
                    until_committed.enter_context(opened.live.committing)
            for work in batch:
                page = pages.get(work.key)
                if page is not None:
                    page.mature()
                results.append(
                    self._unstored(work, closed[work.key]) if page is None else work.do(page)
                )
            for page in pages.values():
                page.write()
                if page.live.head.seq - page.live.saved >= SAVE_EVERY:
                    self._save(tx, page.live)
        if self.witness is not None:
            self.witness([page.live for page in pages.values()])
        return results

    def _open_pages(
        self, tx: Write, keys: set[Key], pages: dict[Key, Page]
    ) -> dict[Key, Exception]:
        """The pages of these layers, locked in one order by all servers; why others cannot be had."""
        closed: dict[Key, Exception] = {}
        found: dict[Key, Live] = {}
        for key in keys:
            try:
                found[key] = self.layers.current(key)
            except (LayerStopped, NoSuchLayer) as error:
                closed[key] = error
        for key, live in sorted(found.items(), key=lambda own: own[1].number):
            try:
                pages[key] = self._page(tx, key, live)
            except (LayerStopped, NoSuchLayer) as error:
                closed[key] = error
            except BaseException:
                live.stale = True
                raise
        return closed

    def _page(self, tx: Write, key: Key, live: Live) -> Page:
        try:
            return Page(live, tx, self.clock(), self.store.secret)
        except NoSuchLayer:  # deleted by another server, which may have made a new one of this name
            self.layers.forget(key)
            return Page(self.layers.get(key), tx, self.clock(), self.store.secret)

    def _failed(self, batch: list[Work], error: BaseException) -> None:
        self.health.failures += 1
        if isinstance(error, Unavailable):
            self.health.writable, self.health.why = False, str(error)
        elif len(batch) > 1:
            for work in batch:
                self._serve([work])
            return
        for work in batch:
            result = self._unstored(work, error)
            if isinstance(result, BaseException):
                work.answer.set_exception(result)
            else:
                work.answer.set_result(result)

    def _unstored(self, work: Work, error: BaseException) -> Any:
        """Predictions are always served, from the last good state; all else fails with the error."""
        known = self.layers.known(work.key)
        if not work.items or known is None or not isinstance(error, (*Unavailable, LayerStopped)):
            return error
        with suppress(
            GradeqError
        ):  # the store may not even be readable: then what is in memory must do
            known = self.layers.current(work.key)
        return preview_all(known, work.items, self.store, self.clock(), why=str(error))

    def _save(self, tx: Write, live: Live) -> None:
        if live.head.seq > live.saved and not live.stale:
            tx.keep_snapshot(live.number, live.head.seq, live.layer.to_json(), self.clock())
            live.saved = live.head.seq


def done(result: Any) -> Future[Any]:
    """An answer that is there already."""
    answer: Future[Any] = Future()
    answer.set_result(result)
    return answer
