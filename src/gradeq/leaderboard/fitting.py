"""The penalised Bradley-Terry fit of a pair table, its standard errors, and the all-time view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gradeq.ledger.batch import Floats, Ints
from gradeq.ledger.pair_table import PairTable

Bools = NDArray[np.bool_]
Chosen = Bools | Ints  # some players: a mask, or their places

PRIOR = 1.0  # pseudo-games of each player, all drawn, spread over the pairs that met
LEVEL = 1e-3  # draws of each player against strength 0: they fix the level and connect players who never met
FEW = 300  # players; with more, conjugate gradients are quicker than a dense matrix
DENSE = 2000  # players; with more, no dense matrix is built
MOST_ROUNDS = 5000  # of conjugate gradients
TOLERANCE = 1e-10
MOST_STEPS = 50  # of Newton
OWN_SPREAD_GAMES = 10.0  # games from which a pair's own spread counts as much as the common one
PROBES = 32  # players whose variance is computed exactly, to correct the others
KNOTS = 40
SWEEPS = 100  # averages over opponents, which order the players by the opponents they meet


def sigmoid(x: Floats) -> Floats:
    chances: Floats = 1.0 / (1.0 + np.exp(-np.clip(x, -700.0, 700.0)))
    return chances


def sum_at(places: Ints, weights: Floats, size: int) -> Floats:
    sums: Floats = np.bincount(places, weights, size)  # type: ignore[assignment]
    return sums


def per_player(cells: PairTable, weights: Floats, players: int) -> Floats:
    return sum_at(cells.i, weights, players) + sum_at(cells.j, weights, players)


def pseudo_games(cells: PairTable, players: int) -> Floats:
    """The drawn pseudo-games of each cell: those of both players, spread over their games."""
    share = PRIOR / np.maximum(per_player(cells, cells.W, players), 1.0)
    draws: Floats = cells.W * (share[cells.i] + share[cells.j])
    return draws


def squared_errors(cells: PairTable, p: Floats) -> Floats:
    """The sum of squared errors (times squared weights) of each cell."""
    squares: Floats = cells.VQ - 2.0 * p * cells.VS + p * p * cells.V
    return squares


def laplacian(cells: PairTable, weights: Floats, size: int, sides: Floats | None = None) -> Floats:
    """The sum of weight times z z' over cells, z = e_i - e_j; with ``sides``, the last entry of z is the side h."""
    i, j = cells.i, cells.j
    half = sum_at(i * size + j, weights, size * size).reshape(size, size)
    matrix: Floats = -1.0 * (half + half.T)  # without a cell bincount returns integers
    matrix[np.arange(size), np.arange(size)] += per_player(cells, weights, size)
    if sides is not None:
        weighted = weights * sides
        row = np.bincount(i, weighted, size) - np.bincount(j, weighted, size)
        row[-1] = np.sum(weighted * sides)
        matrix[-1, :] = matrix[:, -1] = row
    return matrix


def hessian(cells: PairTable, slopes: tuple[Floats, Floats], diagonal: Floats, home: bool) -> Floats:
    """Second derivatives of the fit: of games, of pseudo-games, and ``diagonal``."""
    size = len(diagonal)
    matrix = laplacian(cells, slopes[0], size, cells.h if home else None) + laplacian(cells, slopes[1], size)
    matrix[np.arange(size), np.arange(size)] += diagonal
    return matrix


def connected_groups(cells: PairTable, players: int) -> Ints:
    """For each player the first player of its group: players who are connected by games.

    Every game between two groups merges them under the first player of the earlier one, until no such game is left.
    """
    first, one, two = np.arange(players), cells.i, cells.j
    while True:
        one, two = first[one], first[two]
        apart = one != two
        if not apart.any():
            return first
        one, two = one[apart], two[apart]
        np.minimum.at(first, np.maximum(one, two), np.minimum(one, two))
        while (first[first] != first).any():
            first = first[first]


