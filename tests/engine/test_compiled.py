"""Compiled and interpreted are the same text, and agree to the last bit.

Compiling is slow, so the combinations are a cover: every loss with every link in one loop made for it, every geometry
in another, and every real loop with two losses and two links.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from every_part import CLIPPED, GEOMETRIES, LINKS, LOSSES, PENALTIES, columns
from gradeq import Debiaser, QuantileTracker
from gradeq.engine.learner import Learner
from gradeq.kernels import account, choice, descent, flight
from gradeq.kernels import compile as compiling
from gradeq.kernels.account import EMPTY, LEAN
from gradeq.kernels.choice import run_loop, unsigned
from gradeq.kernels.compile import compiled, fields
from gradeq.kernels.descent import Unpenalised, proximal
from gradeq.losses import Quantile, Squared
from gradeq.penalties import Ridge
from gradeq.schedules import Power

pytest.importorskip("numba")

N = 40
RIDGE = Ridge(0.1)
FORMS = [  # every form of rows, terms, penalty and account, in both orders of posting
    (descent.at_once, descent.Alone(), descent.Same(), descent.Free(), descent.Full()),
    (descent.at_once, descent.Alone(), descent.Own(), descent.Free(), descent.Lean()),
    (descent.at_once, descent.OneParameter(), descent.Same(), descent.Free(), descent.Later()),
    (descent.at_once, descent.OneParameter(), descent.Own(), descent.Free(), descent.Full()),
    (descent.at_once, descent.ListedEntries(), descent.Same(), descent.Free(), descent.Full()),
    (descent.at_once, descent.ListedEntries(), descent.Own(), descent.Pulled(), descent.Full()),
    (descent.at_once, descent.DenseRows(), descent.Same(), descent.Free(), descent.Lean()),
    (descent.late, descent.Alone(), descent.Own(), descent.Free(), descent.Full()),
    (descent.late, descent.OneParameter(), descent.Own(), descent.Free(), descent.Later()),
    (descent.late, descent.ListedEntries(), descent.Own(), descent.Free(), descent.Lean()),
    (descent.at_once, descent.SeveralParameters(3), descent.Same(), descent.Free(), descent.Full()),
    (descent.late, descent.SeveralParameters(3), descent.Own(), descent.Free(), descent.Lean()),
]
COVER = [(*FORMS[k % len(FORMS)], LOSSES[k % len(LOSSES)], LINKS[k % len(LINKS)]) for k in range(16)]
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


def inputs(loop, rows, terms, account):
    """What a pass reads, and what it writes."""
    base, labels, weights, etas, starts, index, value = varied()
    if isinstance(rows, descent.OneParameter):
        index = index[::3] + np.arange(N) % 3
    if isinstance(terms, descent.Same):
        etas = etas[:1]
    parameters = 1 if isinstance(rows, descent.Alone) else 3
    u, served = np.array([0.3, -0.2, 0.1])[:parameters], np.linspace(0.0, 1.0, N)
    empty = (0.0,) * LEAN if isinstance(account, descent.Lean) else EMPTY
    sums = np.tile(empty, parameters)
    if isinstance(rows, descent.DenseRows):
        value = value.reshape(N, 3)
    given = descent.DescentInputs(base, base, labels, weights, etas, starts, index, value, served)
    zeros = (np.zeros(parameters) for _ in range(3))
    kept = descent.DescentBuffers(u, sums, np.array(EMPTY), *zeros)
    posts = np.flatnonzero(labels == labels)
    order = (2, np.searchsorted(posts, np.arange(N) - 4), posts)
    return given, kept, order if loop is descent.late else ()


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


def test_links_with_limits_are_the_interpreted_ones():
    _, labels, base = columns(N)
    parts = (LOSSES[0], *CLIPPED, *CLIPPED)
    assert_same(every_link, parts, (base, labels), (np.zeros(6), np.zeros(6 * N)))


def test_what_limits_change_is_the_interpreted_count():
    rng, levels = np.random.default_rng(3), 2
    part = account.ShownLimits((0.1, 0.9), 0.0, 2.0, True)
    served, labels = (
        np.sort(np.round(rng.normal(1, 1.5, (N, levels)), 1)),
        np.clip(np.round(rng.normal(1, 1.5, N), 1), 0, 2),
    )
    index, posts = rng.integers(0, 5, N).astype(np.uint64), rng.permutation(N).astype(np.uint64)
    reads = (served.reshape(-1), labels, rng.uniform(size=N), np.arange(N + 1, dtype=np.uint64), index, posts)
    changes, total = np.zeros(5 * 2 * levels), np.zeros(2 * levels)
    rows = account.Posted(levels, *reads, changes, total)
    compiled(account.enter_limited, (part, rows))(fields(part), fields(rows))
    plain = account.Posted(levels, *(column.tolist() for column in reads), [0.0] * len(changes), [0.0] * len(total))
    account.enter_limited(part, plain)
    assert changes.any() and changes.tolist() == plain.limited
    assert total.tolist() == plain.total_limited


@pytest.mark.parametrize("combination", COVER, ids=named)
def test_every_form_of_a_pass_is_the_interpreted_one(combination):
    loop, rows, terms, pull, account, loss, link = combination
    assert_same_pass(loop, (link, loss, RIDGE, rows, terms, pull, account))


def assert_same_pass(loop, parts):
    rows, terms, account = parts[3], parts[4], parts[6]
    given, kept, order = inputs(loop, rows, terms, account)
    plain, own = (type(each)(*(a.tolist() for a in each)) for each in (given, kept))
    loop(*parts, plain, own, *(a.tolist() if isinstance(a, np.ndarray) else a for a in order))
    parts = (*parts, given, kept)
    fast = compiled(loop, parts)
    fast(*(fields(part) for part in parts), *order)
    assert given.served.tolist() == plain.served
    assert [a.tolist() for a in kept] == list(own)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_every_penalty_is_the_interpreted_one(penalty):
    parts = (LINKS[0], LOSSES[0], penalty, descent.ListedEntries(), descent.Own(), descent.Pulled(), descent.Lean())
    assert_same_pass(descent.at_once, parts)


def test_one_pass_with_accounts_is_a_pass_and_then_a_tally():
    for rows, terms in ((descent.Alone(), descent.Same()), (descent.ListedEntries(), descent.Own())):
        parts = (LINKS[0], LOSSES[0], RIDGE, rows, terms, descent.Free())
        given, together, _ = inputs(descent.at_once, rows, terms, descent.Full())
        _, apart, _ = inputs(descent.at_once, rows, terms, descent.Full())
        descent.at_once(*parts, descent.Full(), given, together)
        descent.at_once(*parts, descent.Later(), given, apart)
        posts = np.flatnonzero(given.labels == given.labels)
        descent.tally(LINKS[0], LOSSES[0], rows, terms, descent.Full(), given, apart, posts)
        assert [a.tolist() for a in together] == [a.tolist() for a in apart]


def test_the_sweep_of_steps_is_the_interpreted_one():
    base, labels, weights, _, *entries = varied()
    reads = (np.array([0.01, 0.1]), base, labels, weights, *entries)
    wanted = (np.zeros((2, 3)), np.zeros(2), np.zeros(2))
    assert_same(descent.swept, (LINKS[0], LOSSES[0]), reads, wanted)


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


def test_compiled_steps_are_the_interpreted_ones():
    ticks = np.arange(1001, 1501)
    assert_same(descent.stepped, (Power(0.3, 0.37),), (ticks,), (np.zeros(500),))
    clock = np.arange(N) % 3
    assert_same(descent.ticked, (), (clock,), (np.array([4.0, 0.0, 1.0]), np.zeros(N, dtype=int)))


def test_followed_steps_are_the_interpreted_ones():
    _, labels, weights, etas, starts, index, _ = varied()
    posts = np.flatnonzero(labels == labels)
    sizes = (3 * account.PATH, account.PATH, 3 * account.STEPS, account.STEPS)
    kept = account.StepTotals(*map(np.zeros, sizes))
    plain = account.StepTotals(*(a.tolist() for a in kept))
    account.followed(plain, *(a.tolist() for a in (etas, weights, posts, starts, index)))
    arrays = (etas, weights, *unsigned(posts, starts, index))
    compiled(account.followed, (kept,))(fields(kept), *arrays)
    assert all(a.any() for a in kept) and [a.tolist() for a in kept] == list(plain)


def test_nothing_of_ours_is_refused_by_the_compiler(monkeypatch):
    """Steps that vary, weights, late labels and groups: a loop that is refused would be interpreted in silence."""
    monkeypatch.setattr(choice, "_refused", set())
    monkeypatch.setattr(choice, "_chosen", set())
    rng, n, runs = np.random.default_rng(0), 300, []
    f, y, who = rng.normal(size=n), rng.normal(1.0, 2.0, n), rng.choice(["a", "b", "c"], n)
    given = {"weights": rng.uniform(0.5, 2.0, n), "times": np.arange(n), "groups": {"who": who}}
    given["label_times"] = given["times"] + rng.integers(1, 20, n)
    for told in "01":
        monkeypatch.setenv("GRADEQ_COMPILE", told)
        layers = [Debiaser(eta, groups=["who"]) for eta in ("auto", 0.1)]
        layers.append(QuantileTracker(0.9, groups=["who"]))
        served = [layer.run(f, y, **given).served.tolist() for layer in layers]
        runs.append((served, [str(layer.equilibrium()) for layer in layers]))
    assert runs[0] == runs[1]
    assert (account.followed, account.StepTotals) in compiling._ready
    assert not choice._refused


@pytest.mark.parametrize("featured", [False, True])
def test_steps_of_late_labels_are_the_interpreted_ones(featured):
    _, labels, weights, etas, starts, index, values = varied()
    posts = np.flatnonzero(labels == labels)
    cuts, opened = np.searchsorted(posts, np.arange(N) - 4), np.zeros(3 * N)
    norms = (values.reshape(N, 3) ** 2).sum(axis=1) if featured else np.zeros(0)
    cell = (1.0, 0.0, 0.0, flight.EPOCH, 1.0)
    places = (cuts, posts, starts, index)
    order = flight.PostingOrder(0.1, 0, 7.0, np.zeros(0), *places, weights, norms, np.zeros(N, dtype=int))
    told = np.array(flight.NO_LABELS)
    kept = flight.LatenessBuffers(opened, np.zeros(1), np.zeros(3), np.tile(cell, 3), etas, np.ones(N), told)
    listed, plain = (
        type(each)(*(a.tolist() if isinstance(a, np.ndarray) else a for a in each)) for each in (order, kept)
    )
    flight.flown(listed, plain)
    compiled(flight.flown, (order, kept))(order, kept)
    assert [a.tolist() for a in kept] == list(plain)


def test_a_compiled_run_gives_the_same_bits(monkeypatch):
    rows, labels, offsets = columns(600)
    for learner in (Learner(Quantile(0.8), 0.1), Learner(Squared(), Power(0.1, 0.5))):
        monkeypatch.setenv("GRADEQ_COMPILE", "0")
        plain = learner.run(learner.start(3), rows, labels, offsets)
        monkeypatch.setenv("GRADEQ_COMPILE", "1")
        monkeypatch.setattr(compiling, "_ready", {})
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
    monkeypatch.setenv("GRADEQ_COMPILE", "1")
    _, labels, offsets = columns(50)
    learner = Learner(Looked(), 0.1)
    run = learner.run(learner.start(), None, labels, offsets)
    assert run.state.n == 50
    assert set(run.state.gradients.tolist()) <= {float(k) for k in range(-50, 51)}


TWO = 2


def halved(x, by=2.0):
    return -TWO * x / (by * (1 - TWO) * TWO)


@dataclass(frozen=True)
class Named:
    """A loss with defaults, early returns, and names that the loops use too."""

    def value(self, u: float, y: float, i: float = 0.5) -> float:
        return i * (u - y) ** 2

    def slope(self, u: float, y: float, i: float = 2.0) -> float:
        given, kept = u, y
        if given > kept:
            return halved(i * (given - kept))
        u = kept - given
        return -u


def test_a_loss_with_defaults_and_names_of_the_loops_is_compiled(monkeypatch):
    _, labels, offsets = columns(80)
    learner, runs = Learner(Named(), 0.1), []
    for told in "01":
        monkeypatch.setenv("GRADEQ_COMPILE", told)
        runs.append(learner.run(learner.start(), None, labels, offsets))
    assert runs[0].served.tolist() == runs[1].served.tolist()
    assert any(Named in key for key in compiling._ready)


def test_interpreted_loops_leave_read_only_columns_alone():
    etas, ticks = np.zeros(3), np.arange(1, 4)
    ticks.flags.writeable = False
    run_loop(descent.stepped, (Power(0.5, 0.5),), (ticks, etas), 3)
    assert etas.tolist() == [Power(0.5, 0.5).step(t) for t in (1, 2, 3)]
