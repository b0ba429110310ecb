"""What a board says first: who leads and how sure that is, and which games count."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

Seen = Literal["auto", "all-time", "now"]
CROWDED = (
    "More than five million pairs of players have met: the table behind the all-time fit is no longer kept, "
    "so recent games count more (the view of the moment)."
)
WITHIN = 240  # Elo; a strength of the moment that is less well known has no rank
SURE = 0.95  # weight of one view from which it alone is told


class Leader(NamedTuple):
    """Who is first. ``p``: of the closest rival being as good; ``may_be_first``: others whose range begins at 1."""

    player: str
    p: float | None
    verified: bool
    may_be_first: int


def headline(leader: Leader | None, nobody: str) -> str:
    """The first line: who is first, or how many may be; ``nobody``: what is said where no one is ranked."""
    if leader is None:
        return nobody
    if leader.p is None:
        return f"{leader.player} is the only ranked player."
    if leader.verified:
        chance = "p < 0.0001" if leader.p < 1e-4 else f"p = {leader.p:.2g}"
        return f"{leader.player} is first ({chance} against its closest rival)."
    others = leader.may_be_first
    if not others:  # the ladder leaves nobody else, the closest rival alone is not verified
        return f"{leader.player} leads; its closest rival may be first (p = {leader.p:.2g})."
    return f"{leader.player} leads; {others:,} other{'s' * (others > 1)} may be first (95 %)."


def nobody_ranked(least: int, played: int, joined: int) -> str:
    """Why there is no rank at all: so many ``played`` enough, of them so many are ``joined`` to the largest group."""
    if not played:
        return f"No player has {least} games yet: no one is ranked."
    if not joined:
        return f"No player of the largest group that games join has {least} games yet: no one is ranked."
    have = "1 player has" if joined == 1 else f"{joined:,} players have"
    return (
        f"No one is ranked: {have} {least} games or more, but strengths of the moment are not known "
        f"within {WITHIN} Elo."
    )


def which_games(view: Seen, constant: float, games: int, first: str | None) -> str:
    """The second line: which games count. ``first`` leads the all-time view."""
    if view == "all-time":
        return f"All {games:,} games count alike, as asked (all-time view)."
    if view == "now":
        return "Recent games count more, as asked (the view of the moment)."
    if constant >= SURE:
        return f"Strengths look constant: all {games:,} games count alike."
    if constant > 1.0 - SURE:
        return "Too early to say whether strengths drift; intervals allow for both."
    ahead = f"; all-time first is {first}" if first is not None else ""
    return f"Strengths drift: recent games count more{ahead}."


def two_sided(t: float) -> float | None:
    """The p-value of a difference of t standard errors."""
    return None if math.isnan(t) else math.erfc(max(t, 0.0) / math.sqrt(2.0))
