"""Which results apply to a layer with features, overlapping groups, players, or a penalty."""

from __future__ import annotations

import math

from gradeq.theory.candidate import (
    Candidate,
    flight,
    root_squares,
    total_from,
    total_grown,
    total_squared,
)
from gradeq.theory.elo import elo_sup_radius
from gradeq.theory.late import age_mass, crossing_mass, late_squared_growth, late_squared_wander
from gradeq.theory.penalised_layers import penalised_candidates
from gradeq.theory.pulls import grown, pull_of
from gradeq.theory.setting import Setting


def feature_candidates(setting: Setting) -> list[Candidate]:
    """Every proven bound for a layer with several parameters; empty where there is none.

    With late labels a home advantage has none: it is shared by all games, which the lateness of a player does
    not count.
    """
    if setting.penalty is not None:
        return penalised_candidates(setting)
    if setting.has_late_labels and setting.home:
        return []
    if setting.task == "mean":
        return _squared(setting)
    found = bounded_candidate(setting)
    if found is None:
        return []
    if setting.task != "elo" or setting.home or setting.has_late_labels:
        return [found]

    def ladder(steps: float, squares: float) -> float:
        return elo_sup_radius(setting.dimension, setting.largest_step, steps)

    return [found, Candidate(total_grown(setting, ladder), "8.5", found.assumptions[:1])]


def bounded_candidate(setting: Setting) -> Candidate | None:
    """Errors of bounded size, from the growth of a squared norm (G2'); late labels add what is open (A1).

    Late: the norm is that of v, which adds the steps in order of service; v ends at the present state, and on the
    way a coordinate of theta is within |e| x (open mass in it) of v. A home advantage is a coordinate z = 1/sqrt(10)
    for the players' step, so its own average is at most sqrt(10) times that of any coordinate.
    """
    pull = pull_of(setting)
    if pull is None:
        return None
    size = setting.row_size
    known: tuple[str, ...] = (pull.assumption, f"squared norm of features <= {size:g}")
    if not setting.has_late_labels:
        return Candidate(total_grown(setting, grown(setting, pull)), pull.result, known)
    in_flight = flight(setting)
    known = (*known, f"lateness of at most {setting.latest} rows")
    radius, wander = grown(setting, pull, in_flight.overlap), in_flight.coordinate * pull.error
    return Candidate(total_grown(setting, radius, wander), "A1", known)


def late_squared_candidate(setting: Setting) -> list[Candidate]:
    """The squared error with late labels from the growth of ||v||^2, one parameter or many (result A1).

    Where :func:`~gradeq.theory.crossing_mass` is below 2. Features scale every mass by the squared norm; groups
    do so in the crossings only, since one coordinate meets the rows of its own group.
    """
    step, latest = setting.largest_step, setting.latest
    many = setting.structure in ("features", "overlapping")
    size = setting.size if many else 1.0
    crossing = crossing_mass(step * size, setting.cap, latest)
    radius = root_squares(setting) * math.sqrt(late_squared_growth(1.0, 1.0, crossing))
    if not math.isfinite(radius):
        return []
    mass = step * size if setting.structure == "features" else step
    mass += age_mass(mass, setting.cap, latest)
    wander = late_squared_wander(radius, mass, 2.0 - crossing)
    known: tuple[str, ...] = (f"|y - f| <= {setting.b:g}", f"lateness of at most {latest} rows")
    if many:
        known = (*known, f"squared norm of features <= {size:g}")
    total = total_from(setting, radius, 2.0 * radius + wander, radius + wander)
    return [Candidate(total, "A1", known)]


def _squared(setting: Setting) -> list[Candidate]:
    if setting.has_late_labels:
        return late_squared_candidate(setting)
    known = (f"|y - f| <= {setting.b:g}", f"squared norm of features <= {setting.size:g}")
    return [Candidate(total_squared(setting), "5.2", known)]
