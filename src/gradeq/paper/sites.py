"""One layer at many sites: late, lost and repeated messages, simulated."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from gradeq.errors import Diverging
from gradeq.layers.debiaser import Debiaser
from gradeq.layers.options import LateCap
from gradeq.ledger.exact import exact, rounded
from gradeq.ledger.values import Ticket
from gradeq.paper import plot
from gradeq.paper.experiment import Number, Result, Source
from gradeq.paper.plot import Floats

LARGEST_ERROR = 8.0  # of a prediction
HIGH = 4.0  # a label that exceeds its prediction by more makes a long message


class Network(NamedTuple):
    """How messages travel: ``delay`` ticks each way, up to ``jitter`` more.

    ``lost`` and ``twice``: the shares that never arrive, or arrive twice; ``long_only``: only long messages, those
    with high labels, are lost. ``again``: ticks until an unanswered message is sent again (0: never). ``numbered``:
    the ledger recognises repeated messages.
    """

    delay: int = 0
    jitter: int = 0
    lost: float = 0.0
    twice: float = 0.0
    long_only: bool = False
    again: int = 0
    numbered: bool = True


class Message(NamedTuple):
    """One row of a site: its number, ticket, prediction and label."""

    site: int
    number: int
    ticket: Ticket
    f: float
    y: float


@dataclass
class Site:
    """One site: its state, its counts, and its unanswered messages."""

    state: Debiaser
    version: int = -1
    served: int = 0
    gradient: int = 0
    unanswered: dict[int, tuple[int, Message]] = field(default_factory=dict)


class SiteOutcome(NamedTuple):
    """The outcome of a run; ``bias`` and ``loss`` are over all served rows, summed at the sites.

    ``certified``, ``bound`` and ``latest`` come from the ledger: the bias over posted rows, its bound, the largest
    lateness in rows. ``missing``: served rows that were not posted; ``gap``: the exact difference between the sums of
    errors of the sites and of the ledger.
    """

    rows: int
    bias_before: float
    bias: float
    loss_before: float
    loss: float
    certified: float
    bound: float | None
    latest: float
    theta: float
    missing: int
    gap: float


class Simulation:
    """Sites, a ledger, and the messages between them."""

    def __init__(self, sites: int, network: Network, eta: float, late_cap: LateCap = "auto", seed: int = 0) -> None:
        self.ledger = Debiaser(eta, late_cap=late_cap)
        self.network, self.rng = network, np.random.default_rng(seed)
        self.sites = [Site(self.ledger.copy()) for _ in range(sites)]
        self.received: set[tuple[int, int]] = set()  # messages by site and number
        self.up: dict[int, list[Message]] = defaultdict(list)
        self.down: dict[int, list[tuple[int, int, Debiaser]]] = defaultdict(list)
        self.answers: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.gradient, self.tick = 0, 0
        self.errors: list[float] = []

    def _arrivals(self, long: bool = False) -> list[int]:
        """The ticks at which a message sent now arrives: none, one or two."""
        network = self.network
        if self.rng.random() < network.lost and (long or not network.long_only):
            return []
        copies = 2 if self.rng.random() < network.twice else 1
        least, jitter = self.tick + network.delay, network.jitter + 1
        return [least + int(self.rng.integers(jitter)) for _ in range(copies)]

    def _send(self, message: Message) -> None:
        site = self.sites[message.site]
        if self.network.again:
            site.unanswered[message.number] = (self.tick + self.network.again, message)
        for at in self._arrivals(message.y - message.f > HIGH):
            self.up[at + 1].append(message)  # the ledger has already posted this tick's messages

    def _post(self) -> None:
        """The ledger posts the messages of this tick, answers them, and sends its state to all sites."""
        for message in self.up.pop(self.tick, ()):
            name = (message.site, message.number)
            if not (self.network.numbered and name in self.received):
                posting = self.ledger.adopt(message.ticket, message.y)
                self.gradient += exact(posting.errors[0])
                self.received.add(name)
            if self.network.again:
                for at in self._arrivals():
                    self.answers[at].append(name)
        state = self.ledger.copy()
        for k in range(len(self.sites)):
            for at in self._arrivals():
                self.down[at].append((k, self.tick, state))

    def _serve(self, k: int, f: float, y: float) -> None:
        site = self.sites[k]
        ticket = site.state.preview(f)
        site.served += 1
        error = site.state.value_of(ticket) - y
        site.gradient += exact(error)
        self.errors.append(error)
        self._send(Message(k, site.served, ticket, f, y))

    def _tick(self, rows: Sequence[tuple[float, float]]) -> None:
        """Messages arrive, sites take newer states, rows are served, unanswered messages are sent again."""
        self._post()
        for k, version, state in self.down.pop(self.tick, ()):
            if version > self.sites[k].version:
                self.sites[k].state, self.sites[k].version = state, version
        for k, number in self.answers.pop(self.tick, ()):
            self.sites[k].unanswered.pop(number, None)
        for k, (f, y) in enumerate(rows):
            self._serve(k, f, y)
        for site in self.sites:
            for due, message in list(site.unanswered.values()):
                if due <= self.tick:
                    self._send(message)
        self.tick += 1

    def run(self, base: Floats, labels: Floats) -> SiteOutcome:
        """Serve all rows, one per site and tick, then tick until every message has arrived."""
        count = len(self.sites)
        with suppress(Diverging):  # the ledger refuses to go on
            for first in range(0, len(base) - count + 1, count):
                cut = slice(first, first + count)
                self._tick(list(zip(base[cut].tolist(), labels[cut].tolist(), strict=True)))
            while self.up or any(site.unanswered for site in self.sites):
                self._tick(())
        certificate, traffic, rows = self.ledger.equilibrium(), self.ledger.traffic, len(self.errors)
        errors, raw = np.array(self.errors), (base - labels)[:rows]
        return SiteOutcome(
            rows=rows,
            bias_before=float(raw.mean()),
            bias=float(errors.mean()),
            loss_before=float((raw**2).mean()),
            loss=float((errors**2).mean()),
            certified=float(certificate.coordinates[0].average_gradient),
            bound=certificate.bound,
            latest=float(traffic["longest_delay"] + 1),
            theta=float(self.ledger.theta["(all)"]),
            missing=rows - int(traffic["labelled"]),
            gap=rounded(sum(site.gradient for site in self.sites) - self.gradient),
        )


def stream(rows: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Predictions that are too low by a varying amount, and their labels."""
    rng = np.random.default_rng(seed)
    base = 100.0 + 10.0 * rng.normal(size=rows)
    drift = 3.0 + np.sin(2.0 * np.pi * np.arange(rows) / 2000.0)
    return base, base + np.clip(drift + 2.0 * rng.normal(size=rows), -LARGEST_ERROR, LARGEST_ERROR)


