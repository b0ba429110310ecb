"""Streams of games for the Elo figures: the paper's battles where the user has them, else open ones, said so."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.datasets import arena, football
from gradeq.experiments.source import Source

Ints = npt.NDArray[np.int64]
FIVE = (
    "gpt-4o-2024-08-06",
    "claude-3-5-sonnet-20240620",
    "llama-3.1-405b-instruct",
    "gemini-1.5-pro-exp-0827",
    "llama-3.1-8b-instruct",
)
OTHER = "theirs: other battles"  # beside a number of the authors' that these games cannot meet
SHUFFLED = "The release is shuffled and has no times, so the wobble of a rating is noise of the step, not drift."
STAND_IN = "in place of the paper's battles of August 2024, which are not available"


class Games(NamedTuple):
    """Games in order: players a and b by index, y = 1 where b won; ``five`` are drawn one by one.

    ``when`` is None where the order means nothing, and ``note`` says so.
    """

    data: str
    players: tuple[str, ...]
    a: Ints
    b: Ints
    y: npt.NDArray[np.float64]
    when: Any
    unit: str
    five: tuple[int, ...]
    is_paper: bool
    note: str = ""

    @property
    def title(self) -> str:
        """What the games are, in a few words."""
        return self.data.split(",")[0]

    def says(self, what: str) -> str:
        """A sentence about these games, with their note."""
        return " ".join(part for part in (f"{self.title}: {what}", self.note) if part)


def streams(source: Source) -> dict[str, Games]:
    """The paper's 50,000 battles, or else the 140k release and, as a second sheet, football."""
    if source.has(arena.PAPER):
        return {"": source.once("paper battles", lambda: _paper(source))}
    return {
        "": source.once("arena battles", lambda: _release(source)),
        "football": source.once("football matches", lambda: _football(source)),
    }


def _paper(source: Source) -> Games:
    data = source.load(arena.load_paper)
    won = data.winner == "model_b"
    return _games("Chatbot Arena, the paper's file", data.a, data.b, won, data.time, "date", FIVE)


def _release(source: Source) -> Games:
    data = source.load(arena.load)
    kept = np.isin(data.winner, ("model_a", "model_b")) & (data.a != data.b)
    return _games(
        f"LMArena 140k release, shuffled and without times, ties and self-play left out, {STAND_IN}",
        data.a[kept],
        data.b[kept],
        data.winner[kept] == "model_b",
        None,
        "battles, in shuffled order",
    )._replace(note=SHUFFLED)


def _football(source: Source) -> Games:
    data = source.load(football.load)
    kept = data.winner != "draw"
    return _games(
        f"Men's football internationals since 1872, a at home and b away, draws left out, {STAND_IN}",
        data.home[kept],
        data.away[kept],
        data.winner[kept] == "away",
        data.date[kept],
        "date",
    )


def _games(
    data: str, a: Any, b: Any, b_won: Any, when: Any, unit: str, five: tuple[str, ...] = ()
) -> Games:
    names, codes = np.unique(np.concatenate((a, b)), return_inverse=True)
    players = tuple(str(name) for name in names)
    if set(five) <= set(players) and five:
        drawn = tuple(players.index(name) for name in five)
    else:  # the five with most games
        drawn = tuple(np.argsort(-np.bincount(codes), kind="stable")[:5].tolist())
    first, second = codes[: len(a)], codes[len(a) :]
    label = f"{data}; {len(a):,} games, {len(players)} players"
    return Games(
        label, players, first, second, b_won.astype(np.float64), when, unit, drawn, bool(five)
    )