def solver(
    cells: PairTable, slopes: tuple[Floats, Floats], diagonal: Floats, home: bool
) -> Callable[[Floats, float], Floats]:
    """H^-1 as a function of a right side and the largest residual allowed."""
    size = len(diagonal)
    if size <= FEW:
        matrix = hessian(cells, slopes, diagonal, home)
        return lambda right, _: np.linalg.solve(matrix, right).astype(np.float64, copy=False)
    i, j, both = cells.i, cells.j, slopes[0] + slopes[1]
    side = slopes[0] * cells.h

    def times(v: Floats) -> Floats:
        flow = both * (v[i] - v[j])
        if home:
            flow += side * v[-1]
        product: Floats = diagonal * v + sum_at(i, flow, size) - sum_at(j, flow, size)
        if home:
            product[-1] += np.sum(side * (v[i] - v[j])) + np.sum(side * cells.h) * v[-1]
        return product

    scale = diagonal + np.bincount(i, both, size) + np.bincount(j, both, size)
    if home:
        scale[-1] += np.sum(side * cells.h)

    def conjugate_gradients(right: Floats, tolerance: float) -> Floats:
        x, residual = np.zeros(size), right.copy()
        z = residual / scale
        direction, norm = z.copy(), float(residual @ z)
        for _ in range(MOST_ROUNDS):
            if np.abs(residual).max() < tolerance:
                break
            image = times(direction)
            step = norm / float(direction @ image)
            x += step * direction
            residual -= step * image
            z = residual / scale
            previous, norm = norm, float(residual @ z)
            direction = z + (norm / previous) * direction
        return x

    return conjugate_gradients


@dataclass(frozen=True)
class Fit:
    """Strengths, then the advantage of the first side if any; ``phi``: the spread of scores over a coin's."""

    theta: Floats
    p: Floats
    slopes: tuple[Floats, Floats]  # of the cells' games and of their pseudo-games
    residual: float
    steps: int
    phi: float


def fit(cells: PairTable, players: int, home: bool) -> Fit:
    """Damped Newton steps from zero."""
    size = players + int(home)
    theta, draws = np.zeros(size), pseudo_games(cells, players)
    level = np.where(np.arange(size) < players, LEVEL, 0.0)
    enough = TOLERANCE * max(1.0, float(cells.W.sum()) / max(players, 1))
    value, p, even = objective(cells, draws, level, theta, home)
    done = 0
    while True:
        pulls = cells.W * p - cells.S
        both = pulls + draws * (even - 0.5)
        gradient = np.zeros(size)  # without a cell bincount returns integers
        gradient += np.bincount(cells.i, both, size) - np.bincount(cells.j, both, size)
        if home:
            gradient[-1] += np.sum(pulls * cells.h)
        q = sigmoid(theta)
        gradient += level * (q - 0.5)
        slopes = cells.W * p * (1.0 - p), draws * even * (1.0 - even)
        left = float(np.max(np.abs(gradient), initial=0.0))
        if left < enough or done == MOST_STEPS:
            break
        diagonal = level * q * (1.0 - q) + 1e-12
        step = solver(cells, slopes, diagonal, home)(gradient, max(1e-2 * left, 0.1 * enough))
        share = 1.0
        while True:
            tried = objective(cells, draws, level, theta - share * step, home)
            if tried[0] <= value + 1e-12 * abs(value) or share < 1e-6:
                break
            share /= 2.0
        theta, (value, p, even), done = theta - share * step, tried, done + 1
    spread = float(np.sum(cells.V * p * (1.0 - p)))
    phi = float(np.sum(squared_errors(cells, p))) / spread if spread else 1.0
    return Fit(theta, p, slopes, left, done, phi)


def objective(
    cells: PairTable, draws: Floats, level: Floats, theta: Floats, home: bool
) -> tuple[float, Floats, Floats]:
    """The penalised log loss, and the probability that i wins each cell, as played and on neutral ground."""
    d = theta[cells.i] - theta[cells.j]
    x = d + cells.h * theta[-1] if home else d
    value = (
        np.sum(cells.W * np.logaddexp(0.0, x) - cells.S * x)
        + np.sum(draws * (np.logaddexp(0.0, d) - d / 2.0))
        + np.sum(level * (np.logaddexp(0.0, theta) - theta / 2.0))
    )
    return float(value), sigmoid(x), sigmoid(d)


