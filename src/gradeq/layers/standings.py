"""The leaderboard of Elo: the fit of all games, the strengths of the moment, or both averaged; ranks, bias and bound.

The board is the Bradley-Terry fit of the pair table (``standings``): the same for games in any order, with intervals
for the sampling of games. Where strengths drift the strengths of the moment take its place, by the weight that the
games give to drift. Elo, intervals and ranks are statistics; win rates, bias, bound and ``tracked`` are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradeq.certificate_elo import player_bounds
from gradeq.errors import BadInput
from gradeq.kernels.account import BEFORE, GRADIENT, ROWS, WEIGHT
from gradeq.kernels.rating import STRIDE
from gradeq.ledger.meetings import cells_of
from gradeq.ledger.values import new
from gradeq.standings import views
from gradeq.standings.cells import connected
from gradeq.standings.ranks import WIDTH, ranks
from gradeq.standings.views import AllTime, View
from gradeq.standings.words import (
    CROWDED,
    Leader,
    Seen,
    headline,
    nobody_ranked,
    two_sided,
    which_games,
)
from gradeq.tables import in_html
from gradeq.theory.elo import ELO_POINTS_PER_LOGIT

if TYPE_CHECKING:
    from gradeq.layers.elo import Elo

FEW = 30  # games; with fewer a player has no rank
UNSURE = 0.5  # variance of the moment above which a player has no rank: that of an interval of +-WITHIN Elo
START = 1000.0
SHOWN, LONGEST = 20, 32  # players that a notebook shows, letters of a name
VIEWS = ("auto", "all-time", "now")


class Standing(NamedTuple):
    """One player. Win rates and bias are from the player's own side, weighted by the games' weights.

    ``elo``: 1000 is the mean of the ranked players; ``elo_low``, ``elo_high``: 95 % interval; ``rank``: position by
    elo; ``rank_low``, ``rank_high``: the ranks left open (95 %). No rank: fewer than 30 games, a strength of the
    moment that is not known within 240 Elo, or no chain of games to the largest group. ``wins``: ties count half,
    with weights win_rate times games; ``bias``: predicted_win_rate - win_rate, -tracked / (eta games) for a
    constant step without penalty; ``bound``: what it could be at most after any games like these, None where
    nothing is proven; ``rating``: ``elo`` in natural log-odds; ``elo_all_time``, ``elo_now``: the two views;
    ``tracked``: the online parameter that carries the certificate.
    """

    rank: int | None
    rank_low: int | None
    rank_high: int | None
    player: str
    elo: float
    elo_low: float
    elo_high: float
    games: int
    wins: float
    win_rate: float
    predicted_win_rate: float
    bias: float
    bound: float | None
    rating: float
    elo_all_time: float
    elo_now: float
    tracked: float
    vacuous: bool | None

    def __getitem__(self, key: Any) -> Any:
        """A field by its name as well as by its place: row["player"]."""
        return getattr(self, key) if isinstance(key, str) else tuple.__getitem__(self, key)


class Fitted(NamedTuple):
    """How the fit went: what the solver left of its equations, spread of scores next to coins, and counts."""

    residual: float
    phi: float
    newton_steps: int
    cells: int
    groups: int


class Home(NamedTuple):
    """The advantage of the first side in Elo, its 95 % interval, its bias (mean error of games with one)."""

    elo: float
    low: float
    high: float
    bias: float
    from_state: float


class Board(NamedTuple):
    """The rows of a leaderboard and what is said about them, the first line first."""

    rows: list[Standing]
    lines: tuple[str, str]
    leader: Leader | None
    constant: float | None  # weight of constant strengths; None: not asked
    drift: (
        tuple[float, str] | None
    )  # variance that strengths gain, and in what, by the filter of the moment
    fit: Fitted | None
    home: Home | None
    groups: list[list[str]]
    weight: float = (
        1.0  # of the fit of all games in what is shown; the rest: strengths of the moment
    )

    def _repr_html_(self) -> str:
        """The first players as a table for notebooks."""
        head = ["player", "rank", "range", "elo", "95 %", "games", "win rate", "predicted"]
        rows = [
            [
                row.player[:LONGEST],
                "" if row.rank is None else str(row.rank),
                "" if row.rank is None else f"{row.rank_low}-{row.rank_high}",
                f"{row.elo:.0f}",
                f"{row.elo_low:.0f} to {row.elo_high:.0f}",
                f"{row.games:,}",
                f"{row.win_rate:.3f}",
                f"{row.predicted_win_rate:.3f}",
            ]
            for row in self.rows[:SHOWN]
        ]
        more = len(self.rows) - len(rows)
        said = " ".join(line for line in self.lines if line)
        return in_html(said, head, rows, f"... and {more:,} more" if more else "")


def board_of(elo: Elo, view: Seen = "auto") -> Board:
    """Everyone with a game: the ranked by Elo, then the others."""
    if not isinstance(view, str) or view not in VIEWS:
        raise BadInput(f"view={view!r}: must be auto, all-time or now")
    rule = elo._rule
    drift, state = rule.drift, rule.written(elo._state.read())
    sums = state.view("sums").reshape(-1, STRIDE)
    played = (sums[:, ROWS] > 0.0) & (sums[:, WEIGHT] > 0.0)
    played[0] = False  # the first side is no player
    known = elo._names.names
    own = sorted(np.flatnonzero(played).tolist(), key=known.__getitem__)
    if not own:
        return Board([], ("No games yet.", ""), None, None, None, None, None, [])
    names, players, games = [known[k] for k in own], len(own), sums[own, ROWS]
    rank = np.zeros(len(known), dtype=np.int64)
    rank[own] = np.arange(players)
    cells, crowded = cells_of(state, rank), bool(state.crowded[0])
    sided = elo._names.home and (crowded or bool(cells.h.any()))
    constant = float(drift.weights(state)[0])
    u, variances = drift.now(state)
    weight = {"all-time": 1.0, "now": 0.0, "auto": constant}[view] if not crowded else 0.0
    group = np.zeros(players, dtype=np.int64) if crowded else connected(cells, players)
    groups = groups_of(group, names)
    joined = group == group[names.index(groups[0][0])]
    enough = games >= FEW
    ranked = enough & joined & ((1.0 - weight) * variances[own] <= UNSURE)
    share = views.centre(ranked, joined)
    now = views.momentary(u[own], variances[own], share)
    if crowded:
        past = AllTime(None, now, (float(u[0]), float(variances[0])))
    else:
        past = views.all_time(cells, players, sided, share)
    shown = views.opened(views.averaged(weight, past.view, now), group, joined)
    leader, places = places_of(shown, ranked, names)
    rows = rows_of(elo, state, own, names, (shown, past.view, now), places)
    first = None
    if ranked.any():
        first = names[int(np.argmax(np.where(ranked, past.view.z, -np.inf)))]
    total = round(float(games.sum()) / 2.0)
    said = CROWDED if crowded else which_games(view, constant, total, first)
    nobody = nobody_ranked(FEW, int(enough.sum()), int((enough & joined).sum()))
    lines, found, fitted = (headline(leader, nobody), said), past.fit, None
    if found is not None:
        fitted = Fitted(found.residual, found.phi, found.steps, len(cells.W), len(groups))
    home = (
        home_of(elo, state, sums[0], past, weight, float(u[0]), float(variances[0]))
        if sided
        else None
    )
    speed = drift.speed(drift.drifting(state))
    return Board(rows, lines, leader, constant, speed, fitted, home, groups, weight)


def places_of(shown: View, ranked: Any, names: list[str]) -> tuple[Leader | None, Any]:
    """Who is first, and rank, lowest and highest open rank of each player (0: none)."""
    places = np.zeros((len(ranked), 3), dtype=np.int64)
    among = np.flatnonzero(ranked)
    if not len(among):
        return None, places
    found = ranks(shown.z[among], shown.variances[among], views.among(shown.covariance, among))
    places[among] = np.stack([found.rank, found.low, found.high], axis=1)
    lead = among[int(np.argmax(shown.z[among]))]
    others = int(np.count_nonzero(found.low == 1)) - int(places[lead, 1] == 1)
    return Leader(names[lead], two_sided(found.least), found.verified, others), places


def rows_of(
    elo: Elo,
    state: Any,
    own: list[int],
    names: list[str],
    shown: tuple[View, View, View],
    places: Any,
) -> list[Standing]:
    """One row for each player."""
    sums, (view, past, now) = state.view("sums").reshape(-1, STRIDE)[own], shown
    games, weight = sums[:, ROWS], sums[:, WEIGHT]
    won, bias = 0.5 * weight - sums[:, BEFORE], sums[:, GRADIENT] / weight
    win_rate = won / weight
    wins = np.where(weight == games, won, win_rate * games)
    bound, vacuous = player_bounds(elo, weight, win_rate)
    half = WIDTH * np.sqrt(np.maximum(view.variances, 0.0))
    tracked = elo._rule.tracked(state)[own]
    points = [
        START + ELO_POINTS_PER_LOGIT * z
        for z in (view.z, view.z - half, view.z + half, past.z, now.z)
    ]
    columns = (
        points[0], points[1], points[2], games.astype(np.int64), wins, win_rate, win_rate + bias, bias,
        bound, view.z, points[3], points[4], tracked, vacuous,
    )  # fmt: skip
    order = np.lexsort((-view.z, places[:, 0] == 0))
    lists = [column[order].tolist() for column in columns]
    made = []
    for k, (at, values) in enumerate(zip(order.tolist(), zip(*lists, strict=True), strict=True)):
        rank = places[at].tolist() if places[at, 0] else (None,) * 3
        made.append(new(Standing, (*rank, names[order[k]], *values)))
    return made


def groups_of(first: Any, names: list[str]) -> list[list[str]]:
    """Players who are joined by games, the largest group first."""
    found: dict[int, list[str]] = {}
    for name, group in zip(names, first.tolist(), strict=True):
        found.setdefault(group, []).append(name)
    return sorted(found.values(), key=lambda group: (-len(group), group[0]))


def home_of(
    elo: Elo, state: Any, sums: Any, past: Any, weight: float, u: float, variance: float
) -> Home:
    """The advantage of the first side, both views averaged as the players' are; its certificate."""
    scale = elo._names.scale
    value, spread = past.home
    z = weight * value + (1.0 - weight) * u
    spread = (
        weight * spread + (1.0 - weight) * variance + weight * (1.0 - weight) * (value - u) ** 2
    )
    points, half = ELO_POINTS_PER_LOGIT * scale, WIDTH * float(np.sqrt(max(spread, 0.0)))
    low, high = (points * (z + side * half) for side in (-1.0, 1.0))
    count = float(sums[WEIGHT]) * scale
    moved = -float(elo._rule.tracked(state)[0]) / elo.step
    return Home(points * z, low, high, float(sums[GRADIENT]) / count, moved / count)
