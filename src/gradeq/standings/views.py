"""The all-time view of a pair table, and its average with the view of the moment, weighted by what the games say."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradeq.ledger.meetings import Cells
from gradeq.standings.cells import LEVEL
from gradeq.standings.fit import DENSE, Fit, covariance, fit
from gradeq.standings.sparse import Common, estimated


class View(NamedTuple):
    """Strengths relative to the mean of some players. ``covariance``: a matrix, or for many players its rows.

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


def all_time(cells: Cells, players: int, home: bool, share: Any) -> AllTime:
    """Fit the table; intervals are relative to the mean by ``share``."""
    found = fit(cells, players, home)
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


def centre(ranked: Any, joined: Any) -> Any:
    """The weights of the mean that strengths are relative to: of the ranked players, or of all who are ``joined``.

    A mean over players whom no game joins to the others would make everyone as unsure as they are.
    """
    chosen = ranked if ranked.any() else joined
    return chosen / max(int(chosen.sum()), 1)


def opened(view: View, group: Any, joined: Any) -> View:
    """A view in which the level of those who are not ``joined`` to the others is as open as their games leave it.

    ``group``: the group of each player. Only the draws against 0 tie the levels of two groups together.
    """
    if joined.all():
        return view
    sizes = np.bincount(group)[group]
    least = 4.0 / LEVEL * (1.0 / sizes + 1.0 / np.count_nonzero(joined))
    return view._replace(
        variances=np.where(joined, view.variances, np.maximum(view.variances, least))
    )


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


def momentary(u: Any, variances: Any, share: Any) -> View:
    """A view from strengths that follow the games."""
    return View(u - share @ u, variances)
