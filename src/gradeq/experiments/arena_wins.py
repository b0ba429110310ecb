"""Who beats whom among five players (fig:arena-win-matrix)."""

from __future__ import annotations

import numpy as np

from gradeq.experiments.averages import Floats
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.games import Games, streams
from gradeq.experiments.sheet import Heat, Panel, Sheet
from gradeq.experiments.source import Source

# The published cells, in the order of FIVE: how often the row was preferred to the column.
AUTHORS = (
    (None, 0.52, 0.49, 0.38, 0.69),
    (0.48, None, 0.45, 0.41, 0.62),
    (0.51, 0.55, None, 0.46, 0.77),
    (0.62, 0.59, 0.54, None, 0.72),
    (0.31, 0.38, 0.23, 0.28, None),
)


def win_matrix(games: Games) -> tuple[Floats, int]:
    """Share of games that the row's player won against the column's, and how many games there are."""
    k = len(games.five)
    wins, count = np.full((k, k), np.nan), 0
    for i, one in enumerate(games.five):
        for j, other in enumerate(games.five):
            as_b, as_a = (
                (games.b == one) & (games.a == other),
                (games.a == one) & (games.b == other),
            )
            met = int(as_a.sum() + as_b.sum())
            if i != j and met:
                wins[i, j] = (games.y[as_b].sum() + (1.0 - games.y[as_a]).sum()) / met
            count += met
    return wins, count // 2


def run(source: Source) -> Result:
    """Win rates between the five players of the rating figures."""
    numbers: list[Number] = []
    sheets, said, data = {}, [], []
    for suffix, games in streams(source).items():
        wins, count = win_matrix(games)
        names = tuple(games.players[player] for player in games.five)
        where = f", {suffix}" if suffix else ""
        theirs = 1108.0 if games.is_paper else None
        numbers.append(Number(f"games among the five{where}", float(count), theirs, theirs))
        numbers += [
            _cell(
                f"{one} beats {other}", float(wins[i, j]), AUTHORS[i][j] if games.is_paper else None
            )
            for i, one in enumerate(names)
            for j, other in enumerate(names)
            if i != j
        ]
        panel = Panel("Share of games that the row wins", "against", "", [Heat(names, names, wins)])
        sheets[suffix] = Sheet([panel], (1, 1), (9.0, 4.6))
        best = int(np.nanargmax(np.nanmean(wins, axis=1)))
        said.append(
            f"{games.title}: {count:,} games among the five; {names[best]} wins most, "
            f"{100 * np.nanmean(wins[best]):.0f} % on average over the other four."
        )
        data.append(games.data)
    return Result(" ".join(said), tuple(numbers), sheets, ". ".join(data))


def _cell(name: str, ours: float, theirs: float | None) -> Number:
    """A cell beside the published one, which has two decimals."""
    return Number(name, ours, theirs, theirs, 0.005)


EXPERIMENT = Experiment(
    name="arena-wins",
    title="Win rates between five players",
    figure="Figure 9",
    chapter="paper",
    needs=("arena_140k", "football"),
    shows="For five language models, how often each was preferred to each other one.",
    corrected="",
    run=run,
)
