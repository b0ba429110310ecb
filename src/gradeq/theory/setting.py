"""What a layer is and what it has seen: everything a bound depends on, for one or many groups."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradeq.errors import BadInput
from gradeq.tables import LazySequence

__all__ = ["HOME_SHARE", "STRUCTURES", "TASKS", "Bound", "OwnSteps", "Setting"]

Floats = NDArray[np.float64]
TASKS = ("mean", "probability_logit", "probability_shift", "quantile", "glm", "poisson", "multiplicative", "elo")
HOME_SHARE = 0.1  # the home advantage of Elo learns with a tenth of the players' step
PENALTIES = (None, "lasso", "ridge", "proximal lasso", "proximal ridge")
STRUCTURES = ("scalar", "disjoint", "overlapping", "features", "isotonic")


@dataclass(frozen=True)
class Bound:
    """The largest coordinate of the average gradient is at most ``value``, for every sequence.

    ``value`` is None where no theorem fits, and ``reason`` says why. ``result`` names the theorem (docs/bounds.md).
    ``trivial`` is the bound without any learning; ``vacuous``: the value is not below it. Whether a bound says more
    than given data do is for ``gradeq.certificates.figures`` to tell.
    """

    value: float | None
    result: str
    assumptions: tuple[str, ...]
    trivial: float
    vacuous: bool
    reason: str = ""


class OwnSteps(NamedTuple):
    """Of each coordinate, over its own labels: an array a field.

    ``weights``: sum of w. ``first``, ``last``, ``variation``: 1/s of the first and of the last label, and the sum of
    |1/s_i - 1/s_{i-1}|. ``mass``, ``squares``: sums of s w and of (s w)^2, infinite where they are not known.
    ``errors``: sum of w e^2 as served, infinite where it is not known.
    """

    weights: Floats
    first: Floats
    last: Floats
    variation: Floats
    mass: Floats
    squares: Floats
    errors: Floats

    def after(self, labels: float, mass: float, squares: float, variation: float, last: float) -> OwnSteps:
        """The same once there are ``labels`` times as many, and all else has grown by these factors."""
        by = (labels, 1.0, last, variation, mass, squares, labels)
        return OwnSteps(*(own * growth for own, growth in zip(self, by, strict=True)))

    def in_unit(self, unit: float) -> OwnSteps:
        """The same of steps that are measured in this unit."""
        by = (1.0, unit, unit, unit, 1.0 / unit, 1.0 / unit / unit, 1.0)
        return OwnSteps(*(own * growth for own, growth in zip(self, by, strict=True)))


def derived() -> Any:
    """A field that follows from the others."""
    return field(init=False, repr=False, compare=False)


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
        own_steps: with overlapping groups or features, the steps of each coordinate's own labels and the squares of
            the errors served with them; sharpens steps that vary from row to row.
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
    Worked out from these
        b: largest |y - f| (or of whatever low and high bound). weights: sum of weights, n when there are none.
        unweighted: every label weighed 1. average_over: what sums are divided by to give the average.
        top_eta: largest step, without weights. largest_step: largest step times weight; the product of the two
            maxima if their joint maximum is unknown. step_sum, square_steps: bounds on the sums of m and of m^2.
        variation: sum of |1/s_i - 1/s_{i-1}|; infinite if a cap acted and it was not counted.
        constant: every step was the same. latest: largest lateness of any group, 1 when all came at once.
        widest_groups: groups that are as wide, as late and as varied as any; for many, one that covers all.
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
    own_steps: OwnSteps | None = field(default=None, compare=False)
    decay: float = 0.0
    weight_max: float = 1.0
    weight_sum: float | None = None
    heaviest_step: float | None = None
    divisor: float | None = None
    penalty: str | None = None
    strength: float = 0.0
    lateness: int | None = None
    cap: float | None = None

    b: float = derived()
    top_eta: float = derived()
    largest_step: float = derived()
    weights: float = derived()
    unweighted: bool = derived()
    step_sum: float = derived()
    square_steps: float = derived()
    variation: float = derived()
    constant: bool = derived()
    widest_groups: Sequence[Setting] = derived()
    average_over: float = derived()
    latest: int = derived()
    has_late_labels: bool = derived()

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
            raise BadInput(f"lateness = {self.lateness!r}: 1 means no delay; nothing can arrive earlier")
        groups = (self.groups.widest,) if isinstance(self.groups, Groups) else self.groups
        latest = max([self.lateness or 1, *(group.latest for group in groups)])
        top_eta = max(e for e in (self.eta, self.eta_last, self.eta_max) if e is not None)
        largest_step = top_eta * self.weight_max
        if self.heaviest_step is not None:
            largest_step = min(largest_step, self.heaviest_step)
        weights = float(self.n) if self.weight_sum is None else self.weight_sum
        step_sum = top_eta * weights
        if self.step_mass is not None:
            step_sum = min(step_sum, self.step_mass)
        square_steps = largest_step * step_sum
        if self.step_squares is not None:
            square_steps = min(square_steps, self.step_squares)
        variation = self.inverse_variation
        if variation is None:
            last = self.eta if self.eta_last is None else self.eta_last
            variation = abs(1.0 / last - 1.0 / self.eta) if last else math.inf
            peaks = latest * max(self.row_size, 1.0)
            if latest >= 2 and self.cap is not None and largest_step * peaks > self.cap:
                variation = math.inf
        vars(self).update(
            b=max(abs(self.low), abs(self.high)),
            top_eta=top_eta,
            largest_step=largest_step,
            weights=weights,
            unweighted=self.weight_max == 1.0 and weights == self.n,
            step_sum=step_sum,
            square_steps=square_steps,
            variation=variation,
            constant=variation == 0.0 and all(group.constant for group in groups),
            widest_groups=groups,
            average_over=weights if self.divisor is None else self.divisor,
            latest=latest,
            has_late_labels=latest >= 2,
        )

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
    def span(self) -> tuple[float, float]:
        """a and b of the logistic mean that is served: [-1, 1] with the shift link."""
        return (-1.0, 1.0) if self.task == "probability_shift" else (self.span_low, self.span_high)

    @property
    def changes(self) -> tuple[float, float] | None:
        """Both sums of steps before each change of 1/s, times the change, added up; None if unknown."""
        if self.mass_changes is None or self.square_changes is None:
            return None
        if not math.isfinite(self.mass_changes):
            return None
        return self.mass_changes, min(self.square_changes, self.largest_step * self.mass_changes)


# Where facts have one direction.
ORDERED = ("mean", "quantile", "probability_logit", "probability_shift", "glm", "poisson")
FEW = 8  # groups that are looked at one by one
ROUNDING = 1e-12  # relative: what logarithms may lose where a fact grows

Total = tuple[float | None, str, tuple[str, ...]]  # the largest |sum of gradients|, its result, its assumptions


class Groups(LazySequence["Setting"]):
    """The settings of disjoint groups, a row of facts each; ``make`` makes a setting of a row.

    Facts are such that no sum of gradients is bounded by less when one of them grows: ends of ranges, counts, sums
    of positive terms, lateness. So the largest facts of several groups give a setting whose bound covers each.
    Groups of another ``kind`` are compared apart, since other results hold for them and may promise more: where
    labels came late, and where those of an exponential mean may be 0 (result 3.5).
    """

    def __init__(self, facts: Floats, kinds: NDArray[np.int64], make: Callable[[list[float]], Setting]) -> None:
        super().__init__(len(facts), lambda j: make(facts[j].tolist()))
        self._facts, self._kinds, self._setting = facts, kinds, make
        self.widest = make(facts.max(axis=0).tolist())

    def worst(self, total: Callable[[Setting], Total]) -> Total:
        """The largest total of any group, of equal ones a later one; one without a value as soon as it is met.

        Best first: a set of groups is split until it is one group, or no better than what was found.
        """
        facts, largest, at = self._facts, 0.0, -1
        worst: Total = (0.0, "no labels", ())
        numbered = count()
        exact = self.widest.task in ("mean", "quantile") and not self.widest.has_late_labels
        apart = [np.flatnonzero(self._kinds == kind) for kind in np.unique(self._kinds)]
        waiting = [(-math.inf, 0, next(numbered), members) for members in apart]
        while waiting:
            least, *_, members = heapq.heappop(waiting)
            if -least < largest * (1.0 if exact else 1.0 - ROUNDING):
                return worst
            if exact and -least == largest and members[-1] < at:
                continue
            low, high = facts[members].min(axis=0), facts[members].max(axis=0)
            alike = bool((low == high).all())
            if alike or len(members) <= FEW:
                for j in (members[-1:] if alike else members).tolist():
                    bound = total(self[j])
                    if bound[0] is None:
                        return bound
                    if (bound[0], j) > (largest, at):
                        worst, largest, at = bound, bound[0], j
                continue
            # Two parts, neither empty, by the middle of the fact that differs most for its size.
            with np.errstate(invalid="ignore", over="ignore"):
                differ = (high - low) / np.maximum(np.abs(low), np.abs(high))
            k = int(np.argmax(np.nan_to_num(differ, nan=0.0, posinf=2.0)))
            middle = low[k] / 2.0 + high[k] / 2.0
            above = facts[members, k] > (middle if low[k] <= middle < high[k] else low[k])
            for part in (members[above], members[~above]):
                most = total(self._setting(facts[part].max(axis=0).tolist()))[0]
                least = -math.inf if most is None else -most
                heapq.heappush(waiting, (least, -int(part[-1]), next(numbered), part))
        return worst
