"""Penalties that move every rating at each game, carried out without touching more than two.

Each keeps (drags, pulls, marks, notes). ``notes`` are a few numbers common to all ratings, ``marks`` two for each:
where it was last brought up to date. ``drags`` and ``pulls`` gather eta times the penalty's slope, and the slope, for
the certificate. ``read``: the rating of j now; ``touch``: bring what was done to j since it was last touched into its
account; ``before`` and ``after``: what is done ahead of a game's step, and once it is taken; ``unit``: what a stored
rating is multiplied by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradeq.kernels.account import Floats

NOTES = 3
MARKS = 2
TINY = 1e-4  # below, the common factor of the ridge is multiplied out, before its sums lose digits


@dataclass(frozen=True)
class Free:
    """No penalty: ratings are what is stored."""

    def read(self, u: Floats, j: int, own: Any) -> float:
        """u_j."""
        return u[j]  # type: ignore[no-any-return]

    def touch(self, u: Floats, j: int, own: Any) -> None:
        """Nothing happened since."""
        return

    def before(self, eta: float, own: Any) -> None:
        """Nothing."""
        return

    after = before

    def unit(self, own: Any) -> float:
        """1."""
        return 1.0


@dataclass(frozen=True)
class ScaledRidge:
    """The ridge by one common factor: every rating shrinks by 1 - eta strength at each game.

    notes: the factor, then the sums over games of strength times it, and of eta strength times it.
    """

    strength: float

    def read(self, u: Floats, j: int, own: Any) -> float:
        """The factor times u_j."""
        return own[3][0] * u[j]  # type: ignore[no-any-return]

    def touch(self, u: Floats, j: int, own: Any) -> None:
        """Enter the shrinking since j was last touched."""
        drags, pulls, marks, notes = own
        pulls[j] = pulls[j] + u[j] * (notes[1] - marks[2 * j])
        drags[j] = drags[j] + u[j] * (notes[2] - marks[2 * j + 1])
        marks[2 * j] = notes[1]
        marks[2 * j + 1] = notes[2]

    def before(self, eta: float, own: Any) -> None:
        """Shrink everyone: the slope is taken at the ratings that served the game."""
        _, _, _, notes = own
        pull = self.strength * notes[0]
        notes[1] = notes[1] + pull
        notes[2] = notes[2] + eta * pull
        notes[0] = notes[0] * (1.0 - eta * self.strength)

    def after(self, eta: float, own: Any) -> None:
        """Nothing."""
        return

    def unit(self, own: Any) -> float:
        """The factor."""
        return own[3][0]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class LazyLasso:
    """The lasso in proximal form: each game ends with a soft threshold of eta strength on every rating.

    Thresholds of an untouched rating add up, so they are taken in one go when it is next needed, exactly. notes: 1,
    then the sums over games of eta strength, and of strength.
    """

    strength: float

    def read(self, u: Floats, j: int, own: Any) -> float:
        """u_j, moved towards zero by the thresholds since, and to zero if it is nearer."""
        cut = own[3][1] - own[2][2 * j]
        return max(0.0, u[j] - cut) + min(0.0, u[j] + cut)  # type: ignore[no-any-return]

    def touch(self, u: Floats, j: int, own: Any) -> None:
        """Take the thresholds since."""
        drags, pulls, marks, notes = own
        cut = notes[1] - marks[2 * j]
        if cut > 0.0:
            now = max(0.0, u[j] - cut) + min(0.0, u[j] + cut)
            taken = u[j] - now
            drags[j] = drags[j] + taken
            pulls[j] = pulls[j] + taken / cut * (notes[2] - marks[2 * j + 1])
            u[j] = now
        marks[2 * j] = notes[1]
        marks[2 * j + 1] = notes[2]

    def before(self, eta: float, own: Any) -> None:
        """Nothing."""
        return

    def after(self, eta: float, own: Any) -> None:
        """Threshold everyone, when they are next read."""
        notes = own[3]
        notes[1] = notes[1] + eta * self.strength
        notes[2] = notes[2] + self.strength

    def unit(self, own: Any) -> float:
        """1."""
        return 1.0


Way = Free | ScaledRidge | LazyLasso
