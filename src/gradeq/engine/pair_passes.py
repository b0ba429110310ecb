"""Whole batches of games through the head of Elo: choose the loop that fits, check, then take over the result."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradeq.engine.batch import Batch, Floats, Ints
from gradeq.engine.margin import diverging
from gradeq.engine.pairs import JUDGE
from gradeq.engine.passes import held_down
from gradeq.kernels import loops, rating, rating_plain
from gradeq.kernels.call import run_loop
from gradeq.schedules import Constant, Power

if TYPE_CHECKING:
    from gradeq.engine.pairs import Memo, Pairs


WORK = 5  # a game is worth so many rows of a plain layer when the compiler is weighed


class Games(NamedTuple):
    """Games in order of service; None stands for weights of 1, no first side, no offset, no late scores."""

    a: Ints
    b: Ints
    scores: Floats
    weights: Floats | None = None
    home: Floats | None = None
    base: Floats | None = None
    crowd: Floats | None = None


def run_pairs(head: Pairs, batch: Batch) -> tuple[Floats, list[Memo]]:
    """Serve and learn from the batch; nothing of the head has changed if this raises."""
    params = batch.rows.params.reshape(len(batch.base), -1)
    home = None
    if params.shape[1] > 2:
        home = np.ascontiguousarray(batch.rows.value.reshape(params.shape)[:, 2])
    a, b = np.ascontiguousarray(params[:, 0]), np.ascontiguousarray(params[:, 1])
    crowd = batch.crowd if batch.crowd.any() else None
    weights = None if (batch.weights == 1.0).all() else batch.weights
    games = Games(a, b, batch.labels, weights, home, batch.base, crowd)
    if batch.at_once:
        return play(head, games), []
    if head.penalty is not None:
        return one_by_one(head, batch)
    return play_late(head, games, batch)


def play(head: Pairs, games: Games) -> Floats:
    """Every score at once (nan: none)."""
    n = len(games.a)
    served = np.empty(n)
    state = Columns.of(head)
    plain = (
        head.plain
        and games.weights is None
        and games.home is None
        and games.crowd is None
        and not np.isnan(games.scores).any()
    )
    if plain:
        eta = head.schedule.step(1)
        a, b, y = games.a, games.b, games.scores
        # Unsigned indices spare the loop a look for negative ones.
        unsigned = (a.view(np.uint64), b.view(np.uint64))
        run_loop(rating_plain.rated, (), (*unsigned, y, eta, state.u, served), WORK * n)
        state.check(eta)
        accounts = (state.sums, state.total)
        run_loop(rating_plain.accounted, (JUDGE,), (a, b, y, eta, served, *accounts), WORK * n)
        if n:
            head.pace.note(eta, eta, 0)
            rating.varied((eta,), (True,), head.path)
        state.take(head)
        head.learned += n
        return served
    weights = np.ones(n) if games.weights is None else games.weights
    opens = ~np.isnan(games.scores) & (weights > 0.0)
    before: Any = np.cumsum(opens) - opens
    etas = steps(head, games, before + head.learned + 1, opens)
    rows = (
        offsets(head, games),
        np.zeros(n) if games.home is None else games.home,
        games.a, games.b, games.scores, weights, etas,
    )  # fmt: skip
    columns = (state.u, state.sums, state.total, state.drags, state.pulls)
    if head.dense:
        scratch = np.empty(len(state.u))
        parts: tuple[Any, ...] = (head.penalty, JUDGE)
        run_loop(rating.played_dense, parts, (*rows, *columns, scratch, served), WORK * n)
    else:
        parts = (head.rule, JUDGE)
        own = (*columns, state.marks, state.notes, served)
        run_loop(rating.played, parts, (*rows, *own), WORK * n)
    state.check(float(etas.max(initial=0.0)))
    note_steps(head, games, etas, before + head.learned + 1, opens)
    state.take(head)
    head.learned += int(np.count_nonzero(opens))
    return served


def play_late(head: Pairs, games: Games, batch: Batch) -> tuple[Floats, list[Memo]]:
    """Scores in any order; games before ``first`` were served in an earlier run."""
    n, first = len(games.a), batch.first
    served = np.empty(n)
    state = Columns.of(head)
    weights = batch.weights
    opens = ~np.isnan(games.scores) & (weights > 0.0)
    opens[:first] = False
    before = batch.cuts + head.learned
    etas = steps(head, games, before + 1, opens)
    shifts = offsets(head, games)
    for k, memo in enumerate(batch.memos[:first]):
        served[k], etas[k], before[k], shifts[k] = memo[:4]
    home = np.zeros(n) if games.home is None else games.home
    rows = (shifts, home, games.a, games.b, games.scores, weights, etas)
    order = (first, batch.cuts, batch.posts)
    own = (
        state.u, state.sums, state.total, state.drags, state.pulls, state.marks, state.notes, served,
    )  # fmt: skip
    run_loop(rating.played_late, (head.rule, JUDGE), (*rows, *order, *own), WORK * n)
    state.check(float(etas.max(initial=0.0)))
    note_steps(head, games, etas, before + 1, opens)
    state.take(head)
    head.learned += len(batch.posts)
    notes = (served.tolist(), etas.tolist(), before.tolist(), shifts.tolist())
    return served, [(*memo, None) for memo in zip(*notes, strict=True)]


def one_by_one(head: Pairs, batch: Batch) -> tuple[Floats, list[Memo]]:
    """Late scores with a penalty: each ticket carries the slopes of all ratings, so event by event."""
    saved = deepcopy(head.state())
    try:
        return _one_by_one(head, batch)
    except Exception:
        head.restore(saved)
        raise


def _one_by_one(head: Pairs, batch: Batch) -> tuple[Floats, list[Memo]]:
    starts = batch.rows.starts.tolist()
    index, value = batch.rows.params.tolist(), batch.rows.value.tolist()
    base, scores, weights = batch.base.tolist(), batch.labels.tolist(), batch.weights.tolist()
    memos = list(batch.memos[: batch.first])
    served = [memo[0] for memo in memos]
    posts, done = batch.posts.tolist(), 0

    def post(k: int) -> None:
        i, j = starts[k], starts[k + 1]
        head.post(0, index[i:j], value[i:j], base[k], memos[k], weights[k], scores[k])

    for g in range(batch.first, len(base)):
        while done < batch.cuts[g]:
            post(posts[done])
            done += 1
        i, j = starts[g], starts[g + 1]
        row = (index[i:j], value[i:j])
        if scores[g] == scores[g] and weights[g] > 0.0:
            p, memo = head.serve(0, *row, base[g], 0, float(batch.crowd[g]))
        else:
            p, memo = head.chance(*row, base[g]), ()
        served.append(p)
        memos.append(memo)
    for k in posts[done:]:
        post(k)
    return np.array(served), memos


def steps(head: Pairs, games: Games, ticks: Ints, opens: Any) -> Floats:
    """The step of each game, capped where scores are late."""
    n = len(games.a)
    crowd = np.zeros(n) if games.crowd is None else games.crowd
    etas = wanted(head, ticks, crowd)
    if opens.any():
        head.check_step(float(etas[opens].max()))
    return etas


def wanted(head: Pairs, ticks: Ints, crowd: Floats) -> Floats:
    """The schedule's steps at these times, capped at limit / crowd."""
    if isinstance(head.schedule, Constant) and not crowd.any():
        return np.full(len(ticks), head.schedule.eta)
    etas = np.empty(len(ticks))
    # Only these two are sure to compile; any other schedule is asked game by game.
    rows = len(ticks) if isinstance(head.schedule, (Constant, Power)) else 0
    run_loop(loops.stepped, (head.schedule,), (ticks, etas), rows)
    return held_down(etas, head.limit, crowd)


