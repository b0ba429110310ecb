"""Whole columns of games through Elo, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradeq.engine.batch import Batch, Rows, posted_at_once
from gradeq.engine.pair_passes import Games, play
from gradeq.engine.pairs import Pairs
from gradeq.engine.stream import Columns, Ran, run_columns, serving_order
from gradeq.errors import BadInput
from gradeq.layers import columns as door
from gradeq.layers.run import POINTS, Trace

if TYPE_CHECKING:
    from gradeq.engine.batch import Floats, Ints
    from gradeq.layers.elo import Elo


class EloRun:
    """What a pass over games gave.

    ``served``: the probability before each game that a wins, of the same type as the scores (or the players).
    ``labelled``: games learned from; ``ties``: scores of 1/2; ``skipped``: games of a player against itself;
    ``waiting``, ``expired``: late scores, as for every layer; ``trace``: the ratings over the run.
    """

    def __init__(
        self,
        served: Any,
        values: Any,
        ran: Ran,
        again: Callable[[], Trace],
        ties: int,
        skipped: int,
    ) -> None:
        self.served, self.values = served, values
        self.labelled, self.waiting, self.expired = len(ran.posts), ran.waiting, ran.expired
        self.posts = ran.posts
        self.ties, self.skipped = ties, skipped
        self._again = again

    @cached_property
    def trace(self) -> Trace:
        """The ratings over the run, at up to 200 moments (computed when first asked for, by playing again)."""
        return self._again()


class Played(NamedTuple):
    """Checked columns of games, self-games left out."""

    a: Ints
    b: Ints
    scores: Floats
    weights: Floats | None
    home: Floats | None
    when: Any
    due: Any


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
) -> EloRun:
    """Check everything at the door, then one pass; the layer is unchanged if anything is refused."""
    from gradeq import frames

    desk = elo.desk
    known = len(elo.players.names)
    start = deepcopy(desk)
    try:
        j, k = elo.players.coded(a, b)
        played, kept, ties = checked(elo, j, k, score, weights, home, times, label_times, skip_self)
        elo._grow()
        ran = passed(elo, played)
    except Exception:
        for name in list(elo.players.names)[known:]:
            del elo.players.names[name]
        elo.desk = start
        raise
    values = ran.served
    if kept is not None:
        values = np.full(len(j), np.nan)
        values[kept] = ran.served
        ran = ran._replace(posts=kept[ran.posts])
    names = list(elo.players.names)

    def again() -> Trace:
        return traced(elo, start, names, played)

    like = score if score is not None else a
    served = values if isinstance(like, np.ndarray) else frames.like(like, values)
    return EloRun(served, values, ran, again, ties, len(j) - len(played.a))


def checked(
    elo: Elo,
    j: Ints,
    k: Ints,
    score: Any,
    weights: Any,
    home: Any,
    times: Any,
    label_times: Any,
    skip_self: bool,
) -> tuple[Played, Ints | None, int]:
    """The columns, the rows that are games, and how many are ties."""
    n = len(j)
    y = door.labels(score, n)
    door.same_length(n, len(y), "score")
    rule = "lies outside [0, 1]; a's score is 1 for a win, 0 for a loss, 0.5 for a tie"
    door.refuse((y < 0.0) | (y > 1.0), y, "score", rule)
    w = None if weights is None else door.weights(weights, n)
    h = sides(elo, home, n)
    when, _ = door.times(times, n, "times")
    due, never = door.times(label_times, n, "label times", missing=True)
    if due is not None and when is None:
        raise BadInput("label_times needs times as well: when each game was served")
    if due is not None and elo.proximal is not None:
        raise BadInput(
            "the proximal lasso needs scores at once; use penalty=Lasso(...) for late ones"
        )
    for column, what in ((w, "weights"), (h, "home")):
        if column is not None:
            door.same_length(n, len(column), what)
    own = j == k
    kept = None
    if own.any():
        if not skip_self:
            row = int(np.argmax(own))
            names = list(elo.players.names)
            raise BadInput(
                f"row {row}: player {names[j[row] - 1]!r} against itself is no game "
                f"({int(own.sum())} such rows); drop it, or use skip_self"
            )
        kept = np.flatnonzero(~own)
        j, k, y, never = j[kept], k[kept], y[kept], never[kept]
        w, h, when, due = (None if c is None else c[kept] for c in (w, h, when, due))
    tied = y == 0.5
    ties = int(np.count_nonzero(tied))
    if elo.desk.frozen:
        y = np.full(len(y), np.nan)
    elif never.any():
        y = np.where(never, np.nan, y)
    if ties and elo.ties == "drop":
        y = np.where(tied, np.nan, y)
    return Played(j, k, y, w, h, when, due), kept, ties


def sides(elo: Elo, home: Any, n: int) -> Floats | None:
    """The feature of the first side for each game; None without one."""
    if not elo.players.home:
        if home is not None:
            raise BadInput("this Elo has no advantage of the first side; use home_advantage=True")
        return None
    if home is None:
        return np.ones(n)
    column = door.numbers(home, "home")
    door.refuse(
        (column < -1.0) | (column > 1.0),
        column,
        "home",
        "must be 1 (a at home), 0 or -1 (b at home)",
    )
    return column


def passed(elo: Elo, played: Played) -> Ran:
    """One pass of the head: straight when scores are at once and none was ever late, else over the desk."""
    desk = elo.desk
    head = desk.head
    n = len(played.a)
    if n == 0:
        return Ran(np.empty(0), np.empty(0, dtype=np.int64), 0, len(desk.waiting))
    calm = not (np.array(desk.peaks) > 1).any() and not np.array(desk.open_now).any()
    if calm and played.when is None:
        posts = np.arange(n)
        if played.weights is not None or np.isnan(played.scores).any():
            w = np.ones(n) if played.weights is None else played.weights
            posts = np.flatnonzero(~np.isnan(played.scores) & (w > 0.0))
            desk.heaviest = max(desk.heaviest, float(w[posts].max(initial=1.0)))
        if isinstance(head, Pairs):
            games = Games(played.a, played.b, played.scores, played.weights, played.home)
            served = play(head, games)
        else:
            served, _ = head.run(at_once(played))
        desk.served += len(posts)
        desk.posted += len(posts)
        desk.clocks[0] += len(posts)
        if len(posts):
            desk.tops[0], desk.largest = max(desk.tops[0], 1.0), max(desk.largest, 1.0)
        return Ran(served, posts, 0, 0)
    rows, cells = sparse(played)
    nothing = np.zeros(n, dtype=np.int64)
    w = np.ones(n) if played.weights is None else played.weights
    when, due = played.when, played.due
    columns = Columns(np.zeros(n), played.scores, w, rows, cells, nothing, nothing, None, when, due)
    return run_columns(desk, columns)


def at_once(played: Played) -> Batch:
    """A batch of games scored at once, none of them ever late."""
    n = len(played.a)
    rows, _ = sparse(played)
    w = np.ones(n) if played.weights is None else played.weights
    opens = ~np.isnan(played.scores) & (w > 0.0)
    posting = posted_at_once(opens)
    nothing = np.zeros(n, dtype=np.int64)
    return Batch(
        np.zeros(n), played.scores, w, nothing, np.zeros(n), rows, nothing, 0, posting.cuts,
        posting.posts, [], True, False,
    )  # fmt: skip


def sparse(played: Played) -> tuple[Rows, Rows]:
    """Parameters and counters of each game as sparse rows."""
    n = len(played.a)
    params = [played.a, played.b]
    values = [np.ones(n), -np.ones(n)]
    if played.home is not None:
        params.append(np.zeros(n, dtype=np.int64))
        values.append(played.home)
    starts = np.arange(n + 1) * len(params)
    index = np.stack(params, axis=1).astype(np.int64).ravel()
    return (
        Rows(starts, index, np.stack(values, axis=1).ravel()),
        Rows(starts, index, np.ones(len(index))),
    )


def traced(elo: Elo, start: Any, names: list[str], played: Played) -> Trace:
    """Run again from the start in pieces, reading the ratings between them (pieces give the same bits)."""
    layer = type(elo)(**elo.settings)
    layer.players.names = {name: j + 1 for j, name in enumerate(names)}
    layer.desk = deepcopy(start)
    layer.desk.head.grow(layer.players.count)
    layer.desk.grow(1, layer.players.count)
    order = serving_order(played.when)
    order = np.arange(len(played.a)) if order is None else order
    cuts = np.unique(np.linspace(0, len(order), min(POINTS, len(order)) + 1).astype(int))
    ratings = [list(layer.ratings.values())]
    for i, j in pairwise(cuts.tolist()):
        piece = order[i:j]
        cut: Any = (None if c is None else c[piece] for c in played)
        passed(layer, Played(*cut))
        ratings.append(list(layer.ratings.values()))
    return Trace(cuts, names, np.array(ratings))