ROWS = 4800
ETA = 0.05
SITES = (4, 16, 64)
DELAYS = (0, 2, 8, 32)
SOME, DELAY = 8, 4  # sites and ticks of delay, where something else varies
MASSES = (0.5, 1.0, 1.5, 2.0, 3.0)
LOST = (0.0, 0.1, 0.2, 0.4)
ROUGH = Network(DELAY, jitter=4, lost=0.2, twice=0.2, again=20)


def many_sites(source: Source) -> Result:
    base, labels = stream(ROWS)

    def run(sites: int, network: Network, eta: float = ETA, cap: LateCap = "auto") -> SiteOutcome:
        return Simulation(sites, network, eta, late_cap=cap).run(base, labels)

    grid = {(sites, delay): run(sites, Network(delay)) for sites in SITES for delay in DELAYS}
    rough, orderly = run(SOME, ROUGH), run(SOME, Network(DELAY))
    # Without the cap: eta times the largest lateness is each of MASSES.
    free = {mass: run(SOME, Network(DELAY), mass / orderly.latest, None) for mass in MASSES}
    losing = {lost: run(SOME, Network(DELAY, lost=lost, long_only=True)) for lost in LOST}
    doubled = run(SOME, Network(DELAY, twice=0.2, numbered=False))
    numbers = [Number("bias before", orderly.bias_before), Number("mean squared error before", orderly.loss_before)]
    for (sites, delay), outcome in grid.items():
        where = f"{sites} sites, delay {delay}"
        numbers += [
            Number(f"bias, {where}", outcome.bias, None, outcome.certified, 1e-9),
            Number(f"bound, {where}", math.inf if outcome.bound is None else outcome.bound),
            Number(f"mean squared error, {where}", outcome.loss),
            Number(f"largest lateness, {where}", outcome.latest),
        ]
    numbers += [
        Number("rows missing, sent again until answered", float(rough.missing), None, 0.0, 0.0),
        Number("audit gap, sent again until answered", rough.gap, None, 0.0, 0.0),
        Number("rows missing, 0.2 lost", float(losing[0.2].missing)),
        Number("audit gap, 0.2 lost", losing[0.2].gap),
        Number("bias, 0.2 lost", losing[0.2].bias),
        Number("bias as certified, 0.2 lost", losing[0.2].certified),
        Number("rows missing, not numbered", float(doubled.missing)),
        Number("audit gap, not numbered", doubled.gap),
        *(Number(f"mean squared error, η P = {mass:g}", done.loss) for mass, done in free.items()),
    ]
    text = (
        f"{SITES[0]} to {SITES[-1]} sites, up to {DELAYS[-1]} ticks each way. The bias is "
        f"{abs(grid[SITES[0], 0].bias):.3f} to {abs(grid[SITES[-1], DELAYS[-1]].bias):.2f}, without a layer "
        f"{abs(orderly.bias_before):.2f}: it grows with the messages in flight, sites times delay. If lost and "
        f"doubled messages are sent again until answered, {rough.missing} rows are missing and the audit gap is "
        f"{rough.gap:g}. Long messages that stay lost leave a bias of {losing[0.4].bias:+.2f} where the ledger "
        f"certifies {losing[0.4].certified:+.2f}; the audit finds {losing[0.4].missing:,} rows missing. Without the "
        f"cap, a constant step is safe while η P < 1, and θ grows without limit from about π / 2 on."
    )
    return Result(text, tuple(numbers), {"": sheet(grid, free, losing)}, "invented, seeded")


