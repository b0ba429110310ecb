"""One proven bound on a sum of gradients, before it is compared with others; the masses it rests on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from gradeq.theory.late import age_mass, age_root_mass
from gradeq.theory.setting import Setting

# What squares of residuals may have lost to underflow, a row.
_LOST = 2.0**-1022


class Candidate(NamedTuple):
    """A bound on the largest coordinate of the SUM of gradients, the result behind it, its assumptions.

    ``totals`` has the bound of each level when there are several.
    """

    total: float
    result: str
    assumptions: tuple[str, ...]
    totals: tuple[float, ...] = ()


class Flight(NamedTuple):
    """What is in flight just after a row is served, of the tickets that will be posted.

    ``overlap``: sum of mass times |z'z_t| over the OTHER tickets open when row t is served.
    ``coordinate``: sum of mass times |z_j| of all open tickets, in one coordinate j.
    """

    overlap: float
    coordinate: float


Radius = Callable[
    [float, float], float
]  # of the parameter, from the sums of m = eta w and of m^2 so far


def total_from(
    setting: Setting, radius: float, diameter: float, farthest: float | None = None
) -> float:
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
    changes, variation = setting.changes, setting.variation
    late = setting.has_late_labels  # what is open was served, but not yet posted
    if setting.constant or late or changes is None or setting.eta_last is None:
        return total
    if not 0.0 < variation < math.inf:
        return total
    average = radius_of(changes[0] / variation, changes[1] / variation)
    return min(total, radius / setting.eta_last + variation * average)


def total_squared(setting: Setting) -> float:
    """|sum of gradients| of the squared error, labels at once: from the largest residual or their squares (5.2)."""
    room = 2.0 - setting.largest_step * setting.size
    if room <= 0.0:
        return math.inf

    def radius_of(steps: float, squares: float) -> float:
        # eta/(2 - eta c^2) = eta/2 + eta^2 c^2/(2 (2 - eta c^2)), and no step is larger than the largest.
        return setting.b * math.sqrt(0.5 * steps + 0.5 * setting.size * squares / room)

    radius = root_squares(setting) / math.sqrt(room)
    return min(total_grown(setting, radius_of), total_from(setting, radius, 2.0 * radius))


def stale_mass(setting: Setting) -> float:
    """Mass of the tickets of one group that are open when another is served: ages 2 to D (result A1)."""
    return age_mass(setting.largest_step, setting.cap, setting.latest)


def open_mass(setting: Setting) -> float:
    """The same with the ticket just served, whose step may be uncapped: it may be posted at once."""
    return setting.largest_step + stale_mass(setting)


def flight(setting: Setting) -> Flight:
    """Open masses by the rule of the setting's structure (result A1, features).

    Groups: tickets that share no group are orthogonal, so row t meets at most ages 2..D in each of its J
    groups, each posted with w s <= c/age. Elo: two players, and the other one's P is at least 1, so c/(age + 1).
    Features: every open ticket counts, posted with w s <= min(eta w, c/(age r^2)) for its own norm r only, so
    w s r <= min(eta w Z, sqrt(eta w c/age)) whatever r <= Z is.
    """
    step, cap, latest = setting.largest_step, setting.cap, setting.latest
    if setting.task == "elo":
        mass = age_mass(step, cap, latest, others=1)
        return Flight(2.0 * mass, step + mass)
    if setting.structure == "features":
        scaled = step * setting.size
        mass = age_root_mass(scaled, cap, latest)
        return Flight(mass, (scaled + mass) / math.sqrt(setting.size) if setting.size else 0.0)
    groups = setting.size if setting.structure == "overlapping" else 1.0
    mass = age_mass(step, cap, latest)
    return Flight(groups * mass, step + mass)


def root_squares(setting: Setting) -> float:
    """sqrt(sum of step x weight x (y - f)^2), or more: from the largest |y - f| or the observed sum of squares.

    Nothing is squared that could overflow; what the observed sum lost to underflow is put back.
    """
    largest = setting.b * math.sqrt(setting.step_sum)
    if setting.square_sum is None:
        return largest
    observed = setting.square_sum + (setting.weights + setting.n) * _LOST
    return min(largest, math.sqrt(setting.top_eta) * math.sqrt(observed))
