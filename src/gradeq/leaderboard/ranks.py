"""Rank ranges, and the first lines of a leaderboard."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np

from gradeq.leaderboard.fitting import SharedCovariance
from gradeq.ledger.batch import Floats, Ints
from gradeq.tables import html_table, some

WIDTH = 1.959963984540054  # standard errors on each side: 95 %


class Ranks(NamedTuple):
    """Position and rank range of each player; ``smallest_t``: the leader's against another player (nan: alone)."""

    rank: Ints
    low: Ints
    high: Ints
    smallest_t: float

    @property
    def verified(self) -> bool:
        """Whether the leader is first with 95 % confidence (one comparison, so without Holm's correction)."""
        return self.smallest_t > WIDTH


def holm_critical_values(k: int) -> Floats:
    """The critical values of Holm's test of k differences to one player, never below 1.96."""
    inverse = NormalDist().inv_cdf
    return np.array([max(WIDTH, inverse(1.0 - 0.05 / (k - r))) for r in range(k)])


def holm_threshold(sizes: Floats, steps: Floats) -> float:
    """The critical value at which Holm's test stops: larger differences are rejected.

    Differences above the current value are rejected together; go on with as many steps.
    """
    rejected = 0
    while rejected < len(steps):
        more = int(np.count_nonzero(sizes > steps[rejected]))
        if more == rejected:
            break
        rejected = more
    return float(steps[min(rejected, len(steps) - 1)])


def ranks(z: Floats, variances: Floats, covariance: Floats | SharedCovariance | None = None) -> Ranks:
    """Positions and rank ranges of ranked players; without a covariance their estimates are independent.

    Two players differ only if the test of each rejects the other, so ranges never contradict each other. Each range
    contains the player's true rank with 95 % confidence.
    """
    m = len(z)
    position = 1 + np.searchsorted(np.sort(-z), -z, "left")
    if m < 2:
        return Ranks(position, position.copy(), position.copy(), float("nan"))

    def compared(r: int) -> Floats:
        shared = np.zeros(m)
        if covariance is not None:
            shared = 2.0 * (covariance.row(r) if isinstance(covariance, SharedCovariance) else covariance[r])
        t: Floats = (z[r] - z) / np.sqrt(np.maximum(variances[r] + variances - shared, 1e-18))
        t[r] = 0.0
        return t

    steps = holm_critical_values(m - 1)
    ends = np.array([holm_threshold(np.abs(compared(r)), steps) for r in range(m)])
    low, high = np.ones(m, dtype=np.int64), np.full(m, m)
    for r in range(m):
        t = compared(r)
        sure = np.abs(t) > np.maximum(ends, ends[r])
        low[r] += np.count_nonzero(sure & (t < 0.0))
        high[r] -= np.count_nonzero(sure & (t > 0.0))
    lead = int(np.argmax(z))
    others = np.arange(m) != lead
    smallest_t = float(np.min(compared(lead)[others]))
    if smallest_t > WIDTH:
        high[lead] = 1
        low[others] = np.maximum(low[others], 2)
    return Ranks(position, low, high, smallest_t)


BoardView = Literal["auto", "all-time", "now"]
CROWDED = (
    "More than five million pairs of players have met, too many for the table of the all-time fit: "
    "recent games count more (current view)."
)
WIDEST_RANKED = 240  # Elo; a player whose current strength is less certain has no rank
SURE = 0.95  # a view of this weight or more is reported alone


class Leader(NamedTuple):
    """Who is first. ``p``: that the closest rival is as good; ``may_be_first``: how many others may be first."""

    player: str
    p: float | None
    verified: bool
    may_be_first: int


def headline(leader: Leader | None, least: int, played: int, joined: int) -> str:
    """The first line: who is first, how many may be, or why no player is ranked.

    ``played``: how many players have at least ``least`` games, which a rank needs; ``joined``: how many of these are
    in the largest group that games join.
    """
    if leader is None and not joined:
        group = " of the largest group that games join" if played else ""
        return f"No player{group} has {least} games yet: no one is ranked."
    if leader is None:
        return (
            f"No one is ranked: {some(joined, 'player', 'has', 'have')} {least} games or more, but current "
            f"strengths are not known within {WIDEST_RANKED} Elo."
        )
    if leader.p is None:
        return f"{leader.player} is the only ranked player."
    if leader.verified:
        chance = "p < 0.0001" if leader.p < 1e-4 else f"p = {leader.p:.2g}"
        return f"{leader.player} is first ({chance} against its closest rival)."
    others = leader.may_be_first
    if not others:  # Holm's test excludes all others, but the direct comparison with the closest rival does not
        return f"{leader.player} leads; its closest rival may be first (p = {leader.p:.2g})."
    return f"{leader.player} leads; {others:,} other{'s' * (others > 1)} may be first (95 %)."


