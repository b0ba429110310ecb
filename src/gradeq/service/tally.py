"""What the rows of a journal add up to: counted, hashed, summed and, if that is asked for, done again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from gradeq.errors import GradeqError
from gradeq.kernels.account import COLUMNS, GRADIENT, MOVED, ROWS
from gradeq.layers.doubts import silenced
from gradeq.layers.registry import from_json
from gradeq.ledger.exact import Account, Sum, amounts, rounded
from gradeq.ledger.values import Row
from gradeq.rounding import ROUNDED
from gradeq.rules.ensemble import Ensemble
from gradeq.service.bodies import plain_in, posting_in, ticket_in
from gradeq.service.live import IMPORT, fresh
from gradeq.service.store.driver import Connection
from gradeq.service.store.failures import StoreDamaged
from gradeq.service.store.folds import fold_of
from gradeq.service.store.rows import (
    MODULUS,
    Entry,
    LayerRow,
    birth_of,
    hashed,
    page_of,
    snapshots_of,
)
from gradeq.service.store.schema import CONTROL, POSTING, TICKET

TOLD = 5  # faults of one layer that are spelled out


@dataclass
class Audited:
    """What was found about one layer; without ``faults`` all is in order. ``read``: rows that were looked at now."""

    tenant: str
    name: str
    entries: int = 0
    labels: int = 0
    open: int = 0
    read: int = 0
    replayed: bool = False
    faults: list[str] = field(default_factory=list)

    def fault(self, what: str) -> None:
        """Note a fault; of many the first ones."""
        if len(self.faults) < TOLD:
            self.faults.append(what)

    def as_dict(self) -> dict[str, Any]:
        """All of it, plain."""
        return {**asdict(self), "sound": not self.faults}


class Tally:
    """The sums over a journal and what was taken out of it; it goes on where it stopped."""

    def __init__(self, own: Connection, secret: bytes, row: LayerRow, replay: bool = False) -> None:
        self.row, self._secret, self.replay = row, secret, replay
        fold = fold_of(own, row.number)
        self.live = fresh(row)
        self.live.sums = dict(fold.sums)
        self.gaps = fold.seq  # up to here rows may be missing
        self.entries = fold.entries
        self.hash = (birth_of(own, secret, row.number) + fold.hash) % MODULUS
        self.seq = self.labels = 0
        self.open: set[str] = set()
        self.sizes: dict[Account, tuple[float, float]] = {}  # sums of |g| and |eta g|
        saved = dict(snapshots_of(own, row.number)) if replay else {}
        self.states = {seq: (text, f"snapshot at {seq}") for seq, text in saved.items()}
        if replay and fold.seq:
            oldest = min(saved, default=0)
            if oldest < fold.seq:
                raise StoreDamaged("no snapshot holds what retention took out of the journal")
            self.live.layer, self.live.begun = silenced(from_json(saved[oldest])), oldest

    def take(self, page: list[Entry], found: Audited) -> None:
        """Add rows."""
        self.hash = (self.hash + hashed(self._secret, self.row.number, page)) % MODULUS
        self.entries += len(page)
        found.read += len(page)
        for entry in page:
            if entry.seq > max(self.seq, self.gaps) + 1:
                found.fault(
                    f"entries {max(self.seq, self.gaps) + 1} to {entry.seq - 1} are missing"
                )
            self.seq = entry.seq
            try:
                self._enter(entry, found)
                if entry.seq in self.states:
                    self.compare(*self.states[entry.seq], found)
            except GradeqError as error:
                found.fault(f"entry {entry.seq}: {error}")

    def _enter(self, entry: Entry, found: Audited) -> None:
        if entry.kind == CONTROL:
            self._opened(plain_in(entry.body))
        elif entry.kind == TICKET:
            number = ticket_in(entry.body).number
            if entry.seq > self.carried and not self.live.signed:  # signed ones know an older state
                if number <= self.served:
                    found.fault(f"entry {entry.seq}: its ticket does not know of those before it")
                self.served = number
            if entry.id in self.open:
                found.fault(f"entry {entry.seq}: a second ticket with the id {entry.id[:80]}")
            self.open.add(entry.id)
        else:
            self._labelled(entry, found)
        if self.replay:
            self.live.replay(entry)

    def _opened(self, body: Any) -> None:
        """The balance that an imported layer began with."""
        self.live.open_balance(body)
        if body["do"] == IMPORT:
            self.carried = int(body["until"])
            for account, own in self.live.sums.items():
                self.sizes[account] = abs(rounded(own.gradient)), abs(rounded(own.moved))

    carried = 0  # entries up to this number are in that balance
    served = 0  # the number of the last ticket

    def _labelled(self, entry: Entry, found: Audited) -> None:
        posting = posting_in(entry.body)
        if entry.kind == POSTING:
            self.labels += 1
            if entry.id not in self.open:
                found.fault(f"entry {entry.seq}: a label without a ticket, id {entry.id[:80]}")
            self.open.discard(entry.id)
        if entry.seq > self.carried and self.live.enter(posting):
            for account, own in amounts(posting):
                g, moved = self.sizes.get(account, (0.0, 0.0))
                size = abs(rounded(own.gradient)), abs(rounded(own.moved))
                self.sizes[account] = g + size[0], moved + size[1]

    def compare(self, text: str, what: str, found: Audited) -> None:
        """See that the journal, done again, gives a saved state to the last bit.

        What the version that saved it did not keep is not compared.
        """
        from_json(text)  # raises if it is damaged
        saved, replayed = json.loads(text), json.loads(self.live.layer.to_json())
        if not all(
            _contains(replayed[part], saved[part]) for part in ("kind", "settings", "state")
        ):
            found.fault(f"the {what} is not what the journal gives when it is done again")

    def compare_accounts(self, found: Audited) -> None:
        """See that the library's own sums of floats are these, rounding apart; and that its certificate holds."""
        layer: Any = self.live.layer
        if layer.equilibrium().balance == "broken":
            found.fault(
                "the identity is broken: the parameters did not move by the sums of the labels"
            )
        if self.gaps:  # what the rounding of the rows that were taken out may be is not known
            return
        sums, rule = layer._state.sums, layer._rule
        alone = isinstance(rule, Ensemble) and rule.final is None
        for account, own in self.live.sums.items():
            at = _place(layer, account)
            # Weights of an ensemble do not sum up errors: without a final tracker nothing has moved by them.
            moved = 0.0 if alone else rounded(own.moved)
            told, exact = (sums[at + GRADIENT], sums[at + MOVED]), (rounded(own.gradient), moved)
            terms = zip(told, exact, self.sizes.get(account, (0.0, 0.0)), strict=True)
            off = 2.0 * ROUNDED * (self.entries + 1)
            if sums[at + ROWS] != own.rows or any(abs(a - b) > off * c for a, b, c in terms):
                found.fault(f"the account of {account[0]!r} is not the sum of its labels")


def _contains(value: Any, part: Any) -> bool:
    """Whether two values of JSON are equal, apart from names that only the first has."""
    if isinstance(value, dict) and isinstance(part, dict):
        return all(name in value and _contains(value[name], part[name]) for name in part)
    return bool(value == part)


def imported_until(own: Connection, number: int) -> int:
    """Entries up to this number were in the state that a layer began with; 0 if it began with none."""
    for entry in page_of(own, number, 0, 1):
        body = plain_in(entry.body) if entry.kind == CONTROL else {}
        return int(body["until"]) if body.get("do") == IMPORT else 0
    return 0


def _place(layer: Any, account: Account) -> int:
    """Where the sums of a parameter at a level begin in the state of a layer."""
    name, level = account
    key, found, own = name.rpartition("\x1f")
    place = layer._names.place(Row((own,), (1.0,), key if found else None))
    return int(place.params[0]) * int(layer._rule.stride) + level * COLUMNS


def unequal(one: dict[Account, Sum], other: dict[Account, Sum]) -> list[str]:
    """The names of the sums that differ."""
    nothing = Sum()
    return [
        name
        for name, level in one.keys() | other.keys()
        if one.get((name, level), nothing) != other.get((name, level), nothing)
    ]
