"""The columns of a piece of games, checked: players, scores, weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gradeq.cli.content import Content
from gradeq.cli.reading import Piece
from gradeq.errors import BadInput
from gradeq.files import MISSING_NAME, Codebook, is_missing
from gradeq.files.cells import row_name, shown
from gradeq.files.numbers import Floats, read_number
from gradeq.numerics import FAINT, SMALLEST

WORDS = {
    **dict.fromkeys(("a", "model_a", "home"), 1.0),
    **dict.fromkeys(("b", "model_b", "away"), 0.0),
    **dict.fromkeys(("tie", "draw", "tie (bothbad)", "both_bad"), 0.5),
}
ALWAYS = "a"  # of --home: a is at home in every game
AT_HOME = {
    **dict.fromkeys(("1", "1.0", "a", "model_a", "home", "true", "yes"), 1.0),
    **dict.fromkeys(("0", "0.0", "neutral", "false", "no"), 0.0),
    **dict.fromkeys(("-1", "-1.0", "b", "model_b", "away"), -1.0),
}
ON_NEUTRAL = {
    **dict.fromkeys(("1", "1.0", "true", "yes", "neutral"), 0.0),
    **dict.fromkeys(("0", "0.0", "false", "no", "home"), 1.0),
}


@dataclass(frozen=True)
class Sides:
    """Which columns hold the two players, the result (if any has it), the weight, and who is at home."""

    a: str
    b: str
    winner: str | None
    score: str | None
    weight: str | None
    skip_self: bool
    home: str | None = None
    neutral: str | None = None

    @property
    def sided(self) -> bool:
        """Whether somebody may be at home."""
        return self.home is not None or self.neutral is not None

    @property
    def result(self) -> str | None:
        """The column of results; None where they come later."""
        return self.winner if self.score is None else self.score

    @property
    def columns(self) -> list[str]:
        """The columns that are read; ``--home a`` names none."""
        home = None if self.home == ALWAYS else self.home
        named = (self.a, self.b, self.winner, self.score, self.weight, home, self.neutral)
        return list(dict.fromkeys(name for name in named if name is not None))


class Doubtful(NamedTuple):
    """Games whose winner is a player by name, and the other side or a tie as a word: how many, the first of them."""

    many: int
    row: str
    word: str


class Games(NamedTuple):
    """Games of a piece: the players' cells, a's scores (nan: none), which are no game at all."""

    piece: Piece
    a: Any
    b: Any
    scores: Floats
    weights: Floats | None
    against_itself: Any
    home: Floats | None = None
    doubtful: Doubtful | None = None


def parse(sides: Sides, piece: Piece) -> Games:
    """Read and check the columns; an error names the row in the file."""
    book = Codebook()
    a, b = piece.cells(sides.a), piece.cells(sides.b)
    first, second = book.codes(a), book.codes(b)
    names = book.names
    if MISSING_NAME in names:
        absent = names.index(MISSING_NAME)
        for codes, column in ((first, sides.a), (second, sides.b)):
            refuse(piece, codes == absent, f"column {column!r} has no player; drop the game")
    own = first == second
    if not sides.skip_self:
        who = names[first[int(np.argmax(own))]] if own.any() else ""
        refuse(
            piece, own, f"{shown(who)} against itself is no game; drop the row or give --skip-self"
        )
    doubtful = None
    if sides.score is not None:
        y = piece.numbers(sides.score, missing=True)
        rule = "lies outside [0, 1]; a's score is 1 for a win, 0 for a loss, 0.5 for a tie"
        piece.refuse((y < 0.0) | (y > 1.0), y, sides.score, rule)
    elif sides.winner is None:
        y = np.full(piece.length, np.nan)  # results come later
    else:
        y, doubtful = won(piece, sides.winner, book, first, second, own)
    weights = None
    if sides.weight is not None:
        weights = piece.numbers(sides.weight)
        rule = "is negative; weights are 0 (not learned from) or more"
        piece.refuse(weights < 0.0, weights, sides.weight, rule)
        piece.refuse((weights > 0.0) & (weights < SMALLEST), weights, sides.weight, FAINT)
    home = at_home(sides, piece) if sides.sided else None
    return Games(piece, a, b, y, weights, own, home, doubtful)


def enter(content: Content, games: Games) -> None:
    """Enter the columns of a piece into the content of a run."""
    content.cells("a", games.a)
    content.cells("b", games.b)
    for name, column in (("score", games.scores), ("weight", games.weights), ("home", games.home)):
        content.numbers(name, column)


def at_home(sides: Sides, piece: Piece) -> Floats:
    """1 where a is at home, 0 on neutral ground, -1 where b is."""
    found = np.ones(piece.length)
    if sides.home not in (None, ALWAYS):
        rule = "says nothing about who is at home: give 1, 0 or -1, a, b or neutral, true or false"
        found = worded(piece, sides.home, AT_HOME, rule)
    if sides.neutral is not None:
        rule = "does not say whether the ground is neutral: give true or false"
        found = found * worded(piece, sides.neutral, ON_NEUTRAL, rule)
    return found


def worded(piece: Piece, column: str | None, words: dict[str, float], rule: str) -> Floats:
    """A column of words as numbers."""
    assert column is not None
    book = Codebook()
    codes = book.codes(piece.cells(column))
    values = np.array([words.get(name.strip().lower(), np.nan) for name in book.names])
    found: Floats = values[codes] if len(values) else np.ones(0)
    wrong = np.isnan(found)
    if wrong.any():
        cell = book.names[codes[int(np.argmax(wrong))]]
        refuse(piece, wrong, f"column {column!r} has {shown(cell)}, which {rule}")
    return found


def without_own(games: Games) -> Games:
    """The games of two players: those against oneself are left out, and so are their players."""
    own = games.against_itself
    if not own.any():
        return games
    import pyarrow as pa

    kept = ~own
    mask = pa.array(kept)
    piece = games.piece
    times, due, never, weights, home = (
        None if column is None else column[kept]
        for column in (piece.times, piece.due, piece.never, games.weights, games.home)
    )
    piece = piece._replace(times=times, due=due, never=never)
    a, b = games.a.filter(mask), games.b.filter(mask)
    return Games(piece, a, b, games.scores[kept], weights, own[kept], home)


def won(
    piece: Piece, winner: str, book: Codebook, first: Any, second: Any, own: Any
) -> tuple[Floats, Doubtful | None]:
    """a's score from who won: a name of the two players goes before a word such as home or tie, which may differ."""
    codes = book.codes(piece.cells(winner))
    names = book.names
    scores = np.array([WORDS.get(name.strip().lower(), np.nan) for name in names])
    absent = np.array([name == MISSING_NAME or is_missing(name) for name in names])
    y = np.where(codes == first, 1.0, np.where(codes == second, 0.0, scores[codes]))
    wrong = np.isnan(y) & ~absent[codes] & ~own
    if wrong.any():
        cell = names[codes[int(np.argmax(wrong))]]
        rule = f"is neither of the two players nor one of: {', '.join(WORDS)}"
        if read_number(cell) is not None:
            rule += f"; if it is the score of the first player, give --score {winner}"
        refuse(piece, wrong, f"column {winner!r} has {shown(cell)}, which {rule}")
    word = scores[codes]
    twofold = np.flatnonzero(~np.isnan(word) & (word != y) & ~own)
    if not len(twofold):
        return y, None
    i = int(twofold[0])
    return y, Doubtful(len(twofold), piece.row(i), names[codes[i]])


def scores_of(column: Any) -> Any:
    """A column of scores in which words say who won: the words as numbers, the rest as it is."""
    import pyarrow as pa

    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return column
    cells = column.to_pylist()
    return pa.array(
        [None if cell is None else str(WORDS.get(cell.strip().lower(), cell)) for cell in cells],
        pa.string(),
    )


def refuse(piece: Piece, wrong: Any, text: str) -> None:
    """One line for the first row that is wrong."""
    if wrong.any():
        i = int(np.argmax(wrong))
        raise BadInput(f"{row_name(piece.chunk.first_row + i, piece.chunk.file)}: {text}")
