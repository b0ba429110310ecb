"""Elo with constant steps on Chatbot Arena (fig:elo_scores_chatbot)."""

from __future__ import annotations

import math

from gradeq.experiments.elo_figure import Season, bias_norm, elo_sheet, play, player_bias
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.games import FIVE, OTHER, Games, streams
from gradeq.experiments.sheet import RATES
from gradeq.experiments.source import Source
from gradeq.theory import elo_player_bias, elo_radius

STEPS = (
    0.0,
    0.005,
    0.05,
    0.5,
)  # the paper's eta; the authors' rates are twice these, on half the loss
SHOWN = 2
# Ends of the published curves, on half the paper's scale: norm of bias and loss.
AUTHORS = ((0.010835, 0.346567), (0.002001, 0.326270), (0.000296, 0.324941), (0.000033, 0.354670))
RATINGS = (0.316605, 0.218152, 0.464684, 0.876964, -0.536319)


def run(source: Source) -> Result:
    """Each game moves the two ratings by eta times the error of the predicted chance."""
    numbers, sheets, said, data = [], {}, [], []
    for suffix, games in streams(source).items():
        seasons = [play(games, step or None) for step in STEPS]
        for step, season, theirs in zip(STEPS, seasons, AUTHORS, strict=True):
            numbers += pair(games, season, f"η = {step:g}", theirs, suffix)
        numbers += ratings(games, seasons[SHOWN], RATINGS)
        labels = ["all equal", *(f"η = {step:g}" for step in STEPS[1:])]
        label = labels[SHOWN]
        sheets[suffix] = elo_sheet(
            games, list(zip(labels, seasons, RATES, strict=True)), (label, seasons[SHOWN])
        )
        said.append(sentence(games, seasons[SHOWN], STEPS[SHOWN]))
        data.append(games.data)
    return Result(" ".join(said), tuple(numbers), sheets, ". ".join(data))


def pair(
    games: Games, season: Season, at: str, theirs: tuple[float, float], suffix: str
) -> list[Number]:
    """Norm of bias and loss at the end; the authors' are halves of the paper's."""
    where = f", {suffix}" if suffix else ""
    norm, loss = float(bias_norm(games, season)[1][-1]), float(season.losses.mean())
    if suffix:
        return [Number(f"norm of bias, {at}{where}", norm), Number(f"log loss, {at}{where}", loss)]
    # Their averages miss the last game and count a zero, and other battles cannot agree at all.
    near, other = (1e-4, "") if games.is_paper else (math.inf, f" ({OTHER})")
    return [
        Number(f"norm of bias, {at}{other}", norm, theirs[0], 2 * theirs[0], near),
        Number(f"log loss, {at}{other}", loss, theirs[1], 2 * theirs[1], near),
    ]


def ratings(games: Games, season: Season, theirs: tuple[float, ...]) -> list[Number]:
    """Final ratings of the five; the authors' belong to their own five models."""
    known = dict(zip(FIVE, theirs, strict=True)) if games.is_paper else {}
    found = []
    for player in games.five:
        name = games.players[player]
        value = known.get(name)
        found.append(Number(f"rating of {name}", float(season.final[player]), value, value, 1e-3))
        bias = float(player_bias(games, season, player)[1][-1])
        found.append(Number(f"bias of {name}", bias))
    return found


def sentence(games: Games, season: Season, step: float) -> str:
    """The five players' bias at the end against the proven bound."""
    finals = [float(player_bias(games, season, player)[1][-1]) for player in games.five]
    counts = [int(((games.a == p) | (games.b == p)).sum()) for p in games.five]
    radius = elo_radius(len(games.players), step, step * len(games.y))
    bound = max(elo_player_bias(0.0, radius, step, count) for count in counts)
    seat = float(season.errors.mean())
    home = (
        f" The seat is no player, so its advantage stays: b wins {100 * games.y.mean():.1f} % of the "
        f"games, predicted are {100 * season.chances.mean():.1f} %."
        if abs(seat) > 0.02
        else ""
    )
    return games.says(
        f"at η = {step:g} no player of the five is off by more than "
        f"{max(map(abs, finals)):.4f} in win rate (proven: {bound:.3f}), at a log loss of "
        f"{season.losses.mean():.4f} (all equal: {math.log(2):.4f}).{home}"
    )


EXPERIMENT = Experiment(
    name="arena-elo",
    title="Elo ratings of language models, constant steps",
    figure="Figure 2",
    chapter="paper",
    needs=("arena_140k", "football"),
    shows="Above: mean predicted win chance, norm of bias and loss for four learning rates. Below: ratings of five "
    "models and the bias of each.",
    corrected="The authors halve the loss: their rates are twice the paper's η, their bias and loss half the paper's "
    "(0.3466 = ln 2 / 2 when all are equal). The bias of a player is signed by its seat and is that of its win rate; "
    "the formula is printed without the sign and then need not vanish, and the published curve is the L2 norm of the "
    "whole gradient, opponents included.",
    run=run,
)
