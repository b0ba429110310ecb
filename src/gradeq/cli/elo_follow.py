"""What only the Elo report needs: calibration, rating curves, other steps."""

from __future__ import annotations

from typing import Any

from gradeq.cli.calibration import Bins
from gradeq.cli.follow import MOST_SWEPT, TRACED, Path
from gradeq.cli.games import Games
from gradeq.cli.reading import Reading
from gradeq.files.numbers import Floats


class EloFollow:
    """Collects for the report while the games go on."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.bins = Bins()
        self.path = Path()
        self.games: list[tuple[Any, Any, Floats]] | None = []
        self.kept = self.pieces = 0

    def add(self, games: Games, p: Floats, counted: Any, first: Any, second: Any, run: Any) -> None:
        """Take a played piece."""
        q, y = p[counted], games.scores[counted]
        self.bins.add(q, y)
        self._keep(first[counted], second[counted], y)
        piece = games.piece
        if self.pieces < TRACED:
            trace = run.trace
            for at, values in zip(trace.rows, trace.theta, strict=True):
                if at:
                    x = self._x(piece, int(at))
                    self.path.add_all(x, dict(zip(trace.names, values.tolist(), strict=True)))
        self.pieces += 1

    def end(self, layer: Any, piece: Any, played: int) -> None:
        """Note the ratings where a piece of so many games ends."""
        if played:
            self.path.add_all(self._x(piece, played), layer.ratings)

    def _x(self, piece: Any, played: int) -> float:
        if self.reading.time is None:
            return float(piece.start + played)
        time = float(piece.times[played - 1])
        return time / 1e9 if self.reading.time.kind == "time" else time

    def _keep(self, first: Any, second: Any, y: Floats) -> None:
        if self.games is None:
            return
        self.games.append((first, second, y))
        self.kept += len(y)
        if self.kept > MOST_SWEPT:
            self.games = None