def note_steps(head: Pairs, games: Games, etas: Floats, ticks: Ints, opens: Any) -> None:
    """Note the steps of games that open a ticket: range, how many were capped, and how they varied."""
    taken = etas[opens]
    if not len(taken):
        return
    held = 0
    if games.crowd is not None and games.crowd.any():
        held = int(np.count_nonzero(taken < wanted(head, ticks, np.zeros(len(ticks)))[opens]))
    head.pace.note(float(taken.min()), float(taken.max()), held)
    if head.pace.constant:
        rating.varied((float(taken[0]),), (True,), head.path)
    else:
        run_loop(rating.varied, (), (etas, opens, np.frombuffer(head.path)), len(etas))


def offsets(head: Pairs, games: Games) -> Floats:
    """The logit of each base probability, or zeros."""
    result = np.zeros(len(games.a))
    if head.offset and games.base is not None:
        run_loop(rating.shifted, (), (games.base, result), len(result))
    return result


class Columns(NamedTuple):
    """The head's arrays, copied: nothing of the head has changed until ``take``."""

    u: Floats
    sums: Floats
    total: Floats
    drags: Floats
    pulls: Floats
    marks: Floats
    notes: Floats

    @classmethod
    def of(cls, head: Pairs) -> Columns:
        """Copies of the head's arrays."""
        return cls(*(np.array(getattr(head, name)) for name in cls._fields))

    def check(self, eta: float) -> None:
        """Raise ``Diverging`` when a rating left the finite numbers."""
        if not np.isfinite(self.u).all():
            raise diverging(eta)

    def take(self, head: Pairs) -> None:
        """Write the arrays back."""
        for name in self._fields:
            np.frombuffer(getattr(head, name))[:] = getattr(self, name)
