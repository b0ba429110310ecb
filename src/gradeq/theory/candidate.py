"""One proven bound on a sum of gradients, before it is compared with others, and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gradeq.numerics import LAMBERT_W
from gradeq.theory.features import clip_bound, logit_pull, quantile_pull
from gradeq.theory.generic import UNDERFLOW, spread_total
from gradeq.theory.late import age_mass, age_root_mass
from gradeq.theory.setting import HOME_SHARE, Floats, OwnSteps, Setting

_ROUNDS = 8  # of a bound on a bound: each is valid, and they fall quickly


@dataclass(frozen=True)
class Candidate:
    """A bound on the largest coordinate of the SUM of gradients, the result behind it, its assumptions.

    ``totals`` has the bound of each level when there are several, or of each coordinate where these differ.
    """

    total: float
    result: str
    assumptions: tuple[str, ...]
    totals: tuple[float, ...] = ()

    def by_coordinate(self, totals: Floats | None) -> Candidate:
        """The same with the bound of each coordinate, where the steps of its own labels say more (1.10)."""
        if totals is None or not len(totals):
            return self
        totals = np.fmin(totals, self.total)
        total, assumptions = float(totals.max()), self.assumptions
        if total < self.total:
            assumptions = (*assumptions, "steps and squared errors as they were (1.10)")
        return replace(self, total=total, totals=tuple(totals.tolist()), assumptions=assumptions)


Radius = Callable[[float, float], float]  # of the parameter, from the sums of m = eta w and of m^2 so far


def total_from(setting: Setting, radius: float, diameter: float, farthest: float | None = None) -> float:
    """|sum of gradients| from where the parameter can be, by parts in order of posting (1.1, 1.2, 1.9).

    R/s_1 + diameter x variation, or R/s_n + farthest x variation: R bounds |theta_{n+1}|, the diameter
    |theta_i - theta_{n+1}| and ``farthest`` (left out, R) |theta_i| on the way.
    """
    if setting.constant:
        return radius / setting.eta
    total = radius / setting.eta + diameter * setting.variation
    if setting.eta_last is None:
        return total
    on_the_way = radius if farthest is None else farthest
    return min(total, radius / setting.eta_last + on_the_way * setting.variation)


def total_grown(setting: Setting, radius_of: Radius, wander: float = 0.0) -> float:
    """The same for a radius that grows with the sums of steps, and is a concave function of them (1.9).

    By parts the sum is at most R_n/s_n + sum of R_{i-1} |1/s_i - 1/s_{i-1}|; with V the sum of those changes the
    second part is at most V times the radius of the sums as they were on average over the changes (Jensen).
    ``wander``: how far the parameter is from what the radius bounds, with late labels.
    """
    radius = radius_of(setting.step_sum, setting.square_steps)
    total = total_from(setting, radius, 2.0 * radius + wander, radius + wander)
    late = setting.has_late_labels  # what is open was served, but not yet posted
    if setting.constant or late or setting.changes is None or setting.eta_last is None:
        return total
    variation, (mass, squares) = setting.variation, setting.changes
    if not 0.0 < variation < math.inf:
        return total
    average = radius_of(mass / variation, squares / variation)
    return min(total, radius / setting.eta_last + variation * average)


def residual_radius(setting: Setting, size: float) -> Radius:
    """b sqrt(sum of eta/(2 - eta c^2)) of the squared error, labels at once, as the sums of steps grow (5.2)."""
    room = 2.0 - setting.largest_step * size

    def radius(steps: float, squares: float) -> float:
        # eta/(2 - eta c^2) = eta/2 + eta^2 c^2/(2 (2 - eta c^2)), and no step is larger than the largest.
        return setting.b * math.sqrt(0.5 * steps + 0.5 * size * squares / room)

    return radius


def reach_of_squares(setting: Setting, size: float) -> float:
    """sqrt(sum of eta r^2/(2 - eta c^2)): where theta can be, labels at once (5.2)."""
    room = 2.0 - setting.largest_step * size
    return root_squares(setting) / math.sqrt(room) if room > 0.0 else math.inf


def total_squared(setting: Setting, size: float) -> float:
    """|sum of gradients| of the squared error, labels at once: from the largest residual or their squares (5.2)."""
    if setting.largest_step * size >= 2.0:
        return math.inf
    radius = reach_of_squares(setting, size)
    return min(total_grown(setting, residual_radius(setting, size)), total_from(setting, radius, 2.0 * radius))


def stale_mass(setting: Setting) -> float:
    """Mass of the tickets of one group that are open when another is served: ages 2 to D (result A1)."""
    return age_mass(setting.largest_step, setting.cap, setting.latest)


def open_mass(setting: Setting) -> float:
    """The same with the ticket just served, whose step may be uncapped: it may be posted at once."""
    return setting.largest_step + stale_mass(setting)


def flight(setting: Setting) -> tuple[float, float]:
    """Open masses just after a row is served, of the tickets that will be posted (result A1, features).

    First the sum of mass times |z'z_t| over the OTHER tickets open when row t is served, then the sum of mass times
    |z_j| of all open tickets, in one coordinate j.
    Groups: tickets that share no group are orthogonal, so row t meets at most ages 2..D in each of its J
    groups, each posted with w s <= c/age. Elo: two players, and the other one's P is at least 1, so c/(age + 1).
    Features: every open ticket counts, posted with w s <= min(eta w, c/(age r^2)) for its own norm r only, so
    w s r <= min(eta w Z, sqrt(eta w c/age)) whatever r <= Z is.
    """
    step, cap, latest = setting.largest_step, setting.cap, setting.latest
    if setting.task == "elo":
        mass = age_mass(step, cap, latest, others=1)
        return 2.0 * mass, step + mass
    if setting.structure == "features":
        scaled = step * setting.size
        mass = age_root_mass(scaled, cap, latest)
        return mass, (scaled + mass) / math.sqrt(setting.size) if setting.size else 0.0
    groups = setting.size if setting.structure == "overlapping" else 1.0
    mass = age_mass(step, cap, latest)
    return groups * mass, step + mass


def root_squares(setting: Setting) -> float:
    """sqrt(sum of step x weight x (y - f)^2), or more: from the largest |y - f| or the observed sum of squares.

    Where rows share parameters and weigh 1, sum s r^2 <= sqrt(sum s^2 x sum r^4) <= sqrt(sum s^2) b sqrt(sum r^2):
    a few large steps among small ones count as few. Nothing is squared that could overflow; what the observed sum
    lost to underflow is put back.
    """
    largest = setting.b * math.sqrt(setting.step_sum)
    if setting.square_sum is None:
        return largest
    observed = setting.square_sum + (setting.weights + setting.n) * UNDERFLOW
    least = min(largest, math.sqrt(setting.top_eta) * math.sqrt(observed))
    if not setting.unweighted or setting.own_steps is None:
        return least
    squares = setting.square_steps + setting.n * UNDERFLOW
    return min(least, math.sqrt(math.sqrt(squares)) * math.sqrt(setting.b) * math.sqrt(math.sqrt(observed)))


class Pull(NamedTuple):
    """What an error of bounded size does to theta: g'theta >= -kappa and |e| <= error."""

    kappa: float
    error: float
    offset: float
    span: float
    result: str
    assumption: str


