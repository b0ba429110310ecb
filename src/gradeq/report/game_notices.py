"""Warnings about games and players, in the form of ``report.notices``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gradeq.report.components import clean
from gradeq.report.notices import amber, note
from gradeq.report.numerals import count, points
from gradeq.report.sentences import FEW
from gradeq.report.story import Notice
from gradeq.tables import some

if TYPE_CHECKING:
    from gradeq.leaderboard.ranks import Standing

POINT = 0.01  # a win rate predicted better than that is not reported
CLEARLY_OFF_PLAYER = 3.0  # standard errors of a win rate: there are many players, and the worst of them is named


def clearly_off(rows: Iterable[Standing]) -> list[Standing]:
    """The players whose predicted win rate is off by more than a point, and by more than chance."""

    def chance(row: Standing) -> float:
        return CLEARLY_OFF_PLAYER * math.sqrt(row.win_rate * (1.0 - row.win_rate) / row.games)

    return [row for row in rows if abs(row.bias) > max(POINT, chance(row))]


def predicted_off(player: str, bias: float, games: int, off: int, total: int, noun: str) -> Notice:
    """The player with the largest gap between predicted and actual win rate, among ``total`` with enough games."""
    direction, beyond = "high" if bias > 0 else "low", "off by more than 1 point and by more than chance"
    others = f"No other {noun} with {FEW} games or more is {beyond}."
    if off > 1:
        others = f"{count(off)} of {count(total)} {noun}s with {FEW} games or more are {beyond}."
    return amber(
        f"{player} is predicted {points(abs(bias), sign=False)} points too {direction}.",
        f"That is over {some(games, 'game')}. {others} Forecasts lag while a strength moves; once it stands still, "
        "what is left shrinks as 1 / (step × games).",
    )


def doubtful_winners(games: int, row: str, word: str) -> Notice:
    return amber(
        f"The winner of {some(games, 'game')} can be read in two ways.",
        f"In {clean(row, 80)}, {clean(word, 40)!r} is a player of that game, but as a word it means that the "
        "other side won, or a tie. It was read as the player.",
        "If it was meant as a word, rename the player, or give the results as numbers with `--score`.",
    )


def never_met(groups: Sequence[Sequence[str]]) -> Notice:
    """Groups of players that no game joins, the largest first."""
    apart = [name for group in groups[1:] for name in group]
    named = ", ".join(clean(name, 40) for name in apart[:5])
    more = f" and {count(len(apart) - 5)} more" if len(apart) > 5 else ""
    return amber(
        f"{some(len(apart), 'player')} never met the other {count(len(groups[0]))}.",
        f"No chain of games joins {named}{more} to them ({count(len(groups))} groups in all). "
        "Players of different groups cannot be compared: only the largest group is ranked.",
        "Rate each group separately, or add games between them.",
    )


def views_differ(agreed: float) -> Notice:
    """``agreed``: the rank correlation of the two views."""
    return amber(
        "Recent games and all games rank players differently.",
        f"The two views have a rank correlation of {agreed:.2f}. Where players mostly meet their "
        "equals, everyone wins half of the games, and only a fit of all games separates them.",
        "Compare the columns `elo_all_time` and `elo_now`; `--view all-time` shows the fit alone.",
    )


def no_time(ordered: bool = True) -> Notice:
    """Games were read in file order. ``ordered``: the leaderboard depends on the order."""
    board = "recent games are those at its end" if ordered else "the all-time board ignores it"
    return note(
        "No time column was given.",
        f"The order of the file counts as time: {board}. If it is shuffled, rating curves show convergence, not "
        "progress.",
        "Give `--time` if the games have dates" + ("; `--view all-time` ignores the order." if ordered else "."),
    )
