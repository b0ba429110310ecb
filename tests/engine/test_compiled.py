"""Compiled and interpreted are the same text, and agree to the last bit.

Compiling is slow, so the combinations are a cover: every loss with every link in one loop made for it, every geometry
in another, and every real loop with two losses and two links.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from every_part import GEOMETRIES, LINKS, LOSSES, PENALTIES, columns
from gradeq.engine.learner import Learner
from gradeq.kernels import account, descent, flight
from gradeq.kernels import compile as compiling
from gradeq.kernels.call import run_loop
from gradeq.kernels.compile import compiled, fields
from gradeq.kernels.proximal import Unpenalised, proximal
from gradeq.losses import Quantile, Squared
from gradeq.schedules import Power

pytest.importorskip("numba")

N = 40
LOOPS = [
    descent.scalar,
    descent.indexed,
    descent.dense,
    descent.sparse,
    descent.late,
    descent.tally,
    descent.tally_indexed,
    descent.swept,
]
COVER = [(LOOPS[k % 8], LOSSES[k % len(LOSSES)], LINKS[k % len(LINKS)]) for k in range(16)]
WHOLE = [GEOMETRIES[k] for k in (0, 5, 6, 10)]  # these go through the whole proximal loop


def every_link(loss, first, second, third, fourth, fifth, sixth, base, labels, u, served):
    """One loss behind each link in turn, as the loops over rows do it."""
    for i in range(len(base)):
        f, y = base[i], labels[i]
        served[6 * i] = first.serve(f, u[0])
        u[0] = u[0] - 0.1 * loss.slope(served[6 * i], y)
        served[6 * i + 1] = second.serve(f, u[1])
        u[1] = u[1] - 0.1 * loss.slope(served[6 * i + 1], y)
        served[6 * i + 2] = third.serve(f, u[2])
        u[2] = u[2] - 0.1 * loss.slope(served[6 * i + 2], y)
        served[6 * i + 3] = fourth.serve(f, u[3])
        u[3] = u[3] - 0.1 * loss.slope(served[6 * i + 3], y)
        served[6 * i + 4] = fifth.serve(f, u[4])
        u[4] = u[4] - 0.1 * loss.slope(served[6 * i + 4], y)
        served[6 * i + 5] = sixth.serve(f, u[5])
        u[5] = u[5] - 0.1 * loss.slope(served[6 * i + 5], y)


def wander(geometry, rows, eta, theta, u):
    """Steps along the rows, each brought back to the set."""
    for i in range(len(rows)):
        geometry.dual(theta, u)
        for j in range(len(u)):
            u[j] = u[j] - eta * rows[i][j]
        geometry.primal(u, eta, theta)


def varied():
    """Columns of a run with missing labels, weights and steps of their own, and sparse rows."""
    rows, labels, base = columns(N)
    labels[::5] = np.nan
    weights, etas = 1.0 + np.arange(N) % 3, 0.2 / np.arange(1, N + 1) ** 0.5
    entries = (np.arange(N + 1) * 3, np.tile(np.arange(3), N), rows.ravel().copy())
    return base, labels, weights, etas, *entries


def inputs(loop):
    """What the loop reads, and what it writes."""
    rows, whole, base = columns(N)
    _, labels, weights, etas, *entries = varied()
    posts = np.flatnonzero(labels == labels)
    u, served, before = np.array([0.3, -0.2, 0.1]), np.zeros(N), np.linspace(0.0, 1.0, N)
    index, sums = np.arange(N) * 7 % 3, np.tile(account.EMPTY, 3)
    plain = (base, whole, 0.05)
    if loop is descent.scalar:
        return (*plain, 0.3), (served,)
    if loop is descent.indexed:
        return (*plain, index), (u, served)
    if loop is descent.dense:
        return (*plain, rows), (u, np.zeros(3 * account.LEAN), served)
    if loop is descent.sparse:
        return (base, labels, weights, etas, *entries), (u, served)
    if loop is descent.late:
        order = (2, np.searchsorted(posts, np.arange(N) - 4), posts)
        return (base, labels, weights, etas, *entries, *order), (u, served)
    if loop is descent.tally:
        return (base, base, labels, weights, etas, before, posts, *entries), (sums,)
    if loop is descent.tally_indexed:
        return (*plain, before, index), (sums,)
    steps = np.array([0.01, 0.1])
    wanted = (np.zeros((2, 3)), np.zeros(2), np.zeros(2))
    return (steps, base, labels, weights, *entries), wanted


def assert_same(loop, parts, reads, writes):
    fast = compiled(loop, parts)
    assert fast is not None
    written = [array.copy() for array in writes]
    fast(*(fields(part) for part in parts), *reads, *written)
    lists = [array.tolist() for array in writes]
    loop(*parts, *(a.tolist() if isinstance(a, np.ndarray) else a for a in reads), *lists)
    for array, values in zip(written, lists, strict=True):
        assert array.tolist() == values


def named(combination):
    loop, *parts = combination
    return "-".join((loop.__name__, *(repr(part) for part in parts)))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_every_loss_behind_every_link_is_the_interpreted_one(loss):
    _, labels, base = columns(N)
    assert_same(every_link, (loss, *LINKS), (base, labels), (np.zeros(6), np.zeros(6 * N)))


@pytest.mark.parametrize("combination", COVER, ids=named)
def test_every_plain_loop_is_the_interpreted_one(combination):
    loop, loss, link = combination
    assert_same(loop, (link, loss), *inputs(loop))


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=repr)
def test_every_geometry_is_the_interpreted_one(geometry):
    rows, _, _ = columns(N)
    start = Learner(Squared(), 0.1, geometry).start(3)
    assert_same(wander, (geometry,), (rows, 0.3), (start.theta.copy(), start.u.copy()))


@pytest.mark.parametrize("k", range(len(WHOLE)), ids=lambda k: repr(WHOLE[k]))
def test_the_proximal_loop_is_the_interpreted_one(k):
    geometry = WHOLE[k]
    penalty = [*PENALTIES, Unpenalised(), Unpenalised()][k]
    reads = varied()
    start = Learner(LOSSES[k], 0.1, geometry).start(3)
    for lazy in (False, True) if geometry.lazy_is_sound else (False,):
        arrays = [np.zeros(1), start.u.copy(), start.theta.copy()]
        arrays += [np.zeros(3) for _ in range(4)] + [np.zeros(N), np.zeros(3), np.zeros(3)]
        parts = (LINKS[k], LOSSES[k], penalty, geometry)
        assert_same(proximal, parts, (*reads[:4], lazy, *reads[4:]), arrays)


def test_the_penalised_loop_is_the_interpreted_one():
    for penalty in PENALTIES:
        writes = [np.array([0.3, -0.2, 0.1]), *(np.zeros(3) for _ in range(3)), np.zeros(N)]
        assert_same(descent.penalised, (LINKS[0], LOSSES[0], penalty), varied(), writes)


def test_lean_accounts_are_the_interpreted_ones():
    _, labels, weights, etas, *entries = varied()
    posts, served = np.flatnonzero(labels == labels), np.linspace(0.0, 1.0, N)
    reads = (labels, weights, etas, served, posts, *entries)
    for loss in LOSSES[:3]:
        assert_same(descent.tally_lean, (loss,), reads, (np.zeros(3 * account.LEAN),))


def test_compiled_steps_are_the_interpreted_ones():
    ticks = np.arange(1001, 1501)
    assert_same(descent.stepped, (Power(0.3, 0.37),), (ticks,), (np.zeros(500),))
    clock = np.arange(N) % 3
    assert_same(descent.ticked, (), (clock,), (np.array([4.0, 0.0, 1.0]), np.zeros(N, dtype=int)))
    _, _, _, etas, starts, index, _ = varied()
    assert_same(account.followed, (), (etas, clock, starts, index), (np.zeros(3 * account.PATH),))


@pytest.mark.parametrize("featured", [False, True])
def test_steps_of_late_labels_are_the_interpreted_ones(featured):
    _, labels, weights, etas, starts, index, values = varied()
    posts = np.flatnonzero(labels == labels)
    cuts, opened = np.searchsorted(posts, np.arange(N) - 4), np.zeros(3 * N)
    norms = (values.reshape(N, 3) ** 2).sum(axis=1) if featured else np.zeros(0)
    cell = (1.0, 0.0, 0.0, flight.EPOCH, 1.0)
    reads = (True, 0.1, 0, cuts, posts, opened, starts, index, weights, norms)
    writes = (np.zeros(1), np.zeros(N, dtype=int), np.zeros(3), np.tile(cell, 3), etas, np.ones(N))
    assert_same(flight.flown, (), reads, writes)


def test_a_run_that_grew_long_enough_to_be_compiled_gives_the_same_bits(monkeypatch):
    rows, labels, offsets = columns(600)
    for learner in (Learner(Quantile(0.8), 0.1), Learner(Squared(), Power(0.1, 0.5))):
        monkeypatch.setenv("GRADEQ_COMPILE", "0")
        monkeypatch.setattr(compiling, "_ready", {})
        plain = learner.run(learner.start(3), rows, labels, offsets)
        monkeypatch.delenv("GRADEQ_COMPILE")
        monkeypatch.setattr(compiling, "COMPILE_FROM", 500)
        fast = learner.run(learner.start(3), rows, labels, offsets)
        assert compiling._ready
        assert fast.served.tolist() == plain.served.tolist()
        assert fast.state == plain.state


@dataclass(frozen=True)
class Looked:
    """A loss that the compiler refuses: it looks its slopes up in a mixed list."""

    def value(self, u: float, y: float) -> float:
        return abs(u - y)

    def slope(self, u: float, y: float) -> float:
        return [1.0, "no", -1.0][0 if y <= u else 2]


def test_a_loss_that_cannot_be_compiled_is_interpreted(monkeypatch):
    monkeypatch.setattr(compiling, "COMPILE_FROM", 10)
    _, labels, offsets = columns(50)
    learner = Learner(Looked(), 0.1)
    run = learner.run(learner.start(), None, labels, offsets)
    assert run.state.n == 50
    assert set(run.state.gradients.tolist()) <= {float(k) for k in range(-50, 51)}


def test_interpreted_loops_leave_read_only_columns_alone():
    base = np.zeros(3)
    base.flags.writeable = False
    served = np.zeros(3)
    from gradeq.links import Identity

    run_loop(
        descent.scalar,
        (Identity(), Squared()),
        (base, np.ones(3), 0.5, 0.0, served),
        3,
    )
    assert served.tolist() == [0.0, 0.5, 0.75]
