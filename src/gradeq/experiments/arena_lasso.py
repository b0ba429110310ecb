"""Elo with a lasso penalty on Chatbot Arena (fig:cba-reg)."""

from __future__ import annotations

from gradeq.experiments.arena_elo import SHOWN, STEPS, pair, ratings
from gradeq.experiments.elo_figure import bias_norm, elo_sheet, play
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.games import streams
from gradeq.experiments.sheet import RATES
from gradeq.experiments.source import Source
from gradeq.penalties import Lasso

STRENGTH = 0.002  # on the paper's loss; the authors have 0.001 on half of it
AUTHORS = ((0.010835, 0.346567), (0.002516, 0.329137), (0.001174, 0.326747), (0.000983, 0.349246))
RATINGS = (0.086354, 0.025722, 0.248886, 0.586284, -0.407842)


def run(source: Source) -> Result:
    """As with constant steps, and every game also pulls every rating towards zero by eta lambda."""
    numbers: list[Number] = []
    sheets, said, data = {}, [], []
    for suffix, games in streams(source).items():
        seasons = [play(games, step or None, Lasso(STRENGTH)) for step in STEPS]
        for step, season, theirs in zip(STEPS, seasons, AUTHORS, strict=True):
            numbers += pair(games, season, f"η = {step:g}", theirs, suffix)
        numbers += ratings(games, seasons[SHOWN], RATINGS)
        labels = ["all equal", *(f"η = {step:g}" for step in STEPS[1:])]
        shown = (f"{labels[SHOWN]}, λ = {STRENGTH:g}", seasons[SHOWN])
        sheets[suffix] = elo_sheet(games, list(zip(labels, seasons, RATES, strict=True)), shown)
        norms = [float(bias_norm(games, season)[1][-1]) for season in seasons[1:]]
        what = (
            f"the norm of the average gradient ends at {norms[0]:.4f}, {norms[1]:.4f} and {norms[2]:.4f} at "
            f"the three steps: with the larger ones it settles near λ = {STRENGTH:g}, the price of the penalty."
        )
        said.append(games.says(what))
        data.append(games.data)
    return Result(" ".join(said), tuple(numbers), sheets, ". ".join(data))


EXPERIMENT = Experiment(
    name="arena-lasso",
    title="Elo ratings of language models with a lasso penalty",
    figure="Figure 17",
    chapter="paper",
    needs=("arena_140k", "football"),
    shows="The panels of Figure 2 with an L1 penalty, which the paper's proof uses: the bias settles near λ.",
    corrected="Scales as in Figure 2; their λ = 0.001 is 0.002 on the paper's loss. No penalty is needed: without "
    "one the bias of a player is O(M log T / games) (result 8.5), and with one it stays at λ.",
    run=run,
)
