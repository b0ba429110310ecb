"""evalica: Elo and Bradley-Terry in Rust, from lists of names; intervals by resampling."""

from __future__ import annotations

from typing import Any

from benchmarks.inputs import Data
from benchmarks.peers.entry import Entry, Job
from benchmarks.peers.games import POINTS, K, names, natural, players


def winners(scores: Any) -> list[Any]:
    import evalica

    known = {1.0: evalica.Winner.X, 0.0: evalica.Winner.Y, 0.5: evalica.Winner.Draw}
    return [known[y] for y in scores.tolist()]


def elo(data: Data) -> Job:
    """Elo from names; no intervals."""
    import evalica

    (a, b), won = names(data), winners(data["score"])

    def job() -> Any:
        scores = evalica.elo(a, b, won, k=K).scores
        return natural(scores.reindex(players(data), fill_value=1000.0), 1000.0)

    return job


def bradley_terry(data: Data) -> Job:
    """A Bradley-Terry fit from names; no intervals."""
    import evalica
    import numpy as np

    (a, b), won = names(data), winners(data["score"])
    return lambda: POINTS * np.log(evalica.bradley_terry(a, b, won).scores)


def resampled(data: Data) -> Job:
    """Elo with 95 % intervals from a hundred resamples (its default is a thousand)."""
    import evalica

    (a, b), won = names(data), winners(data["score"])
    return lambda: evalica.bootstrap(
        evalica.elo, a, b, won, n_resamples=100, bootstrap_method="percentile", random_state=0, k=K
    )


DOES: dict[str, Entry] = {"ratings, names": Entry(1_000_000, elo)}
FITS: dict[str, Entry] = {"leaderboard, names": Entry(1_000_000, bradley_terry, None, "a fit without intervals")}
RESAMPLED: dict[str, Entry] = {"leaderboard, names": Entry(20_000, resampled, None, "intervals from 100 resamples")}
