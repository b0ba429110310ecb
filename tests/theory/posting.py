"""A plain simulator of the posting rule, for players who know it."""

import itertools
import math
import random
from dataclasses import dataclass, field, replace

import numpy as np

from gradeq.numerics import log1pexp, sigmoid
from gradeq.theory import OwnSteps, Setting, clip_bound
from theory.games import Peaks

LEVELS = (0.1, 0.5, 0.8)
DIMENSION = {"scalar": 1, "disjoint": 3, "overlapping": 6, "features": 3, "elo": 4, "levels": 3}


@dataclass
class Plan:
    """What is played: a layer, its rule, and a player."""

    task: str
    shape: str
    eta: float = 0.3
    cap: float | None = 0.3
    epoch: float = 1.0
    growth: float = 0.0
    rounds: int = 80
    hold: int = 5
    release: str = "pump"
    order: str = "newest"
    labels: str = "cycle"
    rows: str = "random"
    weights: str = "unit"
    lost: float = 0.0
    low: float = -1.0
    high: float = 1.0
    level: float = 0.5
    clip: float = 0.05
    size: float = 1.0


@dataclass(eq=False)
class Open:
    """A ticket: its row, what was served, what the rule must know of it."""

    z: dict[int, float]
    margin: float
    served: tuple[float, ...]
    base: float
    weight: float
    held: bool
    cells: tuple[int, ...]
    opened: tuple[int, ...]


@dataclass
class Books:
    """The facts of one parameter or layer, as a Setting asks for them, and the path to compare with it."""

    n: int = 0
    weight_sum: float = 0.0
    weight_max: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    odds: float = 0.0
    squares: float = 0.0
    lateness: int = 1
    steps: list[float] = field(default_factory=list)
    errors: float = 0.0

    @property
    def own(self) -> tuple[float, ...]:
        """What ``OwnSteps`` asks for of one coordinate; weights of 1."""
        if not self.steps:
            return (0.0,) * 7
        ends = (1.0 / self.steps[0], 1.0 / self.steps[-1])
        variation = sum(abs(1 / b - 1 / a) for a, b in itertools.pairwise(self.steps))
        squares = sum(step * step for step in self.steps)
        return self.weight_sum, *ends, variation, sum(self.steps), squares, self.errors

    def note(self, ticket: Open, residual: float, step: float, lateness: int, error: float = 0.0) -> None:
        self.n += 1
        self.errors += ticket.weight * error * error
        self.weight_sum += ticket.weight
        self.weight_max = max(self.weight_max, ticket.weight)
        self.low, self.high = min(self.low, residual), max(self.high, residual)
        self.odds += ticket.weight * math.exp(abs(ticket.base))
        self.squares += ticket.weight * residual**2
        self.lateness = max(self.lateness, lateness)
        self.steps.append(step)

    def setting(self, plan: Plan, structure: str, size: float) -> Setting:
        steps = self.steps
        return Setting(
            task=plan.task,
            structure=structure,
            level=plan.level,
            levels=LEVELS if structure == "isotonic" else (),
            n=self.n,
            divisor=self.n,
            low=self.low,
            high=self.high,
            square_sum=self.squares if plan.task == "mean" else None,
            odds_sum=self.odds,
            clip=plan.clip,
            size=size,
            dimension=DIMENSION["elo"],
            eta=steps[0],
            eta_last=steps[-1],
            eta_max=max(steps),
            eta_min=min(steps),
            inverse_variation=sum(abs(1 / b - 1 / a) for a, b in itertools.pairwise(steps)),
            weight_max=self.weight_max,
            weight_sum=self.weight_sum,
            lateness=self.lateness,
            cap=plan.cap,
        )


