"""The leaderboard of Elo: fit, ranks with their uncertainty, bias and bound of every player."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np

from gradeq.certificates.certificate import player_bounds
from gradeq.engine import scalars
from gradeq.engine.players import HOME
from gradeq.errors import BadInput
from gradeq.kernels.account import BEFORE, GRADIENT, ROWS, WEIGHT
from gradeq.kernels.rating import STRIDE
from gradeq.layers.locking import Guarded, locked
from gradeq.leaderboard import fitting
from gradeq.leaderboard.fitting import AllTime, View, connected_groups
from gradeq.leaderboard.ranks import (
    CROWDED,
    WIDTH,
    Board,
    BoardView,
    Fitted,
    Home,
    Leader,
    Standing,
    headline,
    p_value,
    ranks,
    which_games,
)
from gradeq.ledger.pair_table import cells_of
from gradeq.rules.drift import Drift, DriftWeights
from gradeq.theory.features import ELO_POINTS_PER_LOGIT

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.columns import Bools
    from gradeq.layers.elo import Elo, EloInternals
    from gradeq.ledger.batch import Floats, Ints
    from gradeq.ledger.state import State
    from gradeq.theory import HarmCap


FEW = 30  # games; with fewer a player has no rank
UNSURE = 0.5  # players with a larger current variance have no rank
START = 1000.0
VIEWS = ("auto", "all-time", "now")


def board_of(elo: Elo, view: BoardView = "auto") -> Board:
    """Everyone with a game: the ranked by Elo, then the others."""
    if not isinstance(view, str) or view not in VIEWS:
        raise BadInput(f"view={view!r}: must be auto, all-time or now")
    rule = elo.internals.rule
    drift, state = rule.drift, rule.written(elo.internals.state.read())
    sums = state.view("sums").reshape(-1, STRIDE)
    played = (sums[:, ROWS] > 0.0) & (sums[:, WEIGHT] > 0.0)
    played[0] = False  # the first side is no player
    all_names = elo.internals.names.names
    places = sorted(np.flatnonzero(played).tolist(), key=all_names.__getitem__)
    if not places:
        return Board([], ("No games yet.", ""), None, None, None, None, None, [])
    names, players, games = [all_names[k] for k in places], len(places), sums[places, ROWS]
    index = np.zeros(len(all_names), dtype=np.int64)
    index[places] = np.arange(players)
    cells, crowded = cells_of(state, index), bool(state.crowded[0])
    sided = elo.internals.names.home and (crowded or bool(cells.h.any()))
    constant = float(drift.weights(state)[0])
    u, variances = drift.now(state)
    weight = {"all-time": 1.0, "now": 0.0, "auto": constant}[view] if not crowded else 0.0
    group = np.zeros(players, dtype=np.int64) if crowded else connected_groups(cells, players)
    groups = groups_of(group, names)
    joined = group == group[names.index(groups[0][0])]
    enough = games >= FEW
    ranked = enough & joined & ((1.0 - weight) * variances[places] <= UNSURE)
    share = fitting.centre_weights(ranked, joined)
    now = View(u[places] - share @ u[places], variances[places])
    if crowded:
        past = AllTime(None, now, (float(u[0]), float(variances[0])))
    else:
        past = fitting.all_time(cells, players, sided, share)
    average = fitting.widen_unconnected(fitting.average_views(weight, past.view, now), group, joined)
    leader, rank_ranges = ranks_of(average, ranked, names)
    rows = rows_of(elo, state, (places, names), (average, past.view, now), rank_ranges)
    first = names[int(np.argmax(np.where(ranked, past.view.z, -np.inf)))] if ranked.any() else None
    total = round(float(games.sum()) / 2.0)
    note = CROWDED if crowded else which_games(view, constant, total, first)
    lines = headline(leader, FEW, int(enough.sum()), int((enough & joined).sum())), note
    fit, fitted = past.fit, None
    if fit is not None:
        fitted = Fitted(fit.residual, fit.phi, fit.steps, len(cells.W), len(groups))
    home = home_of(elo, state, sums[0], past, weight, float(u[0]), float(variances[0])) if sided else None
    speed = drift.speed(drift.drifting(state))
    return Board(rows, lines, leader, constant, speed, fitted, home, groups, weight)


def ranks_of(view: View, ranked: Bools, names: list[str]) -> tuple[Leader | None, Ints]:
    """Who is first, and rank, lowest and highest open rank of each player (0: not ranked)."""
    table = np.zeros((len(ranked), 3), dtype=np.int64)
    among = np.flatnonzero(ranked)
    if not len(among):
        return None, table
    order = ranks(view.z[among], view.variances[among], fitting.among(view.covariance, among))
    table[among] = np.stack([order.rank, order.low, order.high], axis=1)
    lead = among[int(np.argmax(view.z[among]))]
    others = int(np.count_nonzero(order.low == 1)) - int(table[lead, 1] == 1)
    return Leader(names[lead], p_value(order.smallest_t), order.verified, others), table


def rows_of(
    elo: Elo, state: State, players: tuple[list[int], list[str]], views: tuple[View, View, View], rank_ranges: Ints
) -> list[Standing]:
    """One row for each player, by its place in the state and its name; ``views``: average, all-time, now."""
    (places, names), (view, past, now) = players, views
    sums = state.view("sums").reshape(-1, STRIDE)[places]
    games, weight = sums[:, ROWS], sums[:, WEIGHT]
    won, bias = 0.5 * weight - sums[:, BEFORE], sums[:, GRADIENT] / weight
    win_rate = won / weight
    wins = np.where(weight == games, won, win_rate * games)
    bound, vacuous = player_bounds(elo, weight, win_rate)
    half = WIDTH * np.sqrt(np.maximum(view.variances, 0.0))
    tracked = elo.internals.rule.tracked(state)[places]
    points = [START + ELO_POINTS_PER_LOGIT * z for z in (view.z, view.z - half, view.z + half, past.z, now.z)]
    columns = {
        "elo": points[0], "elo_low": points[1], "elo_high": points[2], "games": games.astype(np.int64), "wins": wins,
        "win_rate": win_rate, "predicted_win_rate": win_rate + bias, "bias": bias, "bound": bound, "rating": view.z,
        "elo_all_time": points[3], "elo_now": points[4], "tracked": tracked, "vacuous": vacuous,
    }  # fmt: skip
    order = np.lexsort((-view.z, rank_ranges[:, 0] == 0))
    rows = []
    for k, *values in zip(order.tolist(), *(column[order].tolist() for column in columns.values()), strict=True):
        rank, low, high = rank_ranges[k].tolist() if rank_ranges[k, 0] else (None,) * 3
        own = dict(zip(columns, values, strict=True))
        rows.append(Standing(rank=rank, rank_low=low, rank_high=high, player=names[k], **own))
    return rows


def groups_of(first: Ints, names: list[str]) -> list[list[str]]:
    """Players who are connected by games, the largest group first."""
    groups: dict[int, list[str]] = {}
    for name, group in zip(names, first.tolist(), strict=True):
        groups.setdefault(group, []).append(name)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0]))


def home_of(elo: Elo, state: State, sums: Floats, past: AllTime, weight: float, u: float, variance: float) -> Home:
    """The advantage of the first side, averaged over both views as for players, and its certificate."""
    scale = elo.internals.names.scale
    assert past.home is not None
    value, spread = past.home
    z = weight * value + (1.0 - weight) * u
    spread = weight * spread + (1.0 - weight) * variance + weight * (1.0 - weight) * (value - u) ** 2
    points, half = ELO_POINTS_PER_LOGIT * scale, WIDTH * float(np.sqrt(max(spread, 0.0)))
    low, high = (points * (z + side * half) for side in (-1.0, 1.0))
    count = float(sums[WEIGHT]) * scale
    moved = -float(elo.internals.rule.tracked(state)[0]) / elo.step
    return Home(points * z, low, high, float(sums[GRADIENT]) / count, moved / count)


class Standings(Guarded):
    """The readers of Elo."""

    dates: bool
    internals: EloInternals

    @locked
    def leaderboard(self, view: BoardView = "auto") -> list[Standing]:
        """Everyone who has played, ranked players first: Elo with interval and open ranks, win rates, bias, bound.

        ``view``: "all-time", the fit of all games; "now", current strengths; "auto" averages the two by
        the weight that the games give to constant strengths. A step of its own changes forecasts, not the board.
        """
        return self.board(view).rows

    @locked
    def board(self, view: BoardView = "auto") -> Board:
        """The leaderboard with its summary: ``lines`` (who is first), ``leader``, ``fit``, ``groups``."""
        return board_of(cast("Elo", self), view)

    @locked
    def drift(self) -> DriftWeights:
        """What the games say about drift: the weight of each speed (variance a game), and of none (``constant``)."""
        return Drift(self.dates).evidence(self.internals.state)

    @locked
    def connected(self) -> list[list[str]]:
        """Groups of players connected by games, the largest first; players of different groups cannot be compared."""
        return self.board().groups

    @locked
    def equilibrium(self) -> Equilibrium:
        """Exact averages for each player, the certificate from the ratings, the proven bound, bias and log loss."""
        from gradeq.certificates.certificate import certify_elo

        return certify_elo(cast("Elo", self))

    @locked
    def labels_until(self, bound: float) -> int | None:
        """How many more games until every player's proven bound is below this, if games continue as before."""
        from gradeq.certificates.certificate import more_games

        return more_games(cast("Elo", self), scalars.bound(bound))

    @locked
    def harm_cap(self) -> HarmCap:
        """The most that the step can cost in log loss against a coin; its sentence says when nothing is proven."""
        from gradeq.certificates.certificate import elo_harm_cap

        return elo_harm_cap(cast("Elo", self))

    @property
    @locked
    def ratings(self) -> dict[str, float]:
        """The current strength of each player, in natural log-odds; with ``auto`` that of the heaviest filter."""
        return self._read(self.internals.rule.ratings, 1)

    @property
    @locked
    def theta(self) -> dict[str, float]:
        """The parameters that carry the certificate, by name; with ``auto`` those of the final step."""
        home = self.internals.names.home
        parameters = self._read(self.internals.rule.tracked, 0 if home else 1)
        if home:
            parameters[HOME] *= self.internals.names.scale
        return parameters

    def _read(self, column: Callable[[State], Floats], skip: int) -> dict[str, float]:
        values = column(self.internals.rule.written(self.internals.state))[skip:].tolist()
        return dict(zip(self.internals.names.names[skip:], values, strict=True))
