"""Penalties that move every rating at each game, carried out without touching more than two.

Of what is kept, ``notes`` are a few numbers common to all ratings, ``marks`` two for each: where it was last brought
up to date. ``drags`` and ``pulls`` gather eta times the penalty's slope, and the slope, for the certificate.
``read``: the rating of j now; ``touch``: bring what was done to j since it was last touched into its account;
``before`` and ``after``: what is done ahead of a game's step, and once it is taken; ``unit``: what a stored rating is
multiplied by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NOTES = 3
MARKS = 2
TINY = 1e-4  # below, the common factor of the ridge is multiplied out, before its sums lose digits


@dataclass(frozen=True)
class Free:
    """No penalty: ratings are what is stored."""

    def read(self, kept: Any, j: int) -> float:
        """u_j."""
        return kept.u[j]  # type: ignore[no-any-return]

    def touch(self, kept: Any, j: int) -> None:
        """Nothing happened since."""
        return

    def before(self, kept: Any, eta: float) -> None:
        """Nothing."""
        return

    after = before

    def unit(self, kept: Any) -> float:
        """1."""
        return 1.0


@dataclass(frozen=True)
class ScaledRidge:
    """The ridge by one common factor: every rating shrinks by 1 - eta strength at each game.

    notes: the factor, then the sums over games of strength times it, and of eta strength times it.
    """

    strength: float

    def read(self, kept: Any, j: int) -> float:
        """The factor times u_j."""
        return kept.notes[0] * kept.u[j]  # type: ignore[no-any-return]

    def touch(self, kept: Any, j: int) -> None:
        """Enter the shrinking since j was last touched."""
        u, drags, pulls, marks, notes = kept.u, kept.drags, kept.pulls, kept.marks, kept.notes
        pulls[j] = pulls[j] + u[j] * (notes[1] - marks[2 * j])
        drags[j] = drags[j] + u[j] * (notes[2] - marks[2 * j + 1])
        marks[2 * j] = notes[1]
        marks[2 * j + 1] = notes[2]

    def before(self, kept: Any, eta: float) -> None:
        """Shrink everyone: the slope is taken at the ratings that served the game."""
        notes = kept.notes
        drawn = self.strength * notes[0]
        notes[1] = notes[1] + drawn
        notes[2] = notes[2] + eta * drawn
        notes[0] = notes[0] * (1.0 - eta * self.strength)

    def after(self, kept: Any, eta: float) -> None:
        """Nothing."""
        return

    def unit(self, kept: Any) -> float:
        """The factor."""
        return kept.notes[0]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class LazyLasso:
    """The lasso in proximal form: each game ends with a soft threshold of eta strength on every rating.

    Thresholds of an untouched rating add up, so they are taken in one go when it is next needed, exactly. notes: 1,
    then the sums over games of eta strength, and of strength.
    """

    strength: float

    def read(self, kept: Any, j: int) -> float:
        """u_j, moved towards zero by the thresholds since, and to zero if it is nearer."""
        u, cut = kept.u, kept.notes[1] - kept.marks[2 * j]
        return max(0.0, u[j] - cut) + min(0.0, u[j] + cut)  # type: ignore[no-any-return]

    def touch(self, kept: Any, j: int) -> None:
        """Take the thresholds since."""
        u, drags, pulls, marks, notes = kept.u, kept.drags, kept.pulls, kept.marks, kept.notes
        cut = notes[1] - marks[2 * j]
        if cut > 0.0:
            now = max(0.0, u[j] - cut) + min(0.0, u[j] + cut)
            taken = u[j] - now
            drags[j] = drags[j] + taken
            pulls[j] = pulls[j] + taken / cut * (notes[2] - marks[2 * j + 1])
            u[j] = now
        marks[2 * j] = notes[1]
        marks[2 * j + 1] = notes[2]

    def before(self, kept: Any, eta: float) -> None:
        """Nothing."""
        return

    def after(self, kept: Any, eta: float) -> None:
        """Threshold everyone, when they are next read."""
        notes = kept.notes
        notes[1] = notes[1] + eta * self.strength
        notes[2] = notes[2] + self.strength

    def unit(self, kept: Any) -> float:
        """1."""
        return 1.0


Pull = Free | ScaledRidge | LazyLasso
