"""The layers of a running server, with their journal heads, waiting labels and recent labels."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from inspect import signature
from threading import Lock, RLock
from typing import Any, NamedTuple

from gradeq.engine.label_stats import HELD
from gradeq.engine.tickets import Id, TicketBook, WaitingLabel
from gradeq.errors import BadInput, StateError
from gradeq.inputs.arguments import name_of
from gradeq.layers.internals import silenced
from gradeq.layers.layer import Layer
from gradeq.layers.registry import from_json
from gradeq.layers.waiting import middle
from gradeq.ledger import facts as fact
from gradeq.ledger.exact import NOTHING, Account, Sum, add
from gradeq.ledger.values import Posting, Ticket, new
from gradeq.records import copy_with
from gradeq.service.layer_spec import MAX_NAMES, NANO, layer_of, uses_dates
from gradeq.service.problems import LayerStopped, NoSuchLayer, with_article
from gradeq.service.schemas import ItemAnswer, Prediction, decode_json, decode_posting, decode_ticket, encode_id
from gradeq.service.store.database import JsonObject
from gradeq.service.store.journal_store import (
    CONTROL,
    CORRECTION,
    POSTING,
    REVERSAL,
    TICKET,
    Entry,
    Head,
    LayerRow,
    Rejection,
    Store,
    decode_sums,
    hash_before,
)

WAIT, HOLD_BACK = "wait", "hold_back"  # kinds of control entries
AUTHORS = "authors"  # key in a ticket book's notes: which API key sent each label
RECENT_LABELS = 5_000  # labels in memory, for charts
OPEN_TICKETS = 50_000  # open tickets in memory; others are read from the journal
CACHED_HASHES = 100_000  # journal positions whose hashes are in memory
OTHER_GROUP = "(other)"
IMPORT = "import"  # the first entry of a layer that was created from a saved state
CONTROLS = ("freeze", "resume", "reset_in_flight", "set_step")
LayerKey = tuple[str, str]  # tenant and name


def book_for_import(book: TicketBook) -> TicketBook:
    """The ticket book of an imported layer: waiting labels and lateness counts; the journal has the rest."""
    imported, unit = book.blank(), NANO if uses_dates(book) else 1.0
    imported.early = book.early
    for label in book.waiting.values():
        if label.id is not None:
            due, time = (at if at == HELD else at / unit for at in (label.due, label.time))
            imported.hold([copy_with(label, id=encode_id(label.id), due=due, time=time)])
    return imported


def apply_wait_control(layer: Layer, body: JsonObject, replay: bool = True) -> None:
    """Add a waiting label, or start or stop holding labels back; ``replay``: also count labels held back."""
    book = layer.internals.tickets
    if body["do"] == WAIT:
        id, ticket, y = body["id"], decode_ticket(body["ticket"].encode()), float(body["label"])
        if replay and body["due"] == HELD and id not in book.waiting_ids:
            count_label(layer, ticket, y)
        book.hold([WaitingLabel(ticket, y, float(body["due"]), float(body["at"]), id)])
        book.desk.setdefault(AUTHORS, {})[id] = int(body["by"])
    elif book.early is not None:
        book.early.since = None if body["since"] is None else int(body["since"])
        book.early.why = ""  # set by the next counted label


def count_label(layer: Layer, entry: Ticket | Posting, y: float) -> bool:
    """Count an arrived label; return whether it is held back."""
    early, state = layer.internals.tickets.early, layer.internals.state
    late = entry.number != state.number and entry.weight != 0.0
    if early is None or not late or early.settled or layer.internals.frozen:
        return False
    early.count(y, middle(entry.base), int(state.number), entry.number, lambda: float(state.facts[fact.POSTED]))
    return early.since is not None


def release_label(book: TicketBook, id: str) -> int:
    """Remove a waiting label; return the number of the API key that sent it."""
    number = book.waiting_ids[id]
    book.hold((), [book.waiting[number]])
    authors = book.desk.get(AUTHORS, {})
    author = int(authors.pop(id, 0))
    if not authors:
        book.desk.pop(AUTHORS, None)
    return author


def due_labels(book: TicketBook, now: float) -> list[WaitingLabel]:
    due = [label for label in book.due_by(now) if label.due <= now and label.due != HELD]
    return sorted(due, key=lambda label: (label.due, label.ticket.number))


class ArrivedLabel(NamedTuple):
    """A label, when it arrived, and how many seconds after its prediction."""

    at: float
    waited: float
    posting: Posting


class LayerRuntime:
    """One layer of a running server: a new one, or ``layer``, which has replayed the journal up to ``seq``."""

    def __init__(self, row: LayerRow, layer: Layer | None = None, seq: int = 0) -> None:
        self.row, self.number, self.key = row, row.number, (row.tenant, row.name)
        self.layer = layer = silenced(layer_of(row.spec) if layer is None else layer)
        book = layer.internals.tickets
        book.branches.trusting = True  # the journal has its tickets
        self.head = copy_with(row.head, seq=seq)
        self.snapshot_seq = seq  # the number of the last snapshot
        self.initial_seq = seq  # entries up to this number are in the initial state
        self.sums: dict[Account, Sum] = {}
        self.open_tickets: OrderedDict[str, tuple[Entry, Ticket]] = OrderedDict()
        self.has_all_open = True  # whether open_tickets is complete
        self.recent_labels: deque[ArrivedLabel] = deque(maxlen=RECENT_LABELS)
        self.hashes: dict[int, int] = {}  # cached hashes of the journal by entry number
        self.rejections: deque[Rejection] = deque(maxlen=100)
        self.stale = False  # ahead of the store: a commit failed
        self.committing = Lock()  # locked while memory is ahead of the store
        self.diverged = ""  # why learning stopped automatically
        self.signed = row.spec.get("tickets") == "signed"
        self.keyed = bool(row.spec.get("keyed"))
        self.is_elo = row.spec["kind"] == "elo"
        self.unsupported = frozenset({"groups", "features", "weight", "home"} - set(signature(layer.open).parameters))
        self.max_names = int(row.spec.get("max_names", MAX_NAMES))
        # Spans given as text are nanoseconds in the library; the service counts in seconds.
        self.ttl, self.maturity = (
            span if span is None or not isinstance(row.spec.get(name), str) else span / NANO
            for name, span in (("ttl", book.ttl), ("maturity", book.maturity))
        )
        self.last_label: float | None = None
        self.lag = self.max_lag = 0  # unread journal entries of other servers: at the last refresh, and at most

    @classmethod
    def load(cls, store: Store, row: LayerRow) -> LayerRuntime:
        seq, text = store.snapshot(row.number)  # read first, because other servers may be writing
        head, sums = store.balance(row.number)
        runtime = cls(row, None if text is None else from_json(text), seq)
        for entry in store.entries(row.number, seq, head.seq):
            runtime.replay(entry)
        runtime.head, runtime.sums = head, sums
        runtime.rejections.extendleft(store.rejections(row.number))
        last = store.latest(row.number, (TICKET, POSTING, REVERSAL, CORRECTION), 2 * RECENT_LABELS)
        runtime.has_all_open = len(last) < 2 * RECENT_LABELS
        for entry in last:
            runtime.remember_entry(entry)
        if runtime.layer.internals.frozen:
            for entry in store.latest(row.number, (CONTROL,), 20):
                runtime._note_divergence(decode_json(entry.body))
        return runtime

    # Reading the journal

    def hash_at(self, seq: int, head: Head, since: Callable[[int], list[Entry]], secret: bytes) -> int:
        """The hash of the journal up to entry ``seq``; ``since`` reads the entries after it."""
        if seq not in self.hashes:
            for entry in reversed(since(seq)):
                self.hashes[entry.seq] = head.hash
                head = copy_with(head, hash=hash_before(secret, self.number, head, [entry]))
            self.hashes[seq] = head.hash
        result = self.hashes[seq]
        if len(self.hashes) > CACHED_HASHES:
            self.hashes = dict(sorted(self.hashes.items())[-CACHED_HASHES // 2 :])
        return result

    def replay(self, entry: Entry) -> None:
        if entry.seq <= self.initial_seq:
            return
        if entry.kind == CONTROL:
            self.control(decode_json(entry.body))
        elif entry.kind == TICKET:
            self.layer.replay([decode_ticket(entry.body)])
        else:
            posting, book = decode_posting(entry.body), self.layer.internals.tickets
            if entry.kind == POSTING and not self.signed and entry.id in book.waiting_ids:
                release_label(book, entry.id)
            elif entry.kind == POSTING and not self.signed:
                count_label(self.layer, posting, posting.y)
            self.layer.replay([posting])

    def catch_up(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.replay(entry)
            if entry.kind == CONTROL:
                self.add_imported_sums(decode_json(entry.body))
            elif entry.kind != TICKET:
                self.add_posting(decode_posting(entry.body))
            self.remember_entry(entry)
            self.head = copy_with(self.head, seq=entry.seq)

    def control(self, body: JsonObject) -> None:
        if body["do"] in CONTROLS:
            getattr(self.layer, body["do"])(**body.get("with", {}))
            self._note_divergence(body)
        elif body["do"] in (WAIT, HOLD_BACK):
            apply_wait_control(self.layer, body)
        elif body["do"] == IMPORT and not self.initial_seq:
            self.layer, self.initial_seq = silenced(from_json(body["state"])), int(body["until"])
            # The journal has the tickets; earlier versions imported no waiting labels.
            book = self.layer.internals.tickets
            self.layer.internals.tickets = book_for_import(book) if body.get("waiting") else book.blank()
            self.layer.internals.tickets.branches.trusting = True

    def _note_divergence(self, body: JsonObject) -> None:
        if body["do"] == "resume":
            self.diverged = ""
        elif "why" in body:
            self.diverged = body["why"]

    def add_imported_sums(self, body: JsonObject) -> None:
        if body["do"] == IMPORT:
            for account, amount in decode_sums(body["sums"]).items():
                self.sums[account] = self.sums.get(account, NOTHING).plus(amount)

    def add_posting(self, posting: Posting) -> list[Account]:
        """Add a posting to the exact sums; return the accounts it changed. A dropped tie changes none."""
        learns = self.layer.internals.learns
        return add(self.sums, posting) if learns is None or learns(posting.y) else []

    def remember_entry(self, entry: Entry, value: Ticket | Posting | None = None) -> None:
        """Cache an entry for charts and for labels still to come."""
        if entry.kind == TICKET:
            ticket = value if type(value) is Ticket else decode_ticket(entry.body)
            self.open_tickets[entry.id] = (entry, ticket)
            if len(self.open_tickets) > OPEN_TICKETS:
                self.open_tickets.popitem(last=False)
                self.has_all_open = False
        elif entry.kind == POSTING:
            opened = self.open_tickets.pop(entry.id, None)
            waited = entry.at - opened[0].at if opened else 0.0
            arrived = (entry.at, max(0.0, waited), value or decode_posting(entry.body))
            self.recent_labels.append(new(ArrivedLabel, arrived))
            self.last_label = entry.at
        elif entry.kind in (REVERSAL, CORRECTION):  # a reversal has sign -1; a correction replaces it
            if entry.kind == CORRECTION:
                self.last_label = entry.at
            posting = value if type(value) is Posting else decode_posting(entry.body)
            for k, label in reversed([*enumerate(self.recent_labels)]):
                # Postings of one ticket share number, row, base, served and weight.
                if label.posting[:5] == posting[:5]:
                    self.recent_labels[k] = copy_with(label, posting=posting)
                    break

    # Requests and answers

    def open_arguments(self, item: Prediction) -> tuple[tuple[Any, ...], JsonObject]:
        """The arguments of ``open`` for an item; new groups beyond ``max_names`` become "(other)"."""
        options: JsonObject = {} if item.weight == 1.0 else {"weight": item.weight}
        args: tuple[object, ...] = (item.a, item.b) if self.is_elo else (item.prediction,)
        if self.is_elo:
            if None in args:
                raise BadInput("a game needs two players; give their names as 'a' and 'b'")
            options |= {} if item.home == 1.0 else {"home": item.home}
        else:
            if item.prediction is None:
                raise BadInput("the field 'prediction' is missing; give a number")
            if self.keyed and item.key is None:
                raise BadInput("the field 'key' is missing; give the name of the series")
            if not self.keyed and item.key is not None:
                raise BadInput("this layer has no keys; create one with keyed set to true")
            sent = {"key": item.key, "groups": item.groups or None, "features": item.features or None}
            options |= {name: value for name, value in sent.items() if value is not None}
        for name in self.unsupported.intersection(options):
            raise BadInput(f"{with_article(self.row.spec['kind'])} layer does not accept {name}; leave it out")
        names: Any = self.layer.internals.names
        count = names.keys if self.keyed else names.count - self.is_elo  # one parameter of Elo is the home side
        if count < self.max_names:
            return args, options
        remedy = f"max_names is {self.max_names:,}; create a layer with a larger one"
        if self.is_elo and names.known(names.row(item.a, item.b, item.home)) is None:
            raise BadInput(f"a player is new, and the layer is full: {remedy}")
        if self.keyed and names.known(names.row(item.key, item.groups, item.features)[0]) is None:
            raise BadInput(f"the key {item.key!r} is new, and the layer is full: {remedy}")
        if item.groups and not self.keyed and not self.is_elo:
            prefixes = dict(zip(names.groups, names.prefixes, strict=True))
            options["groups"] = {
                column: value if prefixes.get(column, "") + name_of(value) in names.index else OTHER_GROUP
                for column, value in item.groups.items()
            }
        return args, options

    def is_due(self, now: float) -> bool:
        book = self.layer.internals.tickets
        if book.missing_is is not None and self.maturity is not None:
            for entry, _ in self.open_tickets.values():
                if entry.at + self.maturity >= now:
                    break
                if entry.id not in book.waiting_ids:
                    return True
        return bool(due_labels(book, now))

    def post(self, ticket: Ticket, y: float) -> Posting:
        with self.layer.lock:
            return self.layer.internals.post_ticket(ticket, y)

    def answer(self, id: Id | None, served: Ticket, **more: Any) -> ItemAnswer:
        layer = self.layer
        plain = self.is_elo or (layer.internals.as_served and not layer.shadow)
        value: Any = served.served if plain else layer.displayed(served.base, served.served)
        answer = ItemAnswer(id=id, learning=not (layer.internals.frozen or self.head.stopped), **more)
        if type(value) is float:
            answer.adjusted = value
        elif hasattr(value, "interval"):
            answer.adjusted, (answer.lower, answer.upper) = value.threshold, value.interval
        else:
            answer.adjusted = list(value)
            if self.row.spec["kind"] == "interval":
                answer.lower, answer.upper = value
        return answer

    @property
    def stopped(self) -> str:
        """Why the layer does not learn: a failed audit or divergence; "" otherwise."""
        return self.head.stopped or self.diverged


class LayerRegistry:
    """Layers by tenant and name; a damaged layer does not stop the others."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.lock = RLock()
        self.runtimes: dict[LayerKey, LayerRuntime] = {}
        self.damaged: dict[LayerKey, str] = {}
        self.refreshed_at = time.monotonic()  # when entries of other servers were last read

    def __iter__(self) -> Iterator[LayerRuntime]:
        return iter(list(self.runtimes.values()))

    def __len__(self) -> int:
        return len(self.runtimes) + len(self.damaged)

    def load_all(self) -> None:
        for row in self.store.layers():
            self.load(row)

    def get(self, key: LayerKey) -> LayerRuntime:
        if key not in self.runtimes:
            self.discover(key[0])
        runtime = self.runtimes.get(key)
        if runtime is None and key in self.damaged:
            raise LayerStopped(self.damaged[key])
        if runtime is None:
            raise NoSuchLayer(f"there is no layer {key[1]!r}; create it first")
        return runtime

    def current(self, key: LayerKey) -> LayerRuntime:
        """The layer with this key, reloaded from the store if a commit failed."""
        runtime = self.get(key)
        if not runtime.stale:
            return runtime
        with self.lock:
            runtime = self.get(key)
            if runtime.stale:  # no other thread has reloaded it meanwhile
                row = self.store.layer(*key)
                if row is None:
                    raise NoSuchLayer(f"the layer {key[1]!r} was deleted; create it first")
                runtime = self.runtimes[key] = LayerRuntime.load(self.store, row)
            return runtime

    def names(self, tenant: str) -> list[str]:
        self.discover(tenant)
        return [name for owner, name in [*self.runtimes, *self.damaged] if owner == tenant]

    def stopped(self) -> list[LayerKey]:
        """Layers stopped by a failed audit, divergence or damage."""
        return [*(runtime.key for runtime in self if runtime.stopped), *self.damaged]

    def forget(self, key: LayerKey) -> None:
        self.runtimes.pop(key, None)
        self.damaged.pop(key, None)

    def discover(self, tenant: str) -> None:
        """Load layers that another server created, and drop those it removed."""
        if not self.store.shared:
            return
        with self.lock:
            rows = {row.name: row for row in self.store.layers(tenant)}
            for key in [key for key in self.runtimes if key[0] == tenant and key[1] not in rows]:
                self.forget(key)
            for name, row in rows.items():
                known = self.runtimes.get((tenant, name))
                if known is None or known.number != row.number:
                    self.load(row)

    def load(self, row: LayerRow) -> None:
        key = (row.tenant, row.name)
        try:
            self.runtimes[key] = LayerRuntime.load(self.store, row)
            self.damaged.pop(key, None)
        except StateError as error:
            self.damaged[key] = str(error)

    def refresh(self) -> None:
        for runtime in self:
            head = self.store.head(runtime.number)
            runtime.lag = head.seq - runtime.head.seq
            runtime.max_lag = max(runtime.lag, runtime.max_lag)
            if runtime.lag > 0 and not runtime.stale:
                runtime.catch_up(self.store.entries(runtime.number, runtime.head.seq, head.seq))
                runtime.head = head
        self.refreshed_at = time.monotonic()

    @property
    def age(self) -> float:
        """Seconds since the other servers' entries were last read; 0 without other servers."""
        return time.monotonic() - self.refreshed_at if self.store.shared else 0.0
