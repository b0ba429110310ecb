"""One proven bound on a sum of gradients, before it is compared with others."""

from __future__ import annotations

from typing import NamedTuple

from gradeq.theory.late import capped_open_mass
from gradeq.theory.setting import Setting


class Candidate(NamedTuple):
    """A bound on the largest coordinate of the SUM of gradients, the result behind it, its assumptions.

    ``totals`` has the bound of each level when there are several.
    """

    total: float
    result: str
    assumptions: tuple[str, ...]
    totals: tuple[float, ...] = ()


def total_from(setting: Setting, radius: float, diameter: float) -> float:
    """|sum of gradients| from where the parameter can be: R/eta_1 + diameter x later variation (1.1, 1.2)."""
    if setting.constant:
        return radius / setting.eta
    return radius / setting.eta + diameter * setting.variation


def open_mass(setting: Setting) -> float | None:
    """S_all: as given, or what the most open tickets allow; None when nothing is known."""
    found = [] if setting.open_mass is None else [setting.open_mass]
    if setting.most_open is not None:
        found.append(setting.most_open * setting.largest_step)
        if setting.cap is not None:
            cap = setting.cap * setting.weight_max
            found.append(capped_open_mass(setting.largest_step, cap, setting.most_open))
    return min(found) if found else None


def stale_mass(setting: Setting) -> float | None:
    """S: as given, else at most the open mass, and at most P - 1 steps."""
    found = [m for m in (setting.stale_mass, open_mass(setting)) if m is not None]
    if setting.most_open is not None:
        found.append((setting.most_open - 1) * setting.largest_step)
    return min(found) if found else None