def sheet(
    grid: dict[tuple[int, int], SiteOutcome], free: dict[float, SiteOutcome], losing: dict[float, SiteOutcome]
) -> plot.Sheet:
    ticks = np.array(DELAYS) + 1.0  # a message takes a tick at least
    before = next(iter(grid.values()))
    raw = plot.Level(before.loss_before, "no layer")

    def by_delay(title: str, unit: str, value: str, *levels: plot.Level, scale: str = "log") -> plot.Panel:
        each = [[getattr(grid[sites, delay], value) for delay in DELAYS] for sites in SITES]
        lines = [
            plot.Line(ticks, np.abs(np.array(values, dtype=float)), f"{sites} sites", look)
            for sites, values, look in zip(SITES, each, plot.SERIES, strict=False)
        ]
        return plot.Panel(title, "ticks each way", unit, [*lines, *levels], x_scale="log", y_scale=scale)

    def by_share(value: str, label: str, look: plot.Look) -> plot.Line:
        values = [abs(float(getattr(outcome, value))) for outcome in losing.values()]
        return plot.Line(np.array(list(losing)), np.array(values), label, replace(look, marker="o"))

    losses = np.array([outcome.loss for outcome in free.values()])
    steps = plot.Line(np.array(list(free)), losses, f"{SOME} sites", replace(plot.AFTER, marker="o"))
    lost = "share of long messages lost"
    biases = [by_share("bias", "served", plot.AFTER), by_share("certified", "as the ledger has it", plot.SECOND)]
    rows = [by_share("missing", "missing", plot.BEFORE)]
    vacuous = plot.Level(LARGEST_ERROR, "largest error: vacuous above")
    mass, squares = "η P: step times largest lateness", "mean squared error"
    panels = [
        by_delay("Bias", "|bias|", "bias", plot.Level(abs(before.bias_before), "no layer")),
        by_delay("Proven bound of the bias", "bound", "bound", vacuous),
        by_delay("Mean squared error", "loss", "loss", raw, scale="linear"),
        by_delay("Staleness", "largest lateness, rows", "latest"),
        plot.Panel("Constant step, no cap", mass, squares, [steps, raw], y_scale="log"),
        plot.Panel("Lost for good: bias", lost, "|bias|", biases, y_limits=(0.0, None)),
        plot.Panel("Lost for good: the audit", lost, "rows missing", rows, legend="", y_limits=(0.0, None)),
    ]
    return plot.Sheet(panels, (2, 4), (17.0, 7.0))
