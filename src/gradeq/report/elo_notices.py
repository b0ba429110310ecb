"""The notices of an Elo run: about players, their order, and the order of games."""

import math
from collections.abc import Iterable
from typing import Any

from gradeq.report.markup import clean
from gradeq.report.numerals import count, points, some
from gradeq.report.story import Notice
from gradeq.report.words import FEW

POINT = 0.01
CLEAR = 3.0  # standard errors of a win rate: there are many players, and the worst of them is named


def clearly_off(rows: Iterable[Any]) -> list[Any]:
    """The players whose predicted win rate is off by more than a point, and by more than chance."""
    return [
        row
        for row in rows
        if abs(row.bias) > POINT
        and abs(row.bias) > CLEAR * math.sqrt(row.win_rate * (1.0 - row.win_rate) / row.games)
    ]


def predicted_off(player: str, bias: float, games: int, off: int, total: int, noun: str) -> Notice:
    """Of ``total`` players with enough games the one whose predicted win rate is farthest from the actual one."""
    direction = "high" if bias > 0 else "low"
    beyond = "off by more than 1 point and by more than chance"
    others = (
        f"{count(off)} of {count(total)} {noun}s with {FEW} games or more are {beyond}."
        if off > 1
        else f"No other {noun} with {FEW} games or more is {beyond}."
    )
    return Notice(
        "amber",
        f"{player} is predicted {points(abs(bias), sign=False)} points too {direction}.",
        f"That is over {count(games)} games. {others} Forecasts lag while a strength moves; once it "
        "stands still, what is left shrinks as 1 / (step × games).",
    )


def winner_twofold(games: int, row: str, word: str) -> Notice:
    """Games whose winner was read as a player's name although the same word says that another side won or none."""
    return Notice(
        "amber",
        f"The winner of {some(games, 'game')} can be read in two ways.",
        f"In {clean(row, 80)}, {clean(word, 40)!r} is a player of that game, and as a word it says that the "
        "other side won or that it was a tie. It was read as the player.",
        "If it was meant as a word, rename the player, or give the results as numbers with `--score`.",
    )


def never_met(groups: list[list[str]]) -> Notice:
    """Groups of players that no game joins, the largest first: the others are named."""
    apart = [name for group in groups[1:] for name in group]
    named = ", ".join(clean(name, 40) for name in apart[:5])
    more = f" and {count(len(apart) - 5)} more" if len(apart) > 5 else ""
    return Notice(
        "amber",
        f"{some(len(apart), 'player')} never met the other {count(len(groups[0]))}.",
        f"No chain of games joins {named}{more} to them ({count(len(groups))} groups in all). "
        "Players of different groups cannot be compared: only the largest group is ranked.",
        "Rate each group separately, or add games between them.",
    )


def views_apart(correlation: float) -> Notice:
    """The strengths of the moment rank players in another order than the fit of all games."""
    return Notice(
        "amber",
        "Recent games and all games rank players differently.",
        f"The two views have a rank correlation of {correlation:.2f}. Where players mostly meet their "
        "equals, everyone wins half of the games, and only a fit of all games can tell them apart.",
        "Compare the columns `elo_all_time` and `elo_now`; `--view all-time` shows the fit alone.",
    )


def no_time(ordered: bool = True) -> Notice:
    """Games were taken in file order because no time column was given; ``ordered``: the board depends on it."""
    board = "recent games are those at its end" if ordered else "the all-time board ignores it"
    return Notice(
        "note",
        "No time column was given.",
        f"The order of the file counts as time: {board}. If it is shuffled, rating curves show "
        "convergence, not progress.",
        "Give `--time` if the games have dates"
        + ("; `--view all-time` ignores the order." if ordered else "."),
    )