def pull_of(setting: Setting) -> Pull | None:
    """kappa and the size of the error, for the tasks whose error is bounded."""
    if setting.task == "elo":
        return Pull(LAMBERT_W, 1.0, 0.0, 0.0, "8.5", "results in [0, 1]")
    if setting.task == "probability_logit" and setting.clip is not None:
        offset = clip_bound(setting.clip)
        known = f"labels in [0, 1], forecasts clipped at {setting.clip:g}"
        return Pull(logit_pull(offset), 1.0, offset, 1.0, "C3", known)
    if setting.task in ("probability_shift", "glm"):
        a, b = setting.span
        if setting.low < a or setting.high > b:
            return None
        return Pull(LAMBERT_W * (b - a), b - a, 0.0, b - a, "5.1", f"labels in [{a:g}, {b:g}]")
    if setting.task != "quantile":
        return None
    if len(setting.levels) < 2:
        kappa = quantile_pull(setting.low, setting.high, setting.level)
        known = f"tracked residuals in [{setting.low:g}, {setting.high:g}]"
        return Pull(kappa, max(setting.level, 1.0 - setting.level), 0.0, 0.0, "5.3", known)
    # Several levels by lazy isotonic projection: at tied levels the errors fall with the level, so the negative
    # gradient points into the cone and g'(u - theta) >= 0 (result 8.7). What is left is the pinball loss of the base
    # forecasts, level by level (5.3): kappa and the squared errors add up over the levels.
    k = len(setting.levels)
    lows, highs = setting.lows or (setting.low,) * k, setting.highs or (setting.high,) * k
    ranges = zip(lows, highs, setting.levels, strict=True)
    kappa = sum(quantile_pull(low, high, level) for low, high, level in ranges)
    error = math.hypot(*(max(level, 1.0 - level) for level in setting.levels))
    known = f"tracked residuals in [{min(lows):g}, {max(highs):g}]"
    return Pull(kappa, error, 0.0, 0.0, "5.3 with 8.7", known)


