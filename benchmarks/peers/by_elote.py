"""elote: an object for each player, game by game."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.inputs import Data
from benchmarks.peers.entry import Entry, Job, Step, one_by_one
from benchmarks.peers.games import K, names, natural, players

START = 1500.0


def play(players: Any, a: Any, b: Any, score: float) -> None:
    """One game."""
    if score == 0.5:
        players[a].tied(players[b])
    else:
        players[a if score else b].beat(players[b if score else a])


def forecasts(data: Data) -> Callable[[], Step]:
    """The probability before each game."""
    from elote import EloCompetitor

    a, b, score = (data[name].tolist() for name in ("a", "b", "score"))

    def start() -> Step:
        known = {k: EloCompetitor(START, K) for k in range(data["players"])}

        def step(i: int) -> float:
            served: float = known[a[i]].expected_score(known[b[i]])
            play(known, a[i], b[i], score[i])
            return served

        return step

    return start


def board(data: Data) -> Job:
    """From names to ratings."""
    from elote import EloCompetitor

    (a, b), score = names(data), data["score"].tolist()

    def job() -> Any:
        known = {name: EloCompetitor(START, K) for name in players(data)}
        for one, two, own in zip(a, b, score, strict=True):
            play(known, one, two, own)
        return natural([known[name].rating for name in players(data)], START)

    return job


DOES: dict[str, Entry] = {"Elo, integers": one_by_one(100_000, forecasts), "ratings, names": Entry(100_000, board)}
