"""openskill: a Plackett-Luce rating with its own uncertainty, game by game."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.inputs import Data
from benchmarks.peers.entry import Entry, Job, Step, one_by_one
from benchmarks.peers.games import names, players

RANKS = {1.0: [1, 2], 0.5: [1, 1], 0.0: [2, 1]}


def forecasts(data: Data) -> Callable[[], Step]:
    """The probability before each game."""
    from openskill.models import PlackettLuce

    a, b, score = (data[name].tolist() for name in ("a", "b", "score"))

    def start() -> Step:
        model = PlackettLuce()
        known = [model.rating() for _ in range(data["players"])]

        def step(i: int) -> float:
            sides = [[known[a[i]]], [known[b[i]]]]
            served: float = model.predict_win(sides)[0]
            ((known[a[i]],), (known[b[i]],)) = model.rate(sides, ranks=RANKS[score[i]])
            return served

        return step

    return start


def board(data: Data) -> Job:
    """From names to ratings."""
    from openskill.models import PlackettLuce

    (a, b), score = names(data), data["score"].tolist()

    def job() -> list[float]:
        model = PlackettLuce()
        known = {name: model.rating() for name in players(data)}
        for one, two, own in zip(a, b, score, strict=True):
            sides = [[known[one]], [known[two]]]
            ((known[one],), (known[two],)) = model.rate(sides, ranks=RANKS[own])
        return [known[name].ordinal() for name in players(data)]

    return job


OTHER = "Plackett-Luce"
DOES: dict[str, Entry] = {
    "Elo, integers": one_by_one(20_000, forecasts, None, OTHER),
    "leaderboard, names": Entry(20_000, board, None, f"{OTHER}, with its own uncertainty"),
}