def pulled_radius(setting: Setting, pull: Pull, overlap: float = 0.0) -> Radius:
    """The radius as the sums of steps grow: sqrt(sum of 2 eta kappa + eta^2 L^2 + 2 eta A), as in any other round."""
    lipschitz_squared = setting.row_size * pull.error * pull.error
    free = disturbance(setting, pull.error)
    share = 1.0
    if setting.task == "elo" and setting.penalty in (None, "ridge"):
        # Ratings add up to 0, unless there is a home advantage.
        share = math.sqrt((setting.dimension - 1) / setting.dimension)
        share = 1.0 / math.sqrt(HOME_SHARE) if setting.home else share

    def radius(steps: float, squares: float) -> float:
        pulled = 2.0 * (pull.kappa + overlap * pull.error * pull.error) * steps
        return share * (math.sqrt(pulled + lipschitz_squared * squares) + free)

    return radius


def disturbance(setting: Setting, lipschitz: float) -> float:
    """How far rows that ignored theta, before the sinh link had a scale, can have moved it."""
    size = math.sqrt(setting.row_size)
    return setting.zero_scale_rounds * setting.largest_step * lipschitz * size


def coordinate_totals(setting: Setting, radius: float, wander: float = 0.0, error: float = math.inf) -> Floats | None:
    """|sum of w g_j| of each coordinate from the steps of its own labels; None where these are unknown (1.10).

    Under the lateness rule the step of a label is c/(sum of its groups' peaks), so with several group columns 1/s
    changes at almost every label, and a sum by parts (1.2) pays for each change with the whole radius. What a
    coordinate's own labels add up to, with the squares of the errors that were served, gives far less.

    ``radius`` bounds |theta_{n+1}|, ``wander`` what |theta_i| may be above it on the way, ``error`` |e|. A coordinate
    moves with its own labels only, so 1.2 needs no others: R/s_1 + (2 R + wander) V_j, or R/s_n + (R + wander) V_j.
    """
    own = setting.own_steps
    if own is None or setting.penalty is not None:
        return None
    with np.errstate(all="ignore"):
        parts = np.minimum(
            radius * own.first + (2.0 * radius + wander) * own.variation,
            radius * own.last + (radius + wander) * own.variation,
        )
        totals = [np.where(own.variation > 0.0, parts, radius * own.first)]
        if setting.unweighted:
            totals.append(_by_spread(setting, own, radius, error))
    least: Floats = np.fmin.reduce([np.where(np.isnan(total), np.inf, total) for total in totals])
    return least


def _by_spread(setting: Setting, own: OwnSteps, radius: float, error: float) -> Floats:
    """The spread of a coordinate's steps; a miss of a quantile has squares that its own sum bounds.

    e is 1 - tau or -tau, so sum of e^2 = tau (1 - tau) n + (1 - 2 tau) sum of e: what bounds the sum bounds the
    squares, and these bound the sum again.
    """
    squares = np.fmin(own.errors, error * error * own.weights) if error < math.inf else own.errors
    args = (own.weights, own.mass, own.squares, setting.largest)
    total = spread_total(radius, squares, *args)
    if setting.task == "quantile":
        levels = setting.levels or (setting.level,)
        even = max(tau * (1.0 - tau) for tau in levels)
        skew = max(abs(1.0 - 2.0 * tau) for tau in levels)
        for _ in range(_ROUNDS):
            squares = np.fmin(squares, even * own.weights + skew * total / setting.largest)
            total = np.fmin(total, spread_total(radius, squares, *args))
    return total