def covariance(cells: PairTable, players: int, home: bool, fitted: Fit) -> Floats:
    """H^-1 J H^-1 of the strengths; J sums squared errors, pulled to the common spread where games are few."""
    p, size = fitted.p, players + int(home)
    q = sigmoid(fitted.theta)
    level = np.where(np.arange(size) < players, LEVEL, 0.0) * q * (1.0 - q) + 1e-12
    bread = hessian(cells, fitted.slopes, level, home)
    count = cells.W * cells.W / np.maximum(cells.V, 1e-300)
    trust = count / (count + OWN_SPREAD_GAMES)
    common = fitted.phi * cells.V * p * (1.0 - p)
    draws = fitted.phi * pseudo_games(cells, players) * p * (1.0 - p)
    sides = cells.h if home else None
    meat = laplacian(cells, trust * squared_errors(cells, p) + (1.0 - trust) * common + draws, size, sides)
    # The draws against 0 count as games too: levels that only they connect stay unknown.
    meat[np.arange(size), np.arange(size)] += level
    inverse = np.linalg.inv(bread)
    sandwich: Floats = inverse @ meat @ inverse
    return sandwich


@dataclass(frozen=True)
class SharedCovariance:
    """A covariance matrix of many players, row by row, interpolated between knots.

    ``table``: covariances of knots and players; a player lies at ``place`` plus ``part`` knots. For two averaged
    views, ``weight`` multiplies the covariances, and the products of ``apart`` are added.
    """

    table: Floats
    place: Ints
    part: Floats
    weight: float = 1.0
    apart: Floats | None = None

    def row(self, r: int) -> Floats:
        low, part = self.table[self.place[r] : self.place[r] + 2], self.part[r]
        row: Floats = np.array([self.weight * (1.0 - part), self.weight * part]) @ low
        return row if self.apart is None else row + self.apart[r] * self.apart

    @property
    def diagonal(self) -> Floats:
        """The variance of each player, without ``weight`` and ``apart``."""
        each = np.arange(len(self.place))
        low, high = self.table[self.place, each], self.table[self.place + 1, each]
        variances: Floats = (1.0 - self.part) * low + self.part * high
        return variances

    def among(self, chosen: Chosen) -> SharedCovariance:
        apart = None if self.apart is None else self.apart[chosen]
        table, place, part = self.table[:, chosen], self.place[chosen], self.part[chosen]
        return SharedCovariance(table, place, part, self.weight, apart)


def estimate_covariance(
    cells: PairTable, players: int, home: bool, fitted: Fit, share: Floats
) -> tuple[Floats, SharedCovariance, float]:
    """Variances and covariances of strengths minus their mean weighted by ``share``; the first side's variance."""
    size, both = players + int(home), fitted.slopes[0] + fitted.slopes[1]
    diagonal = np.where(np.arange(size) < players, LEVEL / 4.0, 1e-12)
    precision = per_player(cells, both, players) + LEVEL / 4.0
    common = knot_covariance(cells, fitted.theta[:players], both, share)
    smooth = common.diagonal
    solve = solver(cells, fitted.slopes, diagonal, home)
    among = np.flatnonzero(share)
    rests = []
    for k in among[np.linspace(0, len(among) - 1, min(PROBES, len(among))).astype(int)].tolist():
        side = np.zeros(size)
        side[k] = 1.0
        side[:players] -= share
        rests.append((float(side @ solve(side, 1e-7)) - smooth[k]) * precision[k])
    variances = fitted.phi * (smooth + max(float(np.median(rests)), 0.0) / precision)
    first = np.zeros(size)
    first[-1] = 1.0
    side_variance = fitted.phi * float(first @ solve(first, 1e-7)) if home else float("nan")
    return variances, replace(common, weight=fitted.phi), side_variance


