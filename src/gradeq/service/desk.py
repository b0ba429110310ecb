"""The desk: one thread that takes queued work, commits it, and answers once it is on disk."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from gradeq.errors import BadInput, GradeqError
from gradeq.service.layer_spec import layer_of, merged_spec
from gradeq.service.maintenance import write_import
from gradeq.service.problems import Busy, LayerExists, LayerStopped, NoSuchLayer
from gradeq.service.runtime import CONTROLS, LayerKey, LayerRegistry, LayerRuntime
from gradeq.service.schemas import ItemAnswer, Label, Prediction
from gradeq.service.signed_tickets import preview_all, wait_for_commit
from gradeq.service.store.database import JsonObject, StoreStopped, StoreTaken, StoreUnavailable
from gradeq.service.store.journal_store import Store, StoreWriter
from gradeq.service.transaction import Transaction, UndoCounts, undo_batch

T = TypeVar("T")


class FutureBridge:
    """Lets coroutines await another thread's futures; the loop is woken once per batch."""

    def __init__(self) -> None:
        self._done: deque[asyncio.Future[None]] = deque()
        self._scheduled = False

    async def wait(self, answer: Future[T]) -> T:
        if answer.done():
            return answer.result()
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[None] = loop.create_future()

        def schedule(_: object) -> None:
            self._done.append(waiting)
            if not self._scheduled:
                self._scheduled = True
                loop.call_soon_threadsafe(self._deliver)

        answer.add_done_callback(schedule)
        await waiting
        return answer.result()

    def _deliver(self) -> None:
        self._scheduled = False  # first: futures that are added from now on schedule another delivery
        while self._done:
            waiting = self._done.popleft()
            if not waiting.done():  # otherwise the caller has left
                waiting.set_result(None)


BATCH_SIZE = 1_000  # items in one transaction, the first request apart
QUEUE_LIMIT = 10_000  # items that may wait
STALE_AFTER = 10.0  # seconds without reading what other servers wrote, until answers are marked stale
POLL_SECONDS = 0.2  # seconds between two readings of what other servers wrote
MATURITY_POLL_SECONDS = 1.0  # seconds between two searches for labels that are due
SNAPSHOT_EVERY = 20_000  # entries of a journal between two snapshots

UNAVAILABLE = (StoreUnavailable, StoreTaken)
READ_ONLY = "this server is read-only; send it to a server that writes"


@dataclass
class QueuedWork:
    """Work for one layer; ``items`` are predictions, which are served without the store when it cannot write."""

    key: LayerKey
    do: Callable[[Transaction], object]
    size: int = 0
    items: Sequence[Prediction] = ()
    answer: Future[Any] = field(default_factory=Future)


