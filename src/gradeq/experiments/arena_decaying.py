"""Elo with decaying steps on Chatbot Arena (fig:cba-decay)."""

from __future__ import annotations

from gradeq.experiments.arena_elo import pair, ratings
from gradeq.experiments.elo_figure import bias_norm, elo_sheet, play
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.games import streams
from gradeq.experiments.sheet import DECAYS as LOOKS
from gradeq.experiments.source import Source
from gradeq.schedules import Power

FIRST = 0.5  # the paper's eta_1; the authors have 1 on half the loss
DECAYS = (0.0, 0.4, 0.5, 0.6)
SHOWN = 2
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
            + " for α = 0, 0.4, 0.5, 0.6."
        )
        said.append(games.says(what))
        data.append(games.data)
    return Result(" ".join(said), tuple(numbers), sheets, ". ".join(data))


EXPERIMENT = Experiment(
    name="arena-decaying",
    title="Elo ratings of language models, decaying steps",
    figure="Figure 18",
    chapter="paper",
    needs=("arena_140k", "football"),
    shows="The panels of Figure 2 with steps ηₜ = η₁ t⁻ᵅ; slower decay removes bias sooner, faster decay has less "
    "noise.",
    corrected="The paper does not give η₁ and α; the authors' code has t⁻ᵅ on half the loss, so η₁ = 0.5, with α "
    "= 0, 0.4, 0.5, 0.6. Scales as in Figure 2.",
    run=run,
)