def which_games(view: BoardView, constant: float, games: int, first: str | None) -> str:
    """The second line: which games count. ``first``: who leads the all-time view."""
    if view == "all-time":
        return f"All {games:,} games count alike, as asked (all-time view)."
    if view == "now":
        return "Recent games count more, as asked (current view)."
    if constant >= SURE:
        return f"Strengths look constant: all {games:,} games count alike."
    if constant > 1.0 - SURE:
        return "Too early to say whether strengths drift; intervals allow for both."
    ahead = f"; all-time first is {first}" if first is not None else ""
    return f"Strengths drift: recent games count more{ahead}."


def p_value(t: float) -> float | None:
    """The p-value of a difference of t standard errors."""
    return None if math.isnan(t) else math.erfc(max(t, 0.0) / math.sqrt(2.0))


NOTEBOOK_ROWS = 20  # players that a notebook shows
NAME_LETTERS = 32  # of a name there


class Standing(NamedTuple):
    """One player. Win rates and bias are from the player's own side, weighted by the games' weights.

    ``rank``: position by ``elo``. None: fewer than 30 games, a current strength that is not known within 240 Elo, or
    no chain of games to the largest group.
    ``rank_low``, ``rank_high``: the ranks left open (95 %).
    ``elo``: 1000 is the mean of the ranked players.
    ``elo_low``, ``elo_high``: its 95 % interval.
    ``wins``: ties count half; with weights win_rate times games.
    ``bias``: predicted_win_rate - win_rate; for a constant step without penalty it is -tracked / (eta games).
    ``bound``: what the bias could be at most after any games like these; None where nothing is proven.
    ``rating``: ``elo`` in natural log-odds.
    ``elo_all_time``, ``elo_now``: the two views.
    ``tracked``: the online parameter that carries the certificate.
    ``vacuous``: whether the bound is too large to say anything; None without a bound.
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
    """How the fit went: the residual of its equations, and counts.

    ``phi``: the squared errors of scores over what they would be if each game were a coin toss with the fitted
    probability; variances are multiplied by it.
    """

    residual: float
    phi: float
    newton_steps: int
    cells: int
    groups: int


class Home(NamedTuple):
    """The advantage of the first side in Elo, its 95 % interval, and its bias (the mean error of its games).

    ``from_state``: this bias computed from the move of the advantage alone, -u / (eta games): its certificate.
    """

    elo: float
    low: float
    high: float
    bias: float
    from_state: float


class Board(NamedTuple):
    """The rows of a leaderboard, and two lines about them."""

    rows: list[Standing]
    lines: tuple[str, str]
    leader: Leader | None
    constant: float | None  # weight of constant strengths; None: the view was chosen
    drift: (
        tuple[float, str] | None
    )  # (variance gained per unit, name of the unit), of the filter with the largest weight
    fit: Fitted | None
    home: Home | None
    groups: list[list[str]]
    weight: float = 1.0  # of the all-time view in the ratings

    def _repr_html_(self) -> str:
        """The first players as a table for notebooks."""
        head = ["player", "rank", "range", "elo", "95 %", "games", "win rate", "predicted"]
        rows = [
            [
                row.player[:NAME_LETTERS],
                *(("", "") if row.rank is None else (str(row.rank), f"{row.rank_low}-{row.rank_high}")),
                f"{row.elo:.0f}",
                f"{row.elo_low:.0f} to {row.elo_high:.0f}",
                f"{row.games:,}",
                f"{row.win_rate:.3f}",
                f"{row.predicted_win_rate:.3f}",
            ]
            for row in self.rows[:NOTEBOOK_ROWS]
        ]
        more = len(self.rows) - len(rows)
        return html_table(" ".join(filter(None, self.lines)), head, rows, f"... and {more:,} more" if more else "")
