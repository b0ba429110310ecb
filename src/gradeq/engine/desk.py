"""The desk: tickets between serving and labelling, what is in flight, and the order of posting.

A ticket holds all that a late label needs (row, served value, step), so labels may come in any order, late, or
never. The desk counts open tickets by cell (a group, or the whole layer), because the safe step shrinks with them.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from gradeq.errors import BadInput, Diverging, ExpiredTicket, LabelConflict, UnknownTicket


class Head(Protocol):
    """What the desk asks of a head."""

    def serve(
        self, unit: int, index: Sequence[int], value: Sequence[float], f: Any, t: int, crowd: float
    ) -> tuple[Any, Any]:
        """The served value and the memo for its label."""
        ...

    def post(
        self,
        unit: int,
        index: Sequence[int],
        value: Sequence[float],
        f: Any,
        memo: Any,
        w: float,
        y: float,
    ) -> None:
        """Learn from a label."""
        ...

    def amend(
        self,
        unit: int,
        index: Sequence[int],
        value: Sequence[float],
        f: Any,
        memo: Any,
        w: float,
        old: float,
        new: float,
    ) -> None:
        """Replace a label."""
        ...

    def grow(self, count: int) -> None:
        """Room for ``count`` parameters."""
        ...

    def run(self, batch: Any) -> tuple[Any, list[Any]]:
        """Serve and learn from a whole batch."""
        ...

    def state(self) -> dict[str, Any]:
        """All that learning has changed."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        ...


class Row(NamedTuple):
    """Where one prediction belongs: its parameters, its counters, its clock."""

    unit: int
    params: Sequence[int]
    value: Sequence[float]
    cells: Sequence[int]
    clock: int
    norm: float  # the squared norm of a row with features, 1 without


class Ticket(NamedTuple):
    """A served prediction that waits for its label."""

    number: int
    id: str | int | None
    row: Row
    base: Any
    memo: Any
    weight: float
    time: float | None


