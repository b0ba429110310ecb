"""Elo with decaying steps on Chatbot Arena (fig:cba-decay)."""

from __future__ import annotations

from gradeq.experiments.arena_elo import pair, ratings
from gradeq.experiments.elo_figure import Season, bias_norm, elo_sheet, play, player_bias
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.games import Games, streams
from gradeq.experiments.sheet import DECAYS as LOOKS
from gradeq.experiments.source import Source
from gradeq.schedules import Power

FIRST = 0.5  # the paper's eta_1; the authors have 1 on half the loss
DECAYS = (0.0, 0.4, 0.5, 0.6)
SHOWN = 2
VISIBLE = 0.02  # a player's bias in win rate that is worth a sentence
AUTHORS = ((0.000033, 0.354670), (0.000770, 0.323193), (0.001634, 0.324553), (0.003867, 0.328229))
RATINGS = (0.351516, 0.271279, 0.410409, 0.691361, -0.578688)


def run(source: Source) -> Result:
    """eta_t = 0.5 t^-alpha, t counting the games."""
    numbers: list[Number] = []
    sheets, said, data = {}, [], []
    for suffix, games in streams(source).items():
        seasons = [play(games, Power(FIRST, decay)) for decay in DECAYS]
        for decay, season, theirs in zip(DECAYS, seasons, AUTHORS, strict=True):
            numbers += pair(games, season, f"α = {decay:g}", theirs, suffix)
        numbers += ratings(games, seasons[SHOWN], RATINGS)
        labels = [f"α = {decay:g}" for decay in DECAYS]
        shown = (labels[SHOWN], seasons[SHOWN])
        sheets[suffix] = elo_sheet(games, list(zip(labels, seasons, LOOKS, strict=True)), shown)
        ends = [(float(bias_norm(games, s)[1][-1]), float(s.losses.mean())) for s in seasons]
        what = (
            "norm of bias "
            + ", ".join(f"{norm:.5f}" for norm, _ in ends)
            + " and log loss "
            + ", ".join(f"{loss:.4f}" for _, loss in ends)
            + f" for α = 0, 0.4, 0.5, 0.6. {_players(games, seasons[0], seasons[SHOWN])}"
        )
        said.append(games.says(what))
        data.append(games.data)
    return Result(" ".join(said), tuple(numbers), sheets, ". ".join(data))


def _players(games: Games, constant: Season, season: Season) -> str:
    """How far the five players are off at the end, which the norm over all games does not show."""
    (least, most), (_, quick) = (
        (min(ends), max(ends))
        for ends in (
            [abs(float(player_bias(games, s, player)[1][-1])) for player in games.five]
            for s in (season, constant)
        )
    )
    sentence = (
        f"At α = {DECAYS[SHOWN]:g} the five players are off by {least:.3f} to {most:.3f} in win rate at the end, "
        f"with the constant step by at most {quick:.3f}"
    )
    if most < VISIBLE:
        return f"{sentence}."
    late = FIRST * len(games.y) ** -DECAYS[SHOWN]
    return (
        f"{sentence}: the bias of a player has not gone to zero here, for steps that have fallen to {late:.4f} move "
        "ratings slowly. The norm is small all the same: it divides by all games, not by the player's."
    )


EXPERIMENT = Experiment(
    name="arena-decaying",
    title="Elo ratings of language models, decaying steps",
    figure="Figure 18",
    chapter="paper",
    needs=("arena_140k", "football"),
    shows="The panels of Figure 2 with steps ηₜ = η₁ t⁻ᵅ; slower decay removes bias sooner, faster decay has less "
    "noise.",
    corrected="The paper gives α = 0.5 for the plots below, and not η₁ and the other α; the authors' code has t⁻ᵅ "
    "on half the loss, so η₁ = 0.5, with α = 0, 0.4, 0.5, 0.6. Scales as in Figure 2. That the bias is still driven "
    "to zero, more slowly, is about the limit; how far each player is at the end is said here.",
    run=run,
)
