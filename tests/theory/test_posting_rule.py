"""The lateness rule of the product as a plain loop, and players who know it: no run leaves what is proven.

The step of a label is decided when it is posted. Players choose which labels to hold, in which order to post
them, what they say (after seeing everything), how much they weigh, and which never come. Epochs of one label
forget a lateness peak at once, which is harder than the product's.
"""

import itertools
import math
import random
from dataclasses import dataclass, field, replace

import pytest

from gradeq.numerics import log1pexp, sigmoid
from gradeq.theory import Setting, age_mass, best_bound, clip_bound, harm_cap, late_squared_radius
from theory.adversaries import SLACK
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

    def note(self, ticket: Open, residual: float, step: float, lateness: int) -> None:
        self.n += 1
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
            pair = (
                (0, 1) if plan.rows == "steady" and rng.random() < 0.8 else rng.sample(range(4), 2)
            )
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
        up = {
            "cycle": self.cycle % 2 == 1,
            "outward": now >= 0.0,
            "against": ticket.margin < 0.0,
            "up": True,
        }.get(plan.labels, rng.random() < 0.5)
        if plan.labels == "inside":
            return rng.uniform(plan.low, plan.high)
        return plan.high if up else plan.low

    def errors(self, ticket: Open, y: float) -> dict[int, float]:
        """The gradient of a ticket, without its weight."""
        task, m = self.plan.task, ticket.margin
        if self.plan.shape == "levels":
            return {
                k: (y <= q) - tau
                for k, (q, tau) in enumerate(zip(ticket.served, LEVELS, strict=True))
            }
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
        return [(self.layer.setting(plan, structure, plan.size), every)] if self.layer.n else []


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


def reach(setting: Setting) -> tuple[float, float]:
    """The radius of the last state and the diameter of the path that the bound rests on."""
    top = setting.top_eta
    still = best_bound(replace(setting, eta=top, inverse_variation=0.0)).value
    moving = best_bound(replace(setting, eta=top, inverse_variation=1e9)).value
    assert still is not None and moving is not None
    return still * setting.n * top, moving * setting.n / 1e9


def check(plan: Plan, rng: random.Random) -> tuple[int, float]:
    """Play, compare with what is proven; how many bounds there were and how much of them was used."""
    layer = Layer(plan, rng)
    layer.run()
    proven, used = 0, 0.0
    for setting, coordinates in layer.checks():
        bound = best_bound(setting)
        if bound.value is None:
            assert bound.result == "no theorem fits" and bound.reason
            continue
        proven += 1
        radius, diameter = reach(setting)
        for j in coordinates:
            path = layer.path[j]
            average = abs(layer.total[j]) / setting.n
            assert average <= bound.value * SLACK + 1e-12, (plan, setting, bound)
            assert abs(path[-1]) <= radius * SLACK + 1e-12, (plan, setting, bound)
            far = max(abs(x - path[-1]) for x in path)
            assert far <= diameter * (SLACK + 1e-6) + 1e-12, (plan, setting, bound)
            if setting.latest >= 3:
                used = max(used, abs(path[-1]) / radius, far / diameter)
    return proven, used


def random_plan(task: str, shape: str, rng: random.Random) -> Plan:
    low, high = {
        "mean": rng.choice(((-1.0, 1.0), (-3.0, 0.5), (0.5, 2.0))),
        "quantile": rng.choice(((-1.0, 1.0), (-0.2, 3.0))),
        "probability_shift": rng.choice(((-1.0, 1.0), (-0.9, 0.7))),
    }.get(task, (0.0, 1.0))
    plan = Plan(task, shape, low=low, high=high)
    plan.rounds = rng.choice((12, 30, 60))
    plan.hold = rng.choice((1, 2, 4, 9))
    plan.release = rng.choice(("pump", "pump", "leaky", "batch", "trickle"))
    plan.order = rng.choice(("newest", "newest", "oldest", "random"))
    plan.labels = rng.choice(("cycle", "cycle", "outward", "against", "up", "coin", "inside"))
    plan.rows = rng.choice(("random", "steady"))
    plan.weights = rng.choice(("unit", "unit", "wild", "flush"))
    plan.lost = rng.choice((0.0, 0.0, 0.2))
    plan.level = rng.choice((0.1, 0.5, 0.9))
    plan.clip = rng.choice((0.2, 0.01))
    plan.epoch, plan.growth = rng.choice(((1.0, 0.0), (1.0, 0.0), (3.0, 0.0), (50.0, 50.0)))
    plan.cap = rng.choice((0.05, 0.2, 0.6, 2.0, None))
    plan.eta = rng.choice((0.02, 0.1, 0.4, 1.0))
    plan.size = {"overlapping": rng.choice((2.0, 3.0)), "features": rng.choice((0.5, 4.0))}.get(
        shape, 1.0
    )
    if task == "mean":
        heavy = 2.5 if plan.weights == "wild" else 1.0
        plan.eta = rng.choice((0.01, 0.05, 0.2, 0.5, 1.0)) / (heavy * max(plan.size, 1.0))
        plan.cap = rng.choice((0.05, 0.2, 0.4, None))
        if plan.cap is None:
            plan.eta *= 0.2
    return plan