class Desk:
    """Open tickets, closed ids, counters of what is in flight, clocks."""

    __slots__ = (
        "by_id", "capped", "clocks", "closed", "delay_most", "delay_sum", "frozen", "gone", "head", "heaviest",
        "in_flight", "lapsed", "largest", "leashed", "log", "now", "open_now", "peaks", "posted", "queue",
        "reach", "remember", "served", "sized", "skipped", "tops", "ttl", "waiting",
    )  # fmt: skip

    def __init__(
        self,
        head: Head,
        *,
        capped: bool = True,
        in_flight: int = 1,
        ttl: float | None = None,
        remember: int = 10_000,
    ) -> None:
        if in_flight < 1 or int(in_flight) != in_flight:
            raise BadInput(
                f"in_flight={in_flight}: give the number of labels on their way, 1 or more"
            )
        if ttl is not None and not ttl > 0:
            raise BadInput(f"ttl={ttl}: a ticket's time to live must be positive")
        self.head, self.capped, self.in_flight = head, capped, in_flight
        self.ttl, self.remember = ttl, remember
        self.clocks, self.open_now, self.peaks = array("q"), array("q"), array("q")
        self.largest = 0.0  # the largest |z| of a row so far
        self.tops = array(
            "d", [0.0]
        )  # the largest squared norm of a row so far: of all rows, or of each unit's
        self.queue: deque[Ticket] = deque()
        self.by_id: dict[str | int, Ticket] = {}
        self.gone: set[int] = set()  # numbers of tickets in the queue that are closed already
        self.closed: OrderedDict[str | int, tuple[float, Ticket]] = OrderedDict()
        self.lapsed: OrderedDict[str | int, None] = OrderedDict()
        # Labels that are known but not yet due: ticket, label, when it is due.
        self.waiting: list[tuple[Ticket, float, float]] = []
        self.served = self.posted = self.delay_sum = self.delay_most = 0
        self.frozen = False
        self.sized = False  # whether steps shrink with the largest squared norm of a row (auto with features)
        self.leashed = False  # whether leaving a range counts as diverging (squared error)
        self.reach = 0.0  # the leash as last measured; it only grows until peaks are forgotten
        self.skipped = 0  # labels that came while learning was frozen
        self.heaviest = 1.0  # the largest weight so far
        self.now: float | None = None
        self.log: list[tuple[str, int]] = []

    def grow(self, clocks: int, cells: int) -> None:
        """Room for that many clocks and counters."""
        self.clocks.extend(array("q", [0]) * (clocks - len(self.clocks)))
        more = cells - len(self.peaks)
        self.open_now.extend(array("q", [0]) * more)
        self.peaks.extend(array("q", [self.in_flight]) * more)

    @property
    def norm(self) -> float:
        """The largest squared norm of a row so far."""
        return max(self.tops)

    @property
    def open_count(self) -> int:
        """How many tickets wait for a label."""
        return len(self.queue) - len(self.gone) + len(self.waiting)

    def open(
        self,
        row: Row,
        f: Any,
        w: float = 1.0,
        id: str | int | None = None,
        time: float | None = None,
    ) -> Any:
        """Serve one prediction and keep its ticket."""
        if id is not None and (id in self.by_id or id in self.closed or id in self.lapsed):
            raise BadInput(f"id {id!r} was already served; every prediction needs an id of its own")
        if time is not None:
            self.expire(time)
        unit, params, value, cells, clock, norm = row
        peaks, open_now = self.peaks, self.open_now
        t = self.clocks[clock] + 1
        place = unit if len(self.tops) > 1 else 0
        if norm < self.tops[place]:
            norm = self.tops[place]
        total = most = 0
        for j in cells:
            peak = peaks[j]
            if w > 0.0 and open_now[j] >= peak:
                peak = open_now[j] + 1
            total += peak
            if peak > most:
                most = peak
        crowd = total * norm if self.capped and most >= 2 else 0.0
        if self.sized:
            self.head.size = max(1.0, norm)  # type: ignore[attr-defined]
        served, memo = self.head.serve(unit, params, value, f, t, crowd)
        self.clocks[clock] = t
        self.tops[place] = norm
        if w > 0.0:
            for j in cells:
                count = open_now[j] = open_now[j] + 1
                if count > peaks[j]:
                    peaks[j] = count
        if w > self.heaviest:
            self.heaviest = w
        self.largest = max(self.largest, *map(abs, value))
        self.served += 1
        ticket = Ticket(self.served, id, row, f, memo, w, time)
        self.queue.append(ticket)
        if id is not None:
            self.by_id[id] = ticket
        return served

    def find(self, id: str | int | None) -> Ticket:
        """The open ticket of this id, or the oldest open one."""
        if id is not None:
            ticket = self.by_id.get(id)
            if ticket is not None:
                return ticket
            if id in self.lapsed:
                raise ExpiredTicket(
                    f"id {id!r} has expired (ttl {self.ttl}); its label is not used"
                )
            raise UnknownTicket(f"id {id!r} was never served here; predict with this id first")
        queue = self.queue
        while queue and queue[0].number in self.gone:
            self.gone.discard(queue.popleft().number)
        if not queue:
            raise UnknownTicket("no prediction waits for a label; call predict first")
        return queue[0]

    def post(self, y: float, id: str | int | None = None) -> str:
        """Learn from a label: ``applied``, or ``duplicate`` when this very label was posted before."""
        if id is not None and id in self.closed:
            known, _ = self.closed[id]
            if known == y:
                return "duplicate"
            raise LabelConflict(
                f"id {id!r} already has the label {known!r}, not {y!r}; use correct(id, label) to change it"
            )
        return self.settle(self.find(id), y)

    def settle(self, ticket: Ticket, y: float) -> str:
        """Learn from the label of an open ticket and close it."""
        if self.frozen:
            self.skipped += 1
        elif ticket.weight > 0.0:
            self.learn(ticket, y)
        self.close(ticket)
        self.posted += 1
        delay = self.served - ticket.number
        self.delay_sum += delay
        if delay > self.delay_most:
            self.delay_most = delay
        if ticket.id is not None:
            self.closed[ticket.id] = (y, ticket)
            if len(self.closed) > self.remember:
                self.closed.popitem(last=False)
        return "applied"

    def learn(self, ticket: Ticket, y: float) -> None:
        """Have the head learn from a label; a leashed one only as far as the most tickets ever open allow."""
        (unit, params, value, _, _, _), base = ticket.row, ticket.base
        head: Any = self.head
        if self.leashed:
            head.leash = self.reach
            try:
                head.post(unit, params, value, base, ticket.memo, ticket.weight, y)
                return
            except Diverging:  # nothing has changed; there may be a million peaks, so look only now
                head.leash = self.reach = 10.0 * max(self.peaks) * self.heaviest
        head.post(unit, params, value, base, ticket.memo, ticket.weight, y)

    def correct(self, y: float, id: str | int) -> str:
        """Replace the label of a closed ticket by another; the difference of the gradients is posted."""
        if id not in self.closed:
            raise UnknownTicket(
                f"id {id!r} has no posted label to correct (the last {self.remember} are kept)"
            )
        known, ticket = self.closed[id]
        if known == y:
            return "duplicate"
        row = ticket.row
        if ticket.weight > 0.0:
            self.head.amend(
                row.unit, row.params, row.value, ticket.base, ticket.memo, ticket.weight, known, y
            )
        self.closed[id] = (y, ticket)
        return "corrected"

    def close(self, ticket: Ticket) -> None:
        """Take a ticket off the desk."""
        if ticket.id is not None:
            del self.by_id[ticket.id]
        if self.queue and self.queue[0].number == ticket.number:
            self.queue.popleft()
        else:
            self.gone.add(ticket.number)
            # One ticket that never closes must not keep the rest.
            if len(self.gone) > 64 + len(self.queue) // 2:
                self.queue = deque(t for t in self.queue if t.number not in self.gone)
                self.gone.clear()
        if ticket.weight > 0.0:
            for j in ticket.row.cells:
                self.open_now[j] -= 1

    def expire(self, now: float) -> list[Ticket]:
        """Drop the tickets that are older than the time to live; a label for them is refused from now on."""
        if self.now is None or now > self.now:
            self.now = now
        dropped: list[Ticket] = []
        if self.ttl is None:
            return dropped
        while self.queue:
            ticket = self.queue[0]
            if ticket.number in self.gone:
                self.gone.discard(self.queue.popleft().number)
                continue
            if ticket.time is None or now - ticket.time <= self.ttl:
                break
            self.close(ticket)
            dropped.append(ticket)
            if ticket.id is not None:
                self.lapsed[ticket.id] = None
                if len(self.lapsed) > self.remember:
                    self.lapsed.popitem(last=False)
        return dropped

    def reset_in_flight(self) -> None:
        """Forget the past peaks: the most tickets ever open is counted anew from now; this is logged."""
        self.log.append(("reset_in_flight", self.served))
        self.reach = 0.0
        for j in range(len(self.peaks)):
            self.peaks[j] = max(self.in_flight, self.open_now[j])

    def state(self) -> dict[str, Any]:
        """All that has changed since the start, ready for the codec; the head's state included."""
        open_tickets = [ticket for ticket in self.queue if ticket.number not in self.gone]
        return {
            "clocks": self.clocks,
            "open_now": self.open_now,
            "peaks": self.peaks,
            "tops": self.tops,
            "largest": self.largest,
            "heaviest": self.heaviest,
            "counts": [self.served, self.posted, self.delay_sum, self.delay_most, self.skipped],
            "frozen": self.frozen,
            "now": self.now,
            "log": self.log,
            "open": open_tickets,
            "closed": [[y, ticket] for y, ticket in self.closed.values()],
            "lapsed": list(self.lapsed),
            "waiting": self.waiting,
            "head": self.head.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        self.clocks, self.open_now, self.peaks = state["clocks"], state["open_now"], state["peaks"]
        self.tops, self.heaviest, self.reach = state["tops"], float(state["heaviest"]), 0.0
        self.largest = float(state["largest"])
        self.served, self.posted, self.delay_sum, self.delay_most, self.skipped = state["counts"]
        self.frozen, self.now = bool(state["frozen"]), state["now"]
        self.log = [(what, at) for what, at in state["log"]]
        self.queue = deque(as_ticket(entry) for entry in state["open"])
        self.by_id = {ticket.id: ticket for ticket in self.queue if ticket.id is not None}
        self.gone = set()
        closed = [(y, as_ticket(entry)) for y, entry in state["closed"]]
        self.closed = OrderedDict(
            (ticket.id, (y, ticket)) for y, ticket in closed if ticket.id is not None
        )
        self.lapsed = OrderedDict.fromkeys(state["lapsed"])
        self.waiting = [(as_ticket(entry), y, at) for entry, y, at in state["waiting"]]
        self.head.restore(state["head"])


def as_ticket(entry: Sequence[Any]) -> Ticket:
    """A ticket from its saved form."""
    number, id, row, base, memo, weight, time = entry
    return Ticket(number, id, Row(*row), base, memo, weight, time)
