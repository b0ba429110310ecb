"""Forecasts of games, made before each game, whose mean should be the win rate of each player.

International football by date, and the votes of the Chatbot Arena, whose order was shuffled before they were
published: there nothing drifts, and a batch fit must be hard to beat. After the first fifth of the games: the
difference of forecast and actual win rate over players with 100 games or more, mean and worst; the bias of the first
side's forecasts in the worst window; log loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.boards import Games, log_loss, numbered
from benchmarks.online import bradley_terry
from benchmarks.online.elo import elo
from benchmarks.real.errors import worst_window
from benchmarks.real.kind import Figures, Kind, Measure, Rule
from gradeq import Elo
from gradeq.datasets import arena, football

MANY = 100


def first_part(games: Games) -> int:
    """The games that are not judged; what is fitted once is fitted to them."""
    return len(games.y) // 5


def by_gradeq(eta: Any = None) -> Callable[[Games], Any]:
    """gradeq from players and scores alone, as all rivals."""
    return lambda games: np.asarray(Elo(eta).run(games.a, games.b, games.y).served)


def with_all_that_is_known(games: Games) -> Any:
    """gradeq told who is at home and when, where that is known."""
    layer = Elo(home_advantage=games.home is not None, dates=games.times is not None)
    given = {} if games.home is None else {"home": games.home}
    return np.asarray(layer.run(games.a, games.b, games.y, times=games.times, **given).served)


def by_elo(k: float) -> Callable[[Games], Any]:
    """Elo with this K."""
    return lambda games: elo(games.a, games.b, games.y, k)


def refitted(last: int | None) -> Callable[[Games], Any]:
    """Bradley-Terry fitted every 500 games."""
    return lambda games: bradley_terry.refitted(games.a, games.b, games.y, last)


def measured(games: Games, p: Any) -> Figures:
    """The measures of one rule on one set of games."""
    a, b, y, p = (column[first_part(games) :] for column in (games.a, games.b, games.y, p))
    errors = p - y
    rows = np.bincount(np.r_[a, b])
    sums = np.bincount(np.r_[a, b], np.r_[errors, -errors])
    biases = np.abs(sums[rows >= MANY] / rows[rows >= MANY])
    return {
        "bias": float(biases.mean()) if len(biases) else None,
        "worst": float(biases.max()) if len(biases) else None,
        "window": worst_window(errors),
        "loss": log_loss(p, y),
    }


def of_games() -> Iterator[tuple[str, Games]]:
    """Football and the Arena; the defaults were chosen on both."""
    matches = football.load()
    sides = (~matches.neutral).astype(float)
    yield ("football *", numbered(matches.home, matches.away, matches.winner, sides, matches.date))
    votes = arena.load()
    yield "Arena, shuffled *", numbered(votes.a, votes.b, votes.winner)


KIND = Kind(
    name="games",
    title="Games",
    explained=(
        "Forecasts made before each game; the mean forecast of each player should be the win rate. Arena votes come "
        "in shuffled order, so that nothing drifts there; in football the first side is mostly at home, which only "
        "the rule that is told so can know."
    ),
    ours="gradeq auto",
    measures=(
        Measure("bias", "mean player bias", ".4f", "mean"),
        Measure("worst", "worst player", ".3f", "mean"),
        Measure("window", "worst 500 games", ".3f", "mean"),
        Measure("loss", "log loss", ".4f", "ratio"),
    ),
    rules={
        "gradeq auto": Rule("Elo(), the default, from players and scores alone", by_gradeq()),
        "gradeq auto, home, dates": Rule(
            "Elo(home_advantage=True, dates=True) where they are known: more than the others are told",
            with_all_that_is_known,
        ),
        "gradeq plain": Rule("Elo(0.1): one constant step, K = 17", by_gradeq(0.1)),
        "Elo, K 4": Rule("the notebook of the Chatbot Arena", by_elo(4.0)),
        "Elo, K 16": Rule("usual between strong chess players", by_elo(16.0)),
        "Elo, K 32": Rule("the textbook's, and the default of many packages", by_elo(32.0)),
        "Bradley-Terry, once": Rule(
            "fitted to the first fifth (a small fit of our own), for ever",
            lambda games: bradley_terry.once(games.a, games.b, games.y, first_part(games)),
        ),
        "Bradley-Terry, refitted": Rule("every 500 games to all games so far", refitted(None)),
        "Bradley-Terry, rolling": Rule(
            "every 500 games to the last 10,000", refitted(bradley_terry.LAST)
        ),
    },
    streams=of_games,
    measured=measured,
)  # fmt: skip
