"""Leaderboards side by side on the Arena votes and on football: ratings, intervals, forecasts, in one run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.by_arena_rank import fitted
from benchmarks.peers.by_evalica import winners
from benchmarks.peers.by_riix import OneByOne
from benchmarks.peers.games import POINTS
from benchmarks.timing import Row, Took, once
from gradeq.datasets import arena, football
from gradeq.layers.elo import Elo

FEW = 30  # games; players with fewer are not compared
SHUFFLES = 30


class Games(NamedTuple):
    """Players by number, a's scores; where known whether a is at home, and when the game was."""

    a: Any
    b: Any
    y: Any
    home: Any = None
    times: Any = None


class Told(NamedTuple):
    """What one says: ratings in Elo points by player, half widths of 95 % intervals, the forecast of each game."""

    elo: Any
    half: Any = None
    p: Any = None


def main() -> Iterator[Row]:
    os.environ["GRADEQ_COMPILE"] = "1"
    for name in ("arena_rank", "evalica", "riix"):
        if find_spec(name) is None:
            print(f"  {name} is left out: .peers/bin/python has it after make bench-peers")
    folder = os.environ.get("GRADEQ_DATA")
    if folder is None:
        print("  GRADEQ_DATA is not set: arena and football are left out")
    else:
        votes = arena.load(folder)
        games = numbered(votes.a, votes.b, votes.winner)
        yield from compared("arena", games)
        yield shuffled(games)
        matches = football.load(folder)
        sides = (~matches.neutral).astype(float)
        yield from compared("football", numbered(matches.home, matches.away, matches.winner, sides, matches.date))
    yield matchmade()
    del os.environ["GRADEQ_COMPILE"]


def numbered(a: Any, b: Any, winner: Any, home: Any = None, times: Any = None) -> Games:
    """Games of two players, players by number."""
    own = np.asarray(a) != np.asarray(b)
    _, codes = np.unique(np.stack([a, b])[:, own], return_inverse=True)
    first, second = np.ascontiguousarray(codes.reshape(2, -1))
    won = np.select([np.isin(winner, ["model_a", "home"]), np.isin(winner, ["model_b", "away"])], [1.0, 0.0], 0.5)
    days = None if times is None else np.asarray(times, dtype="datetime64[ns]")[own]
    return Games(first, second, won[own], None if home is None else home[own], days)


def compared(title: str, games: Games) -> Iterator[Row]:
    """One line for each, beside the all-time board of gradeq."""
    own = by_gradeq(games)
    often = np.bincount(np.r_[games.a, games.b]) >= FEW
    jobs: dict[str, Callable[[], Told]] = {"gradeq": lambda: by_gradeq(games)}
    if find_spec("arena_rank"):
        jobs["arena-rank, sandwich"] = lambda: by_arena_rank(games)
    if find_spec("evalica"):
        jobs["evalica, Bradley-Terry"] = lambda: by_evalica(games, "bradley_terry")
        jobs["evalica, Elo K 4"] = lambda: by_evalica(games, "elo")
    if find_spec("riix"):
        jobs["riix, Elo K 16"] = lambda: by_riix(games, "elo")
        jobs["riix, vSKF"] = lambda: by_riix(games, "skf")
    for name, job in jobs.items():
        told = job()  # once to warm up
        took = once(job, 1)
        yield Row(f"{title}: {name}", took, {}, "", remark(games, own, told, often))
    yield plain_forecasts(title, games)


def remark(games: Games, own: Told, told: Told, often: Any) -> str:
    """Agreement with the all-time board, widths, and log loss of forecasts."""
    rank = [np.argsort(np.argsort(-each.elo[often])) for each in (own, told)]
    said = [f"Spearman {np.corrcoef(*rank)[0, 1]:.4f}, rank off by at most {np.abs(rank[0] - rank[1]).max()}"]
    if told.half is not None:
        said.append(f"half width {np.median(told.half[often]):.1f}")
    if told.p is not None:
        said.append(f"log loss {log_loss(told.p, games.y):.4f}")
    return ", ".join(said)


def log_loss(p: Any, y: Any) -> float:
    p = np.clip(p, 1e-6, 1.0 - 1e-6)
    return float(-np.mean(y * np.log(p) + (1.0 - y) * np.log(1.0 - p)))


