"""The leaderboard of Elo: ratings with their intervals and shared ranks, win rates, bias and bound.

The interval is that of the rating as it stands, a last iterate that keeps moving. Linearised, a game of step eta
contracts a deviation by 1 - eta p (1 - p) and adds noise eta e, so its variance obeys
V <- (1 - eta p (1 - p))^2 V + (eta e)^2, a sandwich with the observed squared errors in the middle. It is carried
along with each rating, so it costs nothing to ask for, needs no past games, and goes on after a resume. From few
games it is eta^2 times the sum of e^2, after many about eta/2 times the mean e^2 / (p (1 - p)): what a bootstrap of
the games gives (a test compares them). Opponents count as known, which errs on the wide side among few players. It
says how much the rating would differ on other games of the same strengths; whether it has arrived, the bias says.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from gradeq.certificate_elo import player_bounds
from gradeq.kernels.account import BEFORE, GRADIENT, ROWS, WEIGHT
from gradeq.kernels.rating import STRIDE
from gradeq.theory.elo import ELO_POINTS_PER_LOGIT

if TYPE_CHECKING:
    from gradeq.layers.elo import Elo

FEW = 30  # games; with fewer a player has no interval and no rank
WIDTH = 1.959963984540054  # standard errors on each side: 95 %
START = 1000.0


class Standing(NamedTuple):
    """One player. Win rates and bias are from the player's own side, weighted by the games' weights.

    ``rating``: natural log-odds; ``elo``: 1000 + 400/ln 10 rating; ``wins``: ties count half, with weights win_rate
    times games; ``bias``: predicted_win_rate - win_rate; ``bound``: what it could be at most after any games like
    these, None where nothing is proven; ``elo_low``, ``elo_high``: 95 % interval; ``rank``: 1 + players whose
    interval lies wholly above; ``rank_low``, ``rank_high``: the ranks that overlapping intervals leave open. Fewer
    than 30 games: no interval, no rank.
    """

    player: str
    rating: float
    elo: float
    games: int
    wins: float
    win_rate: float
    predicted_win_rate: float
    bias: float
    bound: float | None
    vacuous: bool
    elo_low: float | None = None
    elo_high: float | None = None
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None

    def __getitem__(self, key: Any) -> Any:
        """A field by its name as well as by its place: row["player"]."""
        return getattr(self, key) if isinstance(key, str) else tuple.__getitem__(self, key)


def standings(elo: Elo) -> list[Standing]:
    """Everyone with a game, highest rating first."""
    state, rule = elo._state, elo._rule
    bounds = player_bounds(elo)
    rows = []
    for j, name in enumerate(elo._names.players, 1):
        own = state.sums[j * STRIDE : (j + 1) * STRIDE]
        games, weight = own[ROWS], own[WEIGHT]
        if not games or not weight:
            continue
        rating, bias = rule.shown(state, j), own[GRADIENT] / weight
        won = 0.5 * weight - own[BEFORE]
        win_rate = won / weight
        wins = won if weight == games else win_rate * games
        points = START + ELO_POINTS_PER_LOGIT * rating
        low = high = None
        if games >= FEW:
            half = WIDTH * ELO_POINTS_PER_LOGIT * math.sqrt(rule.variance(state, j))
            low, high = points - half, points + half
        rows.append(
            Standing(
                name, rating, points, int(games), wins, win_rate, win_rate + bias, bias,
                *bounds[j - 1], low, high,
            )
        )  # fmt: skip
    return ranked(sorted(rows, key=lambda row: -row.rating))


def ranked(rows: list[Standing]) -> list[Standing]:
    """The rows with their ranks: by how many intervals lie wholly above and below."""
    from bisect import bisect_left, bisect_right

    lows = sorted(row.elo_low for row in rows if row.elo_low is not None)
    highs = sorted(row.elo_high for row in rows if row.elo_high is not None)
    made = []
    for row in rows:
        if row.elo_low is not None and row.elo_high is not None:
            rank = 1 + len(lows) - bisect_right(lows, row.elo_high)
            last = len(highs) - bisect_left(highs, row.elo_low)
            row = row._replace(rank=rank, rank_low=rank, rank_high=last)
        made.append(row)
    return made
