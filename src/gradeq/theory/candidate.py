"""One proven bound on a sum of gradients, before it is compared with others; the masses it rests on."""

from __future__ import annotations

import math
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


def total_from(setting: Setting, radius: float, diameter: float) -> float:
    """|sum of gradients| from where the parameter can be: R/s_1 + diameter x later variation (1.1, 1.2).

    Summation by parts in order of posting: R bounds |theta_{n+1}|, the diameter |theta_i - theta_{n+1}|, both of
    the parameter itself.
    """
    if setting.constant:
        return radius / setting.eta
    return radius / setting.eta + diameter * setting.variation


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
