"""Whole batches through the margin head: choose the loop that fits, check, then enter the accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradeq.engine.batch import Batch, Floats, single
from gradeq.kernels import loops
from gradeq.kernels.call import run_loop, unsigned
from gradeq.schedules import Called, Constant, Schedule

if TYPE_CHECKING:
    from gradeq.engine.margin import Margin, Memo
    from gradeq.engine.pace import Pace


def run_margin(head: Margin, batch: Batch) -> tuple[Floats, list[Memo]]:
    """Serve and learn from the batch; nothing of the head has changed if this raises."""
    if head.penalty is not None and not batch.at_once:
        return one_by_one(head, batch)
    n = len(batch.base)
    u = np.array(head.u)
    served = np.empty(n)
    starts, index, value = batch.rows
    parts = (head.link, head.loss)
    if plain_indexed(head, batch):
        eta = head.schedule.step(1)
        head.pace.note(eta, eta, 0)
        if n and eta != head.pace.last:
            head.pace.vary((eta,))
        columns = (batch.base, batch.labels, eta)
        if len(u) == 1:
            u[0] = run_loop(loops.scalar, parts, (*columns, float(u[0]), served), n)
        else:
            run_loop(loops.indexed, parts, (*columns, *unsigned(index), u, served), n)
        check_range(head, batch, u, eta)
        sums = np.frombuffer(head.sums)
        run_loop(loops.tally_indexed, parts, (*columns, served, index, sums), n)
        if head.total:
            nowhere = np.zeros(n, dtype=np.int64)
            total = np.frombuffer(head.total)
            run_loop(loops.tally_indexed, parts, (*columns, served, nowhere, total), n)
        np.frombuffer(head.u)[:] = u
        return served, []
    etas = steps(head, batch)
    entries = (*unsigned(starts, index), value)
    for k in range(batch.first):
        served[k], etas[k], _ = batch.memos[k]
    shared = (batch.base, batch.labels, batch.weights, etas)
    pulls, drags = np.array(head.pulls), np.array(head.drags)
    if head.penalty is not None:
        scratch = np.empty(len(u))
        run_loop(
            loops.penalised,
            (*parts, head.penalty),
            (*shared, *entries, u, pulls, drags, scratch, served),
            n,
        )
    elif batch.at_once:
        run_loop(loops.sparse, parts, (*shared, *entries, u, served), n)
    else:
        order = (batch.first, batch.cuts, batch.posts)
        run_loop(loops.late, parts, (*shared, *entries, *order, u, served), n)
    check_range(head, batch, u, float(etas.max(initial=0.0)))
    sums = np.frombuffer(head.sums)
    run_loop(loops.tally, parts, (*shared, served, batch.posts, starts, index, value, sums), n)
    if head.total:
        starts, index, value = single(np.zeros(n, dtype=np.int64))
        total = np.frombuffer(head.total)
        run_loop(loops.tally, parts, (*shared, served, batch.posts, starts, index, value, total), n)
    np.frombuffer(head.u)[:] = u
    if head.penalty is not None:
        np.frombuffer(head.pulls)[:] = pulls
        np.frombuffer(head.drags)[:] = drags
    return served, [(s, eta, None) for s, eta in zip(served.tolist(), etas.tolist(), strict=True)]


def plain_indexed(head: Margin, batch: Batch) -> bool:
    """Whether the quickest loops fit: one entry of value 1 a row, one constant step, nothing late."""
    return (
        batch.plain
        and head.penalty is None
        and isinstance(head.schedule, Constant)
        and len(batch.rows.params) == len(batch.base)
        and bool(np.all(batch.rows.value == 1.0))
    )


def steps(head: Margin, batch: Batch) -> Floats:
    """The step of each row, capped where labels are late."""
    sizes = batch.sizes if head.size is not None else None
    return stepped(head.schedule, head.limit, head.pace, batch, sizes)


def stepped(
    schedule: Schedule, limit: float, pace: Pace, batch: Batch, sizes: Floats | None = None
) -> Floats:
    """The step of each row (over its size); ``pace`` notes those of the rows served now."""
    etas = np.empty(len(batch.base))
    rows = 0 if isinstance(schedule, Called) else len(etas)  # a user's function is not compiled
    run_loop(loops.stepped, (schedule,), (batch.ticks, etas), rows)
    if sizes is not None:
        etas = etas / sizes
    fresh = etas[batch.first :]
    held = 0
    if batch.crowd.any():
        capped = held_down(etas, limit, batch.crowd)
        held = int(np.count_nonzero(capped[batch.first :] < fresh))
        etas, fresh = capped, capped[batch.first :]
    if len(fresh):
        pace.note(float(fresh.min()), float(fresh.max()), held)
        changes = np.flatnonzero(np.diff(fresh, prepend=pace.last))
        pace.vary(fresh[changes].tolist())
    return etas


def held_down(etas: Floats, limit: float, crowd: Floats) -> Floats:
    """Steps capped at limit / Q where Q > 0 (``loops.cap``, a column at a time)."""
    capped = etas.copy()
    late = crowd > 0.0
    capped[late] = np.minimum(etas[late], limit / crowd[late])
    return capped


def one_by_one(head: Margin, batch: Batch) -> tuple[Floats, list[Memo]]:
    """Late labels with a penalty: each ticket carries the slopes of all parameters, so event by event."""
    saved = [array[:] for array in (head.u, head.sums, head.total, head.pulls, head.drags)]
    try:
        return _one_by_one(head, batch)
    except Exception:
        head.u, head.sums, head.total, head.pulls, head.drags = saved
        raise


def _one_by_one(head: Margin, batch: Batch) -> tuple[Floats, list[Memo]]:
    starts = batch.rows.starts.tolist()
    index, value = batch.rows.params.tolist(), batch.rows.value.tolist()
    base, labels, weights = batch.base.tolist(), batch.labels.tolist(), batch.weights.tolist()
    memos = list(batch.memos[: batch.first])

    def post(k: int) -> None:
        a, b = starts[k], starts[k + 1]
        head.post(0, index[a:b], value[a:b], base[k], memos[k], weights[k], labels[k])

    posts, done = batch.posts.tolist(), 0
    for i in range(batch.first, len(base)):
        while done < batch.cuts[i]:
            post(posts[done])
            done += 1
        a, b = starts[i], starts[i + 1]
        _, memo = head.serve(
            0, index[a:b], value[a:b], base[i], int(batch.ticks[i]), float(batch.crowd[i])
        )
        memos.append(memo)
    for k in posts[done:]:
        post(k)
    return np.array([memo[0] for memo in memos]), memos


def check_range(head: Margin, batch: Batch, u: Floats, eta: float) -> None:
    """Raise ``Diverging`` when a parameter left its range, or the finite numbers."""
    from gradeq.engine.margin import diverging

    check_finite(u, eta)
    if head.leash is not None and len(batch.posts):
        posts = batch.posts
        labels, base = (
            (batch.labels, batch.base) if batch.plain else (batch.labels[posts], batch.base[posts])
        )
        overlap = np.sqrt(head.total[0] + len(posts) + 1.0) if head.total else 1.0
        leash, farthest = head.leash * overlap, float(np.abs(u).max())
        if farthest <= leash * float(np.abs(labels - base).max()):
            return
        sums = np.frombuffer(head.sums).reshape(-1, loops.COLUMNS)
        spread = np.maximum(sums[:, loops.HIGH], -sums[:, loops.LOW])
        if not farthest <= leash * float(spread.max(initial=0.0)):
            raise diverging(eta)


def check_finite(u: Floats, eta: float) -> None:
    """Raise ``Diverging`` when a parameter left the finite numbers."""
    from gradeq.engine.margin import diverging

    if not np.isfinite(u).all():
        raise diverging(eta)
