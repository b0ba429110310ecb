"""A layer at work: the library's layer, where its journal stands, and what the dashboard shows of the last labels."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from inspect import signature
from threading import Lock
from typing import Any, NamedTuple

from gradeq.errors import BadInput
from gradeq.layers.doubts import silenced
from gradeq.layers.layer import Layer
from gradeq.layers.registry import from_json
from gradeq.ledger.exact import NOTHING, Account, Sum, add
from gradeq.ledger.values import Posting, Ticket, new
from gradeq.naming import name_of
from gradeq.service.bodies import plain_in, posting_in, ticket_in
from gradeq.service.items import Answer, Prediction
from gradeq.service.spec import MAX_NAMES, layer_of
from gradeq.service.store.folds import sums_in
from gradeq.service.store.rows import MODULUS, Entry, Head, LayerRow, hashed
from gradeq.service.store.schema import CONTROL, CORRECTION, POSTING, REVERSAL, TICKET
from gradeq.service.store.store import Store
from gradeq.service.waiting_labels import (
    HOLD_BACK,
    WAIT,
    do_again,
    due_now,
    imported_book,
    learned,
)
from gradeq.service.wording import a

RECENT = 5_000  # labels that are kept for charts
OPEN = 50_000  # open tickets that are kept in memory; the others are read from the journal
HASHES = 100_000  # places of the journal whose hashes are kept in memory
OTHER = "(other)"
IMPORT = "import"  # the first entry of a layer that was started from a saved state
CONTROLS = ("freeze", "resume", "reset_in_flight", "set_step")


class Heard(NamedTuple):
    """A label that came: when, how many seconds after its prediction, and what it said."""

    at: float
    waited: float
    posting: Posting


class Live:
    """One layer of a server."""

    def __init__(self, row: LayerRow, layer: Layer, seq: int) -> None:
        self.row, self.layer = row, layer
        layer._book.branches.trusting = True  # the journal knows its tickets
        self.head = row.head._replace(seq=seq)
        self.saved = seq  # the number of the last snapshot
        self.begun = seq  # entries up to this number are in the state that it began with
        self.sums: dict[Account, Sum] = {}
        self.opened: OrderedDict[str, tuple[Entry, Ticket]] = OrderedDict()
        self.whole = True  # whether every open ticket is among them
        self.recent: deque[Heard] = deque(maxlen=RECENT)
        self.hashes: dict[int, int] = {}  # of the journal up to a number, where somebody asked
        self.rejections: deque[tuple[float, str, str, str]] = deque(maxlen=100)
        self.stale = False  # ahead of the store: a commit failed
        self.committing = Lock()  # held while memory is ahead of the store
        self.diverged = ""  # why it was frozen by itself
        self.signed = row.spec.get("tickets") == "signed"
        self.keyed = bool(row.spec.get("keyed"))
        self.games = row.spec["kind"] == "elo"
        ttl = row.spec.get("ttl")  # spans of the library are nanoseconds, numbers are ours: seconds
        own = layer._book.ttl
        known = signature(layer.open).parameters  # type: ignore[attr-defined]
        self.lacks = frozenset({"groups", "features", "weight", "home"} - set(known))
        self.ttl = own if own is None or not isinstance(ttl, str) else own / 1e9
        mature = layer._book.maturity
        self.maturity = (
            mature
            if mature is None or not isinstance(row.spec.get("maturity"), str)
            else mature / 1e9
        )
        self.most = int(row.spec.get("max_names", MAX_NAMES))
        self.last_label: float | None = None
        self.behind, self.most_behind = (
            0,
            0,
        )  # entries that others had written when this server looked

    @classmethod
    def load(cls, store: Store, row: LayerRow) -> Live:
        """The layer as the store has it: its last snapshot and what the journal says since."""
        seq, text = store.snapshot(row.number)  # first: others may go on writing
        head, sums = store.balance(row.number)
        own: Any = silenced(layer_of(row.spec) if text is None else from_json(text))
        live = cls(row, own, seq)
        for entry in store.entries(row.number, seq, head.seq):
            live.replay(entry)
        live.head, live.sums = head, sums
        live.rejections.extendleft(store.rejections(row.number))
        live._remember(store)
        return live

    def _remember(self, store: Store) -> None:
        """The last labels and open tickets, from the journal."""
        last = store.latest(self.row.number, (TICKET, POSTING, REVERSAL, CORRECTION), 2 * RECENT)
        self.recent.clear()
        self.opened.clear()
        self.whole = len(last) < 2 * RECENT
        for entry in last:
            self.note(entry)
        for entry in store.latest(self.row.number, (CONTROL,), 20) if self.layer._frozen else ():
            self._told(plain_in(entry.body))

    # What the journal says

    def hash_at(
        self, seq: int, head: Head, since: Callable[[int], list[Entry]], secret: bytes
    ) -> int:
        """The sum of the hashes of the journal up to a number; ``since`` reads the entries after one."""
        if seq not in self.hashes:
            entries = since(seq)
            each = [hashed(secret, self.number, [entry]) for entry in entries]
            hash = self.hashes[seq] = (head.hash - sum(each)) % MODULUS
            for entry, own in zip(entries, each, strict=True):
                hash = self.hashes[entry.seq] = (hash + own) % MODULUS
        found = self.hashes[seq]
        if len(self.hashes) > HASHES:
            self.hashes = dict(sorted(self.hashes.items())[-HASHES // 2 :])
        return found

    def replay(self, entry: Entry) -> None:
        """Do again what an entry says was done."""
        layer: Any = self.layer
        if entry.seq <= self.begun:
            return
        if entry.kind == CONTROL:
            self.control(plain_in(entry.body))
        elif entry.kind == TICKET:
            layer.replay([ticket_in(entry.body)])
        else:
            posting = posting_in(entry.body)
            if entry.kind == POSTING and not self.signed:
                learned(layer, entry.id, posting)
            layer.replay([posting])

    def catch_up(self, entries: Iterable[Entry]) -> None:
        """What other servers wrote: done again here."""
        for entry in entries:
            self.replay(entry)
            if entry.kind != TICKET and entry.kind != CONTROL:
                self.enter(posting_in(entry.body))
            elif entry.kind == CONTROL:
                self.open_balance(plain_in(entry.body))
            self.note(entry)
            self.head = self.head._replace(seq=entry.seq)

    def control(self, body: dict[str, Any]) -> None:
        """Do what an operator asked for."""
        if body["do"] in CONTROLS:
            getattr(self.layer, body["do"])(**body.get("with", {}))
            self._told(body)
        elif body["do"] in (WAIT, HOLD_BACK):
            do_again(self.layer, body)
        elif body["do"] == IMPORT and not self.begun:
            self.layer, self.begun = silenced(from_json(body["state"])), int(body["until"])
            # The journal has the tickets; earlier versions kept nothing else.
            book = self.layer._book
            self.layer._book = imported_book(book) if body.get("waiting") else book.blank()
            self.layer._book.branches.trusting = True

    def _told(self, body: dict[str, Any]) -> None:
        """Remember why learning stopped by itself, until somebody resumes it."""
        if body["do"] == "resume":
            self.diverged = ""
        elif "why" in body:
            self.diverged = body["why"]

    def open_balance(self, body: dict[str, Any]) -> None:
        """Take up the sums that a layer brought along when it was imported."""
        if body["do"] == IMPORT:
            for account, own in sums_in(body["sums"]).items():
                self.sums[account] = self.sums.get(account, NOTHING).plus(own)

    def enter(self, posting: Posting) -> list[Account]:
        """Add a posting to the exact sums; which of them it changed. A dropped tie teaches nothing."""
        learns = self.layer._learns
        return add(self.sums, posting) if learns is None or learns(posting.y) else []

    def note(self, entry: Entry, value: Any = None) -> None:
        """Remember an entry (its ticket or posting, if that is at hand) as long as somebody may ask for it soon."""
        if entry.kind == TICKET:
            self.opened[entry.id] = (entry, value or ticket_in(entry.body))
            if len(self.opened) > OPEN:
                self.opened.popitem(last=False)
                self.whole = False
        elif entry.kind == POSTING:
            own = self.opened.pop(entry.id, None)
            waited = entry.at - own[0].at if own else 0.0
            heard = (entry.at, max(0.0, waited), value or posting_in(entry.body))
            self.recent.append(new(Heard, heard))
            self.last_label = entry.at
        elif entry.kind == REVERSAL:  # sign -1, until another label comes in its place
            self._put_right(value or posting_in(entry.body))
        elif entry.kind == CORRECTION:
            self._put_right(value or posting_in(entry.body))
            self.last_label = entry.at

    def _put_right(self, posting: Posting) -> None:
        """A label that was corrected is shown as it is now."""
        for k in range(len(self.recent) - 1, -1, -1):
            old = self.recent[k].posting
            if old[:5] == posting[:5]:  # of one ticket: number, row, base, served, weight
                self.recent[k] = self.recent[k]._replace(posting=posting)
                return

    # What comes in and goes out

    def where(self, item: Prediction) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of ``open`` for an item; new groups beyond the most that are kept apart are joined."""
        given: dict[str, Any] = {} if item.weight == 1.0 else {"weight": item.weight}
        if self.games:
            if item.a is None or item.b is None:
                raise BadInput("a game needs two players; give their names under 'a' and 'b'")
            if item.home != 1.0:
                given["home"] = item.home
            args: tuple[Any, ...] = (item.a, item.b)
        else:
            if item.prediction is None:
                raise BadInput("the prediction is missing; give a number under 'prediction'")
            args = (item.prediction,)
            if self.keyed:
                if item.key is None:
                    raise BadInput("the key is missing; give the name of the series under 'key'")
                given["key"] = item.key
            elif item.key is not None:
                raise BadInput("this layer has no keys; make one with keyed set to true")
            if item.groups:
                given["groups"] = item.groups
            if item.features:
                given["features"] = item.features
        for name in self.lacks.intersection(given):
            raise BadInput(f"{a(self.row.spec['kind'])} layer takes no {name}; leave it out")
        names = self.layer._names
        kept = names.keys if self.keyed else names.count - self.games  # players and the home side
        if kept >= self.most:
            self._admit(item, given)
        return args, given

    def _admit(self, item: Prediction, given: dict[str, Any]) -> None:
        """Refuse new players and keys once there are too many; new groups become one, "(other)"."""
        names: Any = self.layer._names
        remedy = f"max_names is {self.most:,}; make a layer with a larger one"
        if self.games:
            if names.known(names.row(item.a, item.b, item.home)) is None:
                raise BadInput(f"a player is new and there are too many: {remedy}")
        elif self.keyed:
            if names.known(names.row(item.key, item.groups, item.features)[0]) is None:
                raise BadInput(f"the key {item.key!r} is new and there are too many: {remedy}")
        elif item.groups:
            prefixes = dict(zip(names.groups, names.prefixes, strict=True))
            given["groups"] = {
                column: value if prefixes.get(column, "") + name_of(value) in names.index else OTHER
                for column, value in item.groups.items()
            }

    def is_due(self, now: float) -> bool:
        """Whether a label that is kept is to be learned, or a row counts as one whose label did not come."""
        book = self.layer._book
        if book.missing_is is not None and self.maturity is not None:
            for entry, _ in self.opened.values():
                if entry.at + self.maturity >= now:
                    break
                if entry.id not in book.held:
                    return True
        return bool(due_now(book, now))

    def post(self, ticket: Ticket, y: Any) -> Posting:
        """Learn from a label, checked, of a ticket of ours, which needs no check."""
        with self.layer._lock:
            return self.layer._posted(ticket, y)

    def answer(self, id: str | int | None, served: Ticket, **more: Any) -> Answer:
        """What a ticket tells the client."""
        layer: Any = self.layer
        plain = self.games or (layer._as_served and not layer.shadow)
        shown = served.served if plain else layer._shown(served.base, served.served)
        found = Answer(id=id, learning=not (layer._frozen or self.head.stopped), **more)
        if type(shown) is float:
            found.adjusted = shown
        elif hasattr(shown, "interval"):
            found.adjusted = shown.threshold
            found.lower, found.upper = shown.interval
        elif self.row.spec["kind"] == "interval":
            found.lower, found.upper = shown
            found.adjusted = [found.lower, found.upper]
        else:
            found.adjusted = list(shown)
        return found

    @property
    def stopped(self) -> str:
        """Why it does not learn: its books do not balance, or it left its proven range; "" otherwise."""
        return self.head.stopped or self.diverged

    @property
    def key(self) -> tuple[str, str]:
        """Its tenant and name."""
        return self.row.tenant, self.row.name

    @property
    def number(self) -> int:
        """The number of the layer in the store."""
        return self.row.number


def fresh(row: LayerRow) -> Live:
    """A layer that was just created."""
    return Live(row, silenced(layer_of(row.spec)), 0)
