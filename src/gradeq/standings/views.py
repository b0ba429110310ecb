"""The all-time view of a pair table, and its average with the view of the moment, weighted by what the games say."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradeq.ledger.meetings import Cells
from gradeq.standings.fit import DENSE, Fit, covariance, fit
from gradeq.standings.sparse import Common, estimated


class View(NamedTuple):
    """Strengths relative to the mean of the ranked players. ``covariance``: a matrix, or for many players its rows.

    None: estimates count as independent.
    """

    z: Any
    variances: Any
    covariance: Any = None


class AllTime(NamedTuple):
    """The fit (None: no table was kept), its view, and the advantage of the first side (None where it has none)."""

    fit: Fit | None
    view: View
    home: tuple[float, float] | None


def all_time(cells: Cells, players: int, home: bool, ranked: Any) -> AllTime:
    """Fit the table; intervals are relative to the mean of the ranked players (all, if nobody is ranked)."""
    found = fit(cells, players, home)
    share = centre(ranked)
    z = found.theta[:players] - share @ found.theta[:players]
    if players > DENSE:
        variances, common, first = estimated(cells, players, home, found, share)
        return AllTime(found, View(z, variances, common), at_home(found, home, first))
    whole = covariance(cells, players, home, found)
    own = whole[:players, :players]
    middle = own @ share
    own = own - middle[:, None] - middle[None, :] + share @ middle
    return AllTime(
        found, View(z, np.diag(own).copy(), own), at_home(found, home, float(whole[-1, -1]))
    )


def centre(ranked: Any) -> Any:
    """The weights of the mean that strengths are relative to."""
    chosen = ranked if ranked.any() else np.ones(len(ranked), dtype=bool)
    return chosen / max(int(chosen.sum()), 1)


def at_home(found: Fit, home: bool, variance: float) -> tuple[float, float] | None:
    """The advantage of the first side and its variance."""
    return (float(found.theta[-1]), variance) if home else None


def averaged(constant: float, past: View, now: View) -> View:
    """The two views averaged: ``constant`` is the weight of the first. What they disagree on widens the intervals."""
    if constant == 1.0:
        return past
    if constant == 0.0:
        return now
    rest, apart = 1.0 - constant, past.z - now.z
    z = constant * past.z + rest * now.z
    variances = constant * past.variances + rest * now.variances + constant * rest * apart * apart
    if isinstance(past.covariance, Common):
        own = past.covariance.weight * constant
        shared = past.covariance._replace(weight=own, apart=np.sqrt(constant * rest) * apart)
        return View(z, variances, shared)
    both = constant * past.covariance + constant * rest * np.outer(apart, apart)
    both[np.arange(len(z)), np.arange(len(z))] += rest * now.variances
    return View(z, variances, both)


def among(covariance: Any, chosen: Any) -> Any:
    """The covariances of some players."""
    if covariance is None or isinstance(covariance, Common):
        return None if covariance is None else covariance.among(chosen)
    return covariance[np.ix_(chosen, chosen)]


def momentary(u: Any, variances: Any, ranked: Any) -> View:
    """A view from strengths that follow the games."""
    return View(u - centre(ranked) @ u, variances)
