"""Ratings without a penalty against their log T bound: a ladder of players, stretched as far as it goes."""

from __future__ import annotations

import numpy as np

from gradeq.experiments.averages import Floats
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import SERIES, Line, Panel, Sheet, thinned
from gradeq.experiments.source import Source
from gradeq.numerics import sigmoid
from gradeq.theory import elo_norm_radius, elo_sup_radius

ETA = 0.1
ROUNDS = 60_000
PLAYERS = (2, 4, 6)


def ladder(players: int, rounds: int = ROUNDS) -> Floats:
    """The largest centred rating before every game, when neighbours meet where they are nearest and the better wins.

    Plain scalar steps of the Elo update: each game is chosen by the ratings that it will move.
    """
    theta = [0.0] * players
    tops = np.empty(rounds)
    for t in range(rounds):
        tops[t] = max(abs(theta[0]), abs(theta[-1]))
        k = min(range(players - 1), key=lambda i: theta[i + 1] - theta[i])
        push = ETA * (1.0 - sigmoid(theta[k + 1] - theta[k]))
        theta[k] -= push
        theta[k + 1] += push
    return tops


def run(source: Source) -> Result:
    """Growth per decade of games, run and bound."""
    at = thinned(ROUNDS, log=True, most=120)[10:]
    marks, biases, numbers = [], [], []
    for players, look in zip(PLAYERS, SERIES, strict=False):
        tops = ladder(players)
        caps = np.array([elo_sup_radius(players, ETA, ETA * t) for t in at.tolist()])
        roots = np.array([elo_norm_radius(0.0, players, ETA, ETA * t) for t in at.tolist()])
        bounds = np.minimum(caps, roots)
        marks += [
            Line(at, tops[at], f"{players} players, run", look),
            Line(at, bounds, f"{players} players, bound", look._replace(width=0.9, marker="")),
        ]
        biases += [
            Line(at, tops[at] / (ETA * at), f"{players} players, run", look),
            Line(
                at,
                bounds / (ETA * at),
                f"{players} players, bound",
                look._replace(width=0.9, marker=""),
            ),
        ]
        decade = float(tops[-1] - tops[len(tops) // 10])
        numbers += [
            Number(f"{players} players: growth over the last tenfold of games", decade),
            Number(f"{players} players: (M − 1)/2 · ln 10", (players - 1) / 2 * np.log(10.0)),
            Number(f"{players} players: largest rating / bound", float((tops[at] / bounds).max())),
        ]
    panels = [
        Panel("Largest rating", "games T", "|θ|, log-odds", marks, x_scale="log"),
        Panel(
            "Largest |Σ z(p − y)| / T", "games T", "", biases, x_scale="log", y_scale="log", legend=""
        ),
    ]  # fmt: skip
    found = (
        "The largest rating of a ladder of players grows by "
        + ", ".join(f"{numbers[3 * k].ours:.2f}" for k in range(3))
        + " while the games grow tenfold, for 2, 4 and 6 players, against (M − 1)/2 · ln 10 = "
        + ", ".join(f"{numbers[3 * k + 1].ours:.2f}" for k in range(3))
        + ": ratings are not bounded, and log T is the right rate. The bias of a player still falls like log T / T."
    )
    return Result(found, tuple(numbers), {"": Sheet(panels, (1, 2), (11.0, 4.0))})


EXPERIMENT = Experiment(
    name="elo-growth",
    title="Elo without a penalty: ratings grow like log T",
    figure="Section 5.5, result 8.5",
    chapter="theory",
    needs=(),
    shows="How far can ratings drift without a penalty, in the worst case? The paper leaves this open.",
    corrected="The paper proves the penalised case only. Without a penalty max|θ| ≤ (M − 1)/2 · log T + const, for "
    "any games, so every player's win rate is unbiased at rate log T / games.",
    run=run,
)
