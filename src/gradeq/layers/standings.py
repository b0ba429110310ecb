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

from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradeq.certificate_elo import player_bounds
from gradeq.kernels.account import BEFORE, GRADIENT, ROWS, WEIGHT
from gradeq.kernels.rating import STRIDE
from gradeq.ledger.values import new
from gradeq.theory.elo import ELO_POINTS_PER_LOGIT

if TYPE_CHECKING:
    from gradeq.layers.elo import Elo

FEW = 30  # games; with fewer a player has no interval and no rank
WIDTH = 1.959963984540054  # standard errors on each side: 95 %
START = 1000.0
NO_INTERVAL = (None,) * 5


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
    rule = elo._rule
    state = rule.written(elo._state)
    sums = state.view("sums").reshape(-1, STRIDE)
    played = (sums[:, ROWS] != 0.0) & (sums[:, WEIGHT] != 0.0)
    played[0] = False  # the first side is no player
    order = np.flatnonzero(played)
    if not len(order):
        return []
    order = order[np.argsort(-rule.shown(state)[order], kind="stable")]
    own, rating = sums[order], rule.shown(state)[order]
    games, weight = own[:, ROWS], own[:, WEIGHT]
    won, bias = 0.5 * weight - own[:, BEFORE], own[:, GRADIENT] / weight
    win_rate = won / weight
    wins = np.where(weight == games, won, win_rate * games)
    points = START + ELO_POINTS_PER_LOGIT * rating
    bound, vacuous = player_bounds(elo, weight)
    ranked = games >= FEW
    half = WIDTH * ELO_POINTS_PER_LOGIT * np.sqrt(rule.variances(state)[order])
    low, high = points - half, points + half
    # The rank is by how many intervals lie wholly above, the last that is open by how many lie wholly below.
    rank = 1 + np.count_nonzero(ranked) - np.searchsorted(np.sort(low[ranked]), high, "right")
    last = np.count_nonzero(ranked) - np.searchsorted(np.sort(high[ranked]), low, "left")
    columns = (
        rating, points, games.astype(np.int64), wins, win_rate, win_rate + bias, bias, bound, vacuous,
        low, high, rank, rank, last,
    )  # fmt: skip
    names = [elo._names.names[j] for j in order.tolist()]
    rows = zip(names, *(column.tolist() for column in columns), strict=True)
    found = list(map(new, repeat(Standing), rows))
    for k in np.flatnonzero(~ranked).tolist():
        found[k] = new(Standing, found[k][:10] + NO_INTERVAL)
    return found
