"""What is played and the books that are kept of it, in the terms of a Setting."""

import itertools
import math
from dataclasses import dataclass, field

from gradeq.theory import Setting


class Peaks:
    """The lateness of labels in each cell and its peak P, renewed in epochs; bounds rest on P >= d alone.

    The product's epochs are 50 labels, then longer; shorter ones make harder games.
    """

    def __init__(self, cells: int, epoch: float = 50.0, growth: float = 50.0) -> None:
        self.rows = [0] * cells
        self.peak = [1] * cells
        self.recent = [0] * cells
        self.count = [0] * cells
        self.length = [epoch] * cells
        self.growth = growth

    def serve(self, cells: tuple[int, ...]) -> tuple[int, ...]:
        """Count a row; what its ticket must remember."""
        for cell in cells:
            self.rows[cell] += 1
        return tuple(self.rows[cell] for cell in cells)

    def post(self, cells: tuple[int, ...], opened: tuple[int, ...]) -> int:
        """Note a label and return its lateness, the largest of its cells."""
        lateness = [self.rows[cell] - at + 1 for cell, at in zip(cells, opened, strict=True)]
        for cell, d in zip(cells, lateness, strict=True):
            self.recent[cell] = max(self.recent[cell], d)
            self.peak[cell] = max(self.peak[cell], d)
            self.count[cell] += 1
            if self.count[cell] >= self.length[cell]:
                self.peak[cell], self.recent[cell], self.count[cell] = self.recent[cell], 0, 0
                if self.growth:
                    longer = self.length[cell] + self.growth
                    self.length[cell] = max(longer, 4.0 * self.peak[cell])
        return max(lateness)

    def step(self, cells: tuple[int, ...], eta: float, cap: float | None, weight: float, norm: float = 1.0) -> float:
        """min(eta, c/(w P Z^2)) once a peak is 2 or more, P the sum of the row's peaks."""
        peaks = [self.peak[cell] for cell in cells]
        if cap is None or max(peaks) < 2 or norm == 0.0:
            return eta
        return min(eta, cap / (weight * sum(peaks) * norm))


@dataclass
class Game:
    """One configuration to play; labels stay in [low, high] (residuals, or labels for bounded means)."""

    task: str = "mean"
    structure: str = "scalar"
    dimension: int = 1
    rounds: int = 300
    low: float = -1.0
    high: float = 1.0
    level: float = 0.5
    eta: float = 0.1
    decay: float = 0.0
    wobble: float = 0.0
    size: float = 1.0
    clip: float = 0.01
    weight: float = 0.0
    penalty: str | None = None
    strength: float = 0.0
    rows: str = "random"
    labels: str = "greedy"
    release: str = "at once"
    hold: int = 5
    cap: float | None = None
    epoch: float = 50.0
    zero_scale: int = 0
    levels: tuple[float, ...] = ()


@dataclass(eq=False)
class Ticket:
    """A served row that waits for its label."""

    z: list[float]
    gradient: list[float]
    slope: list[float]
    eta: float
    weight: float
    mass: float
    served_mass: float
    open_mass: float
    count: int
    order: int
    error: float
    base: float
    target: float
    margin: float
    group: int
    cells: tuple[int, ...]
    opened: tuple[int, ...]


@dataclass
class Played:
    """What happened: the exact sums, and every number that a Setting asks for."""

    game: Game
    theta: list[float]
    total: list[float]
    counts: list[int]
    n: int = 0
    low: float = math.inf
    high: float = -math.inf
    farthest: float = 0.0
    farthest_norm: float = 0.0
    odds_sum: float = 0.0
    square_sum: float = 0.0
    weight_sum: float = 0.0
    weight_max: float = 0.0
    open_mass: float = 0.0
    stale_mass: float = 0.0
    most_open: int = 0
    delay: int = 0
    lateness: int = 1
    crossing_mass: float = 0.0
    size: float = 0.0
    widest: float = 0.0
    etas: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    targets: list[float] = field(default_factory=list)
    bases: list[float] = field(default_factory=list)
    groups: list["Played"] = field(default_factory=list)
    ratio: list[float] = field(default_factory=list)
    tops: list[float] = field(default_factory=list)

    @property
    def largest_total(self) -> float:
        """The largest coordinate of the sum of gradients."""
        return max(abs(value) for value in self.total)

    def setting(self) -> Setting:
        """The Setting that a layer would fill from its running sums."""
        game = self.game
        weighted = game.weight > 0.0
        steps = self.etas or [game.eta]
        variation = sum(abs(1 / b - 1 / a) for a, b in itertools.pairwise(steps))
        return Setting(
            task=game.task,
            structure=game.structure,
            level=game.level,
            n=self.n,
            counts=tuple(self.counts),
            groups=tuple(g.setting() for g in self.groups) if game.structure == "disjoint" else (),
            low=self.low,
            high=self.high,
            size=self.size,
            dimension=game.dimension,
            odds_sum=self.odds_sum if game.task == "probability_logit" else None,
            clip=game.clip if game.task == "probability_logit" else None,
            ratio_low=min(self.ratio, default=None),
            ratio_high=max(self.ratio, default=None),
            forecast_max=max(self.bases) if game.task == "multiplicative" and self.bases else 1.0,
            label_max=max(self.tops, default=None),
            span_low=-0.5,
            span_high=1.5,
            zero_scale_rounds=game.zero_scale,
            eta=steps[0],
            eta_last=steps[-1],
            eta_max=max(steps),
            eta_min=min(steps),
            inverse_variation=variation,
            decay=game.decay,
            weight_max=self.weight_max if weighted else 1.0,
            weight_sum=self.weight_sum if weighted else None,
            divisor=self.n if weighted else None,
            penalty=game.penalty,
            strength=game.strength,
            lateness=self.lateness,
            cap=game.cap,
        )
