"""The leaderboard of an Elo layer as the page shows it: rows, the identity for its first player, a whole story."""

from __future__ import annotations

import math
from typing import Any

from gradeq.report import story as told
from gradeq.theory.elo import step_from_k


def player(row: Any) -> told.Player:
    """One row of the leaderboard."""
    return told.Player(
        row.rank, row.rank_low, row.rank_high, row.player, row.elo, row.elo_low, row.elo_high,
        row.games, row.win_rate, row.predicted_win_rate, row.bias, row.bound, bool(row.vacuous),
    )  # fmt: skip


def advantage(layer: Any, home: Any) -> told.Advantage | None:
    """What being at home is worth, where somebody was."""
    if home is None:
        return None
    return told.Advantage(home.elo, home.low, home.high, layer.step * layer._names.scale**2)


def method(layer: Any, board: list[Any], exact: bool) -> told.Method:
    """How games were forecast, and the identity worked through for the first player of the leaderboard."""
    auto, step = layer.eta == "auto", layer.step
    pulled = layer.penalty is not None or layer.proximal is not None
    extra = "A penalty also pulls ratings towards 0." if pulled else ""
    if not board:
        return told.Method("elo", auto=auto, extra=extra)
    first = board[0]
    line = told.Worked(
        first.player, first.games, first.tracked, first.bias, step if exact else None,
        first.bias * first.games,
    )  # fmt: skip
    return told.Method("elo", (line,), exact, auto, extra=extra)


def log_loss(games: int, after: float | None) -> told.Loss | None:
    """The log loss of forecasts beside a coin's; none without results."""
    return None if not games or after is None else told.Loss("log loss", math.log(2.0), after)


def elo_story(layer: Any, made: told.Made) -> told.EloStory:
    """The story of an Elo layer from its state: the board, and what is certified."""
    board, reached = layer.board(), layer.equilibrium()
    return told.EloStory(
        made=made,
        a="first player",
        b="second player",
        games=reached.rows,
        players=len(board.rows),
        loss=log_loss(reached.rows, reached.loss_after),
        certificate=told.Certificate(
            abs(reached.largest), reached.bound, reached.gap, reached.exact, bool(reached.vacuous)
        ),
        rows=tuple(player(row) for row in board.rows),
        k=layer.step / step_from_k(1.0),
        eta=layer.step,
        method=method(layer, board.rows, reached.exact),
        ties=None,
        lines=board.lines,
        home=advantage(layer, board.home),
        fitted=board.weight,
        residual=None if board.fit is None else board.fit.residual,
    )
