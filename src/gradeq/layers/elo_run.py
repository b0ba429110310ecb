"""Whole columns of games through Elo, and what comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.engine.columns import Columns
from gradeq.engine.keeping import Kept
from gradeq.errors import BadInput
from gradeq.layers import columns as check
from gradeq.layers.coding import coded
from gradeq.layers.doubts import clocks_changed, dated_before
from gradeq.layers.run import Run, Trace, checked_ids, snapshot, tracer
from gradeq.rules.rating import COIN, NOT_LATE

if TYPE_CHECKING:
    from gradeq.layers.elo import Elo
    from gradeq.ledger.batch import Floats, Ints

OUTSIDE = "lies outside [0, 1]; a's score is 1 for a win, 0 for a loss, 0.5 for a tie"


class EloRun(Run):
    """What a pass over games gave.

    ``served``: the probability before each game that a wins, of the same type as the scores (or the players).
    ``labelled``: games learned from; ``ties``: scores of 1/2; ``skipped``: games of a player against itself;
    ``waiting``, ``expired``: late scores, as for every layer.
    """

    ties: int
    skipped: int

    @property
    def trace(self) -> Trace:
        """The ratings over the run, at up to 200 moments (computed when first asked for, by playing again)."""
        return self._traced("ratings")


def run_elo(
    elo: Elo,
    a: Any,
    b: Any,
    score: Any,
    weights: Any,
    home: Any,
    times: Any,
    label_times: Any,
    skip_self: bool,
    ids: Any = None,
) -> EloRun:
    """Check everything, then one pass; the layer is unchanged if anything is refused."""
    from gradeq import frames

    frames.same_index(
        a=a,
        b=b,
        score=score,
        weights=weights,
        home=home,
        times=times,
        label_times=label_times,
        ids=ids,
    )
    own = two_columns(a, b)
    n = len(own[0][0])
    y = scores(score, n)
    w = None if weights is None else check.weights(weights, n)
    h = sides(elo, home, n)
    when, due, never = check.clocks(times, label_times, n, elo._book, "game")
    doubts = elo._doubts
    said = []
    if not doubts.silent:
        kind = elo._book.clock
        said = [dated_before(when, due, y, kind), clocks_changed(when, kind)]
    if (due is not None or ids is not None) and elo.proximal is not None:
        raise BadInput(NOT_LATE)
    named = None if ids is None else checked_ids(elo, ids, n)
    for column, what in ((w, "weights"), (h, "home")):
        if column is not None:
            check.same_length(n, len(column), what)
    kept: Ints | None = None
    ties = 0

    def made() -> Columns:
        nonlocal kept, ties
        pairs, kept = games(elo._names, own, skip_self)
        columns: list[Any] = [y, w, h, when, due, never]
        if kept is not None:
            columns = [None if column is None else column[kept] for column in columns]
        played, weighing, first, served_at, due_at, lost = columns
        tickets = None
        if named is not None:
            heard = np.where(lost, np.nan, played)
            played_ids = named if kept is None else [named[k] for k in kept.tolist()]
            tickets = Kept(played_ids, heard)
        tied = played == 0.5
        ties = int(np.count_nonzero(tied))
        if elo.ties == "drop":  # a dropped tie is no game
            lost = lost | tied
        if lost.any():
            played = np.where(lost, np.nan, played)
        base = np.broadcast_to(COIN, len(pairs.a))
        placed = elo._names.columns(pairs, first)
        return Columns(base, played, weighing, placed, served_at, due_at, tickets)

    start = snapshot(elo, when)
    ran, columns = elo._run(made)
    values = ran.served
    if kept is not None:
        values = np.full(n, np.nan)
        values[kept] = ran.served
        ran = ran._replace(posts=kept[ran.posts])
    like = score if score is not None else a
    served = values if isinstance(like, np.ndarray) else frames.like(like, values)
    run = EloRun(served, values, ran, tracer(elo, start, columns))
    run.ties, run.skipped = ties, n - len(columns.base)
    for text in said:
        doubts.say(text)
    return run


def two_columns(a: Any, b: Any) -> list[tuple[Ints, list[str]]]:
    """Codes and names of both columns of players."""
    own = [coded(column, f"player {what}") for column, what in ((a, "a"), (b, "b"))]
    if len(own[0][0]) != len(own[1][0]):
        raise BadInput(
            f"a has {len(own[0][0])} rows, b has {len(own[1][0])}; give columns of one length"
        )
    return own


def scores(score: Any, n: int) -> Floats:
    """The scores of a, in [0, 1] or missing."""
    y = check.labels(score, n)
    check.same_length(n, len(y), "score")
    check.refuse((y < 0.0) | (y > 1.0), y, "score", OUTSIDE)
    return y


def games(
    names: Any, own: list[tuple[Ints, list[str]]], skip_self: bool
) -> tuple[Any, Ints | None]:
    """The players of each game, entered if new, and which rows are games (None: all of them)."""
    mark = names.mark()
    pairs = names.entered(own)
    alone = pairs.a == pairs.b
    if not alone.any():
        return pairs, None
    row = int(np.argmax(alone))
    if not skip_self:
        raise BadInput(
            f"row {row}: player {names.names[pairs.a[row]]!r} against itself is no game "
            f"({int(alone.sum())} such rows); drop it, or use skip_self"
        )
    kept = np.flatnonzero(~alone)
    names.forget(mark)  # who plays nobody else is no player
    return names.entered([(codes[kept], labels) for codes, labels in own]), kept


def sides(elo: Elo, home: Any, n: int) -> Floats | None:
    """Where the first side is in each game; None where it has no parameter."""
    if not elo._names.home:
        if home is not None:
            raise BadInput("this Elo has no advantage of the first side; use home_advantage=True")
        return None
    if home is None:
        return np.ones(n)
    column = check.numbers(home, "home")
    beyond = (column < -1.0) | (column > 1.0)
    check.refuse(beyond, column, "home", "must be 1 (a at home), 0 or -1 (b at home)")
    return column
