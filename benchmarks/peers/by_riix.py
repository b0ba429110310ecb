"""riix: Elo over a data set of numbered players, game by game."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.inputs import Data
from benchmarks.peers.entry import Entry, Job
from benchmarks.peers.games import K, natural, players


class OneByOne:
    """Games as riix takes them, each in a batch of its own, at the step of time that is given."""

    def __init__(self, a: Any, b: Any, scores: Any, steps: Any = None) -> None:
        self.matchups, self.scores = np.stack([a, b], axis=1), scores
        self.steps = np.zeros(len(scores), dtype=int) if steps is None else steps

    def __len__(self) -> int:
        return len(self.scores)

    def __iter__(self) -> Iterator[Any]:
        for k, step in enumerate(self.steps.tolist()):
            yield self.matchups[k : k + 1], self.scores[k : k + 1], step


def forecasts(data: Data) -> Job:
    """The probability before each game."""
    from riix.models.elo import Elo

    def job() -> Any:
        system = Elo(players(data), k=K, initial_rating=0.0)
        games = OneByOne(data["a"], data["b"], data["score"])
        return system.fit_dataset(games, return_pre_match_probs=True)

    return job


def board(data: Data) -> Job:
    """From names to ratings: names are looked up first, as its own data sets do."""
    from riix.models.elo import Elo

    a, b = data["a name"].to_pylist(), data["b name"].to_pylist()

    def job() -> Any:
        number = {name: k for k, name in enumerate(players(data))}
        ends = [np.array([number[name] for name in side]) for side in (a, b)]
        system = Elo(players(data), k=K, initial_rating=0.0)
        system.fit_dataset(OneByOne(*ends, data["score"]))
        return natural(system.ratings, 0.0)

    return job


DOES: dict[str, Entry] = {"Elo, integers": Entry(200_000, forecasts), "ratings, names": Entry(200_000, board)}
