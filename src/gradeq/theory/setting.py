"""What a layer is and what it has seen: everything a bound depends on, and the bound itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gradeq.errors import BadInput
from gradeq.theory.groups import Groups

TASKS = (
    "mean",
    "probability_logit",
    "probability_shift",
    "quantile",
    "glm",
    "poisson",
    "multiplicative",
    "elo",
)
HOME_SHARE = 0.1  # the home advantage of Elo learns with a tenth of the players' step
PENALTIES = (None, "lasso", "ridge", "proximal lasso", "proximal ridge")
STRUCTURES = ("scalar", "disjoint", "overlapping", "features", "isotonic")


class Bound(NamedTuple):
    """Most that the largest coordinate of the average gradient can be, whatever the sequence.

    ``value`` is None where no theorem fits; ``result`` names the one it rests on (docs/bounds.md); ``trivial`` holds
    without learning anything, and ``vacuous`` means that the value is no smaller (whether it says anything about the
    data at hand is another question: ``gradeq.informative``); ``reason`` says why there is no value.
    """

    value: float | None
    result: str
    assumptions: tuple[str, ...]
    trivial: float
    vacuous: bool
    reason: str = ""


@dataclass(frozen=True)
class Setting:
    """A layer's configuration and the running sums that its bound needs; theta_1 = 0.

    Everything but the task has a default, so fill in what is known. An upper bound is always a valid
    substitute for a maximum or a sum of positive terms.

    What is learned
        task: mean (f + m), probability_logit (sigma(logit p + m)), quantile,
            probability_shift (p + 2 sigma(m) - 1), glm (a + (b - a) sigma(m)), poisson (e^m),
            multiplicative (f e^m), elo.
        structure: scalar; disjoint (one group per row, each with its own clock); overlapping (at most
            ``size`` groups per row); features (any rows); isotonic (several levels by lazy isotonic projection).
        level, levels: the quantile's level, or all of them.
        home: elo with a home advantage, which learns with a tenth of the step.
    What was seen
        n: labelled rows. counts: labelled rows of each coordinate (groups, players).
        groups: for disjoint groups, one scalar Setting each; replaces counts and makes every bound that
            group's own.
        low, high: range of y - f (with the sinh link of asinh((y - f)/s)); of y for glm and poisson.
        lows, highs: the same per level. gaps: K - 1 largest distances of neighbouring base quantiles.
        square_sum: sum of w (y - f)^2, if known; sharpens the squared error for short, heavy-tailed runs.
        size: largest squared norm of a feature row (c^2). largest: largest |z_j|.
        dimension: number of parameters, or players.
        odds_sum: sum of w e^|logit p|. clip: eps of the clipped p.
        label_low, label_high: range of the labels of a probability.
        ratio_low, ratio_high, forecast_max, label_max: of y/f, f and y (multiplicative).
        span_low, span_high: a and b of a glm.
        zero_scale_rounds: rows learned from that the sinh link served while its scale was 0.
    Steps, as they were applied
        eta: the first (or constant) step. eta_last, eta_max, eta_min: left out, they are eta.
        inverse_variation: sum of |1/s_i - 1/s_{i-1}| from the second label on, in order of POSTING, over the
            labels of the parameter (disjoint groups) or of the layer; left out, steps are taken to be monotone.
        step_mass, step_squares: sums of m = s w and of m^2 over the labels (of the parameter or layer, as above).
        mass_changes, square_changes: these sums as they were before each change of 1/s, times the change, added up.
        decay: alpha of eta t^-alpha, only used to look ahead.
        weight_max, weight_sum: of the rows' weights; left out, weights are 1.
        heaviest_step: the largest product of the step of a label and its weight, if known.
        divisor: what sums are divided by to give the average; left out, weight_sum (n without weights).
        penalty: lasso or ridge (lambda/2)||theta||^2, with strength lambda; "proximal lasso" and "proximal ridge"
            are the same taken after the step.
    Late labels
        lateness: D, the largest d of a posted label: rows of its group (overlapping: of any of its groups;
            elo: games of either player; otherwise rows of the layer) served from its ticket to its posting, the
            ticket's own included; 1 = at once. Left out, every label came at once.
        cap: c of the lateness rule, if it is on: a label of lateness d >= 2 and weight w was applied with
            w s <= c/(sum over its groups of some P >= d), with features w s <= c/(P Z^2), Z^2 >= its squared norm.
    """

    task: str = "mean"
    structure: str = "scalar"
    level: float = 0.5
    levels: tuple[float, ...] = ()
    n: float = 0
    counts: tuple[float, ...] = ()
    groups: Sequence[Setting] = ()
    low: float = 0.0
    high: float = 0.0
    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()
    gaps: tuple[float, ...] = ()
    square_sum: float | None = None
    size: float = 1.0
    largest: float = 1.0
    dimension: int = 1
    odds_sum: float | None = None
    clip: float | None = None
    label_low: float = 0.0
    label_high: float = 1.0
    ratio_low: float | None = None
    ratio_high: float | None = None
    forecast_max: float = 1.0
    label_max: float | None = None
    span_low: float = 0.0
    span_high: float = 1.0
    zero_scale_rounds: float = 0
    home: bool = False
    eta: float = 0.01
    eta_last: float | None = None
    eta_max: float | None = None
    eta_min: float | None = None
    inverse_variation: float | None = None
    step_mass: float | None = None
    step_squares: float | None = None
    mass_changes: float | None = None
    square_changes: float | None = None
    decay: float = 0.0
    weight_max: float = 1.0
    weight_sum: float | None = None
    heaviest_step: float | None = None
    divisor: float | None = None
    penalty: str | None = None
    strength: float = 0.0
    lateness: int | None = None
    cap: float | None = None

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise BadInput(f"task {self.task!r}: must be one of {', '.join(TASKS)}")
        if self.structure not in STRUCTURES:
            raise BadInput(f"structure {self.structure!r}: must be one of {', '.join(STRUCTURES)}")
        if self.penalty not in PENALTIES:
            raise BadInput(
                f"penalty {self.penalty!r}: must be lasso, ridge, 'proximal lasso', 'proximal ridge' or None"
            )
        if not self.eta > 0.0:
            raise BadInput(f"eta = {self.eta!r}: a step must be positive")
        if self.lateness is not None and not self.lateness >= 1:
            raise BadInput(
                f"lateness = {self.lateness!r}: 1 means no delay; nothing can arrive earlier"
            )

    @property
    def b(self) -> float:
        """Largest |y - f| (or of whatever low and high bound)."""
        return max(abs(self.low), abs(self.high))

    @property
    def top_eta(self) -> float:
        """Largest step, without weights."""
        if self.eta_last is None and self.eta_max is None:
            return self.eta
        return max(e for e in (self.eta, self.eta_last, self.eta_max) if e is not None)

    @property
    def largest_step(self) -> float:
        """Largest step times weight; of those apart, if nobody knows of them together."""
        product = self.top_eta * self.weight_max
        return product if self.heaviest_step is None else min(product, self.heaviest_step)

    @property
    def smallest_step(self) -> float:
        """Smallest step."""
        known = [e for e in (self.eta, self.eta_last, self.eta_max, self.eta_min) if e is not None]
        return min(known)

    @property
    def row_size(self) -> float:
        """Largest squared norm of a row; a game is 2, with a home advantage 2 + 1/10 in units of the step."""
        if self.task == "elo":
            return 2.0 + (HOME_SHARE if self.home else 0.0)
        return self.size

    @property
    def weights(self) -> float:
        """Sum of weights, n when there are none."""
        return float(self.n) if self.weight_sum is None else self.weight_sum

    @property
    def step_sum(self) -> float:
        """Bound on the sum of step times weight over the labelled rows."""
        most = self.top_eta * self.weights
        return most if self.step_mass is None else min(most, self.step_mass)

    @property
    def square_steps(self) -> float:
        """Bound on the sum of (step times weight)^2."""
        most = self.largest_step * self.step_sum
        return most if self.step_squares is None else min(most, self.step_squares)

    @property
    def changes(self) -> tuple[float, float] | None:
        """Both sums of steps before each change of 1/s, times the change, added up; None where nobody did."""
        if self.mass_changes is None or self.square_changes is None:
            return None
        if not math.isfinite(self.mass_changes):
            return None
        return self.mass_changes, min(self.square_changes, self.largest_step * self.mass_changes)

    @property
    def variation(self) -> float:
        """sum of |1/s_i - 1/s_{i-1}| from the second label on; infinite if a cap acted and nobody counted."""
        if self.inverse_variation is not None:
            return self.inverse_variation
        peaks = self.latest * max(self.row_size, 1.0)
        if self.has_late_labels and self.cap is not None and self.largest_step * peaks > self.cap:
            return math.inf
        last = self.eta if self.eta_last is None else self.eta_last
        return abs(1.0 / last - 1.0 / self.eta)

    @property
    def constant(self) -> bool:
        """Whether every step was the same."""
        return self.variation == 0.0 and all(group.constant for group in self.widest_groups)

    @property
    def widest_groups(self) -> Sequence[Setting]:
        """Groups that are as wide, as late and as varied as any: of many, one that stands for all."""
        return (self.groups.widest,) if isinstance(self.groups, Groups) else self.groups

    @property
    def average_over(self) -> float:
        """What sums are divided by to give the average."""
        return self.weights if self.divisor is None else self.divisor

    @property
    def latest(self) -> int:
        """Largest lateness of a posted label, of any group; 1 when all came at once."""
        own = self.lateness or 1
        return max([own, *(group.latest for group in self.widest_groups)])

    @property
    def has_late_labels(self) -> bool:
        """Whether any label came after another row of its group was served."""
        return self.latest >= 2
