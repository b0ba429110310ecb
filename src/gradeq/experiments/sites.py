"""Many sites and one ledger, simulated: messages that are late, lost, doubled and sent again.

At every tick each site serves one row from the last state that reached it (``preview``), sees the label, and sends
both to the ledger, which posts them as they come (``adopt``) and sends its state back. A message says which site and
which of its rows it is of, so one that comes again changes nothing; it is sent again until the ledger's answer comes.
The sites also add up, exactly, what they served: the audit compares that with what the ledger has posted.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gradeq.errors import Diverging
from gradeq.experiments.averages import Floats
from gradeq.layers.debiaser import Debiaser
from gradeq.ledger.exact import exact, rounded
from gradeq.ledger.values import Ticket

FAR = 8.0  # no label is farther from its prediction
HIGH = 4.0  # labels above a prediction by more than this are those of long messages


class Network(NamedTuple):
    """How messages travel: ``delay`` ticks each way, up to ``jitter`` more.

    ``lost`` and ``twice``: the share that never comes, or comes again; ``long_only``: only long messages, those of
    high labels, are lost. ``again``: ticks until a message without an answer is sent again, 0: never.
    ``numbered``: the ledger knows a message that it has had.
    """

    delay: int = 0
    jitter: int = 0
    lost: float = 0.0
    twice: float = 0.0
    long_only: bool = False
    again: int = 0
    numbered: bool = True


class Message(NamedTuple):
    """What a site says of one of its rows: its number there, the ticket, and the label."""

    site: int
    number: int
    ticket: Ticket
    y: float


@dataclass
class Site:
    """One site: the state it serves from, what it has served, and what was not answered yet."""

    state: Debiaser
    version: int = -1
    served: int = 0
    gradient: int = 0
    unanswered: dict[int, tuple[int, Message]] = field(default_factory=dict)


@dataclass
class Heard:
    """Which messages of a site the ledger has had: all up to ``upto``, and ``beyond`` that some."""

    upto: int = 0
    beyond: set[int] = field(default_factory=set)

    def knows(self, number: int) -> bool:
        """Whether this one has come before."""
        return number <= self.upto or number in self.beyond

    def note(self, number: int) -> None:
        """This one came."""
        self.beyond.add(number)
        while self.upto + 1 in self.beyond:
            self.upto += 1
            self.beyond.remove(self.upto)


class Told(NamedTuple):
    """What came of a run; ``bias`` and ``loss`` are over all rows that were served, counted at the sites.

    ``certified``, ``bound`` and the rest are the ledger's: the bias over what was posted, the largest lateness and
    the mean one in rows, the smallest step. ``missing``: rows served and not posted; ``gap``: what the sums of errors
    of sites and ledger differ by, exactly. ``diverged``: the rows posted when the ledger refused to go on, else 0.
    """

    rows: int
    bias_before: float
    bias: float
    loss_before: float
    loss: float
    certified: float
    bound: float | None
    latest: float
    late: float
    step: float
    theta: float
    missing: int
    gap: float
    diverged: int


class Simulation:
    """Sites, a ledger and messages between them; ``run`` feeds rows until there are none."""

    def __init__(
        self, sites: int, network: Network, eta: float, late_cap: Any = "auto", seed: int = 0
    ) -> None:
        self.ledger = Debiaser(eta, late_cap=late_cap)
        self.network, self.rng = network, np.random.default_rng(seed)
        self.sites = [Site(self.ledger.copy()) for _ in range(sites)]
        self.heard = [Heard() for _ in range(sites)]
        self.up: dict[int, list[Message]] = defaultdict(list)
        self.down: dict[int, list[tuple[int, int, Debiaser]]] = defaultdict(list)
        self.answers: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.gradient, self.tick, self.diverged = 0, 0, 0
        self.errors: list[float] = []

    def arrivals(self, long: bool = False) -> list[int]:
        """The ticks at which a message that is sent now arrives: none, one, or two."""
        own = self.network
        if self.rng.random() < own.lost and (long or not own.long_only):
            return []
        copies = 2 if self.rng.random() < own.twice else 1
        return [
            self.tick + own.delay + int(self.rng.integers(own.jitter + 1)) for _ in range(copies)
        ]

    def send(self, message: Message) -> None:
        """A message to the ledger; an answer is waited for."""
        site = self.sites[message.site]
        if self.network.again:
            site.unanswered[message.number] = (self.tick + self.network.again, message)
        for at in self.arrivals(message.y - message.ticket.base > HIGH):
            self.up[at + 1].append(message)  # the ledger has posted what came at this tick

    def post(self) -> None:
        """The ledger posts what has come, answers, and sends its state to all."""
        for message in self.up.pop(self.tick, ()):
            heard = self.heard[message.site]
            if not (self.network.numbered and heard.knows(message.number)):
                posting = self.ledger.adopt(message.ticket, message.y)
                self.gradient += exact(posting.errors[0])
                heard.note(message.number)
            if self.network.again:
                for at in self.arrivals():
                    self.answers[at].append((message.site, message.number))
        state = self.ledger.copy()
        for k in range(len(self.sites)):
            for at in self.arrivals():
                self.down[at].append((k, self.tick, state))

    def receive(self) -> None:
        """Sites take up states that are newer than theirs, and answers."""
        for k, version, state in self.down.pop(self.tick, ()):
            if version > self.sites[k].version:
                self.sites[k].state, self.sites[k].version = state, version
        for k, number in self.answers.pop(self.tick, ()):
            self.sites[k].unanswered.pop(number, None)

    def serve(self, k: int, f: float, y: float) -> None:
        """One row at a site."""
        site = self.sites[k]
        ticket = site.state.preview(f)
        site.served += 1
        site.gradient += exact(ticket.served - y)
        self.errors.append(ticket.served - y)
        self.send(Message(k, site.served, ticket, y))

    def remind(self) -> None:
        """Sites send again what was not answered in time."""
        for site in self.sites:
            for due, message in list(site.unanswered.values()):
                if due <= self.tick:
                    self.send(message)

    def turn(self, rows: Any) -> None:
        """One tick: messages come, rows are served, reminders go out."""
        self.post()
        self.receive()
        for k, (f, y) in enumerate(rows):
            self.serve(k, f, y)
        self.remind()
        self.tick += 1

    def run(self, base: Floats, labels: Floats) -> Told:
        """All rows, one for each site at every tick, and then ticks until every message has come."""
        count = len(self.sites)
        try:
            for first in range(0, len(base) - count + 1, count):
                cut = slice(first, first + count)
                self.turn(list(zip(base[cut].tolist(), labels[cut].tolist(), strict=True)))
            while self.up or any(site.unanswered for site in self.sites):
                self.turn(())
        except Diverging:
            self.diverged = int(self.ledger.in_flight["labelled"])
        return self.told(base, labels)

    def told(self, base: Floats, labels: Floats) -> Told:
        """What came of it."""
        found, rows = self.ledger.equilibrium(), len(self.errors)
        errors, raw = np.array(self.errors), (base - labels)[:rows]
        flight, served = self.ledger.in_flight, sum(site.gradient for site in self.sites)
        return Told(
            rows=rows,
            bias_before=float(raw.mean()),
            bias=float(errors.mean()),
            loss_before=float((raw**2).mean()),
            loss=float((errors**2).mean()),
            certified=float(found.coordinates[0].average_gradient),
            bound=found.bound,
            latest=float(flight["longest_delay"] + 1),
            late=float(flight["mean_delay"]),
            step=float(self.ledger.steps["smallest"]),
            theta=float(self.ledger.theta["(all)"]),
            missing=rows - int(flight["labelled"]),
            gap=rounded(served - self.gradient),
            diverged=self.diverged,
        )


def stream(rows: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Predictions that are too low, by more or less as time goes by, and their labels."""
    rng = np.random.default_rng(seed)
    base = 100.0 + 10.0 * rng.normal(size=rows)
    drift = 3.0 + np.sin(2.0 * np.pi * np.arange(rows) / 2000.0)
    return base, base + np.clip(drift + 2.0 * rng.normal(size=rows), -FAR, FAR)
