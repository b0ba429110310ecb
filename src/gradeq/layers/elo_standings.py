"""What is read from Elo: the leaderboard, ratings, drift, the certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradeq.engine import checks
from gradeq.engine.players import HOME
from gradeq.layers.guard import Guarded
from gradeq.rules.drift import Drift

if TYPE_CHECKING:
    from gradeq.certificate_reading import Reading
    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.standings import Board, Standing
    from gradeq.ledger.state import State
    from gradeq.standings.words import Seen
    from gradeq.theory import HarmCap


class Standings(Guarded):
    """The readers of Elo."""

    dates: bool
    _names: Any
    _rule: Any
    _state: State

    def leaderboard(self, view: Seen = "auto") -> list[Standing]:
        """Everyone who has played, ranked players first: Elo with interval and open ranks, win rates, bias, bound.

        ``view``: "all-time", the fit of all games; "now", the strengths of the moment; "auto" averages the two by
        the weight that the games give to constant strengths. A step of its own changes forecasts, not the board.
        """
        return self.board(view).rows

    def board(self: Any, view: Seen = "auto") -> Board:
        """The leaderboard with what is said about it: ``lines`` (who is first), ``leader``, ``fit``, ``groups``."""
        from gradeq.layers.standings import board_of

        return board_of(self, view)

    def drift(self) -> dict[str, Any]:
        """What the games say about drift: the weight of each speed (variance a game), and of none (``constant``)."""
        return Drift(self.dates).told(self._state)

    def connected(self) -> list[list[str]]:
        """The groups of players that are joined by games, the largest first; across groups nobody can be compared."""
        return self.board().groups

    def equilibrium(self) -> Equilibrium:
        """Exact averages for each player, the certificate from the ratings, the proven bound, bias and log loss."""
        from gradeq.certificate_elo import certify

        return certify(self)

    def labels_until(self, bound: float) -> int | None:
        """How many more games until every player's proven bound is below this, if things go on as they were."""
        from gradeq.certificate_elo import more_games

        return more_games(self, checks.bound(bound))

    def harm_cap(self) -> HarmCap:
        """The most that the step can cost in log loss against a coin; its sentence says when nothing is proven."""
        from gradeq.certificate_elo import harm

        return harm(self)

    def _reading(self) -> Reading:
        from gradeq.certificate_elo import reading_of

        return reading_of(self)

    @property
    def ratings(self) -> dict[str, float]:
        """The strength of each player as it stands, in natural log-odds; without a step by the heaviest filter."""
        return self._read(self._rule.shown, 1)

    @property
    def theta(self) -> dict[str, float]:
        """The parameters that carry the certificate, by name; without a step the corrections of the final one."""
        found = self._read(self._rule.tracked, 0 if self._names.home else 1)
        if self._names.home:
            found[HOME] *= self._names.scale
        return found

    def _read(self, column: Any, skip: int) -> dict[str, float]:
        values = column(self._rule.written(self._state))[skip:].tolist()
        return dict(zip(self._names.names[skip:], values, strict=True))
