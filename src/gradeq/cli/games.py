"""Columns of games: players, scores, weights, home advantage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gradeq.cli.row_reader import Piece
from gradeq.cli.session import ContentHash
from gradeq.files import MISSING_NAME, Codebook, is_missing
from gradeq.files.cells import Floats, Ints, Mask, read_number, show_cell

if TYPE_CHECKING:
    import pyarrow as pa

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
class GameColumnNames:
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
        return self.home is not None or self.neutral is not None

    @property
    def result(self) -> str | None:
        return self.winner if self.score is None else self.score

    @property
    def names(self) -> list[str]:
        home = None if self.home == ALWAYS else self.home
        named = (self.a, self.b, self.winner, self.score, self.weight, home, self.neutral)
        return list(dict.fromkeys(name for name in named if name is not None))


class AmbiguousWinner(NamedTuple):
    """Games whose winner is both a player's name and a word such as home or tie."""

    many: int
    row: str
    word: str


class GameRows(NamedTuple):
    """Games of a piece: players, a's scores (nan: unknown), and which are against oneself."""

    piece: Piece
    a: pa.Array
    b: pa.Array
    scores: Floats
    weights: Floats | None
    against_itself: Mask
    home: Floats | None = None
    doubtful: AmbiguousWinner | None = None


def parse_games(columns: GameColumnNames, piece: Piece) -> GameRows:
    book = Codebook()
    a, b = piece.cells(columns.a), piece.cells(columns.b)
    first, second = book.codes(a), book.codes(b)
    names = book.names
    if MISSING_NAME in names:
        absent = names.index(MISSING_NAME)
        for codes, name in ((first, columns.a), (second, columns.b)):
            piece.refuse(codes == absent, f"column {name!r} has no player; drop the game")
    self_games = first == second
    if not columns.skip_self:
        who = names[first[int(np.argmax(self_games))]] if self_games.any() else ""
        piece.refuse(self_games, f"{show_cell(who)} plays against itself; drop the row or give --skip-self")
    doubtful = None
    if columns.score is not None:
        y = piece.numbers(columns.score, missing=True)
        rule = "lies outside [0, 1]; a's score is 1 for a win, 0 for a loss, 0.5 for a tie"
        piece.refuse_values((y < 0.0) | (y > 1.0), y, columns.score, rule)
    elif columns.winner is None:
        y = np.full(piece.batch.num_rows, np.nan)  # results come later
    else:
        y, doubtful = scores_from_winner(piece, columns.winner, book, first, second, self_games)
    weights = None if columns.weight is None else piece.weights(columns.weight)
    home = home_advantage(columns, piece) if columns.sided else None
    return GameRows(piece, a, b, y, weights, self_games, home, doubtful)


def hash_games(content: ContentHash, games: GameRows) -> None:
    content.cells("a", games.a)
    content.cells("b", games.b)
    content.numbers(score=games.scores, weight=games.weights, home=games.home)


def home_advantage(columns: GameColumnNames, piece: Piece) -> Floats:
    """1 where a is at home, 0 on neutral ground, -1 where b is."""
    home = np.ones(piece.batch.num_rows)
    if columns.home is not None and columns.home != ALWAYS:
        rule = "says nothing about who is at home: give 1, 0 or -1, a, b or neutral, true or false"
        home = words_to_numbers(piece, columns.home, AT_HOME, rule)
    if columns.neutral is not None:
        rule = "does not say whether the ground is neutral: give true or false"
        home *= words_to_numbers(piece, columns.neutral, ON_NEUTRAL, rule)
    return home


def words_to_numbers(piece: Piece, column: str, words: dict[str, float], rule: str) -> Floats:
    book = Codebook()
    codes = book.codes(piece.cells(column))
    values = np.array([words.get(name.strip().lower(), np.nan) for name in book.names])
    numbers: Floats = values[codes] if len(values) else np.ones(0)
    wrong = np.isnan(numbers)
    if wrong.any():
        cell = book.names[codes[int(np.argmax(wrong))]]
        piece.refuse(wrong, f"column {column!r} has {show_cell(cell)}, which {rule}")
    return numbers


def drop_self_games(games: GameRows) -> GameRows:
    self_games = games.against_itself
    if not self_games.any():
        return games
    import pyarrow as pa

    others = ~self_games

    def column(values: Floats | None) -> Floats | None:
        return None if values is None else values[others]

    piece, mask = games.piece, pa.array(others)
    never = None if piece.never is None else piece.never[others]
    times, due = (None if moments is None else moments[others] for moments in (piece.times, piece.due))
    piece = replace(piece, times=times, due=due, never=never)
    a, b, weights, home = games.a.filter(mask), games.b.filter(mask), column(games.weights), column(games.home)
    return GameRows(piece, a, b, games.scores[others], weights, self_games[others], home)


def scores_from_winner(
    piece: Piece, winner: str, book: Codebook, first: Ints, second: Ints, self_games: Mask
) -> tuple[Floats, AmbiguousWinner | None]:
    """a's score from the winner; a player's name takes precedence over a word such as home or tie."""
    codes = book.codes(piece.cells(winner))
    names = book.names
    scores = np.array([WORDS.get(name.strip().lower(), np.nan) for name in names])
    absent = np.array([name == MISSING_NAME or is_missing(name) for name in names])
    y = np.where(codes == first, 1.0, np.where(codes == second, 0.0, scores[codes]))
    wrong = np.isnan(y) & ~absent[codes] & ~self_games
    if wrong.any():
        cell = names[codes[int(np.argmax(wrong))]]
        rule = f"is neither of the two players nor one of: {', '.join(WORDS)}"
        if read_number(cell) is not None:
            rule += f"; if it is the score of the first player, give --score {winner}"
        piece.refuse(wrong, f"column {winner!r} has {show_cell(cell)}, which {rule}")
    word = scores[codes]
    twofold = np.flatnonzero(~np.isnan(word) & (word != y) & ~self_games)
    if not len(twofold):
        return y, None
    i = int(twofold[0])
    return y, AmbiguousWinner(len(twofold), piece.row(i), names[codes[i]])


def words_to_scores(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return column
    cells = column.to_pylist()
    return pa.array(
        [None if cell is None else str(WORDS.get(cell.strip().lower(), cell)) for cell in cells], pa.string()
    )