@dataclass
class DeskHealth:
    """The state of the desk."""

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
        witness: Callable[[Sequence[LayerRuntime]], None] | None = None,
        waiting: int = QUEUE_LIMIT,
    ) -> None:
        self.store, self.clock, self._queue_limit = store, clock, waiting
        self.witness = witness
        self.layers = LayerRegistry(store)
        self._queue: deque[QueuedWork] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        self._broken: StoreStopped | None = None
        self._thread: threading.Thread | None = None
        self._subscribers: list[Callable[[], None]] = []
        self.on_divergence: Callable[[LayerRuntime], None] = lambda runtime: None
        self.health = DeskHealth(writable=not store.read_only)

    # Life

    def start(self) -> None:
        if not self.store.read_only:
            self.store.serve(self.clock())
        self.layers.load_all()
        self._thread = threading.Thread(target=self._run, name="desk", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the queue, save snapshots, end the thread."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()
        if not self.store.read_only and self._broken is None:
            with suppress(GradeqError), self.store.write() as tx:  # without snapshots the journal is replayed
                for runtime in self.layers:
                    self._save(tx, runtime)

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        """Call ``subscriber`` in the desk's thread after each commit."""
        self._subscribers.append(subscriber)

    # Work for clients

    def predict(
        self, tenant: str, name: str, items: Sequence[Prediction], author: int = 0, atomic: bool = False
    ) -> Future[list[ItemAnswer]]:
        """Serve predictions; answered when their tickets are on disk, or at once if tickets are signed."""
        runtime = self.runtime(tenant, name)
        if runtime.signed or self.store.read_only:
            answers: Future[list[ItemAnswer]] = Future()
            answers.set_result(self._preview(runtime, items))
            return answers
        return self._enqueue(runtime.key, lambda tx: tx.predict(items, author, atomic), len(items), items)

    def label(
        self, tenant: str, name: str, items: Sequence[Label], author: int = 0, atomic: bool = False
    ) -> Future[list[ItemAnswer]]:
        key = self.layers.get((tenant, name)).key
        return self._enqueue(key, lambda tx: tx.label(items, author, atomic), len(items))

    def control(
        self, tenant: str, name: str, do: str, arguments: JsonObject | None = None, author: int = 0
    ) -> Future[int]:
        """Freeze, resume, reset_in_flight or set_step; its number in the journal."""
        runtime = self.runtime(tenant, name)
        if do not in CONTROLS:
            raise BadInput(f"{do!r} is not a control; give one of {', '.join(CONTROLS)}")

        def number_or_error(transaction: Transaction) -> int | GradeqError:
            try:
                return transaction.control(do, arguments or {}, author)
            except GradeqError as error:  # rejected without a change: the other works can be committed
                return error

        return self._enqueue(runtime.key, number_or_error, 1)

    def undo(self, tenant: str, name: str, key: int, author: int = 0) -> UndoCounts:
        """Take back every label of a key, in batches, so that other requests are served in between."""
        counts, after = UndoCounts(), 0
        until = self.store.head(self.runtime(tenant, name).number).seq  # other servers' labels are undone too
        while after < until:
            work = partial(undo_batch, key=key, after=after, until=until, author=author)
            more, after = self._enqueue((tenant, name), work, BATCH_SIZE).result()
            counts = counts.plus(more)
        return counts

    def copy(self, tenant: str, name: str) -> Future[tuple[int, str]]:
        return self._enqueue(self.runtime(tenant, name).key, lambda tx: tx.copy(), 1)

    def create(self, tenant: str, name: str, spec: JsonObject, state: str | None = None) -> bool:
        """Create a layer; False if it exists with the same settings. ``state``: a state saved by the library."""
        if self.store.read_only:
            raise StoreUnavailable(READ_ONLY)
        if state is None:
            layer_of(spec)
        else:
            spec = merged_spec(spec, state)
        with self.layers.lock:
            known = self.store.layer(tenant, name)
            if known is None:
                with self.store.write() as tx:
                    row = tx.create(tenant, name, spec, self.clock())
                    if state is not None:
                        write_import(tx, row, state, self.clock())
                self.layers.load(row)
                return True
        if known.spec != spec:
            raise LayerExists(f"layer {name!r} exists with other settings; delete it first, or choose another name")
        return False

    def remove(self, tenant: str, name: str) -> None:
        """Remove a layer; its journal stays in the store."""
        if self.store.read_only:
            raise StoreUnavailable(READ_ONLY)
        with self.layers.lock:
            runtime = self.runtime(tenant, name)
            with self.store.write() as tx:
                tx.remove(runtime.number, self.clock())
            self.layers.forget((tenant, name))

    def names(self, tenant: str) -> list[str]:
        return self.layers.names(tenant)

    @contextmanager
    def reading(self, tenant: str, name: str) -> Iterator[LayerRuntime]:
        """A layer, locked against changes."""
        runtime = self.runtime(tenant, name)
        with runtime.layer.lock:
            yield runtime

    def runtime(self, tenant: str, name: str) -> LayerRuntime:
        return self.layers.get((tenant, name))

    # The thread

    def _enqueue(
        self, key: LayerKey, do: Callable[[Transaction], T | GradeqError], size: int, items: Sequence[Prediction] = ()
    ) -> Future[T]:
        if self.store.read_only:
            raise StoreUnavailable(READ_ONLY)
        work = QueuedWork(key, do, size, items)
        with self._wake:
            if self._stopping:
                raise StoreUnavailable("the server is shutting down; retry later")
            if self.health.waiting + work.size > self._queue_limit and self._queue:
                raise Busy(f"{self.health.waiting:,} items are queued; retry in a second")
            self._queue.append(work)
            self.health.waiting += work.size
            self._wake.notify()
        return work.answer

    def _run(self) -> None:
        looked = time.monotonic()
        while True:
            if self.store.shared and time.monotonic() - looked > POLL_SECONDS:
                with suppress(GradeqError):  # the next commit reports it
                    self.layers.refresh()
                looked = time.monotonic()
            with self._wake:
                if not self._queue and not self._stopping:
                    # Labels of some layers become due without any work.
                    maturing = any(runtime.maturity for runtime in [*self.layers.runtimes.values()])
                    idle = POLL_SECONDS if self.store.shared else MATURITY_POLL_SECONDS if maturing else None
                    self._wake.wait(idle)
                if not self._queue and self._stopping:
                    return
                if not self._queue and not self.store.read_only:
                    now = self.clock()
                    for runtime in self.layers:
                        if runtime.maturity and not runtime.stopped and runtime.is_due(now):
                            self._queue.append(QueuedWork(runtime.key, lambda tx: None))
                if not self._queue:
                    continue
                batch = [self._queue.popleft()]
                size = batch[0].size
                while self._queue and size + self._queue[0].size <= BATCH_SIZE:
                    batch.append(self._queue.popleft())
                    size += batch[-1].size
                self.health.waiting -= size
            self._run_batch(batch)

    def _run_batch(self, batch: list[QueuedWork]) -> None:
        """Commit a batch; if it fails, commit its works one by one, so that none blocks another."""
        began = time.monotonic()
        transactions: dict[LayerKey, Transaction] = {}
        failure: BaseException | None = None
        with ExitStack() as until_committed:
            try:
                if self._broken is not None:
                    raise self._broken
                results: Sequence[object] = self._commit(batch, transactions, until_committed)
            except BaseException as error:
                failure = error
                for transaction in transactions.values():
                    transaction.runtime.stale = True
        health = self.health
        if failure is None:
            health.writable, health.why = True, ""
            health.commits, health.items = health.commits + 1, health.items + len(batch)
            health.last_commit = time.monotonic() - began
        else:
            health.failures += 1
            if isinstance(failure, StoreStopped):
                self._broken = failure
            if isinstance(failure, UNAVAILABLE):
                health.writable, health.why = False, str(failure)
            elif len(batch) > 1:
                for work in batch:
                    self._run_batch([work])
                return
            results = [self._answer_without_store(work, failure) for work in batch]
        for work, result in zip(batch, results, strict=True):
            if isinstance(result, BaseException):
                work.answer.set_exception(result)
            else:
                work.answer.set_result(result)
        if failure is not None:
            return
        for transaction in transactions.values():
            if transaction.diverged:
                self.on_divergence(transaction.runtime)
        for subscriber in self._subscribers:
            subscriber()

    def _commit(
        self, batch: list[QueuedWork], transactions: dict[LayerKey, Transaction], until_committed: ExitStack
    ) -> list[object]:
        """Do all works in one transaction; their answers, or the errors of layers that cannot be opened."""
        results: list[object] = []
        with self.store.write() as tx:
            closed = self._open_transactions(tx, {work.key for work in batch}, transactions)
            for opened in transactions.values():
                if opened.runtime.signed:
                    until_committed.enter_context(opened.runtime.committing)
            for work in batch:
                transaction = transactions.get(work.key)
                if transaction is None:
                    results.append(self._answer_without_store(work, closed[work.key]))
                    continue
                runtime = transaction.runtime
                if runtime.maturity is not None or runtime.layer.internals.tickets.waiting:
                    transaction.mature()
                results.append(work.do(transaction))
            for transaction in transactions.values():
                transaction.write()
                if transaction.runtime.head.seq - transaction.runtime.snapshot_seq >= SNAPSHOT_EVERY:
                    self._save(tx, transaction.runtime)
        if self.witness is not None:
            self.witness([transaction.runtime for transaction in transactions.values()])
        return results

    def _open_transactions(
        self, tx: StoreWriter, keys: set[LayerKey], transactions: dict[LayerKey, Transaction]
    ) -> dict[LayerKey, Exception]:
        """Open transactions of these layers, in the same order on all servers; return why others cannot be opened."""
        closed: dict[LayerKey, Exception] = {}
        runtimes: list[LayerRuntime] = []
        for key in keys:
            try:
                runtimes.append(self.layers.current(key))
            except (LayerStopped, NoSuchLayer) as error:
                closed[key] = error
        for runtime in sorted(runtimes, key=lambda runtime: runtime.number):
            key = runtime.key
            try:
                try:
                    transactions[key] = Transaction(runtime, tx, self.clock(), self.store.secret)
                except NoSuchLayer:  # deleted by another server, which may have created a new one of this name
                    self.layers.forget(key)
                    transactions[key] = Transaction(self.layers.get(key), tx, self.clock(), self.store.secret)
            except (LayerStopped, NoSuchLayer) as error:
                closed[key] = error
            except BaseException:
                runtime.stale = True
                raise
        return closed

    def _answer_without_store(self, work: QueuedWork, error: BaseException) -> list[ItemAnswer] | BaseException:
        """Serve predictions from the last good state; everything else gets the error."""
        known = self.layers.runtimes.get(work.key)
        if not work.items or known is None or not isinstance(error, (*UNAVAILABLE, LayerStopped)):
            return error
        return preview_all(self._stored_runtime(known), work.items, self.store, self.clock(), why=str(error))

    def _preview(self, runtime: LayerRuntime, items: Sequence[Prediction]) -> list[ItemAnswer]:
        behind = self.layers.age > STALE_AFTER
        runtime = self._stored_runtime(runtime)
        with wait_for_commit(runtime):
            if not runtime.stale:
                return preview_all(runtime, items, self.store, self.clock(), stale=behind)
        return preview_all(self._stored_runtime(runtime), items, self.store, self.clock(), stale=behind)

    def _stored_runtime(self, runtime: LayerRuntime) -> LayerRuntime:
        """The layer as the store has it, or as it is in memory if the store cannot be read."""
        with suppress(GradeqError):
            return self.layers.current(runtime.key)
        return runtime

    def _save(self, tx: StoreWriter, runtime: LayerRuntime) -> None:
        if runtime.head.seq > runtime.snapshot_seq and not runtime.stale:
            tx.save_snapshot(runtime.number, runtime.head.seq, runtime.layer.to_json(), self.clock())
            runtime.snapshot_seq = runtime.head.seq