def by_gradeq(games: Games) -> Told:
    """All-time board, and the forecasts of the mixture: table, fit, intervals and ranks included."""
    elo = Elo(home_advantage=games.home is not None, dates=games.times is not None)
    given = {"home": games.home} if games.home is not None else {}
    run = elo.run(games.a, games.b, games.y, times=games.times, **given)
    ratings, half = np.zeros((2, 1 + max(games.a.max(), games.b.max())))
    for row in elo.leaderboard("all-time"):
        ratings[int(row.player)], half[int(row.player)] = row.elo, (row.elo_high - row.elo_low) / 2
    return Told(ratings, half, run.served)


def plain_forecasts(title: str, games: Games) -> Row:
    """Plain Elo with the usual step, for its forecasts."""
    elo = Elo(0.1)
    elo.run(games.a, games.b, games.y)
    took = once(lambda: Elo(0.1).run(games.a, games.b, games.y), 1)
    loss = log_loss(Elo(0.1).run(games.a, games.b, games.y).served, games.y)
    return Row(f"{title}: gradeq, plain Elo 0.1", took, {}, "", f"log loss {loss:.4f}")


def by_arena_rank(games: Games) -> Told:
    competitors, found = fitted(games.a, games.b, games.y)
    order = np.asarray(competitors, dtype=int)
    ratings, half = np.zeros((2, len(order)))
    ratings[order] = np.asarray(found["ratings"])
    half[order] = (np.asarray(found["rating_upper"]) - np.asarray(found["rating_lower"])) / 2
    return Told(ratings, half)


def by_evalica(games: Games, method: str) -> Told:
    import evalica

    found = getattr(evalica, method)(games.a.tolist(), games.b.tolist(), winners(games.y))
    scores = found.scores.sort_index().to_numpy()
    return Told(POINTS * np.log(scores) if method == "bradley_terry" else scores)


def by_riix(games: Games, method: str) -> Told:
    from riix.models.elo import Elo as RiixElo
    from riix.models.skf import VSKF

    names = list(range(1 + max(games.a.max(), games.b.max())))
    system = RiixElo(names, k=16.0) if method == "elo" else VSKF(names)
    days = None if games.times is None else games.times.astype("datetime64[D]").astype(np.int64)
    weeks = None if days is None else (days - days[0]) // 7
    played = OneByOne(games.a, games.b, games.y, weeks)
    p = system.fit_dataset(played, return_pre_match_probs=True)
    return Told(np.asarray(system.ratings if method == "elo" else system.mus), None, p)


def shuffled(games: Games) -> Row:
    """The all-time board of the same games in other orders."""
    boards = set()
    for seed in range(SHUFFLES):
        order = np.random.default_rng(seed).permutation(len(games.y))
        elo = Elo(0.1)
        elo.run(games.a[order], games.b[order], games.y[order])
        boards.add(tuple(row[:8] for row in elo.leaderboard("all-time")))
    return Row(f"arena: {SHUFFLES} shuffles", None, {}, "one board", f"{len(boards)} different boards")


def matchmade() -> Row:
    """10,000 players who only meet their equals: everyone wins half, and only a fit can see who is stronger."""
    players, each = 10_000, 30
    rng = np.random.default_rng(5)
    theta = np.sort(rng.normal(0.0, 1.0, players))
    a = np.repeat(np.arange(players), each)
    b = np.clip(a + rng.integers(-players // 20, players // 20 + 1, len(a)), 0, players - 1)
    a, b = a[a != b], b[a != b]
    order = rng.permutation(len(a))
    a, b = a[order], b[order]
    y = (rng.random(len(a)) < 1.0 / (1.0 + np.exp(theta[b] - theta[a]))).astype(float)
    elo = Elo(0.1)
    elo.run(a, b, y)
    found, half, took = np.zeros(players), np.zeros(players), Took(0.0, 0.0)

    def board() -> None:
        for row in elo.leaderboard("all-time"):
            found[int(row.player)], half[int(row.player)] = (row.elo, (row.elo_high - row.elo_low) / 2)

    took = once(board, 1)
    spearman = np.corrcoef(np.argsort(np.argsort(found)), np.arange(players))[0, 1]
    inside = np.abs(found - 1000.0 - POINTS * (theta - theta.mean())) <= half
    said = f"Spearman with the truth {spearman:.3f}, intervals hold {inside.mean():.3f} of the strengths"
    return Row(f"{players:,} matchmade players, board", took, {}, "Spearman >= 0.95", said)