CELLS = [
    (task, shape)
    for task in ("mean", "quantile", "probability_logit", "probability_shift")
    for shape in ("scalar", "disjoint", "overlapping", "features")
] + [("elo", "elo"), ("quantile", "levels")]


@pytest.mark.parametrize(("task", "shape"), CELLS)
def test_no_player_who_knows_the_rule_exceeds_the_bound(task: str, shape: str) -> None:
    rng = random.Random(f"{task} {shape}")
    proven, used = 0, 0.0
    for _ in range(500):
        more, most = check(random_plan(task, shape, rng), rng)
        proven, used = proven + more, max(used, most)
    assert proven >= 350
    assert used > 0.35  # the players are strong enough to see a bound that is a third as large


@pytest.mark.parametrize(
    ("task", "shape"),
    [
        (t, s)
        for t in ("mean", "quantile")
        for s in ("scalar", "disjoint", "overlapping", "features")
    ]
    + [("elo", "elo")],
)
def test_one_constant_step_costs_no_more_than_its_cap(task: str, shape: str) -> None:
    rng = random.Random(f"harm {task} {shape}")
    proven, used = 0, 0.0
    for _ in range(150):
        plan = random_plan(task, shape, rng)
        plan.cap, plan.weights, plan.eta = None, "unit", rng.choice((0.002, 0.01, 0.05, 0.2))
        layer = Layer(plan, rng)
        layer.run()
        if not layer.layer.n:
            continue
        structure = {"elo": "features"}.get(shape, shape)
        cap = harm_cap(layer.layer.setting(plan, structure, plan.size))
        served, raw = (sum(column) for column in zip(*layer.losses, strict=True))
        if cap.factor is not None:
            assert served <= cap.factor * raw * SLACK
            used = max(used, (served - raw) / ((cap.factor - 1.0) * raw))
        elif cap.added is not None:
            rise = (served - raw) / layer.layer.n
            assert rise <= cap.added * SLACK + 1e-12
            used = max(used, rise / cap.added)
        proven += cap.result != "no theorem fits"
    assert proven >= 60 and used > 0.1


def pump(cap: float, latest: int, cycles: int, flush: bool) -> float:
    """Hold latest - 1 tickets, let one label at once turn the state around, release: the farthest state.

    With ``flush`` labels of tiny weight end the product's epochs first, so that the peak is forgotten.
    """
    theta, farthest = 0.0, 0.0
    peaks = Peaks(1) if flush else Peaks(1, 1.0, 0.0)
    for cycle in range(cycles):
        y = 1.0 if cycle % 2 else -1.0
        while flush and peaks.peak[0] > 1:
            opened = peaks.serve((0,))
            peaks.post((0,), opened)
            theta -= 1e-12 * peaks.step((0,), 1.0, cap, 1e-12) * (theta - y)
        waiting = [(theta, peaks.serve((0,))) for _ in range(latest)]
        while waiting:
            served, opened = waiting.pop()
            assert peaks.post((0,), opened) <= latest
            theta -= peaks.step((0,), 1.0, cap, 1.0) * (served - y)
            farthest = max(farthest, abs(theta))
    return farthest


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize(("cap", "latest"), [(0.2, 8), (0.5, 4), (0.4, 9)])
def test_the_radius_of_a_mean_is_attained(cap: float, latest: int, flush: bool) -> None:
    stale = age_mass(1.0, cap, latest)
    radius = late_squared_radius(0.0, 1.0, 1.0 + stale, stale)
    farthest = pump(cap, latest, 14 if flush else 60, flush)
    assert (0.8 if flush else 0.99) * radius <= farthest <= radius * SLACK


def test_beyond_a_stale_mass_of_one_a_run_diverges_and_nothing_is_promised() -> None:
    cap, latest = 0.9, 9
    assert age_mass(1.0, cap, latest) > 1.0
    assert pump(cap, latest, 40, flush=False) > 1e6
    setting = Setting(n=100, low=-1.0, high=1.0, eta=1.0, lateness=latest, cap=cap)
    bound = best_bound(replace(setting, inverse_variation=10.0))
    assert bound.value is None and "too late" in bound.reason


def test_the_rule_is_the_one_of_the_product() -> None:
    peaks = Peaks(2)
    first, second = peaks.serve((0, 1)), peaks.serve((0,))
    assert peaks.post((0,), second) == 1 and peaks.step((0,), 0.5, 0.1, 1.0) == 0.5
    assert peaks.post((0, 1), first) == 2 and peaks.peak == [2, 1]
    assert peaks.step((0, 1), 0.5, 0.3, 2.0) == pytest.approx(0.05)
    for _ in range(48):
        peaks.post((0,), peaks.serve((0,)))
    assert peaks.peak[0] == 2 and peaks.length[0] == 100.0
    for _ in range(100):
        peaks.post((0,), peaks.serve((0,)))
    assert peaks.peak[0] == 1 and peaks.length[0] == 150.0