def knot_covariance(cells: PairTable, theta: Floats, weights: Floats, share: Floats) -> SharedCovariance:
    """The inverse of the games' matrix for strengths that are linear between knots, minus their mean."""
    players = len(theta)
    knots = max(2, min(KNOTS, players // 10))
    field, total = theta, per_player(cells, weights, players)
    for _ in range(SWEEPS):
        met = np.bincount(cells.i, weights * field[cells.j], players)
        met += np.bincount(cells.j, weights * field[cells.i], players)
        field = met / np.maximum(total, 1e-300)
    at = np.empty(players)
    at[np.argsort(field, kind="stable")] = np.linspace(0.0, knots - 1.0, players)
    place = np.minimum(at.astype(np.int64), knots - 2)
    part = at - place
    around = [(place, 1.0 - part), (place + 1, part)]
    ends = [(p[s], sign * f[s]) for s, sign in ((cells.i, 1.0), (cells.j, -1.0)) for p, f in around]
    matrix = np.eye(knots) * (LEVEL / 4.0 * players / knots)
    for p, f in ends:
        for q, g in ends:
            matrix += np.bincount(p * knots + q, weights * f * g, knots * knots).reshape(knots, -1)
    middle = sum(np.bincount(p, share * f, knots) for p, f in around)
    out = np.eye(knots) - np.outer(np.ones(knots), middle)
    inverse = out @ np.linalg.inv(matrix) @ out.T
    table = inverse[:, place] * (1.0 - part) + inverse[:, place + 1] * part
    return SharedCovariance(table, place, part)


@dataclass(frozen=True)
class View:
    """Strengths relative to the mean of some players.

    ``covariance``: a matrix, or for many players its rows; None: independent estimates.
    """

    z: Floats
    variances: Floats
    covariance: Floats | SharedCovariance | None = None


@dataclass(frozen=True)
class AllTime:
    """The fit (None: there was no table), its view, and the advantage of the first side with its variance, if any."""

    fit: Fit | None
    view: View
    home: tuple[float, float] | None


def all_time(cells: PairTable, players: int, home: bool, share: Floats) -> AllTime:
    """Fit the table; strengths are relative to their mean weighted by ``share``."""
    fitted = fit(cells, players, home)
    z = fitted.theta[:players] - share @ fitted.theta[:players]
    if players > DENSE:
        variances, common, first = estimate_covariance(cells, players, home, fitted, share)
        view = View(z, variances, common)
    else:
        whole = covariance(cells, players, home, fitted)
        first = float(whole[-1, -1])
        among = whole[:players, :players]
        middle = among @ share
        among = among - middle[:, None] - middle[None, :] + share @ middle
        view = View(z, np.diag(among).copy(), among)
    return AllTime(fitted, view, (float(fitted.theta[-1]), first) if home else None)


def centre_weights(ranked: Bools, joined: Bools) -> Floats:
    """Weights of the mean that is subtracted from strengths: over ranked players, or over all who are ``joined``.

    Players whom no game connects to the others would make everyone's interval as wide as theirs.
    """
    chosen = ranked if ranked.any() else joined
    weights: Floats = chosen / max(int(chosen.sum()), 1)
    return weights


def widen_unconnected(view: View, group: Ints, joined: Bools) -> View:
    """A view with wider intervals for players who are not ``joined``: only draws against 0 fix their group's level.

    ``group``: the group of each player.
    """
    if joined.all():
        return view
    sizes = np.bincount(group)[group]
    least = 4.0 / LEVEL * (1.0 / sizes + 1.0 / np.count_nonzero(joined))
    return replace(view, variances=np.where(joined, view.variances, np.maximum(view.variances, least)))


def average_views(constant: float, past: View, now: View) -> View:
    """Both views averaged with weight ``constant`` on the first; their differences widen the intervals."""
    if constant == 1.0:
        return past
    if constant == 0.0:
        return now
    rest, apart = 1.0 - constant, past.z - now.z
    z = constant * past.z + rest * now.z
    variances = constant * past.variances + rest * now.variances + constant * rest * apart * apart
    if isinstance(past.covariance, SharedCovariance):
        weight = past.covariance.weight * constant
        shared = replace(past.covariance, weight=weight, apart=np.sqrt(constant * rest) * apart)
        return View(z, variances, shared)
    assert past.covariance is not None
    both = constant * past.covariance + constant * rest * np.outer(apart, apart)
    both[np.arange(len(z)), np.arange(len(z))] += rest * now.variances
    return View(z, variances, both)


def among(covariance: Floats | SharedCovariance | None, chosen: Chosen) -> Floats | SharedCovariance | None:
    """The covariances of some players."""
    if isinstance(covariance, SharedCovariance):
        return covariance.among(chosen)
    return None if covariance is None else covariance[np.ix_(chosen, chosen)]