class Layer:
    """The raw recursion: serve at theta, learn at posting with the step of the rule."""

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        self.plan, self.rng, d = plan, rng, DIMENSION[plan.shape]
        self.theta = [0.0] * d
        self.total = [0.0] * d
        self.path = [[0.0] for _ in range(d)]
        self.peaks = Peaks(d, plan.epoch, plan.growth)
        self.open: list[Open] = []
        self.layer = Books()
        self.groups = [Books() for _ in range(d)]
        self.cycle, self.widest = 0, 0.0
        self.losses: list[tuple[float, float]] = []  # served and raw, of each label

    def row(self) -> dict[int, float]:
        """The features of a row, sparse."""
        plan, rng = self.plan, self.rng
        if plan.shape == "disjoint":
            return {rng.choice((0, 0, 1, 2)): 1.0}
        if plan.shape == "overlapping":
            columns = int(plan.size)
            width = 6 // columns
            steady = plan.rows == "steady"
            picks = [c * width + (0 if steady else rng.randrange(width)) for c in range(columns)]
            return dict.fromkeys(picks[: rng.choice((columns, columns, 1))], 1.0)
        if plan.shape == "elo":
            pair = (0, 1) if plan.rows == "steady" and rng.random() < 0.8 else rng.sample(range(4), 2)
            return {pair[0]: -1.0, pair[1]: 1.0}
        if plan.shape == "features":
            length = math.sqrt(plan.size) * rng.choice((1.0, 1.0, 0.3, 0.03))
            z = [1.0, 0.0, 0.0] if plan.rows == "steady" else [rng.gauss(0, 1) for _ in range(3)]
            norm = math.hypot(*z)
            return {j: length * x / norm for j, x in enumerate(z)}
        return {0: 1.0}

    def serve(self) -> None:
        plan, rng = self.plan, self.rng
        z = self.row()
        margin = sum(x * self.theta[j] for j, x in z.items())
        base = 0.0
        if plan.task == "probability_logit":
            base = clip_bound(plan.clip) * rng.choice((-1.0, 1.0, rng.uniform(-1, 1)))
            if plan.labels == "cycle":
                base = -abs(base) if self.cycle % 2 == 0 else abs(base)
        served: tuple[float, ...] = ()
        if plan.shape == "levels":
            served = tuple(isotonic(self.theta))
        held = sum(ticket.held for ticket in self.open) < plan.hold
        if plan.release == "leaky":
            held = held and rng.random() < 0.5
        weight = 1.0
        if plan.weights == "wild":
            weight = rng.choice((1e-12, 0.1, 1.0, 2.5))
        if plan.weights == "flush" and not held:
            weight = rng.choice((1e-12, 1.0))
        layered = plan.shape in ("features", "levels", "scalar")
        cells = (0,) if layered else tuple(z)
        opened = self.peaks.serve(cells)
        self.open.append(Open(z, margin, served, base, weight, held, cells, opened))

    def due(self) -> list[Open]:
        """Which labels come now, in which order."""
        plan, rng = self.plan, self.rng
        held = [ticket for ticket in self.open if ticket.held]
        loose = [ticket for ticket in self.open if not ticket.held]
        if plan.release == "trickle":
            return [ticket for ticket in self.open if rng.random() < 1.0 / (1 + plan.hold)]
        if plan.release == "batch":
            found = list(self.open) if len(self.open) >= plan.hold else []
        elif len(held) >= plan.hold and loose:
            found = loose + self.ordered(held)
            self.cycle += 1
            return found
        else:
            return loose
        self.cycle += bool(found)
        return self.ordered(found)

    def ordered(self, tickets: list[Open]) -> list[Open]:
        if self.plan.order == "newest":
            return tickets[::-1]
        if self.plan.order == "random":
            return self.rng.sample(tickets, len(tickets))
        return tickets

    def label(self, ticket: Open) -> float:
        """What a label says, decided when it is posted."""
        plan, rng = self.plan, self.rng
        now = sum(x * self.theta[j] for j, x in ticket.z.items())
        up = {"cycle": self.cycle % 2 == 1, "outward": now >= 0.0, "against": ticket.margin < 0.0, "up": True}.get(
            plan.labels, rng.random() < 0.5
        )
        if plan.labels == "inside":
            return rng.uniform(plan.low, plan.high)
        return plan.high if up else plan.low

    def errors(self, ticket: Open, y: float) -> dict[int, float]:
        """The gradient of a ticket, without its weight."""
        task, m = self.plan.task, ticket.margin
        if self.plan.shape == "levels":
            return {k: (y <= q) - tau for k, (q, tau) in enumerate(zip(ticket.served, LEVELS, strict=True))}
        if task == "mean":
            e = m - y
        elif task == "quantile":
            e = (y <= m) - self.plan.level
        elif task == "probability_shift":
            e = 2.0 * sigmoid(m) - 1.0 - y
        else:
            e = sigmoid(ticket.base + m) - y
        return {j: e * x for j, x in ticket.z.items()}

    def loss(self, margin: float, y: float) -> float:
        if self.plan.task == "quantile":
            return max(self.plan.level * (y - margin), (self.plan.level - 1.0) * (y - margin))
        if self.plan.task == "elo":
            return log1pexp(margin) - y * margin
        return (margin - y) ** 2

    def post(self, ticket: Open) -> None:
        plan = self.plan
        self.open.remove(ticket)
        if self.rng.random() < plan.lost:
            return
        lateness = self.peaks.post(ticket.cells, ticket.opened)
        self.widest = max(self.widest, sum(x * x for x in ticket.z.values()))
        norm = self.widest if plan.shape == "features" else 1.0
        step = self.peaks.step(ticket.cells, plan.eta, plan.cap, ticket.weight, norm)
        y = self.label(ticket)
        books = [self.groups[next(iter(ticket.z))]] if plan.shape == "disjoint" else []
        for b in (self.layer, *books):
            b.note(ticket, y, step, lateness)
        if plan.shape in ("overlapping", "features"):
            for j, g in self.errors(ticket, y).items():
                error = g / ticket.z[j] if ticket.z[j] else 0.0
                self.groups[j].note(ticket, y, step, lateness, error)
        self.losses.append((self.loss(ticket.margin, y), self.loss(0.0, y)))
        for j, g in self.errors(ticket, y).items():
            self.theta[j] -= step * ticket.weight * g
            self.total[j] += ticket.weight * g
        for j, x in enumerate(self.theta):
            self.path[j].append(x)

    def run(self) -> None:
        for _ in range(self.plan.rounds):
            self.serve()
            for ticket in self.due():
                self.post(ticket)
        for ticket in self.ordered(list(self.open)):
            self.post(ticket)

    def checks(self) -> list[tuple[Setting, list[int]]]:
        """Each Setting, and the coordinates that it speaks of."""
        plan, every = self.plan, list(range(len(self.theta)))
        if plan.shape == "disjoint":
            return [(b.setting(plan, "scalar", 1.0), [j]) for j, b in enumerate(self.groups) if b.n]
        structure = {"levels": "isotonic", "elo": "features"}.get(plan.shape, plan.shape)
        if not self.layer.n:
            return []
        found = self.layer.setting(plan, structure, plan.size)
        if plan.shape in ("overlapping", "features"):
            own = OwnSteps(*map(np.array, zip(*(b.own for b in self.groups), strict=True)))
            counts, largest = tuple(b.weight_sum for b in self.groups), 1.0
            if plan.shape == "features":
                largest = math.sqrt(plan.size)
            found = replace(found, own_steps=own, counts=counts, largest=largest)
        return [(found, every)]


def isotonic(u: list[float]) -> list[float]:
    """The nearest nondecreasing sequence (pool adjacent violators)."""
    blocks: list[list[float]] = []
    for x in u:
        blocks.append([x, 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            b, a = blocks.pop(), blocks.pop()
            size = a[1] + b[1]
            blocks.append([(a[0] * a[1] + b[0] * b[1]) / size, size])
    return [value for value, size in blocks for _ in range(int(size))]
