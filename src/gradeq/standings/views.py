"""The all-time view of a pair table, and its average with the view of the moment, weighted by what the games say."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradeq.ledger.meetings import Cells
from gradeq.standings.cells import LEVEL
from gradeq.standings.fit import DENSE, Fit, covariance, fit
from gradeq.standings.solve import solver

PROBES = 32


class View(NamedTuple):
    """Strengths relative to the mean of the ranked players. ``covariance`` None: estimates count as independent."""

    z: Any
    variances: Any
    covariance: Any = None


class AllTime(NamedTuple):
    """The fit, its view, and the advantage of the first side (strength and variance; None where it has none)."""

    fit: Fit
    view: View
    home: tuple[float, float] | None


def all_time(cells: Cells, players: int, home: bool, ranked: Any) -> AllTime:
    """Fit the table; intervals are relative to the mean of the ranked players (all, if nobody is ranked)."""
    found = fit(cells, players, home)
    share = centre(ranked)
    z = found.theta[:players] - share @ found.theta[:players]
    if players > DENSE:
        return AllTime(
            found, View(z, probed(cells, players, home, found, share)), at_home(found, home, None)
        )
    whole = covariance(cells, players, home, found)
    own = whole[:players, :players]
    middle = own @ share
    own = own - middle[:, None] - middle[None, :] + share @ middle
    return AllTime(found, View(z, np.diag(own).copy(), own), at_home(found, home, whole))


def centre(ranked: Any) -> Any:
    """The weights of the mean that strengths are relative to."""
    chosen = ranked if ranked.any() else np.ones(len(ranked), dtype=bool)
    return chosen / max(int(chosen.sum()), 1)


def at_home(found: Fit, home: bool, whole: Any) -> tuple[float, float] | None:
    """The advantage of the first side."""
    if not home:
        return None
    return float(found.theta[-1]), float("nan") if whole is None else float(whole[-1, -1])


def probed(cells: Cells, players: int, home: bool, found: Fit, share: Any) -> Any:
    """Variances without a matrix: phi over the diagonal, times the median ratio of the exact one of a few players."""
    size = players + int(home)
    diagonal = np.where(np.arange(size) < players, LEVEL / 4.0, 1e-12)
    both = found.slopes[0] + found.slopes[1]
    own = np.bincount(cells.i, both, players) + np.bincount(cells.j, both, players) + LEVEL / 4.0
    solve = solver(cells, found.slopes, diagonal, home)
    among = np.flatnonzero(share)
    some = among[np.linspace(0, len(among) - 1, min(PROBES, len(among))).astype(int)]
    ratios = []
    for k in some.tolist():
        side = np.zeros(size)
        side[k] = 1.0
        side[:players] -= share
        ratios.append(float(side @ solve(side, 1e-7)) * own[k])
    return found.phi / own * float(np.median(ratios))


def averaged(constant: float, past: View, now: View) -> View:
    """The two views averaged: ``constant`` is the weight of the first. What they disagree on widens the intervals."""
    if constant == 1.0:
        return past
    if constant == 0.0:
        return now
    rest, apart = 1.0 - constant, past.z - now.z
    z = constant * past.z + rest * now.z
    variances = constant * past.variances + rest * now.variances + constant * rest * apart * apart
    if past.covariance is None:
        return View(z, variances)
    both = constant * past.covariance + constant * rest * np.outer(apart, apart)
    both[np.arange(len(z)), np.arange(len(z))] += rest * now.variances
    return View(z, variances, both)


def momentary(u: Any, variances: Any, ranked: Any) -> View:
    """A view from strengths that follow the games."""
    return View(u - centre(ranked) @ u, variances)
